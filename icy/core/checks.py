"""Check and convert arguments from users: whole numbers, seeds, hidden sizes."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .errors import InvalidSettingError, quoted

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

MOST_SEEDS = 10_000
FIRST_SEED = 123  # the papers' first seed
LARGEST_SEED = 2**63 - 1  # largest integer in tables
LARGEST_RATIO = 1e10  # largest ratio of updates; see MOST_STEPS
LARGEST_SETTING = 1e38  # largest learning rate, weight or temperature; they become float32

LARGEST_NUMBER = 2**31  # of attributes, values, tokens
MOST_DIGITS = 18  # most digits of a number in text, so that it fits in 64 bits
NUMBER = f"[0-9]{{1,{MOST_DIGITS}}}"
SEED = "[0-9]{1,40}"
SEEDS = re.compile(rf"({SEED}(-{SEED})?)(,{SEED}(-{SEED})?)*,?")

MISSING_VALUES = ("", "na", "n/a", "nan", "<na>", "nat", "null", "none")  # in columns, in lower case
BOOLEANS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}


def parse_whole(text: str) -> int | None:
    """Parse a whole number of digits 0 to 9; return None for other text.

    Use this for numbers in options, files and answers: `str.isdigit` accepts "²", which `int` rejects, and `int`
    rejects numbers with thousands of digits.

    Example:
        >>> parse_whole("128"), parse_whole("-1"), parse_whole("²"), parse_whole("9" * 5000)
        (128, None, None, None)
    """
    return int(text) if re.fullmatch(NUMBER, text) else None


def parse_count(text: str) -> int | None:
    """Parse a whole number, also in the form 1e6; return None for other text.

    Example:
        >>> parse_count("5000"), parse_count("5e3"), parse_count("5e99"), parse_count("e3")
        (5000, 5000, None, None)
    """
    digits, power, zeros = text.partition("e")
    number, places = parse_whole(digits), parse_whole(zeros) if power else 0
    if number is None or places is None or len(digits) + places > MOST_DIGITS:
        return None
    return int(number * 10**places)


def number_or_text(value: object) -> int | str:
    """Return a value as a whole number if possible, otherwise as text.

    Example:
        >>> number_or_text("3"), number_or_text(3), number_or_text("1-3")
        (3, 3, '1-3')
    """
    number = parse_whole(str(value))
    return str(value) if number is None else number


def seed_list(seeds: int | str | Iterable[int]) -> list[int]:
    """Return the seeds for a number of seeds (from 123 on), a list, or text such as "3", "1,2,5" or "123-127".

    Raises:
        InvalidSettingError: the list of seeds is empty, too long, or not of whole numbers.

    Example:
        >>> seed_list(2), seed_list("123-125, 7")
        ([123, 124], [123, 124, 125, 7])
    """
    usage = (
        f"Seeds are a number of seeds (3), a list (1,2,5) or a range (123-127): at most {MOST_SEEDS} of them, "
        f"each from 0 to {LARGEST_SEED}"
    )
    invalid = InvalidSettingError(f"{usage}; not {quoted(seeds)}.")
    if isinstance(seeds, str):
        text = ",".join(part.strip() for part in seeds.strip().split(","))
        if (count := parse_whole(text)) is not None:
            return seed_list(count)
        if not SEEDS.fullmatch(text):
            raise invalid
        ends = [part.partition("-") for part in text.split(",") if part]
        if any(int(b or a) - int(a) >= MOST_SEEDS for a, _, b in ends):
            raise invalid
        found: list[Any] = [n for a, dash, b in ends for n in range(int(a), int(b or a) + 1)]
    elif (single := _whole_or_none(seeds)) is not None:
        if single > MOST_SEEDS:
            raise invalid
        found = list(range(FIRST_SEED, FIRST_SEED + single))
    else:
        try:
            found = [_whole_or_none(seed) for seed in seeds]  # type: ignore[union-attr]
        except TypeError:  # not iterable
            raise invalid from None
    if not all(seed is not None and 0 <= seed <= LARGEST_SEED for seed in found):
        raise invalid
    if not found:
        raise InvalidSettingError(f"{usage}; {quoted(seeds)} has no seeds.")
    return list(dict.fromkeys(found))


def _whole_or_none(given: Any) -> int | None:
    """Return a whole number of Python, NumPy or PyTorch as a Python integer; None for other values."""
    if isinstance(given, bool) or str(getattr(given, "dtype", "")).endswith("bool"):
        return None
    try:
        return operator.index(given)
    except TypeError:
        return None


def hidden_list(hidden: int | str | Iterable[int]) -> list[int]:
    """Return the hidden sizes for a number, a list, or text such as "128" or "64,128,256".

    Raises:
        InvalidSettingError: the list of sizes is empty, or not of whole numbers of at least 1.

    Example:
        >>> hidden_list(128), hidden_list("64,128")
        ([128], [64, 128])
    """
    if isinstance(hidden, str):
        sizes: list[Any] = [number_or_text(part.strip()) for part in hidden.split(",") if part.strip()]
    else:
        sizes = list(hidden) if isinstance(hidden, Iterable) else [hidden]
    if not sizes:
        raise InvalidSettingError("The hidden size is a whole number (128), or several (64,128,256), not empty.")
    return list(dict.fromkeys(whole_number("hidden size", n) for n in sizes))


def whole_number(what: str, given: object, least: int = 1, most: int = LARGEST_NUMBER) -> int:
    """Return `given` as a Python integer, which cannot overflow, unlike NumPy integers.

    Raises:
        InvalidSettingError: `given` is not a whole number in `least`..`most`.
    """
    number = _whole_or_none(given)
    whole = least - 1 if number is None else number
    if whole > most:
        raise InvalidSettingError(f"The {what} must be at most {most}, not {quoted(given)}.")
    if whole < least:
        raise InvalidSettingError(f"The {what} must be a whole number, at least {least}, not {quoted(given)}.")
    return whole


def true_or_false(what: str, given: object) -> bool:
    """Return `given` if it is True or False.

    Raises:
        InvalidSettingError: `given` is anything else, such as 1 or "no".
    """
    if not isinstance(given, bool):
        raise InvalidSettingError(f"{what} must be True or False, not {quoted(given)}.")
    return given


def real_number(
    what: str, given: Any, least: float = 0.0, most: float = LARGEST_SETTING, *, above: bool = False
) -> float:
    """Return `given` as a Python float.

    Args:
        what: name of the number, for the error.
        given: the number.
        least: smallest allowed number.
        most: largest allowed number.
        above: whether the number must be larger than `least`.

    Raises:
        InvalidSettingError: `given` is not a number, or not in this range.

    Example:
        >>> real_number("setting decay", 1, most=1.0)
        1.0
    """
    try:
        number = math.nan if isinstance(given, (bool, str)) else float(given)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if least <= number <= most and not (above and number == least):
        return number
    accepted = f" above {least:g}" if above else f", at least {least:g}"
    raise InvalidSettingError(f"The {what} must be a number{accepted} and at most {most:g}, not {quoted(given)}.")


def boolean_column(what: str, given: Any, length: int | None = None) -> NDArray[np.bool_]:
    """Read a column that says true or false for each row: booleans, the numbers 1 and 0, or their text.

    A missing value is False, as in a table without this column.

    Args:
        what: name of the column, the first words of an error.
        given: values, such as a list, an array or a pandas column of any type.
        length: number of rows.

    Raises:
        InvalidSettingError: a value is not true or false, or the number of values is not `length`.

    Example:
        >>> boolean_column("Column cut", ["TRUE", "no", 1.0, None]).tolist()
        [True, False, True, False]
    """
    import numpy as np

    array = _column(what, given, length)
    if array.dtype == bool:
        return array
    known = BOOLEANS | dict.fromkeys(MISSING_VALUES, False)
    found = [known.get(re.sub(r"\.0*$", "", str(value).strip().lower())) for value in array.tolist()]
    if None in found:
        wrong = array.tolist()[found.index(None)]
        raise InvalidSettingError(f"{what} must hold yes or no, such as True or FALSE, not {quoted(wrong)}.")
    return np.array(found, bool)


def number_column(what: str, given: Any, length: int | None = None) -> NDArray[np.float64]:
    """Read a column of numbers; a missing value is NaN. Arguments as for `boolean_column`.

    Raises:
        InvalidSettingError: a value is not a number, or the number of values is not `length`.

    Example:
        >>> number_column("Column value", ["1.5", None, "NA"]).tolist()
        [1.5, nan, nan]
    """
    import numpy as np

    array = _column(what, given, length)
    if array.dtype.kind in "biuf":
        return array.astype(float)
    found = np.full(len(array), math.nan)
    for i, value in enumerate(array.tolist()):
        if str(value).strip().lower() not in MISSING_VALUES:
            try:
                found[i] = float(value)
            except (TypeError, ValueError):
                raise InvalidSettingError(f"{what} must hold numbers, not {quoted(value)}.") from None
    return found


def _column(what: str, given: Any, length: int | None) -> NDArray[Any]:
    """Return values as an array with one dimension; raise InvalidSettingError for another length."""
    import numpy as np

    array = np.asarray(given).reshape(-1)
    if length is not None and len(array) != length:
        raise InvalidSettingError(f"{what} needs a value for each of {length} runs; its length is {len(array)}.")
    return array


def require_names(table: pd.DataFrame, columns: Iterable[str]) -> None:
    """Raise InvalidSettingError if a row has a missing value in a column that names its group."""
    for name in columns:
        if missing := int(table[name].isna().sum()):
            raise InvalidSettingError(
                f"Column {name} is empty in {missing} of {len(table)} rows; fill it in, or leave these rows out."
            )
