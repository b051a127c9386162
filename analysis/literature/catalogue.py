"""The papers' tables as data: a catalogue, and a tidy table for each.

The files are in `analysis/data/published`; the start of `tables.toml` there explains their columns.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from icy.core.errors import UnknownNameError, quoted, unknown
from icy.core.files import read_csv_table
from icy.core.text import listed

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.order import Facts


PAPERS_CI95 = 1.96  # half the width of the papers' 95 % intervals, in standard errors
DATA = Path(__file__).parents[1] / "data" / "published"
# Columns that identify a cell that `icy probe` can measure, and a cell that `icy e2e` can measure.
KEYS = ["protocol", "representation", "role", "model", "hidden_size", "grammar", "target"]
PAIR_KEYS = ["representation", "model", "hidden_size", "grammar", "measure"]
NUMBERS = ["measure", "mean", "error", "error_kind", "n", "printed", "bound", "rounding", "standard_error"]
LAST = ("tables", "figures")  # keys of a source: the last number that is known of each
# Columns of whole numbers with missing values.
WHOLE = ("n", "hidden_size", "parameters", "bound", "samples", "shots", "distractors", "observations")


@dataclass(frozen=True)
class PublishedTable:
    """The catalogue entry of a published table.

    Attributes:
        id: name in icy, as in "perkins21/table13".
        title: title in one line.
        measured: description of the numbers.
        source: short name of the paper, as in "Perkins21".
        citation: citation of the paper.
        aliases: names of other tables with the same numbers or in the same file.
        excerpts: names of tables and figures, also of other papers, that print some of the numbers.
        protocol: the protocol of training, if models were trained.
        meanings: attributes and values, as in "5x10"; "" if they differ between rows or there are none.
        vocab_size: number of tokens; None if it differs between rows or there is none.
        word_length: tokens per attribute; None if it differs between rows or there is none.
        runs: number of runs of each mean; None if it differs between rows or is unknown.
        seeds: seeds of these runs, if the paper or its command names them.
        ddof: delta degrees of freedom of printed deviations, which were divided by n - ddof; None if unknown.
        caveats: limits of the numbers.
        inferred: parts of the data that were inferred and are not in the paper.
        reproduce: how icy reproduces the table: by a kind of job ("probe", "e2e", "s2b", "games"), by "steps" (updates
            of probes), by "metrics", or not ("").
        shown_by: if `reproduce` is "", a sentence that names the command or the page with this content.
        page: documentation page about the table, without ".md", if results/reproduced has none.

    Example:
        >>> from icy.analysis import find_table
        >>> table = find_table("icy22/12")
        >>> table.id, table.label, table.rows, table.runs
        ('icy22/table3', '3/12', 35, 5)
    """

    id: str
    title: str
    measured: str
    source: str
    citation: str
    aliases: tuple[str, ...] = ()
    excerpts: tuple[str, ...] = ()
    protocol: str = ""
    meanings: str = ""
    vocab_size: int | None = None
    word_length: int | None = None
    runs: int | None = None
    seeds: tuple[int, ...] = ()
    ddof: int | None = None
    caveats: str = ""
    inferred: str = ""
    reproduce: str = ""
    shown_by: str = ""
    page: str = ""

    @property
    def label(self) -> str:
        """Number of the table in the paper, as in "13", or "13/14" for two tables; the name if it has no number."""
        return "/".join(name.partition("/")[2].removeprefix("table") for name in (self.id, *self.aliases))

    @property
    def names(self) -> tuple[str, ...]:
        """All names of this table that `find_table` accepts, in lower case."""
        full = (self.id, *self.aliases, *self.excerpts)
        short = [re.sub(r"/table(?=\d)", "/", name) for name in full]
        return tuple(dict.fromkeys([*full, *short, f"{self.source}/{self.label}".lower()]))

    @property
    def path(self) -> Path:
        """The CSV file with the numbers."""
        return DATA / f"{self.id}.csv"

    @property
    def rows(self) -> int:
        """Number of rows in the file, one per printed number."""
        return len(self.path.read_text(encoding="utf-8").splitlines()) - 1

    def to_dataframe(self) -> pd.DataFrame:
        """Return the numbers of the table, a row each, with the columns of `published`."""
        return _read(self).copy()


@dataclass(frozen=True)
class PublishedFinding:
    """A table or figure of a paper that icy does not store as numbers.

    Attributes:
        id: name in icy, as in "metarg22/recall".
        title: title in one line; "" if icy has only its number.
        words: summary of the content.
        shown_by: a sentence that names the command or the page with this content.
        source: short name of the paper.
        aliases: numbered names, as in "metarg22/figure4".
        page: documentation page about it, without ".md".
    """

    id: str
    title: str
    words: str
    shown_by: str
    source: str
    aliases: tuple[str, ...] = ()
    page: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that `icy reproduce` accepts, in lower case."""
        return (self.id, *self.aliases)


@dataclass(frozen=True)
class PublishedName:
    """One name of a published table or figure: a line of `icy list published`.

    Attributes:
        name: name, as in "icy22/table16".
        of: the table or finding that has or contains the numbers of this name.
        title: title in one line.
    """

    name: str
    of: PublishedTable | PublishedFinding
    title: str

    @property
    def is_measured(self) -> bool:
        """Whether `icy reproduce` can reproduce it."""
        return isinstance(self.of, PublishedTable) and bool(self.of.reproduce)


def published_sources() -> dict[str, dict[str, str]]:
    """Return the `name` and `citation` of each paper, keyed by the prefix of its table names, such as "icy22"."""
    return {key: {name: one[name] for name in ("name", "citation")} for key, one in _file()["source"].items()}


def published_names() -> list[PublishedName]:
    """Return all names of published tables and figures, sorted by paper and number.

    Example:
        >>> from icy.analysis.literature.catalogue import published_names
        >>> [(one.name, one.of.id) for one in published_names() if one.name.startswith("icy22/table1")][-2:]
        [('icy22/table18', 'perkins21/table17'), ('icy22/table19', 'icy22/table6')]
    """
    found = []
    for entry in _entries():
        found.append(PublishedName(entry.id, entry, entry.title or "Known by its number alone"))
        found += [PublishedName(name, entry, f"In {entry.id}: {entry.title}") for name in entry.aliases]
        if isinstance(entry, PublishedTable):
            found += [PublishedName(name, entry, f"An excerpt of {entry.id}") for name in entry.excerpts]

    def place(one: PublishedName) -> tuple[int, bool, str, int]:
        paper, _, name = one.name.partition("/")
        word, number = _split_number(name)
        return list(_file()["source"]).index(paper), number is None, word if number is not None else "", number or 0

    return sorted(found, key=place)


def _entries() -> list[PublishedTable | PublishedFinding]:
    return [*_catalogue(), *published_findings()]


def _split_number(name: str) -> tuple[str, int | None]:
    """Split a name into a stem and the number at its end."""
    found = re.fullmatch(r"(.*?)(\d*)", name)
    assert found is not None
    return found[1], int(found[2]) if found[2] else None


def why_not_measured(name: str) -> str:
    """Return a sentence on why `icy reproduce` does not reproduce a table or figure; "" if it does.

    Raises:
        UnknownNameError: no table or figure has this name.
    """
    found = find_published(name)
    if found.is_measured:
        return ""
    if not found.of.shown_by:
        paper = found.name.partition("/")[0] + "/"
        why = f"icy has no numbers of {found.name}, because its notes on the paper do not describe it"
        names: dict[str, str] = {}
        for one in published_names():
            if one.is_measured and one.name.startswith(paper):
                names.setdefault(one.of.id, one.of.id if one.of.id.startswith(paper) else one.name)
        return f"{why}; of {found.of.source}, `icy reproduce` measures {listed(list(names.values()))}."
    words = found.of.words + " " if isinstance(found.of, PublishedFinding) else ""
    return f"`icy reproduce` does not measure {found.name} ({found.of.title}). {words}{found.of.shown_by}"


def find_published(name: str) -> PublishedName:
    """Return the table or figure of this name, whether or not icy stores its numbers.

    Raises:
        UnknownNameError: no table or figure has this name.
    """
    plain = "".join(name.lower().split())
    known = {one.name: one for one in published_names()}
    if plain in known:
        return known[plain]
    entry = next((one for one in _entries() if plain in one.names), None)
    if entry is None:
        raise _unknown(name)
    return known[entry.id]


def _unknown(name: str) -> UnknownNameError:
    """Return an error for an unknown name, which suggests names with the same number."""
    paper, _, rest = "".join(name.lower().split()).partition("/")
    word, number = _split_number(rest or paper)
    hint = "`icy list published` shows all."
    source = _file()["source"].get(paper, {})
    if f"{word}s" in LAST and number is not None and source:
        last = [f"{kind} 1 to {source[kind]}" for kind in LAST if kind in source]
        known = f"; icy knows its {' and '.join(last)}" if last else ""
        return UnknownNameError(f"No table or figure of {source['name']} is called {quoted(name)}{known}. {hint}")
    names = [one.name for one in published_names() if number is None or _split_number(one.name)[1] == number]
    return unknown("published table or figure", name, names, hint)


def published_tables() -> list[PublishedTable]:
    """Return all published tables, grouped by paper.

    Returns:
        An entry per table, with its name in icy, title, paper and protocol. `published` reads the numbers.
    """
    return list(_catalogue())


def find_table(name: str) -> PublishedTable:
    """Return the published table of this name.

    Args:
        name: name, as in "perkins21/table13", "Perkins21/13" or "perkins21/table14", which shares the file of 13.

    Returns:
        The entry of the table. `published` reads the numbers.

    Raises:
        UnknownNameError: an unknown table.
    """
    tables = {known: table for table in _catalogue() for known in table.names}
    found = tables.get("".join(name.lower().split()))
    if found is not None:
        return found
    raise UnknownNameError(f"icy has no numbers of {find_published(name).name}; `icy list published` shows all.")


def published(name: str) -> pd.DataFrame:
    """Return the numbers of a published table, one row each.

    Args:
        name: as for `find_table`.

    Returns:
        The columns `source` and `table`, columns that identify the number (different between tables), and

        - `measure`, the name of the measure;
        - `mean`, `error`, and `error_kind`: "sem", "ci95", "sd", or "none" if the paper gives no error;
        - `n`, the number of runs or games of the mean, if known;
        - `printed`, the number as the paper prints it;
        - `bound`, a lower bound of the value in place of a mean, if a run was stopped early;
        - `rounding`, the standard deviation of the rounding error;
        - `standard_error` of the mean, including rounding. Deviations are converted to division by n - 1; the paper is
          assumed to divide by n if it does not say. NaN without an error or without `n`.

    Raises:
        UnknownNameError: an unknown table.

    Example:
        >>> from icy.analysis import published
        >>> table = published("perkins21/table13")
        >>> row = table.query("representation == 'soft' and model == 'HierZero:GRU' and grammar == 'rot'")
        >>> row[["mean", "error", "n", "printed"]].to_dict("records")
        [{'mean': 0.73, 'error': 0.01, 'n': 3, 'printed': '0.73±0.01'}]
        >>> row["standard_error"].round(4).item()
        0.0126
    """
    return find_table(name).to_dataframe()


def supervised(table: str = "") -> pd.DataFrame:
    """Return the published cells that `icy probe` can measure, of all tables or one, with the columns of KEYS.

    A cell with the same numbers in several tables of a paper, such as RNNAutoReg:LSTM in Icy22 tables 3, 4 and 5, is
    returned once, with the first table.
    """
    whole = _join_tables("probe", table)[["source", "table", *KEYS, *NUMBERS]]
    return whole.drop_duplicates(["source", *KEYS, "measure", "mean", "error", "n"], ignore_index=True)


def end_to_end(table: str = "") -> pd.DataFrame:
    """Return the published cells that `icy e2e` can measure, of all tables or one, with the columns of `published`.

    `model` is the pair, and `measure` a column of the long table.
    """
    return _join_tables("e2e", table)


def _join_tables(reproduce: str, table: str) -> pd.DataFrame:
    import pandas as pd

    tables = [t for t in _catalogue() if t.reproduce == reproduce]
    if table:
        chosen = find_table(table)
        if chosen not in tables:
            known = [name for t in tables for name in t.names]
            raise unknown(f"published table for `icy {reproduce}`", table, known, "`icy list published` shows all.")
        tables = [chosen]
    return pd.concat([_read(t) for t in tables], ignore_index=True)


@cache
def _file() -> Facts:
    return tomllib.loads((DATA / "tables.toml").read_text(encoding="utf-8"))


@cache
def _catalogue() -> tuple[PublishedTable, ...]:
    found = []
    for table in _file()["table"]:
        lists = {name: tuple(table.get(name, ())) for name in ("aliases", "excerpts", "seeds")}
        found.append(PublishedTable(**{**table, **lists, **_source(table["id"])}))
    return tuple(found)


@cache
def published_findings() -> tuple[PublishedFinding, ...]:
    """Return the tables and figures that icy does not store as numbers, grouped by paper."""
    found = _file()
    entries = [*found["table"], *found["finding"]]
    named = {name for one in entries for name in (one["id"], *one.get("aliases", ()), *one.get("excerpts", ()))}
    others = [
        f"{paper}/{kind[:-1]}{number}"
        for paper, source in found["source"].items()
        for kind in LAST
        for number in range(1, source.get(kind, 0) + 1)
    ]
    nothing = {"title": "", "words": "", "shown_by": ""}
    whole = [*found["finding"], *({"id": name, **nothing} for name in others if name not in named)]
    return tuple(
        PublishedFinding(**{**one, "aliases": tuple(one.get("aliases", ()))}, source=_source(one["id"])["source"])
        for one in whole
    )


def _source(id: str) -> dict[str, str]:
    paper = _file()["source"][id.partition("/")[0]]
    return {"source": paper["name"], "citation": paper["citation"]}


@cache
def _read(table: PublishedTable) -> pd.DataFrame:
    cells = read_csv_table(table.path, texts=(), missing=[""])  # "none" is not a missing value here
    text = read_csv_table(table.path, texts=None)
    usual = text["mean"] + ("±" + text["error"]).where(text["error"] != "", "")
    cells["printed"] = text["printed"].where(text["printed"] != "", usual) if "printed" in text else usual
    # The standard deviation of the rounding error, which is uniform over one unit of the last printed digit.
    last = 10.0 ** -text["mean"].str.partition(".")[2].str.len()
    place = cells["place"].fillna(last) if "place" in cells else last
    cells["rounding"] = (place / math.sqrt(12)).where(cells["mean"].notna())
    n = cells["n"].astype(float)
    scale = cells["error_kind"].map({"sem": 1.0, "ci95": 1 / PAPERS_CI95, "sd": 1.0, "none": math.nan})
    scale = scale.where(cells["error_kind"] != "sd", n**-0.5)
    # Perkins21 and Icy22 divide the population deviation by sqrt(n); the sample deviation is unbiased for few runs.
    unbiased = 1.0 if table.ddof == 1 else (n / (n - 1)) ** 0.5
    cells["standard_error"] = ((cells["error"] * scale * unbiased) ** 2 + cells["rounding"] ** 2) ** 0.5
    if "bound" not in cells:
        cells["bound"] = math.nan
    for name in WHOLE:
        if name in cells and cells[name].isna().any():
            cells[name] = cells[name].astype("Int64")
    cells.insert(0, "source", table.source)
    cells.insert(1, "table", table.label)
    keys = list(text.columns[: list(text.columns).index("measure")])
    rest = [name for name in text.columns if name not in (*keys, *NUMBERS, "place")]
    return cells[["source", "table", *keys, *NUMBERS, *rest]]
