"""Resolution: the uncertainty of a ratio from the noise and the spacing of evaluations."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from icy.config.protocols import BASELINE
from icy.config.settings import TrainingSettings
from icy.languages.meanings import MeaningSpace
from icy.languages.word_lengths import bounds_of

from .record import Record, checks_of, config_text
from .versions import code_of

MOST_STEPS = 10**10  # largest number of steps with a resolution; for more, it is NaN
BELOW = 5.0  # the line through the readings begins at this number of standard deviations below the target
RECENT = 8  # readings that show whether a curve flattens: on a geometric grid, the last half of the updates
LEAST_EARLIER = 4  # readings before the RECENT readings, for comparison
LEAST_SLOPE = 0.02  # of a flattening curve, per unit of log(updates)
# Correlation of the readings of concat and perm at the same evaluation, on the same meanings: 0.2 to 0.8 in six models,
# 0.5 on average (results/resolution). Other grammars rarely reach the target at the same evaluations as concat.
SHARED = 0.5


@dataclass(frozen=True)
class Uncertainty:
    """Relative standard uncertainty of the step at which a run reached its target.

    Attributes:
        readings: uncertainty from each reading around the step, by the step of its evaluation.
        spacing: uncertainty from the spacing of evaluations on a grid.
    """

    readings: dict[int, float]
    spacing: float = 0.0

    def __float__(self) -> float:
        return math.hypot(self.spacing, *self.readings.values())


def resolution_of(record: Record, baseline: Record | None = None) -> float:
    """Return the relative standard uncertainty of a ratio from the noise of readings: 0.05 is 5 %.

    It combines the uncertainties of the grammar's run and of the baseline's run (`crossing_uncertainty`) in quadrature.
    If both runs reach the target at the same evaluations, these use the same meanings, and their errors are correlated.

    Args:
        record: record of a run of a grammar.
        baseline: record of concat at the same seed, if known.

    Returns:
        0 for the baseline, because its ratio is 1; NaN for measures that are not ratios, for runs that failed or were
        cut, for readings of training batches, and for more than MOST_STEPS steps.
    """
    concat = record.get("baseline_crossing") or record.get("baseline_steps")
    if record["measure"] != "ratio" or record["failed"] or record["reason"] == "cap" or not concat:
        return math.nan
    if record["grammar"] == BASELINE:
        return 0.0
    settings = None if record["config"].get("settings", {}).get("training_readings") else checks_of(record)
    crossing = record.get("crossing") or record["steps"]
    if settings is None or max(crossing, concat) > MOST_STEPS:
        return math.nan
    own = crossing_uncertainty(record, crossing, settings)
    other = crossing_uncertainty(baseline, concat, settings)
    shared = sum(own.readings[check] * other.readings[check] for check in own.readings.keys() & other.readings.keys())
    return math.sqrt(float(own) ** 2 + float(other) ** 2 - 2 * SHARED * shared)


def crossing_uncertainty(record: Record | None, crossing: float, settings: TrainingSettings) -> Uncertainty:
    """Return the relative standard uncertainty of the step at which a run reached its target.

    A reading is the fraction of right answers over the meanings of an evaluation. Its standard deviation assumes
    independent answers, one per attribute of a receiver and one per token of a sender. Divided by the slope of the
    curve at the target, it is an uncertainty in updates. The slope is the slope of a line through the readings from
    BELOW standard deviations below the target up to the crossing. If the curve flattens, the slope is at most the slope
    of its last RECENT readings, because a reading that is too high by chance ends the training. If steps are
    interpolated, the two readings around the crossing have the weights of the interpolation. On a fixed grid of
    evaluations, the spacing of the grid is added in quadrature.

    Args:
        record: record of the run, with its curve; None if unknown.
        crossing: step at which the run reached its target.
        settings: settings of its evaluations.

    Returns:
        The uncertainty as a fraction of `crossing`; if the curve is unknown, only the uncertainty from the spacing.
    """
    parts = None if record is None else _around(record, crossing, settings)
    if parts is None:
        return Uncertainty({}, _spacing(settings, crossing))
    if settings.interpolates:
        return Uncertainty(parts)
    last = max(parts)
    return Uncertainty({last: parts[last]}, _spacing(settings, crossing))


def _around(record: Record, crossing: float, settings: TrainingSettings) -> dict[int, float] | None:
    """Return the uncertainty from the reading before the crossing and from the reading after it, by their steps.

    None if the curve lacks one of the two readings.
    """
    target = float(record["target"])
    points = [(float(p[0]), float(p[1])) for p in record.get("curve", ()) if p[0] is not None and p[1] is not None]
    last = next((place for place, (_, accuracy) in enumerate(points) if accuracy >= target), None)
    if not last or target >= 1 or crossing <= 0:
        return None
    spread = math.sqrt(target * (1 - target) / answers_of(record))
    noise = [spread / math.sqrt(settings.check_size(int(steps))) for steps, _ in points[: last + 1]]
    first = last - 1
    while first > 0 and points[first][1] > target - BELOW * noise[first]:
        first -= 1
    (before, low), (after, high) = points[last - 1], points[last]
    slope = _slope(points[first : last + 1])
    if slope <= 0:
        slope = (high - low) / (after - before)
    if (flat := _flattened(points[: last + 1])) is not None:
        slope = min(slope, flat / crossing)
    weight = min(1.0, max(0.0, (crossing - before) / (after - before)))
    parts = ((before, (1 - weight) * noise[last - 1]), (after, weight * noise[last]))
    return {int(check): part / slope / crossing for check, part in parts}


def answers_of(record: Record) -> float:
    """Return how many answers an accuracy averages per meaning: attributes of a receiver, tokens of a sender.

    The sampling noise of an accuracy decreases with this number, so the uncertainty of a ratio depends on it.
    For words of different lengths the number of tokens is a mean over the lengths.
    """
    attributes = MeaningSpace.parse(str(record["meanings"])).attributes
    lengths = bounds_of(record["config"].get("word_lengths") or record["word_length"])
    return attributes if record["side"] == "receiver" else attributes * sum(lengths) / 2


def _slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the least-squares line through points."""
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return float(sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points))


def _flattened(points: list[tuple[float, float]]) -> float | None:
    """Return the slope of the last RECENT readings over log(updates), if the curve was steeper before.

    Return None for other curves, and for curves with few readings.
    """
    on_log = [(math.log(steps), accuracy) for steps, accuracy in points if steps > 0]
    recent, earlier = on_log[-RECENT:], on_log[-2 * RECENT : 1 - RECENT]
    if len(earlier) < LEAST_EARLIER or (slope := _slope(recent)) >= _slope(earlier):
        return None
    return max(slope, LEAST_SLOPE)


def _spacing(settings: TrainingSettings, steps: float) -> float:
    """Return the relative standard uncertainty of a step that is uniformly distributed between two evaluations.

    It is half the gap divided by sqrt(3) (JCGM 100:2008, section 4.3.7), as a fraction of the midpoint.
    """
    before, after = settings.checks_around(steps)
    return (after - before) / (after + before) / math.sqrt(3)


def baselines_of(records: Iterable[Record]) -> dict[str, Record]:
    """Return the records of baselines by `run_of_seed`."""
    return {run_of_seed(r): r for r in records if r["grammar"] == BASELINE and r["measure"] == "ratio"}


def run_of_seed(record: Record) -> str:
    """Return the configuration of a run without its grammar, as text."""
    return config_text({**record["config"], "grammar": ""}) + str(code_of(record))
