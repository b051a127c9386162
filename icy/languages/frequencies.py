"""Which meanings of a space exist, and how often each occurs in training."""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from icy.core.csv_files import MISSING_WORDS, is_index, read_csv_table
from icy.core.errors import InvalidSettingError, StoreError, quoted
from icy.core.streams import stream
from icy.core.text import listed

from .meanings import TABLES, IntArray, MeaningSpace
from .names import grammar_name
from .storage import reading
from .values import NUMBER

if TYPE_CHECKING:
    import pandas as pd

Weights = NDArray[np.float64]
EQUAL = "equal"
WEIGHT = "weight"  # the column of weights in a file
LARGEST_EXPONENT = 10.0
NAMELESS = r"Unnamed: \d+"  # name by pandas of a column without a name
HOW_TO_WRITE = "write 'equal', or 'zipf:' and an exponent, as in zipf:1"


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Which meanings exist, and how often each is drawn in training.

    Attributes:
        law: "zipf:S", frequencies proportional to 1 / rank ** S, where each seed draws its own order of the meanings;
            "equal"; or "", the weights of the file, and equal without a file.
        file: name of the file with the meanings that exist, NAME@DIGEST with the hash of its content; "" if all exist.
        numbers: numbers of the meanings that exist, in order; None if all do.
        weights: weight of each of these in the file.
        value_names: names of the values of every attribute in the file.

    Raises:
        InvalidSettingError: the law is not one of these.

    Example:
        >>> from icy.languages.frequencies import Frequencies
        >>> from icy.languages.meanings import MeaningSpace
        >>> numbers, weights = Frequencies("zipf:1").of_seed(MeaningSpace(1, 3), seed=0)
        >>> numbers.tolist(), sorted(weights.round(3).tolist())
        ([0, 1, 2], [0.182, 0.273, 0.545])
    """

    law: str = ""
    file: str = ""
    numbers: IntArray | None = None
    weights: Weights | None = None
    value_names: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "law", _canonical(self.law))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frequencies) and (self.law, self.file) == (other.law, other.file)

    def __hash__(self) -> int:
        return hash((self.law, self.file))

    @property
    def config(self) -> dict[str, str]:
        """The part of a configuration that describes the frequencies."""
        return {name: text for name, text in (("existing", self.file), ("frequencies", self.law)) if text}

    @property
    def depends_on_seed(self) -> bool:
        """Whether each seed has its own order of the meanings."""
        return self.law not in ("", EQUAL)

    def with_law(self, law: str) -> Frequencies:
        """Return the same meanings with another law."""
        return replace(self, law=law)

    def of_seed(self, space: MeaningSpace, seed: int) -> tuple[IntArray, Weights]:
        """Return the numbers of the meanings that exist, and the probability of each. Shapes [n]."""
        numbers = np.arange(space.size) if self.numbers is None else self.numbers
        weights = np.ones(len(numbers)) if self.weights is None or self.law else self.weights
        if self.law.startswith("zipf"):
            ranks = 1 + stream(seed, "frequencies").permutation(len(numbers))
            weights = ranks.astype(float) ** -float(self.law.partition(":")[2])
        return numbers, weights / weights.sum()

    def to_csv(self, space: MeaningSpace) -> bytes:
        """Return the content of a file with the meanings that exist and their weights.

        Raises:
            InvalidSettingError: the frequencies do not come from a file.
        """
        if self.numbers is None or self.weights is None or self.value_names is None:
            raise InvalidSettingError("Only frequencies from a file can be written to a file.")
        columns = space.meanings(self.numbers).T
        names = [np.array(of_one)[column] for of_one, column in zip(self.value_names, columns, strict=True)]
        import pandas as pd

        table = pd.DataFrame({f"m{a}": column for a, column in enumerate(names)} | {WEIGHT: self.weights})
        return table.to_csv(index=False, lineterminator="\n").encode()


def _canonical(law: object) -> str:
    """Return a law in its standard form: "zipf:1.0" as "zipf:1"."""
    text = str(law).strip().lower()
    found = re.fullmatch(r"zipf(?::\s*([0-9.eE+-]+))?", text)
    try:
        exponent = float(found[1] or 1) if found else math.nan
    except ValueError:
        exponent = math.nan
    if 0 < exponent <= LARGEST_EXPONENT:
        return f"zipf:{exponent:.10g}"
    if text in ("", EQUAL):
        return text
    of_zipf = f" (above 0 and at most {LARGEST_EXPONENT:g})" if text.startswith("zipf") else ""
    raise InvalidSettingError(f"'{law}' is not a law of frequencies; {HOW_TO_WRITE}{of_zipf}.")


def is_meanings_file(given: object) -> bool:
    """Return whether an argument in place of a space is the path of a file of meanings."""
    if isinstance(given, Path):
        return True
    return isinstance(given, str) and (Path(given).suffix.lower() in TABLES or ("/" in given))


def read_meanings(path: str | Path) -> tuple[MeaningSpace, Frequencies]:
    """Read the meanings that exist from a table: one column per attribute, and optionally a column `weight`.

    A file is read once, unless its content changes.

    Each row is a meaning. Without weights, a meaning that occurs in several rows is as many times as frequent. The
    values of an attribute may be numbers or names; they are numbered from 0 in order.

    Args:
        path: a table of text with a header line, or a parquet file.

    Returns:
        The smallest space with these values, and the meanings with their frequencies.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: the table has no rows or attributes, a missing value, or a weight that is not a positive
            number.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from icy.languages.frequencies import read_meanings
        >>> file = Path(tempfile.mkdtemp(), "pets.csv")
        >>> _ = file.write_text("kind,color\\ncat,black\\ncat,black\\ndog,white\\ndog,brown\\n")
        >>> space, frequencies = read_meanings(file)
        >>> print(space, frequencies.numbers.tolist(), frequencies.weights.tolist())
        2,3 [0, 4, 5] [2.0, 1.0, 1.0]
    """
    file = Path(path)
    if not file.is_file():
        raise StoreError(f"The file of meanings '{path}' does not exist; {HOW_TO_ASK}.")
    with reading(f"'{path}' cannot be read as a table of meanings"):
        content_hash = hashlib.sha256(file.read_bytes()).digest()
    return _read(file, content_hash)


@lru_cache(maxsize=8)
def _read(path: Path, content_hash: bytes) -> tuple[MeaningSpace, Frequencies]:
    """Read a file once for all rows of a sweep."""
    with reading(f"'{path}' cannot be read as a table of meanings"), warnings.catch_warnings():
        warnings.simplefilter("error")  # pandas drops the entries of rows that are longer than the header
        table = _table(path)
    table = _without_index(table, path)
    attributes = [name for name in table.columns if str(name).lower() != WEIGHT]
    if table.empty or not attributes:
        raise InvalidSettingError(f"'{path}' must have a row per meaning and a column per attribute.")
    weights = _weights(table, path)
    columns = [_coded(table[name], path) for name in attributes]
    space = MeaningSpace.of_sizes(*(len(names) for names, _ in columns))
    rows = space.index(np.stack([codes for _, codes in columns], axis=1))
    numbers, row_of = np.unique(rows, return_inverse=True)
    total = np.bincount(row_of.ravel(), weights=weights, minlength=len(numbers)).astype(float)
    with np.errstate(over="ignore"):
        sum_exists = np.isfinite(total.sum())
    if not sum_exists:
        raise InvalidSettingError(f"The weights in '{path}' are too large for their sum; divide all by the largest.")
    digest = hashlib.sha256(f"{space}".encode() + numbers.astype("<i8").tobytes() + total.astype("<f8").tobytes())
    name = grammar_name(path.stem, digest.hexdigest()[:16])
    return space, Frequencies("", name, numbers, total, tuple(names for names, _ in columns))


HOW_TO_ASK = "a space is attributes x values, as in 5x10, or sizes, as in 10,4,2"


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        return _parquet(path) if path.suffix.lower() == ".parquet" else read_csv_table(path, None)
    except pd.errors.EmptyDataError:
        raise InvalidSettingError(f"'{path}' is empty.") from None
    except pd.errors.ParserWarning:
        raise InvalidSettingError(f"'{path}' has a row with more entries than its header.") from None


def _parquet(path: Path) -> pd.DataFrame:
    """Read a parquet file. An index of pandas with a name is a column; row numbers without a name are left out."""
    import pandas as pd
    import pyarrow.parquet as pq

    table, stored = pd.read_parquet(path), pq.read_schema(path).names
    return table.reset_index([name for name in table.index.names if name in stored])


def _without_index(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Leave out columns without a name that are empty or hold row numbers, as pandas, R and spreadsheets write them."""
    for place, name in enumerate(table.columns):
        if re.fullmatch(NAMELESS, str(name)):
            if not is_index(table[name].fillna("").astype(str).tolist(), place):
                raise InvalidSettingError(
                    f"Column {place + 1} of '{path}' has no name; give it one if it is an attribute, or leave it out "
                    "(pandas writes its index in this way unless index=False)."
                )
            table = table.drop(columns=name)
    return table


def _weights(table: pd.DataFrame, path: Path) -> Weights:
    import pandas as pd

    given = [name for name in table.columns if str(name).lower() == WEIGHT]
    if not given:
        return np.ones(len(table))
    if len(given) > 1:
        raise InvalidSettingError(f"'{path}' has several columns of weights, {listed(given)}; give only one.")
    weights = pd.to_numeric(table[given[0]], errors="coerce").to_numpy(dtype=float)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(wrong):
        found = table[given[0]].iloc[wrong[0]]
        raise InvalidSettingError(
            f"The weights in '{path}' must be positive numbers; row {wrong[0] + 1} has {quoted(found)}."
        )
    return weights


def _coded(column: pd.Series, path: Path) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the values of a column, in order, and the number of the value in each row."""
    texts = column.astype(str).str.strip()
    missing = np.flatnonzero(column.isna() | (texts == "") | _words_among_numbers(texts))
    if len(missing):
        found = texts.iloc[missing[0]]
        text = f", but '{found}'" if found else ""
        raise InvalidSettingError(f"'{path}' has no value of '{column.name}' in row {missing[0] + 1}{text}.")
    try:
        names = sorted(set(texts), key=lambda text: (_number(text), text))
    except ValueError:
        names = sorted(set(texts))
    places = {name: place for place, name in enumerate(names)}
    return tuple(names), np.array([places[text] for text in texts], dtype=np.int64)


def _number(text: str) -> float:
    """Return the number that a text is; NaN, which has no place in an order, is a name."""
    if math.isnan(number := float(text)):
        raise ValueError(text)
    return number


def _words_among_numbers(texts: pd.Series) -> NDArray[np.bool_]:
    """Return which texts are words for a missing value, such as "NA"; none if another text is not a number."""
    words = texts.isin(MISSING_WORDS).to_numpy()
    return words & all(map(NUMBER.fullmatch, texts[~words]))
