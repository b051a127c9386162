"""The nearest listener, which remembers numbers and does not infer or learn."""

import numpy as np

from icy.core.errors import IncompatibleError
from icy.s2b.episode_streams import Wholes
from icy.s2b.turn import Seen

from .interface import Action, Decisions, Seat
from .listeners import Decider


class NearestListener(Decider):
    """Listener that gives each number the token of the nearest known number.

    In every dimension, it remembers the target's number at the end of each game, with its token. A stimulus has the
    target's meaning if in every dimension the nearest known number has the current token. A new token matches a new
    number.
    """

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. Messages must have one token per dimension, and the game feedback."""
        super().begin(seat)
        settings = seat.settings
        if not settings.feedback or settings.reach < settings.dimensions:
            raise IncompatibleError(
                "The nearest listener needs feedback at the end of a game and one token per dimension (length)."
            )
        self.numbers = np.full((seat.episodes, 0, settings.dimensions), np.nan)
        self.tokens = np.zeros((seat.episodes, 0, settings.dimensions), dtype=np.int64)

    def acting(self, seen: Seen) -> Action:
        """Record the message, remember the target at the end of a game, and decide."""
        if seen.fresh.any():
            self.numbers[seen.fresh] = np.nan
            used = ~np.isnan(self.numbers).all((0, 2))
            self.numbers, self.tokens = self.numbers[:, used], self.tokens[:, used]
        self.hear(seen)
        if seen.feedback.any():
            shown = np.where(seen.feedback[:, None], self.numbers_of(seen)[:, 0], np.nan)
            self.numbers = np.concatenate([self.numbers, shown[:, None]], axis=1)
            self.tokens = np.concatenate([self.tokens, self.sentence()[:, None]], axis=1)
        if not seen.may_decide.any():
            return Action(decision=np.zeros(self.seat.episodes, dtype=np.int64))
        return Action(decision=np.where(seen.may_decide, self.decide(seen), 0))

    def decide(self, seen: Seen) -> Decisions:
        """Return the slot with the most matching dimensions; in a descriptive game "none" unless all match."""
        settings, heard = self.seat.settings, self.sentence()
        known = (self.tokens == heard[:, None]) & ~np.isnan(self.numbers)
        agree = np.stack([self._agrees(row, heard, known.any(1)) for row in self.numbers_of(seen).swapaxes(0, 1)], 1)
        total = agree.sum(-1)
        best: Wholes = total.argmax(1)
        return np.where(total.max(1) == settings.dimensions, best, settings.slots) if settings.descriptive else best

    def _agrees(self, numbers: np.ndarray, heard: Wholes, known: np.ndarray) -> np.ndarray:
        """Return a mask of the dimensions that match: the nearest known number has the current token, [B, N]."""
        if not self.numbers.shape[1]:
            return ~known
        distance = np.nan_to_num(np.abs(self.numbers - numbers[:, None]), nan=np.inf)
        nearest = distance.argmin(1)[:, None]
        token = np.take_along_axis(self.tokens, nearest, 1)[:, 0]
        apart = np.take_along_axis(distance, nearest, 1)[:, 0] > 0
        return np.where(known, token == heard, apart)
