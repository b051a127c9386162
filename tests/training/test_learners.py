"""Learners: a stack trains as separate runs do, and clipping acts on each replicate alone."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import icy
from icy.config.settings import OPTIMIZERS, TrainingSettings, settings_for
from icy.core.errors import IcyError
from icy.core.noise import Noise
from icy.core.representations import SOFT
from icy.training import learners
from icy.training.gradient import REST, Adam, AgedAdam, GradientLearner, OfTorch, count_right
from icy.training.learners import Learner, accuracy, are_probabilities, make_learner, supervised_loss
from icy.training.task_models import make_model
from tests.cores import both_engines, needs_native
from tests.helpers import mark_others
from tests.testing.helpers import Plain, PlainReceiver
from tests.training.helpers import CPU, MODELS, SEEDS, SETTINGS, batches, plug_in, stacked, step, task, weights

# -- a stack equals separate runs --------------------------------------------------------------------------------------


def plain_loop(model: nn.Module, side: str, data: Sequence[tuple[Tensor, Tensor]], settings: TrainingSettings) -> None:
    """Training as anyone would write it."""
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    for inputs, targets in data:
        optimizer.zero_grad()
        scores = model(inputs)
        loss = F.cross_entropy(scores.flatten(0, -2), targets.flatten())  # over all tokens or attribute values
        if side == "receiver":
            loss = loss * targets.shape[-1]
        loss.backward()  # type: ignore[no-untyped-call]
        if settings.clip_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimizer.step()


@both_engines
@pytest.mark.parametrize("clip", mark_others("slow", [None, 0.05], bool))
@pytest.mark.parametrize(
    "model",
    mark_others(
        "slow", [*MODELS, "sender/HierAutoReg:dgsend", "receiver/RNN2L:dgrecv"], lambda model: model in MODELS[:2]
    ),
)
def test_a_stack_trains_as_plain_loops_do(model: str, clip: float | None, how: str) -> None:
    of, settings, seeds = task(model), replace(SETTINGS, clip_norm=clip, learning_rate=1e-3), SEEDS[:3]
    learner = stacked(of, seeds, settings, how)
    assert learner.engine == how
    data = [batches(of.side, len(seeds), update) for update in range(5)]
    for inputs, targets in data:
        step(learner, inputs, targets)
    for i, seed in enumerate(seeds):
        alone = make_model(of, seed, settings)
        before = copy.deepcopy(alone.state_dict())
        plain_loop(alone, of.side, [(x[i], y[i]) for x, y in data], settings)
        for name, parameter in alone.named_parameters():
            assert not torch.equal(parameter, before[name])
            torch.testing.assert_close(weights(learner)[name][i], parameter.detach(), atol=2e-5, rtol=0)
        inputs, _ = data[0]
        with torch.no_grad():
            torch.testing.assert_close(learner.scores(inputs)[i], alone(inputs[i]), atol=1e-5, rtol=1e-5)


@both_engines
def test_subnormal_numbers_count_as_zero(how: str) -> None:
    models = [make_model(task("receiver/RNN1L:GRU"), seed, SETTINGS) for seed in SEEDS[:2]]
    for parameter in (p for model in models for p in model.parameters()):
        parameter.detach().fill_(2.0**-140)
    inputs, targets = batches("receiver", 2)
    learner = make_learner(models, SEEDS[:2], supervised_loss(SOFT, "receiver"), SETTINGS, CPU, inputs, how)
    assert models[0](inputs[0]).min() > 0
    assert not learner.scores(inputs).any()
    step(learner, inputs, targets)
    assert torch.tensor(2.0**-149).mul(1).item() == 2.0**-149  # again in the caller's operations


@pytest.mark.parametrize(
    ("model", "how"),
    [
        ("sender/FC2L", "vmap"),
        *((model, "loop") for model in MODELS),
        *(pytest.param(model, "native", marks=needs_native) for model in MODELS),
    ],
)
def test_all_engines_give_the_same_numbers(model: str, how: str) -> None:
    of, seeds = task(model), SEEDS[:2]
    one, other = stacked(of, seeds, how="broadcast"), stacked(of, seeds, how=how)
    assert (one.engine, other.engine) == ("broadcast", how)
    for update in range(4):
        for learner in (one, other):
            step(learner, *batches(of.side, 2, update))
    inputs, _ = batches(of.side, 2, 9)
    torch.testing.assert_close(one.scores(inputs), other.scores(inputs), atol=1e-4, rtol=1e-4)
    losses = one.losses(), other.losses()
    assert losses[0] is not None
    assert losses[1] is not None
    torch.testing.assert_close(*losses, check_dtype=False)  # native cores add them up in double precision


@both_engines
def test_leaving_one_out_keeps_the_optimisers_state_of_the_others(how: str) -> None:
    of = task("sender/HierZero:GRU")
    whole, part = (stacked(of, SEEDS, how=how) for _ in range(2))
    for learner in (whole, part):
        for update in range(3):
            step(learner, *batches("sender", 5, update))
    part.keep([4, 0, 2])
    for update in range(3, 6):
        inputs, targets = batches("sender", 5, update)
        step(whole, inputs, targets)
        step(part, inputs[[4, 0, 2]], targets[[4, 0, 2]])
    for name, value in weights(part).items():
        torch.testing.assert_close(value, weights(whole)[name][[4, 0, 2]], atol=1e-5, rtol=0)
    assert part.losses().shape == (3,)  # type: ignore[union-attr]


# -- clipping ----------------------------------------------------------------------------------------------------------


def scaled(by: Sequence[float]) -> Callable[[Tensor, Tensor], Tensor]:
    """A loss with a factor of its own for each replicate, and for the copies of the last that fill the stack up."""
    factors = torch.tensor([*by, *[by[-1]] * REST])
    return lambda scores, targets, noise: SOFT.sender_loss(scores, targets) * factors[: len(scores)]


def gradient_norms(learner: Learner) -> Tensor:
    assert isinstance(learner, GradientLearner)
    rows = [gradient[: learner._count].flatten(1) for gradient in learner._stack.gradients.values()]
    return torch.linalg.vector_norm(torch.cat(rows, 1), dim=1)


def test_clipping_acts_on_each_replicate_alone() -> None:
    of, seeds = task("sender/FC2L"), SEEDS[:3]
    calm, exploding = stacked(of, seeds, loss=scaled([1, 1, 1])), stacked(of, seeds, loss=scaled([1, 1e6, 1]))
    for update in range(3):
        for learner in (calm, exploding):
            step(learner, *batches("sender", 3, update))
    assert (gradient_norms(calm) < 1).all()
    assert gradient_norms(exploding)[1].item() == pytest.approx(5, rel=1e-4)
    for name, value in weights(exploding).items():
        assert torch.equal(value[[0, 2]], weights(calm)[name][[0, 2]])
        assert not torch.equal(value[1], weights(calm)[name][1])


def test_a_replicate_that_diverges_leaves_the_others_alone() -> None:
    of, seeds = task("sender/FC2L"), SEEDS[:3]
    calm, exploding = stacked(of, seeds, loss=scaled([1, 1, 1])), stacked(of, seeds, loss=scaled([1, math.inf, 1]))
    for update in range(2):
        for learner in (calm, exploding):
            step(learner, *batches("sender", 3, update))
    assert torch.isfinite(exploding.losses()).tolist() == [True, False, True]  # type: ignore[arg-type]
    for name, value in weights(exploding).items():
        assert torch.equal(value[[0, 2]], weights(calm)[name][[0, 2]])


def test_the_published_preset_does_not_clip() -> None:
    settings = settings_for("published")
    assert settings.clip_norm is None
    learner = stacked(task("sender/FC2L"), [1], settings, loss=scaled([1e6]))
    step(learner, *batches("sender", 1))
    assert gradient_norms(learner).item() > 1000


# -- plain modules as plug-ins -----------------------------------------------------------------------------------------


def test_accuracy_is_the_share_of_right_tokens_however_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = stacked(task("sender/FC2L"), SEEDS[:2])
    inputs, targets = batches("sender", 2, size=50)
    expected = (learner.scores(inputs).argmax(-1) == targets).double().mean((1, 2))
    torch.testing.assert_close(accuracy(learner, inputs, targets).double(), expected)
    monkeypatch.setitem(learners.EXAMPLES_AT_ONCE, "cpu", 7)
    torch.testing.assert_close(accuracy(learner, inputs, targets).double(), expected)


def test_a_reading_of_exactly_the_target_is_the_target() -> None:
    """In single precision a mean of means often falls just short."""

    class Learner:
        def right(self, inputs: Tensor, targets: Tensor, which: None = None) -> Tensor:
            return count_right(F.one_hot(inputs, 5).float(), targets)

    for batch, length in ((128, 20), (128, 5), (1024, 20)):
        targets = torch.zeros(1, batch, length, dtype=torch.long)
        shown = targets.clone().flatten()
        wrong = batch * length // 5
        shown[torch.randperm(batch * length)[:wrong]] = 1
        reading = accuracy(Learner(), shown.view_as(targets), targets).item()  # type: ignore[arg-type]
        assert reading == 1 - wrong / (batch * length)


# -- a model that outputs probabilities instead of scores causes one warning -------------------------------------------


class Softmax(Plain):
    def forward(self, meanings: Tensor) -> Tensor:
        return super().forward(meanings).softmax(-1)


class SoftmaxReceiver(PlainReceiver):
    def forward(self, message: Tensor) -> Tensor:
        return super().forward(message.argmax(-1) if message.is_floating_point() else message).softmax(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_softmax_is_recognised(dtype: torch.dtype) -> None:
    scores = torch.randn(8, 3, 5, generator=torch.Generator().manual_seed(1), dtype=dtype)
    assert are_probabilities(scores.softmax(-1))
    assert are_probabilities(torch.nn.functional.one_hot(scores.argmax(-1), 5).to(dtype))
    assert not are_probabilities(scores)
    assert not are_probabilities(scores.log_softmax(-1))
    assert not are_probabilities(scores.sigmoid())
    assert not are_probabilities(scores / scores.sum(-1, keepdim=True))  # sums of 1, but not all from 0 to 1
    spoilt = scores.softmax(-1)
    spoilt[0, 0, 0] += 0.01
    assert not are_probabilities(spoilt)  # one row is enough


def test_sizes_without_a_choice_are_no_probabilities() -> None:
    assert not are_probabilities(torch.ones(3, 2, 1))
    assert not are_probabilities(torch.ones(0, 2, 4))


@pytest.mark.slow
def test_a_probe_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"meanings": "2x3", "quick": True, "cap": 20, "workers": 1, "out": tmp_path}
    icy.probe([plug_in(Softmax, name="Softmax"), "sender/FC1L"], "rot", hidden=[4, 8], **options)
    (warning,) = (r.getMessage() for r in caplog.records if "probabilities" in r.getMessage())
    assert warning.startswith("sender/Softmax outputs probabilities (each row sums to 1). It should output scores")


@pytest.mark.slow
def test_a_pair_warns_of_each_side(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plug_in(Softmax, name="SoftmaxToo")
    plug_in(SoftmaxReceiver, "receiver", "SoftmaxToo")
    icy.end_to_end("SoftmaxToo", "SoftmaxToo", meanings="2x3", quick=True, cap=20, workers=1, out=tmp_path)
    warned = [r.getMessage().partition(" outputs")[0] for r in caplog.records if "probabilities" in r.getMessage()]
    assert sorted(warned) == ["receiver/SoftmaxToo", "sender/SoftmaxToo"]


# -- optimizers --------------------------------------------------------------------------------------------------------


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
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=900, check=True)
    assert done.stdout.strip() == "[]"
