"""Learners: a stack trains as separate runs do, and clipping acts on each replicate alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import icy
from icy.config.settings import TrainingSettings, settings_for
from icy.core.entry import Entry
from icy.core.registry import registry
from icy.core.representations import SOFT
from icy.training import learners
from icy.training.gradient import REST, GradientLearner, count_right
from icy.training.learners import Learner, accuracy, are_probabilities
from icy.training.task_models import make_model
from tests.cores import both_engines, needs_native
from tests.helpers import mark_others
from tests.testing.helpers import Plain, PlainReceiver
from tests.training.helpers import MODELS, SEEDS, SETTINGS, batches, stacked, step, task, weights

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
    with registry.holding(Entry("sender", "Softmax", Softmax, "", "")):
        icy.probe(["sender/Softmax", "sender/FC1L"], "rot", hidden=[4, 8], **options)
    (warning,) = (r.getMessage() for r in caplog.records if "probabilities" in r.getMessage())
    assert warning.startswith("sender/Softmax outputs probabilities (each row sums to 1). It should output scores")


@pytest.mark.slow
def test_a_pair_warns_of_each_side(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        registry.holding(Entry("sender", "SoftmaxToo", Softmax, "", "")),
        registry.holding(Entry("receiver", "SoftmaxToo", SoftmaxReceiver, "", "")),
    ):
        icy.end_to_end("SoftmaxToo", "SoftmaxToo", meanings="2x3", quick=True, cap=20, workers=1, out=tmp_path)
    warned = [r.getMessage().partition(" outputs")[0] for r in caplog.records if "probabilities" in r.getMessage()]
    assert sorted(warned) == ["receiver/SoftmaxToo", "sender/SoftmaxToo"]
