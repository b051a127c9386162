"""Jobs: their keys, their engines and the names of conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from icy.config.protocols import SCRATCH
from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.languages.splits import Split
from icy.training.job import Replicate, check_engine
from icy.training.language_job import PairJob
from tests.training.helpers import holding_out, job, outcomes
from tests.training.pairs.helpers import SETTINGS, pair_task


def test_only_generalise_holds_meanings_out() -> None:
    plain, split = job("sender/FC2L", [("concat", 1)]), holding_out("sender/FC2L", [("concat", 1)], Split())
    assert split.config(Replicate("concat", 1)).keys() - plain.config(Replicate("concat", 1)).keys() == {
        "held_out",
        "split",
    }
    assert outcomes(replace(plain, baselines={1: 10}))["concat", 1].extra == {}


def test_unavailable_native_cores_are_refused_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidSettingError, match="only on a CPU"):
        check_engine("native", "cuda")
    monkeypatch.setenv("ICY_NATIVE", "off")
    check_engine("auto", "cpu")
    with pytest.raises(InvalidSettingError, match=r"not available here \(switched off by ICY_NATIVE=off\)"):
        check_engine("native", "cpu")
    monkeypatch.setenv("ICY_NATIVE", "nonsense")
    with pytest.raises(UnknownNameError, match="No value of ICY_NATIVE is called 'nonsense'"):
        check_engine("auto", "cpu")


def test_the_former_name_of_the_condition_gives_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match=r"is now Replicate\.condition"):
        assert Replicate("rot", 1).grammar == "rot"


# -- jobs of pairs: what their key depends on --------------------------------------------------------------------------


def pair_job(**more: Any) -> PairJob:
    before = more.pop("before", "soft")
    return PairJob(settings=pair_task(pretrain_representation=before, training=replace(SETTINGS, **more)))


def test_settings_of_pre_training_are_part_of_the_key_of_a_pair() -> None:
    taught, scratch = Replicate("perm", 1), Replicate(SCRATCH, 1)
    assert pair_job(before="gumb").key(taught) != pair_job(before="gumb", temperature=5.0).key(taught)
    assert pair_job(before="gumb").key(scratch) == pair_job(before="gumb", temperature=5.0).key(scratch)
    assert pair_job().key(taught) == pair_job(temperature=5.0).key(taught)
