"""The bias table: one row per model, one column per grammar, mean and spread over seeds."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from icy.errors import InvalidSettingError
from icy.long_table import ROW

# The order of the papers' tables; other grammars follow in alphabetical order.
ORDER = ("concat", "perm", "proj", "pairsum", "rot", "shuf", "shufdet", "hol")
CUT = "†"
MEASURES = {
    "ratio": "steps to the target as a ratio to concat's",
    "accuracy": "accuracy",
    "held_out": "accuracy on meanings held out of training",
}
CUT_MEANS = {
    "ratio": "cut at the cap of {cap} in at least one seed: the true ratio is larger",
    "held_out": "not learnt to the target within {cap} times concat's steps in at least one seed; "
    "train_accuracy in the long table says how far",
}
SPREADS: dict[str, tuple[str, Callable[[pd.Series[float]], float]]] = {
    "sd": ("standard deviation over seeds", lambda v: float(v.std(ddof=1))),
    "sem": ("standard error of the mean", lambda v: float(v.std(ddof=1)) / math.sqrt(len(v))),
    "ci95": ("1.96 standard errors", lambda v: 1.96 * float(v.std(ddof=1)) / math.sqrt(len(v))),
}


@dataclass(frozen=True)
class Cell:
    """One model on one grammar.

    Attributes:
        mean: over the seeds that gave a result; NaN if none did.
        spread: over the same; NaN for a single seed.
        seeds: how many gave a result.
        cut: how many of them were stopped at the cap.
        failed: how many gave none.
    """

    mean: float
    spread: float
    seeds: int
    cut: int
    failed: int

    def to_dict(self) -> dict[str, Any]:
        """Mean, spread and seeds, with None for what there is not."""
        numbers = {"mean": self.mean, "spread": self.spread}
        return {**{k: v if math.isfinite(v) else None for k, v in numbers.items()}, "seeds": self.seeds}

    def text(self, decimals: int, plus_minus: str = "±") -> str:
        """As printed: mean, spread, and marks for what was cut or failed."""
        if not self.seeds:
            return "failed" if self.failed else "-"
        shown = f"{self.mean:.{decimals}f}"
        if math.isfinite(self.spread):
            shown += f"{plus_minus}{self.spread:.{decimals}f}"
        if self.cut:
            shown += CUT
        return shown + (f" ({self.failed} failed)" if self.failed else "")


@dataclass(frozen=True)
class BiasTable:
    """The bias table, ready to be printed.

    Attributes:
        title: what was measured.
        labels: names of the columns that describe a row.
        grammars: names of the columns of cells.
        rows: the labels and the cells of each row.
        notes: what a reader must know, a sentence each.
    """

    title: str
    labels: list[str]
    grammars: list[str]
    rows: list[tuple[list[str], dict[str, Cell]]]
    notes: list[str] = field(default_factory=list)
    decimals: int = 2

    def to_dataframe(self) -> pd.DataFrame:
        """One row per model; columns (grammar, "mean") and (grammar, "spread")."""
        index = pd.MultiIndex.from_tuples([tuple(labels) for labels, _ in self.rows], names=self.labels)
        columns = pd.MultiIndex.from_product([self.grammars, ["mean", "spread"]], names=["grammar", None])
        nothing = Cell(math.nan, math.nan, 0, 0, 0)
        cells = [[cells.get(g, nothing) for g in self.grammars] for _, cells in self.rows]
        values = [[number for cell in row for number in (cell.mean, cell.spread)] for row in cells]
        return pd.DataFrame(values, index=index, columns=columns, dtype=float)

    def to_records(self) -> list[dict[str, Any]]:
        """One dictionary per row: its labels, and of every cell mean, spread and number of seeds."""
        return [
            {**dict(zip(self.labels, labels, strict=True)), **{name: cell.to_dict() for name, cell in cells.items()}}
            for labels, cells in self.rows
        ]

    def texts(self, plus_minus: str = "±") -> list[list[str]]:
        """Header and rows as text."""
        lines = [[*self.labels, *self.grammars]]
        for labels, cells in self.rows:
            shown = [cells[g].text(self.decimals, plus_minus) if g in cells else "-" for g in self.grammars]
            lines.append([*labels, *shown])
        return lines

    def render(self, format: str) -> str:
        """The table as "text", "markdown", "latex", "csv" or "html".

        Raises:
            InvalidSettingError: another format.
        """
        renderers = {"text": _text, "markdown": _markdown, "latex": _latex, "csv": _csv, "html": _html}
        if format not in renderers:
            raise InvalidSettingError(f"A table is printed as {', '.join(renderers)} or json, not as '{format}'.")
        return renderers[format](self)


def checked_spread(spread: str) -> str:
    """A spread over seeds, one of SPREADS.

    Raises:
        InvalidSettingError: another.
    """
    if spread not in SPREADS:
        raise InvalidSettingError(f"The spread is {', '.join(SPREADS)}, not '{spread}'.")
    return spread


def in_order(grammars: Iterable[str]) -> list[str]:
    """Grammars in the order of the papers' tables, others after them."""
    return sorted(set(grammars), key=lambda g: (ORDER.index(g) if g in ORDER else len(ORDER), g))


def bias_table(long: pd.DataFrame, spread: str = "sd") -> BiasTable:
    """The bias table of results in long form.

    Args:
        long: from `icy.long_table.to_long`.
        spread: "sd", "sem" or "ci95"; all from the sample standard deviation (ddof 1).

    Raises:
        InvalidSettingError: another spread.
    """
    checked_spread(spread)
    grammars = in_order(long["grammar"])
    varying = [name for name in ROW[1:] if long[name].nunique(dropna=False) > 1]
    rows = [
        (_labels(group, varying), {str(g): cell_of(part, spread) for g, part in group.groupby("grammar", sort=False)})
        for _, group in long.groupby(list(ROW), sort=False, dropna=False)
    ]
    labels = ["model", "parameters", *(_heading(name) for name in varying), "seeds", "concat steps"]
    return BiasTable(_title(long, varying), labels, grammars, rows, _notes(long, spread))


def cell_of(part: pd.DataFrame, spread: str) -> Cell:
    """The cell of some replicates, from their columns value, failed and cut."""
    good = part[~part["failed"].astype(bool)]
    values = good["value"].dropna()
    if not len(values):
        return Cell(math.nan, math.nan, 0, 0, len(part))
    width = SPREADS[spread][1](values) if len(values) > 1 else math.nan
    return Cell(float(values.mean()), width, len(values), int(good["cut"].sum()), len(part) - len(values))


def _labels(group: pd.DataFrame, varying: list[str]) -> list[str]:
    first = group.iloc[0]
    published = first["preset"] == "published"
    count = first["parameters_published" if published else "parameters"]
    concat = group[(group["grammar"] == "concat") & ~group["failed"].astype(bool)]["steps"].dropna()
    steps = f"{concat.astype(float).mean():.0f}" if len(concat) else "-"
    name = str(first["model"])
    return [
        name,
        "-" if pd.isna(count) else f"{int(count)}",
        *("-" if pd.isna(first[v]) else str(first[v]) for v in varying),
        str(group["seed"].nunique()),
        steps,
    ]


def _heading(name: str) -> str:
    return name.replace("_", " ")


def _title(long: pd.DataFrame, varying: list[str]) -> str:
    """What was measured, as far as it is the same for all rows."""
    if not len(long):
        return "No results."
    first = long.iloc[0]
    parts = []
    if "protocol" not in varying:
        goal = "" if "target" in varying or pd.isna(first["target"]) else f", target {first['target']:g}"
        parts.append(f"{first['protocol']}: {MEASURES.get(first['measure'], first['measure'])}{goal}")
    if first["measure"] == "held_out" and not {"protocol", "held_out", "split"} & set(varying):
        parts.append(f"{first['held_out']:g} held out ({first['split']})")
    parts += [f"meanings {first['meanings']}"] if "meanings" not in varying else []
    sizes = {"vocab_size": "V", "word_length": "w", "hidden_size": "E"}
    shown = [f"{letter}={first[name]}" for name, letter in sizes.items() if name not in varying]
    parts += [", ".join(shown)] if shown else []
    parts += [str(first["representation"])] if "representation" not in varying else []
    parts += [f"preset {first['preset']}"] if "preset" not in varying else []
    parts += [str(first[name]) for name in ("settings", "options") if name not in varying and first[name]]
    return "; ".join(parts)


def _notes(long: pd.DataFrame, spread: str) -> list[str]:
    notes = []
    if long["seed"].nunique() > 1:
        notes.append(f"mean ± {SPREADS[spread][0]}")
    if long["cut"].any():
        for measure, part in long[long["cut"].astype(bool)].groupby("measure"):
            caps = ", ".join(f"{cap:g}" for cap in sorted(part["cap"].unique()))
            notes.append(f"{CUT} {CUT_MEANS.get(str(measure), CUT_MEANS['ratio']).format(cap=caps)}")
    failed = int(long["failed"].astype(bool).sum())
    if failed:
        reasons = "; ".join(sorted({str(e) for e in long.loc[long["failed"].astype(bool), "error"]}))
        notes.append(f"{failed} of {len(long)} runs failed: {reasons}")
    return notes


def _text(table: BiasTable) -> str:
    lines = table.texts()
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rule = "  ".join("-" * width for width in widths)
    rows = ["  ".join(map(_pad, line, widths, range(len(widths)))).rstrip() for line in lines]
    return "\n".join([table.title, "", rows[0], rule, *rows[1:], "", *table.notes]).strip()


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _markdown(table: BiasTable) -> str:
    head, *rows = table.texts()
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([table.title, "", *body, *([""] if table.notes else []), *table.notes])


def _latex(table: BiasTable) -> str:
    head, *rows = table.texts(plus_minus="$\\pm$")
    line = " & ".join
    body = [line(_tex(cell) for cell in row) + r" \\" for row in rows]
    caption = _tex(". ".join([table.title, *table.notes]))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            r"\hline",
            line(_tex(cell) for cell in head) + r" \\",
            r"\hline",
            *body,
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _tex(cell: str) -> str:
    for plain, tex in (("_", r"\_"), ("%", r"\%"), ("&", r"\&"), ("#", r"\#"), (CUT, r"$^\dagger$"), ("±", r"$\pm$")):
        cell = cell.replace(plain, tex)
    return cell


def _csv(table: BiasTable) -> str:
    frame = table.to_dataframe()
    frame.columns = pd.Index([f"{grammar}_{what}" for grammar in table.grammars for what in ("mean", "spread")])
    return str(frame.reset_index().to_csv(index=False)).rstrip("\n")


def _html(table: BiasTable) -> str:
    head, *rows = table.texts()

    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    notes: list[Any] = [html.escape(note) for note in table.notes]
    return (
        f"<table><caption>{html.escape(table.title)}</caption><thead>{line(head, 'th')}</thead>"
        f"<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>" + "".join(f"<p>{n}</p>" for n in notes)
    )
