"""Several values along the axes of a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from icy.config.settings import RepresentationName
from icy.config.specs import EndToEndSpec, ProbeSpec, SweepSpec
from icy.core.errors import IncompatibleError
from icy.experiments.plan import make_plan
from icy.experiments.sweep import make_sweep
from icy.training.combinations import KNOWN, combinations

SMALL: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1}


def facts(spec: Any, *names: str) -> list[tuple[str, ...]]:
    plan = make_sweep(spec) if isinstance(spec, SweepSpec) else make_plan(spec)
    return [(row.name, *(str(row.facts.get(name)) for name in names)) for row in plan.rows]


@pytest.mark.parametrize(
    "several", ["soft,gumb", ["soft", "gumb"], ("soft,gumb", "soft"), (n for n in ("soft", "gumb"))]
)
def test_a_list_has_many_forms(several: Any, tmp_path: Path) -> None:
    spec = ProbeSpec.asked(model="sender/FC1L", grammar="perm", representation=several, out=tmp_path, **SMALL)
    assert facts(spec, "representation") == [("sender/FC1L", "soft"), ("sender/FC1L", "gumb")]


def test_all_combinations_are_rows_as_in_a_sweep(tmp_path: Path) -> None:
    several: dict[str, Any] = {
        **SMALL, "meanings": "2x3,3x3", "vocab_size": [4, 5], "protocol": "all", "representation": "soft,discr",
    }  # fmt: skip
    spec = ProbeSpec("sender/FC1L", "perm", out=tmp_path, **several)
    names = ("meanings", "protocol", "representation")
    found = facts(spec, *names)
    assert len(found) == 2 * 2 * 3 * 2
    swept = SweepSpec("sender/FC1L", grammar="perm", order="given", out=tmp_path, **several)
    assert facts(swept, *names) == found


@pytest.mark.parametrize("several", ["0.001,0.004", [0.001, 0.004]])
def test_settings_may_have_several_values(several: Any, tmp_path: Path) -> None:
    rates = {"settings": {"learning_rate": several, "optimizer": "adam"}}
    spec = ProbeSpec("sender/FC1L", "perm", out=tmp_path, **SMALL, **rates)
    alone = ProbeSpec("sender/FC1L", "perm", out=tmp_path, **SMALL, settings={"learning_rate": 0.004})
    assert facts(spec, "settings") == [("sender/FC1L", "None"), ("sender/FC1L", "learning_rate=0.004")]
    rows = [make_plan(one).rows[-1].job for one in (spec, alone)]
    assert rows[0].key(rows[0].replicates[0]) == rows[1].key(rows[1].replicates[0])
    assert len(facts(SweepSpec("sender/FC1L", grammar="perm", out=tmp_path, **SMALL, **rates))) == 2
    assert len(facts(EndToEndSpec("FC1L", "FC1L", updates=5, out=tmp_path, **SMALL, **rates))) == 2


def test_pairs_have_rows_for_each_combination(tmp_path: Path) -> None:
    several = {**SMALL, "hidden": "8,16", "representation": ["soft", "gumb"], "pretrain_representation": "soft,gumb"}
    scratch = EndToEndSpec("FC1L", "FC1L", updates=5, out=tmp_path, **several)
    assert len(facts(scratch)) == 4  # runs from scratch have no pre-training
    assert len(facts(EndToEndSpec("FC1L", "FC1L", "perm", updates=5, out=tmp_path, **several))) == 8


def test_a_model_is_left_out_where_it_does_not_work(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = ProbeSpec("sender/TransDecSampling,sender/FC1L", "perm", representation="all", out=tmp_path, **SMALL)
    found = facts(spec, "representation")
    assert [name for name, _ in found].count("sender/FC1L") == len(get_args(RepresentationName))
    assert 0 < [name for name, _ in found].count("sender/TransDecSampling") < len(get_args(RepresentationName))
    assert "Left out: " in caplog.text
    with pytest.raises(IncompatibleError, match="sender/TransDecSampling"):
        facts(ProbeSpec("sender/TransDecSampling", "perm", representation="soft,gumb", out=tmp_path, **SMALL))


def test_one_value_is_one_spec() -> None:
    spec = ProbeSpec("sender/FC1L,sender/FC2L", "perm").with_given(["seeds"])
    (only,) = combinations(spec)
    assert (only, only.given) == (spec, frozenset(["seeds"]))
    assert set(KNOWN) <= {*ProbeSpec.axes, *EndToEndSpec.axes}
