"""BiasTable, and its text, Markdown, LaTeX, csv, HTML and json."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
import pandas as pd
import scipy

from icy.analysis.order import ORDERED, Facts
from icy.analysis.statistics import LEAST_RATIO, Values, student
from icy.analysis.table_cells import EMPTY, LOG_COLUMNS, OTHER_COLUMNS, Mark, TableCell
from icy.config.protocols import SCRATCH
from icy.core.checks import number_or_text
from icy.core.conventions import Convention
from icy.core.errors import InvalidSettingError
from icy.core.files import write_atomically
from icy.core.text import csv_table, html, in_a_line, latex, markdown, markdown_table

# -- best and worst cells of a bias table's columns, for a bias toward compositionality --------------------------------


# Whether an architecture with a compositional bias learns a grammar well (+1) or not (-1), as in Perkins21's tables 9
# to 11: shuf and shufdet keep the words and change their order; proj, pairsum and rot have no words; hol has no
# structure.
GOOD_SIGNS = {"shuf": 1, "shufdet": 1, "proj": -1, "pairsum": -1, "rot": -1, "hol": -1}
MIN_ROWS = 3  # least number of rows for marks in a column
SIGNIFICANCE = 0.05  # largest p-value at which rows count as different
TableRow = tuple[pd.Series, list[str], dict[str, TableCell]]  # first replicate of a row, labels, cells by grammar


def mark_ends(rows: list[TableRow], alike: Sequence[str], grammars: Sequence[str], spread: str) -> dict[str, str]:
    """Mark the best and the worst cell of every column, in place.

    Args:
        rows: rows of the table. Models without parameters are left out.
        alike: columns of the long table; only rows with equal values in them are compared.
        grammars: columns of the table.
        spread: spread of the cells, a name of `icy.analysis.table_cells.SPREADS`.

    Returns:
        The arrow of every column with a mark: "↑" if large values are good, "↓" if small values are good.
    """
    sets: dict[str, list[TableRow]] = {}
    for row in rows:
        if pd.isna(row[0]["parameters"]) or row[0]["parameters"] != 0:
            sets.setdefault(str([row[0][name] for name in alike]), []).append(row)
    arrows: dict[str, set[str]] = {}
    for members in sets.values():
        ratio = members[0][0]["measure"] == "ratio"
        for grammar in grammars:
            sign = GOOD_SIGNS.get(grammar, 0) * (-1 if ratio else 1)
            # Ratios of an interrupted run are too low, and would be marked as the best.
            column = [c for _, _, c in members if not (ratio and c.get(grammar, EMPTY).unfinished)]
            if sign and _mark_column(column, grammar, sign, spread, ratio):
                arrows.setdefault(grammar, set()).add("↑" if sign > 0 else "↓")
    return {grammar: found.pop() for grammar, found in arrows.items() if len(found) == 1}


def _mark_column(column: Sequence[dict[str, TableCell]], grammar: str, sign: int, spread: str, ratio: bool) -> bool:
    """Mark the best and the worst cell of a grammar; return False if cells are too few or do not differ.

    An end is marked only if its cell differs significantly from the next one. The true ratio of a cut cell is larger:
    it is never marked, and the largest ratio of its column is unknown.
    """
    shown = [cells for cells in column if cells.get(grammar, EMPTY).seeds]
    shown.sort(key=lambda cells: cells[grammar].center)
    found = [cells[grammar] for cells in shown]
    last = len(found) - 1
    freedom = sum(cell.seeds for cell in found) - len(found)
    if len(found) < MIN_ROWS or not freedom:
        return False
    seeds = np.array([cell.seeds for cell in found], dtype=float)
    means, variance = _means_and_variance(found, seeds, spread, ratio)

    def is_large(square: float, of: int) -> bool:
        """Return whether a mean square with `of` degrees of freedom is significantly larger than the variance."""
        if variance == 0:
            return square > 0
        return bool(scipy.special.fdtrc(of, freedom, square / variance) < SIGNIFICANCE)

    # One-way analysis of variance: else a column such as hol, with all accuracies at chance, has a best model by luck.
    gaps = means - np.average(means, weights=seeds)
    if not is_large(float((seeds * gaps**2).sum()) / last, last):
        return False
    cut = [ratio and cell.censored > 0 for cell in found]
    marks: tuple[Mark, Mark] = ("worst", "best") if sign > 0 else ("best", "worst")
    for end, following, mark in ((0, 1, marks[0]), (last, last - 1, marks[1])):
        gap = float(means[end] - means[following])
        differ = round(abs(gap), 3) > 0 and is_large(gap**2 / (1 / seeds[[end, following]]).sum(), 1)
        if differ and not (any(cut) if end else cut[0]):
            shown[end][grammar] = replace(found[end], mark=mark)
    return True


def _means_and_variance(cells: Sequence[TableCell], seeds: Values, spread: str, ratio: bool) -> tuple[Values, float]:
    """Return the means of cells (of ratios: of logarithms), and their common variance over seeds."""
    means = np.array([cell.mean for cell in cells])
    deviations = np.array([cell.spread if cell.seeds > 1 else 0.0 for cell in cells])
    deviations *= 1 if spread == "sd" else np.sqrt(seeds)
    if spread == "ci95":
        deviations /= student(np.maximum(seeds - 1, 1))
    if ratio:  # of logarithms: by the moments of a log-normal distribution
        means = np.maximum(means, LEAST_RATIO)
        deviations = np.sqrt(np.log1p((deviations / means) ** 2))
        means = np.log(means) - deviations**2 / 2
    return means, float(((seeds - 1) * deviations**2).sum()) / (seeds.sum() - len(cells))


Line = tuple[list[str], dict[str, TableCell]]  # labels of a row, and its cells by column
Marker = Callable[[str, Mark], str]  # writes the mark of a cell into its text
SUFFIXES = {".txt": "text", ".md": "markdown", ".tex": "latex", ".csv": "csv", ".html": "html", ".json": "json"}
TEXTS = ("why", "note", "convention")  # keys of texts in the dictionary of a cell
PARAMETERS = "parameters"  # label of the number of parameters, "0" for models that memorize
UNSAFE = re.compile(r"[\s{}\\%#$&~^]")  # characters with a meaning in LaTeX, not allowed in a label
FIRST_WORDS = 4  # maximum number of words of a part of a title in a label
NUMBER = re.compile(r"[\d\s.,±×†‡*–$-]*")  # the text of a column of numbers
ADVICE = re.compile(r"\bicy [a-z]|(?:^|\s)--[a-z]")  # commands and options
MINUS = re.compile(r"(?<![\w.-])-(?=[\d.])")  # a hyphen that begins a number


def plain_mark(text: str, mark: Mark) -> str:
    """Mark the best cell of a column with a star, and the worst with a ring."""
    return text + {"best": "*", "worst": "°"}.get(mark, "")


@dataclass(frozen=True, repr=False)
class BiasTable:
    """A table of results, ready to print.

    Attributes:
        title: the measure and its setting.
        labels: headings of the columns that describe a row.
        grammars: headings of the columns of cells.
        rows: labels and cells of each row.
        notes: sentences below the table.
        decimals: number of decimals of each number.
        arrows: by grammar, "↑" if large numbers are good and "↓" if small numbers are good.
        grouped: labels that become headings of groups of rows instead of columns.
        compared: heading of the columns of reference values.
        caption: text in place of the title; LaTeX code if it has a backslash or a dollar sign.
        label: LaTeX label; "" for a short label made of the title.
        footnotes: whether notes and the meaning of marks are printed below the table.
        signed: whether numbers are differences and have a sign.
        below: lines below each row: "log", "updates" or "p" (`TableCell.below`), by label.
        spread: spread of the cells, a name of `icy.analysis.table_cells.SPREADS`.
        conventions: conventions of metrics, by column. Headings and notes show them; csv and json keep the names of
            the columns and have the conventions in `convention`.
        row_numbers: number of the row of the long table (column `row`) that each line shows; empty if unknown.
    """

    title: str
    labels: list[str]
    grammars: list[str]
    rows: list[Line]
    notes: list[str] = field(default_factory=list)
    decimals: int = 2
    arrows: Mapping[str, str] = field(default_factory=dict)
    grouped: Sequence[str] = ()
    compared: str = "other"
    caption: str = ""
    label: str = ""
    footnotes: bool = True
    signed: bool = False
    below: Mapping[str, str] = field(default_factory=dict)
    spread: str = "sd"
    conventions: Mapping[str, Convention] = field(default_factory=dict)
    row_numbers: Sequence[int] = ()

    def __post_init__(self) -> None:
        if UNSAFE.search(self.label):
            raise InvalidSettingError(
                f"A LaTeX label such as tab:bias has no spaces and none of {{}}\\%#$&~^; not '{self.label}'."
            )
        if _is_latex(self.caption) and not _balanced(self.caption):
            raise InvalidSettingError(f"The braces of the caption do not match: '{self.caption}'.")

    def render(self, format: str = "text") -> str:
        """Return the table as "text", "markdown", "latex" (needs booktabs and graphicx), "csv", "html" or "json".

        Raises:
            InvalidSettingError: an unknown format.
        """
        if format not in RENDERERS:
            raise InvalidSettingError(f"Formats of tables are {', '.join(RENDERERS)}; not '{format}'.")
        return RENDERERS[format](self)

    def save(self, path: str | Path) -> Path:
        """Write the table to a file in the format of its suffix: .txt, .md, .tex, .csv, .html or .json.

        Raises:
            InvalidSettingError: an unknown suffix.
            StoreError: the file cannot be written.
        """
        path = Path(path)
        write_atomically(path, (self.render(format_of(path)) + "\n").encode())
        return path

    def to_dataframe(self) -> pd.DataFrame:
        """Return a row per model, with columns (grammar, "mean"), "spread", "seeds", "censored" and "failed".

        If the table has them, there are further columns: "geometric_mean", "geometric_spread" (the geometric standard
        deviation, a factor), "low" and "high" (the 95 % interval of the geometric mean; "low" alone is a lower bound),
        "updates" (mean updates to the target), "p", "resolution"; "other", "other_error" and "distance" of reference
        values; "why", "note" and "convention" of metrics.
        """
        index = pd.MultiIndex.from_tuples([tuple(labels) for labels, _ in self.rows], names=self.labels)
        counts = ["seeds", "censored", "failed"]
        present = {name for _, cells in self.rows for g, cell in cells.items() for name in self._plain(g, cell)}
        more = [
            name for name in (*LOG_COLUMNS, "updates", "p", "resolution", *OTHER_COLUMNS, *TEXTS) if name in present
        ]
        names = ["mean", "spread", *counts, *more]
        columns = pd.MultiIndex.from_product([self.grammars, names], names=["grammar", None])
        cells = [[self._plain(g, cells.get(g, EMPTY)) for g in self.grammars] for _, cells in self.rows]
        empty = {**dict.fromkeys(names), **dict.fromkeys(counts, 0), **dict.fromkeys(TEXTS, "")}
        values = [[cell.get(name, empty[name]) for cell in row for name in names] for row in cells]
        frame = pd.DataFrame(values, index=index, columns=columns, dtype=object)
        kinds: dict[str, type] = {**dict.fromkeys(counts, int), **dict.fromkeys(TEXTS, object)}
        return frame.astype({column: kinds.get(column[1], float) for column in columns})

    def to_records(self) -> list[Facts]:
        """Return a dictionary per row: its labels, and a dictionary for each cell (`TableCell.to_dict`)."""
        return [
            {
                **{name: number_or_text(text) for name, text in zip(self.labels, labels, strict=True)},
                **{name: self._plain(name, cells[name]) for name in self.grammars if name in cells},
            }
            for labels, cells in self.rows
        ]

    def _plain(self, column: str, cell: TableCell) -> Facts:
        """Return a cell as a dictionary, with the convention of a metric."""
        if column not in self.conventions:
            return cell.to_dict()
        return {**cell.to_dict(), "convention": self.conventions[column].text}

    def heading(self, column: str) -> str:
        """Return the heading of a column of cells: its name, with the convention of a metric."""
        shown = "from scratch" if column == SCRATCH else column
        return self.conventions[column].heading(column) if column in self.conventions else shown

    def arrowed(self, column: str) -> str:
        """Return the heading of a column of cells with its arrow, if it has one."""
        return f"{self.heading(column)} {self.arrows.get(column, '')}".rstrip()

    def __repr__(self) -> str:
        return self.render("text")

    def _repr_html_(self) -> str:
        return self.render("html")

    @property
    def shown_title(self) -> str:
        """The caption, or the title if the caption is empty."""
        return self.caption or self.title

    @property
    def shown_labels(self) -> list[str]:
        """Labels that are columns."""
        return [label for label in self.labels if label not in self.grouped]

    def head(self) -> list[str]:
        """Return the headings of the columns, without labels that are headings of groups."""
        return [*self.shown_labels, *map(self.arrowed, self.grammars)]

    def groups(self, marker: Marker = plain_mark) -> list[tuple[str, list[list[str]]]]:
        """Return the heading and the lines of each group, as text; a single group has the heading "".

        Below a row are lines with its reference values, and those of `below`, if they have a text.

        Args:
            marker: function that marks the best and the worst cells.
        """
        places = [self.labels.index(label) for label in self.grouped]
        found: dict[str, list[list[str]]] = {}
        for labels, own in self.rows:
            named = [(self.labels[place], labels[place]) for place in places if labels[place]]
            # The label precedes a value, unless the value is clear alone.
            heading = ", ".join(text if label in ORDERED else f"{label} {text}" for label, text in named)
            shown = [text for place, text in enumerate(labels) if place not in places]
            cells = [own.get(name, EMPTY) for name in self.grammars]
            lines = found.setdefault(heading, [])
            lines.append([*shown, *(marker(cell.text(self.decimals, self.signed), cell.mark) for cell in cells)])
            for label, kind in {self.compared: "reference", **self.below}.items():
                texts = [cell.below(kind, self.decimals, self.spread) for cell in cells]
                if any(texts):
                    blank = [""] * (len(shown) - 1)
                    lines.append([f"  {label}", *blank, *(marker(text, "") for text in texts)])
        return list(found.items())

    def remarks(self, marks: str) -> list[str]:
        """Return conventions of metrics, notes, and an explanation of marks and arrows; empty without footnotes.

        Args:
            marks: description of the marks of the best and the worst.
        """
        if not self.footnotes:
            return []
        marked = any(cell.mark for _, cells in self.rows for cell in cells.values())
        legend = f"{marks} of a column for a compositional bias (↑ large, ↓ small values are good)"
        place = self.labels.index(PARAMETERS) if PARAMETERS in self.labels else None
        if place is not None and any(labels[place] == "0" for labels, _ in self.rows):
            legend += "; rows without parameters, which memorize, are not marked"
        named = [one.note(column) for column, one in self.conventions.items() if column in self.grammars]
        return [*filter(None, named), *self.notes, *([legend] if marked else [])]


def format_of(path: Path) -> str:
    """Return the format for the suffix of a file.

    Raises:
        InvalidSettingError: an unknown suffix.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidSettingError(f"A file of a table ends in {', '.join(SUFFIXES)}; not '{path.name}'.")
    return SUFFIXES[path.suffix.lower()]


def flat(table: BiasTable) -> pd.DataFrame:
    """Return a table with plain columns: its labels, and GRAMMAR_mean, GRAMMAR_spread and so on."""
    frame = table.to_dataframe()
    frame.columns = pd.Index(["_".join(map(str, names)) for names in frame.columns], dtype=object)
    return frame.reset_index()


# -- formats -----------------------------------------------------------------------------------------------------------


def _text(table: BiasTable) -> str:
    head = [*map(in_a_line, table.head())]
    groups = [(h, [[*map(in_a_line, line)] for line in part]) for h, part in table.groups(plain_mark)]
    lines = [head, *(line for _, part in groups for line in part)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]

    def aligned(line: list[str]) -> str:
        numbers = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        return "  ".join([line[0].ljust(widths[0]), *numbers]).rstrip()

    shown = [aligned(head), "  ".join("-" * width for width in widths)]
    for heading, part in groups:
        shown += [*filter(None, [in_a_line(heading)]), *map(aligned, part)]
    text = "\n".join([in_a_line(table.shown_title), "", *shown, "", *map(in_a_line, table.remarks("* best, ° worst"))])
    return text.strip()


def _lines(
    table: BiasTable, escape: Callable[[str], str], group: str, **marks: str
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the lines of a table in a language of markup.

    Args:
        table: the table.
        escape: function that escapes text.
        group: markup of a line with the heading of a group of rows, with {} for the text.
        **marks: markup of cells by mark ("best", "worst").
    """
    head, labels = [*map(escape, table.head())], len(table.shown_labels)
    lines: list[list[str]] = []
    for heading, part in table.groups(lambda text, mark: marks.get(mark, "{}").format(escape(text))):
        lines += [[group.format(escape(heading)), *[""] * (len(head) - 1)]] if heading else []
        lines += [[*map(escape, line[:labels]), *line[labels:]] for line in part]
    return head, lines


def _markdown(table: BiasTable) -> str:
    head, lines = _lines(table, markdown, "**{}**", best="**{}**", worst="*{}*")
    body = markdown_table(head, lines, numbers=range(1, len(head)), markup=True)
    notes = "\n\n".join(map(markdown, table.remarks("bold: best, italic: worst")))
    return "\n\n".join(filter(None, [markdown(table.shown_title), body, notes]))


def _latex(table: BiasTable) -> str:
    group = r"\addlinespace \rlap{{\emph{{{}}}}}"  # without a width, since it is above several columns
    head, lines = _lines(table, _tex, group, best=r"\textbf{{{}}}", worst=r"\textit{{{}}}")
    numbers = range(1, len(table.shown_labels))
    sides = ["r" if all(NUMBER.fullmatch(line[place]) for line in lines) else "l" for place in numbers]
    column_format = "".join(["l", *sides, *("r" for _ in table.grammars)])
    frame = pd.DataFrame(lines, columns=range(len(head)))
    tabular = frame.to_latex(index=False, header=head, escape=False, column_format=column_format).strip()
    remarks = filter(None, map(without_advice, table.remarks("bold: best, italic: worst")))
    notes = " ".join(map(_tex_sentence, remarks))
    caption = _tex(table.caption) if table.caption else _tex_sentence(table.title)
    if _is_latex(table.caption):
        caption = " ".join(table.caption.split())  # an empty line would end the caption
    lines_of_latex = [
        r"% needs \usepackage{booktabs,graphicx}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{{table.label or _tex_label(table.title)}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",  # smaller only if it is too wide
        f"{tabular}}}",
        *([r"\\[\smallskipamount]", rf"\parbox{{\linewidth}}{{\footnotesize {notes}}}"] if notes else []),
        r"\end{table}",
    ]
    return "\n".join(lines_of_latex)


def _html(table: BiasTable) -> str:
    head, lines = _lines(table, html, "<b>{}</b>", best="<b>{}</b>", worst="<i>{}</i>")
    body = pd.DataFrame(lines, columns=head).to_html(index=False, escape=False, border=0)
    notes = "".join(f"<p>{html(note)}</p>" for note in table.remarks("bold: best, italic: worst"))
    title = f'<p style="white-space:normal">{html(table.shown_title)}</p>'
    return f'<div style="overflow-x:auto;white-space:nowrap">{title}{body}</div>{notes}'  # scrolls if it is wide


def without_advice(note: str) -> str:
    """Remove the clauses of a note that name commands or options, for a paper."""
    return "; ".join(clause for clause in note.split("; ") if not ADVICE.search(clause))


def _tex(text: str) -> str:
    if text == "-":  # no value
        return "--"
    indent = r"\quad " if text.startswith("  ") else ""
    return indent + MINUS.sub("$-$", latex(text.strip())).replace(r"\textasciitilde{}", r"$\sim$")


def _tex_sentence(text: str) -> str:
    return _tex(text[:1].upper() + text[1:].rstrip(".")) + "."


def _is_latex(text: str) -> bool:
    return "\\" in text or "$" in text


def _balanced(text: str) -> bool:
    """Return whether unescaped braces match."""
    plain = re.sub(r"\\.", "", text)
    depths = [0, *accumulate({"{": 1, "}": -1}.get(letter, 0) for letter in plain)]
    return min(depths) == depths[-1] == 0


def _tex_label(title: str) -> str:
    """Make a short label from a title: the protocol or the first words, the meanings and the representation.

    Example:
        >>> _tex_label("acquire: updates to the target, target 0.8; meanings 3x4; V=4, w=2; soft; preset default")
        'tab:acquire-3x4-soft'
        >>> _tex_label("metrics of languages")
        'tab:metrics-of-languages'
    """
    first, *rest = title.lower().split(";")
    if first == "difference" and rest:
        first, *rest = [f"{first} {rest[0].partition(':')[0]}", *rest[1:]]
    parts = [" ".join(first.partition(":")[0].split()[:FIRST_WORDS]), *map(str.strip, rest)]
    short = [part.removeprefix("meanings ") for part in parts if not re.search(r"[=:,]|^preset ", part)]
    words = re.findall(r"[a-z0-9.+]+", " ".join(part for part in short if len(part.split()) <= FIRST_WORDS))
    return f"tab:{'-'.join(words) or 'results'}"


RENDERERS: dict[str, Callable[[BiasTable], str]] = {
    "text": _text,
    "markdown": _markdown,
    "latex": _latex,
    "csv": lambda table: str(csv_table(flat(table)).to_csv(index=False)).rstrip("\n"),
    "html": _html,
    "json": lambda table: json.dumps(table.to_records(), indent=1),
}
