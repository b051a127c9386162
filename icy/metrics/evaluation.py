"""Evaluate several metrics on one table."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from icy.core.checks import whole_number
from icy.core.conventions import conventions_json, usual_spelling
from icy.core.errors import IcyError, InvalidSettingError, PluginError, require_known, unknown
from icy.core.progress import Report, progress_to, track
from icy.core.registry import Entry, registry
from icy.core.streams import stream
from icy.core.surroundings import standard_state
from icy.core.types import Options
from icy.languages.readers import read_table as read_table  # of `icy.metrics`
from icy.languages.table import Table as Table  # of `icy.metrics`

from .construction import Facts, note_of
from .score import (
    PermutationTest,
    Score,
    compare_with_chance,
    draw_permutations,
    of_repeated_rows,
    resolve_alternative,
    undefined,
)

if TYPE_CHECKING:
    import pandas as pd


DEFAULT_METRICS = ("topsim", "posdis", "bosdis", "hce", "tre")  # the metrics of Icy22 figure 3
ERRORS = ("bootstrap",)
CHANCE = ("chance", "chance_sd", "chance_low", "chance_high", "p")  # columns of a permutation test
Conventions = Mapping[str, Options]  # arguments by name, by metric
FEW_ROWS = 10_000  # largest number of rows for which biases are reported
NOTABLE = 0.1  # smallest bias that is reported
ScoreCallback = Callable[[str, Score], None]  # called with a metric's name and its score

log = logging.getLogger(__name__)


@standard_state()
def evaluate(
    meanings: object,
    messages: object = None,
    *,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    conventions: Conventions | None = None,
    errors: str | None = None,
    resamples: int = 100,
    permutations: int | None = None,
    seed: int = 0,
    eos: object = None,
    on_score: ScoreCallback | None = None,
    progress: bool | Report | None = None,
) -> "pd.DataFrame":
    """Evaluate several metrics on one table, as one row of a DataFrame.

    A Table with weights (see Table.of) is scored as a table of repeated rows, with the original number of rows. A
    registered metric that does not read weights gets the repeated rows.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        metrics: names or wildcards; `icy list metrics` lists them.
        conventions: arguments for single metrics, by name: {"topsim": {"message": "hamming"}}.
        errors: "bootstrap" estimates a standard error of every metric from rows drawn with replacement, each with its
            weight. By default, only metrics that estimate their value from a sample of pairs or rows have one. Measures
            of information are biased on few rows, and a resample has fewer distinct rows: the bootstrap estimates the
            spread of a value, not its bias.
        resamples: number of bootstrap resamples.
        permutations: number of permutations of the messages for a permutation test of every metric, in the direction
            in which it is better (see permutation_test); None for no test.
        seed: seed of the bootstrap and of the permutations.
        eos: the token that ends a message, a number or a name; see Table.of.
        on_score: callback, called with the name and the score of each metric after it is computed.
        progress: callback, called with the number of finished permutations and the total, for each metric. By default,
            work of more than ten seconds shows its progress on stderr, and with False never.

    Returns:
        One row: `name`, `rows`, `attributes`, `length`, `vocab_size`, `distinct_messages`; a column per metric, with
        `<metric>_why`, the reason if its value is undefined (NaN), `<metric>_note`, the reason if the sizes of the
        table determine or bound it, and `<metric>_error`, its standard error if there is one; and `conventions`, the
        conventions of all metrics as JSON. With permutations, `<metric>_chance` is the mean over them,
        `<metric>_chance_sd` their standard deviation, `<metric>_chance_low` and `<metric>_chance_high` the ends of
        their 95% interval, and `<metric>_p` the p-value. `attrs["scores"]` holds the scores by metric. A metric that
        cannot score the table is NaN, with the reason; if it is the only metric, its error is raised.

    Raises:
        IcyError: an invalid table (see Table.of), or unknown names or conventions.

    Example:
        >>> from icy.metrics import evaluate
        >>> row = evaluate([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"], metrics=["topsim", "posdis"])
        >>> row[["rows", "topsim", "posdis"]].to_string(index=False).splitlines()
        [' rows  topsim  posdis', '    4     1.0     1.0']
    """
    import pandas as pd

    table = Table.of(meanings, messages, eos=eos)
    scores = score_all(table, metrics, conventions or {}, errors, resamples, seed, on_score, permutations, progress)
    row: dict[str, object] = {
        "name": table.name,
        "rows": len(table),
        "attributes": table.attributes,
        "length": table.length,
        "vocab_size": table.vocab_size,
        "distinct_messages": len(np.unique(table.messages, axis=0)),
    }
    for name, score in scores.items():
        row |= {name: score.value, f"{name}_why": score.why, f"{name}_note": score.note}
        if score.error is not None:
            row[f"{name}_error"] = score.error
        if (test := score.by_chance) is not None:
            numbers = test.mean, test.sd, test.low, test.high, test.p
            row |= {f"{name}_{column}": number for column, number in zip(CHANCE, numbers, strict=True)}
    row["conventions"] = conventions_json({name: score.conventions for name, score in scores.items()})
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
    on_score: ScoreCallback | None = None,
    permutations: int | None = None,
    progress: bool | Report | None = None,
) -> dict[str, Score]:
    """Return the score of each metric, by name; see `evaluate` for arguments and errors."""
    if errors is not None and errors not in ERRORS:
        raise unknown("way to estimate an error", errors, ERRORS)
    whole_number("number of resamples", resamples, least=2)
    entries = registry.match(metrics, "metric")
    if not entries:
        raise InvalidSettingError("Name at least one metric; `icy list metrics` lists them.")
    named = {entry.name: entry for entry in entries}
    for name in conventions:
        require_known("metric of this evaluation", name, named)
    if permutations is not None:
        rows = _exchangeable(table)
        orders = draw_permutations(len(rows), permutations, seed)
    found, facts = {}, Facts(table)
    for name, entry in track(list(named.items()), "metrics"):
        score = _score_or_undefined(entry, table, conventions.get(name, {}), alone=len(entries) == 1)
        found[name] = replace(score, note=note_of(entry, facts, score))
        if errors == "bootstrap" and not found[name].why:
            found[name] = _bootstrap(entry, table, conventions.get(name, {}), found[name], resamples, seed)
        if permutations is not None:
            test = _test(entry, rows, conventions.get(name, {}), found[name], "better", *orders, progress)
            same = not test.why and bool((np.abs(test.values - test.value) <= 1e-12).all())
            note = found[name].note or ("the value is the same in every permutation" if same else "")
            found[name] = replace(found[name], by_chance=test, note=note)
        if on_score is not None:
            on_score(name, found[name])
    return found


@standard_state()
def permutation_test(
    meanings: object,
    messages: object = None,
    *,
    metric: str = "topsim",
    permutations: int = 1000,
    alternative: str = "better",
    seed: int = 0,
    eos: object = None,
    progress: bool | Report | None = None,
    **conventions: object,
) -> PermutationTest:
    """Test a metric's value against its values if the messages were assigned to the meanings at random.

    Each permutation reorders the messages among the meanings and keeps everything else: the meanings, the messages,
    how often each occurs. For topsim this is the Mantel test. The p-value is (B + 1) / (m + 1), as usual for this test,
    where B of m permutations have a value at least as extreme as the observed one. If there are at most `permutations`
    orders of the rows, all are used, and the p-value is exact.

    Topsim computes the distances once: 1000 permutations of 5000 rows take about 13 seconds of one core with native
    code, and the table of distances takes N^2 bytes. Other metrics, and topsim of drawn pairs, are computed for each
    permutation.

    Args:
        meanings: [N, A] attribute values, or a Language.
        messages: [N, S] tokens, or sequences of any lengths.
        metric: name of a metric; `icy list metrics` lists them.
        permutations: number of permutations.
        alternative: "better", the direction in which the metric is better: "less" for tre and residual_entropy, and
            "greater" for all others; or "two-sided", which counts permutations at least as far from the mean by chance.
        seed: seed of the permutations.
        eos: the token that ends a message; see Table.of.
        progress: a function, called with the number of permutations done and the total. By default, work of more than
            ten seconds shows its progress on stderr, and with False never.
        **conventions: arguments of the metric.

    Returns:
        The observed value, the mean by chance with its standard deviation and 95% interval, and the p-value with its
        Monte Carlo interval. All are NaN, with the reason, where the metric is undefined.

    Raises:
        IcyError: an invalid table (see Table.of), rows that were drawn more than once, unknown names or conventions,
            or topsim of all pairs of more rows than fit in memory; `pairs=100_000` draws pairs instead.

    Example:
        >>> from icy.metrics import permutation_test
        >>> test = permutation_test([[0, 0], [0, 1], [1, 0], [1, 1]], ["ac", "ad", "bc", "bd"])
        >>> test.value, round(test.p, 3), test.permutations
        (1.0, 0.333, 24)
    """
    table = Table.of(meanings, messages, eos=eos)
    entry = registry.get(metric, "metric")
    rows = _exchangeable(table)
    orders = draw_permutations(len(rows), permutations, seed)
    score = _measure(entry, table, conventions)
    return _test(entry, rows, conventions, score, alternative, *orders, progress)


@standard_state()
def values_by_chance(
    table: Table, metrics: Iterable[str], conventions: Conventions | None = None, seed: int = 0
) -> dict[str, float]:
    """Return the chance values of measures of information on a small table: its messages are assigned at random.

    On many rows, a chance value is about 0 (1 for residual entropy). On few rows, the difference from this limit is the
    bias of the measure (Panzeri and Treves 1996 on the bias of information from few samples).

    Weighted rows are assigned as repeated rows. Weights with fractions do not determine the number of rows, so the
    result is then empty.

    Args:
        table: the measured table.
        metrics: names; metrics other than measures of information are ignored.
        conventions: arguments for single metrics, by name.
        seed: seed of the order of the messages.

    Returns:
        The mean over several random orders of the messages, by metric (a single order from 200 rows on, where orders
        hardly differ). Metrics with a bias below NOTABLE are left out, and all for tables of more than FEW_ROWS rows.
    """
    if table.total_weight > FEW_ROWS or not table.has_whole_weights:
        return {}
    table = table.repeated()
    draws = stream(seed, "values by chance")
    orders = [draws.permutation(len(table)) for _ in range(5 if len(table) < 200 else 1)]
    found: dict[str, float] = {}
    for name in metrics:
        entry, own = registry.get(name, "metric"), (conventions or {}).get(name, {})
        if entry.unstructured is not None:
            try:
                value = float(_score_orders(entry, table, own, orders).mean())
            except IcyError:  # a metric that fails here fails in any order
                continue
            if abs(value - entry.unstructured) >= NOTABLE:
                found[name] = value
    return found


def _score_or_undefined(entry: Entry, table: Table, conventions: Options, alone: bool) -> Score:
    try:
        return _measure(entry, table, conventions)
    except IcyError as error:
        if alone or isinstance(error, KeyError):  # a KeyError is a mistyped name
            raise
        log.warning("%s: %s", entry.name, error)
        return undefined(entry.name, str(error).rstrip("."), len(table), conventions)


def _measure(entry: Entry, table: Table, conventions: Options) -> Score:
    """Return a metric's score; raise UnknownNameError for a convention that it does not take."""
    import inspect

    metric = entry.load() if entry.weighted else of_repeated_rows(entry.load())
    taken, conventions = inspect.signature(metric).parameters, usual_spelling(metric, conventions)
    for name in conventions:
        if name not in taken and not any(p.kind == p.VAR_KEYWORD for p in taken.values()):
            raise unknown(f"convention of {entry.name}", name, [n for n in taken if n not in ("meanings", "messages")])
    try:
        score: Score = metric(table, **{**entry.defaults, **conventions})
    except TypeError as error:
        if why := entry.misfit(conventions):
            raise PluginError(f"{entry.qualified} cannot be measured: {why}.") from error
        raise
    if not isinstance(score, Score):
        raise PluginError(f"{entry.qualified} returns a {type(score).__name__}, not an icy.metrics.Score.")
    return score


def _exchangeable(table: Table) -> Table:
    """Return the table for permutations: each row counts once, and rows with a whole weight are repeated.

    Raises:
        InvalidSettingError: rows that were drawn more than once, or weights that are not whole numbers.
    """
    if table.drawn_from is not None and len(np.unique(table.drawn_from)) < len(table):
        raise InvalidSettingError(
            "Permutations need independent rows, but some rows here are copies drawn with replacement; test the "
            "original table."
        )
    return replace(table.repeated("A permutation test"), drawn_from=None)


def _test(
    entry: Entry,
    table: Table,
    conventions: Options,
    score: Score,
    alternative: str,
    orders: NDArray[np.int32],
    exact: bool,
    progress: bool | Report | None,
) -> PermutationTest:
    """Return the permutation test of a score; `orders` and `exact` are from `draw_permutations`."""
    from .topographic.permuted import permuted_topsim
    from .topographic.topsim import topsim

    alternative = resolve_alternative(alternative, entry.lower_is_better)
    if score.why:
        return PermutationTest(entry.name, math.nan, alternative=alternative, why=score.why)
    if score.rows != len(table):  # the repeated rows have another value in tre, which draws rows
        score = _measure(entry, table, conventions)
    fast, own = entry.load() is topsim, {**entry.defaults, **usual_spelling(topsim, conventions)}
    with progress_to(progress, f"permutations of {entry.name}") as report:
        values = permuted_topsim(table, orders, own, report) if fast else None
        if values is None:
            values = _score_orders(entry, table, conventions, orders, report)
    return compare_with_chance(entry.name, score.value, values, alternative, exact)


def _score_orders(
    entry: Entry,
    table: Table,
    conventions: Options,
    orders: Sequence[NDArray[np.int64]] | NDArray[np.int32],
    report: Report = lambda done, total: None,
) -> NDArray[np.float64]:
    """Return a metric's value for each order of the messages, [orders]."""
    values = np.empty(len(orders))
    for place, order in enumerate(orders):
        values[place] = _measure(entry, replace(table, messages=table.messages[order]), conventions).value
        report(place + 1, len(orders))
    return values


def _bootstrap(entry: Entry, table: Table, conventions: Options, score: Score, resamples: int, seed: int) -> Score:
    """Return the score with the metric's standard deviation over resampled rows as its error."""
    draws = stream(seed, "bootstrap")
    values = []
    for _ in track(range(resamples), f"bootstrap samples of {entry.name}"):
        some = table.rows(draws.integers(len(table), size=len(table)))
        values.append(_measure(entry, some, conventions).value)
    defined = [value for value in values if math.isfinite(value)]
    if len(defined) < 2:
        return score
    return replace(
        score, error=float(np.std(defined, ddof=1)), error_of=f"{len(defined)} bootstrap samples of the rows"
    )
