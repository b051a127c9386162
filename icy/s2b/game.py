"""The referential game for thousands of episodes at once.

All random numbers are drawn when an episode is dealt (`icy.s2b.episodes`). The game itself keeps counters, messages and
scores, in NumPy arrays or in torch tensors on any device.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Unpack

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Int64
from numpy.typing import ArrayLike

from icy.core.checks import whole_number
from icy.core.errors import IcyError, InvalidSettingError, require_known
from icy.core.registry import LISTENER, PLAYERS, SPEAKER

from .channel import END, Array, regular
from .episode_streams import Reals, SavedState, Wholes, seeds_of
from .episodes import Episodes, deal, ragged
from .options import GameOptions
from .settings import GameSettings

if TYPE_CHECKING:
    import torch


# -- the result of a step: what both players observe, and the outcome --------------------------------------------------


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


# -- scores of episodes, from counts of the listener's decisions -------------------------------------------------------


GAMES, RIGHT, YES, KEPT = range(4)  # counts [B, phase, 4]: games, right decisions, "yes", target retained


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of B episodes; NaN where an episode has played no game of the phase.

    Attributes:
        zsct: zero-shot compositional test accuracy, the share of right decisions in the query phase, [B].
        support: the share of right decisions in the support phase, [B].
        yes: the share of query games in which the listener decided that it saw the target's meaning, [B].
        kept: the share of query games in which the listener did see the target's meaning, [B].
        illegal: number of illegal actions, of the speaker and of the listener, [B, 2].
    """

    zsct: Float64[Reals, " batch"]
    support: Float64[Reals, " batch"]
    yes: Float64[Reals, " batch"]
    kept: Float64[Reals, " batch"]
    illegal: Int64[Wholes, "batch player=2"]

    @classmethod
    def join(cls, parts: list["Scores"]) -> "Scores":
        """Concatenate the scores of several batches."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))


OfEpisodes = Int[Array, "batch={self.episodes}"]

STATE = ("_round", "_result", "_previous", "_done", "_fresh", "_idle", "_heard", "_heard_back", "_counts")
OUTCOME_FIELDS = ("decided", "correct", "reward")  # outcome of the previous step, in a turn
REWARDS = ((0.0, 1.0), (-2.0, 1.0))  # for a wrong and a right decision, in the support and in the query


class BatchedGame:
    """Referential games of many episodes, played step by step.

    An episode depends only on its seed: a batch does not change it. Both players act at every step, and hear each
    other's messages at the next step.

    Args:
        settings: settings of the game; or give them by name, as in `BatchedGame(shots=2, samples=4, episodes=64)`.
        episodes: number of episodes to play at once, B.
        autoreset: begin the next episode of a seed at the step after an episode ends; the actions of that step are
            ignored. Otherwise an episode that has ended stays as it is.
        ahead: with autoreset, number of episodes to deal in advance per slot, which is faster.
        device: torch device, such as "cuda", for tensors; by default all arrays are NumPy arrays.
        **given: settings by name, see GameSettings.

    Raises:
        IcyError: settings that are not accepted.

    Example:
        >>> import numpy as np
        >>> from icy.s2b import BatchedGame
        >>> game = BatchedGame(episodes=2)
        >>> turn = game.reset(seed=1)
        >>> turn.listener.stimulus.shape, game.games.tolist()
        ((2, 1, 3), [17, 16])
        >>> turn = game.step(said=np.array([[1, 2, 3], [3, 2, 1]]))
        >>> turn.listener.round.tolist(), bool(turn.listener.may_decide.all())
        ([1, 1], True)
        >>> turn = game.step(decided=np.array([0, 1]))
        >>> turn.correct.tolist(), turn.reward.tolist()
        ([False, False], [0.0, 0.0])
    """

    def __init__(
        self,
        settings: GameSettings | None = None,
        *,
        episodes: int = 1,
        autoreset: bool = False,
        ahead: int = 4,
        device: "torch.device | str | None" = None,
        **given: Unpack[GameOptions],
    ) -> None:
        self.settings = GameSettings.of(settings, **given)
        self.episodes = whole_number("number of episodes", episodes)
        self.autoreset, self.ahead = autoreset, whole_number("ahead", ahead, least=0) if autoreset else 0
        self.device = device
        self._turn: Turn | None = None
        self._episode: Array  # index of each slot's episode among the dealt episodes, [B]
        self._at: Array  # index of each slot's game among the dealt games, [B]
        self._false: Array
        self._no_reward: Array

    # -- episodes ------------------------------------------------------------------------------------------------------

    def reset(self, seed: int | None = None, seeds: Iterable[int] | None = None) -> Turn:
        """Begin an episode in every slot.

        Args:
            seed: seed of the first slot; the other slots take the following seeds. Without a seed, the next episodes of
                the current seeds begin; at the first reset, the seeds are random.
            seeds: seed of every slot.

        Raises:
            InvalidSettingError: the number of seeds differs from the number of slots, or a seed that is not a whole
                number from 0 to 2**64 - 1.
        """
        if seed is None and seeds is None and self._turn is not None:
            start = self._dealt.numbers[self.cpu(self._episode)] + 1
        else:
            self.seeds, start = seeds_of(self.episodes, seed, seeds), np.zeros(self.episodes, dtype=np.int64)
        self._hold(*self._deal(start, np.full(self.episodes, 1 + self.ahead)))
        self._episode = self._array(self._first_of_slot)
        self._begin()
        return self._observe(self._false, self._false, self._no_reward)

    def _deal(self, start: Wholes, counts: Wholes) -> tuple[Episodes, Wholes]:
        """Deal `counts` episodes per slot, from number `start` of its seed on, and return the slot of each episode."""
        slots = np.repeat(np.arange(self.episodes), counts)
        return deal(self.settings, self.seeds[slots], ragged(start, counts)), slots

    def _hold(self, dealt: Episodes, slots: Wholes) -> None:
        """Use these episodes, sorted by slot, from now on."""
        self._dealt, self._slots = dealt, slots
        self._first_of_slot, after = (
            np.searchsorted(slots, np.arange(self.episodes), side=s) for s in ("left", "right")
        )
        self._last_of_slot = after - 1
        self._data = dealt if self.device is None else dealt.on(self.device)
        self._end, self._last = self._data.first + self._data.games - 1, self._array(self._last_of_slot)

    def _begin(self) -> None:
        """Set the state of every slot to the beginning of its episode."""
        length = self.settings.length
        self._at = self._data.first[self._episode]
        self._round, self._result = self._zeros(), self._zeros()
        self._false = self._round != 0
        self._no_reward = 0.0 * self._pay[self._round, self._round]
        self._previous = self._no_reward
        self._done, self._fresh, self._idle = self._false, ~self._false, self._false
        self._heard, self._heard_back = (self._zeros(length) for _ in range(2))
        self.illegal = {player: self._zeros() for player in PLAYERS}
        self._counts = self._array(np.zeros((self.episodes, 2, KEPT + 1), dtype=np.int64))
        self._initial = {name: getattr(self, name) for name in STATE if name not in ("_fresh", "_idle")}

    def _begin_next(self, ended: Array) -> None:
        """Begin the next episode in the slots with an ended episode."""
        if bool((ended & (self._episode == self._last)).any()):
            self._refill()
        where = self._xp.where
        self._episode = self._episode + 1 * ended
        self._at = where(ended, self._data.first[self._episode], self._at)
        for name, initial in self._initial.items():
            now = getattr(self, name)
            setattr(self, name, where(ended.reshape(-1, *[1] * (now.ndim - 1)), initial, now))
        self._fresh = ended
        self.illegal = {player: count * (1 * ~ended) for player, count in self.illegal.items()}

    def _refill(self) -> None:
        """Deal new episodes for every slot, and drop ended episodes."""
        episode, at = self.cpu(self._episode), self.cpu(self._at)
        played = at - self._dealt.first[episode]
        kept = np.flatnonzero(np.arange(len(self._dealt)) >= episode[self._slots])
        unused = self._last_of_slot - episode
        more, slots = self._deal(self._dealt.numbers[self._last_of_slot] + 1, self.ahead + 1 - unused)
        slots = np.concatenate([self._slots[kept], slots])
        order = np.argsort(slots, kind="stable")
        self._hold(Episodes.join([self._dealt.take(kept), more]).take(order), slots[order])
        self._episode = self._array(self._first_of_slot)
        self._at = self._data.first[self._episode] + self._array(played)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self, said: Array = None, decided: Array = None, answered: Array = None) -> Turn:
        """Play one step of both players in all episodes.

        Illegal and invalid actions are replaced (by an empty message, or decision 0) and counted in `illegal`.

        Args:
            said: the speaker's message, [B, L]; None is the empty message.
            decided: the listener's decision, [B]; None is decision 0.
            answered: the listener's message, [B, L]; None is the empty message.

        Raises:
            IcyError: before the first reset.
        """
        before, ended = self.turn, self._done
        asked = before.listener.may_decide
        said, bad_said = self._message(SPEAKER, said)
        decided, bad_decided = self._decision(decided)
        answered, bad_answered = self._message(LISTENER, answered)
        self._count_illegal(SPEAKER, bad_said)
        self._count_illegal(LISTENER, 1 * bad_decided + 1 * bad_answered)
        correct = asked & (decided == self._data.answer[self._at])
        reward = self._xp.where(asked, self._pay[1 * self._data.query[self._at], 1 * correct], self._no_reward)
        self._count(asked, correct, decided)
        rows = self._episode[:, None]  # each player hears the other's tokens renamed
        self._heard = self._data.heard[rows, said]
        self._heard_back = self._data.heard_back[rows, answered] if self.settings.listener_messages else said
        self._advance(asked, correct, reward)
        if self.autoreset and bool(ended.any()):
            self._begin_next(ended)
        self._idle = ended & self._done
        return self._observe(asked, correct, reward)

    def _count(self, asked: Array, correct: Array, decided: Array) -> None:
        """Count games, right decisions, and games in which the listener chose a stimulus or should have, by phase."""
        if not bool(asked.any()):
            return
        slots, query = self.settings.slots, self._data.query[self._at]
        what = asked, correct, asked & (decided < slots), asked & (self._data.answer[self._at] < slots)
        counted = 1 * self._xp.stack(what, 1)
        self._counts = self._counts + self._xp.stack((~query[:, None] * counted, query[:, None] * counted), 1)

    def _advance(self, asked: Array, correct: Array, reward: Array) -> None:
        """Advance the episodes that have not ended to their next round or game."""
        where = self._xp.where
        last = self._at == self._end[self._episode]
        over = self._round == (self.settings.rounds + 1) if self.settings.feedback else asked
        onward = over & ~last
        self._result = where(asked, 1 + correct, self._result)
        self._previous = where(asked, reward, self._previous)
        self._at = self._at + onward
        self._round = where(self._done, self._round, (self._round + 1) * (1 * ~onward))
        self._done = self._done | (asked & last)
        self._fresh = self._false

    # -- actions -------------------------------------------------------------------------------------------------------

    def taken(self, said: Array = None, decided: Array = None, answered: Array = None) -> tuple[Array, Array, Array]:
        """Return the actions as the game would correct them, without playing them.

        Args:
            said: the speaker's message, [B, L], or None.
            decided: the listener's decision, [B], or None.
            answered: the listener's message, [B, L], or None.

        Returns:
            The two messages and the decisions: regular messages, empty where illegal or invalid; decisions, 0 where
                invalid.

        Raises:
            InvalidSettingError: an array with another shape, or with numbers that are not whole.
        """
        said, answered = (self._message(p, tokens)[0] for p, tokens in ((SPEAKER, said), (LISTENER, answered)))
        return said, self._decision(decided)[0], answered

    def _message(self, player: str, tokens: Array) -> tuple[Array, Array]:
        """Return corrected messages, [B, L], and a mask of messages that were illegal or had unknown tokens, [B]."""
        nothing = self._zeros(self.settings.length)
        if tokens is None:
            return nothing, self._false
        tokens = self._checked_array(tokens, (self.episodes, self.settings.length), f"The messages of the {player}")
        known, some, legal = ~self._false, self._false, self.turn.seen_by(player).may_speak
        for column in tokens.T:
            known = known & (column >= 0) & (column <= self.settings.vocab_size)
            some = some | (column != END)
        if not bool(legal.any()):
            return nothing, ~known | some
        return regular(tokens * (1 * (legal & known))[:, None]), ~known | (some & ~legal)

    def _decision(self, decided: Array) -> tuple[Array, Array]:
        """Return the corrected decisions, [B], and a mask of decisions that were illegal or unknown, [B]."""
        if decided is None:
            return self._zeros(), self._false
        decided = self._checked_array(decided, (self.episodes,), "Decisions")
        known = (decided >= 0) & (decided < self.settings.decisions)
        return decided * (1 * known), ~known | (~self.turn.listener.may_decide & (decided != 0))

    def _checked_array(self, array: Array, shape: tuple[int, ...], what: str) -> Array:
        array = self._array(array)
        if tuple(array.shape) != shape:
            raise InvalidSettingError(f"{what} must have the shape {shape}, not {tuple(array.shape)}.")
        if not str(array.dtype).rpartition(".")[2].startswith(("int", "uint", "bool")):
            raise InvalidSettingError(f"{what} must be whole numbers, not {array.dtype}.")
        return 1 * array

    def _count_illegal(self, player: str, unwanted: Array) -> None:
        self.illegal[player] = self.illegal[player] + unwanted * (1 * ~self._done)

    # -- observations --------------------------------------------------------------------------------------------------

    def _observe(self, decided: Array, correct: Array, reward: Array) -> Turn:
        """Return the current observations and the outcome of the step as a Turn."""
        speaker, listener = self._stimuli()
        settings, query = self.settings, self._data.query[self._at]
        going = ~self._done
        talk, asked = going & (self._round < settings.rounds), going & (self._round == settings.rounds)
        free = settings.masks == "near32"
        speaks = going if free else talk
        answers = (asked if free else talk) if settings.listener_messages else self._false
        shared = query, self._round, self._result, self._previous, self._fresh
        told = (self._round == settings.rounds + 1) & ~self._idle if settings.feedback else self._false
        after = self._done, told, self._idle
        self._turn = Turn(
            Seen(speaker, self._heard_back, *shared, speaks, self._false, *after),
            Seen(listener, self._heard, *shared, answers, asked, *after),
            reward, self._done, decided, correct,
        )  # fmt: skip
        return self._turn

    def _stimuli(self) -> tuple[Array, Array]:
        """Return the stimuli that each player sees; at the end of a game the listener sees the speaker's stimuli."""
        speaker, listener = self._data.speaker[self._at], self._data.listener[self._at]
        if not self.settings.feedback:
            return speaker, listener
        shown = self._round == (self.settings.rounds + 1)
        if not bool(shown.any()):  # episodes that began together are always in the same round
            return speaker, listener
        view = speaker
        if self.settings.view == "partial" and self.settings.distractors:
            view = 0 * listener
            view[:, :1] = speaker
        if bool(shown.all()):
            return speaker, view
        return speaker, self._xp.where(shown[:, None, None], view, listener)

    @property
    def turn(self) -> Turn:
        """The result of the last step or reset."""
        self._require_begun()
        assert self._turn is not None
        return self._turn

    @property
    def begun(self) -> bool:
        """Whether the game has been reset at least once."""
        return self._turn is not None

    def _require_begun(self) -> None:
        if not self.begun:
            raise IcyError("The game has not begun; call reset() first.")

    # -- state ---------------------------------------------------------------------------------------------------------

    def state(self) -> SavedState:
        """Return the state as lists of numbers and dicts of lists; a game that loads it continues bit for bit.

        An episode depends only on its seed and number, so the state does not include its stimuli.
        """
        last = self.turn
        now = {name: self.cpu(getattr(self, name)).tolist() for name in STATE}
        return now | {
            "seeds": self.seeds.tolist(),
            "episodes": self.cpu(self.episode_number).tolist(),
            "games": self.cpu(self.game_number).tolist(),
            "illegal": {player: self.cpu(count).tolist() for player, count in self.illegal.items()},
            "turn": {name: self.cpu(getattr(last, name)).tolist() for name in OUTCOME_FIELDS},
        }

    def load(self, state: SavedState) -> Turn:
        """Load the state of a game with the same settings and number of episodes, and return its turn."""
        self.seeds = seeds_of(self.episodes, seeds=state["seeds"])
        start = np.asarray(state["episodes"], dtype=np.int64)
        self._hold(*self._deal(start, np.full(self.episodes, 1 + self.ahead)))
        self._episode = self._array(self._first_of_slot)
        self._begin()
        self._at = self._at + self._like(self._at, state["games"])
        for name in STATE:
            setattr(self, name, self._like(getattr(self, name), state[name]))
        self.illegal = {player: self._like(count, state["illegal"][player]) for player, count in self.illegal.items()}
        blank = self._false, self._false, self._no_reward
        return self._observe(*(self._like(b, state["turn"][n]) for b, n in zip(blank, OUTCOME_FIELDS, strict=True)))

    def _like(self, array: Array, values: ArrayLike) -> Array:
        """Convert values to an array with the type of `array`."""
        return self._array(np.asarray(values, dtype=self.cpu(array).dtype))

    def scores(self) -> Scores:
        """Return the scores of the current episodes; an episode's scores are final once it ends."""
        self._require_begun()
        illegal = np.stack([self.cpu(self.illegal[player]) for player in PLAYERS], 1)
        counts = self.cpu(self._counts)
        shares = counts / np.where(counts[..., :1] > 0, counts[..., :1], np.nan)
        return Scores(shares[:, 1, RIGHT], shares[:, 0, RIGHT], shares[:, 1, YES], shares[:, 1, KEPT], illegal)

    @property
    def games(self) -> OfEpisodes:
        """Number of games in each episode, [B]."""
        return self._data.games[self._episode]

    @property
    def dealt(self) -> Episodes:
        """The dealt episodes; without autoreset, one per slot. Privileged: players must not read it."""
        self._require_begun()
        return self._data

    @property
    def game_number(self) -> OfEpisodes:
        """Number of the current game in its episode, from 0, [B]."""
        return self._at - self._data.first[self._episode]

    @property
    def episode_number(self) -> OfEpisodes:
        """Number of the current episode within its seed, from 0, [B]."""
        return self._data.numbers[self._episode]

    @property
    def sizes(self) -> Int[Array, "batch={self.episodes} dimension={self.settings.dimensions}"]:
        """Number of values of each dimension, [B, N]. Privileged: no player sees them."""
        self._require_begun()
        return self._data.sizes[self._episode]

    @property
    def answer(self) -> OfEpisodes:
        """The right decision of each current game, [B]. Privileged."""
        self._require_begun()
        return self._data.answer[self._at]

    @property
    def heard_as(self) -> Int[Array, "batch={self.episodes} vocab={self.settings.vocab_size+1}"]:
        """The token that the listener hears for each token of the speaker, [B, V + 1]. Privileged."""
        return self._data.heard[self._episode]

    def latents(
        self, player: str
    ) -> Int[Array, "batch={self.episodes} slot={self.settings.slots} dimension={self.settings.dimensions}"]:
        """Return the meanings of a player's stimuli, [B, K + 1, N]; the speaker's first is the target's.

        In a partial view, the speaker's include the distractors' meanings, which the speaker does not see. Privileged.
        """
        return self._meanings[self._numbers(player) // self.settings.samples]

    def sample_numbers(self, player: str) -> Int[Array, "batch={self.episodes} slot={self.settings.slots}"]:
        """Return the sample number of each of a player's stimuli, [B, K + 1]. Privileged."""
        return self._numbers(player) % self.settings.samples

    def _numbers(self, player: str) -> Array:
        """Return the numbers of the stimuli that a player sees, [B, K + 1], see Episodes."""
        self._require_begun()
        require_known("player", player, PLAYERS)
        numbers = self._data.speaker_numbers[self._at]
        if player == SPEAKER:
            return numbers
        shown = self._round == (self.settings.rounds + 1)
        return self._xp.where(shown[:, None], numbers, self._data.listener_numbers[self._at])

    # -- arrays --------------------------------------------------------------------------------------------------------

    @property
    def _xp(self) -> ModuleType:
        """NumPy or torch. Not an attribute, because modules cannot be copied or pickled."""
        if self.device is None:
            return np
        import torch

        return torch

    def _array(self, array: Array) -> Array:
        """Convert to an array of this game: a NumPy array, or a tensor on its device."""
        if self.device is None:
            return np.asarray(array)
        return self._xp.as_tensor(array, device=self.device)

    def cpu(self, array: Array) -> Array:
        """Convert an array of this game to NumPy."""
        return array if self.device is None else array.cpu().numpy()

    def _zeros(self, length: int | None = None) -> Array:
        shape = (self.episodes,) if length is None else (self.episodes, length)
        return self._array(np.zeros(shape, dtype=np.int64))

    @cached_property
    def _pay(self) -> Array:
        return self._array(np.array(REWARDS, dtype=np.float32))

    @cached_property
    def _meanings(self) -> Array:
        return self._array(self.settings.space.all())
