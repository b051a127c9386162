"""The rule for reading meanings and messages: containers of any library, options, and rows with missing values."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError, quoted, unknown
from icy.core.text import counted, listed

# -- containers of any library, read as arrays of numbers or as plain Python values ------------------------------------


Container: TypeAlias = Any
"""A list, tuple, array, tensor, data frame, series or table of any library, which `unpacked` reads."""

Array: TypeAlias = NDArray[Any]
"""Numbers, or texts, of any type and shape."""

Values: TypeAlias = list[Any]
"""Plain values: whole numbers, floats, texts, None where a value is missing, lists of these, and hashable objects."""

Entries: TypeAlias = Array | Values
"""The entries of a container, one per row."""

PLAIN = frozenset((int, str))  # types that need no conversion


def is_missing(value: object) -> bool:
    """Return whether a scalar of any library means a missing value: None, NaN, NaT, NA, or a masked entry."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, RuntimeError):  # arrays, or values that cannot be compared
        return False


def unpacked(given: Container, what: str) -> Entries:
    """Convert a container to an array if all entries are numbers without NaN, otherwise to a list of plain values.

    Args:
        given: a list, tuple, NumPy array (also masked), tensor, data frame or series of pandas or polars, table or
            array of Arrow, or any other object that can be iterated in order or converted to an array.
        what: name of the entries, for errors.

    Returns:
        Numbers of any shape, or a list of plain values: whole numbers, floats, texts, None where a value is missing,
        lists of these, and any other hashable value.

    Raises:
        InvalidSettingError: `given` is not a container, or cannot be read.
    """
    if isinstance(given, (str, bytes, dict, set, frozenset)) or np.isscalar(given) or given is None:
        kind = "one string" if isinstance(given, (str, bytes)) else f"a {type(given).__name__}"
        raise InvalidSettingError(f"{what} must be a sequence with an entry per row, not {kind}.")
    try:
        array = _numbers(given)
        if array is not None:
            return array
        rows = _in_python(given)
        return [plain(row) for row in (given if rows is given else rows if isinstance(rows, list) else [rows])]
    except InvalidSettingError:
        raise
    except (TypeError, ValueError, ArithmeticError, RuntimeError, NotImplementedError) as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
        raise InvalidSettingError(f"{what} cannot be read from a {type(given).__name__}: {reason}.") from error


def plain(value: Any) -> Any:
    """Convert a value of any library to a plain Python value; see `unpacked`.

    Example:
        >>> import numpy as np
        >>> from icy.languages.rule import plain
        >>> plain(np.int64(3)), plain(np.float32("nan")), plain((np.True_, "a"))
        (3, None, [1, 'a'])
    """
    if type(value) in PLAIN:
        return value
    if isinstance(value, (list, tuple, range)):
        return list(value) if PLAIN.issuperset(map(type, value)) else [plain(v) for v in value]
    if is_missing(value):
        return None
    if type(value) is float:
        return value
    if isinstance(value, bytes):
        return value.decode() if value.isascii() and value.decode().isprintable() else list(value)
    if isinstance(value, str):
        return str.__str__(value)  # also for a member of an enumeration
    if (held := _in_python(value)) is not value:
        return plain(held)
    if isinstance(value, complex):
        raise InvalidSettingError(f"{value} is a complex number, which cannot be a value or a token.")
    if isinstance(value, numbers.Number):  # whole numbers, truth values, fractions, decimals
        return float(value) if value % 1 else int(value)  # type: ignore[operator, arg-type, call-overload]
    if isinstance(value, (dict, set, frozenset)):
        raise InvalidSettingError(f"A {type(value).__name__} cannot be a value or a token.")
    if isinstance(value, Iterable) and hasattr(value, "__len__"):
        return [plain(v) for v in value]
    return value.name if isinstance(value, Enum) else value


def _numbers(given: Container) -> Array | None:
    """Return an array of numbers without NaN; None if there are other values."""
    if not hasattr(given, "__array__") or any(hasattr(given, name) for name in ("to_pylist", "iter_rows")):
        return None
    if getattr(given, "is_nested", False) or np.ma.is_masked(given):
        return None
    if hasattr(given, "itertuples") and len(set(map(str, given.dtypes))) > 1:
        return None  # large whole numbers would lose digits as floats
    array = of_tensor(given) if hasattr(given, "detach") else np.asarray(given)
    if array.dtype.kind == "c":
        raise InvalidSettingError("Complex numbers cannot be values or tokens.")
    if array.dtype.kind == "b":
        return array.astype(np.int8)
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float64)
    if array.dtype.kind in "iu" or (array.dtype.kind == "f" and not np.isnan(array).any()):
        return array if array.ndim else array.reshape(1)
    return None


def of_tensor(tensor: Container) -> Array:
    """Return a tensor as an array, from any device and layout."""
    import torch

    held = tensor.detach()
    if held.is_quantized:
        held = held.dequantize()
    if held.layout != torch.strided:
        held = held.to_dense()
    if held.dtype.is_floating_point and held.dtype not in (torch.float16, torch.float32, torch.float64):
        held = held.float()
    return np.asarray(held.cpu().resolve_conj().numpy())


def _in_python(given: Container) -> Any:
    """Convert a container of a library to a list of rows, and a scalar to Python's; return other objects unchanged."""
    if hasattr(given, "detach"):
        return list(given.unbind()) if given.is_nested else of_tensor(given).tolist()
    if hasattr(given, "itertuples"):  # a data frame
        return list(given.itertuples(index=False, name=None))
    if hasattr(given, "iter_rows"):
        return list(given.iter_rows())
    if hasattr(given, "column_names"):  # a table of Arrow
        return list(zip(*(column.to_pylist() for column in given.columns), strict=True))
    method = next((name for name in ("as_py", "to_pylist", "to_list", "tolist") if hasattr(given, name)), None)
    return getattr(given, method)() if method else given


# -- the options of the rule for reading meanings and messages, and rows with missing values ---------------------------


WAYS = ("auto", "letters", "spaces", "whole")
MISSING = ("refuse", "drop")
LARGEST = 2**62  # larger numbers are read as names: differences of smaller numbers fit in 64 bits
MOST_LISTED = 8  # limit of the dropped rows that a sentence lists
Names = tuple[Hashable, ...]


def row_number(row: int) -> str:
    """Return the position of a row as text, as in "row 3 (counted from 0)"."""
    return f"row {row} (counted from 0)"


@dataclass(frozen=True)
class Rule:
    """Options for reading meanings and messages, where the data can be read in several ways.

    Attributes:
        tokens: how texts are divided into tokens: into letters ("letters"), at spaces ("spaces"), not at all ("whole"),
            or at a separator, such as "-"; "auto" determines it from all texts, and
            refuses texts that can be read in two ways.
        eos: the token that ends a message: this token and all that follow are dropped.
        start: the token that begins every message and is dropped.
        pad: the token that pads messages before or after their tokens; NaN for missing values.
        one_hot: number of values of each attribute, if meanings are one-hot vectors side by side; one number if all
            attributes have the same number; "no" if columns of 0 and 1 are separate attributes.
        argmax: use the index of the largest entry as a token, if messages are vectors of real numbers; False if
            floats with a single 1 per message are tokens.
        missing: "refuse" rows with missing values, or "drop" them.
        lengths: number of tokens of each message, [N]; later tokens are dropped. EGG calls it `message_length`.
        phrases: whether meanings are phrases: any number of concepts, which mean the same at any place.
        place: words for the place of a row.
        columns: names of the columns of meanings and of messages, for errors.
    """

    tokens: str = "auto"
    eos: object = None
    start: object = None
    pad: object = None
    one_hot: int | str | Sequence[int] | None = None
    argmax: bool | None = None
    missing: str = "refuse"
    lengths: Container = None
    phrases: bool = False
    place: Callable[[int], str] = field(default=row_number)
    columns: tuple[Sequence[str], Sequence[str]] = ((), ())

    def __post_init__(self) -> None:
        if not isinstance(self.missing, str) or self.missing not in MISSING:
            raise unknown("treatment of missing values", str(self.missing), MISSING)
        if not isinstance(self.tokens, str) or not self.tokens:
            raise InvalidSettingError(f"tokens must be {listed(WAYS, 'or')} or a separator, not {quoted(self.tokens)}.")

    @property
    def pads_missing(self) -> bool:
        """Whether messages are padded with missing values."""
        return self.pad is not None and (is_missing(self.pad) or (isinstance(self.pad, str) and self.pad == ""))


def sorted_names(names: Values) -> Names:
    """Return the distinct names, numbers before texts, each kind in order."""
    try:
        return tuple(sorted(set(names), key=lambda name: (str(type(name)), name)))
    except TypeError as error:
        raise InvalidSettingError("Tokens and values must be numbers, or names that have an order.") from error


def without_missing(sides: Sequence[Entries | None], rule: Rule) -> tuple[list[Any], Rule, str]:
    """Drop the rows that have missing values, or raise an error.

    Args:
        sides: meanings, messages and weights of the rows: results of `icy.languages.rule.unpacked`, or None.
        rule: `rule.missing` determines whether these rows are dropped or refused.

    Returns:
        The remaining meanings, messages and weights, the rule with their places, and the dropped rows in words.

    Raises:
        InvalidSettingError: a value is missing, and the rule is to refuse.
    """
    gaps: dict[int, int] = {}  # the first side with a gap, by row
    for side, entries in enumerate(sides):
        for row, entry in enumerate(entries if isinstance(entries, list) else ()):  # an array has no missing values
            if _has_gap(entry, padded=side == 1 and rule.pads_missing):
                gaps.setdefault(row, side)
    if not gaps:
        return list(sides), rule, ""
    if rule.missing == "refuse":
        row, side = min(gaps.items())
        raise InvalidSettingError(_missing_error(sides[side][row], rule.place(row), side, rule))  # type: ignore[index]
    rows = max(len(entries) for entries in sides if entries is not None)
    left = [row for row in range(rows) if row not in gaps]
    if not left:
        raise InvalidSettingError("Every row has a missing value, so no row remains.")

    def rest(entries: Any) -> Any:
        return entries[left] if isinstance(entries, np.ndarray) else entries and [entries[row] for row in left]

    unit, *_ = words = rule.place(min(gaps)).split(maxsplit=2)  # such as "line", "4"
    numbers = [rule.place(row).split()[1] for row in sorted(gaps)]
    counting = f", {words[2].strip('()')}" if len(words) > 2 else ""
    dropped = (
        f"{len(gaps)} of {counted(rows, 'row')} dropped "
        f"({unit}{'s' * (len(numbers) > 1)} {listed(numbers, most=MOST_LISTED)}{counting})"
    )
    rule_of_rest = replace(rule, place=lambda row: rule.place(left[row]), lengths=rest(rule.lengths))
    return list(map(rest, sides)), rule_of_rest, dropped


def _has_gap(entry: object, padded: bool = False) -> bool:
    """Return whether an entry is missing or holds a missing value; padding at the ends of a message does not count."""
    if not isinstance(entry, list):
        return entry is None
    if padded:
        filled = [place for place, token in enumerate(entry) if token is not None]
        entry = entry[filled[0] : filled[-1] + 1] if filled else []
    return any(map(_has_gap, entry))


def _missing_error(entry: object, where: str, side: int, rule: Rule) -> str:
    """Return a sentence that names the place of the missing value and the possible remedies."""
    what, instead = (
        ("value", "or give unknown values their own name"),
        ("message", "or write an empty message as the token that ends messages (eos)"),
        ("weight", "or write 0"),
    )[side]
    names = (*rule.columns, ())[side]
    inside = isinstance(entry, list)
    gap = next((place for place, value in enumerate(entry) if _has_gap(value)), 0) if isinstance(entry, list) else 0
    if names:
        where += f", column {quoted(names[gap if len(names) > gap else 0])}"
    elif inside:
        where += f", {('attribute', 'token')[side]} {gap}"
    padding = "; if missing values pad messages, name them as padding: pad=float('nan') (--pad nan)"
    return (
        f'There is no {what} in {where}; fill it in, drop rows with gaps (missing="drop", or --missing drop), '
        f"{instead}{padding if side == 1 and inside else ''}."
    )
