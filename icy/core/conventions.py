"""Conventions of metrics as text: in headings, in notes below tables, and in the column `conventions` of rows."""

import functools
import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from .registry import registry
from .types import AnyFunction, Options

OF_READING = ("eos", "vocab_size", "seed")  # conventions of reading or sampling a table: never in a heading
# Other spellings of arguments. "normalise" and "normalised" are in the conventions of existing results, so they stay.
SPELLINGS = {"normalize": "normalise", "normalized": "normalised", "optimiser": "optimizer"}

Metric = TypeVar("Metric", bound=AnyFunction)


@dataclass(frozen=True)
class Convention:
    """The conventions of a computed metric.

    Attributes:
        metric: name of the metric.
        values: values by name of argument, as in `Score.conventions`.

    Example:
        >>> from icy.core.conventions import Convention
        >>> used = Convention("topsim", {"correlation": "spearman", "message": "hamming", "eos": None})
        >>> used.heading(), used.text, used.note()
        ('topsim (hamming)', 'correlation=spearman, message=hamming', 'topsim: correlation spearman, message hamming')
    """

    metric: str
    values: Options = field(default_factory=dict)

    @property
    def used(self) -> dict[str, object]:
        """The conventions with an effect: not None, not empty, and not off by default."""
        usual = _defaults(self.metric)
        return {
            name: value
            for name, value in self.values.items()
            if value is not None and value not in ((), []) and not (value is False and usual.get(name) is False)
        }

    @property
    def text(self) -> str:
        """The conventions in use, as in "correlation=spearman, message=hamming"."""
        return ", ".join(f"{name}={value}" for name, value in self.used.items())

    def heading(self, label: str = "") -> str:
        """Return the name of the metric, or another label, with the conventions that distinguish the value.

        These are the distance of messages for topsim, and for every metric the values that are not the default.
        """
        usual, used = _defaults(self.metric), self.used
        always = entry.heads if (entry := registry.find("metric", self.metric)) else ()
        shown = [str(used[name]) for name in always if name in used]
        shown += [
            f"{name} {value}"
            for name, value in used.items()
            if name not in (*always, *OF_READING)
            and isinstance(value, str | bool)
            and usual.get(name) not in (None, value)
        ]
        return f"{label or self.metric} ({', '.join(shown)})" if shown else label or self.metric

    def note(self, label: str = "") -> str:
        """Return the text of a note below a table; "" for a metric without conventions."""
        text = ", ".join(f"{name} {value}" for name, value in self.used.items())
        return f"{label or self.metric}: {text}" if text else ""


def usual_spelling(metric: AnyFunction, conventions: Options) -> dict[str, object]:
    """Return conventions with the names of a metric's arguments, because British and American names are accepted."""
    taken = inspect.signature(metric).parameters
    return {name if name in taken else SPELLINGS.get(name, name): value for name, value in conventions.items()}


def either_spelling(metric: Metric) -> Metric:
    """Return a metric that also accepts the SPELLINGS of its conventions; a decorator."""

    @functools.wraps(metric)
    def spelled(*table: object, **conventions: object) -> object:
        return metric(*table, **usual_spelling(metric, conventions))

    return cast(Metric, spelled)


def conventions_json(conventions: Mapping[str, Options]) -> str:
    """Return the conventions of metrics as JSON, a dictionary by metric; "" for no metrics."""
    values_by_metric = {
        metric: {name: value for name, value in values.items() if value is not None and value not in ((), [])}
        for metric, values in conventions.items()
    }
    return json.dumps(values_by_metric, default=str) if values_by_metric else ""


def read_conventions(cells: Iterable[object]) -> dict[str, Convention]:
    """Return the conventions of each metric in a column with values of `conventions_json`.

    If rows differ in a convention, the value lists all values, as in "all or ordered". Cells without conventions, as in
    old files, are left out.
    """
    found: dict[str, dict[str, dict[str, object]]] = {}
    for cell in dict.fromkeys(cell for cell in cells if isinstance(cell, str) and cell):
        try:
            read = json.loads(cell)
        except ValueError:
            continue
        for metric, values in read.items() if isinstance(read, dict) else ():
            if isinstance(values, dict):
                for name, value in values.items():
                    found.setdefault(metric, {}).setdefault(name, {})[str(value)] = value
                found.setdefault(metric, {})
    return {
        metric: Convention(
            metric, {n: next(iter(v.values())) if len(v) == 1 else " or ".join(v) for n, v in values.items()}
        )
        for metric, values in found.items()
    }


def lower_is_better(metric: str) -> bool:
    """Return whether a metric is an error; False if it is not registered."""
    entry = registry.find("metric", metric)
    return entry is not None and entry.lower_is_better


def _defaults(metric: str) -> dict[str, object]:
    """Return the default values of a metric's arguments; empty if the metric is not registered."""
    entry = registry.find("metric", metric)
    if entry is None:
        return {}
    parameters = inspect.signature(entry.load()).parameters
    return {name: one.default for name, one in parameters.items() if one.default is not inspect.Parameter.empty}
