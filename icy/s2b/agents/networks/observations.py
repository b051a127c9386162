"""Observations: the inputs of a network."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from icy.core.registry import SPEAKER
from icy.s2b.agents.cores.core import Device
from icy.s2b.channel import END, Array
from icy.s2b.turn import Seen

from .actions import NEVER, Actions


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
