"""Runners: dealing replicates into stacks."""

from __future__ import annotations

from icy.training.job import Replicate
from icy.training.runners.base import deal


def test_dealing_is_complete_and_even() -> None:
    replicates = [Replicate(g, s) for g in ("hol", "perm", "rot") for s in range(5)]
    stacks = deal(replicates, 2, 16)
    assert sorted(r for stack in stacks for r in stack) == sorted(replicates)
    for grammar in ("hol", "perm", "rot"):
        assert sorted(sum(r.grammar == grammar for r in stack) for stack in stacks) == [2, 3]
    assert max(map(len, deal(replicates, 2, 4))) <= 4
    assert deal([], 2, 4) == []
