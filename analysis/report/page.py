"""The page of a report: its sections as plain data, and one HTML file with style, script, library and data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from icy.analysis.order import Facts, text_of
from icy.analysis.plots.panels import ResultBlock, blocks, measured
from icy.analysis.table_cells import SPREADS, conventions_of
from icy.analysis.tables.printed_table import BiasTable
from icy.core.errors import IncompatibleError
from icy.core.text import counted
from icy.records.kinds import kind_of_rows
from icy.records.long_table import ROW
from icy.records.record import Record
from icy.version import __version__

from .charts import Chart, charts_of, plain

# -- sections of a report, one per protocol or kind of job, as plain data ----------------------------------------------


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
