"""The agents of a game as one module: alone and in stacks, over every channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from icy.config.settings import TrainingSettings
from icy.core.noise import Noise, drawing_from
from icy.core.registry import PERCEPTION, Entry, registry
from icy.games.model import GameModel, game_loss, make_game_model
from icy.games.settings import GamesSettings, TurnSettings
from icy.training.gradient import GradientLearner
from icy.training.learners import make_learner

CPU = torch.device("cpu")
SETTINGS = TrainingSettings(batch_size=4, learning_rate=0.01, clip_norm=None)
SETUP = GamesSettings(
    world="thing", world_options={"attributes": 1, "values": 2}, turns=TurnSettings(targets=3, distractors=2),
    message_length=3, word_size=4, sender_hidden=8, receiver_hidden=7, representation="qt",
)  # fmt: skip
CHANNELS = ("gs", "qt", "cb")
NOISE = Noise(torch.tensor(5))
SEEDS = (11, 12, 13)


def objects(*batch: int, seed: int = 0, setup: GamesSettings = SETUP) -> Tensor:
    """Objects of some turns [*batch, object, *shape]."""
    count = (setup.turns.targets + setup.turns.distractors) * (1 if setup.turns.same_objects else 2)
    return torch.rand(*batch, count, *setup.made_world.shape, generator=torch.Generator().manual_seed(seed))


def labels(*batch: int) -> Tensor:
    return torch.tensor([1.0, 1, 1, 0, 0]).expand(*batch, -1)


def played(model: GameModel, seen: Tensor, training: bool = True) -> Any:
    with drawing_from(NOISE if training else None):
        return model.train(training)(seen)


# -- forward pass ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("training", [True, False])
def test_forward_runs_the_parts_in_order(channel: str, training: bool) -> None:
    model, seen = make_game_model(replace(SETUP, representation=channel), 1), objects(4)
    logits, sent, words, extra = played(model, seen, training)
    with drawing_from(NOISE if training else None):
        described = torch.stack([model.sender_sees(turn[:3]).mean(0) for turn in seen])
        scores = model.sender(described.unsqueeze(1))
    message = model.channel.message(scores, NOISE if training else None)
    wanted = model.receiver(message)[:, 0]
    for turn, found, z in zip(seen, logits, wanted, strict=True):
        torch.testing.assert_close(found, torch.stack([model.receiver_sees(one[None])[0] @ z for one in turn]))
    torch.testing.assert_close(sent, model.channel.as_sent(scores))
    assert torch.equal(words, model.channel.words(message))
    torch.testing.assert_close(extra, model.channel.extra_loss(sent))
    if not training or channel != "gs":
        assert torch.equal(words, model.channel.greedy_words(sent))


def test_the_loss_is_a_mean_over_candidates_and_turns() -> None:
    model, seen = make_game_model(replace(SETUP, representation="cb"), 1), objects(2, 4)
    both = [played(model, one) for one in seen]
    together = tuple(torch.stack(parts) for parts in zip(*both, strict=True))
    found = game_loss(together, labels(2, 4), NOISE)  # type: ignore[arg-type]
    expected = [F.binary_cross_entropy_with_logits(p[0], labels(4)) + p[3] for p in both]
    torch.testing.assert_close(found, torch.stack(expected))
    assert all(p[3] > 0 for p in both)


def test_a_sender_that_sees_targets_ignores_distractors() -> None:
    other = torch.cat([objects(4)[:, :3].flip(1), objects(4, seed=1)[:, 3:]], 1)
    for sees, same in (("targets", True), ("both", False)):
        model = make_game_model(replace(SETUP, sender_sees=sees), 1)  # type: ignore[arg-type]
        found, again = (model.describe(seen) for seen in (objects(4), other))
        assert torch.allclose(found, again) is same
        assert model.sender.space.values == (8 if same else 16)
        assert played(model, other)[0].shape == (4, 5)


def test_means_of_targets_and_distractors_are_concatenated() -> None:
    model, seen = make_game_model(replace(SETUP, sender_sees="both"), 1), objects(4)
    vectors = model.sender_sees(seen.flatten(0, 1)).unflatten(0, (4, 5))
    expected = torch.cat([vectors[:, :3].mean(1), vectors[:, 3:].mean(1)], -1)
    torch.testing.assert_close(model.describe(seen), expected)


def test_agents_may_see_different_objects() -> None:
    setup = replace(SETUP, turns=replace(SETUP.turns, same_objects=False))
    model, seen = make_game_model(setup, 1), objects(4, setup=setup)
    assert torch.equal(model.describe(seen[:, :5]), make_game_model(SETUP, 1).describe(seen[:, :5]))
    with pytest.warns(DeprecationWarning, match="now GameModel.describe"):
        assert torch.equal(model.described(seen), model.describe(seen))
    mixed = torch.cat([seen[:, :5], seen[:, :5]], 1)
    assert torch.equal(played(model, mixed)[0], played(make_game_model(SETUP, 1), seen[:, :5])[0])
    changed = torch.cat([seen[:, :5], seen[:, 5:].flip(1)], 1)
    torch.testing.assert_close(played(model, changed)[0], played(model, seen)[0].flip(1))


@pytest.mark.parametrize("sender", ["RNNAutoReg:LSTM", "HierAutoReg:GRU", "TransDecSoft", "Transformer"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_senders_read_the_symbols_that_receivers_read(sender: str, channel: str) -> None:
    """The emitted word is the next input of the sender; in training, it is the same sample."""
    model, fed = make_game_model(replace(SETUP, sender=sender, representation=channel), 1), list[Tensor]()
    feedback = model.sender if sender == "Transformer" else model.sender.feedback
    original = feedback.representation.feed_back  # type: ignore[union-attr]
    assert feedback.representation is model.channel  # type: ignore[union-attr]
    read: list[Tensor] = []
    model.receiver.register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))

    def watched(*args: Any) -> Tensor:
        fed.append(original(*args))
        return fed[-1]

    for training in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(model.channel), "feed_back", lambda self, *args: watched(*args))
            played(model, objects(4), training)
        torch.testing.assert_close(torch.stack(fed, 1), read[-1][:, :-1])
        fed.clear()


@pytest.mark.parametrize("channel", CHANNELS)
def test_gradients_reach_every_part(channel: str) -> None:
    model = make_game_model(replace(SETUP, representation=channel), 1)
    game_loss(played(model, objects(32)), labels(32), NOISE).backward()
    unreached = [
        name
        for name, p in model.named_parameters()
        if p.grad is None or not p.grad.isfinite().all() or not p.grad.any()
    ]
    assert unreached == []


def test_evaluations_can_use_messages_of_training() -> None:
    model, seen = make_game_model(replace(SETUP, representation="gs"), 1), objects(4)
    trained = played(model, seen)
    soft = model.eval()(seen, NOISE.keys)
    assert all(torch.equal(a, b) for a, b in zip(trained, soft, strict=True))
    assert not torch.equal(soft[0], model(seen)[0])
    assert not model.sender.training


# -- weights -----------------------------------------------------------------------------------------------------------


def test_every_part_has_its_own_stream() -> None:
    torch.manual_seed(3)
    one = make_game_model(SETUP, 1).state_dict()
    torch.rand(5)
    same = make_game_model(SETUP, 1).state_dict()
    assert all(torch.equal(value, same[name]) for name, value in one.items())
    for change in ({"sender": "RNNZero:GRU"}, {"receiver": "FC"}):
        other = make_game_model(replace(SETUP, **change), 1).state_dict()  # type: ignore[arg-type]
        (side,) = change
        kept = [name for name in one if not name.startswith(f"{side}.")]
        assert all(torch.equal(one[name], other[name]) for name in kept)
    another = make_game_model(SETUP, 2).state_dict()
    assert not torch.equal(one["sender_sees.out.weight"], another["sender_sees.out.weight"])
    assert not torch.equal(one["sender_sees.out.weight"][:7, :7], one["receiver_sees.out.weight"][:7, :7])


def test_a_shared_codebook_is_one_parameter() -> None:
    model = make_game_model(replace(SETUP, representation="cb", representation_options={"codes": 9}), 1)
    codes = [name for name, _ in model.named_parameters() if name.endswith("codes")]
    assert codes == ["sender.feedback.representation.codes"]
    assert model.channel.codes.shape == (9, 4)
    without = make_game_model(replace(SETUP, representation="cb", sender="RNNZero:GRU"), 1)
    assert [name for name, _ in without.named_parameters() if name.endswith("codes")] == ["channel.codes"]


# -- in stacks ---------------------------------------------------------------------------------------------------------


class NoStack(nn.Module):
    """A simple perception, without leading axes."""

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(6, size), nn.Tanh())

    def forward(self, objects: Tensor) -> Tensor:
        seen: Tensor = self.layers(objects)
        return seen


class WithBatchNorm(NoStack):
    """A perception with buffers, which only a loop can train."""

    def __init__(self, shape: tuple[int, ...], size: int) -> None:
        super().__init__(shape, size)
        self.layers.append(nn.BatchNorm1d(size))


def trained(setup: GamesSettings, seeds: Sequence[int], engine: str) -> tuple[GradientLearner, Tensor]:
    """A stack after three updates, and the logits of an evaluation. Every replicate has its own batches."""
    models = [make_game_model(setup, seed) for seed in seeds]
    batches = [torch.stack([objects(4, seed=100 * seed + i, setup=setup) for seed in seeds]) for i in range(4)]
    learner: Any = make_learner(models, seeds, game_loss, SETTINGS, CPU, batches[0], engine)
    for i, batch in enumerate(batches[:3]):
        learner.update(batch, labels(len(seeds), 4), torch.tensor([1000 * seed + i for seed in seeds]))
    return learner, learner.run(batches[3])[0]


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("sender", ["RNNAutoReg:LSTM", "HierZero:GRU"])
def test_a_stack_equals_single_models_with_every_engine(channel: str, sender: str) -> None:
    setup = replace(SETUP, representation=channel, sender=sender)
    together, logits = trained(setup, SEEDS, "auto")
    assert together.engine == "broadcast"
    other, found = trained(setup, SEEDS, "loop")
    assert other.engine == "loop"
    assert_same(found, logits)
    for place, seed in enumerate(SEEDS):
        assert_same(trained(setup, [seed], "loop")[1][0], logits[place])


@pytest.mark.parametrize("channel", [*CHANNELS, "soft", "gumb"])
def test_a_replicate_does_not_depend_on_its_stack(channel: str) -> None:
    setup = replace(SETUP, representation=channel)
    whole, logits = trained(setup, SEEDS, "broadcast")
    some, found = trained(setup, SEEDS[1:], "broadcast")
    assert torch.equal(found, logits[1:])
    for name, value in some.weights(1).items():
        assert torch.equal(value, whole.weights(2)[name]), name


class Stranger(nn.Module):
    """A simple sender, which gets its emitted symbols from its channel."""

    def __init__(self, space: Any, message_length: int, vocab_size: int, hidden_size: int, representation: Any) -> None:
        super().__init__()
        self.length, self.representation = message_length, representation
        self.read, self.embed = nn.Linear(space.values, hidden_size), nn.Linear(vocab_size + 1, hidden_size)
        self.out = nn.Linear(hidden_size, vocab_size + 1)

    def forward(self, weights: Tensor) -> Tensor:
        state, scores = self.read(weights.flatten(-2)).tanh(), list[Tensor]()
        for step in range(self.length):
            scores.append(self.out(state))
            state = (state + self.embed(self.representation.feed_back(scores[-1], step, self.training))).tanh()
        return torch.stack(scores, -2)


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize(
    ("kind", "part", "engine"),
    [("sender", Stranger, "broadcast"), (PERCEPTION, NoStack, "broadcast"), (PERCEPTION, WithBatchNorm, "loop")],
)
def test_parts_that_do_not_broadcast_train_by_vmap_or_a_loop(
    kind: str, part: type[nn.Module], engine: str, channel: str
) -> None:
    with registry.holding(Entry(kind, "mine", part, "", "", origin=__name__)):
        setup = replace(SETUP, representation=channel, **{kind: "mine"})  # type: ignore[arg-type]
        together, logits = trained(setup, SEEDS[:2], "auto")
        assert together.engine == engine
        for place, seed in enumerate(SEEDS[:2]):
            assert_same(trained(setup, [seed], "loop")[1][0], logits[place])


def test_published_digits_depend_on_their_own_replicate() -> None:
    setup = replace(SETUP, representation_options={"normalise": "batch"})
    _, logits = trained(setup, SEEDS, "broadcast")
    assert torch.equal(trained(setup, SEEDS[:2], "broadcast")[1], logits[:2])
