"""Listeners that ignore messages. Their scores show how much the schedule of stimuli reveals without messages.

Only scores above those of these listeners are evidence of communication.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from icy.s2b.episode_streams import Reals, Wholes
from icy.s2b.game import Seen
from icy.s2b.settings import GameSettings
from icy.s2b.targets import Spaces, query_meanings

from .binding import BindingListener, Rows
from .interface import Action, Decisions, Player, Seat
from .listeners import Decider, Which

SlotMask = Bool[NDArray[np.bool_], "some slot"]
OfSlots = Int64[Wholes, "some slot"]
Sizes = Int64[Wholes, "some dimension"]  # number of values of each dimension


class NoveltyListener(Decider):
    """Chooses the first stimulus that it has not seen in earlier feedback; "none" if no stimulus is new."""

    learns_from_feedback = True

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The game must have feedback."""
        super().begin(seat)
        self.before: list[set[bytes]] = [set() for _ in range(seat.episodes)]

    def forget(self, which: Which) -> None:
        """Forget the targets of earlier episodes."""
        for episode in np.flatnonzero(which):
            self.before[episode].clear()

    def learn(self, seen: Seen) -> None:
        """Remember the targets."""
        for episode in np.flatnonzero(seen.feedback):
            self.before[episode].add(seen.stimulus[episode, 0].tobytes())

    def decide(self, seen: Seen) -> Decisions:
        """Return the first slot with a new stimulus, or "none"."""
        new = np.zeros(seen.stimulus.shape[:2], dtype=bool)
        for episode in np.flatnonzero(seen.may_decide):
            new[episode] = [stimulus.tobytes() not in self.before[episode] for stimulus in seen.stimulus[episode]]
        return _first(new, self.seat.settings)


class ValuesListener(BindingListener):
    """Base class of listeners that infer values like `binding`, but only from numbers, without tokens.

    A subclass implements `candidates`.
    """

    learns_from_feedback = True

    def acting(self, seen: Seen) -> Action:
        """Act like `binding` with empty messages."""
        return super().acting(replace(seen, message=np.zeros_like(seen.message)))

    def candidates(self, rows: Rows, meanings: OfSlots, sizes: Sizes) -> SlotMask:
        """Return a mask of the slots that may be chosen in the episodes `rows`, [n, slots].

        Args:
            rows: indices of the episodes.
            meanings: number of the inferred meaning of each slot, [n, slots].
            sizes: inferred number of values of each dimension, [n, N].
        """
        raise NotImplementedError

    def meanings(
        self, numbers: Float64[Reals, "some stimulus dimension"], sizes: Sizes
    ) -> Int64[Wholes, "some stimulus"]:
        """Infer the number of each stimulus's meaning, [n, slots], from numbers [n, slots, N] and sizes [n, N]."""
        values = np.clip((numbers + 1) / 2 * sizes[:, None], 0, sizes[:, None] - 1).astype(np.int64)
        return self.seat.settings.space.index(values)

    def _decide(self, rows: Wholes, stimuli: Reals) -> Wholes:
        for slot in range(self.seat.settings.slots):
            self.memory.see(rows, stimuli[:, slot])
        sizes = self.memory.sizes(rows)
        return _first(self.candidates(rows, self.meanings(stimuli, sizes), sizes), self.seat.settings)


class MeaningNoveltyListener(ValuesListener):
    """Chooses the first stimulus with a new inferred meaning; "none" if no meaning is new."""

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes; see `ValuesListener`."""
        super().begin(seat)
        self.targets: list[list[Reals]] = [[] for _ in range(seat.episodes)]
        self.known: list[set[int]] = [set() for _ in range(seat.episodes)]  # inferred meanings of these targets
        self.known_sizes = np.zeros((seat.episodes, seat.settings.dimensions), dtype=np.int64)  # sizes behind these

    def forget(self, which: Which) -> None:
        """Forget the targets of earlier episodes."""
        super().forget(which)
        for episode in np.flatnonzero(which).tolist():
            self.targets[episode], self.known[episode] = [], set()

    def learn(self, seen: Seen) -> None:
        """Remember the targets and their meanings."""
        super().learn(seen)
        numbers = self.numbers_of(seen)
        for episode in np.flatnonzero(seen.feedback).tolist():
            self.targets[episode].append(numbers[episode, 0])
            self._learn(episode, self.targets[episode][-1:])

    def candidates(self, rows: Rows, meanings: OfSlots, sizes: Sizes) -> SlotMask:
        """Return a mask of the slots with a new meaning, [n, slots]."""
        for episode, size in zip(rows.tolist(), sizes, strict=True):
            if (self.known_sizes[episode] != size).any():  # the inferred meanings of earlier targets have changed
                self.known_sizes[episode], self.known[episode] = size, set()
                self._learn(episode, self.targets[episode])
        return np.array([[m not in self.known[e] for m in of] for e, of in zip(rows, meanings.tolist(), strict=True)])

    def _learn(self, episode: int, targets: list[Reals]) -> None:
        if targets:
            meanings = self.meanings(np.stack(targets)[None], self.known_sizes[episode][None])
            self.known[episode].update(meanings[0].tolist())


class OrderListener(ValuesListener):
    """Counts the games of the query and chooses the stimulus with the next query meaning by index, or else "none".

    It infers the values only from numbers, and knows which meanings belong to the query.
    """

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes; see `ValuesListener`."""
        super().begin(seat)
        self.count = np.zeros(seat.episodes, dtype=np.int64)  # games of the query so far

    def acting(self, seen: Seen) -> Action:
        """Count the games of the query, and act."""
        self.count[seen.fresh] = 0
        self.count += seen.query & seen.may_decide
        return super().acting(seen)

    def candidates(self, rows: Rows, meanings: OfSlots, sizes: Sizes) -> SlotMask:
        """Return a mask of the slots with the next meaning, [n, slots]."""
        settings = self.seat.settings
        spaces = Spaces(sizes, settings.most)
        in_query = spaces.valid & query_meanings(spaces, settings.threshold)
        place = (self.count[rows, None] - 1) // settings.samples
        following = (in_query.cumsum(1) == place + 1) & in_query & (place >= 0)
        return np.asarray(np.take_along_axis(following, meanings, 1))


def _first(which: SlotMask, settings: GameSettings) -> Decisions:
    """Return the first slot of a mask. If the mask is empty, return "none", or slot 0 in a game without "none"."""
    first: Wholes = which.argmax(1)
    return np.where(which.any(1), first, settings.slots) if settings.descriptive else first


class Deaf(Player):
    """Wrapper that gives a listener empty messages (its deaf twin).

    Args:
        player: the listener.
    """

    def __init__(self, player: Player) -> None:
        self.player = player
        self.privileged = player.privileged

    def begin(self, seat: Seat) -> None:
        """Prepare the wrapped player for a batch of episodes."""
        super().begin(seat)
        self.player.begin(seat)

    def acting(self, seen: Seen) -> Action:
        """Return the wrapped player's action for empty messages."""
        return self.player.act(replace(seen, message=np.zeros_like(seen.message)))
