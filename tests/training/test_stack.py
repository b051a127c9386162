"""Stacks of plain modules: by vmap where that works, and otherwise one at a time."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from icy.core.representations import SOFT, get_representation
from icy.models.cells import GRUCell
from icy.models.layers import flat_one_hot
from icy.training.learners import Learner, make_learner, supervised_loss
from icy.training.task_models import make_model
from tests.cores import both_engines, needs_native
from tests.helpers import mark_others
from tests.training.helpers import (
    CPU,
    SEEDS,
    SETTINGS,
    Plain,
    assert_same_bits,
    batches,
    plug_in,
    stacked,
    step,
    task,
    weights,
)


def dropout() -> nn.Module:
    return nn.Dropout(0.5)


def batch_norm() -> nn.Module:
    return nn.BatchNorm1d(16)


class Noisy(nn.Module):
    """Draws from torch's generator, and replaces its buffer by the last draw."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(16))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.last = torch.randn(16)
        return x + self.last


def run_plain(extra: Any, seeds: Sequence[int] = SEEDS[:3], how: str = "auto") -> Learner:
    learner = stacked(task(plug_in(Plain, extra=extra)), seeds, how=how)
    for update in range(4):
        inputs, targets = batches("sender", 5, update)
        places = [SEEDS.index(seed) for seed in seeds]
        step(learner, inputs[places], targets[places])
    return learner


def test_a_plain_module_is_stacked_by_vmap_and_equals_the_built_in(caplog: pytest.LogCaptureFixture) -> None:
    plain, loop = run_plain(nn.Identity), run_plain(nn.Identity, how="loop")
    built_in = stacked(task("sender/FC2L"), SEEDS[:3], how="broadcast")
    for update in range(4):
        step(built_in, *(part[:3] for part in batches("sender", 5, update)))
    inputs, _ = batches("sender", 3, 9)
    assert (plain.engine, loop.engine, built_in.engine) == ("vmap", "loop", "broadcast")
    for learner in (loop, built_in):
        torch.testing.assert_close(plain.scores(inputs), learner.scores(inputs), atol=1e-4, rtol=1e-4)
    assert not caplog.records


@pytest.mark.parametrize(
    ("extra", "engine"), [(dropout, "vmap+layers"), (batch_norm, "vmap"), (dropout, "loop"), (Noisy, "loop")]
)
def test_random_numbers_and_buffers_do_not_depend_on_the_stack(extra: Any, engine: str) -> None:
    before = torch.random.get_rng_state()
    learner = run_plain(extra, how=engine.partition("+")[0])
    assert learner.engine == engine
    assert torch.equal(torch.random.get_rng_state(), before)
    inputs, _ = batches("sender", 3, 9)
    for i, seed in enumerate(SEEDS[:3]):
        alone = run_plain(extra, [seed], engine.partition("+")[0])
        torch.testing.assert_close(alone.scores(inputs[i : i + 1])[0], learner.scores(inputs)[i], atol=1e-5, rtol=0)


@pytest.mark.parametrize("extra", [dropout, batch_norm, Noisy])
def test_modules_with_a_state_of_their_own_survive_leaving_one_out(extra: Any) -> None:
    whole, part = run_plain(extra), run_plain(extra)
    part.keep([2, 0])
    inputs, targets = batches("sender", 3, 7)
    step(whole, inputs, targets)
    step(part, inputs[[2, 0]], targets[[2, 0]])
    found, expected = part.scores(inputs[[2, 0]]), whole.scores(inputs)[[2, 0]]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("how", [pytest.param("native", marks=needs_native), "broadcast", "vmap", "loop"])
def test_some_replicates_are_evaluated_as_all_are(how: str) -> None:
    learner = stacked(task("sender/FC2L"), SEEDS, how=how)
    inputs, _ = batches("sender", len(SEEDS))
    found, expected = learner.scores(inputs[[3, 0]], [3, 0]), learner.scores(inputs)[[3, 0]]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


def test_a_module_that_vmap_can_run_but_not_differentiate_trains_one_at_a_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class WithIcysCell(Plain):
        """Uses a cell of icy, with a backward pass that vmap cannot batch, and does not set `broadcasts`."""

        def __init__(self, *sizes: Any) -> None:
            super().__init__(*sizes)
            self.extra = GRUCell(16, 16)

        def forward(self, meanings: Tensor) -> Tensor:
            hidden = self.hidden(flat_one_hot(meanings, self.values, torch.float32))
            (hidden,) = self.extra.step(self.extra.project(hidden), (hidden,))
            scores: Tensor = self.out(hidden).unflatten(-1, self.shape)
            return scores

    learner = stacked(task(plug_in(WithIcysCell)), SEEDS[:2])
    step(learner, *batches("sender", 2))
    assert learner.engine == "loop"
    assert "one at a time" in caplog.text


def test_frozen_parameters_stay() -> None:
    def half_frozen(*sizes: Any) -> nn.Module:
        model = Plain(*sizes)
        model.hidden.requires_grad_(False)
        return model

    for how in ("vmap", "loop"):
        of = task(plug_in(half_frozen))
        learner = stacked(of, SEEDS[:2], how=how)
        before = {name: value.clone() for name, value in weights(learner).items()}
        for update in range(3):
            step(learner, *batches("sender", 2, update))
        learner.keep([1])
        step(learner, *batches("sender", 1, 3))
        after = weights(learner)
        assert torch.equal(after["hidden.weight"], before["hidden.weight"][[1]])
        assert not torch.equal(after["out.weight"], before["out.weight"][[1]])


@both_engines
def test_the_model_given_is_not_trained_itself(how: str) -> None:
    model = make_model(task("sender/FC2L"), 1, SETTINGS)
    before = copy.deepcopy(model.state_dict())
    learner = make_learner([model], [1], SOFT.sender_loss, SETTINGS, CPU, batches("sender", 1)[0], how)
    step(learner, *batches("sender", 1))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


# -- the same bits in any company --------------------------------------------------------------------------------------

COMPANY = [
    ("broadcast", "soft", "sender/RNNAutoReg:LSTM"),
    ("broadcast", "soft", "receiver/CNN"),
    ("broadcast", "gumb", "sender/HierAutoReg:GRU"),
    ("broadcast", "gumb", "receiver/RNN2L:SRU"),
    ("broadcast", "discr", "sender/RNNSampling:GRU"),
    ("broadcast", "discr", "sender/TransDecSampling"),
    ("broadcast", "discr", "receiver/Hier:RNN"),
    ("vmap", "gumb", "sender/FC2L"),
    ("loop", "discr", "sender/RNNSampling:GRU"),
    ("loop", "soft", "receiver/Hier:GRU"),
]
IN_DEFAULT = {("broadcast", "discr", "sender/RNNSampling:GRU"), ("broadcast", "discr", "receiver/Hier:RNN")}
NATIVE = [
    ("soft", "sender/FC2L"),
    ("soft", "receiver/Hier:GRU"),
    ("gumb", "sender/RNNAutoReg:LSTM"),
    ("discr", "sender/RNNSampling:GRU"),
    ("discr", "receiver/CNN"),
]
company = pytest.mark.parametrize(
    ("how", "representation", "model"),
    [
        *mark_others("slow", COMPANY, IN_DEFAULT.__contains__),
        *(pytest.param("native", *case, marks=needs_native) for case in NATIVE),
    ],
)
sizes = pytest.mark.parametrize(
    "size", mark_others("slow", [64, 70], lambda size: size == 70), ids=["even", "odd"]
)  # whether the examples fill registers
Data = tuple[Tensor, Tensor, Tensor]


def company_data(side: str, size: int, updates: int = 4) -> Data:
    """Inputs, targets and noise keys of some updates of four replicates, [update, replicate, ...]."""
    made = torch.Generator().manual_seed(7)
    meanings = torch.randint(4, (updates, 4, size, 3), generator=made)
    messages = torch.randint(4, (updates, 4, size, 6), generator=made)
    keys = torch.randint(2**60, (updates, 4), generator=made)
    return (meanings, messages, keys) if side == "sender" else (messages, meanings, keys)


def some_of(data: Data, places: Sequence[int], updates: slice = slice(None)) -> Data:
    inputs, targets, keys = (x[updates][:, list(places)] for x in data)
    return inputs, targets, keys


def untrained(how: str, representation: str, model: str, size: int, places: Sequence[int]) -> Learner:
    """Some of four replicates, of odd sizes, before training."""
    of = replace(task(model), representation=representation, hidden=20)
    settings = replace(SETTINGS, batch_size=size)
    models = [make_model(of, SEEDS[i], settings) for i in places]
    loss = supervised_loss(get_representation(representation), of.side)
    sample = company_data(of.side, 2)[0][0][list(places)]
    return make_learner(models, [SEEDS[i] for i in places], loss, settings, CPU, sample, how)


@sizes
@company
def test_a_replicate_has_the_same_bits_in_any_stack(how: str, representation: str, model: str, size: int) -> None:
    side = model.partition("/")[0]
    data, whole = company_data(side, size), untrained(how, representation, model, size, range(4))
    whole.train(*data)
    for places in ([0], [3], [3, 1], [2, 0, 3], [3, 2, 1, 0]):
        part = untrained(how, representation, model, size, places)
        part.train(*some_of(data, places))
        inputs = data[0][0][places]
        for at, place in enumerate(places):
            assert_same_bits(part, at, whole, place)
            scores = part.scores(inputs)[at]
            assert torch.equal(scores, whole.scores(data[0][0])[place])
            assert torch.equal(scores, whole.scores(inputs, places)[at])


@sizes
@company
def test_those_that_leave_change_no_bit(how: str, representation: str, model: str, size: int) -> None:
    side = model.partition("/")[0]
    data = company_data(side, size)
    whole, part = (untrained(how, representation, model, size, range(4)) for _ in range(2))
    whole.train(*data)
    part.train(*some_of(data, range(4), slice(2)))
    part.keep([3, 0])
    part.train(*some_of(data, [3, 0], slice(2, 3)))
    part.keep([1])
    part.train(*some_of(data, [0], slice(3, 4)))
    assert_same_bits(part, 0, whole, 0)


@pytest.mark.parametrize("how", ["broadcast", "vmap", "loop"])
def test_copies_that_fill_a_stack_are_not_visible(how: str) -> None:
    learner = stacked(task("sender/FC2L"), SEEDS[:3], how=how)  # of batches of 16
    step(learner, *batches("sender", 3))
    inputs, targets = batches("sender", 3)
    assert len(learner.scores(inputs)) == len(learner.right(inputs, targets)) == 3
    assert learner.losses().shape == (3,)  # type: ignore[union-attr]
    learner.keep([2])
    assert len(learner.scores(inputs[:1])) == 1
    assert learner.losses().shape == (3,)  # type: ignore[union-attr]
    step(learner, *batches("sender", 1))
    assert learner.losses().shape == (1,)  # type: ignore[union-attr]
