"""Which meanings of a space exist, and how often each occurs in training."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, StoreError, quoted
from icy.core.streams import stream
from icy.core.text import listed

from .language import Language
from .meanings import TABLES, IntArray, MeaningSpace
from .names import grammar_name
from .readers import File, Found, find
from .readers.files import plain_file
from .readers.tables import choose_columns, meanings_by_name, warn_of_columns, with_points
from .readers.text_files import NUMBERED
from .rule import Rule, Values, is_missing, unpacked
from .storage import reading
from .values import NUMBER, split_lists, two_valued

Weights = NDArray[np.float64]
EQUAL = "equal"
WEIGHT = "weight"  # the column of weights in a file
LARGEST_EXPONENT = 10.0
log = logging.getLogger(__name__)
HOW_TO_WRITE = "write 'equal', or 'zipf:' and an exponent, as in zipf:1"


@dataclass(frozen=True)
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
    numbers: IntArray | None = field(default=None, compare=False)
    weights: Weights | None = field(default=None, compare=False)
    value_names: tuple[tuple[str, ...], ...] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "law", _canonical(self.law))

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

    A file is read once, unless its content changes. The rule for files of languages decides which columns are
    attributes: if there are messages, they and the columns that it leaves unused are not.

    Each row is a meaning. Without weights, a meaning that occurs in several rows is as many times as frequent. The
    values of an attribute may be numbers or names; they are numbered from 0 in order.

    Args:
        path: a table in any format of `icy.languages.readers`.

    Returns:
        The smallest space with these values, and the meanings with their frequencies.

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: the table has no rows or attributes, a missing value, or a weight that is not a positive
            number; or the file is a language.

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
    if not file.exists():
        raise StoreError(
            f"The file of meanings '{path}' does not exist; a space is attributes x values, as in 5x10, or sizes, as "
            "in 10,4,2."
        )
    with reading(f"'{path}' cannot be read as a table of meanings"):
        parts = sorted(part for part in file.rglob("*") if part.is_file()) if file.is_dir() else [file]
        content = [hashlib.sha256(part.read_bytes()).digest() for part in parts]
    return _read(file, b"".join(content))


@lru_cache(maxsize=8)
def _read(path: Path, content_hash: bytes) -> tuple[MeaningSpace, Frequencies]:
    """Read a file once for all rows of a sweep."""
    try:
        with plain_file(path) as plain:
            found, name = find(File(plain), path), plain.stem
        if isinstance(found, Language):
            raise InvalidSettingError(f"It is a language with all meanings of {found.space}; give these sizes instead.")
        attributes = _attributes(found, str(path))
    except InvalidSettingError as error:
        raise InvalidSettingError(f"{error}" if str(path) in str(error) else f"'{path}': {error}") from error
    weights = _weights(found, path)
    columns = [_coded(name, column, path) for name, column in attributes.items()]
    space = MeaningSpace.of_sizes(*(len(names) for names, _ in columns))
    values = np.stack([codes for _, codes in columns], axis=1)
    if sizes := two_valued(values, [names for names, _ in columns]).sizes:
        log.warning(
            "'%s': columns look like one-hot vectors of %s values, and are read as attributes of two values; give each "
            "attribute one column.", path, listed([*map(str, sizes)]),
        )  # fmt: skip
    numbers, row_of = np.unique(space.index(values), return_inverse=True)
    total = np.bincount(row_of.ravel(), weights=weights, minlength=len(numbers)).astype(float)
    with np.errstate(over="ignore"):
        if not np.isfinite(total.sum()):
            raise InvalidSettingError(
                f"The weights in '{path}' are too large for their sum; divide all by the largest."
            )
    digest = hashlib.sha256(f"{space}".encode() + numbers.astype("<i8").tobytes() + total.astype("<f8").tobytes())
    file = grammar_name(name, digest.hexdigest()[:16])
    return space, Frequencies("", file, numbers, total, tuple(names for names, _ in columns))


def _attributes(found: Found, path: str) -> dict[str, Values]:
    """Return the entries of each attribute, by the rule for files of languages, and warn of doubtful columns."""
    names = [name for name in found.columns if name.lower() != WEIGHT]
    chosen, _, rest = choose_columns(names, found.meanings or (), found.messages or (), with_messages=False)
    if not chosen:
        raise InvalidSettingError(f"'{path}' must have a row per meaning and a column per attribute.")
    if unused := [name for name in names if name not in chosen]:
        log.warning("'%s': %s are attributes; not used: %s.", path, listed(chosen), listed(unused))
    attributes: dict[str, Values] = {}
    for name in chosen:
        held = unpacked(found.columns[name], "Meanings")
        parts = split_lists(held.tolist() if isinstance(held, np.ndarray) else held, Rule())
        attributes |= {name if len(parts) == 1 else f"{name}{n}": part for n, part in enumerate(parts)}
    if rest and not meanings_by_name(names):
        size = {name: len({str(entry) for entry in column}) for name, column in attributes.items()}
        rows = len(next(iter(attributes.values())))
        header = ", and line 1 holds the names of columns" if found.header and NUMBERED not in found.remarks else ""
        warn_of_columns(size, rows, f" of '{path}'{header}", f"call it {WEIGHT}")
    if NUMBERED in found.remarks:
        log.warning(
            "'%s' was read without a header line, because most entries of line 1 occur again below; if line 1 holds "
            "names of columns, rename them.", path,
        )  # fmt: skip
    elif found.header and any(NUMBER.fullmatch(name) or name in column for name, column in attributes.items()):
        log.warning("'%s': line 1 was read as names of columns; if it is a meaning, add a line with names above.", path)
    return attributes


def _weights(found: Found, path: Path) -> Weights:
    import pandas as pd

    given = [name for name in found.columns if name.lower() == WEIGHT]
    if len(given) > 1:
        raise InvalidSettingError(f"'{path}' has several columns of weights, {listed(given)}; give only one.")
    if not given:
        return np.ones(len(next(iter(found.columns.values()))))
    entries = list(with_points(found, given[0]))
    weights = pd.to_numeric(pd.Series(entries), errors="coerce").to_numpy(dtype=float)
    for row in np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))[:1]:
        raise InvalidSettingError(
            f"The weights in '{path}' must be positive numbers; row {row + 1} has {quoted(entries[row])}."
        )
    return weights


def _coded(name: str, column: Values, path: Path) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the values of a column, in order, and the number of the value in each row."""
    texts = ["" if is_missing(entry) else str(entry).strip() for entry in column]
    if "" in texts:
        raise InvalidSettingError(f"'{path}' has no value of '{name}' in row {texts.index('') + 1}.")
    names = sorted(set(texts))
    with contextlib.suppress(ValueError):
        numbers = [float(text) for text in names]
        if not any(map(math.isnan, numbers)):  # NaN, which has no place in an order, is a name
            names = [text for _, text in sorted(zip(numbers, names, strict=True))]
    places = {name: place for place, name in enumerate(names)}
    return tuple(names), np.array([places[text] for text in texts], dtype=np.int64)
