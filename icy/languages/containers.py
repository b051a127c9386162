"""Containers of any library, read as arrays of numbers or as plain Python values."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import InvalidSettingError

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
        >>> from icy.languages.containers import plain
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
    array: Array = held.cpu().resolve_conj().numpy()
    return array


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
