"""Listeners that never listen: they measure how much a schedule reveals without any message.

A score measures communication only where it is higher than theirs.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError
from icy.s2b.episode_streams import Reals, Wholes
from icy.s2b.settings import GameSettings
from icy.s2b.stimuli import Spaces, meaning_numbers
from icy.s2b.targets import query_meanings
from icy.s2b.turn import Seen

from .binding import BindingListener, Rows
from .interface import Action, Decisions, Player, Seat
from .listeners import Decider

Chosen = Bool[NDArray[np.bool_], "some slot"]
OfSlots = Int64[Wholes, "some slot"]
Sizes = Int64[Wholes, "some dimension"]  # number of values of each dimension


class NoveltyListener(Decider):
    """Chooses the first stimulus that it has not seen at the end of an earlier game; "none" if there is none."""

    def begin(self, seat: Seat) -> None:
        """Take a seat; games must show the target at their end."""
        super().begin(seat)
        _require_feedback(seat)
        self.before: list[set[bytes]] = [set() for _ in range(seat.episodes)]

    def acting(self, seen: Seen) -> Action:
        """Decide, and remember the stimuli of the speaker."""
        for episode in np.flatnonzero(seen.fresh):
            self.before[episode].clear()
        decision = np.where(seen.may_decide, self.decide(seen), 0)
        for episode in np.flatnonzero(seen.feedback):
            self.before[episode].add(seen.stimulus[episode, 0].tobytes())
        return Action(decision=decision)

    def decide(self, seen: Seen) -> Decisions:
        """Return the first slot with a new stimulus, or "none"."""
        new = np.zeros(seen.stimulus.shape[:2], dtype=bool)
        for episode in np.flatnonzero(seen.may_decide):
            new[episode] = [stimulus.tobytes() not in self.before[episode] for stimulus in seen.stimulus[episode]]
        return _first(new, self.seat.settings)


class ValuesListener(BindingListener):
    """Base class of listeners that infer the values of stimuli, as `binding` does, from the numbers alone.

    A subclass implements `chosen`.
    """

    def begin(self, seat: Seat) -> None:
        """Take a seat; games must show the target at their end."""
        super().begin(seat)
        _require_feedback(seat)

    def acting(self, seen: Seen) -> Action:
        """Act as `binding` does when it hears nothing."""
        return super().acting(replace(seen, message=np.zeros_like(seen.message)))

    def chosen(self, rows: Rows, meanings: OfSlots, sizes: Sizes) -> Chosen:
        """Return whether each slot may be chosen, in some episodes [n].

        Args:
            rows: the episodes.
            meanings: number of the inferred meaning of each slot.
            sizes: inferred number of values of each dimension, [n, N].
        """
        raise NotImplementedError

    def meanings(
        self, numbers: Float64[Reals, "some stimulus dimension"], sizes: Sizes
    ) -> Int64[Wholes, "some stimulus"]:
        """Return the numbers of the meanings [n, slots] of stimuli [n, slots, N], in spaces of sizes [n, N]."""
        values = np.clip((numbers + 1) / 2 * sizes[:, None], 0, sizes[:, None] - 1).astype(np.int64)
        return meaning_numbers(values, self.seat.settings.most)

    def _decide(self, rows: Wholes, stimuli: Reals) -> Wholes:
        for slot in range(self.seat.settings.slots):
            self.memory.see(rows, stimuli[:, slot])
        sizes = self.memory.sizes(rows)
        return _first(self.chosen(rows, self.meanings(stimuli, sizes), sizes), self.seat.settings)


class MeaningNoveltyListener(ValuesListener):
    """Chooses the first stimulus with an inferred meaning that it has not seen before; "none" if there is none."""

    def begin(self, seat: Seat) -> None:
        """Take a seat; see `ValuesListener`."""
        super().begin(seat)
        self.seen_numbers: list[list[Reals]] = [[] for _ in range(seat.episodes)]
        self.known: list[set[int]] = [set() for _ in range(seat.episodes)]  # the meanings so far, under the sizes below
        self.by = np.zeros((seat.episodes, seat.settings.dimensions), dtype=np.int64)

    def acting(self, seen: Seen) -> Action:
        """Act, and remember the stimuli of the speaker."""
        for episode in np.flatnonzero(seen.fresh).tolist():
            self.seen_numbers[episode], self.known[episode] = [], set()
        action = super().acting(seen)
        numbers = self.numbers_of(seen)
        for episode in np.flatnonzero(seen.feedback).tolist():
            self.seen_numbers[episode].append(numbers[episode, 0])
            self._learn(episode, self.seen_numbers[episode][-1:])
        return action

    def chosen(self, rows: Rows, meanings: OfSlots, sizes: Sizes) -> Chosen:
        """Return the slots with a new meaning."""
        for episode, size in zip(rows.tolist(), sizes, strict=True):
            if (self.by[episode] != size).any():  # the earlier stimuli now have other meanings
                self.by[episode], self.known[episode] = size, set()
                self._learn(episode, self.seen_numbers[episode])
        return np.array([[m not in self.known[e] for m in of] for e, of in zip(rows, meanings.tolist(), strict=True)])

    def _learn(self, episode: int, shown: list[Reals]) -> None:
        if shown:
            self.known[episode].update(self.meanings(np.stack(shown)[None], self.by[episode][None])[0].tolist())


class OrderListener(ValuesListener):
    """Counts the games of the query, and chooses the stimulus with the next meaning by index; "none" if none has it.

    It infers the values from the numbers alone, and knows the meanings of the query.
    """

    def begin(self, seat: Seat) -> None:
        """Take a seat; see `ValuesListener`."""
        super().begin(seat)
        self.count = np.zeros(seat.episodes, dtype=np.int64)  # games of the query so far

    def acting(self, seen: Seen) -> Action:
        """Count, and act."""
        self.count[seen.fresh] = 0
        self.count += seen.query & seen.may_decide
        return super().acting(seen)

    def chosen(self, rows: Rows, meanings: OfSlots, sizes: Sizes) -> Chosen:
        """Return the slots with the next meaning."""
        settings = self.seat.settings
        spaces = Spaces(sizes, settings.most)
        in_query = spaces.valid & query_meanings(spaces, settings.threshold)
        place = (self.count[rows, None] - 1) // settings.samples
        following = (in_query.cumsum(1) == place + 1) & in_query & (place >= 0)
        found: NDArray[np.bool_] = np.take_along_axis(following, meanings, 1)
        return found


def _require_feedback(seat: Seat) -> None:
    if not seat.settings.feedback:
        raise IncompatibleError("This listener sees earlier stimuli at the end of games; this game has no feedback.")


def _first(which: Chosen, settings: GameSettings) -> Decisions:
    """Return the first slot that may be chosen. If there is none, return "none", or slot 0 if no answer says so."""
    first: Wholes = which.argmax(1)
    return np.where(which.any(1), first, settings.slots) if settings.descriptive else first


class Deaf(Player):
    """A listener that gets no messages: the same player without them.

    Args:
        player: the listener.
    """

    def __init__(self, player: Player) -> None:
        self.player = player
        self.privileged = player.privileged

    def begin(self, seat: Seat) -> None:
        """Take a seat, with the player."""
        super().begin(seat)
        self.player.begin(seat)

    def acting(self, seen: Seen) -> Action:
        """Act as the player does when it hears nothing."""
        return self.player.act(replace(seen, message=np.zeros_like(seen.message)))
