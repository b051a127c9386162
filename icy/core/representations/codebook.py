"""CB: words are the codes of a codebook, by vector quantisation (van den Oord et al. 2017; CtD 2025)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import InvalidSettingError
from icy.core.noise import Noise
from icy.core.tracing import traceable

from .losses import cross_entropy
from .mixins import Answering
from .protocol import Answered, Losses, Meanings, Scores, Sent, StepScores, Targets, Words
from .samples import largest, one_hot

COMMITMENT = 0.25  # van den Oord et al. 2017, equation 3

Codes = Float[Tensor, "*#stack code vocab"]


class Nearest(Answering):
    """What codes that are given and codes that are learnt have in common: the nearest is the word."""

    def as_sent(self, scores: Scores) -> Sent:
        """Return the scores, whose largest is at the nearest unit vector."""
        return scores

    def greedy_words(self, sent: Sent) -> Words:
        """Return the number of the nearest code at each position."""
        return sent[..., :-1].argmax(-1)

    def token_words(self, tokens: Targets, vocab_size: int) -> Words:
        """Return the tokens: code v is the word of token v, wherever it is now."""
        return tokens

    def extra_loss(self, sent: Sent) -> Losses:
        """Return the distance of scores and codes, mean over batch and positions; `sent` is that to every code."""
        return -sent[..., :-1].amax(-1).mean((-2, -1))

    def link_loss(self, sent: Sent, answered: Answered, meanings: Meanings, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the answers, mean over batch and attributes, and the distance from the codes."""
        return super().link_loss(sent, answered, meanings) + self.extra_loss(sent)


@dataclass(frozen=True)
class Codebook(Nearest):
    """CB: a word is the code nearest to the first V scores, with the gradient of these scores; no noise.

    The last score, of the start symbol, is not used, and its place in a message is always 0. Alone, a sender has the
    unit vectors as codes, that of token v being 1 at v. Between two models codes are learnt; they start there if both
    have learnt a language before, and otherwise close to zero, where the scores are (see LearntCodebook).

    Attributes:
        codes: number of codes of a link; V unless given.
        commitment: weight of the loss that draws scores to their codes; that which draws codes to scores weighs 1.
    """

    name = "cb"
    description = "Codes of a codebook, the nearest to the scores; squared error."

    codes: int | None = None
    commitment: float = COMMITMENT

    def __post_init__(self) -> None:
        if self.codes is not None and self.codes < 2:
            raise InvalidSettingError(f"A codebook has at least 2 codes, not {self.codes}.")
        if not 0 <= self.commitment < float("inf"):
            raise InvalidSettingError(f"The commitment must be at least 0, not {self.commitment}.")

    def feed_back(self, scores: StepScores, step: int = 0, training: bool = True) -> StepScores:
        """Return the code of a step, in training and in evaluation."""
        return emitted_unit(scores)

    def message(self, scores: Scores, noise: Noise | None = None) -> Scores:
        """Return the codes of all positions, in training and in evaluation."""
        return emitted_unit(scores)

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the squared distance from the tokens' codes, mean over batch and positions."""
        wanted = one_hot(messages, scores.shape[-1] - 1, scores.dtype)
        return (scores[..., :-1] - wanted).square().sum(-1).mean((-2, -1))

    def as_link(self, vocab_size: int, taught: bool = False) -> "LearntCodebook":
        """Return a codebook that learns."""
        return LearntCodebook(vocab_size, self.codes or vocab_size, self.commitment, taught)

    def words(self, message: Scores) -> Words:
        """Return the number of each code."""
        return message.argmax(-1)

    def word_count(self, vocab_size: int) -> int:
        """Return the number of codes."""
        return self.codes or vocab_size


class LearntCodebook(nn.Module, Nearest):
    """The codebook of a link, which is trained with the models that it joins.

    Codes start uniform in +-1 / count, as is usual. Of longer ones, such as unit vectors, few come into use: a code is
    drawn to the scores, which are small at first, and is then the nearest to all of them.

    Args:
        vocab_size: V, numbers in a code.
        count: number of codes.
        commitment: see Codebook.
        taught: start from the unit vectors, at which senders are that have learnt a language; codes beyond V start at
            random at that length.
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

    @torch.no_grad()
    def _nearest(self, rows: Tensor) -> Tensor:
        return largest(self._by_code(rows)) @ self.codes

    def _emitted(self, rows: Tensor) -> Tensor:
        given = rows[..., :-1]
        # The difference is 0, exactly, and has the gradient.
        return F.pad(self._nearest(rows) + (given - given.detach()), (0, 1))

    def _by_code(self, rows: Tensor) -> Tensor:
        given = rows[..., :-1]
        far = distances(given.detach(), self.codes) + self.commitment * distances(given, self.codes.detach())
        return -far / given.shape[-1]

    def as_sent(self, scores: Scores) -> Sent:
        """Return what each code would cost: its mean squared distance from the scores, negative, twice.

        Once with the gradient of the code; and once with that of the scores, times the commitment. The start symbol is
        behind all codes, infinitely far.
        """
        far: Tensor = self._by_code(scores.flatten(-3, -2)).unflatten(-2, scores.shape[-3:-1])  # type: ignore[no-untyped-call]
        return F.pad(far, (0, 1), value=-torch.inf)

    def as_link(self, vocab_size: int, taught: bool = False) -> "LearntCodebook":
        """Return itself."""
        return self

    def sender_loss(self, scores: Scores, messages: Targets, noise: Noise | None = None) -> Losses:
        """Return the cross-entropy of the tokens' codes by their distance, mean over batch and positions."""
        far = distances(scores.flatten(-3, -2)[..., :-1], self.codes)
        return cross_entropy(-far, messages.flatten(-2)).mean(-1)

    def words(self, message: Scores) -> Words:
        """Return the number of each code."""
        return self.greedy_words(self.as_sent(message))

    def word_count(self, vocab_size: int) -> int:
        """Return the number of codes."""
        return self.codes.shape[-2]


def distances(rows: Float[Tensor, "*#stack row vocab"], codes: Codes) -> Float[Tensor, "*stack row code"]:
    """Return the squared distance of each row from each code."""
    squares = rows.square().sum(-1, keepdim=True) + codes.square().sum(-1).unsqueeze(-2)
    return squares - 2 * rows @ codes.mT


@traceable
def emitted_unit(scores: Float[Tensor, "*places vocab"]) -> Float[Tensor, "*places vocab"]:
    """Return the unit vector nearest to some scores, with their gradient."""
    given = scores[..., :-1]
    return F.pad(largest(given.detach()) + (given - given.detach()), (0, 1))
