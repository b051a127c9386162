"""Several metrics on one table at once."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from icy.core.checks import whole_number
from icy.core.errors import IcyError, InvalidSettingError, unknown
from icy.core.registry import Entry, registry
from icy.core.streams import stream

from .score import Score, undefined
from .table import Table

if TYPE_CHECKING:
    import pandas as pd


USUAL = ("topsim", "posdis", "bosdis", "hce", "tre")  # the metrics of Icy22 figure 3
ERRORS = ("bootstrap",)
Conventions = Mapping[str, Mapping[str, Any]]
Told = Callable[[str, Score], None]  # a metric's name, and its score

log = logging.getLogger(__name__)


def evaluate(
    meanings: Any,
    messages: Any = None,
    *,
    metrics: str | Iterable[str] = USUAL,
    conventions: Conventions | None = None,
    errors: str | None = None,
    resamples: int = 100,
    seed: int = 0,
    eos: int | None = None,
    told: Told | None = None,
) -> pd.DataFrame:
    """Several metrics of one table, as one row of a DataFrame.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        metrics: names, or wildcards; `icy list metrics` shows what there is.
        conventions: by metric, arguments that it gets: {"topsim": {"message": "hamming"}}.
        errors: "bootstrap", for a standard error of every metric over rows drawn with replacement; by default only of
            those metrics that have one of their own, as where pairs or rows are drawn. Measures of information are
            biased on few rows, and resampled rows are fewer different ones: this error says how far a value varies,
            not how far it is off.
        resamples: draws of the bootstrap.
        seed: of the bootstrap's draws.
        eos: the token that ends a message; see Table.of.
        told: called with the name and the score of each metric as it is there.

    Returns:
        One row: `name`, `rows`, `attributes`, `length`, `vocab_size`, `distinct_messages`; a column per metric, and
        one more, `<metric>_error`, for each that has a standard error. `attrs["scores"]` holds the Score of each. A
        metric that refuses the table is NaN, with the reason in its score; one that is asked for alone raises.

    Raises:
        IcyError: tables that do not fit together, names or conventions that there are not.

    Example:
        >>> from icy.metrics import evaluate
        >>> row = evaluate([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"], metrics=["topsim", "posdis"])
        >>> row[["rows", "topsim", "posdis"]].to_string(index=False).splitlines()
        [' rows  topsim  posdis', '    4     1.0     1.0']
    """
    import pandas as pd

    table = Table.of(meanings, messages, eos=eos)
    scores = score_all(table, metrics, conventions or {}, errors, resamples, seed, told)
    row: dict[str, Any] = {
        "name": table.name,
        "rows": len(table),
        "attributes": table.attributes,
        "length": table.length,
        "vocab_size": table.vocab_size,
        "distinct_messages": len(np.unique(table.messages, axis=0)),
    }
    for name, score in scores.items():
        row[name] = score.value
        if score.error is not None:
            row[f"{name}_error"] = score.error
    frame = pd.DataFrame([row])
    frame.attrs["scores"] = scores
    return frame


def score_all(
    table: Table,
    metrics: str | Iterable[str],
    conventions: Conventions,
    errors: str | None = None,
    resamples: int = 100,
    seed: int = 0,
    told: Told | None = None,
) -> dict[str, Score]:
    """The score of each metric, by name; arguments and errors as for `evaluate`."""
    if errors is not None and errors not in ERRORS:
        raise unknown("way to an error", errors, ERRORS)
    whole_number("number of resamples", resamples, least=2)
    entries = registry.match(metrics, "metric")
    if not entries:
        raise InvalidSettingError("No metric was given; `icy list metrics` shows what there is.")
    named = {entry.name: entry for entry in entries}
    for name in conventions:
        if name not in named:
            raise unknown("metric with conventions here", name, list(named))
    found = {}
    for name, entry in named.items():
        found[name] = _one(entry, table, conventions.get(name, {}), alone=len(entries) == 1)
        if errors == "bootstrap" and not found[name].why:
            found[name] = _bootstrapped(entry, table, conventions.get(name, {}), found[name], resamples, seed)
        if told is not None:
            told(name, found[name])
    return found


def _one(entry: Entry, table: Table, conventions: Mapping[str, Any], alone: bool) -> Score:
    try:
        return _measured(entry, table, conventions)
    except IcyError as error:
        if alone or isinstance(error, KeyError):  # a name that was mistyped
            raise
        log.warning("%s: %s", entry.name, error)
        return undefined(entry.name, str(error).rstrip("."), len(table), conventions)


def _measured(entry: Entry, table: Table, conventions: Mapping[str, Any]) -> Score:
    """A metric's score; an argument that it does not take is the user's mistake."""
    import inspect

    metric = entry.load()
    taken = inspect.signature(metric).parameters
    for name in conventions:
        if name not in taken and not any(p.kind == p.VAR_KEYWORD for p in taken.values()):
            raise unknown(f"convention of {entry.name}", name, [n for n in taken if n not in ("meanings", "messages")])
    score: Score = metric(table, **{**entry.defaults, **conventions})
    return score


def _bootstrapped(
    entry: Entry, table: Table, conventions: Mapping[str, Any], score: Score, resamples: int, seed: int
) -> Score:
    """A score with the spread of the metric over resampled rows."""
    draws = stream(seed, "bootstrap")
    values = []
    for _ in range(resamples):
        some = table.rows(draws.integers(len(table), size=len(table)))
        values.append(_measured(entry, some, conventions).value)
    defined = [value for value in values if math.isfinite(value)]
    if len(defined) < 2:
        return score
    return replace(
        score, error=float(np.std(defined, ddof=1)), error_of=f"{len(defined)} bootstrap samples of the rows"
    )
