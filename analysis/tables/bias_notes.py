"""Notes below bias tables: the meaning of their numbers and signs, and chance levels."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import pandas as pd

from icy.analysis.statistics import LOG_SPREADS
from icy.analysis.table_cells import COARSE, CUT, SPREADS, Reference, TableCell
from icy.analysis.wording import heading
from icy.core.text import listed
from icy.languages.meanings import MeaningSpace
from icy.records.long_table import ROW

from .by_setting import failures, spread_note
from .marking import TableRow
from .references import PUBLISHED

CUT_NOTES = {  # meaning of the dagger, by measure
    "ratio": "cut at the {limit} in at least one seed: the true ratio is larger",
    "": "training stopped at its limit in at least one seed, before the target",  # of other measures
    "held_out": "not learned to the target within {cap} times concat's updates in at least one seed; "
    "train_accuracy in the long table has the accuracy reached",
}
UNFINISHED = "(n of m): on n of the row's m seeds"
GEOMETRIC = "geometric mean"
LOG, QUOTIENT, P, UPDATES = "log scale", "quotient", "p (Holm)", "updates"  # labels of lines below a row


def notes_on_runs(long: pd.DataFrame, spread: str, rows: Sequence[TableRow]) -> list[str]:
    """Return notes on the spread, daggers and failed runs."""
    notes = _log_notes(rows, spread) if on_log_scale(rows) else []
    notes += [] if notes and long["measure"].eq("ratio").all() else spread_note(long, spread)
    if long["censored"].any():
        for measure, part in long[long["censored"].astype(bool)].groupby("measure"):
            numbers = (sorted(part[name].dropna().unique()) for name in ("cap", "max_updates"))
            caps, budgets = (", ".join(f"{value:.10g}" for value in values) for values in numbers)
            limits = [f"cap of {caps or '?'}"] if caps or not budgets else []
            limits += [f"budget of {budgets} updates"] if budgets else []
            note = CUT_NOTES.get(str(measure), CUT_NOTES[""])
            notes.append(f"{CUT} {note.format(cap=caps or '?', limit=' or at the '.join(limits))}")
    return [*notes, *_sides(long), *failures(long)]


def _sides(long: pd.DataFrame) -> list[str]:
    """Return a note that accuracies of senders and receivers are not comparable, if there are both."""
    if not {"sender", "receiver"} <= set(long["role"]):
        return []
    spaces = long["meanings"].dropna().unique()
    ends = long["options"].astype(str).str.contains("word_lengths=").any() if "options" in long else False
    tokens = "about 1/V" if ends else _chance([1 / size for size in long["vocab_size"].dropna().unique()], "1/V")
    attributes = _chance([MeaningSpace.parse(str(space)).chance for space in spaces], "1/K")
    return [
        f"accuracy is of tokens for senders (chance {tokens}) and of attributes for receivers (chance {attributes}): "
        "the same accuracy or target is not equally hard for both"
    ]


def _chance(shares: Sequence[float], otherwise: str) -> str:
    """Return chance accuracy as text, if it is equal in all rows; else `otherwise`."""
    texts = {f"{share:.0%}" for share in shares}
    return texts.pop() if len(texts) == 1 else otherwise


def notes_on_cells(rows: Sequence[TableRow], spread: str) -> list[str]:
    """Return notes on lines below rows and on marks of cells."""
    log = [] if on_log_scale(rows) else _log_notes(rows, spread)
    return [*log, *_updates_note(rows), *_coarse(rows), *_unfinished(rows)]


def log_cells(rows: Sequence[TableRow]) -> list[TableCell]:
    """Return the cells with a summary on the log scale; none if each cell has a single seed."""
    cells = [cell for _, _, cells in rows for cell in cells.values()]
    found = [cell for cell in cells if cell.log is not None and not math.isnan(cell.log.center)]
    return found if any(cell.seeds > 1 for cell in found) else []


def _log_notes(rows: Sequence[TableRow], spread: str) -> list[str]:
    """Return a note on summaries on the log scale and their treatment of cut runs; empty without them."""
    cells = log_cells(rows)
    if not cells:
        return []
    cut = "; cut runs count as larger (Tobit: maximum likelihood)" if any(cell.censored for cell in cells) else ""
    of = "" if on_log_scale(rows) else f"{LOG}: "
    return [f"{of}{GEOMETRIC}, times or divided by its {LOG_SPREADS[spread]}{cut}"]


def on_log_scale(rows: Sequence[TableRow]) -> bool:
    """Return whether the table shows ratios on the log scale, in place of their arithmetic means."""
    return any(cell.log_scale for _, _, cells in rows for cell in cells.values())


def counted_cells(rows: Sequence[TableRow]) -> list[TableCell]:
    """Return the cells with known updates to the target."""
    return [cell for _, _, cells in rows for cell in cells.values() if not math.isnan(cell.updates)]


def _updates_note(rows: Sequence[TableRow]) -> list[str]:
    """Return a note on the lines of updates; empty without them."""
    cells = counted_cells(rows)
    if not cells:
        return []
    cut = "; > where a run was cut" if any(cell.censored for cell in cells) else ""
    return [f"{UPDATES}: mean updates to the target{cut}"]


def _coarse(rows: Sequence[TableRow]) -> list[str]:
    """Return a note on cells with a larger uncertainty from evaluations than from seeds; empty if there are none."""
    found = [cell.resolution for _, _, cells in rows for cell in cells.values() if cell.coarse]
    if not found:
        return []
    most = max(found)
    return [f"{COARSE} coarse evaluations: the ratio is uncertain by up to ±{most:.0%}, more than it varies over seeds"]


def _unfinished(rows: Sequence[TableRow]) -> list[str]:
    """Return a note on cells with fewer seeds than their row; empty if there are none."""
    found = [first["measure"] for first, _, cells in rows for cell in cells.values() if cell.unfinished]
    if not found:
        return []
    return [UNFINISHED + ("; seeds that learn fast end first, so these ratios are too low" if "ratio" in found else "")]


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
    return [f"next to each mean: {other}, ± {error}; in brackets: the mean minus this, in combined standard errors"]


def training_note(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a note on the columns in which the training of other results differs; empty if it is the same."""
    found = {name for row in rows for name in row}
    names = [heading(name) for name in ROW if name in found]
    return [f"the other results differ from these in {', '.join(names)}"] if names else []
