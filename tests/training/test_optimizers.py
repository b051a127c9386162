"""Optimizers: Adam without torch.optim, to the last bit and without its import, and others by torch.optim."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from icy.config.settings import OPTIMIZERS, TrainingSettings
from icy.core.errors import IcyError
from icy.core.noise import Noise
from icy.core.representations import SOFT
from icy.training.gradient import Adam, AgedAdam, OfTorch
from icy.training.learners import supervised_loss
from icy.training.task_models import make_model
from tests.cores import needs_native
from tests.training.helpers import SEEDS, SETTINGS, batches, stacked, step, task, weights

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


def test_parameters_of_different_ages_step_as_if_alone() -> None:
    """Some parameters are new after a few steps: their optimizer begins again."""
    start, again = torch.randn(2, 64, generator=torch.Generator().manual_seed(1))
    weights, gradient, drawn = start.clone(), torch.zeros(64), gradients(64, 20)
    adam = AgedAdam(weights, gradient, 0.003)

    def alone(first: Tensor, some: Tensor) -> Tensor:
        theirs = nn.Parameter(first.clone())
        reference = torch.optim.Adam([theirs], lr=0.003)
        for theirs.grad in some:
            reference.step()
        return theirs.detach()

    for update, one in enumerate(drawn):
        if update == 5:
            weights[:32] = again[:32]
            for moment in adam.moments.values():
                moment[:32] = 0
        gradient.copy_(one)
        adam.step()
    torch.testing.assert_close(weights[32:], alone(start, drawn)[32:])
    torch.testing.assert_close(weights[:32], alone(again, drawn[5:])[:32])


def test_a_stack_that_shrinks_goes_on_with_the_bits_of_pytorchs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Theirs(Adam):
        """The same by torch.optim."""

        def step(self) -> None:
            vector = nn.Parameter(self._weights)
            vector.grad = self._gradient
            optimizer = torch.optim.Adam([vector], lr=self._learning_rate, fused=True)
            optimizer.state[vector] = {"step": self.steps, **self.moments}
            optimizer.step()

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


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_other_optimizers_equal_pytorchs_for_each_replicate(name: str) -> None:
    settings = replace(SETTINGS, optimizer=name, clip_norm=None)
    of, loss = task("sender/FC2L"), supervised_loss(SOFT, "sender")
    learner = stacked(of, SEEDS[:2], settings, how="broadcast")
    models = [make_model(of, seed, settings) for seed in SEEDS[:2]]
    theirs = [getattr(torch.optim, OPTIMIZERS[name])(model.parameters(), lr=SETTINGS.learning_rate) for model in models]
    for update in range(4):
        inputs, targets = batches("sender", 2, update)
        step(learner, inputs, targets)
        for place, (model, optimizer) in enumerate(zip(models, theirs, strict=True)):
            optimizer.zero_grad()
            loss(
                model(inputs[place])[None], targets[place][None], Noise(torch.zeros(1, dtype=torch.long))
            ).sum().backward()
            optimizer.step()
    for place, model in enumerate(models):
        for parameter, value in learner.weights(place).items():
            torch.testing.assert_close(value, model.state_dict()[parameter], rtol=1e-4, atol=1e-6)


@needs_native
@pytest.mark.parametrize("clip", [None, 0.05])
def test_rmsprop_of_native_cores_is_that_of_pytorch(clip: float | None) -> None:
    settings = replace(SETTINGS, optimizer="rmsprop", clip_norm=clip)
    of, found = task("sender/HierZero:GRU"), []
    for how in ("native", "broadcast"):
        learner = stacked(of, SEEDS[:2], settings, how=how)
        for update in range(5):
            step(learner, *batches("sender", 2, update))
        found.append(weights(learner))
    for name, value in found[0].items():
        torch.testing.assert_close(value, found[1][name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("how", [pytest.param("native", marks=needs_native), "broadcast"])
@pytest.mark.parametrize("name", ["rmsprop", "nadam", "sgd"])
def test_a_stack_that_shrinks_or_is_resumed_continues(name: str, how: str) -> None:
    settings = replace(SETTINGS, optimizer=name)
    if how == "native" and name != "rmsprop":
        with pytest.raises(IcyError, match=f"does not support the optimizer {name}"):
            stacked(task("sender/FC2L"), SEEDS[:1], settings, how=how)
        return
    of = task("sender/FC2L")
    whole, part, late = (stacked(of, SEEDS[:3], settings, how=how) for _ in range(3))
    for update in range(6):
        given = batches("sender", 3, update)
        step(whole, *given)
        if update < 3:
            step(part, *given)
        if update == 2:
            late.resume([part.state(place) for place in range(3)])
            part.keep([2, 0])
        if update > 2:
            step(part, *(x[[2, 0]] for x in given))
            step(late, *given)
    for name, value in weights(whole).items():
        assert torch.equal(weights(late)[name], value)
        assert torch.equal(weights(part)[name], value[[2, 0]])


def test_frozen_parameters_stay() -> None:
    vector, gradient = torch.ones(4), torch.tensor([0.0, 1.0, 0.0, 0.0])
    optimizer = OfTorch("adamw", vector, gradient, 0.1, torch.tensor([True, False, False, True]))
    optimizer.step()
    assert vector[[0, 3]].tolist() == [1, 1]
    assert vector[2] < 1  # by weight decay


def test_names_and_keys() -> None:
    assert "optimizer" not in TrainingSettings().under("soft")  # results on file keep their keys
    assert TrainingSettings(optimizer="rmsprop").under("soft")["optimizer"] == "rmsprop"
    with pytest.raises(IcyError, match="did you mean rmsprop"):
        TrainingSettings(optimizer="RMSprop2")


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
