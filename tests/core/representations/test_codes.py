"""QT and CB: words, losses and gradients."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.core.representations import Codebook, LearnedCodebook, Quantized, Representation, get_representation
from icy.core.representations.codes import NORMALISATIONS
from tests.core.representations.helpers import gradient, numbers

# -- QT: words of rounded digits ---------------------------------------------------------------------------------------


QT, PUBLISHED = Quantized(), Quantized(normalise="batch")
BOTH = [QT, PUBLISHED]


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


def test_invalid_levels_are_rejected() -> None:
    with pytest.raises(InvalidSettingError, match="at least 2 levels, not 1"):
        Quantized(levels=1)
    with pytest.raises(UnknownNameError, match="did you mean batch"):
        get_representation("qt", normalise="batsh")


# -- CB: fixed codes and learned codes ---------------------------------------------------------------------------------


CB = Codebook()


def gradients(of: Tensor, *at: Tensor) -> tuple[Tensor | None, ...]:
    return torch.autograd.grad(of.sum(), at, allow_unused=True)


def learnt(count: int = 7, size: int = 4, commitment: float = 0.25, seed: int = 3) -> LearnedCodebook:
    """A codebook with random codes, as during training."""
    link = LearnedCodebook(size, count, commitment).double()
    with torch.no_grad():
        link.codes.copy_(numbers(count, size, seed=seed))
    return link


def nearest_by_hand(scores: Tensor, codes: Tensor) -> list[list[int]]:
    """The code nearest to each of the scores [batch, length, V + 1]."""
    return [
        [min(range(len(codes)), key=lambda k: float((codes[k] - place[:-1]).square().sum())) for place in example]
        for example in scores.detach()
    ]


@pytest.mark.slow
def test_fixed_codes_are_unit_vectors() -> None:
    scores, weight = numbers(6, 2, 5), numbers(6, 2, 5, seed=2).detach()
    message, near = CB.message(scores), nearest_by_hand(scores, torch.eye(4, dtype=torch.float64))
    assert torch.equal(message.detach(), F.pad(torch.eye(4, dtype=torch.float64)[torch.tensor(near)], (0, 1)))
    assert CB.greedy_words(scores).tolist() == CB.words(message).tolist() == near
    found, expected = gradients(weight * message, scores)[0], weight * torch.tensor([1.0, 1, 1, 1, 0])
    assert found is not None
    torch.testing.assert_close(found, expected)
    for step in range(2):
        assert torch.equal(CB.feed_back(scores[:, step], step, True), message[:, step])


@pytest.mark.slow
def test_sender_loss_is_the_squared_distance_from_the_token() -> None:
    scores, tokens = numbers(6, 2, 5), torch.randint(4, (6, 2), generator=torch.Generator().manual_seed(1))
    expected = (scores[..., :-1] - F.one_hot(tokens, 4)).square().sum(-1).mean()
    torch.testing.assert_close(CB.sender_loss(scores, tokens), expected)


def test_links_of_pretrained_models_start_from_unit_vectors() -> None:
    scores = numbers(6, 2, 5).float()
    link = CB.for_pair(4, taught=True)
    assert torch.equal(link.codes, torch.eye(4))
    assert torch.equal(link.message(scores), CB.message(scores))
    more = Codebook(codes=6).for_pair(4, taught=True)
    assert torch.equal(more.codes[:4], torch.eye(4))
    torch.testing.assert_close(more.codes.norm(dim=-1), torch.ones(6))
    assert (more.word_count(4), Codebook(codes=6).word_count(4), CB.word_count(4)) == (6, 6, 4)
    assert torch.equal(Codebook(codes=3).for_pair(4, taught=True).codes, torch.eye(4)[:3])


def test_codes_of_other_links_start_close_to_zero() -> None:
    codes = Codebook(codes=20).for_pair(40).codes
    assert codes.shape == (20, 40)
    assert 0.04 < codes.abs().max() <= 1 / 20


def test_messages_are_the_nearest_codes_to_the_bit() -> None:
    link, scores = learnt(), numbers(6, 2, 5)
    near = torch.tensor(nearest_by_hand(scores, link.codes.detach()))
    message = link.message(scores)
    assert len(near.unique()) > 3
    assert torch.equal(message.detach(), F.pad(link.codes.detach()[near], (0, 1)))
    assert torch.equal(link.words(message), near)
    assert torch.equal(link.greedy_words(link.as_sent(scores)), near)
    assert torch.equal(CB.greedy_words(link.as_sent(scores)), near)
    for step in range(2):
        assert torch.equal(link.feed_back(scores[:, step]), message[:, step])


def test_the_gradient_of_a_message_passes_to_the_scores_and_not_to_the_codes() -> None:
    link, scores, weight = learnt(), numbers(6, 2, 5), numbers(6, 2, 5, seed=2).detach()
    of_scores, of_codes = gradients(weight * link.message(scores), scores, link.codes)
    torch.testing.assert_close(of_scores, weight * torch.tensor([1.0, 1, 1, 1, 0]))
    assert of_codes is None


def test_extra_loss_draws_codes_to_scores_and_scores_a_little_to_codes() -> None:
    link, scores = learnt(commitment=0.3), numbers(6, 2, 5)
    near = torch.tensor(nearest_by_hand(scores, link.codes.detach()))
    given, codes = scores.detach()[..., :-1], link.codes.detach()[near]
    loss = link.extra_loss(link.as_sent(scores))
    assert loss.item() == pytest.approx(1.3 * (given - codes).square().mean().item())
    of_scores, of_codes = gradients(loss, scores, link.codes)
    torch.testing.assert_close(of_scores, F.pad(0.3 * 2 * (given - codes) / given.numel(), (0, 1)))
    expected = torch.zeros_like(link.codes).index_add(
        0, near.flatten(), (2 * (codes - given) / given.numel()).flatten(0, 1)
    )
    torch.testing.assert_close(of_codes, expected)


def test_link_loss_sums_the_losses_of_answers_and_codes() -> None:
    link, scores, answers = learnt(), numbers(6, 2, 5), numbers(6, 3, 4, seed=1)
    meanings, sent = torch.randint(4, (6, 3), generator=torch.Generator().manual_seed(1)), link.as_sent(scores)
    parts = get_representation("soft").pair_loss(sent, answers, meanings, None) + link.extra_loss(sent)  # type: ignore[arg-type]
    torch.testing.assert_close(CB.pair_loss(sent, answers, meanings), parts)


def test_a_stack_of_links_equals_single_links() -> None:
    links, scores = [learnt(seed=seed) for seed in (3, 4, 5)], numbers(3, 6, 2, 5)
    codes = torch.stack([link.codes.detach() for link in links])

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.link = learnt()

        def forward(self, scores: Tensor) -> tuple[Tensor, ...]:
            message, sent = self.link.message(scores), self.link.as_sent(scores)
            return message, sent, self.link.words(message), self.link.extra_loss(sent)

    whole = Whole()
    together = functional_call(whole, {"link.codes": codes}, scores)
    by_vmap = vmap(lambda c, s: functional_call(whole, {"link.codes": c}, s))(codes, scores)
    for i in range(3):
        alone = functional_call(whole, {"link.codes": codes[i]}, scores[i])
        for part, (found, other, expected) in enumerate(zip(together, by_vmap, alone, strict=True)):
            torch.testing.assert_close(found[i], expected, msg=f"part {part}")
            torch.testing.assert_close(other[i], expected, msg=f"part {part}")


def test_sender_loss_of_learned_codes_is_smallest_at_the_code() -> None:
    link, tokens = learnt(), torch.tensor([[0, 6], [3, 1]])
    at = F.pad(link.codes.detach()[tokens], (0, 1))
    assert link.sender_loss(at, tokens) < link.sender_loss(at.flip(0), tokens)
    assert link.for_pair(4) is link


def test_other_representations_are_their_own_links_without_extra_loss() -> None:
    scores = numbers(3, 6, 2, 5)
    for name in ("soft", "gumb", "discr", "gs", "qt"):
        link: Representation = get_representation(name)
        assert link.for_pair(4) is link
        assert link.as_sent(scores) is scores
        assert torch.equal(link.extra_loss(scores), torch.zeros(3, dtype=torch.float64))


def test_invalid_values_are_rejected() -> None:
    with pytest.raises(InvalidSettingError, match="at least 2 codes, not 1"):
        get_representation("cb", codes=1)
    with pytest.raises(InvalidSettingError, match="at least 0, not -1"):
        get_representation("cb", commitment=-1.0)
