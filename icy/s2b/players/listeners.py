"""Listeners that do not learn: references for speakers and for other listeners."""

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, SPEAKER
from icy.s2b.episode_streams import Reals, Wholes
from icy.s2b.game import Seen

from .interface import Action, Decisions, Player, Seat
from .speakers import check_digital, digits

Which = Bool[NDArray[np.bool_], " batch"]


class Decider(Player):
    """Base class of listeners that send no messages; a subclass implements `decide`.

    A subclass with a memory of the episode also implements `forget`, and `learn` if it remembers targets.

    Attributes:
        learns_from_feedback: whether the game must have feedback, because the listener learns targets from it.
    """

    learns_from_feedback = False

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes; see Player."""
        super().begin(seat)
        if self.learns_from_feedback and not seat.settings.feedback:
            raise IncompatibleError("This listener learns targets from the feedback; take a game with feedback=True.")
        self.words: Wholes = np.zeros((seat.episodes, seat.settings.rounds * seat.settings.length), dtype=np.int64)

    def decide(self, seen: Seen) -> Decisions:
        """Return decisions, [B]. The attribute `words` has the messages of the game so far, [B, rounds * L]."""
        raise NotImplementedError

    def forget(self, which: Which) -> None:
        """Forget earlier episodes: new ones begin in the mask `which`."""

    def learn(self, seen: Seen) -> None:
        """Learn the targets that feedback shows in some of the episodes."""

    def acting(self, seen: Seen) -> Action:
        """Record the message, decide in the episodes where a decision counts, and learn from feedback."""
        if seen.fresh.any():
            self.forget(seen.fresh)
        self.hear(seen)
        decision = np.zeros(self.seat.episodes, dtype=np.int64)
        if seen.may_decide.any():
            decision = np.where(seen.may_decide, self.decide(seen), decision)
        if seen.feedback.any():
            self.learn(seen)
        return Action(decision=decision)

    def hear(self, seen: Seen) -> None:
        """Append the message of this round to the earlier messages of the game."""
        settings = self.seat.settings
        self.words[seen.round == 0] = 0
        for place in range(settings.rounds):
            now = seen.round == place + 1
            self.words[now, place * settings.length : (place + 1) * settings.length] = seen.message[now]

    def numbers_of(self, seen: Seen) -> Float64[Reals, "batch slot dimension={self.seat.settings.dimensions}"]:
        """Return one number per dimension, [B, slots, N]. A one-hot value becomes the center of its section."""
        settings = self.seat.settings
        if settings.representation == "scs":
            return np.asarray(seen.stimulus.astype(np.float64))
        blocks = seen.stimulus.reshape(*seen.stimulus.shape[:2], settings.dimensions, settings.most)
        return np.asarray(-1 + (blocks.argmax(-1) + 0.5) * 2 / settings.most)

    def sentence(self) -> Int64[Wholes, "batch dimension={self.seat.settings.dimensions}"]:
        """Return one token per dimension, [B, N]. With several rounds, each message begins one dimension later."""
        settings = self.seat.settings
        if settings.length >= settings.dimensions:
            return self.words[:, : settings.dimensions]
        rounds = self.words.reshape(len(self.words), settings.rounds, settings.length)
        later = [rounds[:, place, -1] for place in range(1, settings.dimensions - settings.length + 1)]
        return np.concatenate([rounds[:, 0], np.stack(later, 1)], axis=1)

    def most_matching(self, matches: Int64[Wholes, "batch slot"]) -> Decisions:
        """Return the slot with the most matching dimensions; in a descriptive game "none" unless all match."""
        settings, best = self.seat.settings, np.argmax(matches, axis=1)
        return np.where(matches.max(1) == settings.dimensions, best, settings.slots) if settings.descriptive else best


class PosdisListener(Decider):
    """Chooses the stimulus that matches most of the posdis speaker's tokens; never decides "none".

    The game must not rename tokens (permutation=False).
    """

    privileged = True

    def decide(self, seen: Seen) -> Decisions:
        """Return the first slot with the most matching positions."""
        agree = self.game.latents(LISTENER) == self.sentence()[:, None] - 1
        return np.asarray(agree.sum(-1).argmax(1))


class OracleListener(Decider):
    """Knows all meanings and is always right."""

    privileged = True

    def decide(self, seen: Seen) -> Decisions:
        """Return the first slot with the target's meaning, or "none"."""
        same = (self.game.latents(LISTENER) == self.game.latents(SPEAKER)[:, :1]).all(-1)
        return np.where(same.any(1), same.argmax(1), min(self.seat.settings.slots, self.seat.settings.decisions - 1))


class RandomListener(Decider):
    """Decides at random."""

    def decide(self, seen: Seen) -> Decisions:
        """Draw uniformly from all decisions."""
        return self.seat.streams.integers("decide", self.seat.settings.decisions, (1,), self.steps)[:, 0]


class AlwaysYes(Decider):
    """Always decides that the first stimulus has the target's meaning."""

    def decide(self, seen: Seen) -> Decisions:
        """Return the decision 0, the first stimulus."""
        return np.zeros(self.seat.episodes, dtype=np.int64)


class AlwaysNo(Decider):
    """Always decides "none": no stimulus has the target's meaning."""

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. The game must be descriptive."""
        super().begin(seat)
        if not seat.settings.descriptive:
            raise IncompatibleError(
                "This listener always decides 'none', so the game must be descriptive (descriptive=True)."
            )

    def decide(self, seen: Seen) -> Decisions:
        """Return the decision K + 1, "none"."""
        return np.full(self.seat.episodes, self.seat.settings.slots)


class DigitalListener(Decider):
    """Chooses the stimulus that the digital speaker would describe with this message.

    The game must not rename tokens (permutation=False).
    """

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. `check_digital` lists the requirements."""
        super().begin(seat)
        check_digital(seat.settings)

    def decide(self, seen: Seen) -> Decisions:
        """Return the slot with the most matching positions; in a descriptive game "none" unless all match."""
        code = digits(seen.stimulus, self.seat.settings.vocab_size)
        return self.most_matching((code == self.sentence()[:, None]).sum(-1))


# -- the nearest listener, which remembers numbers and does not infer or learn -----------------------------------------


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

    def forget(self, which: Which) -> None:
        """Forget the numbers of earlier episodes."""
        self.numbers[which] = np.nan
        used = ~np.isnan(self.numbers).all((0, 2))
        self.numbers, self.tokens = self.numbers[:, used], self.tokens[:, used]

    def learn(self, seen: Seen) -> None:
        """Remember the target's numbers with their tokens."""
        shown = np.where(seen.feedback[:, None], self.numbers_of(seen)[:, 0], np.nan)
        self.numbers = np.concatenate([self.numbers, shown[:, None]], axis=1)
        self.tokens = np.concatenate([self.tokens, self.sentence()[:, None]], axis=1)

    def decide(self, seen: Seen) -> Decisions:
        """Return the slot with the most matching dimensions; in a descriptive game "none" unless all match."""
        heard = self.sentence()
        known = (self.tokens == heard[:, None]) & ~np.isnan(self.numbers)
        agree = np.stack([self._agrees(row, heard, known.any(1)) for row in self.numbers_of(seen).swapaxes(0, 1)], 1)
        return self.most_matching(agree.sum(-1))

    def _agrees(self, numbers: np.ndarray, heard: Wholes, known: np.ndarray) -> np.ndarray:
        """Return a mask of the dimensions that match: the nearest known number has the current token, [B, N]."""
        if not self.numbers.shape[1]:
            return ~known
        distance = np.nan_to_num(np.abs(self.numbers - numbers[:, None]), nan=np.inf)
        nearest = distance.argmin(1)[:, None]
        token = np.take_along_axis(self.tokens, nearest, 1)[:, 0]
        apart = np.take_along_axis(distance, nearest, 1)[:, 0] > 0
        return np.where(known, token == heard, apart)
