"""Observations and actions: the inputs of networks, and the options among which they choose."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, Self, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from icy.core.errors import require_known
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b.agents.cores.core import Device
from icy.s2b.channel import END, Array, regular, sentence_count, sentences
from icy.s2b.game import Seen
from icy.s2b.settings import GameSettings, Sizes

# -- a player's choices at a step, as numbered options for networks ----------------------------------------------------


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
        >>> from icy.s2b.agents.networks.observations import Actions
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


# -- observations: the inputs of a network -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Observation:
    """Observations of one player in B episodes, or at T steps of B episodes.

    Attributes:
        stimulus: the stimuli of all slots, concatenated; zeros for slots that the player does not see.
        message: the tokens that the player receives.
        speaks: whether the player is the speaker.
        query: whether the game is in the query phase.
        round: number of the round, 0..N; N + 1 at the feedback, when the listener sees the speaker's stimuli.
        result: result of the previous game: unknown (0), failure (1) or success (2).
        reward: reward of the previous game.
        earned: reward of the previous step; 0 at the beginning of an episode.
        previous: the player's choice at the previous step; NEVER (-1) at the beginning of an episode.
        legal: mask of the legal options.
        extra: extra input, such as the partner's choice in SAD; its width is `NetworkSettings.extra`.
        fresh: whether an episode begins, for the `resets` of cores. It is not an input of the network.
    """

    stimulus: Float[Tensor, "*lead stimulus"]
    message: Int[Tensor, "*lead token"]
    speaks: Bool[Tensor, "*lead"]
    query: Bool[Tensor, "*lead"]
    round: Int[Tensor, "*lead"]
    result: Int[Tensor, "*lead"]
    reward: Float[Tensor, "*lead"]
    earned: Float[Tensor, "*lead"]
    previous: Int[Tensor, "*lead choice"]
    legal: Bool[Tensor, "*lead option"]
    extra: Float[Tensor, "*lead extra"]
    fresh: Bool[Tensor, "*lead"]

    def __getitem__(self, which: Array) -> "Observation":
        """Select steps or episodes."""
        return Observation(**{f.name: getattr(self, f.name)[which] for f in fields(self)})

    def on(self, device: Device) -> "Observation":
        """Move the observation to a torch device."""
        if self.fresh.device == torch.device(device or "cpu"):
            return self
        return Observation(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})

    def without_own(self) -> "Observation":
        """Return a copy without the player's previous choice, and without the previous result and rewards.

        They become NEVER and zeros, so the shapes stay and the same network takes observations with and without them.
        """
        nothing = {name: torch.zeros_like(getattr(self, name)) for name in ("result", "reward", "earned")}
        return replace(self, **nothing, previous=torch.full_like(self.previous, NEVER))

    @classmethod
    def stack(cls, steps: Sequence["Observation"]) -> "Observation":
        """Stack the observations of several steps along a new first axis."""
        return cls(**{f.name: torch.stack([getattr(step, f.name) for step in steps]) for f in fields(cls)})


def observe(
    seen: Seen,
    role: str,
    actions: Actions,
    previous: Int[Tensor, "batch choice"] | None = None,
    earned: Array | None = None,
    extra: Float[Tensor, "batch extra"] | None = None,
    device: Device = None,
    last_message: Int[Tensor, "batch token"] | None = None,
) -> Observation:
    """Convert a player's view of the game to the input of a network.

    A previous choice belongs to the episode in which it was played, so the first observation of an episode has none.
    With autoreset, the game ignores the actions of the step that begins the next episode, so the choice before a fresh
    observation was not played.

    Args:
        seen: the player's view of the game, as NumPy arrays or tensors.
        role: "speaker" or "listener".
        actions: the player's actions.
        previous: the player's choice at the previous step, [B, choices]; None if there was none.
        earned: the reward of the previous step, `Turn.reward`, [B].
        extra: extra input, [B, extra]; it is set to 0 at the beginning of an episode.
        device: torch device; by default the device of the arrays.
        last_message: the message of the previous step, to repeat if a game ends without a new message; None: not
            repeated. With the default masks, the speaker is silent at the feedback, when the listener sees the stimulus
            that the message describes.
    """
    fresh = torch.as_tensor(seen.fresh, device=device)
    count, here = len(fresh), fresh.device
    if previous is None:
        previous = torch.full((count, len(actions.sizes)), NEVER, device=here, dtype=torch.int64)

    def tensor(array: Array) -> Tensor:
        return torch.as_tensor(array, device=here)

    rewards = torch.zeros(count, device=here, dtype=torch.float32) if earned is None else tensor(earned).float()
    if extra is None:
        extra = torch.zeros(count, 0, device=here, dtype=torch.float32)

    stimuli = tensor(seen.stimulus).float().flatten(1)  # padded with zeros for slots that the player does not see
    return Observation(
        stimulus=F.pad(stimuli, (0, actions.game.slots * actions.game.width - stimuli.shape[1])),
        message=_message(tensor(seen.message), tensor(seen.feedback), last_message),
        speaks=torch.full((count,), role == SPEAKER, device=here, dtype=torch.bool),
        query=tensor(seen.query),
        round=tensor(seen.round),
        result=tensor(seen.result),
        reward=tensor(seen.reward).float(),
        earned=rewards * ~fresh,
        previous=previous.to(here).masked_fill(fresh[:, None], NEVER),
        legal=actions.legal(seen, here),
        extra=extra.to(here) * ~fresh[:, None],
        fresh=fresh,
    )


def _message(message: Tensor, feedback: Tensor, last_message: Tensor | None) -> Tensor:
    if last_message is None:
        return message
    return torch.where((feedback & (message == END).all(1))[:, None], last_message, message)
