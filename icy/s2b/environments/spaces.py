"""Observation spaces, action spaces and action masks of the game, for Gymnasium."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Float, Int8, Shaped
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, unknown
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b.channel import END, sentence_count, sentences
from icy.s2b.game import REWARDS, BatchedGame
from icy.s2b.players.base import Action
from icy.s2b.settings import GameSettings
from icy.s2b.streams import Wholes
from icy.s2b.turn import Seen

FORMS = ("factored", "flat", "role")
MESSAGES = ("one-hot", "tokens")
MOST_SENTENCES = 100_000  # in the flat form, at most
WIDE = 2.0  # bound of stimuli whose samples may leave their section
Arrays = dict[str, Shaped[NDArray[Any], "batch ..."]]
Rewards = Float[NDArray[Any], " batch"]
Flags = Bool[NDArray[Any], " batch"]
Masks = Int8[NDArray[np.int8], "batch choice"]
Mask = Int8[NDArray[np.int8], " choice"]  # of one episode


def observation_space(settings: GameSettings, player: str, messages: str = "one-hot") -> spaces.Dict:
    """Return the observation space of a player.

    `stimulus` holds the numbers of all stimuli that it sees; `message` the tokens that it hears, as a one-hot block
    each or as "tokens"; `role` is 0 for the speaker and 1 for the listener; `phase` is 0 in the support and 1 in the
    query; `round` is 0..N + 1; `previous_result` is 0 before the first result, 1 for a failure and 2 for a success;
    `previous_reward` is the reward that came with it.
    """
    slots = settings.speaker_slots if player == SPEAKER else settings.slots
    low, high = (0.0, 1.0) if settings.representation == "ohe" else (-1.0, 1.0)
    if settings.representation == "scs" and settings.truncate == "none":
        low, high = -WIDE, WIDE
    heard: spaces.Space[Any] = spaces.MultiDiscrete([settings.vocab_size + 1] * settings.length)
    if messages == "one-hot":
        heard = spaces.MultiBinary(settings.length * (settings.vocab_size + 1))
    rewards = np.array(REWARDS)
    return spaces.Dict(
        {
            "stimulus": spaces.Box(low, high, (slots * settings.width,), np.float32),
            "message": heard,
            "role": spaces.Discrete(2),
            "phase": spaces.Discrete(2),
            "round": spaces.Discrete(settings.rounds + 2),
            "previous_result": spaces.Discrete(3),
            "previous_reward": spaces.Box(rewards.min(), rewards.max(), (1,), np.float32),
        }
    )


def observed(seen: Seen, player: str, settings: GameSettings, messages: str = "one-hot") -> Arrays:
    """Return what a player sees as arrays of its observation space, with a leading axis of episodes."""
    count, heard = len(seen.round), seen.message
    if messages == "one-hot":
        heard = np.eye(settings.vocab_size + 1, dtype=np.int8)[heard].reshape(count, -1)
    return {
        "stimulus": seen.stimulus.reshape(count, -1),
        "message": heard,
        "role": np.full(count, int(player == LISTENER)),
        "phase": seen.query.astype(np.int64),
        "round": seen.round,
        "previous_result": seen.result,
        "previous_reward": seen.reward[:, None],
    }


def one_of(arrays: Mapping[str, Shaped[NDArray[Any], "batch ..."]], row: int = 0) -> dict[str, Any]:
    """Return one row of batched arrays."""
    return {name: array[row] for name, array in arrays.items()}


class Actions:
    """The action space of one player in one form, its masks, and the conversion to actions of the game.

    Args:
        settings: settings of the game.
        player: "speaker" or "listener".
        form: "factored": a decision and a token per position (MultiDiscrete), the same for both players; "flat": one
            number for a decision and a sentence, the same for both, the last number for no action (as in MetaRG22);
            "role": only what the player can do: the speaker's tokens, the listener's decision.

    Raises:
        UnknownNameError: an unknown form.
        InvalidSettingError: a channel with too many sentences to number.
    """

    def __init__(self, settings: GameSettings, player: str, form: str) -> None:
        if form not in FORMS:
            raise unknown("form of actions", form, FORMS)
        self.settings, self.player, self.form = settings, player, form
        if form == "flat" and sentence_count(settings.vocab_size, settings.length) > MOST_SENTENCES:
            raise InvalidSettingError(
                f"With {settings.vocab_size} tokens in messages of {settings.length} there are more than "
                f"{MOST_SENTENCES:,} sentences to number; take actions 'factored', or a smaller channel."
            )

    @property
    def _speaks(self) -> bool:
        return self.form != "role" or self.player == SPEAKER or self.settings.listener_messages

    @property
    def _decides(self) -> bool:
        return self.form != "role" or self.player == LISTENER

    @cached_property
    def _sentences(self) -> Wholes:
        return sentences(self.settings.vocab_size, self.settings.length)

    @cached_property
    def sizes(self) -> list[int]:
        """Number of choices for the decision, if there is one, and for each token."""
        tokens = [self.settings.vocab_size + 1] * self.settings.length if self._speaks else []
        return [self.settings.decisions] * self._decides + tokens

    @cached_property
    def space(self) -> spaces.Space[Any]:
        """The action space."""
        if self.form == "flat":
            count = sentence_count(self.settings.vocab_size, self.settings.length)
            return spaces.Discrete(self.settings.decisions * count + 1)
        return spaces.MultiDiscrete(self.sizes) if self._speaks else spaces.Discrete(self.sizes[0])

    def read(self, actions: Any) -> Action:
        """Convert actions of this form, with a leading axis of episodes, to a player's."""
        given = np.asarray(actions, dtype=np.int64)
        if self.form == "flat":
            count = len(self._sentences)
            given = np.where((given < 0) | (given >= self.settings.decisions * count), 0, given)
            return Action(self._sentences[given % count], given // count)
        if not self._speaks:
            return Action(None, given)
        given = given.reshape(len(given), len(self.sizes))
        return Action(given[:, 1:], given[:, 0]) if self._decides else Action(given, None)

    def forbidden(self, actions: Any, masks: Masks) -> Bool[NDArray[np.bool_], " batch"]:
        """Return where actions are invalid, or not allowed by masks [B, choices]: [B]."""
        given = np.asarray(actions, dtype=np.int64).reshape(len(masks), -1)
        sizes = np.array([masks.shape[1]] if self.form == "flat" else self.sizes)
        there = (given >= 0) & (given < sizes)
        places = np.where(there, given, 0) + np.cumsum(sizes) - sizes
        allowed: NDArray[np.bool_] = np.all(there & (np.take_along_axis(masks, places, 1) > 0), axis=1)
        return ~allowed

    def masks(self, seen: Seen) -> Masks:
        """Return the legal choices, [B, choices], for a flat action, or for the decision and then each token.

        There is always a legal choice: if a player has nothing to decide or say, 0, or in the flat form the last.
        """
        if self.form == "flat":
            return self._flat_masks(seen)
        parts = []
        places = [seen.may_decide] * self._decides + [seen.may_speak] * (len(self.sizes) - self._decides)
        for size, legal in zip(self.sizes, places, strict=True):
            part = np.repeat(legal[:, None], size, axis=1)
            part[:, 0] = True
            parts.append(part)
        return np.concatenate(parts, axis=1).astype(np.int8)

    def _flat_masks(self, seen: Seen) -> NDArray[np.int8]:
        count, decisions = len(self._sentences), self.settings.decisions
        decide, speak = seen.may_decide[:, None], seen.may_speak[:, None]
        if self.settings.masks == "near32":  # every action but "no action", or that alone
            legal = np.repeat(decide | speak, decisions * count, axis=1)
        else:
            silent = np.arange(decisions * count) % count == END
            undecided = np.arange(decisions * count) < count
            legal = (decide & silent) | (speak & undecided)
        return np.concatenate([legal, ~legal.any(1, keepdims=True)], axis=1).astype(np.int8)

    def sampling_mask(self, mask: Mask) -> Any:
        """Convert the mask of one episode to the form that `space.sample` takes."""
        if not isinstance(self.space, spaces.MultiDiscrete):
            return mask
        return tuple(np.split(mask, np.cumsum(self.sizes)[:-1]))


def privileged(game: BatchedGame) -> Arrays:
    """Return what no player sees: the meanings of both players' stimuli, the space, and the right decision."""
    return {
        "speaker_latents": game.latents(SPEAKER),
        "listener_latents": game.latents(LISTENER),
        "sizes": game.sizes,
        "answer": game.answer,
    }
