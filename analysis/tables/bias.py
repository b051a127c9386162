"""The bias table: a row per model, a column per grammar, mean and spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import pandas as pd

from icy.analysis.order import ORDER, Series, SortKey, heading, in_order, place_of, setting, text_of
from icy.analysis.statistics import LOG_SPREADS
from icy.analysis.table_cells import (
    COARSE,
    CUT,
    EMPTY,
    SPREADS,
    Reference,
    TableCell,
    both_censored,
    cell_in_row,
    cell_of,
    checked_spread,
)
from icy.config.protocols import BASELINE
from icy.core.errors import InvalidSettingError, unknown
from icy.core.text import counted, listed, words
from icy.languages.meanings import MeaningSpace
from icy.records.kinds import kind_of_rows
from icy.records.load import Results, long_of
from icy.records.long_table import OLD_COLUMNS, ROW, option_columns

from .by_setting import failures, spread_note
from .paired import compare_pairs, paired_differences, tests_of
from .printed_table import BiasTable, TableRow, mark_ends
from .references import PUBLISHED, cell_references, compared_with, numbered

# -- notes below bias tables: the meaning of their numbers and signs, and chance levels --------------------------------


CUT_NOTES = {  # meaning of the dagger, by measure
    "ratio": "cut at the {limit} in at least one seed: the true ratio is larger",
    "": "training stopped at its limit in at least one seed, before the target",  # of other measures
    "held_out": "not learned to the target within {cap} times concat's updates in at least one seed; "
    "train_accuracy in the long table has the accuracy reached",
}
UNFINISHED = "(n of m): on n of the row's m seeds"
GEOMETRIC = "geometric mean"
LOG, QUOTIENT, P, UPDATES = "log scale", "quotient", "p (Holm)", "updates"  # labels of lines below a row


def notes_on_table(long: pd.DataFrame, rows: Sequence[TableRow], spread: str) -> list[str]:
    """Return notes on spreads, on cut and failed runs, on lines below rows, and on marks of cells."""
    measured = [(first["measure"], cell) for first, _, own in rows for cell in own.values()]
    cells = [cell for _, cell in measured]
    log_scale, logs = any(cell.log_scale for cell in cells), log_cells(cells)
    cut = "; cut runs count as larger (Tobit: maximum likelihood)" if any(cell.censored for cell in logs) else ""
    about_logs = f"{'' if log_scale else f'{LOG}: '}{GEOMETRIC}, times or divided by its {LOG_SPREADS[spread]}{cut}"
    notes = [about_logs] if logs and log_scale else []
    notes += [] if notes and long["measure"].eq("ratio").all() else spread_note(long, spread)
    notes += [*_cuts(long), *_sides(long), *failures(long), *([about_logs] if logs and not log_scale else [])]
    if known := [cell for cell in cells if not math.isnan(cell.updates)]:
        cut = "; > where a run was cut" if any(cell.censored for cell in known) else ""
        notes.append(f"{UPDATES}: mean updates to the target{cut}")
    if coarse := [cell.resolution for cell in cells if cell.coarse]:
        uncertain = f"the ratio is uncertain by up to ±{max(coarse):.0%}, more than it varies over seeds"
        notes.append(f"{COARSE} coarse evaluations: {uncertain}")
    if unfinished := [measure for measure, cell in measured if cell.unfinished]:
        fast = "; seeds that learn fast end first, so these ratios are too low"
        notes.append(UNFINISHED + fast * ("ratio" in unfinished))
    return notes


def log_cells(cells: Sequence[TableCell]) -> list[TableCell]:
    """Return the cells with a summary on the log scale; none if each cell has a single seed."""
    found = [cell for cell in cells if cell.log is not None and not math.isnan(cell.log.center)]
    return found if any(cell.seeds > 1 for cell in found) else []


def _cuts(long: pd.DataFrame) -> list[str]:
    """Return a note per measure on the limits at which runs were cut."""
    notes = []
    for measure, part in long[long["censored"].astype(bool)].groupby("measure"):
        numbers = (sorted(part[name].dropna().unique()) for name in ("cap", "max_updates"))
        caps, budgets = (", ".join(f"{value:.10g}" for value in values) for values in numbers)
        limits = [f"cap of {caps or '?'}"] if caps or not budgets else []
        limits += [f"budget of {budgets} updates"] if budgets else []
        note = CUT_NOTES.get(str(measure), CUT_NOTES[""])
        notes.append(f"{CUT} {note.format(cap=caps or '?', limit=' or at the '.join(limits))}")
    return notes


def _sides(long: pd.DataFrame) -> list[str]:
    """Return a note that accuracies of senders and receivers are not comparable, if there are both."""
    if not {"sender", "receiver"} <= set(long["role"]):
        return []
    spaces = long["meanings"].dropna().unique()
    tokens = (
        "about 1/V"
        if "word_lengths" in option_columns(long)
        else _chance([1 / size for size in long["vocab_size"].dropna().unique()], "1/V")
    )
    attributes = _chance([MeaningSpace.parse(str(space)).chance for space in spaces], "1/K")
    return [
        f"accuracy is of tokens for senders (chance {tokens}) and of attributes for receivers (chance {attributes}): "
        "the same accuracy or target is not equally hard for both"
    ]


def _chance(shares: Sequence[float], otherwise: str) -> str:
    """Return chance accuracy as text, if it is equal in all rows; else `otherwise`."""
    texts = {f"{share:.0%}" for share in shares}
    return texts.pop() if len(texts) == 1 else otherwise


def compared_notes(compare: object, references: Collection[Reference], spread: str) -> list[str]:
    """Return a note on reference values and brackets, or on their absence; empty if the table does not compare."""
    if compare is None:
        return []
    published = isinstance(compare, str)
    named = [compare] if isinstance(compare, str) and compare != PUBLISHED else []
    sources = sorted({reference.source for reference in references} - {""}) or named
    other = f"published values{f' of {listed(sources)}' if sources else ''}" if published else "the other results"
    if not references:
        aim = "protocol and target" if published else "options and protocol"
        return [f"No reference: {other} do not have the models, sizes, {aim} of these rows."]
    error = "standard error" if published else SPREADS[spread][0]
    return [f"below each mean: {other}, ± {error}; in brackets: the mean minus this, in combined standard errors"]


def training_note(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a note on the columns in which the training of other results differs; empty if it is the same."""
    found = {name for row in rows for name in row}
    names = [heading(name) for name in ROW if name in found]
    return [f"the other results differ from these in {', '.join(names)}"] if names else []


MEASURE_TITLES = {
    "ratio": "updates to the target as a ratio to concat's",
    "accuracy": "accuracy",
    "held_out": "accuracy on meanings held out of training",
    "end_to_end": "accuracy of sender and receiver together",
}
PARAMETERS = 1  # index of that label
LANGUAGES = ["frequencies", "existing", "word_lengths", "draws"]  # options of languages
CELL_COLUMNS = (  # columns of the long table, or of differences, that cells need
    *("row", "grammar", "measure", "value", "failed", "censored", "resolution"),
    *("steps", "crossing", "ours", "theirs", "our_censored", "their_censored", "p_holm"),
)
CellMaker = Callable[[pd.DataFrame], TableCell]
MOST_DECIMALS = 6


def bias_table(
    results: Results,
    spread: str = "sd",
    *,
    by: str | Sequence[str] = "representation",
    sort: str = "given",
    compare: Results | None = None,
    compared: str = "",
    mark: bool = True,
    log: bool | Literal["only"] = True,
    decimals: int = 2,
) -> BiasTable:
    """Make the bias table: a row per model, a column per grammar, with mean and spread over seeds.

    Ratios are positive, skewed and often cut. So each row of several seeds has a second line with their summary on the
    log scale: the geometric mean, to be multiplied or divided by its spread (`icy.analysis.statistics.log_summary`).
    With 95 % intervals, this summary is the only one: an interval of the arithmetic mean may be below 0.
    Another line has the mean updates to the target, since a ratio may be large only because concat is learned fast.

    Args:
        results: a ProbeResult, or a DataFrame in long form, as `icy.records.long_table.to_long` makes.
        spread: "sd", "sem" or "ci95"; all from the sample standard deviation (ddof 1).
        by: columns of the long table, such as "role". Columns that vary group the rows under headings.
        sort: order of rows within a group: "given", "model", "parameters", or a grammar; in descending order with "-"
            before it.
        compare: reference values to print below each cell, with the difference in combined standard errors:
            "published", the name of one published table, "atlas", a results folder or file, or results.
        compared: heading of the reference values.
        mark: whether to mark the best and the worst of each column, if it has at least three rows and they differ
            significantly (one-way analysis of variance over seeds, 5 %). Models without parameters, which memorize,
            are not considered.
        log: whether to add lines below ratios: the log scale, and updates; "only" for ratios on the log scale alone, as
            in figures.
        decimals: number of decimals to print.

    Returns:
        The table, which prints itself. `render` gives other formats, `save` writes a file, and `to_dataframe` has the
        numbers.

    Raises:
        InvalidSettingError: an unknown spread, or several rows of the other results match one row.
        UnknownNameError: an unknown column, order or published table.

    Example:
        >>> import icy, tempfile
        >>> from icy.analysis import bias_table
        >>> result = icy.probe("sender/FC2L", "perm", quick=True, workers=1, out=tempfile.mkdtemp())
        >>> print(bias_table(result, compare=result, compared="again", log=False).groups()[0][1][1][0])
          again
    """
    cell = partial(cell_in_row, spread=spread, log=log)
    return _bias_table(long_of(results, empty=True), spread, cell, by=by, sort=sort, compare=compare,
                       compared=compared, mark=mark, decimals=decimals)  # fmt: skip


def _bias_table(
    long: pd.DataFrame,
    spread: str,
    cell: CellMaker,
    *,
    by: str | Sequence[str] = "representation",
    sort: str = "given",
    compare: Results | None = None,
    compared: str = "",
    mark: bool = True,
    decimals: int = 2,
) -> BiasTable:
    """Make a bias table of a long table; `cell` summarizes replicates as a cell; see `bias_table` for the rest."""
    checked_spread(spread)
    if decimals not in range(MOST_DECIMALS + 1):
        raise InvalidSettingError(f"decimals must be a whole number from 0 to {MOST_DECIMALS}; not {decimals!r}.")
    long = numbered(long).assign(
        role=long["model"].str.replace(r"/.*", "", regex=True), **option_columns(long).reindex(columns=LANGUAGES)
    )
    grammars = in_order(long["grammar"])
    varying = [name for name in ("role", *ROW[1:]) if long[name].nunique(dropna=False) > 1]
    grouped = [name for name in _groups(by) if name in varying]
    other, called = compared_with(compare)
    references = cell_references(long, other, spread)
    others = [name for name in varying if name not in (*grouped, "role")]
    if grouped and others:  # a heading can show a column with one value in each group
        counts = long.groupby(grouped, dropna=False)[others].nunique(dropna=False).max()
        grouped += [name for name in others if counts[name] == 1]
    shown = [name for name in varying if name != "role" or name in grouped]
    rows = _sorted(_rows(long, shown, references, cell), grouped, sort, grammars)
    alike = [name for name in ("role", *ROW[1:], *LANGUAGES) if name not in ("hidden_size", "settings", "options")]
    cells = [cell for _, _, own in rows for cell in own.values()]
    arrows = mark_ends(rows, alike, grammars, spread) if mark else {}
    labels = ["model", "parameters", *map(heading, shown), "seeds", "concat updates"]
    baselines = long["grammar"].eq(BASELINE).any() or long["baseline_steps"].notna().any()
    if len(long) and not (baselines and kind_of_rows(long).baseline):  # such as chains, which have no baseline
        labels, rows = labels[:-1], [(first, texts[:-1], cells) for first, texts, cells in rows]
    return BiasTable(
        _title(long, varying),
        labels,
        grammars,
        [(names, cells) for _, names, cells in rows],
        [
            *notes_on_table(long, rows, spread),
            *([] if len(long) and long["failed"].all() else compared_notes(other, references.values(), spread)),
            *training_note(reference.differs_in for reference in references.values()),
        ],
        decimals,
        arrows,
        [heading(name) for name in grouped],
        compared or called,
        below=({LOG: "log"} if log_cells(cells) and not any(cell.log_scale for cell in cells) else {})
        | ({UPDATES: "updates"} if any(not math.isnan(cell.updates) for cell in cells) else {}),
        spread=spread,
        row_numbers=[int(first["row"]) for first, _, _ in rows],
    )


def difference_table(
    results: Results, other: Results, name: str = "the other", spread: str = "sd", **options: Any
) -> BiasTable:
    """Make the table of differences between two results, or between models, paired by seed.

    Lines below each row have the quotients of ratios, taken on the log scale, and p-values of paired tests
    (`icy.analysis.statistics.paired`), corrected by Holm's method for the number of tests of one protocol in the table.

    Args:
        results: a ProbeResult, or a DataFrame in long form.
        other: results to subtract, or their folder or file. Or the name of a model of `results`, which is subtracted
            from all other models of its side; or "each", for all pairs of models.
        name: name of the other results, for notes.
        spread: spread of the differences over seeds.
        **options: by, sort and decimals, as for `bias_table`.

    Returns:
        The table. Cells are differences in the unit of the measure: updates relative to concat for ratios, shares from
        0 to 1 for accuracies.

    Raises:
        InvalidSettingError: an unknown spread.
        IncompatibleError: the two have no replicate in common.
        StoreError: `other` is not a model, a file or a folder.
    """
    checked_spread(spread)
    both, training, lone, name = paired_differences(long_of(results), other, name)
    tests = tests_of(both[both["grammar"] != BASELINE])
    both = both.merge(tests[["row", "grammar", "p_holm"]], how="left")
    table = _bias_table(both, spread, partial(_difference, spread=spread), mark=False, **options)
    notes = [*spread_note(both, spread), *_sides(both), *failures(both)]
    notes += [UNFINISHED] if any(cell.unfinished for _, cells in table.rows for cell in cells.values()) else []
    cut = [f"{CUT} cut in at least one seed"] if both["censored"].any() else []
    meaning = f"differences, seed by seed, from {name}: above 0, the value is larger here"
    cut += [f"{counted(lone, 'run', 'have')} no counterpart in {name}"] if lone else []
    cut += training_note(training)
    below = ({QUOTIENT: "log"} if table.below else {}) | ({P: "p"} if tests["p_holm"].notna().any() else {})
    notes = [meaning, *notes, *_test_notes(both, tests, below, spread), *cut]
    return replace(table, title=f"difference; {table.title}", notes=notes, signed=True, below=below)


def _difference(part: pd.DataFrame, spread: str) -> TableCell:
    """Summarize differences as a cell; ratios get their quotient. Concat has no p, since its ratios are all 1."""
    cell = cell_of(part, spread)
    if part["grammar"].iloc[0] == BASELINE:
        return cell
    found = compare_pairs(part)
    return replace(cell, log=found.summary() if found.log else None, p=float(part["p_holm"].iloc[0]))


def _test_notes(both: pd.DataFrame, tests: pd.DataFrame, below: Mapping[str, str], spread: str) -> list[str]:
    """Return notes on the lines below differences: quotients, tests, and the treatment of cut pairs."""
    notes = []
    if QUOTIENT in below:
        notes.append(f"{QUOTIENT}: of geometric means, times or divided by its {LOG_SPREADS[spread]}")
    families = tests[tests["p"].notna()].groupby(["protocol", "measure"], sort=False, dropna=False)
    for (protocol, measure), part in families:  # type: ignore[misc]
        scale = "log ratios" if measure == "ratio" else "values"
        of = f" of {protocol}" if families.ngroups > 1 else ""
        notes.append(f"{P}{of}: paired t-test on {scale}, corrected for {counted(len(part), 'test')} by Holm's method")
    if len(tests) > 1 and tests["p"].notna().any():
        notes.append("p depends on the number of tests in the table; intervals are not corrected")
    ratios = both[both["measure"].eq("ratio") & both["grammar"].ne(BASELINE)]
    if ratios["censored"].any():
        notes.append("pairs with one cut run: sign test of the directions; pairs with two cut runs: left out")
    return notes


# -- rows, groups and order --------------------------------------------------------------------------------------------


def _rows(
    long: pd.DataFrame, shown: Sequence[str], references: Mapping[tuple[int, str], Reference], cell: CellMaker
) -> list[TableRow]:
    """Return the rows of a table, with cells and their reference values."""
    # A report may have thousands of rows: cells get only the columns that they need, and labels are made all at once.
    needed = long[[name for name in CELL_COLUMNS if name in long]]
    seeds = long.groupby("row")["seed"].nunique()
    cells: list[dict[str, TableCell]] = [{} for _ in seeds]
    for (number, name), part in needed.groupby(["row", "grammar"], sort=False):  # type: ignore[misc]
        row, grammar = int(str(number)), str(name)
        own, reference = cell(part), references.get((row, grammar))
        ratio = part["measure"].iat[0] == "ratio"
        if reference is not None and ratio and both_censored(own.mean, own.seeds, own.censored, reference.mean):
            reference = replace(reference, distance=math.nan)
        lacks = len(part) < seeds[row]
        cells[row][grammar] = replace(own, reference=reference, row_seeds=int(seeds[row]) if lacks else 0)
    firsts = long.drop_duplicates("row")  # in the order of their numbers
    return [(firsts.iloc[row], texts, cells[row]) for row, texts in enumerate(_labels(long, firsts, shown))]


def _groups(by: str | Sequence[str]) -> list[str]:
    """Return the columns that group rows.

    Raises:
        UnknownNameError: an unknown column.
    """
    names = [OLD_COLUMNS.get(name, name.replace("-", "_")) for name in words(by)]
    known = ["role", *ROW[1:]]
    for name in names:
        if name and name not in known:
            raise unknown("column to group by", name, known)
    return [name for name in names if name]


def _sorted(rows: list[TableRow], grouped: Sequence[str], sort: str, grammars: Sequence[str]) -> list[TableRow]:
    """Sort rows by group, and within a group by `sort`.

    Raises:
        UnknownNameError: `sort` is not "given", "model", "parameters" or a grammar of the table.
    """
    down, key = sort.startswith("-"), sort.removeprefix("-")
    if key in ORDER and key not in grammars:
        raise InvalidSettingError(f"Cannot sort by {key}: these results have only {', '.join(grammars)}.")
    if key not in ("given", "model", "parameters", *grammars):
        raise unknown("order of rows", sort, ["given", "model", "parameters", *grammars])

    def rank(row: TableRow) -> SortKey:
        first, labels, cells = row
        if key == "model":
            return (first["model"],)
        number = pd.to_numeric(labels[PARAMETERS], errors="coerce")  # "-" for unknown
        value = float(number) if key == "parameters" else cells.get(key, EMPTY).center
        return (pd.isna(value), -value if down else value)

    ordered = rows if key == "given" else sorted(rows, key=rank, reverse=down and key == "model")
    return sorted(ordered, key=lambda row: [place_of(name, row[0][name]) for name in grouped])


# -- labels and title --------------------------------------------------------------------------------------------------


def _steps(rows: pd.DataFrame, crossing: str, whole: str) -> pd.Series:
    """Return the mean updates of each row to the target: interpolated where known, else those of the evaluation."""
    steps = rows[whole].astype(float)
    known = rows[crossing].astype(float).fillna(steps) if crossing in rows else steps
    return known.groupby(rows["row"]).mean().dropna()


def _labels(long: pd.DataFrame, firsts: pd.DataFrame, varying: Sequence[str]) -> list[list[str]]:
    """Return the labels of each row: model, parameters, varying settings, seeds, updates of concat.

    Args:
        long: a row per replicate, with the column `row`.
        firsts: the first replicate of each row.
        varying: columns to show.
    """
    concat = _steps(long[long["grammar"].eq(BASELINE) & ~long["failed"].astype(bool)], "crossing", "steps")
    # Where concat is not in the table, its updates are in the other rows.
    steps = concat.combine_first(_steps(long.drop_duplicates(["row", "seed"]), "baseline_crossing", "baseline_steps"))
    columns = [
        firsts["model"].map(str),
        parameter_counts(firsts).map(lambda count: "-" if pd.isna(count) else f"{int(count)}"),
        *(firsts[name].map(text_of) for name in varying),
        firsts["row"].map(long.groupby("row")["seed"].nunique()).map(str),
        firsts["row"].map(lambda row: f"{steps[row]:.0f}" if row in steps.index else "-"),
    ]
    return [list(texts) for texts in zip(*columns, strict=True)]


def parameter_counts(long: pd.DataFrame) -> Series:
    """Return the number of parameters to show for each replicate: the papers' count under the preset `published`."""
    return long["parameters_published"].where(long["preset"].eq("published"), long["parameters"])


def _title(long: pd.DataFrame, varying: list[str]) -> str:
    """Return the measure and the settings that all rows share, as text."""
    if not len(long):
        return "No results."
    first = long.iloc[0]
    shared = {n: first[n] for n in ROW if n not in varying and not pd.isna(first[n])}
    parts = []
    if "protocol" not in varying:
        goal = f", target {shared['target']:g}" if "target" in shared else ""
        goal += f", {shared['max_updates']} updates of each grammar" if "max_updates" in shared else ""
        protocol = f"{shared['protocol']}: " if "protocol" in shared else ""  # a table made by hand may lack it
        parts.append(f"{protocol}{MEASURE_TITLES.get(first['measure'], first['measure'])}{goal}")
    if first["measure"] == "held_out" and {"held_out", "split"} <= set(shared):
        parts.append(f"{shared['held_out']:g} held out ({shared['split']})")
    return "; ".join(filter(None, [*parts, setting(long, varying)]))
