"""Adam without torch.optim: its numbers to the last bit, without its import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from icy.training.adam import Adam
from tests.cores import needs_native
from tests.training.helpers import SEEDS, batches, stacked, step, task, weights

HEAVY = ("torch._dynamo", "torch._inductor", "sympy", "scipy.stats", "sklearn", "matplotlib")  # seconds in all


def gradients(size: int, updates: int) -> Tensor:
    """Gradients of very different sizes, [update, parameter], some of them zero."""
    made = torch.Generator().manual_seed(3)
    drawn = torch.randn(updates, size, generator=made) * torch.logspace(-6, 3, size)
    return drawn * (torch.rand(updates, size, generator=made) > 0.2)


@pytest.mark.parametrize("size", [1, 64, 1000])
def test_adam_gives_the_bits_of_pytorchs(size: int) -> None:
    start = torch.randn(size, generator=torch.Generator().manual_seed(1))
    theirs, mine, gradient = nn.Parameter(start.clone()), start.clone(), torch.zeros(size)
    reference, adam = torch.optim.Adam([theirs], lr=0.003, fused=True), Adam(mine, gradient, 0.003)
    for drawn in gradients(size, 20):
        gradient.copy_(drawn)
        theirs.grad = drawn.clone()
        reference.step()
        adam.step()
        assert torch.equal(mine, theirs.detach())
    state = reference.state[theirs]
    assert torch.equal(adam.steps, state["step"])
    assert all(torch.equal(moment, state[name]) for name, moment in adam.moments.items())
    assert not torch.equal(mine, start)


def test_a_stack_that_shrinks_goes_on_with_the_bits_of_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Theirs(Adam):
        """The same by torch.optim."""

        def step(self) -> None:
            vector = nn.Parameter(self._weights)
            vector.grad = self._gradient
            optimiser = torch.optim.Adam([vector], lr=self._learning_rate, fused=True)
            optimiser.state[vector] = {"step": self.steps, **self.moments}
            optimiser.step()

    of, found = task("sender/HierZero:GRU"), []
    for kind in (Adam, Theirs):
        monkeypatch.setattr("icy.training.gradient.Adam", kind)
        learner = stacked(of, SEEDS[:3], how="broadcast")
        for update in range(3):
            step(learner, *batches("sender", 3, update))
        learner.keep([2, 0])
        for update in range(3, 6):
            step(learner, *(part[[2, 0]] for part in batches("sender", 3, update)))
        found.append(weights(learner))
    assert all(torch.equal(value, found[1][name]) for name, value in found[0].items())


@pytest.mark.process
@pytest.mark.parametrize("engine", [pytest.param("native", marks=needs_native), "broadcast", "vmap", "loop"])
def test_training_imports_no_compiler(tmp_path: Path, engine: str) -> None:
    script = (
        "import sys, icy;"
        f"icy.probe('sender/FC1L', 'perm', meanings='2x3', word_length=2, seeds=1, quick=True, engine={engine!r},"
        f" workers=1, progress=False, out={str(tmp_path)!r});"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "[]"
