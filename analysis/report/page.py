"""The page of a report: its sections as plain data, and one HTML file with style, script, library and data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
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
    tradeoff_limits,
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
RATIOS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)  # named in legends and on axes
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
        return bool(self._curves)

    @cached_property
    def _curves(self) -> dict[str, Any]:
        """The curves of the records, by key."""
        return {record["key"]: curve for record in self.records if (curve := record.get("curve"))}

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
        """Return the data of the page's script as json: rows, cells, runs, curves, and charts."""
        curves, runs = self._runs()
        return {
            "name": self.name,
            "rows": self.names(),
            "heat": self.cells(),
            "run_names": list(RUN),
            "runs": runs,
            "points": self.axes,
            "counted": self.counted,
            "curves": curves,
            "means": self._means(),
            "tradeoff": self.tradeoff(),
            "levels": self._levels(),
            "charts": self.specs(),
        }

    def specs(self) -> dict[str, Facts]:
        """Return the charts (Vega-Lite) with the limits, scales, looks and names of `icy plot`; scripts add values."""
        found, log = charts(), self.log
        heat, curves, title = found["heat"], found["curves"], "ratio to concat" if log else "mean"
        color, ends = heat["layer"][0]["encoding"]["color"], (0.0, 1.0)
        color["title"] = "within its column" if self.scores else title
        if self.blocks:
            ends = color_ends(self.blocks, self.table.spread)
            color["legend"] |= {"values": [one for one in RATIOS if ends[0] <= one <= ends[1]]} if log else {}
        color["scale"] |= {"domain": ends} | ({"type": "log", "reverse": True} if log and self.blocks else {})
        heat["description"] = heat["description"].replace("mean", color["title"])
        heat["encoding"]["x"]["sort"] = [self.table.heading(name) for name in self.table.grammars]
        points = [point for part in self.blocks for point in ranked(part, self.table.spread)]
        if points:
            for axis, ends in zip("xy", tradeoff_limits(points, log), strict=True):
                encoding = found["tradeoff"]["encoding"][axis]
                encoding["scale"] = {"domain": ends, "nice": False} | ({"type": "log"} if log else {"zero": False})
                if log:
                    encoding |= {"axis": {"values": RATIOS}, "title": encoding["title"].replace("accuracy", title)}
            if log:  # a small ratio is better
                found["tradeoff"]["layer"][2]["mark"]["interpolate"] = "step-before"
        looks, lines = grammar_looks(in_order(self.long["grammar"])), curves["layer"][1]["encoding"]
        lines["x"]["title"] = lines["tooltip"][2]["title"] = self.counted
        lines["color"]["scale"] = {"domain": list(looks), "range": [look.color for look in looks.values()]}
        lines["strokeDash"]["scale"] = {"domain": list(looks), "range": [look.dashes for look in looks.values()]}
        return {name: found[name] for name in ("heat", "tradeoff", "curves")}

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
                seeds = self._seeds.get((place, name), self._seeds.get((place, ""), ""))
                found.append({**about, "mean": cell.center, "n": cell.seeds, "seeds": seeds})
        return _within_columns(found) if self.scores else found

    @cached_property
    def _seeds(self) -> dict[tuple[int, str], str]:
        """The seeds with a value, by row and grammar; the grammar "" has the seeds of all grammars."""
        done = self.long.loc[self.long["value"].notna(), ["row", "grammar", "seed"]]
        both = pd.concat([done, done.assign(grammar="")])
        found: Any = both.groupby(["row", "grammar"], sort=False)["seed"].unique()
        return {key: ", ".join(map(str, seeds)) for key, seeds in found.items()}

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
                about |= {"color": looks[point.line.model].color, "n": point.noise.seeds, "seeds": self._seeds[row, ""]}
                found.append({**about, "name": point.name if len(points) <= MOST_NAMED else str(point.rank)})
        return found

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
        most = min(MOST_POINTS, max(LEAST_POINTS, ALL_POINTS // max(1, len(self._curves))))
        curves: list[Lines] = []
        runs = []
        for about in self.long.to_dict("records"):
            shown = thinned(self._curves.get(about["key"], ()), len(self.points), most)
            runs.append([*(_plain(about.get(name)) for name in RUN[:-1]), len(curves) if shown else -1])
            curves += [shown] if shown else []
        return curves, runs

    def _means(self) -> list[list[object]]:
        """Return the mean curves over seeds: row, grammar, index of the value, x, mean, and lower and upper end."""
        of_key = self._curves
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
    return whole_page(
        "report",
        {"sections": [section.data() for section in sections]},
        title=title,
        sections=sections,
        methods=methods,
        models=len({model for section in sections for model in section.long["model"]}),
        failed=sum(len(section.failures()) for section in sections),
        spreads=dict.fromkeys(SPREADS[section.table.spread][0] for section in sections),
    )


def charts() -> dict[str, Facts]:
    """Return the charts of `web/charts.json` (Vega-Lite), to which scripts add the data."""
    found: dict[str, Facts] = json.loads((WEB / "charts.json").read_text())
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
