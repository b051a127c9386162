"""Observations and actions: the inputs of networks, and the options among which they choose."""

from dataclasses import dataclass, fields, replace
from typing import Literal, Self, get_args

import torch
from jaxtyping import Bool, Float, Int, Int64
from torch import Tensor
from torch.nn import functional as F

from icy.core.errors import require_known
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b.agents.cores.core import Device
from icy.s2b.channel import END, Array, sentence_count, sentences
from icy.s2b.episode_streams import Wholes
from icy.s2b.game import Seen
from icy.s2b.settings import GameSettings, Sizes

# -- a player's choices at a step, as numbered options for networks ----------------------------------------------------


Form = Literal["decision", "sentence", "both"]
FORMS: tuple[str, ...] = get_args(Form)
NEVER = -1  # value of the previous choice at the beginning of an episode
OTHER = (0.0, 1.0)  # one-hot code of "the other player made this choice"
Legal = Bool[Tensor, "*lead option"]
Chosen = Int[Tensor, "*lead 1"]


@dataclass(frozen=True)
class Actions:
    """The options of a player at a step. A choice is the number of an option.

    If no message and no decision is expected, only the last option, "none", is legal: an empty message and no
    decision.

    Attributes:
        game: settings of the game, or sizes of a task.
        form: "decision": one choice among decisions; "sentence": one choice among the regular sentences, by their
            number (`icy.s2b.channel.sentences`); "both": one choice among combinations of a decision and a sentence,
            numbered as in the authors' program.

    Example:
        >>> from icy.s2b import GameSettings
        >>> from icy.s2b.agents.networks.observations import Actions
        >>> game = GameSettings()
        >>> [Actions(game, form).width for form in ("decision", "sentence", "both")]
        [3, 260, 519]
    """

    game: GameSettings | Sizes
    form: Form = "decision"

    def __post_init__(self) -> None:
        require_known("form of actions", self.form, FORMS)

    @classmethod
    def of_role(cls, game: GameSettings | Sizes, role: str) -> Self:
        """Return the actions of a speaker or a listener."""
        if role == LISTENER:
            return cls(game, "both" if game.listener_messages else "decision")
        return cls(game, "sentence")

    @property
    def width(self) -> int:
        """Number of options."""
        decisions = self.game.decisions if self.form != "sentence" else 1
        return decisions * self._sentences + 1

    @property
    def _sentences(self) -> int:
        return 1 if self.form == "decision" else sentence_count(self.game.vocab_size, self.game.length)

    def legal_where(self, speak: Bool[Tensor, "*lead"], decide: Bool[Tensor, "*lead"]) -> Legal:
        """Return the mask of legal options, given masks of expected messages (`speak`) and decisions (`decide`)."""
        speak, decide = speak[..., None], decide[..., None]
        expected = {"decision": decide, "sentence": speak}.get(self.form, decide | speak)
        option = torch.arange(self.width - 1, device=decide.device)
        silent, first = option % self._sentences == 0, option // self._sentences == 0
        return torch.cat([expected & (first | decide) & (silent | speak), ~expected], -1)

    def taken(
        self, chosen: Int64[Wholes, "batch 1"]
    ) -> tuple[Int64[Wholes, "batch length"] | None, Int64[Wholes, " batch"] | None]:
        """Convert choices to messages [B, L] and decisions [B]; None for a part that this form does not have."""
        option = chosen[:, 0] * (chosen[:, 0] != self.width - 1)  # "none": the first decision and the empty sentence
        decision = None if self.form == "sentence" else option // self._sentences
        if self.form == "decision":
            return None, decision
        return sentences(self.game.vocab_size, self.game.length)[option % self._sentences], decision

    def one_hot(self, chosen: Chosen) -> Float[Tensor, "*lead option"]:
        """Encode choices as one-hot blocks; NEVER becomes a block of zeros."""
        return one_hot(chosen[..., 0], self.width)

    @property
    def shared_width(self) -> int:
        """Width of a choice as the other player sees it (simplified action decoder; Hu and Foerster 2019)."""
        return self.width + len(OTHER)

    def shared(self, chosen: Chosen) -> Float[Tensor, "*lead shared"]:
        """Encode a greedy choice as the other player sees it: one-hot, then `OTHER`; zeros if none was made."""
        block = self.one_hot(chosen)
        there = block.any(-1, keepdim=True)
        return torch.cat([block, there * torch.tensor(OTHER, device=block.device, dtype=torch.float32)], -1)

    def best(self, scores: Float[Tensor, "*lead option"], legal: Legal) -> Chosen:
        """Return the legal option with the highest score."""
        return scores.masked_fill(~legal, torch.finfo(scores.dtype).min).argmax(-1, keepdim=True)


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
    previous: Chosen
    legal: Legal
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


def observe(
    seen: Seen,
    role: str,
    actions: Actions,
    previous: Int[Tensor, "batch 1"] | None = None,
    earned: Array | None = None,
    extra: Float[Tensor, "batch extra"] | None = None,
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
        previous: the player's choice at the previous step, [B, 1]; None if there was none.
        earned: the reward of the previous step, `Turn.reward`, [B].
        extra: extra input, [B, extra]; it is set to 0 at the beginning of an episode.
        last_message: the message of the previous step, to repeat if a game ends without a new message; None: not
            repeated. With the default masks, the speaker is silent at the feedback, when the listener sees the stimulus
            that the message describes.
    """
    fresh = torch.as_tensor(seen.fresh)
    count, here = len(fresh), fresh.device
    if previous is None:
        previous = torch.full((count, 1), NEVER, device=here, dtype=torch.int64)

    def tensor(array: Array) -> Tensor:
        return torch.as_tensor(array, device=here)

    rewards = torch.zeros(count, device=here, dtype=torch.float32) if earned is None else tensor(earned).float()
    if extra is None:
        extra = torch.zeros(count, 0, device=here, dtype=torch.float32)

    message = tensor(seen.message)
    if last_message is not None:
        message = torch.where((tensor(seen.feedback) & (message == END).all(1))[:, None], last_message, message)
    stimuli = tensor(seen.stimulus).float().flatten(1)  # padded with zeros for slots that the player does not see
    return Observation(
        stimulus=F.pad(stimuli, (0, actions.game.slots * actions.game.width - stimuli.shape[1])),
        message=message,
        speaks=torch.full((count,), role == SPEAKER, device=here, dtype=torch.bool),
        query=tensor(seen.query),
        round=tensor(seen.round),
        result=tensor(seen.result),
        reward=tensor(seen.reward).float(),
        earned=rewards * ~fresh,
        previous=previous.to(here).masked_fill(fresh[:, None], NEVER),
        legal=actions.legal_where(tensor(seen.may_speak), tensor(seen.may_decide)),
        extra=extra.to(here) * ~fresh[:, None],
        fresh=fresh,
    )
