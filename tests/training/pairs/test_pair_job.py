"""Jobs of pairs: what their key depends on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icy.config.protocols import SCRATCH
from icy.training.job import Replicate
from icy.training.pair_job import PairJob
from tests.training.pairs.helpers import SETTINGS, SHORT, pair_task


def job(**more: Any) -> PairJob:
    task = replace(pair_task(), pretrain_representation=more.pop("before", "soft"))
    return PairJob(task, SHORT, replace(SETTINGS, **more))


def test_settings_of_pre_training_are_part_of_the_key_of_a_pair() -> None:
    taught, scratch = Replicate("perm", 1), Replicate(SCRATCH, 1)
    assert job(before="gumb").key(taught) != job(before="gumb", temperature=5.0).key(taught)
    assert job(before="gumb").key(scratch) == job(before="gumb", temperature=5.0).key(scratch)
    assert job().key(taught) == job(temperature=5.0).key(taught)
