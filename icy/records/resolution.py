"""Resolution: how much of a ratio the noise and the spacing of readings leave open."""

from __future__ import annotations

import math
from collections.abc import Iterable

from icy.config.protocols import BASELINE
from icy.config.settings import TrainingSettings
from icy.languages.meanings import MeaningSpace

from .record import Record, checks_of, config_text

MOST_STEPS = 10**10  # of a training, a day or many: whose checks are found in a moment
BELOW = 3.0  # standard deviations of a reading below the target, where the line through the readings begins


def resolution_of(record: Record, baseline: Record | None = None) -> float:
    """Return the relative standard uncertainty that the readings leave in a ratio: 0.05 is 5 %.

    It has a part from the grammar's run and one from the baseline's, which add in squares (`crossing_uncertainty`).

    Args:
        record: of a run of a grammar.
        baseline: that of concat at the same seed, if it is known.

    Returns:
        0 for the baseline, whose ratio is 1; NaN for other measures than ratios, for runs that failed or were cut, and
        for more steps than any training takes (MOST_STEPS).
    """
    concat = record.get("baseline_crossing") or record.get("baseline_steps")
    if record["measure"] != "ratio" or record["failed"] or record["reason"] == "cap" or not concat:
        return math.nan
    if record["grammar"] == BASELINE:
        return 0.0
    settings = checks_of(record)
    crossing = record.get("crossing") or record["steps"]
    if settings is None or max(crossing, concat) > MOST_STEPS:
        return math.nan
    of_concat = None if baseline is None else crossing_uncertainty(baseline, concat, settings)
    own = crossing_uncertainty(record, crossing, settings)
    parts = [
        _spacing(settings, steps) if part is None else part for part, steps in ((own, crossing), (of_concat, concat))
    ]
    return math.hypot(*parts)


def crossing_uncertainty(record: Record, crossing: float, settings: TrainingSettings) -> float | None:
    """Return the relative standard uncertainty of the step at which a run reached its target.

    A reading is the share of right answers among the meanings of an evaluation. Its standard deviation is that of
    independent answers, one per attribute of a receiver and one per token of a sender. Divided by the slope of the
    curve at the target, it is an uncertainty in updates. The slope is that of a line through the readings from BELOW
    standard deviations below the target up to the crossing. Where steps are interpolated, the two readings around the
    crossing count by their weights; on a fixed grid of evaluations the spacing of the grid is added in squares.

    Args:
        record: of the run, with its curve.
        crossing: the step.
        settings: of its evaluations.

    Returns:
        The uncertainty as a share of `crossing`; None where the curve does not show it.
    """
    target = float(record["target"])
    points = [(float(p[0]), float(p[1])) for p in record.get("curve", ()) if p[0] is not None and p[1] is not None]
    last = next((place for place, (_, accuracy) in enumerate(points) if accuracy >= target), None)
    if not last or target >= 1 or crossing <= 0:
        return None
    space = MeaningSpace.parse(str(record["meanings"]))
    answers = space.attributes * (1 if record["side"] == "receiver" else record["word_length"])
    spread = math.sqrt(target * (1 - target) / answers)
    noise = [spread / math.sqrt(settings.check_size(int(steps))) for steps, _ in points[: last + 1]]
    first = last - 1
    while first > 0 and points[first][1] > target - BELOW * noise[first]:
        first -= 1
    (before, low), (after, high) = points[last - 1], points[last]
    slope = _slope(points[first : last + 1])
    if slope <= 0:
        slope = (high - low) / (after - before)
    if not settings.interpolates:
        return math.hypot(noise[last] / slope / crossing, _spacing(settings, crossing))
    weight = min(1.0, max(0.0, (crossing - before) / (after - before)))
    return math.hypot((1 - weight) * noise[last - 1], weight * noise[last]) / slope / crossing


def _slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the line of least squares through some points."""
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def _spacing(settings: TrainingSettings, steps: float) -> float:
    """Return the relative standard uncertainty of a step that lies anywhere between two evaluations.

    That is half the gap over the root of three (JCGM 100:2008, section 4.3.7), as a share of the middle.
    """
    before, after = settings.checks_around(steps)
    return (after - before) / (after + before) / math.sqrt(3)


def baselines_of(records: Iterable[Record]) -> dict[str, Record]:
    """Return the records of baselines by what they share with the runs of their seed (`run_of_seed`)."""
    return {run_of_seed(r): r for r in records if r["grammar"] == BASELINE and r["measure"] == "ratio"}


def run_of_seed(record: Record) -> str:
    """Return the configuration of a run without its grammar, as text."""
    return config_text({**record["config"], "grammar": ""})
