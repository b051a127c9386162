"""Runners: dealing replicates into stacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from icy.training.job import Replicate
from icy.training.runners.base import deal, run_job


def test_dealing_is_complete_and_even() -> None:
    replicates = [Replicate(g, s) for g in ("hol", "perm", "rot") for s in range(5)]
    stacks = deal(replicates, 2, 16)
    assert sorted(r for stack in stacks for r in stack) == sorted(replicates)
    for grammar in ("hol", "perm", "rot"):
        assert sorted(sum(r.condition == grammar for r in stack) for stack in stacks) == [2, 3]
    assert max(map(len, deal(replicates, 2, 4))) <= 4
    assert deal([], 2, 4) == []


@dataclass
class Wraps:
    """A stand-in for a job with an error in training; `of` is the cause of the error."""

    replicates = (Replicate("perm", 1),)
    name = device = "cpu"
    of: BaseException

    def train(self, report: Any) -> Any:
        raise RuntimeError("while a class was made") from self.of

    def failure(self, replicate: Replicate, error: BaseException) -> Any:
        return {"error": str(error)}


def test_an_interrupt_behind_an_error_is_not_a_failure_of_the_model() -> None:
    filed: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        run_job(Wraps(KeyboardInterrupt()), put=lambda record, files: filed.append(record))  # type: ignore[arg-type]
    assert filed == []
    run_job(Wraps(ValueError()), put=lambda record, files: filed.append(record))  # type: ignore[arg-type]
    assert filed == [{"error": "while a class was made"}]
