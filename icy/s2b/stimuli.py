"""What the players see: symbolic spaces of an episode, and the representations of their meanings.

Every episode has a symbolic space of its own, N dimensions of so many values each. A meaning is a tuple of values. It
is never shown; a player sees a stimulus, of which the continuous form (SCS) has one number per dimension whatever the
space is, so that no stimulus tells how many values there are (MetaRG22 and MetaRG24, section on stimuli).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError, unknown

from .streams import Draws, Reals, Wholes

TRUNCATIONS = ("resample", "clip", "none")
REPRESENTATIONS = ("scs", "ohe")
SAFE = 3.0  # standard deviations that a mean keeps from the ends of its section
INSIDE = 1e-4  # standard deviations from the end of a section, which belongs to the next one
WIDEST = 6.0  # standard deviations in a section, at the least; twice as many at the most


def all_meanings(most: int, dimensions: int) -> Wholes:
    """The meanings of so many values in every dimension, by number, the last dimension fastest: [M, N]."""
    return np.indices((most,) * dimensions).reshape(dimensions, -1).T.astype(np.int64)


def meaning_numbers(meanings: Wholes, most: int) -> Wholes:
    """The numbers of meanings [..., N] among all of so many values in every dimension: [...]."""
    found: Wholes = meanings @ (most ** np.arange(meanings.shape[-1])[::-1])
    return found


@dataclass(frozen=True, eq=False)
class Spaces:
    """The symbolic spaces of some episodes, side by side.

    Meanings of all of them are numbered alike, as if every dimension had `most` values, the last dimension fastest;
    those that an episode does not have are not `valid` in it. In an episode's own order they come in the same sequence.

    Attributes:
        sizes: values of each dimension, d, [B, N].
        most: the greatest number of values that any episode may have.
    """

    sizes: Wholes
    most: int

    @classmethod
    def draw(cls, draws: Draws, dimensions: int, least: int, most: int) -> Spaces:
        """Spaces with numbers of values that are uniform in least..most, dimension by dimension.

        Raises:
            InvalidSettingError: not at least one dimension, or not 1 <= least <= most.
        """
        whole_number("number of dimensions", dimensions)
        whole_number("least number of values", least)
        if whole_number("greatest number of values", most) < least:
            raise InvalidSettingError(f"Numbers of values run from {least} to {most}, which leaves none.")
        return cls(least + draws.integers("sizes", most - least + 1, (dimensions,)), most)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def dimensions(self) -> int:
        """N."""
        return int(self.sizes.shape[1])

    @cached_property
    def meanings(self) -> Wholes:
        """Every meaning that any episode may have, [M, N] with M = most ** N."""
        return all_meanings(self.most, self.dimensions)

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        """Which of them each episode has, [B, M]."""
        found: NDArray[np.bool_] = np.all(self.meanings < self.sizes[:, None], axis=-1)
        return found


@dataclass(frozen=True, eq=False)
class Sections:
    """The symbolic continuous stimuli (SCS) of some episodes.

    A dimension's interval [-1, 1] is divided into as many sections as it has values. A value has a normal density in
    its section, its mean at least three standard deviations from the ends, and so many samples, drawn once for the
    episode: sample o of a meaning takes sample o of the value in every dimension.

    Attributes:
        spaces: the episodes' spaces.
        means: [B, N, most], in 0..; of values that an episode does not have, nothing of meaning.
        deviations: [B, N, most].
        samples: [B, N, most, O].
    """

    spaces: Spaces
    means: Reals
    deviations: Reals
    samples: Reals

    @classmethod
    def draw(cls, draws: Draws, spaces: Spaces, samples: int = 1, truncate: str = "resample") -> Sections:
        """Densities and samples.

        Args:
            draws: the episodes' streams.
            spaces: their spaces.
            samples: per value, O.
            truncate: what becomes of a sample outside its section: "resample", samples are of the density within the
                section, so that sections never overlap; "clip", it is moved to the end of the section; "none", it
                stays, as in the authors' program (three in ten thousand at the most).

        Raises:
            InvalidSettingError: not at least one sample.
            UnknownNameError: another word for `truncate`.
        """
        if truncate not in TRUNCATIONS:
            raise unknown("rule for samples outside their section", truncate, TRUNCATIONS)
        shape = (spaces.dimensions, spaces.most)
        width = (2 / spaces.sizes)[:, :, None]
        left = -1 + np.arange(spaces.most) * width
        deviations = width / WIDEST * (1 + draws.uniform("deviations", shape)) / 2
        means = left + SAFE * deviations + draws.uniform("means", shape) * (width - 2 * SAFE * deviations)
        count = whole_number("number of samples", samples)
        drawn = draws.uniform("samples", (*shape, count))
        low, high = ((end - means) / deviations for end in (left, left + width))
        if truncate == "resample":
            drawn = ndtr(low)[..., None] + drawn * (ndtr(high) - ndtr(low))[..., None]
        scores = ndtri(np.clip(drawn, 2.0**-54, 1 - 2.0**-53))
        if truncate == "clip":
            scores = np.clip(scores, low[..., None] + INSIDE, high[..., None] - INSIDE)
        return cls(spaces, means, deviations, means[..., None] + scores * deviations[..., None])

    @cached_property
    def table(self) -> NDArray[np.float32]:
        """The stimulus of every meaning and sample, [B, M, O, N]."""
        by_dimension = [self.samples[:, i, self.spaces.meanings[:, i]] for i in range(self.spaces.dimensions)]
        return np.stack(by_dimension, -1).astype(np.float32)

    def latents(self) -> Reals:
        """The middle of every value's section, [B, N, most]."""
        return -1 + (np.arange(self.spaces.most) + 0.5) * (2 / self.spaces.sizes)[:, :, None]


def one_hot(spaces: Spaces) -> NDArray[np.float32]:
    """The one-hot stimulus of every meaning (OHE), [M, N * most]: a block per dimension, as wide for every episode."""
    return np.eye(spaces.most, dtype=np.float32)[spaces.meanings].reshape(len(spaces.meanings), -1)


def nearest_values(stimuli: Reals, sizes: Wholes) -> Wholes:
    """The values whose sections stimuli lie in: what one who knew the numbers of values would read.

    Args:
        stimuli: [..., N] in [-1, 1].
        sizes: values of each dimension, [..., N].
    """
    found: Wholes = np.clip(np.floor((np.asarray(stimuli) + 1) / 2 * sizes), 0, sizes - 1).astype(np.int64)
    return found
