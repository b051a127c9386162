"""Estimates with 95 % intervals, for the pages of people and of the panel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from icy.analysis.statistics import CONFIDENCE, student

Values = NDArray[np.float64]


def percentile_interval(draws: Values) -> tuple[float, float]:
    """Return the 95 % percentile interval of bootstrap draws."""
    low, high = np.nanquantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def student_interval(values: Values) -> tuple[float, float, float]:
    """Return the mean of values, and the ends of its 95 % interval by Student's t."""
    mean, half = values.mean(), student(len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(mean), float(mean - half), float(mean + half)


def print_estimate(estimate: Sequence[float], digits: int = 2) -> str:
    """Format a value with its interval, such as "0.50 (0.40 to 0.60)"."""
    value, low, high = (f"{end:.{digits}f}" for end in estimate)
    return f"{value} ({low} to {high})"
