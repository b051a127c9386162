"""The recall task: can an agent bind the numbers of a stimulus to values? (MetaRG22, the binding-problem control)

Every episode has its own symbolic space. Each shot shows every stimulus of the space once, and asks for the value of
one dimension; the agent answers, and learns whether it was right. A one-hot stimulus reveals its values; the numbers of
a continuous stimulus must be bound to values within the episode. The score is the accuracy in the last shot.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64
from numpy.typing import ArrayLike, NDArray

from icy.config.settings import Departure
from icy.core.checks import whole_number
from icy.core.errors import IcyError, InvalidSettingError
from icy.core.fields import check_fields, setting
from icy.core.registry import LISTENER

from . import targets
from .episode_streams import EpisodeStreams, Reals, SavedState, Wholes, seeds_of
from .game import Seen
from .options import RecallOptions
from .settings import Sizes, WithCompat
from .targets import Sections, Spaces, Stimuli, Truncation, one_hot

SHOWN, ASKED = 0, 1  # the two steps of a game
STATE = ("seeds", "number", "_at", "_asked", "_result", "_done", "_idle", "illegal", "_right")
Flags = Bool[NDArray[np.bool_], " batch"]

# Differences between the authors' program and their papers.
NEAR32: dict[str, Departure] = {
    "split": Departure({"split": "support"}, "only stimuli of the support are shown"),
    "order": Departure({"replacement": True}, "every shot draws its stimuli with replacement"),
    "rewards": Departure({"right": 0.0, "wrong": -1.0}, "a right answer is not rewarded, a wrong one is punished"),
    "samples": Departure({"truncate": "none"}, "samples may leave their section (about seven in ten thousand do)"),
}


@dataclass(frozen=True, kw_only=True)
class RecallSettings(WithCompat):
    """Settings of the recall task.

    Attributes:
        dimensions: number of dimensions of the symbolic space, N.
        least: smallest number of values of a dimension.
        most: largest number of values of a dimension. With one-hot stimuli, the authors' program sets `least` to the
            same number.
        shots: number of times every stimulus is shown; the last shot is scored.
        representation: "scs" or "ohe", see GameSettings.
        truncate: treatment of samples outside their section: "resample", "clip" or "none", see GameSettings.
        split: the stimuli to show: "all", or those of the meta-referential game's "support".
        replacement: whether a shot draws its stimuli with replacement.
        games_per_shot: largest number of games in a shot; None: one per stimulus.
        right: reward of a right answer.
        wrong: reward of a wrong answer.

    Raises:
        InvalidSettingError, UnknownNameError: settings that are not accepted.
    """

    called = "the recall task"
    compats: ClassVar[Mapping[str, Mapping[str, Departure]]] = {"near32": NEAR32}

    dimensions: int = setting(3, least=1)
    least: int = setting(2, least=2)
    most: int = setting(5, "most", least=1)
    shots: int = setting(2, least=1)
    representation: Stimuli = setting("scs", "representation of stimuli")
    truncate: Truncation = setting("resample", "rule for samples outside their section")
    split: Literal["all", "support"] = "all"
    replacement: bool = False
    games_per_shot: int | None = setting(None, "games_per_shot", least=1)
    right: float = 1.0
    wrong: float = 0.0

    @classmethod
    def _of_compat(cls, compat: str, given: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super()._of_compat(compat, given)
        # The authors' one-hot spaces have all values.
        return chosen | ({"least": given.get("most", cls.most)} if given.get("representation") == "ohe" else {})

    def __post_init__(self) -> None:
        check_fields(self)
        self.check_space()
        if self.split == "support" and self.dimensions < targets.TEST_VALUES:
            raise InvalidSettingError("A space of one dimension has no support; take split 'all'.")

    @property
    def sizes(self) -> Sizes:
        """Sizes of the agent's observations and actions."""
        return Sizes(self.width, self.most, self.representation)

    @property
    def nothing(self) -> int:
        """The number of the action "no answer", the last action."""
        return self.most


@dataclass(frozen=True, eq=False)
class RecallTurn:
    """The result of a step, in all B episodes. `seen_by` has the agent's observations in the form of a game's players.

    Attributes:
        stimulus: the stimulus, [B, W]; at a question, ones at the positions of the queried dimension, and zeros
            elsewhere.
        asked: 0 if a stimulus is shown, 1 if a question is asked, [B].
        result: result of the previous game: 0 none, 1 wrong, 2 right, [B].
        reward: reward of the step, [B].
        done: whether the episode has ended, [B].
        previous: reward of the previous game, [B].
        fresh: whether this is the first step of an episode, [B].
        idle: whether the episode ended at an earlier step, [B].
    """

    stimulus: Float32[NDArray[np.float32], "batch width"]
    asked: Int64[Wholes, " batch"]
    result: Int64[Wholes, " batch"]
    reward: Float32[NDArray[np.float32], " batch"]
    done: Flags
    previous: Float32[NDArray[np.float32], " batch"]
    fresh: Flags
    idle: Flags

    def seen_by(self, player: str = LISTENER) -> Seen:
        """Return the observations of the agent, as of a player of a game without messages."""
        no = np.zeros_like(self.done)
        return Seen(
            stimulus=self.stimulus[:, None],
            message=np.zeros((len(no), 1), dtype=np.int64),
            query=no,
            round=self.asked,
            result=self.result,
            reward=self.previous,
            fresh=self.fresh,
            may_speak=no,
            may_decide=(self.asked == ASKED) & ~self.done,
            over=self.done,
            feedback=no,
            idle=self.idle,
        )


@dataclass(frozen=True, eq=False)
class RecallDeal:
    """All games of B episodes, padded to the longest episode. Privileged.

    Attributes:
        numbers: the part of the stimulus for the queried dimension, [B, G, w]: one number, or a one-hot block.
        dimension: the queried dimension, [B, G].
        answers: the right answers, [B, G].
        there: whether the entry is a game, not padding, [B, G].
        last: whether the game belongs to the last shot, [B, G].
    """

    numbers: Float32[NDArray[np.float32], "batch game number"]
    dimension: Int64[Wholes, "batch game"]
    answers: Int64[Wholes, "batch game"]
    there: Bool[NDArray[np.bool_], "batch game"]
    last: Bool[NDArray[np.bool_], "batch game"]


@dataclass(eq=False)
class _Schedule:
    """Stimuli [B, G, W], queried dimensions and right answers [B, G], and the numbers of games, in all and per shot.

    All episodes have room for G games, as many as the largest space needs.
    """

    stimuli: NDArray[np.float32]
    dimension: Wholes
    answers: Wholes
    games: Wholes
    per_shot: Wholes


class BatchedRecall:
    """The recall task for many episodes at once, played step by step.

    Args:
        settings: settings of the task; or give them by name.
        episodes: number of episodes to play at once, B.
        autoreset: begin the next episode at the step after an episode ends.
        **given: settings by name, see RecallSettings.

    Example:
        >>> import numpy as np
        >>> from icy.s2b import BatchedRecall
        >>> task = BatchedRecall(episodes=3, representation="ohe")
        >>> turn = task.reset(seed=0)
        >>> while not turn.done.all():
        ...     turn = task.step(task.answers)
        >>> task.accuracy().tolist()
        [1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        settings: RecallSettings | None = None,
        *,
        episodes: int = 1,
        autoreset: bool = False,
        **given: Unpack[RecallOptions],
    ) -> None:
        self.settings = RecallSettings.of(settings, **given)
        self.episodes, self.autoreset = whole_number("number of episodes", episodes), autoreset
        self.turn: RecallTurn | None = None

    def reset(self, seed: int | None = None, seeds: Iterable[int] | None = None) -> RecallTurn:
        """Begin an episode in every slot; arguments and errors are those of BatchedGame.reset."""
        if seed is not None or seeds is not None or self.turn is None:
            self.seeds = seeds_of(self.episodes, seed, seeds)
            self.number = np.zeros(self.episodes, dtype=np.int64)
        else:
            self.number = self.number + 1
        self._schedule = self._draw_episodes(np.arange(self.episodes))
        self._at, self._asked, self._result = (np.zeros(self.episodes, dtype=np.int64) for _ in range(3))
        self._done, self._idle = (np.zeros(self.episodes, dtype=bool) for _ in range(2))
        self.illegal = np.zeros(self.episodes, dtype=np.int64)
        self._right = np.zeros((self.episodes, self.settings.shots), dtype=np.int64)
        return self._make_turn(np.zeros(self.episodes, dtype=np.float32))

    def step(self, actions: ArrayLike) -> RecallTurn:
        """Play one step in all episodes. The actions [B] are values, or `settings.nothing` for no answer.

        Raises:
            IcyError: before the first reset.
            InvalidSettingError: the number of actions differs from the number of episodes.
        """
        if self.turn is None:
            raise IcyError("The task has not begun; call reset() first.")
        given = np.asarray(actions)
        if given.shape != (self.episodes,):
            raise InvalidSettingError(f"Answers must have the shape ({self.episodes},), not {given.shape}.")
        ended = self._done
        asked = (self._asked == ASKED) & ~ended
        right = asked & (given == self.answers)
        self.illegal += ~ended & np.where(
            asked, (given < 0) | (given >= self.settings.nothing), given != self.settings.nothing
        )
        shot = np.minimum(self._at // self._schedule.per_shot, self.settings.shots - 1)
        self._right[np.arange(self.episodes), shot] += right
        rewards = np.where(right, np.float32(self.settings.right), np.float32(self.settings.wrong)) * asked
        self._result = np.where(asked, 1 + right, self._result)
        last = self._at + 1 >= self._schedule.games
        self._done = ended | (asked & last)
        self._at = self._at + (asked & ~last)
        self._asked = np.where(self._done, self._asked, 1 - self._asked)
        if self.autoreset and ended.any():
            self._again(ended)
        self._idle = ended & self._done
        return self._make_turn(rewards)

    @property
    def answers(self) -> Int64[Wholes, "batch={self.episodes}"]:
        """The right answer of each current game, [B]. Privileged."""
        return np.asarray(self._schedule.answers[np.arange(self.episodes), self._at])

    @property
    def game_number(self) -> Int64[Wholes, "batch={self.episodes}"]:
        """Number of the current game in its episode, from 0, [B]."""
        return self._at.copy()

    def accuracy(self, shot: int = -1) -> Float64[Reals, "batch={self.episodes}"]:
        """Return the share of right answers in a shot, by default the last one, [B]."""
        return np.asarray(self._right[:, shot] / self._schedule.per_shot)

    def dealt(self) -> RecallDeal:
        """Return all games of the current episodes. Privileged."""
        now, settings = self._schedule, self.settings
        place = np.arange(int(now.games.max()))
        games = slice(len(place))
        dimension, answers = now.dimension[:, games], now.answers[:, games]
        blocks = now.stimuli[:, games].reshape(*dimension.shape, settings.dimensions, -1)
        numbers: NDArray[np.float32] = np.take_along_axis(blocks, dimension[..., None, None], 2)[:, :, 0]
        there = place < now.games[:, None]
        last = there & (place >= (settings.shots - 1) * now.per_shot[:, None])
        return RecallDeal(numbers, dimension, answers, there, last)

    def state(self) -> SavedState:
        """Return the state for `load`, as lists of numbers by name."""
        if self.turn is None:
            raise IcyError("The task has not begun; call reset() first.")
        held = {name: getattr(self, name).tolist() for name in STATE}
        return held | {"reward": self.turn.reward.tolist()}

    def load(self, state: SavedState) -> RecallTurn:
        """Load the state of a task with the same settings and number of episodes, and return its turn."""
        self.seeds = seeds_of(self.episodes, seeds=state["seeds"])
        for name in STATE[1:]:
            setattr(self, name, np.array(state[name], dtype=bool if name in ("_done", "_idle") else np.int64))
        self._schedule = self._draw_episodes(np.arange(self.episodes))
        return self._make_turn(np.array(state["reward"], dtype=np.float32))

    def _again(self, rows: NDArray[np.bool_]) -> None:
        """Begin the next episode in the slots of the mask `rows`."""
        which = np.flatnonzero(rows)
        self.number[which] += 1
        new = vars(self._draw_episodes(which))
        for name, values in vars(self._schedule).items():
            values[which] = new[name]
        for state in (self._at, self._asked, self._result, self.illegal, self._right):
            state[which] = 0
        self._done = self._done & ~rows

    def _draw_episodes(self, which: Wholes) -> _Schedule:
        """Draw the current episode of each slot in `which`."""
        settings = self.settings
        streams = EpisodeStreams.of_seeds(self.seeds[which]).within("recall").nth(self.number[which])
        spaces = Spaces.draw(streams, settings.dimensions, settings.least, settings.most)
        shown = spaces.valid & ~targets.query_meanings(spaces) if settings.split == "support" else spaces.valid
        count = shown.sum(1)
        per_shot = count if settings.games_per_shot is None else np.minimum(count, settings.games_per_shot)
        orders = np.stack(
            [_order(streams.within("shot", k), shown, settings.replacement) for k in range(settings.shots)], 1
        )
        longest = min(settings.space.size, settings.games_per_shot or settings.space.size)  # the same for all episodes
        place = np.arange(settings.shots * longest)
        shot, inside = place // per_shot[:, None], place % per_shot[:, None]
        rows = np.arange(len(which))[:, None]
        meanings = orders[rows, np.minimum(shot, settings.shots - 1), inside]
        values = settings.space.meanings(meanings)
        if settings.representation == "ohe":
            stimuli = one_hot(spaces)[meanings]
        else:
            samples = Sections.draw(streams, spaces, 1, settings.truncate).samples[..., 0]
            stimuli = samples[rows[..., None], np.arange(settings.dimensions), values].astype(np.float32)
        dimension = streams.integers("dimension", settings.dimensions, (len(place),))
        answers = np.take_along_axis(values, dimension[..., None], 2)[..., 0]
        return _Schedule(stimuli, dimension, answers, settings.shots * per_shot, per_shot)

    def _make_turn(self, rewards: NDArray[np.float32]) -> RecallTurn:
        asked, now = self._asked == ASKED, (np.arange(self.episodes), self._at)
        width = self.settings.width // self.settings.dimensions
        # A question has ones at the positions of the queried dimension, and zeros elsewhere.
        question = np.eye(self.settings.dimensions, dtype=np.float32).repeat(width, 1)[self._schedule.dimension[now]]
        stimulus = np.where(asked[:, None], question, self._schedule.stimuli[now])
        stimulus[self._done] = 0
        previous = np.array([0.0, self.settings.wrong, self.settings.right], dtype=np.float32)[self._result]
        fresh = (self._at == 0) & ~asked
        step = self._asked.copy(), self._result.copy(), rewards, self._done.copy()
        self.turn = RecallTurn(stimulus, *step, previous, fresh, self._idle)
        return self.turn


def _order(streams: EpisodeStreams, shown: NDArray[np.bool_], replacement: bool) -> Wholes:
    """Draw an order of meanings, [B, M]: first those in `shown`, each once, or with replacement."""
    count = shown.shape[1]
    uniform = streams.uniform("order", (count,))
    order = np.argsort(np.where(shown, uniform, 2.0), axis=1, kind="stable")
    if not replacement:
        return order
    drawn = streams.integers("drawn", shown.sum(1)[:, None], (count,))
    return np.take_along_axis(order, drawn, axis=1)
