"""Symbolic spaces, their stimuli for the players, and the order of an episode's targets."""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from icy.core.errors import InvalidSettingError
from icy.languages.meanings import MeaningSpace

from .episode_streams import EpisodeStreams, Reals, Wholes

# -- symbolic spaces and stimuli ---------------------------------------------------------------------------------------

# Every episode has its own symbolic space: N dimensions, each with its own number of values. A meaning is a tuple of
# values. Players see stimuli, never meanings. A continuous stimulus (SCS) has one number per dimension in every space,
# so it does not reveal the number of values (MetaRG22 and MetaRG24, section on stimuli).


Truncation = Literal["resample", "clip", "none"]
Stimuli = Literal["scs", "ohe"]
SAFE = 3.0  # smallest number of standard deviations between a mean and the ends of its section
INSIDE = 1e-4  # standard deviations between a clipped sample and the end of its section (owned by the next section)
WIDEST = 6.0  # standard deviations in a section with the widest density; twice as many with the narrowest


@dataclass(frozen=True, eq=False)
class Spaces:
    """The symbolic spaces of a batch of episodes.

    All episodes number their meanings as in `largest`, where every dimension has `most` values. `valid` marks the
    meanings that an episode has.

    Attributes:
        sizes: number of values of each dimension, d, [B, N].
        most: largest number of values that any dimension may have.
    """

    sizes: Int64[Wholes, "batch dimension"]
    most: int

    @classmethod
    def draw(cls, streams: EpisodeStreams, dimensions: int, least: int, most: int) -> "Spaces":
        """Draw spaces: the number of values of each dimension is uniform in least..most."""
        return cls(least + streams.integers("sizes", most - least + 1, (dimensions,)), most)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def dimensions(self) -> int:
        """Number of dimensions, N."""
        return int(self.sizes.shape[1])

    @cached_property
    def largest(self) -> MeaningSpace:
        """The space that numbers the meanings: `most` values in every dimension."""
        return MeaningSpace(self.dimensions, self.most)

    @cached_property
    def meanings(self) -> Int64[Wholes, "meaning dimension={self.dimensions}"]:
        """Every meaning that any episode may have, [M, N], with M = most ** N."""
        return self.largest.all()

    @cached_property
    def valid(self) -> Bool[NDArray[np.bool_], "batch={len(self)} meaning={len(self.meanings)}"]:
        """Whether each episode has each meaning, [B, M]."""
        return np.asarray(np.all(self.meanings < self.sizes[:, None], axis=-1))


@dataclass(frozen=True, eq=False)
class Sections:
    """Densities and samples of the symbolic continuous stimuli (SCS) of some episodes.

    The interval [-1, 1] of a dimension is divided into as many equal sections as it has values. Each value has a normal
    density in its section, with the mean at least three standard deviations from either end, and O samples, drawn once
    per episode. Sample o of a meaning takes sample o of its value in every dimension.

    Attributes:
        spaces: the episodes' spaces.
        means: mean of each value's density, [B, N, most]; entries beyond an episode's number of values are unused.
        deviations: standard deviation of each value's density, [B, N, most].
        samples: samples of each value, [B, N, most, O].
    """

    spaces: Spaces
    means: Float64[Reals, "batch dimension value"]
    deviations: Float64[Reals, "batch dimension value"]
    samples: Float64[Reals, "batch dimension value sample"]

    @classmethod
    def draw(cls, streams: EpisodeStreams, spaces: Spaces, samples: int = 1, truncate: str = "resample") -> "Sections":
        """Draw the densities and samples of every value.

        Args:
            streams: the episodes' streams.
            spaces: the episodes' spaces.
            samples: number of samples per value, O.
            truncate: treatment of samples outside their section: "resample", draw from the density truncated to the
                section, so that values never overlap; "clip", move the sample to the end of its section; "none", keep
                it, as in the authors' program (about seven in ten thousand samples leave their section).
        """
        shape = (spaces.dimensions, spaces.most)
        width = (2 / spaces.sizes)[:, :, None]
        left = -1 + np.arange(spaces.most) * width
        deviations = width / WIDEST * (1 + streams.uniform("deviations", shape)) / 2
        means = left + SAFE * deviations + streams.uniform("means", shape) * (width - 2 * SAFE * deviations)
        drawn = streams.uniform("samples", (*shape, samples))
        low, high = ((end - means) / deviations for end in (left, left + width))
        if truncate == "resample":
            drawn = ndtr(low)[..., None] + drawn * (ndtr(high) - ndtr(low))[..., None]
        scores = ndtri(np.clip(drawn, 2.0**-54, 1 - 2.0**-53))
        if truncate == "clip":
            scores = np.clip(scores, low[..., None] + INSIDE, high[..., None] - INSIDE)
        return cls(spaces, means, deviations, means[..., None] + scores * deviations[..., None])


def one_hot(spaces: Spaces) -> Float32[NDArray[np.float32], "meaning width"]:
    """Return the one-hot stimulus of every meaning (OHE), [M, N * most]: one block of `most` numbers per dimension."""
    return np.eye(spaces.most, dtype=np.float32)[spaces.meanings].reshape(len(spaces.meanings), -1)


# -- targets -----------------------------------------------------------------------------------------------------------


Eligible = Bool[NDArray[np.bool_], "batch meaning"]

TEST_VALUES = 2  # smallest number of dimensions in which a meaning of the query has a test value
WEIGHT = 100  # weight of a value that has been shown often enough
REFUSALS = 5  # number of times that a repeated target is refused before one is accepted, once repeats are allowed
FAILURES = 10  # number of times that a repeated target is refused before repeats are allowed
MOST_ROUNDS = 20_000  # rounds of drawing before giving up; an episode takes some hundreds at most
MOST_IN_TABLE = 1000  # largest number of meanings for which `nearness` is cached, 4 MB
NOTHING = -1  # padding after an episode's last target


def query_meanings(spaces: Spaces, threshold: int = TEST_VALUES) -> Bool[NDArray[np.bool_], " meaning"]:
    """Return which meanings belong to the query: those with test values in at least `threshold` dimensions.

    Values count from 0, and odd values are test values. With the default threshold of 2 every value occurs in the
    support, and combinations of test values never do.

    Returns:
        A mask of all meanings, [M]; `Spaces.valid` marks the meanings that an episode has.
    """
    return np.asarray((spaces.meanings % 2 == 1).sum(-1) >= threshold)


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets of B episodes, in the order in which they are played.

    Attributes:
        meanings: number of each target's meaning, [B, G]; NOTHING after an episode's last target.
        samples: number of each target's sample, [B, G].
    """

    meanings: Int64[Wholes, "batch game"]
    samples: Int64[Wholes, "batch game"]

    @property
    def counts(self) -> Int64[Wholes, " batch"]:
        """Number of games of each episode, [B]."""
        return np.asarray((self.meanings != NOTHING).sum(1))

    def replaced(self, which: Int64[Wholes, " some"], others: "Targets") -> "Targets":
        """Replace the targets of the episodes `which` by those of `others`."""
        longest = max(self.meanings.shape[1], others.meanings.shape[1])
        meanings, samples = (np.full((len(self.meanings), longest), n) for n in (NOTHING, 0))
        meanings[:, : self.meanings.shape[1]], samples[:, : self.samples.shape[1]] = self.meanings, self.samples
        meanings[which], samples[which] = NOTHING, 0
        meanings[which, : others.meanings.shape[1]] = others.meanings
        samples[which, : others.samples.shape[1]] = others.samples
        return Targets(meanings, samples)


def every_meaning(eligible: Eligible, samples: int, streams: EpisodeStreams | None = None) -> Targets:
    """Return targets that show every eligible meaning and sample once.

    Args:
        eligible: the meanings to play, [B, M].
        samples: number of samples per meaning, O.
        streams: streams for a random order; None: ordered by meaning, then by sample.
    """
    flat = eligible.repeat(samples, axis=1)
    rank = np.where(flat, streams.uniform("order", (flat.shape[1],)) if streams else 0.0, 2.0)
    order = np.argsort(rank, axis=1, kind="stable")[:, : int(flat.sum(1).max())]
    there = np.take_along_axis(flat, order, 1)
    return Targets(np.where(there, order // samples, NOTHING), np.where(there, order % samples, 0))


def shots(streams: EpisodeStreams, spaces: Spaces, eligible: Eligible, shots: int, samples: int) -> Targets:
    """Draw targets that show every value of every dimension at least S times (TSS, target stimulus sampling, MetaRG22).

    A target's values are drawn dimension by dimension, with weights that fall each time a value is shown, until every
    value has been shown often enough. A meaning that is not eligible is replaced by an eligible one with near values. A
    meaning that was shown before is refused several times before it is repeated.

    Args:
        streams: the episodes' streams.
        spaces: the episodes' spaces.
        eligible: the meanings to choose from, [B, M].
        shots: how often each value is shown at least, S.
        samples: number of samples per meaning, O.

    Raises:
        InvalidSettingError: no eligible meaning has some value, so it can never be shown.
    """
    _check_reachable(spaces, eligible)
    drawing = _Drawing(streams, spaces, eligible, shots, samples)
    for _ in range(MOST_ROUNDS):
        if drawing.done:
            return drawing.targets()
        drawing.round()
    raise InvalidSettingError(f"No targets with {shots} shots of every value were found in {MOST_ROUNDS} draws.")


def _check_reachable(spaces: Spaces, eligible: NDArray[np.bool_]) -> None:
    for i in range(spaces.dimensions):
        for value in range(spaces.most):
            shown = (eligible & (spaces.meanings[:, i] == value)).any(1)
            if (~shown & (value < spaces.sizes[:, i])).any():
                raise InvalidSettingError(
                    f"No eligible meaning has value {value} in dimension {i}, so it can never be shown; "
                    "show every meaning instead."
                )


class _Drawing:
    """The state of target sampling, for the episodes that are not finished."""

    def __init__(
        self, streams: EpisodeStreams, spaces: Spaces, eligible: NDArray[np.bool_], shots: int, samples: int
    ) -> None:
        self.count, self.samples, self.rounds = len(spaces), samples, 0
        self.meanings, self.dimensions = spaces.meanings, np.arange(spaces.dimensions)
        self.space = spaces.largest
        self.episodes = np.arange(len(spaces))
        self.streams, self.eligible = streams, eligible
        values = np.arange(spaces.most) < spaces.sizes[:, :, None]
        self.weights = np.where(values, np.int32(WEIGHT * (shots + 1)), np.int32(0))
        self.repeats = shots * spaces.sizes.sum(1) > eligible.sum(1) * samples
        self.failures = np.zeros(len(spaces), dtype=np.int64)
        self.before = np.zeros(eligible.shape, dtype=bool)
        self.chosen: list[tuple[Wholes, Wholes, Wholes]] = []  # episodes, meanings and samples, round by round

    @property
    def done(self) -> bool:
        """Whether every value of every episode has been shown often enough."""
        return not len(self.episodes)

    def round(self) -> None:
        """Draw one target for every episode, and accept or refuse it."""
        rows = np.arange(len(self.episodes))
        drawn = self._draw()
        again = self.before[rows, drawn]
        accepted = np.flatnonzero(~again | self._repeated(again))
        # An eligible meaning takes the place of one that is not; meanings near it are more likely.
        moved = accepted[~self.eligible[accepted, drawn[accepted]]]
        weights = (nearness(self.meanings, drawn[moved]) * self.eligible[moved]).cumsum(1)
        at = self.streams.rows(moved).uniform("near", (1,), first=self.rounds) * weights[:, -1:]
        drawn[moved] = (weights <= at).sum(1)
        self._accept(accepted, drawn[accepted])
        self.rounds += 1
        self._keep(np.any(self.weights > WEIGHT, axis=(1, 2)))

    def _repeated(self, again: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of the repeated draws are accepted; the others are drawn again."""
        ready: NDArray[np.bool_] = again & self.repeats & (self.failures >= REFUSALS)
        self.failures += again & ~ready
        opened = again & ~self.repeats & (self.failures > FAILURES)
        self.repeats |= opened
        self.failures[ready | opened] = 0
        return ready

    def _draw(self) -> Wholes:
        """Draw a value per dimension by weight, and return the numbers of the meanings, [episodes]."""
        sums = self.weights.cumsum(2)
        first, shape = self.rounds * len(self.dimensions), (len(self.dimensions),)
        at = self.streams.uniform("values", shape, first) * sums[:, :, -1]
        return self.space.index((sums <= at[:, :, None]).sum(2))

    def _accept(self, rows: Wholes, targets: Wholes) -> None:
        """Add a target to each row's episode, and lower the weights of its values."""
        sample = self.streams.rows(rows).integers("samples", self.samples, (1,), first=self.rounds)[:, 0]
        self.chosen.append((self.episodes[rows], targets, sample))
        self.before[rows, targets] = True
        values = self.meanings[targets]
        left = self.weights[rows[:, None], self.dimensions, values] - WEIGHT
        self.weights[rows[:, None], self.dimensions, values] = np.maximum(left, WEIGHT)

    def _keep(self, which: NDArray[np.bool_]) -> None:
        """Keep only these episodes."""
        if which.all():
            return
        self.episodes, self.streams = self.episodes[which], self.streams.rows(which)
        for name in ("eligible", "weights", "repeats", "failures", "before"):
            setattr(self, name, getattr(self, name)[which])

    def targets(self) -> Targets:
        """Return the accepted targets, episode by episode."""
        episodes, meanings, samples = (np.concatenate(part) for part in zip(*self.chosen, strict=True))
        order = np.argsort(episodes, kind="stable")
        counts = np.bincount(episodes, minlength=self.count)
        rows, columns = episodes[order], np.arange(len(order)) - np.repeat(counts.cumsum() - counts, counts)
        shape = self.count, int(counts.max())
        found = Targets(np.full(shape, NOTHING), np.zeros(shape, dtype=np.int64))
        found.meanings[rows, columns], found.samples[rows, columns] = meanings[order], samples[order]
        return found


def nearness(
    meanings: Int64[Wholes, "meaning dimension"], drawn: Int64[Wholes, " drawn"]
) -> Float32[NDArray[np.float32], "drawn meaning"]:
    """Return the weights with which each meaning [M, N] replaces a drawn meaning, given by number [n]: [n, M]."""
    if len(meanings) <= MOST_IN_TABLE:
        return _table_of_nearness(MeaningSpace(meanings.shape[1], int(meanings.max()) + 1))[drawn]
    return _nearness(meanings, meanings[drawn])


def _nearness(meanings: Wholes, to: Wholes) -> NDArray[np.float32]:
    squares = np.zeros((len(to), len(meanings)))
    for i in range(meanings.shape[1]):
        squares += (meanings[:, i] - to[:, i, None]) ** 2
    return np.asarray((1 / (WEIGHT * squares + 0.001)).astype(np.float32))


@cache
def _table_of_nearness(space: MeaningSpace) -> NDArray[np.float32]:
    return _nearness(space.all(), space.all())
