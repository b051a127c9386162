"""QT: binary words, by rounding (CBM24 section 4; the released example of "Emergent Quantized Communication")."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError, require_known
from icy.core.fused import traceable
from icy.core.noise import Noise

from .losses import Answering, WithoutParameters
from .protocol import Losses, Scores, Sent, StepScores, Targets, Words
from .samples import one_hot

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
        return _emitted(scores, self.levels, self.normalise, OF_A_MESSAGE)

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
    return _emitted(scores, levels, normalise, OF_A_STEP)


def _emitted(scores: Tensor, levels: int, normalise: Normalisation, over: tuple[int, int]) -> Tensor:
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
