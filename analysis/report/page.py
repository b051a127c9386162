"""The page of a report: one HTML file with its style, script, library and data."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path

from icy.analysis.plots.panels import CURVES, describe_tradeoff
from icy.analysis.table_cells import SPREADS
from icy.analysis.tables.printed_table import BiasTable
from icy.core.errors import IncompatibleError
from icy.core.text import counted
from icy.records.record import Record
from icy.version import __version__

from . import charts
from .sections import Section

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
