"""Measure points of a search: plan their jobs as ordinary records, train missing replicates, and compute the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from icy.core.errors import IncompatibleError, InvalidSettingError, PluginError
from icy.core.types import Choices, Fields
from icy.experiments.plan import Plan, Row, plan_rows, planned
from icy.experiments.run import require_engine, run_plan
from icy.experiments.watcher import Watcher
from icy.records.kinds import RowKey
from icy.records.record import Record

from .objectives import Value
from .setup import SearchSetup
from .space import Point

REFUSED = (InvalidSettingError, IncompatibleError, PluginError)  # errors of a point that cannot be trained
SOME = 8  # points that show before the training whether settings are accepted


@dataclass(frozen=True)
class Measured:
    """A point with its values.

    Attributes:
        point: the point.
        values: value of each objective.
        problem: the reason for a missing value, as a sentence, or "".
        parameters: number of trained parameters; 0 if unknown.
        whole: whether every replicate has a record; failed replicates have one, too.
    """

    point: Point
    values: tuple[Value, ...] = ()
    problem: str = ""
    parameters: int = 0
    whole: bool = True

    @property
    def known(self) -> bool:
        """Whether every objective has a value."""
        return bool(self.values) and all(value.known for value in self.values)


class Measuring:
    """Measures points of a search.

    Args:
        setup: the search.
        watcher: makes the callbacks of a run.
        retries: as for `run_plan`.
    """

    def __init__(self, setup: SearchSetup, watcher: Callable[[], Watcher | None], retries: int = 0) -> None:
        self._setup, self._watcher, self._retries = setup, watcher, retries
        self._some = False  # whether a point was not refused
        self._started = False  # whether the records to start from are in the folder

    def plan(self, points: Sequence[Point], changes: Fields) -> tuple[Plan, list[list[Row] | Exception]]:
        """Return the plan of some points, and the rows of each, or the error if the model refuses its options.

        Args:
            points: the points.
            changes: settings that replace settings of the search.

        Raises:
            IcyError: every point is refused, also in earlier plans.
        """
        found: list[list[Row] | Exception] = []
        for point in points:
            try:
                found.append(self._rows_of(point, changes))
            except REFUSED as error:
                found.append(error)
        self._some |= any(isinstance(own, list) for own in found)
        if not self._some:
            raise cast(Exception, found[0])
        rows: dict[RowKey, Row] = {row.job.row: row for own in found if isinstance(own, list) for row in own}
        return planned(self._setup.spec, list(rows.values())), found

    def check_later(self) -> None:
        """Raise if the settings of a later rung or of the second measurement are not accepted, before any training.

        Raises:
            IcyError: all of some points that the first rung accepts, and baselines, are refused.
        """
        setup, first = self._setup, self._setup.rungs[0]
        some = [setup.space.point(setup.space.nth(place)) for place in range(min(setup.space.size, SOME))]
        later = [*setup.rungs[1:], setup.again(), *([setup.again(larger=True)] if setup.spec.larger else [])]
        for changes in later:
            refusal = None
            for point in (*some, *setup.baselines):
                if self._refusal(point, first) is None and (refusal := self._refusal(point, changes)) is None:
                    break
            if refusal is not None:
                raise refusal

    def _refusal(self, point: Point, changes: Fields) -> Exception | None:
        try:
            self._rows_of(point, changes)
        except REFUSED as error:
            return error
        return None

    def _rows_of(self, point: Point, changes: Fields) -> list[Row]:
        rows = [row for spec in self._setup.specs_of(point, changes) for row in plan_rows(spec)]
        require_engine(rows)
        return rows

    def measure(self, points: Sequence[Point], changes: Fields) -> list[Measured]:
        """Train missing replicates of some points, and return their values; arguments as for `plan`.

        The caller writes the tables of the folder.
        """
        plan, rows = self.plan(points, changes)
        plan, self._started = replace(plan, start=() if self._started else plan.start), True
        result = run_plan(plan, self._watcher(), self._retries, tables=False)
        records = {record["key"]: record for record in result.records}
        return [self._measured(point, own, records) for point, own in zip(points, rows, strict=True)]

    def _measured(self, point: Point, rows: list[Row] | Exception, records: Mapping[str, Record]) -> Measured:
        if isinstance(rows, Exception):
            return Measured(point, problem=str(rows))
        keys = [row.job.key(replicate) for row in rows for replicate in row.job.replicates]
        own = [records[key] for key in keys if key in records]
        whole = len(own) == len(keys)  # a sum over a part of the replicates would be too small
        values = tuple(one.value(own if whole else [], self._setup.people) for one in self._setup.objectives)
        failures = [str(record["error"]) for record in own if record["failed"]]
        problem = "" if all(value.known for value in values) else (failures or ["a replicate is not on file"])[0]
        return Measured(point, values, problem, rows[0].job.parameters.get("true", 0), whole)


def about(measured: Measured) -> Choices:
    """Return facts about a trial for Optuna's attributes."""
    bounds = {"bounds": [value.bound for value in measured.values]} if any(v.bound for v in measured.values) else {}
    return {
        "model": measured.point.entry.qualified,
        **bounds,
        **({"problem": measured.problem} if measured.problem else {}),
    }
