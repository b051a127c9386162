"""The page of a report: its sections and their charts as data, and one HTML file with style, script, library, data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from icy.analysis.order import Facts, in_order, text_of
from icy.analysis.plots.panels import (
    MOST_NAMED,
    Line,
    Point,
    ResultBlock,
    blocks,
    color_ends,
    curves_title,
    describe,
    describe_tradeoff,
    mean_and_band,
    measured,
    ranked,
    tradeoff_limits,
)
from icy.analysis.style import GRAY, grammar_looks, model_looks
from icy.analysis.table_cells import LEAST_RATIO, SPREADS, TableCell, conventions_of
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
RATIOS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)  # named in legends and on axes
MEAN = "mean"  # in the place of the seed
Values: TypeAlias = list[Facts]
RUN = ("row", "grammar", "seed", "value", "censored", "failed", "reason", "error", "steps", "seconds")
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

    @cached_property
    def log(self) -> bool:
        """Whether the values are ratios."""
        return bool(self.long["measure"].eq("ratio").any())

    @cached_property
    def charts(self) -> list[Chart]:
        """The charts of the page."""
        return list(charts_of(self))

    @cached_property
    def curves_by_key(self) -> dict[str, Any]:
        """The curves of the records, by key; old records, and results read from a table, have none."""
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
        """Return the data of the page's script as json: rows, runs, and charts with their values."""
        runs = [[plain(about.get(name)) for name in RUN] for about in self.long.to_dict("records")]
        return {
            "name": self.name,
            "rows": self.names(),
            "run_names": list(RUN),
            "runs": runs,
            "points": self.axes,
            "counted": self.counted,
            "charts": {chart.name: {"spec": chart.spec, "values": chart.values} for chart in self.charts},
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


# -- charts of a section: pictures of `icy plot` as specifications of Vega-Lite, with their values ---------------------

# A chart has the panels, cells, limits, looks, titles and notes that `icy.analysis.plots.panels` gives to the picture
# of its kind. So a chart only says how Vega-Lite shows them, and which facts the reader sees at a value.


def ink(color: str) -> str:
    """Return a color for a page that may be dark: black becomes the color of its text."""
    return "currentColor" if color == "#000000" else color


class Chart(NamedTuple):
    """A chart of a section: its name, title, notes, specification, values, and its class in the page."""

    name: str
    title: str
    notes: Sequence[str]
    spec: Facts
    values: Values
    wide: str = ""


def charts_of(section: Section) -> Iterator[Chart]:
    """Yield the charts of a section that have values."""
    if len(section.rows) > 1 or not section.scores:  # scores of one row have different scales
        yield _heat(section)
    if any(points := [ranked(part, section.table.spread) for part in section.blocks]):
        yield _tradeoff(section, points)
    if section.curves_by_key:
        yield _curves(section)


# -- specifications of Vega-Lite ---------------------------------------------------------------------------------------


def specification(description: str, **parts: Any) -> dict[str, Any]:
    """Return a specification; scripts add the values."""
    schema = "https://vega.github.io/schema/vega-lite/v6.json"
    return {"$schema": schema, "description": description, "data": {"name": "shown"}, **parts}


def field(name: str, kind: str = "quantitative", **more: Any) -> dict[str, Any]:
    """Return the encoding of a field of the values: of numbers, or of names with the kind "nominal"."""
    return {"field": name, "type": kind, **more}


def layer(mark: str, encoding: Facts, *, only: str = "", **look: Any) -> dict[str, Any]:
    """Return a layer with a mark, its look, and its encoding; `only` is a condition for its values."""
    chosen = {"transform": [{"filter": only}]} if only else {}
    return {"mark": {"type": mark, **look}, **chosen, "encoding": encoding}


def tooltip(titles: Facts) -> list[dict[str, Any]]:
    """Return the encoding of a tooltip from the titles of its fields: x and y are numbers, others are words."""
    return [
        field(name, title=title, format=".3f") if name in ("x", "y") else field(name, "nominal", title=title)
        for name, title in titles.items()
    ]


# -- the heat map ------------------------------------------------------------------------------------------------------


def _heat(section: Section) -> Chart:
    """Return the heat map: of results as `icy plot heat` draws them, of scores with colors within each column."""
    title, ends, more = ("ratio to concat" if section.log else MEAN), (0.0, 1.0), {}
    if section.scores:
        title = "within its column"
    else:
        ends = color_ends(section.blocks, section.table.spread)
        more = {"type": "log", "reverse": True} if section.log else {}
    named = {"values": [one for one in RATIOS if ends[0] <= one <= ends[1]]} if more else {}
    color = field("shade", title=title, legend={"format": ".3~g", **named},
                  scale={"scheme": "viridis", "domain": ends, **more})  # fmt: skip
    white = {"test": "luminance(scale('color', datum.shade)) < 0.18", "value": "white"}
    columns = [section.table.heading(name) for name in section.table.grammars]
    told = {"label": "row", "column": "column", "text": "mean and spread", "n": "runs", "seeds": "seeds"}
    spec = specification(
        f"Heat map: a row per model, a column per grammar or score; color is the {title}.",
        autosize="pad", width={"step": 52}, height={"step": 30}, view={"fill": "#88888840", "stroke": None},
        encoding={
            "x": field("column", "nominal", sort=columns, title=None, axis={"orient": "top", "labelAngle": -35}),
            "y": field("label", "nominal", sort=None, title=None),
            "tooltip": tooltip(told),
        },
        layer=[
            layer("rect", {"color": color}, cursor="pointer"),
            layer("text", {"text": {"field": "shown"}, "color": {"condition": white, "value": "black"}},
                  lineBreak="\n", dy={"expr": "6 - 6 * length(split(datum.shown, '\\n'))"}),
        ],
    )  # fmt: skip
    values = list(_cells(section))
    if section.scores:
        note = "How each row scores; colors compare the rows of a column"
        return Chart("heat", note, [], spec, _within_columns(values), "wide")
    return Chart("heat", *_described(section, *describe(section.measured, section.table.spread)), spec, values, "wide")


def _described(section: Section, title: str, notes: Sequence[str]) -> tuple[str, list[str]]:
    """Return the title of a chart and the notes that the table lacks."""
    table = section.table
    return title, [note for note in notes if note not in table.notes and not note.startswith(table.title)]


def _cells(section: Section) -> Iterator[dict[str, Any]]:
    """Yield the cells of the heat map: panel, row, column, center, texts, and the value of its color."""
    table, least = section.table, LEAST_RATIO if section.log else -math.inf  # above 0 for a logarithmic scale
    rows: list[tuple[str, int, str, Mapping[str, TableCell | None]]] = [
        (part.name, _row_of(line), line.label, {name: line.cell(name, table.spread) for name in part.grammars})
        for part in section.blocks
        for line in part.lines
    ]
    if section.scores:
        lines = zip(section.lines, table.rows, strict=True)
        rows = [("", place, label, dict(cells)) for (place, label), (_, cells) in lines]
    seeds = _seeds(section)
    for panel, place, label, cells in rows:
        for name, cell in cells.items():
            if cell is not None and cell.seeds and math.isfinite(cell.center):
                some_cut = f", {cell.censored} of {cell.seeds} cut" if 0 < cell.censored < cell.seeds else ""
                yield {
                    "panel": panel, "row": place, "label": label, "column": table.heading(name), "mean": cell.center,
                    "shade": max(cell.center, least), "shown": cell.lines(table.decimals), "n": cell.seeds,
                    "text": cell.text(table.decimals, table.signed) + some_cut,
                    "seeds": seeds.get((place, name), seeds.get((place, ""), "")),
                }  # fmt: skip


def _within_columns(cells: Values) -> Values:
    """Rescale the color value of cells to [0, 1], from the least to the largest mean of their column."""
    ends: dict[str, list[float]] = {}
    for cell in cells:
        ends.setdefault(cell["column"], []).append(cell["mean"])
    shades = {name: (min(values), max(values) - min(values) or 1.0) for name, values in ends.items()}
    return [{**cell, "shade": (cell["mean"] - shades[cell["column"]][0]) / shades[cell["column"]][1]} for cell in cells]


def _seeds(section: Section) -> Mapping[tuple[int, str], str]:
    """Return the seeds with a value, by row and grammar; the grammar "" has the seeds of all grammars."""
    done = section.long.loc[section.long["value"].notna(), ["row", "grammar", "seed"]]
    both = pd.concat([done, done.assign(grammar="")])
    found: Any = both.groupby(["row", "grammar"], sort=False)["seed"].unique()
    return {key: ", ".join(map(str, seeds)) for key, seeds in found.items()}


def _row_of(line: Line) -> int:
    """Return the number of the row of a line of a chart."""
    return int(line.long["row"].iloc[0])


# -- the trade-off between compositional grammars and noise ------------------------------------------------------------


def _tradeoff(section: Section, parts: Sequence[Sequence[Point]]) -> Chart:
    """Return the trade-off as `icy plot tradeoff` draws it, from the ranked models of each panel."""
    log, measure = section.log, "ratio to concat" if section.log else "accuracy"
    scale = {"nice": False, **({"type": "log"} if log else {"zero": False})}
    named: dict[str, Any] = {"axis": {"values": RATIOS}} if log else {}
    ends = tradeoff_limits([point for points in parts for point in points], log)
    axes = {
        axis: field(axis, scale={"domain": limits, **scale}, title=f"{measure} on {grammars} grammars", **named)
        for axis, limits, grammars in zip("xy", ends, ("noise", "compositional"), strict=True)
    }
    told = {"label": "row", "y": "compositional", "x": "noise", "n": "runs", "seeds": "seeds"}
    spec = specification(
        "Trade-off: a point per row, by its mean on noise and on compositional grammars.",
        autosize="pad", width=300, height=300, encoding={**axes, "tooltip": tooltip(told)},
        layer=[
            layer("rule", {"x": {"field": "left"}, "x2": {"field": "right"}}, opacity=0.3),
            layer("rule", {"y": {"field": "low"}, "y2": {"field": "high"}}, opacity=0.3),
            layer("line", {"order": {"field": "x"}}, only="datum.front", color=GRAY, strokeDash=[4, 3],
                  interpolate="step-before" if log else "step-after"),  # a small ratio is better
            layer("point", {"color": field("color", "nominal", scale=None, legend=None)},
                  filled=True, size=60, cursor="pointer"),
            layer("text", {"text": {"field": "name"}}, align="left", dx=7, fontSize=11),
        ],
    )  # fmt: skip
    values, seeds = [], _seeds(section)
    for part, points in zip(section.blocks, parts, strict=True):
        looks = model_looks(point.line.model for point in points)
        for point in points:
            (x, y), ((left, right), (low, high)), row = point.place, point.ends, _row_of(point.line)
            values.append({
                "panel": part.name, "row": row, "label": point.line.label, "front": point.front,
                "x": x, "y": y, "left": left, "right": right, "low": low, "high": high,
                "color": ink(looks[point.line.model].color), "n": point.noise.seeds, "seeds": seeds[row, ""],
                "name": point.name if len(points) <= MOST_NAMED else str(point.rank),
            })  # fmt: skip
    about = describe_tradeoff(section.measured, section.table.spread)
    return Chart("tradeoff", *_described(section, *about), spec, values)


# -- learning curves of a row ------------------------------------------------------------------------------------------


def _curves(section: Section) -> Chart:
    """Return the curves, in the colors and dashes of `icy plot curves`; the script chooses a row and a measure."""
    looks = grammar_looks(in_order(section.long["grammar"]))
    legend = {"symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 2}
    color, dash = (
        field("grammar", "nominal", title=None, legend=legend, scale={"domain": list(looks), "range": values})
        for values in ([ink(look.color) for look in looks.values()], [look.dashes for look in looks.values()])
    )
    told = {"grammar": "grammar", "seed": "seed", "x": section.counted, "y": "value"}
    lists = {"flatten": ["x", "y", "low", "high"]}
    lines = layer(
        "line",
        {"x": field("x", title=section.counted), "y": field("y", scale={"zero": False}), "color": color,
         "strokeDash": dash, "detail": {"field": "seed"}, "tooltip": tooltip(told),
         "strokeWidth": {"condition": {"test": f"datum.seed === '{MEAN}'", "value": 2}, "value": 0.9}},
        point={"opacity": 0, "size": 80},
    )  # fmt: skip
    band = layer("area", {"x": field("x"), "y": field("low"), "y2": {"field": "high"}, "color": color},
                 opacity=0.2, tooltip=None)  # fmt: skip
    level = field("level")
    spec = specification(
        "Learning curves of one row: mean and band over seeds, colored by grammar.",
        autosize={"type": "fit-x", "contains": "padding"}, width="container", height=280,
        layer=[
            {**band, "transform": [{"filter": f"datum.seed === '{MEAN}'"}, lists]},
            {**lines, "transform": [{"filter": "datum.seed"}, lists, {"filter": "isValid(datum.y)"}]},
            layer("rule", {"y": level}, only="datum.name", strokeDash=[2, 2]),
            layer("text", {"y": level, "text": {"field": "name"}, "x": {"value": 0}}, only="datum.name",
                  align="left", dx=7, fontSize=11, dy=-6),
        ],
    )  # fmt: skip
    spread = SPREADS[section.table.spread][0]
    note = f"thick line and band: mean ± {spread}, while all seeds run; thin line: a seed"
    title = curves_title(section.long)
    return Chart("curves", title, [note], spec, [*_runs(section), *_means(section), *_levels(section)])


def _runs(section: Section) -> Iterator[Facts]:
    """Yield the curve of each run: row, grammar, seed, and a list per name of its points."""
    found = section.curves_by_key
    most = min(MOST_POINTS, max(LEAST_POINTS, ALL_POINTS // len(found)))
    for row, grammar, seed, key in section.long[["row", "grammar", "seed", "key"]].to_numpy():
        if shown := thinned(found.get(key, ()), len(section.points), most):
            yield {"row": int(row), "grammar": str(grammar), "seed": str(seed), "points": shown}


def _means(section: Section) -> Iterator[Facts]:
    """Yield the mean curves over seeds: row, grammar, the index of the name, x, mean, and lower and upper end."""
    of_key, count = section.curves_by_key, len(section.points)
    keys: Any = section.long.groupby(["row", "grammar"], sort=False)["key"].agg(list)
    chosen = {where: own for where, some in dict(keys).items() if len(own := [k for k in some if k in of_key]) > 1}
    most = min(MOST_POINTS, max(LEAST_POINTS, ALL_POINTS // max(1, len(chosen) * count)))
    for (row, grammar), own in chosen.items():
        for curve in range(1, count):
            runs = {
                key: {p[0]: p[curve] for p in of_key[key] if len(p) > curve and all(map(_is_number, (p[0], p[curve])))}
                for key in own
            }
            every = pd.DataFrame(runs, dtype=float).sort_index()
            shared, mean, wide = mean_and_band(every, section.table.spread, most)
            lists = {"x": shared.index, "y": mean, "low": mean - wide, "high": mean + wide}
            if len(mean):
                shown = {name: [plain(value) for value in values] for name, values in lists.items()}
                yield {"row": int(row), "grammar": str(grammar), "seed": MEAN, "curve": curve, **shown}


def _levels(section: Section) -> Iterator[Facts]:
    """Yield the lines of each row's curves of accuracy: the target and chance, if its panel has one."""
    for part in section.blocks if "accuracy" in section.points else ():
        for row in part.long["row"].unique():
            for name, level in (("target", part.target), ("chance", part.chance)):
                if level is not None:
                    curve = section.points.index("accuracy")
                    yield {"row": int(row), "curve": curve, "name": name, "level": float(level)}


def thinned(curve: Sequence[Sequence[float | None]], names: int, most: int = MOST_POINTS) -> list[list[float | None]]:
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
    return [[plain(point[place]) if place < len(point) else None for point in chosen] for place in range(names)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def plain(value: Any) -> Any:
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
