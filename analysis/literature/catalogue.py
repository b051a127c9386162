"""The papers' tables as data: a catalogue, and a tidy table for each.

The files are in `analysis/data/published`; the head of `tables.toml` there explains their columns.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.csv_files import read_csv_table
from icy.core.errors import unknown

if TYPE_CHECKING:
    import pandas as pd


PAPERS_CI95 = 1.96  # half the width of the papers' 95 % intervals, in standard errors
DATA = Path(__file__).parents[1] / "data" / "published"
# Columns that identify a cell that `icy probe` can measure, and one that `icy e2e` can.
KEYS = ["protocol", "representation", "side", "model", "hidden_size", "grammar", "target"]
PAIR_KEYS = ["representation", "model", "hidden_size", "grammar", "measure"]
NUMBERS = ["measure", "mean", "error", "error_kind", "n", "printed", "bound", "rounding", "standard_error"]
WHOLE = (
    "n",
    "hidden_size",
    "parameters",
    "bound",
    "samples",
    "shots",
    "distractors",
    "observations",
)  # stay whole numbers where some are missing


@dataclass(frozen=True)
class PublishedTable:
    """A published table: its entry in the catalogue.

    Attributes:
        id: name in icy, as in "perkins21/table13".
        title: one line.
        measured: what its numbers are.
        source: short name of the paper, as in "Perkins21".
        citation: of the paper.
        aliases: names of other tables with the same numbers or in the same file.
        protocol: how models were trained, if they were.
        meanings: attributes and values, as in "5x10"; "" if they differ between rows or there are none.
        vocab_size: number of tokens; None likewise.
        word_length: tokens per attribute; None likewise.
        runs: number of runs behind each mean; None if it differs between rows or is unknown.
        seeds: of these runs, if the paper or its command names them.
        ddof: delta degrees of freedom of printed deviations, which were divided by n - ddof; None if unknown.
        caveats: what to know before using the numbers.
        inferred: what in the data was inferred and is not in the paper.
        reproduce: what can measure it again: a kind of job ("probe", "e2e", "s2b", "games"), "metrics", or "".

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

    @property
    def label(self) -> str:
        """Its numbers in the paper, as in "13/14", or its name if it has none."""
        return "/".join(name.partition("/")[2].removeprefix("table") for name in (self.id, *self.aliases))

    @property
    def names(self) -> tuple[str, ...]:
        """All names that `find_table` accepts for it, in lower case."""
        full = (self.id, *self.aliases)
        short = [re.sub(r"/table(?=\d)", "/", name) for name in full]
        return tuple(dict.fromkeys([*full, *short, f"{self.source}/{self.label}".lower()]))

    @property
    def path(self) -> Path:
        """Its file."""
        return DATA / f"{self.id}.csv"

    @property
    def rows(self) -> int:
        """Number of numbers it holds."""
        return len(self.path.read_text(encoding="utf-8").splitlines()) - 1

    def to_dataframe(self) -> pd.DataFrame:
        """Return its numbers, as `published` does."""
        return _read(self).copy()


@dataclass(frozen=True)
class PublishedFinding:
    """What a paper says or draws without numbers.

    Attributes:
        id: name in icy, as in "metarg22/recall".
        title: one line.
        words: what was found.
        source: short name of the paper.
    """

    id: str
    title: str
    words: str
    source: str


def published_findings() -> list[PublishedFinding]:
    """Return what the papers found without printing a number."""
    found = _file()
    return [
        PublishedFinding(**finding, source=found["source"][finding["id"].partition("/")[0]]["name"])
        for finding in found.get("finding", ())
    ]


def published_tables() -> list[PublishedTable]:
    """Return every published table that icy holds, paper by paper."""
    return list(_catalogue())


def find_table(name: str) -> PublishedTable:
    """Return the published table of this name.

    Args:
        name: as in "perkins21/table13", "Perkins21/13" or "perkins21/table14", which shares the file of 13.

    Raises:
        UnknownNameError: there is no such table.
    """
    tables = {known: table for table in _catalogue() for known in table.names}
    found = tables.get("".join(name.lower().split()))
    if found is None:
        known = [known for table in _catalogue() for known in (table.id, *table.aliases)]
        raise unknown("published table", name, known, "`icy list published` shows all.")
    return found


def published(name: str) -> pd.DataFrame:
    """Return the numbers of a published table, one row each.

    Args:
        name: as for `find_table`.

    Returns:
        The columns `source` and `table`, those that identify the number and differ between tables, and

        - `measure`, what the number is;
        - `mean`, `error`, and `error_kind`: "sem", "ci95", "sd", or "none" if the paper gives no error;
        - `n`, the number of runs or games behind the mean, if known;
        - `printed`, the text of the paper;
        - `bound`, a lower bound of the value in place of a mean, if a run was stopped early;
        - `rounding`, the standard deviation of the rounding error;
        - `standard_error` of the mean, including rounding. Deviations are divided by n - 1 here, whatever the paper
          divides by (n, where it does not say). NaN without an error or without `n`.

    Raises:
        UnknownNameError: there is no such table.

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
    returned once, under the first.
    """
    whole = _together("probe", table)[["source", "table", *KEYS, *NUMBERS]]
    return whole.drop_duplicates(["source", *KEYS, "measure", "mean", "error", "n"], ignore_index=True)


def end_to_end(table: str = "") -> pd.DataFrame:
    """Return the published cells that `icy e2e` can measure, of all tables or one, with the columns of `published`.

    `model` is the pair, and `measure` a column of the long table.
    """
    return _together("e2e", table)


def _together(reproduce: str, table: str) -> pd.DataFrame:
    import pandas as pd

    tables = [t for t in _catalogue() if t.reproduce == reproduce]
    if table:
        asked = find_table(table)
        if asked not in tables:
            known = [name for t in tables for name in t.names]
            raise unknown(f"published table for `icy {reproduce}`", table, known, "`icy list published` shows all.")
        tables = [asked]
    return pd.concat([_read(t) for t in tables], ignore_index=True)


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads((DATA / "tables.toml").read_text(encoding="utf-8"))


@cache
def _catalogue() -> tuple[PublishedTable, ...]:
    found = _file()
    return tuple(_entry(table, found["source"]) for table in found["table"])


def _entry(table: dict[str, Any], sources: dict[str, dict[str, str]]) -> PublishedTable:
    source = sources[table["id"].partition("/")[0]]
    lists = {name: tuple(table.get(name, ())) for name in ("aliases", "seeds")}
    return PublishedTable(**{**table, **lists}, source=source["name"], citation=source["citation"])


@cache
def _read(table: PublishedTable) -> pd.DataFrame:
    cells = read_csv_table(table.path, texts=(), missing=[""])  # "none" is a word here
    text = read_csv_table(table.path, texts=None)
    cells["printed"] = _printed(text)
    cells["rounding"] = _rounding(cells, text["mean"])
    cells["standard_error"] = _standard_error(cells, table.ddof)
    if "bound" not in cells:
        cells["bound"] = math.nan
    for name in WHOLE:
        if name in cells and cells[name].isna().any():
            cells[name] = cells[name].astype("Int64")
    cells.insert(0, "source", table.source)
    cells.insert(1, "table", table.label)
    which = list(text.columns[: list(text.columns).index("measure")])
    rest = [name for name in text.columns if name not in (*which, *NUMBERS, "place")]
    return cells[["source", "table", *which, *NUMBERS, *rest]]


def _printed(text: pd.DataFrame) -> pd.Series[str]:
    """Return the text of the paper: the column `printed` if it has one, else mean and error."""
    usual = text["mean"] + ("±" + text["error"]).where(text["error"] != "", "")
    return text["printed"].where(text["printed"] != "", usual) if "printed" in text else usual


def _rounding(cells: pd.DataFrame, mean: pd.Series[str]) -> pd.Series[float]:
    """Return the standard deviation of an error spread evenly over one unit of the last printed place."""
    last = 10.0 ** -mean.str.partition(".")[2].str.len()
    place = cells["place"].fillna(last) if "place" in cells else last
    return (place / math.sqrt(12)).where(cells["mean"].notna())


def _standard_error(cells: pd.DataFrame, ddof: int | None) -> pd.Series[float]:
    n = cells["n"].astype(float)
    scale = cells["error_kind"].map({"sem": 1.0, "ci95": 1 / PAPERS_CI95, "sd": 1.0, "none": math.nan})
    scale = scale.where(cells["error_kind"] != "sd", n**-0.5)
    # Perkins21 and Icy22 divide the population deviation by sqrt(n); with so few runs the sample deviation is fair.
    unbiased = 1.0 if ddof == 1 else (n / (n - 1)) ** 0.5
    return ((cells["error"] * scale * unbiased) ** 2 + cells["rounding"] ** 2) ** 0.5
