"""Results of a search: its trials, their order, and the finalists with the difference between two measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.text import markdown_table

from .measuring import Measured
from .objectives import Direction, Objective, Value
from .setup import SearchSetup

if TYPE_CHECKING:
    import pandas as pd

MOST_SHOWN = 10  # trials in the table of the terminal


@dataclass(frozen=True)
class SearchTrial:
    """A trial.

    Attributes:
        number: its number, from 0.
        params: the value of each dimension.
        rungs: its measurement at each rung that it reached.
    """

    number: int
    params: dict[str, Any]
    rungs: tuple[Measured, ...]

    @property
    def last(self) -> Measured:
        """The measurement at the last rung that it reached."""
        return self.rungs[-1]

    @property
    def name(self) -> str:
        """Name of the model, with hidden size and options if they are dimensions."""
        return self.last.point.name


@dataclass(frozen=True)
class Finalist:
    """A finalist or a baseline, measured with new seeds and words.

    Attributes:
        name: name of the model.
        search: its measurement at the last rung; None for a baseline, and for a trial that did not reach this rung.
        again: the same measurement with new seeds.
        larger: the measurement with the settings of `larger`; None without them.
    """

    name: str
    search: Measured | None
    again: Measured
    larger: Measured | None = None

    def shrinkage(self, place: int) -> float:
        """Return the new value minus that in the search, of the objective with this index.

        It is NaN without one of these values, and if one of them is only a bound.
        """
        if self.search is None or not (self.search.values and self.again.values):
            return math.nan
        old, new = self.search.values[place], self.again.values[place]
        return math.nan if old.bound or new.bound else new.value - old.value


@dataclass(frozen=True, repr=False)
class SearchResult:
    """The results of a search.

    Attributes:
        trials: the trials by number.
        finalists: the finalists, the best first.
        baselines: the baselines, measured like the finalists.
        importances: for each objective, the importance of each dimension.
        folder: results folder.
        paths: files of the report.
        setup: the search with its settings checked.
    """

    trials: Sequence[SearchTrial]
    finalists: Sequence[Finalist] = ()
    baselines: Sequence[Finalist] = ()
    importances: Sequence[dict[str, float]] = ()
    folder: Path | None = None
    paths: Sequence[Path] = ()
    setup: SearchSetup = field(kw_only=True)

    @property
    def objectives(self) -> Sequence[Objective]:
        """The objectives, first those to minimize."""
        return self.setup.objectives

    @property
    def ranked(self) -> list[SearchTrial]:
        """The trials, the best first: by rung, then by front; trials without values last."""
        return ranked(self.objectives, self.trials)

    @property
    def front(self) -> list[SearchTrial]:
        """The trials that no other dominates at the last rung with values: one, or the Pareto front."""
        known = [trial for trial in self.trials if trial.last.known]
        most = max((len(trial.rungs) for trial in known), default=0)
        own = [trial for trial in known if len(trial.rungs) == most]
        return [own[place] for place in _fronts(self.objectives, own)[0]] if own else []

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row per trial, the best first: number, model, dimensions, rung, values, bounds and problem."""
        import pandas as pd

        return pd.DataFrame([self._row(trial) for trial in self.ranked])

    def _row(self, trial: SearchTrial) -> dict[str, Any]:
        values = trial.last.values or tuple(Value(math.nan) for _ in self.objectives)
        numbers = {one.text: value.value for one, value in zip(self.objectives, values, strict=True)}
        bounds = {f"bound of {o.text}": v.bound for o, v in zip(self.objectives, values, strict=True)}
        about = {"trial": trial.number, "name": trial.name, **trial.params, "rung": len(trial.rungs)}
        return {**about, **numbers, **bounds, "parameters": trial.last.parameters, "problem": trial.last.problem}

    def trial_table(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of the table of trials, the best first.

        Args:
            most: maximum number of rows.
        """
        rungs = ["rung"] if len(self.setup.rungs) > 1 else []
        headings = ["trial", "model", *rungs, *(one.label for one in self.objectives)]
        rows = []
        for trial in self.ranked[:most]:
            values = [value.text() for value in trial.last.values] or ["refused"] * len(self.objectives)
            rows.append([str(trial.number), trial.name, *([str(len(trial.rungs))] if rungs else []), *values])
        return headings, rows

    def finalist_table(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of the table of finalists and baselines, per objective."""
        larger = any(one.larger is not None for one in self.finalists)
        headings = ["objective", "model", "in the search", "again", "shrinkage", *(["larger"] if larger else [])]
        rows = []
        for place, objective in enumerate(self.objectives):
            for one in (*self.finalists, *self.baselines):
                change = one.shrinkage(place)
                rows.append([
                    *(objective.text, one.name, _text(one.search, place), _text(one.again, place, interval=True)),
                    f"{change:+.2f}" if math.isfinite(change) else "-",
                    *([_text(one.larger, place, interval=True)] if larger else []),
                ])  # fmt: skip
        return headings, rows

    def importance_table(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of the table of importances, a row per dimension, the most important first."""
        names = sorted(self.setup.space.values, key=lambda name: -sum(one.get(name, 0.0) for one in self.importances))
        rows = [[name, *(f"{one[name]:.2f}" if name in one else "-" for one in self.importances)] for name in names]
        return ["option", *(one.text for one in self.objectives)], rows

    def _repr_markdown_(self) -> str:
        return "\n\n".join(markdown_table(*table) for table in (self.trial_table(), self.finalist_table()))

    def __repr__(self) -> str:
        return markdown_table(*self.trial_table(MOST_SHOWN))


def _text(measured: Measured | None, place: int, interval: bool = False) -> str:
    if measured is None:
        return "-"
    return measured.values[place].text(interval) if measured.values else "failed"


def ranked(objectives: Sequence[Objective], trials: Sequence[SearchTrial]) -> list[SearchTrial]:
    """Return trials, the best first.

    Trials that reached later rungs come first. Within a rung, trials are in fronts. Within a front, they are ordered by
    the sum of their ranks in the objectives, then by number. Trials without values come last.
    """
    found: list[SearchTrial] = []
    for rung in sorted({len(trial.rungs) for trial in trials}, reverse=True):
        own = [trial for trial in trials if len(trial.rungs) == rung and trial.last.known]
        for front in _fronts(objectives, own):
            found += sorted((own[place] for place in front), key=lambda trial: (_rank_sum(objectives, own, trial),
                                                                                trial.number))  # fmt: skip
    return found + [trial for trial in trials if not trial.last.known]


def fronts(directions: Sequence[Direction], values: Sequence[Sequence[float]]) -> list[list[int]]:
    """Sort trials into Pareto fronts and return their indices: no trial of a front dominates another one of this front.

    The first front has the best trials. The second front is the best without the first front, and so on.

    Args:
        directions: "minimize" or "maximize", per objective.
        values: values of the objectives, per trial.

    Example:
        >>> fronts(["minimize", "minimize"], [(1, 2), (2, 1), (2, 2), (3, 3)])
        [[0, 1], [2], [3]]
    """
    signs = [-1 if direction == "maximize" else 1 for direction in directions]
    costs = [tuple(sign * value for sign, value in zip(signs, own, strict=True)) for own in values]
    left, found = list(range(len(costs))), []
    while left:
        found.append([place for place in left if not any(_dominates(costs[other], costs[place]) for other in left)])
        left = [place for place in left if place not in found[-1]]
    return found


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Return whether no cost is larger than the other's, and one is smaller."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def _fronts(objectives: Sequence[Objective], trials: Sequence[SearchTrial]) -> list[list[int]]:
    values = [[value.value for value in trial.last.values] for trial in trials]
    return fronts([one.direction for one in objectives], values)


def _rank_sum(objectives: Sequence[Objective], trials: Sequence[SearchTrial], trial: SearchTrial) -> int:
    """Return the number of better values in other trials, over all objectives."""
    total = 0
    for place, objective in enumerate(objectives):
        sign = -1 if objective.maximize else 1
        own = sign * trial.last.values[place].value
        total += sum(sign * other.last.values[place].value < own for other in trials)
    return total
