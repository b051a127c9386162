"""GS: relaxed samples in training and the most likely symbol in evaluation."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from icy.core.noise import drawing_from
from icy.core.representations import GumbelSoftmax, get_representation, one_hot
from tests.core.representations.helpers import NOISE, numbers

GS = GumbelSoftmax()


def relaxed_by_hand(scores: Tensor, tau: float = 1.0) -> Tensor:
    """The formula of `F.gumbel_softmax(hard=False)`, with weight 0 for the start symbol."""
    noisy = (scores + NOISE.gumbels(scores))[..., :-1]
    return F.pad(F.softmax(noisy / tau, -1), (0, 1))


@pytest.mark.parametrize("tau", [0.5, 1.0, 3.0])
def test_training_messages_are_relaxed_samples(tau: float) -> None:
    scores, weight = numbers(6, 4, 5), numbers(6, 4, 5, seed=2).detach()
    message, expected = GumbelSoftmax(tau).message(scores, NOISE), relaxed_by_hand(scores, tau)
    torch.testing.assert_close(message, expected)
    torch.testing.assert_close(message.sum(-1), torch.ones(6, 4, dtype=torch.float64))
    assert not message[..., -1].any()
    assert ((message > 0) & (message < 1))[..., :-1].all()
    gradients = [torch.autograd.grad((weight * m).sum(), scores)[0] for m in (message, expected)]
    torch.testing.assert_close(*gradients)
    assert gradients[0][..., :-1].all()


def test_evaluation_messages_are_one_hot_and_never_the_start_symbol() -> None:
    scores = numbers(6, 4, 5).detach()
    scores[..., -1] = 100
    expected = one_hot(scores[..., :-1].argmax(-1), 5, torch.float64)
    assert torch.equal(GS.message(scores, None), expected)
    assert torch.equal(GS.feed_back(scores[:, 0], 0, False), expected[:, 0])
    assert torch.equal(GS.greedy_words(scores), expected.argmax(-1))
    assert torch.equal(GS.words(expected), expected.argmax(-1))


def test_straight_through_messages_are_one_hot_with_the_relaxed_gradient() -> None:
    scores, weight = numbers(6, 4, 5), numbers(6, 4, 5, seed=2).detach()
    message = get_representation("gs", straight_through=True).message(scores, NOISE)
    relaxed = relaxed_by_hand(scores)
    torch.testing.assert_close(message.detach(), one_hot(relaxed.argmax(-1), 5, torch.float64))
    gradients = [torch.autograd.grad((weight * m).sum(), scores)[0] for m in (message, relaxed)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("step", range(4))
def test_feedback_equals_the_message(step: int, hard: bool) -> None:
    scores, channel = numbers(6, 4, 5), GumbelSoftmax(straight_through=hard)
    with drawing_from(NOISE):
        fed = channel.feed_back(scores[:, step], step, True)
    assert torch.equal(fed, channel.message(scores, NOISE)[:, step])


def test_a_sample_at_a_low_temperature_is_a_draw_from_the_softmax() -> None:
    scores = torch.tensor([1.0, 0.0, -1.0, 50.0]).expand(20_000, 1, 4)
    drawn = GumbelSoftmax(0.01).message(scores, NOISE).argmax(-1).flatten().bincount(minlength=4) / 20_000
    expected = [*F.softmax(scores[0, 0, :3], -1).tolist(), 0]
    assert drawn.tolist() == pytest.approx(expected, abs=0.012)  # three and a half standard deviations


def test_sender_loss_is_the_surprise_of_the_relaxed_samples() -> None:
    scores, tokens = numbers(6, 4, 5), torch.randint(4, (6, 4), generator=torch.Generator().manual_seed(1))
    weights = relaxed_by_hand(scores).gather(-1, tokens.unsqueeze(-1)).tolist()
    expected = -sum(math.log(w) for example in weights for (w,) in example) / 24
    assert GS.sender_loss(scores, tokens, NOISE).item() == pytest.approx(expected)


def test_receivers_have_the_loss_of_soft() -> None:
    answers, meanings = numbers(6, 3, 5), torch.randint(5, (6, 3), generator=torch.Generator().manual_seed(1))
    for name in ("gs", "qt", "cb"):
        channel, soft = get_representation(name), get_representation("soft")
        assert channel.receiver_loss(answers, meanings, NOISE) == soft.receiver_loss(answers, meanings, NOISE)
