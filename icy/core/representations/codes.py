"""QT and CB: representations in which a word is several digits, or a code of a codebook."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError, require_known
from icy.core.fused import traceable
from icy.core.noise import Noise

from .losses import Answering, WithoutParameters, cross_entropy
from .samples import Answered, Losses, Meanings, Scores, Sent, StepScores, Targets, Words, largest, one_hot

# -- QT ----------------------------------------------------------------------------------------------------------------


Normalisation = Literal["sigmoid", "batch"]
NORMALISATIONS = ("sigmoid", "batch")
MOST_WORDS = 2**64  # limit of 64-bit numbers
OF_A_STEP, OF_A_MESSAGE = (-2, -1), (-3, -1)  # axes of batch and digits


@dataclass(frozen=True)
class Quantized(WithoutParameters, Answering):
    """QT: a word is V digits. Each digit is a rounded score, with the gradient of the unrounded score; no noise.

    The last score, of the start symbol, is not used, and its place in a message is always 0.

    Attributes:
        levels: values of a digit, 0 .. levels - 1; with two a word is binary.
        normalise: how scores are mapped to [0, 1] before rounding (half to even): "sigmoid"; or "batch", which
            subtracts the smallest score of a position over batch and digits and divides by the largest difference, as
            in the authors' program. With "batch", a message depends on the other messages of its batch.
    """

    name = "qt"
    description = "Binary words of V digits, rounded; cross-entropy of the digits."

    levels: int = 2
    normalise: Normalisation = "sigmoid"

    def __post_init__(self) -> None:
        if self.levels < 2:
            raise InvalidSettingError(f"A digit needs at least 2 levels, not {self.levels}.")
        require_known("normalisation", self.normalise, NORMALISATIONS)

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the digits of a step's word, in training and in evaluation."""
        return emitted_digits(scores, self.levels, self.normalise)

    def message(self, scores: Scores, noise: Noise | None = None) -> Scores:
        """Return the digits of all words, in training and in evaluation."""
        return _rounded(scores, self.levels, self.normalise, OF_A_MESSAGE)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the digits: a sum over digits, a mean over batch and positions.

        In the word of token v, digit v is 1 and all other digits are 0. With normalise="batch" some digits are exactly
        0 or 1, and the loss is the squared error.
        """
        digits = scores[..., :-1]
        targets = one_hot(messages, digits.shape[-1], scores.dtype) / (self.levels - 1)
        if self.normalise == "sigmoid":
            errors = F.binary_cross_entropy_with_logits(digits, targets, reduction="none")
        else:
            errors = (_in_unit_interval(digits, self.normalise, OF_A_MESSAGE) - targets).square()
        return errors.sum(-1).mean((-2, -1))

    def words(self, message: Scores) -> Words:
        """Return each word as a number, with the first digit as the most significant.

        With 2^64 words, half of the numbers are negative.

        Raises:
            InvalidSettingError: there are more than 2^64 words.
        """
        digits = message[..., :-1].round().long()
        self.word_count(digits.shape[-1])
        place = self.levels ** torch.arange(digits.shape[-1] - 1, -1, -1, device=digits.device)
        return (digits * place).sum(-1)

    def greedy_words(self, sent: Sent) -> Words:
        """Return the words of the message."""
        return self.words(self.message(sent))

    def token_words(self, tokens: Targets, vocab_size: int) -> Words:
        """Return the word of each token: digit v is 1 in the word of token v."""
        return self.words(one_hot(tokens, vocab_size + 1))

    def word_count(self, vocab_size: int) -> int:
        """Return levels to the power of V.

        Raises:
            InvalidSettingError: there are more than 2^64 words.
        """
        count: int = self.levels**vocab_size
        if count > MOST_WORDS:
            raise InvalidSettingError(
                f"Words of {vocab_size} digits with {self.levels} levels are too many for 64-bit numbers; take fewer "
                "digits."
            )
        return count


@traceable
def emitted_digits(scores: StepScores, levels: int, normalise: Normalisation) -> StepScores:
    """Return the digits that a sender with QT emits at a step."""
    return _rounded(scores, levels, normalise, OF_A_STEP)


def _rounded(scores: Tensor, levels: int, normalise: Normalisation, over: tuple[int, int]) -> Tensor:
    unit = _in_unit_interval(scores[..., :-1], normalise, over)
    # The difference is exactly 0, and carries the gradient: digits are whole numbers.
    digits = (unit * (levels - 1)).detach().round() + (unit - unit.detach())
    return F.pad(digits, (0, 1))


def _in_unit_interval(digits: Tensor, normalise: Normalisation, over: tuple[int, int]) -> Tensor:
    if normalise == "sigmoid":
        return digits.sigmoid()
    above = digits - digits.amin(over, keepdim=True)
    most = above.amax(over, keepdim=True)
    flat = most == 0  # equal scores become 1/2, which is rounded to 0
    return torch.where(flat, above + 0.5, above / torch.where(flat, 1, most))


# -- CB ----------------------------------------------------------------------------------------------------------------


COMMITMENT = 0.25  # van den Oord et al. 2017, equation 3

Codes = Float[Tensor, "*#stack code vocab"]


class Nearest(Answering):
    """Base class of fixed and learned codebooks: the word is the index of the nearest code."""

    def as_sent(self, scores: Scores) -> Sent:
        """Return the scores: the largest score has the index of the nearest unit vector."""
        return scores

    def greedy_words(self, sent: Sent) -> Words:
        """Return the index of the nearest code at each position."""
        return sent[..., :-1].argmax(-1)

    def token_words(self, tokens: Targets, vocab_size: int) -> Words:
        """Return the tokens: code v is always the word of token v."""
        return tokens

    def extra_loss(self, sent: Sent) -> Losses:
        """Return the distance to the nearest code, mean over batch and positions; `sent` holds negative distances."""
        return -sent[..., :-1].amax(-1).mean((-2, -1))

    def pair_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the answers, mean over batch and attributes, plus the distance to the codes."""
        return super().pair_loss(sent, answered, meanings) + self.extra_loss(sent)


@dataclass(frozen=True)
class Codebook(Nearest):
    """CB: a word is the code nearest to the first V scores, with the gradient of these scores; no noise.

    The last score, of the start symbol, is not used, and its place in a message is always 0. For a single sender the
    codes are unit vectors: the code of token v is 1 at v. Between two models the codes are learned. They start at the
    unit vectors if both models were pre-trained on a language, otherwise close to zero, where the scores are (see
    LearnedCodebook).

    Attributes:
        codes: number of codes in a pair; by default V.
        commitment: weight of the loss that moves scores to their codes; the loss that moves codes to scores has
            weight 1.
    """

    name = "cb"
    description = "Codes of a codebook, the nearest to the scores; squared error."

    codes: int | None = None
    commitment: float = COMMITMENT

    def __post_init__(self) -> None:
        if self.codes is not None and self.codes < 2:
            raise InvalidSettingError(f"A codebook needs at least 2 codes, not {self.codes}.")
        if not 0 <= self.commitment < float("inf"):
            raise InvalidSettingError(f"The commitment must be at least 0, not {self.commitment}.")

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the code of a step, in training and in evaluation."""
        return emitted_unit(scores)

    def message(self, scores: Scores, noise: Noise | None = None) -> Scores:
        """Return the codes of all positions, in training and in evaluation."""
        return emitted_unit(scores)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the squared distance to the codes of the tokens, mean over batch and positions."""
        codes = one_hot(messages, scores.shape[-1] - 1, scores.dtype)
        return (scores[..., :-1] - codes).square().sum(-1).mean((-2, -1))

    def for_pair(self, vocab_size: int, taught: bool = False) -> "LearnedCodebook":
        """Return a learned codebook, because sender and receiver must agree on codes that training can move."""
        return LearnedCodebook(vocab_size, self.codes or vocab_size, self.commitment, taught)

    def words(self, message: Scores) -> Words:
        """Return the index of the code at each position."""
        return message.argmax(-1)

    def word_count(self, vocab_size: int) -> int:
        """Return the number of codes."""
        return self.codes or vocab_size


class LearnedCodebook(nn.Module, Nearest):
    """The codebook of a pair, which is trained with the two models.

    Codes start uniform in +-1 / count, as is usual. With longer codes, such as unit vectors, only few codes would be
    used: scores are small at first, so the first code that moves to them becomes the nearest code of all scores.

    Args:
        vocab_size: numbers in a code, V.
        count: number of codes.
        commitment: see Codebook.
        taught: start from the unit vectors, which are the words of pre-trained senders; further codes start as random
            vectors of length 1.
    """

    name = Codebook.name
    description = Codebook.description

    def __init__(self, vocab_size: int, count: int, commitment: float = COMMITMENT, taught: bool = False) -> None:
        super().__init__()
        self.commitment = commitment
        codes = torch.empty(count, vocab_size, dtype=torch.float32, device="cpu").uniform_(-1 / count, 1 / count)
        if taught:
            codes = F.normalize(codes, dim=-1)
            codes[:vocab_size] = torch.eye(vocab_size, dtype=torch.float32, device="cpu")[:count]
        self.codes = nn.Parameter(codes)

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the code of a step, in training and in evaluation."""
        return self._emitted(scores)

    def message(self, scores: Scores, noise: Noise | None = None) -> Scores:
        """Return the codes of all positions, in training and in evaluation."""
        emitted: Tensor = self._emitted(scores.flatten(-3, -2)).unflatten(-2, scores.shape[-3:-1])  # type: ignore[no-untyped-call]
        return emitted

    def _emitted(self, rows: Tensor) -> Tensor:
        return emitted_code(rows, self.codes, self.commitment)

    def as_sent(self, scores: Scores) -> Sent:
        """Return the negative loss of each code: the sum of two mean squared distances to the scores.

        The first has the gradient of the code; the second has the gradient of the scores and the weight `commitment`.
        The start symbol, after all codes, has minus infinity.
        """
        far = _by_code(scores.flatten(-3, -2), self.codes, self.commitment)
        return F.pad(far.unflatten(-2, scores.shape[-3:-1]), (0, 1), value=-torch.inf)  # type: ignore[no-untyped-call]

    def for_pair(self, vocab_size: int, taught: bool = False) -> "LearnedCodebook":
        """Return this codebook, because learned codes are the same in a probe and in a pair."""
        return self

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the codes of the tokens, with logits -distance, mean over batch and positions."""
        far = distances(scores.flatten(-3, -2)[..., :-1], self.codes)
        return cross_entropy(-far, messages.flatten(-2)).mean(-1)

    def words(self, message: Scores) -> Words:
        """Return the index of the code at each position."""
        return self.greedy_words(self.as_sent(message))

    def word_count(self, vocab_size: int) -> int:
        """Return the number of codes."""
        return self.codes.shape[-2]


@traceable
def emitted_code(
    rows: Float[Tensor, "*#stack row symbols"], codes: Codes, commitment: float
) -> Float[Tensor, "*stack row symbols"]:
    """Return the code nearest to the scores, and 0 for the start symbol, with the gradient of the scores."""
    inputs = rows[..., :-1]
    with torch.no_grad():
        nearest = largest(_by_code(rows, codes, commitment)) @ codes
    # The difference is exactly 0, and carries the gradient.
    return F.pad(nearest + (inputs - inputs.detach()), (0, 1))


@traceable
def attracted(scores: StepScores, codes: Float[Tensor, "code size"], commitment: float, positions: int) -> StepScores:
    """Return the scores. A program also has the loss and the gradient of the distance to the nearest codes there.

    Args:
        scores: scores of one position of each example.
        codes: the codes.
        commitment: weight of the gradient of the scores.
        positions: positions of a message.
    """
    return scores


def _by_code(rows: Tensor, codes: Tensor, commitment: float) -> Tensor:
    """Return the negative loss of each code; see `LearnedCodebook.as_sent`."""
    inputs = rows[..., :-1]
    far = distances(inputs.detach(), codes) + commitment * distances(inputs, codes.detach())
    return -far / inputs.shape[-1]


def distances(rows: Float[Tensor, "*#stack row vocab"], codes: Codes) -> Float[Tensor, "*stack row code"]:
    """Return the squared distance of each row from each code."""
    squares = rows.square().sum(-1, keepdim=True) + codes.square().sum(-1).unsqueeze(-2)
    return squares - 2 * rows @ codes.mT


@traceable
def emitted_unit(scores: Float[Tensor, "*places vocab"]) -> Float[Tensor, "*places vocab"]:
    """Return the unit vector nearest to the scores, with the gradient of the scores."""
    inputs = scores[..., :-1]
    return F.pad(largest(inputs.detach()) + (inputs - inputs.detach()), (0, 1))
