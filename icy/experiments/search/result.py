"""Results of a search: its trials, their order, and the finalists with the difference between two measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from jaxtyping import Float

from icy.core.text import markdown_table
from icy.core.types import Fields
from icy.records.record import Record

from .objectives import Objective, Value
from .setup import Point, SearchSetup

if TYPE_CHECKING:
    import pandas as pd

MOST_SHOWN = 10  # trials in the table of the terminal
Costs: TypeAlias = Float[np.ndarray, "trial objective"]


@dataclass(frozen=True)
class Measured:
    """A point with its values.

    Attributes:
        point: the point.
        values: value of each objective; NaN if the model refuses its options.
        problem: the reason for a missing value, as a sentence, or "".
        parameters: number of trained parameters; 0 if unknown.
        whole: whether every replicate has a record; failed replicates have one, too.
        records: the records of its replicates.
    """

    point: Point
    values: tuple[Value, ...]
    problem: str = ""
    parameters: int = 0
    whole: bool = True
    records: tuple[Record, ...] = ()

    @property
    def known(self) -> bool:
        """Whether every objective has a value."""
        return all(value.known for value in self.values)


@dataclass(frozen=True)
class SearchTrial:
    """A trial.

    Attributes:
        number: its number, from 0.
        rungs: its measurement at each rung that it reached.
    """

    number: int
    rungs: tuple[Measured, ...]

    @property
    def last(self) -> Measured:
        """The measurement at the last rung that it reached."""
        return self.rungs[-1]

    @property
    def params(self) -> Fields:
        """The value of each dimension."""
        return self.last.point.params

    @property
    def name(self) -> str:
        """Name of the model, with hidden size and options if they are dimensions."""
        return self.last.point.name


@dataclass(frozen=True)
class Finalist:
    """A finalist or a baseline, measured with new seeds and words.

    Attributes:
        search: its measurement at the last rung; None for a baseline, and for a trial that did not reach this rung.
        again: the same measurement with new seeds.
        larger: the measurement with the settings of `larger`; None without them.
    """

    search: Measured | None
    again: Measured
    larger: Measured | None = None

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.again.point.name

    def shrinkage(self, place: int) -> float:
        """Return the new value minus that in the search, of the objective with this index.

        It is NaN without one of these values, and if one of them is only a bound.
        """
        if self.search is None:
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
        return [*ranked(self.objectives, self.trials), *(trial for trial in self.trials if not trial.last.known)]

    @property
    def winner(self) -> Point | None:
        """The point of the best trial; None if all trials failed."""
        return next((trial.last.point for trial in ranked(self.objectives, self.trials)), None)

    @property
    def front(self) -> list[SearchTrial]:
        """The trials that no other dominates at the last rung with values: one, or the Pareto front."""
        known = [trial for trial in self.trials if trial.last.known]
        most = max((len(trial.rungs) for trial in known), default=0)
        own = [trial for trial in known if len(trial.rungs) == most]
        return [trial for trial, front in zip(own, fronts(_costs(self.objectives, own)), strict=True) if front == 0]

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row per trial, the best first: number, model, dimensions, rung, values, bounds and problem."""
        import pandas as pd

        rows = []
        for trial in self.ranked:
            pairs = list(zip(self.objectives, trial.last.values, strict=True))
            about = {"trial": trial.number, "name": trial.name, **trial.params, "rung": len(trial.rungs)}
            about |= {objective.text: value.value for objective, value in pairs}
            about |= {f"bound of {objective.text}": value.bound for objective, value in pairs}
            rows.append({**about, "parameters": trial.last.parameters, "problem": trial.last.problem})
        return pd.DataFrame(rows)

    def trial_table(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of the table of trials, the best first.

        Args:
            most: maximum number of rows.
        """
        several = len(self.setup.rungs) > 1
        headings = ["trial", "model", *(["rung"] if several else []), *(one.label for one in self.objectives)]
        rows = []
        for trial in self.ranked[:most]:
            values = [value.text() for value in trial.last.values]
            rows.append([str(trial.number), trial.name, *([str(len(trial.rungs))] if several else []), *values])
        return headings, rows

    def finalist_table(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of the table of finalists and baselines, per objective."""
        larger = ["larger"] if any(one.larger for one in self.finalists) else []
        rows = []
        for place, objective in enumerate(self.objectives):
            for one in (*self.finalists, *self.baselines):
                change = one.shrinkage(place)
                rows.append([
                    *(objective.text, one.name, one.search.values[place].text() if one.search else "-"),
                    *(one.again.values[place].text(interval=True), f"{change:+.2f}" if math.isfinite(change) else "-"),
                    *([one.larger.values[place].text(interval=True)] if one.larger else []),
                ])  # fmt: skip
        return ["objective", "model", "in the search", "again", "shrinkage", *larger], rows

    def importance_table(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of the table of importances, a row per dimension, the most important first."""
        names = sorted(self.setup.space.values, key=lambda name: -sum(one.get(name, 0.0) for one in self.importances))
        rows = [[name, *(f"{one[name]:.2f}" if name in one else "-" for one in self.importances)] for name in names]
        return ["option", *(one.text for one in self.objectives)], rows

    def _repr_markdown_(self) -> str:
        return "\n\n".join(markdown_table(*table) for table in (self.trial_table(), self.finalist_table()))

    def __repr__(self) -> str:
        return markdown_table(*self.trial_table(MOST_SHOWN))


def ranked(objectives: Sequence[Objective], trials: Sequence[SearchTrial]) -> list[SearchTrial]:
    """Return the trials with values, the best first.

    Trials that reached later rungs come first. Within a rung, trials are in fronts. Within a front, they are ordered by
    the sum of their ranks in the objectives, then by number.
    """
    found: list[SearchTrial] = []
    for rung in sorted({len(trial.rungs) for trial in trials}, reverse=True):
        own = [trial for trial in trials if len(trial.rungs) == rung and trial.last.known]
        costs = _costs(objectives, own)
        better = (costs[:, None] < costs).sum((0, 2))  # number of better values in other trials, over all objectives
        found += [own[place] for place in np.lexsort((better, fronts(costs)))]
    return found


def fronts(costs: Costs) -> list[int]:
    """Return the number of the Pareto front of each trial, 0 for the best.

    No trial of a front dominates another one of this front. The second front is the best without the first front, and
    so on.

    Args:
        costs: what should be small [trial, objective].

    Example:
        >>> fronts(np.array([(1, 2), (2, 1), (2, 2), (3, 3)]))
        [0, 0, 1, 2]
    """
    dominates = np.asarray((costs[:, None] <= costs).all(2) & (costs[:, None] < costs).any(2))  # [one, other]
    found, left = np.zeros(len(costs), int), np.ones(len(costs), bool)
    while left.any():
        left &= dominates[left].any(0)
        found += left
    return found.tolist()


def _costs(objectives: Sequence[Objective], trials: Sequence[SearchTrial]) -> Costs:
    """Return the values of trials [trial, objective], with the opposite sign if large values are better."""
    signs = [-1 if one.maximize else 1 for one in objectives]
    values = [[value.value for value in trial.last.values] for trial in trials]
    return np.array(values, float).reshape(len(trials), len(signs)) * signs
