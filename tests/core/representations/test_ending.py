"""Representations with ends: masks, lengths, prefixes, losses and gradients, against numbers made by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from icy.core.noise import Noise
from icy.core.representations import (
    ANSWERS,
    LAZY_DIVISOR,
    LAZY_POWER,
    Discrete,
    Ending,
    Gumbel,
    Soft,
    advantage,
    get_representation,
    one_hot,
    with_ends,
)
from icy.core.representations.ending import lengths_of, not_ended, padded
from tests.core.representations.helpers import NOISE, numbers

LINKS = (Soft(), Gumbel(), Discrete())
BATCH, LENGTH, SYMBOLS, ATTRIBUTES, VALUES = 4, 3, 3, 2, 3
END = SYMBOLS - 1


def sent_and_answered(prefixes: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    meanings = torch.randint(VALUES, (BATCH, ATTRIBUTES), generator=torch.Generator().manual_seed(1))
    return numbers(BATCH, LENGTH, SYMBOLS), numbers(prefixes * BATCH, ATTRIBUTES, VALUES, seed=2), meanings


def symbols(*tokens: int) -> Tensor:
    return one_hot(torch.tensor([tokens]), SYMBOLS, torch.float64)


# -- masks -------------------------------------------------------------------------------------------------------------


def test_probabilities_after_a_possible_end_move_to_the_end_token() -> None:
    """The end token has probability 1/4 at position 0 and 1/2 at position 1."""
    soft = torch.tensor([[[0.5, 0.25, 0.25], [0.5, 0, 0.5], [0, 1, 0]]], dtype=torch.float64)
    shares = not_ended(soft)
    assert shares.tolist() == [[1, 3 / 4, 3 / 8, 3 / 8]]
    assert lengths_of(shares).tolist() == [3 / 4 + 3 / 8 + 3 / 8]
    message = with_ends(Soft()).message(soft.log(), None)
    expected = [[[0.5, 0.25, 0.25], [3 / 8, 0, 3 / 8 + 1 / 4], [0, 3 / 8, 5 / 8]]]
    torch.testing.assert_close(message, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("link", [Gumbel(), Discrete()])
@pytest.mark.parametrize("noise", [None, NOISE])
def test_tokens_after_the_first_end_token_are_end_tokens(link: Any, noise: Noise | None) -> None:
    scores = numbers(200, 5, SYMBOLS)
    tokens = link.message(scores, noise).argmax(-1).tolist()
    expected = [row[: row.index(END)] + [END] * (5 - row.index(END)) if END in row else row for row in tokens]
    message = with_ends(link).message(scores, noise)
    torch.testing.assert_close(message, one_hot(torch.tensor(expected), SYMBOLS, torch.float64))
    lengths = lengths_of(not_ended(link.message(scores, noise)))
    torch.testing.assert_close(lengths, torch.tensor([row.count(0) + row.count(1) for row in expected]).double())
    if noise is None:
        assert with_ends(link).greedy_words(scores).tolist() == expected


def test_an_empty_message_and_a_message_without_an_end() -> None:
    for tokens, length in (((END, 0, 1), 0), ((0, 1, 0), 3), ((0, END, 1), 1)):
        assert lengths_of(not_ended(symbols(*tokens))).tolist() == [length]


@pytest.mark.parametrize("link", LINKS)
def test_prefixes_are_extra_examples_of_the_training_of_an_impatient_receiver(link: Any) -> None:
    scores = numbers(BATCH, LENGTH, SYMBOLS)
    whole = with_ends(link).message(scores, NOISE)
    ending = with_ends(link, impatient=True)
    assert torch.equal(ending.message(scores, None), with_ends(link).message(scores, None))
    found = ending.message(scores, NOISE).unflatten(0, (LENGTH, BATCH))
    assert torch.equal(found[0], whole)
    for missing in range(LENGTH):
        kept = LENGTH - missing
        torch.testing.assert_close(found[missing][:, :kept], whole[:, :kept])
        assert found[missing][:, kept:].argmax(-1).eq(END).all()
        assert found[missing][:, kept:].sum() == BATCH * missing
    stack = torch.stack([scores, scores.flip(0)])
    both = ending.message(stack, Noise(torch.tensor([5, 5])))
    assert torch.equal(both[0], ending.message(scores, NOISE))


# -- losses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
def test_without_an_end_messages_and_losses_are_those_of_the_link(link: Any) -> None:
    sent, answered, meanings = sent_and_answered()
    sent = sent - 1e3 * torch.tensor([0, 0, 1])
    ending = with_ends(link)
    torch.testing.assert_close(ending.message(sent, NOISE), link.message(sent, NOISE))
    losses = [one.pair_loss(sent, answered, meanings, NOISE) for one in (ending, link)]
    torch.testing.assert_close(*losses)
    with_cost = with_ends(link, cost=0.25).pair_loss(sent, answered, meanings, NOISE)
    if not isinstance(link, Discrete):  # a cost that all messages share is no advantage
        torch.testing.assert_close(with_cost, losses[1] + 0.25 * LENGTH)
    else:
        torch.testing.assert_close(with_cost, losses[1])


@pytest.mark.parametrize("link", [Soft(), Gumbel()])
@pytest.mark.parametrize("impatient", [False, True])
def test_the_loss_by_hand(link: Any, impatient: bool) -> None:
    sent, answered, meanings = sent_and_answered(LENGTH if impatient else 1)
    found = with_ends(link, cost=0.1, lazy=True, impatient=impatient).pair_loss(sent, answered, meanings, NOISE)
    message, surprises = link.message(sent, NOISE).tolist(), (-answered.log_softmax(-1)).tolist()
    total, length, right = 0.0, 0.0, 0
    for example in range(BATCH):
        shares = [1.0]
        for place in range(LENGTH):
            shares.append(shares[-1] * (1 - message[example][place][END]))
        length += sum(shares[1:]) / BATCH
        meaning = meanings[example].tolist()
        # Row `missing` of the answers is for the first LENGTH - missing symbols.
        errors = [
            sum(surprises[missing * BATCH + example][a][v] for a, v in enumerate(meaning)) / ATTRIBUTES
            for missing in range(LENGTH if impatient else 1)
        ]
        weights = [share / sum(shares[:-1]) for share in shares[:-1]][::-1] if impatient else [1.0]
        total += sum(w * error for w, error in zip(weights, errors, strict=True)) / BATCH
        right += answered[example].argmax(-1).tolist() == meaning
    cost = 0.1 + (right / BATCH) ** LAZY_POWER / LAZY_DIVISOR
    assert found.item() == pytest.approx(total + cost * length)


def test_a_lazy_sender_pays_when_the_pair_is_accurate() -> None:
    sent, _, meanings = sent_and_answered()
    length = lengths_of(not_ended(sent.softmax(-1))).mean()
    lazy, free = with_ends(Soft(), lazy=True), with_ends(Soft())
    for wrong, alpha in ((0, 1 / 10), (1, 0.75**45 / 10), (BATCH, 0.0)):
        answers = meanings.clone()
        answers[:wrong, 0] = (answers[:wrong, 0] + 1) % VALUES  # a meaning with a wrong attribute is wrong
        answered = one_hot(answers, VALUES, torch.float64)
        losses = [one.pair_loss(sent, answered, meanings, NOISE) for one in (lazy, free)]
        assert (losses[0] - losses[1]).item() == pytest.approx(alpha * length.item(), abs=1e-12)


@pytest.mark.parametrize("impatient", [False, True])
def test_rewards_of_sampled_tokens_by_hand(impatient: bool) -> None:
    """Only tokens up to the first end token have a log-probability, an entropy and a reward."""
    prefixes, cost = LENGTH if impatient else 1, 0.3
    sent, answered, meanings = sent_and_answered(prefixes)
    link = Discrete(reward_weight=2.0, entropy_weight=0.05)
    found = with_ends(link, cost=cost, impatient=impatient).pair_loss(sent, answered, meanings, NOISE)
    tokens = link.message(sent, NOISE).argmax(-1).tolist()
    values = link.message(answered, NOISE.stream(ANSWERS)).argmax(-1).view(prefixes, BATCH, ATTRIBUTES)
    right = (values == meanings).double()
    counts = [row.index(END) + 1 if END in row else LENGTH for row in tokens]
    lengths = [row.index(END) if END in row else LENGTH for row in tokens]
    assert len(set(counts)) > 1
    weights = torch.ones(1, BATCH, 1).double()
    if impatient:
        weights = torch.zeros(LENGTH, BATCH, 1).double()
        for example, count in enumerate(counts):
            weights[LENGTH - count :, example] = 1 / count
    rewards = (right * weights).sum(0) - cost * torch.tensor(lengths).double().unsqueeze(-1)
    of_message, of_values = advantage(rewards, axes=2).mean(-1), advantage(right, axes=2) * weights
    log_sent, log_answered = sent.log_softmax(-1), answered.log_softmax(-1).view(prefixes, BATCH, ATTRIBUTES, VALUES)
    reward = uncertainty = torch.zeros(()).double()
    for example, count in enumerate(counts):
        for place in range(count):
            reward = reward + of_message[example] * log_sent[example, place, tokens[example][place]]
            uncertainty = uncertainty - (log_sent[example, place].exp() * log_sent[example, place]).sum()
        for missing in range(prefixes):
            for attribute in range(ATTRIBUTES):
                logs = log_answered[missing, example, attribute]
                reward = reward + of_values[missing, example, attribute] * logs[values[missing, example, attribute]]
                uncertainty = uncertainty - weights[missing, example, 0] * (logs.exp() * logs).sum()
    expected = -2.0 * reward - 0.05 * uncertainty
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    for scores in (sent, answered):
        gradients = [torch.autograd.grad(loss, scores, retain_graph=True)[0] for loss in (found, expected)]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)
    for example, count in enumerate(counts):
        assert not torch.autograd.grad(found, sent, retain_graph=True)[0][example, count:].any()


@pytest.mark.parametrize("link", LINKS)
def test_losses_of_a_stack_are_those_of_its_pairs(link: Any) -> None:
    sent, answered, meanings = sent_and_answered(LENGTH)
    ending = with_ends(link, cost=0.1, lazy=True, impatient=True)
    pairs = [(sent, answered, meanings), (sent.flip(0), answered.flip(0), meanings.flip(0))]
    both = ending.pair_loss(*(torch.stack(parts) for parts in zip(*pairs, strict=True)), Noise(torch.tensor([5, 6])))
    alone = [ending.pair_loss(*pair, Noise(torch.tensor(key))) for pair, key in zip(pairs, (5, 6), strict=True)]
    torch.testing.assert_close(both, torch.stack(alone))


# -- gradients ---------------------------------------------------------------------------------------------------------


def masked(message: Tensor) -> tuple[Tensor, Tensor]:
    shares = not_ended(message)
    return padded(message, shares[..., :-1]), lengths_of(shares)


def test_gradients_of_the_mask_equal_finite_differences() -> None:
    probabilities = numbers(BATCH, LENGTH, SYMBOLS).softmax(-1).detach().requires_grad_()
    assert torch.autograd.gradcheck(masked, probabilities)
    certain = symbols(0, END, 1).requires_grad_()  # a factor of the product is 0
    assert torch.autograd.gradcheck(masked, certain)


@pytest.mark.parametrize("impatient", [False, True])
def test_gradients_of_the_loss_equal_finite_differences(impatient: bool) -> None:
    sent, answered, meanings = sent_and_answered(LENGTH if impatient else 1)
    ending = with_ends(Soft(), cost=0.2, lazy=True, impatient=impatient)
    assert torch.autograd.gradcheck(lambda a, b: ending.pair_loss(a, b, meanings, NOISE), (sent, answered))
    assert torch.autograd.gradcheck(lambda a: ending.message(a, NOISE), sent)


def test_gradients_of_samples_are_those_of_the_relaxed_samples() -> None:
    """The gradient with respect to the symbols, times the derivative of the softmax."""
    sent, weight = numbers(BATCH, LENGTH, SYMBOLS), numbers(BATCH, LENGTH, SYMBOLS, seed=3).detach()
    link = Gumbel(temperature=0.7)
    found = torch.autograd.grad((with_ends(link).message(sent, NOISE) * weight).sum(), sent)[0]
    hard = link.message(sent, NOISE).detach().requires_grad_()
    to_symbols = torch.autograd.grad((masked(hard)[0] * weight).sum(), hard)[0]
    relaxed = ((sent + NOISE.gumbels(sent)) / 0.7).softmax(-1)
    expected = torch.autograd.grad((relaxed * to_symbols).sum(), sent)[0]
    torch.testing.assert_close(found, expected)


def test_an_end_has_the_interface_of_its_link() -> None:
    scores, tokens = numbers(BATCH, LENGTH, SYMBOLS), torch.zeros(BATCH, LENGTH, dtype=torch.long)
    for link in LINKS:
        ending = with_ends(link)
        assert (ending.name, ending.description) == (link.name, link.description)
        assert torch.equal(ending.feed_back(scores[:, 0], 0, False), link.feed_back(scores[:, 0], 0, False))
        assert torch.equal(ending.sender_loss(scores, tokens, NOISE), link.sender_loss(scores, tokens, NOISE))
        assert torch.equal(ending.receiver_loss(scores, tokens, NOISE), link.receiver_loss(scores, tokens, NOISE))
        assert ending.word_count(4) == 4
        assert ending.for_pair(4) is ending
    assert isinstance(with_ends(Soft()), Ending)
    with pytest.raises(TypeError, match="no end token"):
        with_ends(get_representation("qt"))


def test_the_lazy_cost_is_that_of_the_paper() -> None:
    assert (LAZY_POWER, LAZY_DIVISOR) == (45, 10)
    assert math.isclose(0.99**LAZY_POWER / LAZY_DIVISOR, 0.0636, rel_tol=1e-3)
