"""Tables of results as text, Markdown, LaTeX, csv and HTML."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from icy.errors import InvalidSettingError

from .cells import CUT, Mark

if TYPE_CHECKING:
    from .tables import BiasTable

Marker = Callable[[str, Mark], str]
TEX = {
    "\\": r"\textbackslash{}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    CUT: r"$^\dagger$",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "°": r"$^\circ$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
}


def render(table: BiasTable, format: str) -> str:
    """A table as "text", "markdown", "latex" (needs the packages booktabs and graphicx), "csv", "html" or "json".

    Raises:
        InvalidSettingError: another format.
    """
    if format not in RENDERERS:
        raise InvalidSettingError(f"A table is printed as {', '.join(RENDERERS)}, not as '{format}'.")
    return RENDERERS[format](table)


def format_of(path: Path) -> str:
    """The format that the suffix of a file says.

    Raises:
        InvalidSettingError: another suffix.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidSettingError(f"A table is written as {', '.join(SUFFIXES)}; not as '{path.name}'.")
    return SUFFIXES[path.suffix.lower()]


def plain_mark(text: str, mark: Mark) -> str:
    """The best of a column with a star, the worst with a ring."""
    return text + {"best": "*", "worst": "°", "": ""}[mark]


def _text(table: BiasTable) -> str:
    head, groups = table.head(), table.groups(plain_mark)
    lines = [head, *(line for _, part in groups for line in part)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    rule = "  ".join("-" * width for width in widths)
    shown = [_aligned(head, widths), rule]
    for heading, part in groups:
        shown += [*filter(None, [heading]), *(_aligned(line, widths) for line in part)]
    return "\n".join([table.title, "", *shown, "", *table.remarks("* best, ° worst")]).strip()


def _aligned(line: list[str], widths: list[int]) -> str:
    first, *rest = line
    return "  ".join(
        [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(rest, widths[1:], strict=True))]
    ).rstrip()


def _markdown(table: BiasTable) -> str:
    def marked(text: str, mark: Mark) -> str:
        return {"best": f"**{text}**", "worst": f"*{text}*", "": text}[mark]

    head = table.head()
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for heading, part in table.groups(marked):
        lines += [[f"**{heading}**", *[""] * (len(head) - 1)]] if heading else []
        lines += part
    body = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    notes = [note if i == 0 else f"\n{note}" for i, note in enumerate(table.remarks("bold: best, italic: worst"))]
    return "\n".join([table.title, "", *body, *([""] if notes else []), *notes])


def _latex(table: BiasTable) -> str:
    def marked(text: str, mark: Mark) -> str:
        return {"best": rf"\textbf{{{_tex(text)}}}", "worst": rf"\textit{{{_tex(text)}}}", "": _tex(text)}[mark]

    labels = len(table.shown_labels)
    head, body = _halves(table.head(), labels, table)[0], []
    for place, (heading, part) in enumerate(table.groups(marked)):
        body += [r"\addlinespace"] if heading and place else []
        body += [rf"\multicolumn{{{len(head)}}}{{l}}{{\emph{{{_tex(heading)}}}}} \\"] if heading else []
        for line in part:
            ours, beside = _halves([*map(_tex, line[:labels]), *line[labels:]], labels, table)
            body.append(" & ".join(ours) + r" \\")
            body += [" & ".join(rf"{{\scriptsize {cell}}}" for cell in beside) + r" \\"] if beside else []
    said = [table.title, *table.remarks("bold: best, italic: worst")]
    caption = ". ".join(_tex(sentence[:1].upper() + sentence[1:].rstrip(".")) for sentence in said)
    lines = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}.}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",  # smaller only where it is too wide
        rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
        r"\toprule",
        " & ".join(_tex(cell) for cell in head) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def _halves(line: list[str], labels: int, table: BiasTable) -> tuple[list[str], list[str]]:
    """A line as two where the table compares, since a page is narrow: the cells, and what they are held against."""
    cells, below = [], []
    rest = iter(line[labels:])
    for grammar in table.grammars:
        cells.append(next(rest))
        below.append(next(rest) if grammar in table.beside else "")
    named = [rf"\quad {_tex(table.compared)}", *[""] * (labels - 1), *below]
    return [*line[:labels], *cells], named if table.beside else []


def _tex(text: str) -> str:
    return "".join(TEX.get(letter, letter) for letter in text)


def flat(table: BiasTable) -> pd.DataFrame:
    """A table as a frame of plain columns: the labels, and grammar_mean, grammar_spread and so on."""
    frame = table.to_dataframe()
    frame.columns = pd.Index(["_".join(map(str, names)) for names in frame.columns], dtype=object)
    return frame.reset_index()


def _csv(table: BiasTable) -> str:
    return str(flat(table).to_csv(index=False)).rstrip("\n")


def _html(table: BiasTable) -> str:
    def marked(text: str, mark: Mark) -> str:
        tag = {"best": "b", "worst": "i", "": ""}[mark]
        return f"<{tag}>{html.escape(text)}</{tag}>" if tag else html.escape(text)

    head, labels = table.head(), len(table.shown_labels)
    body = ""
    for heading, part in table.groups(marked):
        if heading:
            body += f'<tr><th colspan="{len(head)}" style="text-align:left">{html.escape(heading)}</th></tr>'
        for line in part:
            cells = [*map(html.escape, line[:labels]), *line[labels:]]
            body += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in table.remarks("bold: best, italic: worst"))
    title = f'<caption style="text-align:left">{html.escape(table.title)}</caption>'
    return f"<table>{title}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{notes}"


RENDERERS: dict[str, Callable[[BiasTable], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
    "html": _html,
    "json": lambda table: json.dumps(table.to_records(), indent=1),
}
SUFFIXES = {
    ".txt": "text",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".html": "html",
    ".json": "json",
}
