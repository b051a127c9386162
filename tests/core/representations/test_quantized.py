"""QT: words of rounded digits."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.representations import Quantized, get_representation
from icy.core.representations.codes import NORMALISATIONS

QT, PUBLISHED = Quantized(), Quantized(normalise="batch")
BOTH = [QT, PUBLISHED]


def numbers(*shape: int, seed: int = 0) -> Tensor:
    """Scores in double precision."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64, requires_grad=True)


def gradient(of: Tensor, at: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(of.sum(), at)
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 4), st.integers(1, 3), st.integers(1, 6), st.sampled_from([0.01, 1.0, 1e4]), st.integers(2, 5),
    st.sampled_from(NORMALISATIONS), st.integers(0, 99),
)  # fmt: skip
def test_digits_are_whole_numbers_and_the_start_column_is_zero(
    batch: int, length: int, digits: int, scale: float, levels: int, normalise: str, seed: int
) -> None:
    scores = scale * torch.randn(batch, length, digits + 1, generator=torch.Generator().manual_seed(seed))
    message = get_representation("qt", levels=levels, normalise=normalise).message(scores.requires_grad_(), None)
    assert set(message.flatten().tolist()) <= set(range(levels))
    assert not message[..., -1].any()


def test_a_digit_is_1_if_its_score_is_above_zero() -> None:
    scores = torch.tensor([[[3.0, -0.1, 0.1, 9.0], [0.0, 1e-3, -50.0, -9.0]]])
    assert QT.message(scores).tolist() == [[[1, 0, 1, 0], [0, 1, 0, 0]]]  # sigmoid(0) = 1/2 rounds to the even 0


def test_the_gradient_is_that_of_the_sigmoid() -> None:
    scores, weight = numbers(6, 4, 5), numbers(6, 4, 5, seed=2).detach()
    slope = scores.sigmoid() * (1 - scores.sigmoid())
    expected = weight * slope.detach() * torch.tensor([1.0, 1, 1, 1, 0])
    for levels in (2, 3):
        torch.testing.assert_close(gradient(weight * Quantized(levels).message(scores), scores), expected)


def test_batch_normalization_maps_a_position_to_the_unit_interval() -> None:
    scores = torch.tensor([[[1.0, 2, 0], [10.0, 10, 0]], [[3.0, 5, 0], [10.0, 10, 0]]])
    # Position 0: 0, 1/4, 1/2, 1; 1/2 is rounded to the even 0. Position 1: all scores are equal, so all are 1/2.
    assert PUBLISHED.message(scores)[..., :2].tolist() == [[[0, 0], [0, 0]], [[0, 1], [0, 0]]]
    four = Quantized(levels=4, normalise="batch").message(scores)  # levels 0 to 3, not divided by 3 again
    assert four[..., :2].tolist() == [[[0, 1], [2, 2]], [[2, 3], [2, 2]]]


def test_minimum_and_maximum_have_gradients() -> None:
    scores, weight = numbers(6, 1, 5), numbers(6, 1, 4, seed=2).detach()
    above = scores[..., :-1] - scores[..., :-1].min()
    expected = gradient(weight * above / above.max(), scores)
    torch.testing.assert_close(gradient(weight * PUBLISHED.message(scores)[..., :-1], scores), expected)
    assert expected[..., :-1].all()


@pytest.mark.parametrize("channel", BOTH, ids=NORMALISATIONS)
def test_feedback_equals_the_message(channel: Quantized) -> None:
    scores = numbers(6, 4, 5)
    for step in range(4):
        fed = channel.feed_back(scores[:, step], step, True)
        assert torch.equal(fed, channel.message(scores)[:, step])
        assert torch.equal(fed, channel.feed_back(scores[:, step], step, False))


def test_a_message_depends_on_its_batch_only_with_batch_normalization() -> None:
    scores = numbers(8, 4, 5).detach()
    for channel, same in ((QT, True), (PUBLISHED, False)):
        whole = channel.message(scores)
        order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
        assert torch.equal(channel.message(scores[order]), whole[order])
        halves = torch.cat([channel.message(half) for half in scores.split(4)])
        assert torch.equal(halves, whole) is same


@pytest.mark.parametrize("channel", BOTH, ids=NORMALISATIONS)
def test_a_stack_gives_the_messages_of_single_models(channel: Quantized) -> None:
    scores = numbers(3, 6, 4, 5).detach() * torch.tensor([1.0, 10, 100]).view(3, 1, 1, 1)
    assert torch.equal(channel.message(scores), torch.stack([channel.message(one) for one in scores]))


def test_three_digits_give_all_eight_words() -> None:
    scores = torch.tensor([[[*digits, 1.0]] for digits in itertools.product((-1.0, 1.0), repeat=3)])
    words = QT.words(QT.message(scores)).flatten()
    assert words.tolist() == list(range(8))  # the first digit is the most significant
    assert QT.word_count(3) == 8
    assert torch.equal(QT.greedy_words(scores).flatten(), words)
    assert Quantized(levels=3).words(torch.tensor([[[2.0, 0, 1, 0]]])).item() == 2 * 9 + 1


def test_words_of_64_digits_have_different_numbers() -> None:
    digits = torch.cat([torch.eye(64), torch.zeros(1, 64), torch.ones(1, 64)])
    words = QT.words(F.pad(digits, (0, 1)).unsqueeze(1)).flatten().tolist()
    assert len(set(words)) == 66
    assert QT.word_count(64) == 2**64
    for channel, size in ((QT, 65), (Quantized(levels=3), 41)):
        with pytest.raises(InvalidSettingError, match="too many for 64-bit numbers"):
            channel.word_count(size)


def test_the_word_of_a_token_has_only_its_own_digit() -> None:
    tokens = torch.tensor([[0, 1, 2]])
    assert QT.token_words(tokens, 3).tolist() == [[4, 2, 1]]
    assert Quantized(levels=3).token_words(tokens, 3).tolist() == [[9, 3, 1]]


@pytest.mark.slow
def test_sender_loss_is_the_cross_entropy_of_every_digit() -> None:
    scores, tokens = numbers(6, 2, 5), torch.randint(4, (6, 2), generator=torch.Generator().manual_seed(1))
    wanted = F.one_hot(tokens, 4).double()
    p = scores[..., :-1].sigmoid()
    surprise = -(wanted * p.log() + (1 - wanted) * (1 - p).log())
    torch.testing.assert_close(QT.sender_loss(scores, tokens), surprise.sum(-1).mean())
    above = scores[..., :-1] - scores[..., :-1].amin((0, 2), keepdim=True)
    errors = (above / above.amax((0, 2), keepdim=True) - wanted).square()
    torch.testing.assert_close(PUBLISHED.sender_loss(scores, tokens), errors.sum(-1).mean())


@pytest.mark.slow
def test_a_sender_with_minimal_loss_emits_the_words_of_the_language() -> None:
    tokens, channel = torch.tensor([[0, 1], [2, 1], [2, 2]]), Quantized(levels=3)
    scores = torch.zeros(3, 2, 4, requires_grad=True)
    adam = torch.optim.Adam([scores], 0.3)
    for _ in range(200):
        adam.zero_grad()
        channel.sender_loss(scores, tokens).backward()
        adam.step()
    assert torch.equal(channel.greedy_words(scores), channel.token_words(tokens, 3))


def test_invalid_values_are_rejected() -> None:
    with pytest.raises(InvalidSettingError, match="at least 2 levels, not 1"):
        Quantized(levels=1)
    with pytest.raises(UnknownNameError, match="did you mean batch"):
        get_representation("qt", normalise="batsh")
