"""Arrays of NumPy: npz and npy files."""

from __future__ import annotations

import numpy as np

from icy.core.errors import InvalidSettingError
from icy.languages.containers import Array

from .files import File, Found

OBJECTS = (
    "The file holds Python objects, which are not read, because that may run code; save lists of different lengths as "
    'JSON lines, as in {"meaning": [0, 1], "message": [3, 4, 5]}, or fill them up to an array of numbers.'
)


def read(file: File) -> Found | None:
    """Read arrays of one length; names or options choose them, and a single array holds messages without meanings.

    Raises:
        InvalidSettingError: an array holds Python objects, or no rows.
    """
    single = file.head.startswith(b"\x93NUMPY")
    if not single and not any(name.endswith(".npy") for name in file.members) and file.path.suffix.lower() != ".npz":
        return None
    try:
        if single:
            return of_array(np.load(file.path, allow_pickle=False))
        with np.load(file.path, allow_pickle=False) as arrays:
            return Found({name: arrays[name] for name in arrays.files}, "arrays of NumPy")
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        raise InvalidSettingError(OBJECTS) from error


def of_array(array: Array, what: str = "an array of NumPy") -> Found:
    """Return the columns of a structured array, or the messages that an array or a tensor holds.

    Raises:
        InvalidSettingError: the array has no rows.
    """
    if names := getattr(array.dtype, "names", None):
        return Found({name: array[name] for name in names}, what)
    if array.ndim == 0 or len(array) == 0:
        raise InvalidSettingError(f"The file holds {what} of shape {tuple(array.shape)}, which has no rows.")
    return Found({"messages": array}, what, meanings=(), messages=("messages",), remarks=["messages without meanings"])
