"""Observation spaces, action spaces and action masks of the game, for Gymnasium."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces
from jaxtyping import Bool, Float32, Int8, Int64, Shaped
from numpy.typing import ArrayLike, NDArray

from icy.core.checks import true_or_false
from icy.core.errors import InvalidSettingError, quoted, require_known
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b.channel import END, sentence_count, sentences
from icy.s2b.episode_streams import Wholes
from icy.s2b.game import REWARDS, BatchedGame, Seen
from icy.s2b.players.interface import Action
from icy.s2b.settings import GameSettings

ActionsName = Literal["factored", "flat", "role"]
MessagesName = Literal["one-hot", "tokens"]
ObservationsName = Literal["dict", "box"]
FORMS, MESSAGES, OBSERVATIONS = map(get_args, (ActionsName, MessagesName, ObservationsName))
MOST_SENTENCES = 100_000  # largest number of sentences in the flat format
WIDE = 2.0  # bound of stimuli with samples that may leave their section
Space = spaces.Space[Any]
AnyArray = NDArray[Any]
PerEpisode = Shaped[AnyArray, " batch"]
Pixels = Shaped[AnyArray, "height width 3"]
Infos = dict[str, Any]
Arrays = dict[str, Shaped[NDArray[Any], "batch ..."]]
Flags = Bool[NDArray[np.bool_], " batch"]
Masks = Int8[NDArray[np.int8], "batch choice"]
Mask = Int8[NDArray[np.int8], " choice"]  # of a single episode
Observed = Arrays | Float32[NDArray[np.float32], "batch number"]
OneObserved = Infos | Float32[NDArray[np.float32], " _"]  # of a single episode


def observation_space(settings: GameSettings, player: str, messages: str = "one-hot") -> spaces.Dict:
    """Return the observation space of a player.

    `stimulus` holds the numbers of all stimuli that the player sees, and `message` the tokens that it hears, as one-hot
    blocks or as "tokens". `role` is 0 for the speaker and 1 for the listener; `phase` is 0 in the support and 1 in the
    query; `round` is 0..N + 1; `previous_result` is 0 before the first result, 1 for a failure and 2 for a success;
    `previous_reward` is the reward of the previous game.
    """
    slots = settings.speaker_slots if player == SPEAKER else settings.slots
    low, high = (0.0, 1.0) if settings.representation == "ohe" else (-1.0, 1.0)
    if settings.representation == "scs" and settings.truncate == "none":
        low, high = -WIDE, WIDE
    heard: Space = spaces.MultiDiscrete([settings.vocab_size + 1] * settings.length)
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
    """Return a player's observations by key of its observation space, with a leading axis of episodes."""
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


def one_of(batched: Any) -> Any:
    """Select the first row of a batched array, or of each array in a dictionary."""
    return {name: array[0] for name, array in batched.items()} if isinstance(batched, Mapping) else batched[0]


def flat_space(features: spaces.Dict) -> spaces.Box:
    """Return the float32 Box of all features, concatenated into one row."""
    box = spaces.flatten_space(features)
    assert isinstance(box, spaces.Box)
    return spaces.Box(box.low.astype(np.float32), box.high.astype(np.float32), dtype=np.float32)


def flattened(features: spaces.Dict, arrays: Arrays) -> Float32[NDArray[np.float32], "batch number"]:
    """Concatenate batched features into one row per episode, in the layout of `gymnasium.spaces.flatten`."""
    rows = []
    for name, space in features.items():
        values = np.asarray(arrays[name]).reshape(len(arrays[name]), -1)
        if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
            sizes = space.nvec if isinstance(space, spaces.MultiDiscrete) else [space.n]
            values = np.concatenate([np.eye(size)[column] for size, column in zip(sizes, values.T, strict=True)], 1)
        rows.append(values)
    return np.concatenate(rows, axis=1).astype(np.float32)


class ObservationForm:
    """Format of observations: features as a dictionary or a box, with or without the action mask.

    Args:
        features: space of the features.
        choices: number of choices in the action mask.
        observations: "dict": the features by name; "box": all features as one float32 row, as
            `gymnasium.spaces.flatten` orders them.
        observe_mask: whether observations include the action mask: as one more feature, "action_mask"; with "box", as
            {"observation": row of features, "action_mask": mask}.

    Raises:
        UnknownNameError: an unknown format of observations.
        InvalidSettingError: `observe_mask` is not True or False.
    """

    def __init__(self, features: spaces.Dict, choices: int, observations: str, observe_mask: bool) -> None:
        require_known("form of observations", observations, OBSERVATIONS)
        self.features, self.box = features, observations == "box"
        self.observe_mask = true_or_false("observe_mask", observe_mask)
        self.space: Space = flat_space(features) if self.box else features
        if observe_mask:
            parts = {"observation": self.space} if self.box else dict(features)
            self.space = spaces.Dict({**parts, "action_mask": spaces.Box(0, 1, (choices,), np.int8)})

    def of(self, arrays: Arrays, masks: Masks) -> Observed:
        """Convert features and masks to observations of this format, with a leading axis of episodes."""
        mask: Arrays = {"action_mask": masks.copy()} if self.observe_mask else {}
        if not self.box:
            return arrays | mask
        row = flattened(self.features, arrays)
        return {"observation": row} | mask if mask else row


class RowMultiDiscrete(spaces.MultiDiscrete):
    """A MultiDiscrete space with a `sample` that also takes a mask as one row: the choices of each number in turn."""

    def sample(
        self, mask: Mask | tuple[Int8[NDArray[np.int8], " _"], ...] | None = None, probability: ArrayLike | None = None
    ) -> Int64[NDArray[np.int64], " number"]:
        """Draw an action; see `gymnasium.spaces.MultiDiscrete.sample`."""
        if isinstance(mask, np.ndarray):
            mask = tuple(np.split(mask, np.cumsum(self.nvec)[:-1]))
        drawn: NDArray[np.int64] = super().sample(mask, probability)  # type: ignore[arg-type]
        return drawn


def whole_actions(actions: object, shape: tuple[int, ...]) -> Int64[NDArray[np.int64], "..."]:
    """Check the shape of actions, and convert them to int64.

    Raises:
        InvalidSettingError: the shape differs, or actions are not whole numbers.
    """
    try:
        found = np.asarray(actions)
    except ValueError:  # lists of unequal lengths
        found = np.asarray(actions, dtype=object)
    if found.dtype.kind not in "iubf" or not ((np.trunc(found) == found) & (np.abs(found) < 2**53)).all():
        raise InvalidSettingError(f"Actions must be whole numbers, not {quoted(actions)}.")
    if found.shape != shape:
        one = shape[0] == 1 and found.shape[:1] == (1,)  # an environment of one episode adds this axis
        wanted, other = (shape[1:], found.shape[1:]) if one else (shape, found.shape)
        raise InvalidSettingError(f"Actions must have the shape {wanted}, not {other}.")
    return found.astype(np.int64)


def checked_options(options: Mapping[str, object] | None, known: Sequence[str] = ()) -> None:
    """Raise an error if `reset` gets options, because these environments have none.

    Raises:
        InvalidSettingError: an option is not in `known`, or `options` is not a dictionary.
    """
    if options is not None and not isinstance(options, Mapping):
        raise InvalidSettingError(f"Options of reset() must be a dictionary, not {quoted(options)}.")
    for name in options or ():
        if name not in known:
            raise InvalidSettingError(
                f"reset() has no option {quoted(name)}; give settings of the environment when you make it."
            )


class ActionForm:
    """Format of one player's actions: its action space, its masks, and the conversion to actions of the game.

    Args:
        settings: settings of the game.
        player: "speaker" or "listener".
        form: "factored": a decision and a token per position (MultiDiscrete), for both players; "flat": one number for
            a decision and a sentence, for both players, and the last number for no action (MetaRG22); "role": only the
            player's own choices: the speaker's tokens, the listener's decision.

    Raises:
        UnknownNameError: an unknown format of actions.
        InvalidSettingError: a channel with too many sentences to number.
    """

    def __init__(self, settings: GameSettings, player: str, form: str) -> None:
        require_known("form of actions", form, FORMS)
        self.settings, self.player, self.form = settings, player, form
        if form == "flat" and sentence_count(settings.vocab_size, settings.length) > MOST_SENTENCES:
            raise InvalidSettingError(
                f"With {settings.vocab_size} tokens in messages of {settings.length} there are more than "
                f"{MOST_SENTENCES:,} sentences to number; take actions 'factored', or a smaller channel."
            )

        self._speaks = form != "role" or player == SPEAKER or settings.listener_messages
        self._decides = form != "role" or player == LISTENER
        tokens = [settings.vocab_size + 1] * settings.length if self._speaks else []
        self.sizes = [settings.decisions] * self._decides + tokens  # choices of the decision, and of each token
        self.space: Space = RowMultiDiscrete(self.sizes) if self._speaks else spaces.Discrete(self.sizes[0])
        if form == "flat":
            self.space = spaces.Discrete(settings.decisions * sentence_count(settings.vocab_size, settings.length) + 1)
        # The number of choices in the action mask.
        self.choices = int(self.space.n) if isinstance(self.space, spaces.Discrete) else sum(self.sizes)

    @cached_property
    def _sentences(self) -> Wholes:
        return sentences(self.settings.vocab_size, self.settings.length)

    def checked_actions(self, actions: object, episodes: int) -> Int64[NDArray[np.int64], "..."]:
        """Check the shape of actions with a leading axis of episodes, and convert them to int64.

        Raises:
            InvalidSettingError: actions have the wrong shape, or are not whole numbers.
        """
        return whole_actions(actions, (episodes, *(self.space.shape or ())))

    def read(self, given: Int64[NDArray[np.int64], "batch ..."]) -> Action:
        """Convert actions of this format, with a leading axis of episodes, to an Action of the game."""
        if self.form == "flat":
            count = len(self._sentences)
            given = np.where((given < 0) | (given >= self.settings.decisions * count), 0, given)
            return Action(self._sentences[given % count], given // count)
        if not self._speaks:
            return Action(None, given)
        return Action(given[:, 1:], given[:, 0]) if self._decides else Action(given, None)

    def forbidden(
        self, actions: Int64[NDArray[np.int64], "batch ..."], masks: Masks
    ) -> Bool[NDArray[np.bool_], " batch"]:
        """Return which actions are invalid, or forbidden by masks [B, choices], as a mask, [B]."""
        given = actions.reshape(len(masks), -1)
        sizes = np.array([masks.shape[1]] if self.form == "flat" else self.sizes)
        there = (given >= 0) & (given < sizes)
        places = np.where(there, given, 0) + np.cumsum(sizes) - sizes
        allowed: NDArray[np.bool_] = np.all(there & (np.take_along_axis(masks, places, 1) > 0), axis=1)
        return ~allowed

    def masks(self, seen: Seen) -> Masks:
        """Return the action masks, [B, choices]: of the flat action, or of the decision followed by each token.

        One choice is always legal: a player that may not decide or speak may choose 0, or the last action of the flat
        format.
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
        if self.settings.masks == "near32":  # every action except "no action", or only "no action"
            legal = np.repeat(decide | speak, decisions * count, axis=1)
        else:
            silent = np.arange(decisions * count) % count == END
            undecided = np.arange(decisions * count) < count
            legal = (decide & silent) | (speak & undecided)
        return np.concatenate([legal, ~legal.any(1, keepdims=True)], axis=1).astype(np.int8)


def privileged(game: BatchedGame) -> Arrays:
    """Return hidden facts: the meanings of both players' stimuli, the space, and the right decision."""
    return {
        "speaker_latents": game.latents(SPEAKER),
        "listener_latents": game.latents(LISTENER),
        "sizes": game.sizes,
        "answer": game.answer,
    }
