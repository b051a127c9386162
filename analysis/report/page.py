"""The page of a report: its sections as plain data, and one HTML file with style, script, library and data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from icy.analysis.order import Facts, in_order, text_of
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
from icy.core.errors import IncompatibleError
from icy.core.text import counted
from icy.records.kinds import kind_of_rows
from icy.records.long_table import ROW
from icy.records.record import Record
from icy.version import __version__

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
    """

    name: str
    noun: str
    table: BiasTable
    long: pd.DataFrame
    records: Sequence[Record] = ()
    points: tuple[str, ...] = ("steps", "accuracy")

    @cached_property
    def rows(self) -> list[Facts]:
        """The columns that the replicates of a row share, by row number."""
        firsts = self.long.drop_duplicates("row").sort_values("row")
        return [dict(row) for row in firsts.to_dict("records")]  # type: ignore[arg-type]

    @cached_property
    def lines(self) -> list[tuple[int, str]]:
        """The row and the name of each line of the table: the model and the labels that vary, without counts."""
        table = self.table
        varies = [len(set(column)) > 1 for column in zip(*(labels for labels, _ in table.rows), strict=True)]
        shown = [
            place
            for place, name in enumerate(table.labels)
            if name not in COUNTS and (place == 0 or (varies and varies[place]))
        ]
        names = [", ".join(labels[n] for n in shown if labels[n] not in ("", "-")) for labels, _ in table.rows]
        return list(zip(table.row_numbers or [-1] * len(names), names, strict=True))

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

    def charts(self) -> Iterator[tuple[str, str, Sequence[str], str]]:
        """Yield the name, title, notes and class of each chart of the page."""
        if len(self.rows) > 1 or not self.scores:  # scores of one row have different scales
            yield "heat", *self.described(), "wide"
        if self.tradeoff():
            yield "tradeoff", *self.described(describe_tradeoff), ""
        if self.has_curves:
            note = (
                f"thick line and band: mean ± {SPREADS[self.table.spread][0]}, while all seeds run; thin line: a seed"
            )
            yield "curves", CURVES.get(str(self.long["measure"].iloc[0]), CURVES[""]), [note], ""

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
        varying = [name for name in ROW[1:] if self.long[name].nunique(dropna=False) > 1]
        return [
            alone.get(place)
            or ", ".join([str(row["model"]), *filter(None, (text_of(row[name], "") for name in varying))])
            for place, row in enumerate(self.rows)
        ]

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
            values = [text_of(value, "") for value in dict.fromkeys(self.long[name])]
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
PAGES = Environment(
    loader=FileSystemLoader(WEB), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
PAGES.globals |= {"counted": counted, "version": __version__, "zip": zip}
MISSING = 'Reports need Vega; install it with `pip install "icy-toolkit[report]"`.'


def report_page(sections: Sequence[Section], title: str, methods: str) -> str:
    """Return a report as one HTML file.

    Args:
        sections: sections of the report.
        title: heading of the page.
        methods: paragraphs of `icy.analysis.methods`.

    Raises:
        IncompatibleError: the plotting library is not installed.
    """
    data = {"sections": [section.data() for section in sections], "charts": charts()}
    return whole_page(
        "report",
        data,
        title=title,
        sections=sections,
        methods=methods,
        models=len({model for section in sections for model in section.long["model"]}),
        failed=sum(len(section.failures()) for section in sections),
        spreads=dict.fromkeys(SPREADS[section.table.spread][0] for section in sections),
    )


def charts() -> dict[str, Facts]:
    """Return the charts of `web/charts.json` (Vega-Lite), and variants: ratios on logarithmic scales, and scores.

    Heat maps, trade-offs and curves show what `icy plot` draws. The page's scripts add the data.
    """
    found: dict[str, Facts] = json.loads((WEB / "charts.json").read_text())
    for name, title, scale in (
        ("heat_log", "ratio to concat", {"type": "log", "reverse": True}),
        ("heat_scores", "within its column", {}),
    ):
        heat = found[name] = deepcopy(found["heat"])
        heat["description"] = heat["description"].replace("mean", title)
        color = heat["layer"][0]["encoding"]["color"]
        color |= {"title": title, "scale": color["scale"] | scale}
    ratios = found["tradeoff_log"] = deepcopy(found["tradeoff"])
    for axis in (ratios["encoding"]["x"], ratios["encoding"]["y"]):
        axis |= {"scale": {"type": "log", "nice": False}, "title": axis["title"].replace("accuracy", "ratio to concat")}
    ratios["layer"][2]["mark"]["interpolate"] = "step-before"  # the front; a small ratio is better
    return found


def whole_page(name: str, data: object, **values: object) -> str:
    """Return a self-contained HTML file, with style, library, data and scripts.

    Args:
        name: name of the page's template and of its script in `web`.
        data: data for the scripts, convertible to json.
        **values: values for the template, which escapes them.

    Raises:
        IncompatibleError: the plotting library is not installed.
    """
    own = "".join((WEB / file).read_text() for file in ("common.js", f"{name}.js"))
    page = PAGES.get_template(f"{name}.html").render(
        style=Markup((WEB / "page.css").read_text()),
        data=Markup(in_script(data)),
        scripts=[Markup(vega()), Markup(f"(() => {{\n{own}}})();")],  # in a function: Vega defines many short names
        **values,
    )
    return page.encode(errors="replace").decode()  # replaces lone surrogates


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
