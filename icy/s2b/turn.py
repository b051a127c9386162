"""The result of a step: what both players observe, and the outcome."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int

from icy.core.registry import SPEAKER

from .channel import Array

UNKNOWN, FAILURE, SUCCESS = 0, 1, 2  # the result of the previous game


@dataclass(frozen=True, eq=False)
class Seen:
    """Observations of one player, in all B episodes.

    Attributes:
        stimulus: the stimuli that the player sees, [B, slots, W].
        message: the tokens that the player hears, [B, L]; the speaker hears its own message if the listener sends none.
        query: whether the game is in the query phase, [B].
        round: number of the round, 0..N; N + 1 when the listener sees the speaker's stimuli, [B].
        result: result of the previous game, UNKNOWN (0), FAILURE (1) or SUCCESS (2), [B].
        reward: reward of the previous game, [B].
        fresh: whether this is the first observation of an episode, [B].
        may_speak: whether a message is legal now, [B].
        may_decide: whether a decision counts now, [B].
        over: whether the episode has ended, so that actions have no effect, [B]; true from the episode's last
            observation on.
        feedback: whether the listener sees the speaker's stimuli now, [B]: once per game.
        idle: whether the episode ended at an earlier observation, so this observation is not new, [B].
    """

    stimulus: Float[Array, "batch slot width"]
    message: Int[Array, "batch length"]
    query: Bool[Array, " batch"]
    round: Int[Array, " batch"]
    result: Int[Array, " batch"]
    reward: Float[Array, " batch"]
    fresh: Bool[Array, " batch"]
    may_speak: Bool[Array, " batch"]
    may_decide: Bool[Array, " batch"]
    over: Bool[Array, " batch"]
    feedback: Bool[Array, " batch"]
    idle: Bool[Array, " batch"]


@dataclass(frozen=True, eq=False)
class Turn:
    """The result of a step, in all B episodes.

    Attributes:
        speaker: the speaker's observations.
        listener: the listener's observations.
        reward: reward of the step, the same for both players, [B].
        done: whether the episode has ended, [B].
        decided: whether the listener made a decision at this step, [B].
        correct: whether the decision was right, [B]; False without a decision.
    """

    speaker: Seen
    listener: Seen
    reward: Float[Array, " batch"]
    done: Bool[Array, " batch"]
    decided: Bool[Array, " batch"]
    correct: Bool[Array, " batch"]

    def seen_by(self, player: str) -> Seen:
        """Return the observations of the speaker or the listener."""
        return self.speaker if player == SPEAKER else self.listener
