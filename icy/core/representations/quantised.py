"""QT: binary words, by rounding (CBM24 section 4; the released example of "Emergent Quantized Communication")."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError, unknown
from icy.core.noise import Noise
from icy.core.tracing import traceable

from .mixins import Answering, Unlearnt
from .protocol import Losses, Scores, Sent, StepScores, Targets, Words
from .samples import one_hot

Normalisation = Literal["sigmoid", "batch"]
NORMALISATIONS = ("sigmoid", "batch")
MOST_WORDS = 2**64  # that can be numbered in 64 bits
OF_A_STEP, OF_A_MESSAGE = (-2, -1), (-3, -1)  # axes of batch and digits


@dataclass(frozen=True)
class Quantised(Unlearnt, Answering):
    """QT: a word is V digits, each rounded from a score, with the gradient of what is rounded; no noise.

    The last score, of the start symbol, is not used, and its place in a message is always 0.

    Attributes:
        levels: values of a digit, 0 .. levels - 1; with two a word is binary.
        normalise: what brings scores into [0, 1] before they are rounded, half to even: "sigmoid"; or "batch", which
            subtracts the least score of a position over batch and digits and divides by the largest of the
            differences, as the authors' program does, so that a message depends on those beside it.
    """

    name = "qt"
    description = "Binary words of V digits, rounded; cross-entropy of the digits."

    levels: int = 2
    normalise: Normalisation = "sigmoid"

    def __post_init__(self) -> None:
        if self.levels < 2:
            raise InvalidSettingError(f"A digit has at least 2 levels, not {self.levels}.")
        if self.normalise not in NORMALISATIONS:
            raise unknown("normalisation", self.normalise, NORMALISATIONS)

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the digits of a step's word, in training and in evaluation."""
        return emitted_digits(scores, self.levels, self.normalise)

    def message(self, scores: Scores, noise: Noise | None = None) -> Scores:
        """Return the digits of all words, in training and in evaluation."""
        return _emitted(scores, self.levels, self.normalise, OF_A_MESSAGE)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of each digit, summed over digits, a mean over batch and positions.

        The word of a token is that in which its own digit is 1 and all others are 0. Where digits are normalised over
        the batch, some are exactly 0 or 1, and the loss is their squared error.
        """
        digits = scores[..., :-1]
        wanted = one_hot(messages, digits.shape[-1], scores.dtype) / (self.levels - 1)
        if self.normalise == "sigmoid":
            errors = F.binary_cross_entropy_with_logits(digits, wanted, reduction="none")
        else:
            errors = (_in_unit_interval(digits, self.normalise, OF_A_MESSAGE) - wanted).square()
        return errors.sum(-1).mean((-2, -1))

    def words(self, message: Scores) -> Words:
        """Return each word as the number that its digits are, the first digit the most significant.

        Of 2^64 words, half have negative numbers.

        Raises:
            InvalidSettingError: there are more words than that.
        """
        digits = message[..., :-1].round().long()
        self.word_count(digits.shape[-1])
        place = self.levels ** torch.arange(digits.shape[-1] - 1, -1, -1, device=digits.device)
        return (digits * place).sum(-1)

    def greedy_words(self, sent: Sent) -> Words:
        """Return the words of the message."""
        return self.words(self.message(sent))

    def token_words(self, tokens: Targets, vocab_size: int) -> Words:
        """Return the word of each token, in which its own digit is 1."""
        return self.words(one_hot(tokens, vocab_size + 1))

    def word_count(self, vocab_size: int) -> int:
        """Return levels to the power of V.

        Raises:
            InvalidSettingError: they cannot be numbered in 64 bits.
        """
        count: int = self.levels**vocab_size
        if count > MOST_WORDS:
            raise InvalidSettingError(
                f"Words of {vocab_size} digits with {self.levels} levels are more than can be numbered in 64 bits; "
                "take fewer digits."
            )
        return count


@traceable
def emitted_digits(scores: StepScores, levels: int, normalise: Normalisation) -> StepScores:
    """Return what a sender under QT emits at a step."""
    return _emitted(scores, levels, normalise, OF_A_STEP)


def _emitted(scores: Tensor, levels: int, normalise: Normalisation, over: tuple[int, int]) -> Tensor:
    unit = _in_unit_interval(scores[..., :-1], normalise, over)
    # The difference is 0, exactly, and has the gradient: digits are whole numbers.
    digits = (unit * (levels - 1)).detach().round() + (unit - unit.detach())
    return F.pad(digits, (0, 1))


def _in_unit_interval(digits: Tensor, normalise: Normalisation, over: tuple[int, int]) -> Tensor:
    if normalise == "sigmoid":
        return digits.sigmoid()
    above = digits - digits.amin(over, keepdim=True)
    most = above.amax(over, keepdim=True)
    flat = most == 0  # scores that are all the same become 1/2, which rounds to 0
    return torch.where(flat, above + 0.5, above / torch.where(flat, 1, most))
