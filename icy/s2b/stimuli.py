"""Symbolic spaces and stimuli: the meanings of an episode, and their representation for the players.

Every episode has its own symbolic space: N dimensions, each with its own number of values. A meaning is a tuple of
values. Players see stimuli, never meanings. A continuous stimulus (SCS) has one number per dimension in every space, so
it does not reveal the number of values (MetaRG22 and MetaRG24, section on stimuli).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, require_known
from icy.languages.meanings import MeaningSpace

from .episode_streams import EpisodeStreams, Reals, Wholes

Truncation = Literal["resample", "clip", "none"]
Stimuli = Literal["scs", "ohe"]
TRUNCATIONS: tuple[str, ...] = get_args(Truncation)
REPRESENTATIONS: tuple[str, ...] = get_args(Stimuli)
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
        """Draw spaces: the number of values of each dimension is uniform in least..most.

        Raises:
            InvalidSettingError: fewer than one dimension, or 1 <= least <= most does not hold.
        """
        whole_number("number of dimensions", dimensions)
        whole_number("least number of values", least)
        if whole_number("greatest number of values", most) < least:
            raise InvalidSettingError(
                f"The smallest number of values, least={least}, must not be above the largest, most={most}."
            )
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
        found: NDArray[np.bool_] = np.all(self.meanings < self.sizes[:, None], axis=-1)
        return found


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

        Raises:
            InvalidSettingError: fewer than one sample.
            UnknownNameError: an unknown `truncate`.
        """
        require_known("rule for samples outside their section", truncate, TRUNCATIONS)
        shape = (spaces.dimensions, spaces.most)
        width = (2 / spaces.sizes)[:, :, None]
        left = -1 + np.arange(spaces.most) * width
        deviations = width / WIDEST * (1 + streams.uniform("deviations", shape)) / 2
        means = left + SAFE * deviations + streams.uniform("means", shape) * (width - 2 * SAFE * deviations)
        count = whole_number("number of samples", samples)
        drawn = streams.uniform("samples", (*shape, count))
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
