"""The binding listener, which remembers and infers, and does not learn.

In each episode, it remembers the numbers that it has seen in every dimension, and their tokens. It infers the number of
values of a dimension. Every possible number of values is a hypothesis that divides the range of numbers into sections;
the better the numbers fit these sections, the more likely is the hypothesis. A section contains the numbers of one
value, and a value has one token. So under each hypothesis a known token identifies a section.
"""

import numpy as np
from jaxtyping import Float64, Int64

from icy.core.errors import IncompatibleError
from icy.s2b.episode_streams import Reals, Wholes
from icy.s2b.game import SUCCESS, Seen
from icy.s2b.targets import SAFE, WIDEST

from .interface import Action, Decisions, Seat
from .listeners import Decider, Which

Rows = Int64[Wholes, " some"]  # indices of episodes
Numbers = Float64[Reals, "some dimension"]
Tokens = Int64[Wholes, "some dimension"]

UNLIKELY = -30.0  # log-likelihood of a contradiction: a section with two tokens, or with more than O numbers
NARROW, PLACES = 6, 12  # sizes of the grid over which `evidence` averages: standard deviations, means


class BindingListener(Decider):
    """Listener that remembers numbers with their tokens, infers each dimension's number of values, and decides.

    It knows the distribution of stimuli, and that each position of a message describes one dimension. So it is a
    reference for speakers of these languages. It does not know the meanings, the numbers of values or the vocabulary of
    the episode. It does not use two facts: a stimulus has the same sample number in all dimensions, and targets have a
    fixed order.
    """

    def begin(self, seat: Seat) -> None:
        """Prepare for a batch of episodes. Messages must have one token per dimension."""
        super().begin(seat)
        settings = seat.settings
        if settings.reach < settings.dimensions:
            raise IncompatibleError(
                "The binding listener needs one token per dimension: raise length or the number of rounds."
            )
        one_hot = settings.representation == "ohe"
        self.memory = Memory(
            seat.episodes,
            settings.dimensions,
            np.arange(settings.most if one_hot else settings.least, settings.most + 1),
            settings.vocab_size,
            settings.samples,
        )
        self.last_decision = np.full(seat.episodes, settings.slots)
        self.own: Reals = np.zeros((seat.episodes, settings.slots, settings.dimensions))

    def forget(self, which: Which) -> None:
        """Forget the numbers and tokens of earlier episodes."""
        self.memory.forget(which)

    def learn(self, seen: Seen) -> None:
        """Remember the target's numbers with their tokens."""
        rows = np.flatnonzero(seen.feedback)
        self.memory.bind(rows, self.numbers_of(seen)[rows, 0], self.sentence()[rows])

    def acting(self, seen: Seen) -> Action:
        """Learn from right decisions in games without feedback, and act; see Decider."""
        if not self.seat.settings.feedback:
            self._learn_from_success(seen)
        return super().acting(seen)

    def decide(self, seen: Seen) -> Decisions:
        """Return the most likely decisions."""
        rows, decision = np.flatnonzero(seen.may_decide), np.zeros(self.seat.episodes, dtype=np.int64)
        stimuli = self.numbers_of(seen)[rows]
        decision[rows] = self._decide(rows, stimuli)
        self.own[rows], self.last_decision[rows] = stimuli, decision[rows]
        return decision

    def _learn_from_success(self, seen: Seen) -> None:
        """Remember the stimuli of right decisions, for games without feedback."""
        settings = self.seat.settings
        chosen = (self.last_decision < settings.slots) & (seen.round == 0) & (seen.result == SUCCESS) & ~seen.fresh
        rows = np.flatnonzero(chosen)
        self.memory.bind(rows, self.own[rows, self.last_decision[rows]], self.sentence()[rows])
        self.last_decision[seen.fresh | (seen.round == 0)] = settings.slots

    def _decide(self, rows: Wholes, stimuli: Reals) -> Wholes:
        """Return the most likely decisions, [n], for stimuli [n, slots, N] of the episodes `rows`."""
        settings, tokens = self.seat.settings, self.sentence()[rows]
        for slot in range(settings.slots):
            self.memory.see(rows, stimuli[:, slot])
        ratios = [self.memory.ratio(rows, stimuli[:, slot], tokens) for slot in range(settings.slots)]
        likely = np.stack(ratios, 1) * settings.kept / settings.slots
        if settings.descriptive:
            likely = np.concatenate([likely, np.full((len(rows), 1), 1 - settings.kept)], axis=1)
        return np.asarray(likely.argmax(1))


class Memory:
    """Memory of the numbers and tokens in each dimension of B episodes, under every hypothesis.

    Axes: B episodes, N dimensions, D hypotheses (numbers of values), at most S sections, V tokens.
    """

    def __init__(
        self, episodes: int, dimensions: int, counts: Int64[Wholes, " hypothesis"], vocab_size: int, samples: int
    ) -> None:
        self.counts, self.samples = counts, samples
        most, hypotheses = int(counts[-1]), len(counts)
        shape = episodes, dimensions, hypotheses
        self.numbers = np.full((episodes, dimensions, most * samples), np.nan)  # the different numbers so far
        self.seen = np.zeros((episodes, dimensions), dtype=np.int64)  # count of different numbers
        self.sums = np.zeros((*shape, most, 3))  # per section: count, sum and sum of squares of its numbers
        self.evidence = np.zeros((*shape, most))  # log-density of a section's numbers
        self.faults = np.zeros(shape)  # number of contradictions to a hypothesis
        self.targets = np.zeros((episodes, dimensions))  # number of targets, each with one of d values
        self.owner = np.zeros((*shape, most), dtype=np.int64)  # token of a section; 0 if unknown
        self.section = np.full((*shape, vocab_size + 1), -1)  # section of a token; -1 if unknown
        self.initial = {n: v.flat[0] for n, v in vars(self).items() if isinstance(v, np.ndarray) and n != "counts"}

    def forget(self, which: Which) -> None:
        """Clear the memory of the episodes in the mask `which`."""
        for name, value in self.initial.items():
            getattr(self, name)[which] = value

    def see(self, rows: Rows, numbers: Numbers) -> None:
        """Remember numbers [n, N] of the episodes `rows` [n]. Repeated numbers have no effect."""
        fresh = ~(self.numbers[rows] == numbers[..., None]).any(-1)
        which, dimension = np.nonzero(fresh)
        b, x = rows[which], numbers[which, dimension]
        place = self.seen[b, dimension]
        room = place < self.numbers.shape[2]  # always true, unless a game has other stimuli than it should
        self.numbers[b[room], dimension[room], place[room]] = x[room]
        self.seen[b, dimension] += 1
        section, inside = self._sections(x)
        at = b[:, None], dimension[:, None], np.arange(len(self.counts)), section
        self.sums[at] += np.stack([np.ones_like(inside), inside, inside**2], -1)
        sums = self.sums[at]
        self.faults[at[:3]] += sums[..., 0] > self.samples
        self.evidence[at] = evidence(sums)

    def bind(self, rows: Rows, numbers: Numbers, tokens: Tokens) -> None:
        """Remember tokens [n, N] as the names of numbers [n, N]."""
        if not len(rows):
            return
        self.see(rows, numbers)
        self.targets[rows] += 1
        section, _ = self._sections(numbers)
        at = rows[:, None, None], np.arange(numbers.shape[1])[:, None], np.arange(len(self.counts))
        owner, before = self.owner[(*at, section)], self.section[(*at, tokens[..., None])]
        heard = tokens[..., None] > 0
        self.faults[at] += heard & (
            ((owner > 0) & (owner != tokens[..., None])) | ((before >= 0) & (before != section))
        )
        self.owner[(*at, section)] = np.where(heard, tokens[..., None], owner)
        self.section[(*at, tokens[..., None])] = np.where(heard, section, -1)

    def ratio(self, rows: Rows, numbers: Numbers, tokens: Tokens) -> Float64[Reals, " some"]:
        """Return the likelihood ratio that stimuli [n, N] have the meaning of tokens [n, N], [n]."""
        weights = self._weights(rows)
        matches = self._match_probability(rows, numbers, tokens)
        same = (weights * matches).sum(-1).prod(-1)
        any_meaning = (weights / self.counts).sum(-1).prod(-1)
        together = (weights * matches / self.counts).sum(-1).prod(-1)
        return np.asarray(same / np.maximum(any_meaning - together, 1e-12))

    def sizes(self, rows: Rows) -> Int64[Wholes, "some dimension"]:
        """Return the most likely number of values of each dimension in the episodes `rows`, [n, N]."""
        return np.asarray(self.counts[self._weights(rows).argmax(-1)])

    def _weights(self, rows: Wholes) -> Reals:
        """Return the probability of every number of values, [n, N, D]."""
        scores = self.evidence[rows].sum(-1) + UNLIKELY * self.faults[rows]
        # Densities are relative to a section of width 2 / d, and each target shows one of d values.
        scores += (self.seen[rows] - self.targets[rows])[..., None] * np.log(self.counts)
        likely = np.exp(scores - scores.max(-1, keepdims=True))
        return np.asarray(likely / likely.sum(-1, keepdims=True))

    def _match_probability(self, rows: Wholes, numbers: Reals, tokens: Wholes) -> Reals:
        """Return the probability that a token names the section of a number, under every hypothesis, [n, N, D]."""
        section, _ = self._sections(numbers)
        at = rows[:, None, None], np.arange(numbers.shape[1])[:, None], np.arange(len(self.counts))
        known = self.section[(*at, tokens[..., None])]
        owner = self.owner[(*at, section)]
        free = np.maximum(self.counts - (self.owner[rows] > 0).sum(-1), 1)
        new_token = np.where((owner > 0) & (owner != tokens[..., None]), 0.0, 1 / free)
        return np.asarray(np.where(known >= 0, known == section, new_token))

    def _sections(self, numbers: Reals) -> tuple[Wholes, Reals]:
        """Return the section of numbers under every hypothesis, and the position in the section (0 to 1), [..., D]."""
        place = (np.asarray(numbers)[..., None] + 1) / 2 * self.counts
        section = np.clip(np.floor(place), 0, self.counts - 1).astype(np.int64)
        return section, place - section


# A grid of possible standard deviations and means of a value's density in a section from 0 to 1.
_DEVIATIONS = np.repeat((1 + (np.arange(NARROW) + 0.5) / NARROW) / (2 * WIDEST), PLACES)
_PLACES = np.tile((np.arange(PLACES) + 0.5) / PLACES, NARROW)
_MEANS = SAFE * _DEVIATIONS + _PLACES * (1 - 2 * SAFE * _DEVIATIONS)


def evidence(sums: Float64[Reals, "*lead 3"]) -> Float64[Reals, "*lead"]:
    """Return the log-density of a section's numbers, averaged over the possible densities of a value.

    Args:
        sums: count, sum and sum of squares of the numbers' positions in the section from 0 to 1, [..., 3].
    """
    count, total, squares = (sums[..., i, None] for i in range(3))
    scores = -count * np.log(_DEVIATIONS) - (squares - 2 * _MEANS * total + count * _MEANS**2) / (2 * _DEVIATIONS**2)
    top = scores.max(-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(scores - top).mean(-1)) - count[..., 0] * np.log(2 * np.pi) / 2)
