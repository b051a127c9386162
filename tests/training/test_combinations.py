"""Several values along the axes of a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

import icy
from icy.analysis import mixed_effects
from icy.analysis.order import without_repeats
from icy.config.settings import RepresentationName
from icy.core.errors import IncompatibleError
from icy.experiments.plan import make_plan
from icy.experiments.requests import SweepRequest
from icy.experiments.sweep import make_sweep, sweep_request
from icy.training.chain_settings import ChainRequest
from icy.training.combinations import combinations, warn_of_same_networks
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest

SMALL: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1}


def facts(spec: Any, *names: str) -> list[tuple[str, ...]]:
    plan = make_sweep(spec) if isinstance(spec, SweepRequest) else make_plan(spec)
    return [(row.name, *(str(row.facts.get(name)) for name in names)) for row in plan.rows]


@pytest.mark.parametrize(
    "several", ["soft,gumb", ["soft", "gumb"], ("soft,gumb", "soft"), (n for n in ("soft", "gumb"))]
)
def test_a_list_has_many_forms(several: Any, tmp_path: Path) -> None:
    spec = ProbeRequest.asked(model="sender/FC1L", grammar="perm", representation=several, out=tmp_path, **SMALL)
    assert facts(spec, "representation") == [("sender/FC1L", "soft"), ("sender/FC1L", "gumb")]


def test_all_combinations_are_rows_as_in_a_sweep(tmp_path: Path) -> None:
    several: dict[str, Any] = {
        **SMALL, "meanings": "2x3,3x3", "vocab_size": [4, 5], "protocol": "all", "representation": "soft,discr",
    }  # fmt: skip
    spec = ProbeRequest("sender/FC1L", "perm", out=tmp_path, **several)
    names = ("meanings", "protocol", "representation")
    found = facts(spec, *names)
    assert len(found) == 2 * 2 * 3 * 2
    swept = SweepRequest("sender/FC1L", grammar="perm", order="given", out=tmp_path, **several)
    assert facts(swept, *names) == found


@pytest.mark.parametrize("several", ["0.001,0.004", [0.001, 0.004]])
def test_settings_may_have_several_values(several: Any, tmp_path: Path) -> None:
    rates = {"settings": {"learning_rate": several, "optimizer": "adam"}}
    spec = ProbeRequest("sender/FC1L", "perm", out=tmp_path, **SMALL, **rates)
    alone = ProbeRequest("sender/FC1L", "perm", out=tmp_path, **SMALL, settings={"learning_rate": 0.004})
    assert facts(spec, "settings") == [("sender/FC1L", "None"), ("sender/FC1L", "learning_rate=0.004")]
    rows = [make_plan(one).rows[-1].job for one in (spec, alone)]
    assert rows[0].key(rows[0].replicates[0]) == rows[1].key(rows[1].replicates[0])
    assert len(facts(SweepRequest("sender/FC1L", grammar="perm", out=tmp_path, **SMALL, **rates))) == 2
    assert len(facts(EndToEndRequest("FC1L", "FC1L", updates=5, out=tmp_path, **SMALL, **rates))) == 2


def test_pairs_have_rows_for_each_combination(tmp_path: Path) -> None:
    several = {**SMALL, "hidden": "8,16", "representation": ["soft", "gumb"], "pretrain_representation": "soft,gumb"}
    scratch = EndToEndRequest("FC1L", "FC1L", updates=5, out=tmp_path, **several)
    assert len(facts(scratch)) == 4  # runs from scratch have no pre-training
    assert len(facts(EndToEndRequest("FC1L", "FC1L", "perm", updates=5, out=tmp_path, **several))) == 8


def test_a_model_is_left_out_where_it_does_not_work(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = ProbeRequest("sender/TransDecSampling,sender/FC1L", "perm", representation="all", out=tmp_path, **SMALL)
    found = facts(spec, "representation")
    assert [name for name, _ in found].count("sender/FC1L") == len(get_args(RepresentationName))
    assert 0 < [name for name, _ in found].count("sender/TransDecSampling") < len(get_args(RepresentationName))
    assert "Left out: " in caplog.text
    with pytest.raises(IncompatibleError, match="sender/TransDecSampling"):
        facts(ProbeRequest("sender/TransDecSampling", "perm", representation="soft,gumb", out=tmp_path, **SMALL))


def test_one_value_is_one_spec() -> None:
    spec = ProbeRequest("sender/FC1L,sender/FC2L", "perm").with_given(["seeds"])
    (only,) = combinations(spec)
    assert (only, only.given) == (spec, frozenset(["seeds"]))


# -- rows that differ only in a factor that their model does not have --------------------------------------------------


QUICK: dict[str, Any] = {"hidden": "8,16", "quick": True, "seeds": 1, "workers": 1}


def _plans(out: Path) -> dict[str, Any]:
    return {
        "probe": lambda: make_plan(
            ProbeRequest.asked(model="sender/FC1L,sender/FC2L", grammar="perm", out=out, **QUICK)
        ),
        "sweep": lambda: make_sweep(sweep_request(model="sender/FC1L,sender/FC2L", grammar="perm", out=out, **QUICK)),
        "parts": lambda: make_sweep(
            sweep_request(
                model="sender/FC1L,sender/FC2L",
                parts=({"hidden": 8}, {"hidden": 16}),
                out=out,
                **{**QUICK, "hidden": 4},
            )
        ),
        "e2e": lambda: make_plan(EndToEndRequest.asked(sender="FC1L", receiver="FC1L", out=out, **QUICK)),
        "chain": lambda: make_plan(
            ChainRequest.asked(model="sender/FC1L", grammar="perm", hidden="8,16", quick=True, chains=1, out=out)
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
        ProbeRequest.asked(model=model, grammar="perm", representation=representation, out=tmp_path, quick=True)
    )
    warn_of_same_networks(row.job for row in plan.rows)
    assert (f"rows with representation {named} are the same" in caplog.text) is bool(named)
    assert ("are the same" in caplog.text) is bool(named)


@pytest.mark.slow
def test_repeated_runs_do_not_count_as_data(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    models = ["sender/FC1L", "sender/FC2L", "receiver/FC2L", "receiver/FC1L", "sender/Hashtable"]
    result = icy.sweep(models, grammar="perm", representation="soft,gs", out=tmp_path, **{**QUICK, "seeds": 2})
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
