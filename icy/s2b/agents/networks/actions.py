"""A player's choices at a step, as numbered options for networks."""

from dataclasses import dataclass
from typing import Literal, Self, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from icy.core.errors import require_known
from icy.core.registry import LISTENER
from icy.s2b.channel import Array, regular, sentence_count, sentences
from icy.s2b.settings import GameSettings, Sizes
from icy.s2b.turn import Seen

Form = Literal["decision", "sentence", "tokens", "both"]
FORMS: tuple[str, ...] = get_args(Form)
NEVER = -1  # value of the previous choice at the beginning of an episode
OTHER = (0.0, 1.0)  # one-hot code of "the other player made this choice"


@dataclass(frozen=True)
class Actions:
    """The options of a player at a step. A choice is the number of an option.

    If no message and no decision is expected, only the last option, "none", is legal: an empty message and no
    decision. In the form "tokens", only the end token is legal then.

    Attributes:
        game: settings of the game, or sizes of a task.
        form: "decision": one choice among decisions; "sentence": one choice among the regular sentences, by their
            number (`icy.s2b.channel.sentences`); "tokens": a choice per token; "both": one choice among combinations of
            a decision and a sentence, numbered as in the authors' program.

    Example:
        >>> from icy.s2b import GameSettings
        >>> from icy.s2b.agents.networks.actions import Actions
        >>> game = GameSettings()
        >>> [Actions(game, form).sizes for form in ("decision", "sentence", "tokens", "both")]
        [(3,), (260,), (7, 7, 7), (519,)]
    """

    game: GameSettings | Sizes
    form: Form = "decision"

    def __post_init__(self) -> None:
        require_known("form of actions", self.form, FORMS)

    @classmethod
    def of_role(cls, game: GameSettings | Sizes, role: str) -> Self:
        """Return the actions of a speaker or a listener, in a form with one choice per step."""
        if role == LISTENER:
            return cls(game, "both" if game.listener_messages else "decision")
        return cls(game, "sentence")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of options of each choice at a step."""
        if self.form == "tokens":
            return (self.game.vocab_size + 1,) * self.game.length
        decisions = self.game.decisions if self.form != "sentence" else 1
        return (decisions * self._sentences + 1,)

    @property
    def width(self) -> int:
        """Total number of options of all choices."""
        return sum(self.sizes)

    @property
    def _sentences(self) -> int:
        return 1 if self.form == "decision" else sentence_count(self.game.vocab_size, self.game.length)

    def legal(self, seen: Seen, device: torch.device | str | None = None) -> Bool[Tensor, "batch option"]:
        """Return the mask of legal options for a player's observation."""
        return self.legal_where(*(torch.as_tensor(x, device=device) for x in (seen.may_speak, seen.may_decide)))

    def legal_where(self, speak: Bool[Tensor, "*lead"], decide: Bool[Tensor, "*lead"]) -> Bool[Tensor, "*lead option"]:
        """Return the mask of legal options, given masks of expected messages (`speak`) and decisions (`decide`)."""
        speak, decide = speak[..., None], decide[..., None]
        if self.form == "tokens":
            first = torch.arange(self.width, device=decide.device) % self.sizes[0] == 0
            return speak | first
        expected = {"decision": decide, "sentence": speak}.get(self.form, decide | speak)
        option = torch.arange(self.width - 1, device=decide.device)
        silent, first = option % self._sentences == 0, option // self._sentences == 0
        return torch.cat([expected & (first | decide) & (silent | speak), ~expected], -1)

    def taken(self, chosen: Int[Array, "batch choice"]) -> tuple[Array | None, Array | None]:
        """Convert choices to messages [B, L] and decisions [B]; None for a part that this form does not have.

        Args:
            chosen: the chosen option of each choice, a NumPy array or a tensor.
        """
        if self.form == "tokens":
            return regular(chosen), None
        option = chosen[:, 0]
        option = option * (option != self.width - 1)  # decode "none" as the first decision and the empty sentence
        decision = None if self.form == "sentence" else option // self._sentences
        return None if self.form == "decision" else self._said(option % self._sentences), decision

    def _said(self, number: Array) -> Array:
        library = sentences(self.game.vocab_size, self.game.length)
        return (
            torch.tensor(library, device=number.device, dtype=torch.int64)[number]
            if isinstance(number, Tensor)
            else library[number]
        )

    def one_hot(self, chosen: Int[Tensor, "*lead choice"]) -> Float[Tensor, "*lead option"]:
        """Encode choices as concatenated one-hot blocks; NEVER becomes a block of zeros."""
        blocks = zip(self.sizes, chosen.unbind(-1), strict=True)
        return torch.cat([one_hot(choice, size) for size, choice in blocks], -1)

    @property
    def shared_width(self) -> int:
        """Width of a choice as the other player sees it (simplified action decoder; Hu and Foerster 2019)."""
        return self.width + len(OTHER)

    def shared(self, chosen: Int[Tensor, "*lead choice"]) -> Float[Tensor, "*lead shared"]:
        """Encode a greedy choice as the other player sees it: one-hot blocks, then `OTHER`; zeros if none was made."""
        block = self.one_hot(chosen)
        there = block.any(-1, keepdim=True)
        return torch.cat([block, there * torch.tensor(OTHER, device=block.device, dtype=torch.float32)], -1)

    def masked(
        self, scores: Float[Tensor, "*lead option"], legal: Bool[Tensor, "*lead option"]
    ) -> Float[Tensor, "*lead option"]:
        """Replace the scores of illegal options by the lowest finite value."""
        return scores.masked_fill(~legal, torch.finfo(scores.dtype).min)

    def best(
        self, scores: Float[Tensor, "*lead option"], legal: Bool[Tensor, "*lead option"]
    ) -> Int[Tensor, "*lead choice"]:
        """Return the legal option with the highest score for each choice."""
        blocks = self.masked(scores, legal).split(self.sizes, -1)
        return torch.stack([block.argmax(-1) for block in blocks], -1)

    def chosen_scores(
        self, scores: Float[Tensor, "*lead option"], chosen: Int[Tensor, "*lead choice"]
    ) -> Float[Tensor, "*lead choice"]:
        """Return the score of the chosen option of each choice."""
        blocks = zip(scores.split(self.sizes, -1), chosen.unbind(-1), strict=True)
        return torch.cat([block.gather(-1, choice[..., None]) for block, choice in blocks], -1)


def one_hot(numbers: Int[Tensor, "*lead"], size: int) -> Float[Tensor, "*lead size"]:
    """Encode numbers as one-hot blocks; numbers outside 0..size-1 become blocks of zeros."""
    return (numbers[..., None] == torch.arange(size, device=numbers.device)).float()
