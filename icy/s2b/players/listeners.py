"""Listeners without learning, to measure speakers and other listeners by."""

from __future__ import annotations

import numpy as np

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b.game import Seen
from icy.s2b.streams import Reals, Wholes

from .base import Action, Player, Seat
from .digital import check_digital, digits


class Decider(Player):
    """A listener that sends no messages: it decides, where a decision is asked for."""

    def begin(self, seat: Seat) -> None:
        """See Player."""
        super().begin(seat)
        self.words: Wholes = np.zeros((seat.episodes, seat.settings.rounds * seat.settings.length), dtype=np.int64)

    def decide(self, seen: Seen) -> Wholes:
        """The decisions, [B]; `words` holds what has been said in the game."""
        raise NotImplementedError

    def acting(self, seen: Seen) -> Action:
        """Listen, and decide."""
        self.hear(seen)
        return Action(decision=np.where(seen.may_decide, self.decide(seen), 0))

    def hear(self, seen: Seen) -> None:
        """Keep the messages of all rounds of a game, one after another."""
        settings = self.seat.settings
        self.words[seen.round == 0] = 0
        for place in range(settings.rounds):
            now = seen.round == place + 1
            self.words[now, place * settings.length : (place + 1) * settings.length] = seen.message[now]

    def numbers_of(self, seen: Seen) -> Reals:
        """One number per dimension, [B, slots, N]: of a one-hot block, the middle of its value's section."""
        settings = self.seat.settings
        if settings.representation == "scs":
            numbers: Reals = seen.stimulus.astype(np.float64)
            return numbers
        blocks = seen.stimulus.reshape(*seen.stimulus.shape[:2], settings.dimensions, settings.most)
        found: Reals = -1 + (blocks.argmax(-1) + 0.5) * 2 / settings.most
        return found

    def sentence(self) -> Wholes:
        """The token for each dimension, [B, N]: of one message, or of several that each begin one token later."""
        settings = self.seat.settings
        if settings.length >= settings.dimensions:
            return self.words[:, : settings.dimensions]
        rounds = self.words.reshape(len(self.words), settings.rounds, settings.length)
        later = [rounds[:, place, -1] for place in range(1, settings.dimensions - settings.length + 1)]
        return np.concatenate([rounds[:, 0], np.stack(later, 1)], axis=1)


class PosdisListener(Decider):
    """Takes the stimulus with most values where the posdis speaker, unpermuted, would have said them; never "none"."""

    privileged = True

    def decide(self, seen: Seen) -> Wholes:
        """The first slot of the most agreeing positions."""
        agree = self.game.latents(LISTENER) == self.sentence()[:, None] - 1
        best: Wholes = agree.sum(-1).argmax(1)
        return best


class OracleListener(Decider):
    """Knows all meanings, and is always right."""

    privileged = True

    def decide(self, seen: Seen) -> Wholes:
        """The first slot of the target's meaning, or none."""
        same = (self.game.latents(LISTENER) == self.game.latents(SPEAKER)[:, :1]).all(-1)
        return np.where(same.any(1), same.argmax(1), min(self.seat.settings.slots, self.seat.settings.decisions - 1))


class RandomListener(Decider):
    """Decides at random."""

    def decide(self, seen: Seen) -> Wholes:
        """Uniform over decisions."""
        return self.seat.draws.integers("decide", self.seat.settings.decisions, (1,), self.steps)[:, 0]


class AlwaysNo(Decider):
    """Always answers that the target's meaning is none of what it sees."""

    def begin(self, seat: Seat) -> None:
        """See Player; there must be such an answer."""
        super().begin(seat)
        if not seat.settings.descriptive:
            raise IncompatibleError("In a game that is not descriptive nobody can answer that the target is not there.")

    def decide(self, seen: Seen) -> Wholes:
        """K + 1."""
        return np.full(self.seat.episodes, self.seat.settings.slots)


class DigitalListener(Decider):
    """Takes the stimulus whose parts of [-1, 1] the digital speaker, unpermuted, would have said."""

    def begin(self, seat: Seat) -> None:
        """See Player."""
        super().begin(seat)
        check_digital(seat.settings)

    def decide(self, seen: Seen) -> Wholes:
        """The first slot with most agreeing positions; none, unless all agree and such an answer there is."""
        settings = self.seat.settings
        agree = (digits(seen.stimulus, settings.vocab_size) == self.sentence()[:, None]).sum(-1)
        best: Wholes = agree.argmax(1)
        if not settings.descriptive:
            return best
        return np.where(agree.max(1) == settings.dimensions, best, settings.slots)
