"""Memory cores learn to bind stimuli and messages, with new pairs in every episode."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.s2b.agents.cores import Parts, make_core

PAIRS, WIDTH, BATCH, UPDATES = 5, 8, 32, 600
SMALL: dict[str, dict[str, Any]] = {
    "DCEM": {"hidden": 64, "output": 64, "query": 64},
    "ESBN": {"key": 64, "controller": 64, "hidden": 64, "output": 64},
    "Transformer": {"size": 64},
}


def episodes(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return stimuli with messages, then messages alone, and whether the first number of their stimulus is positive."""
    seen = torch.randn(PAIRS, BATCH, WIDTH, generator=generator)
    heard = 2 * F.normalize(torch.randn(PAIRS, BATCH, WIDTH, generator=generator), dim=-1)
    which, row = torch.randint(PAIRS, (PAIRS, BATCH), generator=generator), torch.arange(BATCH)
    asked = torch.cat([torch.zeros_like(seen), heard[which, row]], -1)
    return torch.cat([torch.cat([seen, heard], -1), asked]), (seen[which, row][..., 0] > 0).float()


@pytest.mark.stress
@pytest.mark.parametrize("name", SMALL)
def test_memory_cores_learn_to_bind(name: str) -> None:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    core = make_core(name, 2 * WIDTH, capacity=16, parts=Parts(WIDTH, WIDTH), **SMALL[name])
    head = nn.Linear(core.output, 1)
    optimizer = torch.optim.Adam([*core.parameters(), *head.parameters()], lr=2e-3)
    right = []
    for _ in range(UPDATES):
        xs, answers = episodes(generator)
        logits = head(core.unroll(xs, core.start(BATCH))[0][PAIRS:])[..., 0]
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(logits, answers).backward()
        nn.utils.clip_grad_norm_(core.parameters(), 1.0)
        optimizer.step()
        right.append(((logits > 0) == (answers > 0.5)).float().mean().item())
    assert sum(right[-50:]) / 50 > 0.9  # an LSTM gets 0.64
