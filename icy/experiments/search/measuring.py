"""Measure points of a search: plan their jobs as ordinary records, train what is missing, and compute the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from icy.core.errors import IncompatibleError, InvalidSettingError, PluginError
from icy.core.types import Choices, Fields
from icy.experiments.plan import Plan, Row, plan_rows, planned
from icy.experiments.run import run_plan
from icy.experiments.watcher import Watcher
from icy.records.kinds import RowKey
from icy.records.record import Record

from .objectives import Value
from .setup import SearchSetup
from .space import Point

REFUSED = (InvalidSettingError, IncompatibleError, PluginError)  # errors of a point that cannot be trained


@dataclass(frozen=True)
class Measured:
    """A point with its values.

    Attributes:
        point: the point; None if the model refuses the combination.
        values: value of each objective.
        problem: why there is no value, as a sentence; "" if there is one.
        parameters: number of trained parameters; 0 if unknown.
    """

    point: Point | None
    values: tuple[Value, ...] = ()
    problem: str = ""
    parameters: int = 0

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

    def plan(self, params: Sequence[Fields], changes: Fields) -> tuple[Plan, list[list[Row] | Exception]]:
        """Return the plan of some points of the space, and the rows of each or the error that refused it.

        Raises:
            IcyError: every point is refused.
        """
        return self._plan([lambda one=one: self._setup.space.point(one) for one in params], changes)[:2]

    def measure(self, params: Sequence[Fields], changes: Fields) -> list[Measured]:
        """Train what is missing of some points of the space, and return them with their values."""
        return self._measure([lambda one=one: self._setup.space.point(one) for one in params], changes)

    def measure_points(self, points: Sequence[Point], changes: Fields) -> list[Measured]:
        """Train what is missing of some points, and return them with their values."""
        return self._measure([lambda one=one: one for one in points], changes)

    def _plan(
        self, make: Sequence[Callable[[], Point]], changes: Fields
    ) -> tuple[Plan, list[list[Row] | Exception], list[Point | None]]:
        found: list[list[Row] | Exception] = []
        points: list[Point | None] = []
        for one in make:
            points.append(None)
            try:
                points[-1] = point = one()
                found.append([row for spec in self._setup.specs_of(point, changes) for row in plan_rows(spec)])
            except REFUSED as error:
                found.append(error)
        if all(isinstance(rows, Exception) for rows in found):
            raise found[0]  # type: ignore[misc]
        rows: dict[RowKey, Row] = {row.job.row: row for rows in found if isinstance(rows, list) for row in rows}
        return planned(self._setup.spec, list(rows.values())), found, points

    def _measure(self, make: Sequence[Callable[[], Point]], changes: Fields) -> list[Measured]:
        plan, rows, points = self._plan(make, changes)
        result = run_plan(plan, self._watcher(), self._retries)
        records = {record["key"]: record for record in result.records}
        return [self._measured(point, own, records) for point, own in zip(points, rows, strict=True)]

    def _measured(self, point: Point | None, rows: list[Row] | Exception, records: Mapping[str, Record]) -> Measured:
        if isinstance(rows, Exception):
            return Measured(point, problem=str(rows))
        keys = [row.job.key(replicate) for row in rows for replicate in row.job.replicates]
        own = [records[key] for key in keys if key in records]
        values = tuple(one.value(own, self._setup.people) for one in self._setup.objectives)
        failures = [str(record["error"]) for record in own if record["failed"]]
        problem = "" if all(value.known for value in values) else (failures or ["a replicate is not on file"])[0]
        return Measured(point, values, problem, rows[0].job.parameters.get("true", 0))


def about(measured: Measured) -> Choices:
    """Return facts about a trial for Optuna's attributes."""
    name = {"model": measured.point.entry.qualified} if measured.point else {}
    bounds = {"bounds": [value.bound for value in measured.values]} if any(v.bound for v in measured.values) else {}
    return {**name, **bounds, **({"problem": measured.problem} if measured.problem else {})}
