"""Rows that differ only in a factor that their model does not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icy
from icy.analysis import mixed_effects
from icy.analysis.order import without_repeats
from icy.config.specs import ChainSpec, EndToEndSpec, ProbeSpec
from icy.experiments.plan import make_plan
from icy.experiments.sweep import make_sweep, sweep_spec
from icy.training.combinations import warn_of_same_networks

SMALL: dict[str, Any] = {"hidden": "8,16", "quick": True, "seeds": 1, "workers": 1}


def _plans(out: Path) -> dict[str, Any]:
    return {
        "probe": lambda: make_plan(ProbeSpec.asked(model="sender/FC1L,sender/FC2L", grammar="perm", out=out, **SMALL)),
        "sweep": lambda: make_sweep(sweep_spec(model="sender/FC1L,sender/FC2L", grammar="perm", out=out, **SMALL)),
        "parts": lambda: make_sweep(
            sweep_spec(
                model="sender/FC1L,sender/FC2L",
                parts=({"hidden": 8}, {"hidden": 16}),
                out=out,
                **{**SMALL, "hidden": 4},
            )
        ),
        "e2e": lambda: make_plan(EndToEndSpec.asked(sender="FC1L", receiver="FC1L", out=out, **SMALL)),
        "chain": lambda: make_plan(
            ChainSpec.asked(model="sender/FC1L", grammar="perm", hidden="8,16", quick=True, chains=1, out=out)
        ),
    }


@pytest.mark.parametrize("kind", ["probe", "sweep", "parts", "e2e", "chain"])
def test_hidden_sizes_without_effect_are_named_once(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_same_networks(row.job for row in _plans(tmp_path)[kind]().rows)
    said = [record.getMessage() for record in caplog.records if "are the same" in record.getMessage()]
    assert len(said) == 1
    assert "FC1L has no hidden layer: its rows with hidden size " in said[0]
    assert "FC2L" not in said[0]


@pytest.mark.parametrize(
    ("model", "representation", "named"),
    [("receiver/FC2L", "soft,gs,qt,cb,gumb", "soft, gs, qt and cb"), ("receiver/FC2L", "soft,discr", ""),
     ("sender/FC2L", "all", "")],
)  # fmt: skip
def test_representations_that_a_receiver_ignores(
    model: str, representation: str, named: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = make_plan(
        ProbeSpec.asked(model=model, grammar="perm", representation=representation, out=tmp_path, quick=True)
    )
    warn_of_same_networks(row.job for row in plan.rows)
    assert (f"rows with representation {named} are the same" in caplog.text) is bool(named)
    assert ("are the same" in caplog.text) is bool(named)


@pytest.mark.slow
def test_repeated_runs_do_not_count_as_data(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    models = ["sender/FC1L", "sender/FC2L", "receiver/FC2L", "receiver/FC1L", "sender/Hashtable"]
    result = icy.sweep(models, grammar="perm", representation="soft,gs", out=tmp_path, **{**SMALL, "seeds": 2})
    long = result.to_dataframe()
    once = without_repeats(long)
    assert "left out: they repeat other runs" in caplog.text
    groups = once[once.grammar == "perm"].groupby("model").size().to_dict()
    assert groups == {"sender/FC1L": 4, "sender/FC2L": 8, "receiver/FC2L": 4, "receiver/FC1L": 2, "sender/Hashtable": 4}
    own = long[long.grammar.eq("perm") & ~long.model.str.contains("Hashtable")]
    found = mixed_effects(own, ["model"])
    assert found.runs == 18
    assert found.means.equals(mixed_effects(without_repeats(own), ["model"]).means)


def test_other_tables_are_kept() -> None:
    import pandas as pd

    table = pd.DataFrame({"model": ["a", "a"], "value": [1.0, 1.0]})
    assert without_repeats(table) is table
