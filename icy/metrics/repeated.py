"""Metrics that count rows, on tables with weights."""

import functools
from dataclasses import replace
from typing import TypeVar, cast

from icy.core.types import AnyFunction
from icy.languages.table import Table

Metric = TypeVar("Metric", bound=AnyFunction)


def of_repeated_rows(metric: Metric) -> Metric:
    """Return a metric that scores a table with weights as its repeated rows; `Score.rows` does not count repeats.

    Args:
        metric: a function `(meanings, messages=None, **conventions)` that returns a Score and does not read weights.
    """

    @functools.wraps(metric)
    def scored(meanings: object, messages: object = None, **conventions: object) -> object:
        if isinstance(meanings, Table) and meanings.weights is not None:
            return replace(
                metric(meanings.repeated(getattr(metric, "__name__", "This metric")), messages, **conventions),
                rows=len(meanings),
            )
        return metric(meanings, messages, **conventions)

    return cast(Metric, scored)
