"""The page of a report: its sections as plain data, and one HTML file with style, script, library and data."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from icy.analysis.order import Facts, in_order
from icy.analysis.plots.panels import (
    CURVES,
    MOST_NAMED,
    Line,
    ResultBlock,
    blocks,
    color_ends,
    describe,
    describe_tradeoff,
    mean_and_band,
    measured,
    ranked,
)
from icy.analysis.style import grammar_looks, model_looks
from icy.analysis.table_cells import LEAST_RATIO, SPREADS, conventions_of
from icy.analysis.tables.printed_table import BiasTable
from icy.analysis.tables.references import numbered
from icy.core.errors import IncompatibleError
from icy.core.text import counted
from icy.records.kinds import kind_of_rows
from icy.records.long_table import ROW
from icy.records.record import Record
from icy.version import __version__

from . import charts

# -- sections of a report, one per protocol or kind of job, as plain data ----------------------------------------------


MOST_POINTS = 60  # maximum per learning curve, enough for a line of a few hundred pixels
LEAST_POINTS = 4  # minimum per learning curve, in a report with very many
ALL_POINTS = 300_000  # maximum of all curves of a section: about 4 MB, which a browser reads at once
DIGITS = 4
Lines: TypeAlias = list[list[float | None]]  # a curve, as a list per name
RUN = ("row", "grammar", "seed", "value", "censored", "failed", "reason", "error", "steps", "seconds", "curve")
COUNTS = ("parameters", "seeds", "concat updates")  # labels of tables that do not identify rows


@dataclass(frozen=True)
class Section:
    """Results of one protocol, or of one kind of job.

    Attributes:
        name: name of the protocol or kind.
        noun: plural noun for the trained objects, such as "models".
        table: the printed table of these results.
        long: the results in long form, with the column `row`.
        records: records with the curves; empty for results that were read from a table.
        points: names of the values at each point of a curve; the first is drawn on the x axis.
        rows: the columns that the replicates of a row share, by row number.
        varying: columns of settings in which rows differ, in addition to the model.
        lines: the row and the name of each line of the table.
    """

    name: str
    noun: str
    table: BiasTable
    long: pd.DataFrame
    records: Sequence[Record] = ()
    points: tuple[str, ...] = ("steps", "accuracy")
    rows: list[Facts] = field(init=False)
    varying: list[str] = field(init=False)
    lines: list[tuple[int, str]] = field(init=False)

    def __post_init__(self) -> None:
        long = self.long if "row" in self.long else numbered(self.long)
        object.__setattr__(self, "long", long)
        object.__setattr__(self, "rows", _rows(long))
        varying = [name for name in ROW[1:] if long[name].nunique(dropna=False) > 1]
        object.__setattr__(self, "varying", varying)
        object.__setattr__(
            self, "lines", [*zip(self.table.row_numbers or [-1] * len(self.table.rows), self._labels(), strict=True)]
        )

    @property
    def scores(self) -> bool:
        """Whether the columns of the table are scores, each with its own scale, rather than grammars."""
        return not set(self.table.grammars) <= set(self.long["grammar"])

    @cached_property
    def measured(self) -> pd.DataFrame:
        """The results of the charts, as `icy plot` draws them."""
        return measured(self.long)

    @cached_property
    def blocks(self) -> list[ResultBlock]:
        """The panels of the charts; empty if the columns are scores."""
        return [] if self.scores else blocks(self.measured)

    def described(self, by: Callable[[pd.DataFrame, str], tuple[str, list[str]]] = describe) -> tuple[str, list[str]]:
        """Return the title of a chart and the notes that the table lacks."""
        if self.scores:
            return "How each row scores; colors compare the rows of a column", []
        title, notes = by(self.measured, self.table.spread)
        return title, [note for note in notes if note not in self.table.notes and not note.startswith(self.table.title)]

    @cached_property
    def log(self) -> bool:
        """Whether the values are ratios."""
        return bool(self.long["measure"].eq("ratio").any())

    @property
    def has_curves(self) -> bool:
        """Whether any run has a curve; old records, and results read from a table, have none."""
        return any(record.get("curve") for record in self.records)

    @property
    def counted(self) -> str:
        """Plural noun for the x axis of the curves, such as "updates"."""
        return kind_of_rows(self.long).counted if self.points[0] == "steps" else self.points[0]

    @property
    def axes(self) -> list[str]:
        """Axis labels for `points`; metrics have their conventions."""
        used = conventions_of(self.long)
        return [used[name].heading(name) if name in used else name for name in self.points]

    def data(self) -> Facts:
        """Return the data of the page's script as json: rows, cells, runs and curves."""
        curves, runs = self._runs()
        return {
            "name": self.name,
            "rows": self.names(),
            "columns": [self.table.heading(name) for name in self.table.grammars],
            "cells": self.cells(),
            "chart": "heat_scores" if self.scores else "heat" + "_log" * self.log,
            "log": self.log,
            "run_names": list(RUN),
            "runs": runs,
            "points": self.axes,
            "counted": self.counted,
            "curves": curves,
            "means": self._means(),
            "tradeoff": self.tradeoff(),
            "looks": self._looks(),
            "levels": self._levels(),
            "domain": color_ends(self.blocks, self.table.spread) if self.blocks else (0.0, 1.0),
        }

    def names(self) -> list[str]:
        """Return a name for each row: the name of its line in the table; model and settings if it has several lines."""
        shown: dict[int, list[str]] = {}
        for place, label in self.lines:
            shown.setdefault(place, []).append(label)
        alone = {place: labels[0] for place, labels in shown.items() if len(labels) == 1}
        return [
            alone.get(place) or ", ".join(map(str, (row["model"], *self._setting_texts(row))))
            for place, row in enumerate(self.rows)
        ]

    def _labels(self) -> list[str]:
        """Return the name of each line of the table: the model and the labels that vary, without counts."""
        columns = zip(*(labels for labels, _ in self.table.rows), strict=True)
        varies = [len(set(column)) > 1 for column in columns]
        shown = [
            place
            for place, name in enumerate(self.table.labels)
            if name not in COUNTS and (place == 0 or (varies and varies[place]))
        ]
        return [
            ", ".join(labels[place] for place in shown if labels[place] not in ("", "-"))
            for labels, _ in self.table.rows
        ]

    def _setting_texts(self, row: Facts) -> list[str]:
        """Return the values of a row's varying settings, as text."""
        return [part for name in self.varying for part in _text(row[name]).split(", ") if part]

    def cells(self) -> list[Facts]:
        """Return the cells of the heat map: panel, row, column, center, interval, texts, and the value of its color."""
        table, spread = self.table, self.table.spread
        rows = [
            (part.name, _row_of(line), line.label, {name: line.cell(name, spread) for name in part.grammars})
            for part in self.blocks
            for line in part.lines
        ]
        if self.scores:
            lines = zip(self.lines, table.rows, strict=True)
            rows = [("", place, label, dict(cells)) for (place, label), (_, cells) in lines]
        found, least = [], LEAST_RATIO if self.log else -math.inf  # above 0 for a logarithmic scale
        for panel, place, label, cells in rows:
            for name, cell in cells.items():
                if cell is None or not cell.seeds or not math.isfinite(cell.center):
                    continue
                text = cell.text(table.decimals, table.signed)
                about = {
                    "panel": panel,
                    "row": place,
                    "label": label,
                    "column": table.heading(name),
                    "shade": max(cell.center, least),
                    "shown": cell.lines(table.decimals),
                    "text": text + (f", {cell.censored} of {cell.seeds} cut" if 0 < cell.censored < cell.seeds else ""),
                }
                seeds = self._seeds(place, name)
                found.append({**about, "mean": cell.center, "n": cell.seeds, "seeds": seeds})
        return _within_columns(found) if self.scores else found

    def _seeds(self, place: int, grammar: str = "") -> str:
        """Return the seeds of a row with a value; if the column is a grammar, with a value on this grammar."""
        on_all = self._seeds_of_rows.get((place, None), [])
        return ", ".join(map(str, dict.fromkeys(self._seeds_of_rows.get((place, grammar), on_all))))

    @cached_property
    def _seeds_of_rows(self) -> dict[tuple[int, str | None], list[object]]:
        """The seeds with a value, by row and grammar; the grammar None has the seeds of all grammars."""
        found: dict[tuple[int, str | None], list[object]] = {}
        done = self.long[self.long["value"].notna()]
        for row, grammar, seed in zip(done["row"], done["grammar"], done["seed"], strict=True):
            for name in (grammar, None):
                found.setdefault((row, name), []).append(seed)
        return found

    def tradeoff(self) -> list[Facts]:
        """Return the points of the trade-off, with their intervals, as `icy plot tradeoff` draws them."""
        found = []
        for part in self.blocks:
            points = ranked(part, self.table.spread)
            looks = model_looks(point.line.model for point in points)
            for point in points:
                (x, y), ((left, right), (low, high)) = point.place, point.ends
                row = _row_of(point.line)
                about = {"panel": part.name, "row": row, "label": point.line.label, "front": point.front}
                about |= {"x": x, "y": y, "left": left, "right": right, "low": low, "high": high}
                about |= {"color": looks[point.line.model].color, "n": point.noise.seeds, "seeds": self._seeds(row)}
                found.append({**about, "name": point.name if len(points) <= MOST_NAMED else str(point.rank)})
        return found

    def _looks(self) -> Facts:
        """Return the colors and dashes of grammars, as in `icy plot curves`."""
        looks = grammar_looks(in_order(self.long["grammar"]))
        return {
            "grammars": list(looks),
            "colors": [look.color for look in looks.values()],
            "dashes": [look.dashes for look in looks.values()],
        }

    def _levels(self) -> list[list[Facts]]:
        """Return the horizontal lines of each row's curves of accuracy: the target and chance, if its panel has one."""
        found: list[list[Facts]] = [[] for _ in self.rows]
        for part in self.blocks:
            levels = {"target": part.target, "chance": part.chance}
            lines: list[Facts] = [{"y": float(y), "name": name} for name, y in levels.items() if y is not None]
            for row in part.long["row"].unique():
                found[row] = lines
        return found

    def _runs(self) -> tuple[list[Lines], list[list[object]]]:
        """Return all curves, and a list of values per run; the last value is the index of the run's curve, or -1."""
        of_key = {record["key"]: curve for record in self.records if (curve := record.get("curve"))}
        most = min(MOST_POINTS, max(LEAST_POINTS, ALL_POINTS // max(1, len(of_key))))
        curves: list[Lines] = []
        runs = []
        for about in self.long.to_dict("records"):
            shown = thinned(of_key.get(about["key"], ()), len(self.points), most)
            runs.append([*(_plain(about.get(name)) for name in RUN[:-1]), len(curves) if shown else -1])
            curves += [shown] if shown else []
        return curves, runs

    def _means(self) -> list[list[object]]:
        """Return the mean curves over seeds: row, grammar, index of the value, x, mean, and lower and upper end."""
        of_key = {record["key"]: curve for record in self.records if (curve := record.get("curve"))}
        keys: Any = self.long.groupby(["row", "grammar"], sort=False)["key"].agg(list) if of_key else {}
        chosen = {where: own for where, some in dict(keys).items() if len(own := [k for k in some if k in of_key]) > 1}
        most = min(MOST_POINTS, max(LEAST_POINTS, ALL_POINTS // max(1, len(chosen) * len(self.points))))
        found: list[list[object]] = []
        for (row, grammar), own in chosen.items():
            for y in range(1, len(self.points)):
                runs = {
                    key: {p[0]: p[y] for p in of_key[key] if len(p) > y and all(map(_is_number, (p[0], p[y])))}
                    for key in own
                }
                shared, mean, wide = mean_and_band(
                    pd.DataFrame(runs, dtype=float).sort_index(), self.table.spread, most
                )
                lines = (shared.index, mean, mean - wide, mean + wide)
                found += [[int(row), str(grammar), y, *([_plain(v) for v in line] for line in lines)]] * bool(len(mean))
        return found

    def failures(self) -> list[list[str]]:
        """Return model, grammar, seed and error of runs that failed."""
        failed = self.long[self.long["failed"].astype(bool)]
        names = ("model", "grammar", "seed", "error")
        return [[str(row[name]) for name in names] for row in failed.to_dict("records")]

    def settings(self) -> list[tuple[str, str]]:
        """Return settings with the value that all rows share, or with the number of different values."""
        found = []
        for name in ROW:
            values = [_text(value) for value in dict.fromkeys(self.long[name])]
            if any(values):
                found.append((name, values[0] if len(values) == 1 else f"{len(values)} values"))
        return found


def thinned(curve: Sequence[Sequence[float | None]], names: int, most: int = MOST_POINTS) -> Lines:
    """Return a curve with at most `most` points, including the last, as a list per name.

    Example:
        >>> thinned([[0, 0.5], [50, 0.75]], 2)
        [[0, 50], [0.5, 0.75]]
    """
    points = [point for point in curve if len(point) >= 2 and all(map(_is_number, point[:2]))]
    if not points:
        return []
    step = -(-len(points) // most)
    chosen = points[::-1][::step][::-1]
    return [[_plain(point[place]) if place < len(point) else None for point in chosen] for place in range(names)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _rows(long: pd.DataFrame) -> list[Facts]:
    """Return the first replicate of each row, by row number."""
    return [dict(row) for row in long.drop_duplicates("row").sort_values("row").to_dict("records")]  # type: ignore[arg-type]


def _row_of(line: Line) -> int:
    """Return the number of the row of a line of a chart."""
    return int(line.long["row"].iloc[0])


def _within_columns(cells: list[Facts]) -> list[Facts]:
    """Rescale the color value of cells to [0, 1], from the least to the largest mean of their column."""
    ends: dict[str, list[float]] = {}
    for cell in cells:
        ends.setdefault(cell["column"], []).append(cell["mean"])
    shades = {name: (min(values), max(values) - min(values) or 1.0) for name, values in ends.items()}
    return [{**cell, "shade": (cell["mean"] - shades[cell["column"]][0]) / shades[cell["column"]][1]} for cell in cells]


def _text(value: Any) -> str:
    """Return a setting as text; "" for none."""
    if pd.isna(value):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """Return a value for json: numbers with few digits, None if missing or not finite."""
    if value is None or isinstance(value, str | bool):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number == int(number) else float(f"{number:.{DIGITS}g}")


# -- the page of a report: one HTML file with its style, script, library and data --------------------------------------


WEB = Path(__file__).parent / "web"
MISSING = 'Reports need Vega; install it with `pip install "icy-toolkit[report]"`.'
# No network access, whatever names in the results contain. Vega needs 'unsafe-eval', as it compiles expressions.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:"
SAVED = ("svg", "png")
# How to read the numbers, a sentence per topic; docs/pitfalls.md has details under the same headings.
PITFALLS = {
    "Conventions": "One metric has several definitions. Headings and notes name the definition that was used: compare "
    "values only if these agree.",
    "Symbols": "In an end-to-end run under soft, gumb or discr, agents can say the V tokens and the "
    "start symbol, unless symbols=V.",
    "Chance": "A value above 0 is not a finding yet: icy metrics --permutations 1000 shows the value by chance and a "
    "p-value. Metrics of information are too high on few rows.",
    "Values by construction": "‡ marks a value that the size of its table determines or bounds, such as ami if no "
    "message occurs twice.",
    "Cuts": "† marks runs that ended at the cap or the budget: the true ratio is larger, and two models that were both "
    "cut cannot be ranked.",
    "Seeds": "± is a spread over seeds; the notes of each table say which. A value of few seeds is uncertain: compare "
    "models seed by seed.",
    "Ratios": "A ratio is relative to concat, with the same model and seed. It says nothing about "
    "absolute speed: the number of updates is below the ratio.",
    "Accuracy": "Only the protocol generalise measures on meanings that were not trained on. Senders are right about "
    "tokens (chance 1/V), receivers about attributes (chance 1/K): 80 % accuracy is not equally hard for both.",
    "Presets": "The preset published reproduces the defects of the authors' programs that changed printed numbers.",
}


def report_page(sections: Sequence[Section], title: str, methods: str) -> str:
    """Return a report as one HTML file.

    Args:
        sections: sections of the report.
        title: heading of the page.
        methods: paragraphs of `icy.analysis.methods`.

    Raises:
        IncompatibleError: the plotting library is not installed.
    """
    body = [
        _summary(sections, title),
        *(_section(place, one) for place, one in enumerate(sections)),
        _about(sections, methods),
    ]
    data = {
        "sections": [section.data() for section in sections],
        "charts": {
            "heat": charts.heat(),
            "heat_log": charts.heat(True),
            "heat_scores": charts.heat(title="within its column"),
            "tradeoff": charts.tradeoff(),
            "tradeoff_log": charts.tradeoff(True),
            "curves": charts.curves(),
        },
    }
    return whole_page(title, "\n".join(body), data, "report.js")


def whole_page(title: str, body: str, data: object, *scripts: str) -> str:
    """Return a self-contained HTML file, with style, library, data and scripts.

    Args:
        title: title of the window.
        body: HTML, with texts from results escaped.
        data: data for the scripts, convertible to json.
        scripts: names of files in `web`.

    Raises:
        IncompatibleError: the plotting library is not installed.
    """
    own = "".join((WEB / name).read_text() for name in ("common.js", *scripts))
    code = [vega(), f"(() => {{\n{own}}})();"]  # in a function, since Vega's script defines many short names
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="generator" content="icy {__version__}"><title>{escaped(title)}</title>',
        f"<style>{(WEB / 'page.css').read_text()}</style></head><body>",
        '<button id="theme" type="button">Dark</button>',
        f"<main>{body}</main>",
        f'<script type="application/json" id="data">{in_script(data)}</script>',
        *(f"<script>{one}</script>" for one in code),
        "</body></html>",
    ]
    return ("\n".join(parts) + "\n").encode(errors="replace").decode()  # replaces lone surrogates


def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, with their notice.

    Raises:
        IncompatibleError: vl-convert-python, which contains them, is not installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise IncompatibleError(MISSING) from error
    bundle: str = vl_convert.javascript_bundle(None)  # type: ignore[arg-type]
    notice = "/* Vega, Vega-Lite and Vega-Embed: BSD 3-Clause, University of Washington Interactive Data Lab. */\n"
    return notice + bundle.replace("</script", "<\\/script")


def in_script(data: object) -> str:
    """Return data as json that is safe in a script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def escaped(text: object) -> str:
    """Return text with HTML's special characters escaped."""
    return html.escape(str(text), quote=True)


# -- parts -------------------------------------------------------------------------------------------------------------


def _summary(sections: Sequence[Section], title: str) -> str:
    runs = sum(len(section.long) for section in sections)
    failed = sum(len(section.failures()) for section in sections)
    models = len({model for section in sections for model in section.long["model"]})
    counts = f"{counted(runs, 'run')} of {counted(models, 'model')}" + (f"; {failed} failed" if failed else "")
    links = "".join(
        f'<li><a href="#section-{place}">{escaped(section.name)}</a></li>' for place, section in enumerate(sections)
    )
    nav = f'<nav aria-label="Sections"><ul>{links}<li><a href="#about">About</a></li></ul></nav>'
    return f"<header><h1>{escaped(title)}</h1><p>{counts}</p>{nav}</header>"


def _section(place: int, section: Section) -> str:
    title = section.table.title or section.name
    named = f'id="section-{place}" aria-labelledby="title-{place}" data-section="{place}"'
    parts = [
        f'<section {named}><h2 id="title-{place}">{escaped(section.name)}</h2><p class="what">{escaped(title)}</p>',
        f'<p class="tools"><label>Filter rows <input type="search" data-filter="{place}"></label>'
        f'<span role="status" data-count="{place}"></span></p>',
        _table(place, section),
        *(f"<p class='note'>{escaped(note)}</p>" for note in section.table.remarks("bold: best, italic: worst")),
        "<p class='note'><a href='#pitfalls'>How to read these numbers: pitfalls</a></p>",
        _charts(place, section),
        _failures(section),
        _settings(section),
        f'<details data-runs="{place}"><summary>All {counted(len(section.long), "run")}</summary></details></section>',
    ]
    return "\n".join(parts)


def _table(place: int, section: Section) -> str:
    table = section.table
    heads = [*table.labels, *table.grammars]
    first = len(table.labels)
    cells = "".join(
        f'<th scope="col" aria-sort="none"><button type="button" data-sort="{at}">'
        f"{escaped(_with_arrow(table, name) if at >= first else name)}</button></th>"
        for at, name in enumerate(heads)
    )
    rows = "".join(_row(section, line) for line in range(len(table.rows)))
    caption = f"<caption>{escaped(section.noun)}: {counted(len(table.rows), 'row')}</caption>"
    scrolls = f'class="scrolls" tabindex="0" role="region" aria-label="Table of {escaped(section.name)}"'
    body = f"{caption}<thead><tr>{cells}</tr></thead><tbody>{rows}</tbody>"
    return f'<div {scrolls}><table id="table-{place}">{body}</table></div>'


def _with_arrow(table: BiasTable, name: str) -> str:
    return f"{table.heading(name)} {table.arrows[name]}" if name in table.arrows else table.heading(name)


def _row(section: Section, line: int) -> str:
    table, (place, label) = section.table, section.lines[line]
    (first, *rest), cells = table.rows[line]
    called = "" if label == first else f' aria-label="{escaped(label if first in label else f"{first}: {label}")}"'
    named = f'data-row="{place}" data-line="{line}" aria-pressed="false"{called}'
    button = f'<button type="button" {named}>{escaped(first)}</button>'
    parts = [f'<th scope="row">{button}</th>', *(f"<td>{escaped(text)}</td>" for text in rest)]
    for name in table.grammars:
        cell = cells.get(name)
        if cell is None:
            parts.append("<td>-</td>")
            continue
        below = {kind: cell.below(kind, table.decimals, table.spread) for kind in table.below.values()}
        lines = [f"{text} updates" if kind == "updates" else text for kind, text in below.items() if text]
        small = "".join(f"<small>{escaped(text)}</small>" for text in lines)
        other = "" if cell.reference is None else f"<small>{escaped(cell.reference.text(table.decimals))}</small>"
        mark = f' class="{cell.mark}"' if cell.mark else ""
        value = f' data-value="{cell.center!r}"' if cell.seeds else ""
        parts.append(f"<td{mark}{value}>{escaped(cell.text(table.decimals, table.signed))}{small}{other}</td>")
    return f"<tr>{''.join(parts)}</tr>"


def _charts(place: int, section: Section) -> str:
    of = f" of {section.name}"
    found = []
    if len(section.rows) > 1 or not section.scores:  # scores of one row have different scales, so no chart is drawn
        found.append(_figure(f"heat-{place}", *section.described(), of, "wide"))
    if section.tradeoff():
        found.append(_figure(f"tradeoff-{place}", *section.described(describe_tradeoff), of))
    if section.has_curves:
        points = section.axes[1:]
        ys = "".join(f'<option value="{at + 1}">{escaped(name)}</option>' for at, name in enumerate(points))
        rows = "".join(f'<option value="{at}">{escaped(name)}</option>' for at, name in enumerate(section.names()))
        tools = (
            f'<p class="tools"><label>Row <select data-chosen="{place}">{rows}</select></label> '
            f'<label>Curve <select data-curve="{place}">{ys}</select></label> '
            f'<label><input type="checkbox" data-seeds="{place}"> Each seed</label></p>'
        )
        pointed = f' <span data-of="{place}"></span>'  # name of the row under the pointer
        title = CURVES.get(str(section.long["measure"].iloc[0]), CURVES[""])
        note = f"thick line and band: mean ± {SPREADS[section.table.spread][0]}, while all seeds run; thin line: a seed"
        found.append(_figure(f"curves-{place}", title, [note], of, "", tools, pointed))
    return f'<div class="charts">{"".join(found)}</div>'


def _figure(
    name: str, title: str, notes: Sequence[str], of: str, more: str = "", tools: str = "", suffix: str = ""
) -> str:
    below = "".join(f'<p class="note">{escaped(note)}</p>' for note in notes)
    scrolls = f'class="scrolls" tabindex="0" role="region" aria-label="{title}{escaped(of)}"'
    drawn = f'<div {scrolls}><div id="{name}" class="chart"></div></div>'
    head = f"<figcaption>{escaped(title)}{suffix}{save_buttons(name)}</figcaption>"
    return f'<figure class="{more}">{head}{tools}{drawn}{below}</figure>'


def save_buttons(name: str) -> str:
    """Return buttons that save a chart, as HTML."""
    return "".join(
        f'<button type="button" data-save="{name}" data-type="{kind}" aria-label="Save as {kind.upper()}">'
        f"{kind.upper()}</button>"
        for kind in SAVED
    )


def _failures(section: Section) -> str:
    failed = section.failures()
    if not failed:
        return ""
    rows = "".join(f"<tr>{''.join(f'<td>{escaped(text)}</td>' for text in row)}</tr>" for row in failed)
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("model", "grammar", "seed", "why"))
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    scrolls = f'class="scrolls" tabindex="0" role="region" aria-label="Failed runs of {escaped(section.name)}"'
    return f"<details open><summary>{len(failed)} failed</summary><div {scrolls}>{table}</div></details>"


def _settings(section: Section) -> str:
    pairs = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in section.settings())
    return f"<details><summary>Settings</summary><dl>{pairs}</dl></details>"


def _about(sections: Sequence[Section], methods: str) -> str:
    records = [record for section in sections for record in section.records]
    made = [f"<li>{escaped(one)}</li>" for one in _made(records)]
    read = "".join(f"<dt>{escaped(topic)}</dt><dd>{escaped(text)}</dd>" for topic, text in PITFALLS.items())
    spreads = dict.fromkeys(SPREADS[section.table.spread][0] for section in sections)
    ratios = "Ratios are updates divided by concat's; " if any(section.log for section in sections) else ""
    about = (
        f"Written by icy {__version__} with <code>icy report</code>. {ratios}± is the "
        f"{escaped(' or the '.join(spreads))}."
    )
    written = "".join(f"<p>{escaped(part)}</p>" for part in methods.split("\n\n"))
    return (
        f'<section id="about" aria-labelledby="about-title"><h2 id="about-title">About</h2><p>{about}</p>'
        f"<h3>Methods, to paste into a paper</h3>{written}"
        f'<h3 id="pitfalls">How to read the numbers</h3><dl>{read}</dl>'
        f"<h3>Versions and machines</h3><ul>{''.join(made)}</ul></section>"
    )


def _made(records: Sequence[Record]) -> list[str]:
    """Return the versions, commits, devices and dates of records, as sentences."""
    if not records:
        return ["Read from a table, which has no versions and no curves."]
    found: dict[str, int] = {}
    for record in records:
        versions = record.get("versions", {})
        named = ", ".join(f"{name} {versions[name]}" for name in ("icy", "torch", "python") if name in versions)
        commit = str(record.get("git") or "")[:10]
        text = f"{named}{f' ({commit})' if commit else ''}, on {record.get('device_name', 'an unknown device')}"
        found[text] = found.get(text, 0) + 1
    dates = sorted(str(record["finished"])[:10] for record in records if record.get("finished"))
    ends = list(dict.fromkeys((*dates[:1], *dates[-1:])))
    span = [f"Finished {'on' if len(ends) == 1 else 'between'} {' and '.join(ends)}."] if ends else []
    return [*(f"{text}: {count:,} runs" for text, count in found.items()), *span]
