"""Representations: losses compared with sums by hand, samples compared with their noise, and names."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import icy
from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.core.noise import Noise, drawing_from
from icy.core.registry import registry
from icy.core.representations import (
    ANSWERS,
    REPRESENTATIONS,
    SOFT,
    TEMPERATURE,
    Discrete,
    Gumbel,
    advantage,
    cross_entropy,
    entropy,
    get_representation,
    one_hot,
    sampled,
)
from icy.models.base import MISSING
from tests.core.representations.helpers import NOISE, gradient, numbers


def log_softmax(scores: list[float], index: int) -> float:
    return scores[index] - math.log(sum(math.exp(s) for s in scores))


SCORES = [  # batch of 2, 2 places, 3 choices
    [[1.0, 0.0, -1.0], [0.0, 0.0, 0.0]],
    [[2.0, 2.0, 2.0], [3.0, 1.0, 0.0]],
]
TARGETS = [[0, 2], [1, 0]]
SURPRISES = [[-log_softmax(SCORES[n][i], TARGETS[n][i]) for i in range(2)] for n in range(2)]  # of each target, in nats


def test_sender_loss_is_a_mean_over_tokens() -> None:
    loss = SOFT.sender_loss(torch.tensor(SCORES), torch.tensor(TARGETS))
    assert loss.shape == ()
    assert loss.item() == pytest.approx(sum(map(sum, SURPRISES)) / 4)


def test_receiver_loss_is_a_mean_over_the_batch_and_a_sum_over_attributes() -> None:
    loss = SOFT.receiver_loss(torch.tensor(SCORES), torch.tensor(TARGETS))
    assert loss.shape == ()
    assert loss.item() == pytest.approx(sum(map(sum, SURPRISES)) / 2)


def test_uniform_scores_have_the_loss_log_choices() -> None:
    scores, targets = torch.zeros(7, 5, 4), torch.zeros(7, 5, dtype=torch.long)
    assert SOFT.sender_loss(scores, targets).item() == pytest.approx(math.log(4))
    assert SOFT.receiver_loss(scores, targets).item() == pytest.approx(5 * math.log(4))


@pytest.mark.parametrize("name", ["sender_loss", "receiver_loss"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64])
def test_a_stack_gives_the_losses_of_single_models(name: str, dtype: torch.dtype) -> None:
    scores = torch.randn(3, 4, 2, 5, generator=torch.Generator().manual_seed(0))
    targets = torch.randint(5, (3, 4, 2), generator=torch.Generator().manual_seed(1)).to(dtype)
    loss = getattr(SOFT, name)
    together = loss(scores, targets)
    assert together.shape == (3,)
    torch.testing.assert_close(together, torch.stack([loss(s, t) for s, t in zip(scores, targets, strict=True)]))


def test_soft_feeds_back_its_probabilities_with_their_gradient() -> None:
    scores = torch.tensor(SCORES, requires_grad=True)
    fed = SOFT.feed_back(scores)
    torch.testing.assert_close(fed.sum(-1), torch.ones(2, 2))
    assert fed[0, 0, 0].item() == pytest.approx(math.exp(log_softmax(SCORES[0][0], 0)))
    (gradient,) = torch.autograd.grad(fed[..., 0].sum(), scores)
    assert gradient.any()


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(2, 6), st.sampled_from([0.1, 1.0, 100.0]), st.integers(0, 99))
def test_cross_entropy_equals_pytorch(batch: int, places: int, choices: int, scale: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = (scale * torch.randn(batch, places, choices, generator=generator)).requires_grad_()
    targets = torch.randint(choices, (batch, places), generator=generator)
    weight = torch.randn(batch, places, generator=generator)
    found, expected = cross_entropy(scores, targets), F.cross_entropy(scores.mT, targets, reduction="none")
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad((weight * loss).sum(), scores)[0] for loss in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_gradient_of_cross_entropy() -> None:
    scores = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(4, (3, 2))
    assert torch.autograd.gradcheck(lambda s: cross_entropy(s, targets), (scores,), check_undefined_grad=False)


# -- samples -----------------------------------------------------------------------------------------------------------

NAMES = tuple(REPRESENTATIONS)
LOSSES = ("sender_loss", "receiver_loss")


def choices_of(size: int, *shape: int, seed: int = 1) -> Tensor:
    return torch.randint(size, shape, generator=torch.Generator().manual_seed(seed))


def drawn_by_hand(scores: Tensor, noise: Noise = NOISE) -> list[list[int]]:
    """The largest of scores and noise, for scores [batch, place, choice]."""
    sums = (scores.detach() + noise.gumbels(scores)).tolist()
    return [[place.index(max(place)) for place in example] for example in sums]


def test_gumbel_messages_are_one_hot_samples_with_the_gradient_of_the_softmax() -> None:
    scores, weight = numbers(6, 4, 5), numbers(6, 4, 5, seed=2).detach()
    message = Gumbel().message(scores, NOISE)
    torch.testing.assert_close(message.detach(), one_hot(torch.tensor(drawn_by_hand(scores)), 5, torch.float64))
    soft = F.softmax((scores + NOISE.gumbels(scores)) / 1.2, -1)
    torch.testing.assert_close(gradient(weight * message, scores), gradient(weight * soft, scores))
    assert TEMPERATURE == 1.2


def test_gumbel_temperature() -> None:
    scores, weight = numbers(6, 4, 5), numbers(6, 4, 5, seed=2).detach()
    soft = F.softmax((scores + NOISE.gumbels(scores)) / 3, -1)
    message = get_representation("gumb", temperature=3.0).message(scores, NOISE)
    torch.testing.assert_close(gradient(weight * message, scores), gradient(weight * soft, scores))


@pytest.mark.parametrize("step", range(4))
def test_feedback_equals_the_message(step: int) -> None:
    scores = numbers(6, 4, 5)
    with drawing_from(NOISE):
        gumbel = Gumbel().feed_back(scores[:, step], step, True)
        token = sampled(scores[:, step], step, True)
    torch.testing.assert_close(gumbel, Gumbel().message(scores, NOISE)[:, step])
    assert gradient(gumbel.square(), scores).any()
    assert torch.equal(token, Discrete().message(scores, NOISE)[:, step])
    assert not token.requires_grad


def test_evaluation_is_greedy() -> None:
    scores = numbers(6, 4, 5)
    largest = one_hot(scores.argmax(-1), 5, torch.float64)
    with drawing_from(NOISE):
        assert torch.equal(Gumbel().feed_back(scores, 0, False), largest)
        assert torch.equal(sampled(scores, 0, False), largest)
    assert torch.equal(Gumbel().message(scores, None), largest)
    assert torch.equal(Discrete().message(scores, None), largest)
    for training in (True, False):
        torch.testing.assert_close(Discrete().feed_back(scores, 0, training), scores.softmax(-1))
    torch.testing.assert_close(SOFT.message(scores, None), scores.softmax(-1))


# -- losses of one side ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_gumbel_loss_by_hand(name: str) -> None:
    scores, drawn = torch.tensor(SCORES), drawn_by_hand(torch.tensor(SCORES))
    wrong = sum(drawn[n][i] != TARGETS[n][i] for n in range(2) for i in range(2))
    assert 0 < wrong < 4
    loss = getattr(Gumbel(), name)(scores, torch.tensor(TARGETS), NOISE)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(2 * wrong / 12)  # a wrong sample differs from the target in two symbols


def test_receivers_under_gumb_may_be_least_squares() -> None:
    squares = [(SCORES[n][i][k] - (k == TARGETS[n][i])) ** 2 for n in range(2) for i in range(2) for k in range(3)]
    published = get_representation("gumb", least_squares=True)
    scores, targets = torch.tensor(SCORES), torch.tensor(TARGETS)
    assert published.receiver_loss(scores, targets, NOISE).item() == pytest.approx(sum(squares) / 12)
    assert published.sender_loss(scores, targets, NOISE) == Gumbel().sender_loss(scores, targets, NOISE)


def test_least_squares_have_no_error_of_values_that_an_attribute_does_not_have() -> None:
    published, targets = get_representation("gumb", least_squares=True), torch.tensor(TARGETS)
    penalty = torch.zeros(2, 3)
    penalty[0, 2] = MISSING  # no target of the first place is 2
    scores = torch.tensor(SCORES, requires_grad=True)
    published.receiver_loss(scores + penalty, targets, NOISE).backward()
    one_hot = torch.nn.functional.one_hot(targets, 3)
    expected = torch.where(penalty < 0, 0.0, 2 * (scores.detach() - one_hot) / 12)
    torch.testing.assert_close(scores.grad, expected)


def advantages_by_hand(rewards: list[float]) -> list[float]:
    mean = sum(rewards) / len(rewards)
    deviation = math.sqrt(sum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1))
    return [(r - mean) / (deviation if deviation > 0.1 else 1) for r in rewards]


def entropy_by_hand(scores: list[list[list[float]]]) -> float:
    total = 0.0
    for place in (place for example in scores for place in example):
        probabilities = [math.exp(log_softmax(place, k)) for k in range(len(place))]
        total -= sum(p * math.log(p + 1e-8) for p in probabilities)
    return total


@pytest.mark.parametrize("rewards", [[0, 1, 1, 3], [1, 1, 1.15, 1], [2, 2, 2, 2], [1, 1.2, 1, 1.2]])
def test_advantage_by_hand(rewards: list[float]) -> None:
    found = advantage(torch.tensor(rewards, dtype=torch.float64), axes=1)
    assert found.tolist() == pytest.approx(advantages_by_hand(rewards), abs=1e-12)


def test_advantages_over_two_axes_share_a_mean() -> None:
    rewards = [[0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]
    found = advantage(torch.tensor([rewards, rewards], dtype=torch.float64), axes=2)
    expected = advantages_by_hand([r for row in rewards for r in row])
    assert found.flatten().tolist() == pytest.approx(expected * 2)


def test_entropy_by_hand() -> None:
    assert entropy(torch.tensor(SCORES)).item() == pytest.approx(entropy_by_hand(SCORES))
    assert entropy(torch.zeros(3, 2, 4)).item() == pytest.approx(6 * math.log(4))
    assert entropy(torch.tensor([[[1000.0, 0.0]]])).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("reward_weight", "entropy_weight"), [(1.0, 0.01), (0.5, 0.3)])
@pytest.mark.parametrize("name", LOSSES)
def test_discrete_loss_by_hand(name: str, reward_weight: float, entropy_weight: float) -> None:
    scores = numbers(5, 3, 4)
    values, drawn, targets = scores.tolist(), drawn_by_hand(scores), choices_of(4, 5, 3).tolist()
    rewards = [float(sum(d == t for d, t in zip(*pair, strict=True))) for pair in zip(drawn, targets, strict=True)]
    assert len(set(rewards)) > 1
    gain = sum(
        adv * log_softmax(values[n][i], drawn[n][i])
        for n, adv in enumerate(advantages_by_hand(rewards))
        for i in range(3)
    )
    representation = Discrete(reward_weight, entropy_weight)
    loss = getattr(representation, name)(scores, torch.tensor(targets), NOISE)
    assert loss.item() == pytest.approx(-reward_weight * gain - entropy_weight * entropy_by_hand(values))


def test_discrete_gradient_by_its_formula() -> None:
    scores, targets = numbers(5, 3, 4), choices_of(4, 5, 3)
    drawn = torch.tensor(drawn_by_hand(scores))
    gains = torch.tensor(advantages_by_hand((drawn == targets).sum(-1).tolist()), dtype=torch.float64)
    p = scores.detach().softmax(-1)
    to_p = -(p + 1e-8).log() - p / (p + 1e-8)
    of_entropy = p * (to_p - (p * to_p).sum(-1, keepdim=True))
    expected = -gains[:, None, None] * (one_hot(drawn, 4, torch.float64) - p) - 0.3 * of_entropy
    loss = Discrete(entropy_weight=0.3).sender_loss(scores, targets, NOISE)
    torch.testing.assert_close(gradient(loss, scores), expected)


def test_equal_rewards_train_only_the_entropy() -> None:
    scores = numbers(1, 3, 4).expand(2, 3, 4)
    targets = torch.tensor(drawn_by_hand(scores))
    loss = Discrete(entropy_weight=0).sender_loss(scores, targets, NOISE)
    assert loss.item() == 0


# -- losses of both sides ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["soft", "gumb"])
def test_link_loss_is_the_mean_cross_entropy_of_the_answers(name: str) -> None:
    answered, sent = torch.tensor(SCORES), numbers(2, 4, 5)
    loss = REPRESENTATIONS[name].pair_loss(sent, answered, torch.tensor(TARGETS), NOISE)
    assert loss.item() == pytest.approx(sum(map(sum, SURPRISES)) / 4)


def test_discrete_link_loss_by_hand() -> None:
    sent, answered, meanings = numbers(5, 6, 3), numbers(5, 2, 4, seed=1), choices_of(4, 5, 2).tolist()
    tokens, values = drawn_by_hand(sent), drawn_by_hand(answered, NOISE.stream(ANSWERS))
    z, q = sent.tolist(), answered.tolist()
    rewards = [float(values[n][a] == meanings[n][a]) for n in range(5) for a in range(2)]
    assert len(set(rewards)) > 1
    gains = advantages_by_hand(rewards)
    reward = 0.0
    for n in range(5):
        own = gains[2 * n : 2 * n + 2]
        reward += sum(sum(own) / 2 * log_softmax(z[n][t], tokens[n][t]) for t in range(6))
        reward += sum(own[a] * log_softmax(q[n][a], values[n][a]) for a in range(2))
    expected = -reward - 0.01 * (entropy_by_hand(z) + entropy_by_hand(q))
    loss = Discrete().pair_loss(sent, answered, torch.tensor(meanings), NOISE)
    assert loss.item() == pytest.approx(expected)
    weighted = Discrete(2.0, 0.5).pair_loss(sent, answered, torch.tensor(meanings), NOISE)
    assert weighted.item() == pytest.approx(-2 * reward - 0.5 * (entropy_by_hand(z) + entropy_by_hand(q)))


@pytest.mark.parametrize("name", NAMES)
def test_stacks_give_the_losses_and_messages_of_single_models(name: str) -> None:
    representation, keys = REPRESENTATIONS[name], torch.tensor([3, 1, 2])
    sent, answered = numbers(3, 5, 6, 4), numbers(3, 5, 2, 7, seed=1)
    tokens, meanings, alone = choices_of(4, 3, 5, 6), choices_of(7, 3, 5, 2), [Noise(k) for k in keys]
    cases: list[tuple[str, tuple[Tensor, ...]]] = [
        ("sender_loss", (sent, tokens)),
        ("receiver_loss", (answered, meanings)),
        ("pair_loss", (sent, answered, meanings)),
        ("message", (sent,)),
    ]
    for what, arguments in cases:
        function = getattr(representation, what)
        together = function(*arguments, Noise(keys))
        each = [function(*(part[i] for part in arguments), noise) for i, noise in enumerate(alone)]
        torch.testing.assert_close(together, torch.stack(each))


# -- models that read their own samples --------------------------------------------------------------------------------

SAMPLING = ["RNNSampling:GRU", "RNNSampling2L:SRU", "HierSampling:GRU", "TransDecSampling", "TransDecSampling2L"]
FED_BACK = [
    *(("discr", name) for name in SAMPLING),
    *(("gumb", name.replace("Sampling", "AutoReg" if "Trans" not in name else "Soft")) for name in SAMPLING),
]


def watched(model: Any) -> list[Tensor]:
    """All future feedback of the model."""
    fed: list[Tensor] = []
    original = model.feedback.seen

    def seen(scores: Tensor, step: int) -> Tensor:
        fed.append(original(scores, step))
        return fed[-1]

    model.feedback.seen = seen
    return fed


@pytest.mark.parametrize(("representation", "name"), FED_BACK)
def test_senders_read_the_samples_of_the_loss(representation: str, name: str) -> None:
    torch.manual_seed(0)
    model, meanings = icy.create_sender(name, "3x4", 6, 4, 8, representation=representation), choices_of(4, 5, 3)
    fed = watched(model)
    for training in (True, False):
        with drawing_from(NOISE if training else None):
            scores = model.train(training)(meanings)
        message = REPRESENTATIONS[representation].message(scores, NOISE if training else None)
        torch.testing.assert_close(torch.stack(fed, 1), message[:, :-1])
        fed.clear()


def test_a_sampling_sender_is_a_plain_loop_over_its_tokens() -> None:
    """The loss scores the tokens that the model has read: with these tokens as input, its scores are the same."""
    torch.manual_seed(0)
    model: Any = icy.create_sender("RNNSampling:GRU", "3x4", 6, 4, 8)
    meanings, cell = choices_of(4, 5, 3), nn.GRUCell(8, 8)
    cell.load_state_dict(model.net.first.state_dict())
    with drawing_from(NOISE):
        scores = model(meanings)
    tokens = torch.tensor(drawn_by_hand(scores))
    h, expected = model.embed(meanings), []
    for read in torch.cat([torch.full((5, 1), 4), tokens[:, :-1]], 1).unbind(1):
        h = cell(model.feedback.embed.weight[read], h)
        expected.append(model.out(h))
    torch.testing.assert_close(scores, torch.stack(expected, 1))
    rewards = [float((t == m).sum()) for t, m in zip(tokens, choices_of(4, 5, 6), strict=True)]
    surprise = F.cross_entropy(scores.flatten(0, 1), tokens.flatten(), reduction="none").view(5, 6).sum(1)
    loss = (torch.tensor(advantages_by_hand(rewards)) * surprise).sum()
    found = Discrete(entropy_weight=0).sender_loss(scores, choices_of(4, 5, 6), NOISE)
    torch.testing.assert_close(found, loss)


# -- models and representations that work together ---------------------------------------------------------------------


@pytest.mark.parametrize("representation", ["soft", "gumb"])
@pytest.mark.parametrize("name", SAMPLING)
def test_sampling_senders_need_representations_with_tokens(name: str, representation: str, tmp_path: Path) -> None:
    refusal = f"sender/{name} cannot be trained in the representation '{representation}', only in discr: use "
    with pytest.raises(IncompatibleError, match=refusal):
        icy.create_sender(name, "3x4", representation=representation)
    with pytest.raises(IncompatibleError, match=refusal) as caught:
        icy.probe(f"sender/{name}", "perm", representation=representation, out=tmp_path)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_other_senders_work_with_every_representation() -> None:
    for entry in registry.entries("sender", "receiver"):
        works = [name for name in NAMES if entry.works_with(name)]
        assert works == (["discr"] if "Sampling" in entry.name else list(NAMES)), entry.qualified


# -- names and settings ------------------------------------------------------------------------------------------------


def test_settings_of_other_representations_are_ignored() -> None:
    assert get_representation("soft", temperature=2.0) is SOFT
    assert get_representation("discr", entropy_weight=0.1, temperature=2.0) == Discrete(entropy_weight=0.1)
    assert get_representation("GUMB", temperature=2.0) == Gumbel(2.0)


def test_one_hot() -> None:
    assert one_hot(torch.tensor([[2, 0]]), 3).tolist() == [[[0, 0, 1], [1, 0, 0]]]
    assert one_hot(torch.tensor([1], dtype=torch.uint8), 2).dtype == torch.float32
    assert one_hot(torch.tensor([1]), 2, torch.float64).dtype == torch.float64


def test_names() -> None:
    assert get_representation("soft") is get_representation("SOFT") is REPRESENTATIONS["soft"]
    with pytest.raises(UnknownNameError, match="did you mean soft"):
        get_representation("softt")
    with pytest.raises(InvalidSettingError, match=r"must be a name, .*, not int"):
        get_representation(3)  # type: ignore[arg-type]
