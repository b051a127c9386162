"""Masks of append-only memories equal the result of a loop over episodes."""

from __future__ import annotations

import pytest
import torch

from icy.s2b.agents.cores.entries import appended, remembered, view

CAPACITY, STEPS, BATCH = 3, 6, 4


def resets() -> torch.Tensor:
    found = torch.zeros(STEPS, BATCH, dtype=torch.bool)
    found[0, 0] = found[2, 1] = found[3, 1] = found[5, 2] = True
    return found


@pytest.mark.parametrize("begins", [None, resets()])
def test_a_step_reads_the_last_entries_of_its_episode(begins: torch.Tensor | None) -> None:
    count = torch.tensor([2, 0, 9, 1])
    old = torch.arange(BATCH * CAPACITY).view(BATCH, CAPACITY).float() + 100
    new = torch.arange(STEPS * BATCH).view(STEPS, BATCH).float() + 1
    seen, entries = view(count, begins, STEPS, CAPACITY), appended(old, new)
    for b in range(BATCH):
        steps = int(count[b])
        held = old[b, CAPACITY - min(steps, CAPACITY) :].tolist()
        for t in range(STEPS):
            if begins is not None and begins[t, b]:
                held, steps = [], 0
            assert entries[b][seen.earlier[b, t]].tolist() == held
            assert seen.ages[b, t] == steps
            held, steps = [*held, float(new[t, b])][-CAPACITY:], steps + 1
        assert seen.count[b] == steps
        assert remembered(entries, seen)[b].tolist() == [0.0] * (CAPACITY - len(held)) + held
