"""Arrays of NumPy: npz and npy files."""

from __future__ import annotations

import numpy as np

from icy.core.errors import InvalidSettingError
from icy.languages.containers import Array, Container
from icy.languages.storage import reading

from .columns import of_equal_length
from .found import File, Found

NPY = b"\x93NUMPY"
OBJECTS = (
    "'{}' holds Python objects, which are not read, because that may run code; save lists of different lengths as JSON "
    'lines, as in {{"meaning": [0, 1], "message": [3, 4, 5]}}, or fill them up to an array of numbers.'
)


def read(file: File) -> Found | None:
    """Read arrays of one length; names or options choose them, and a single array holds messages without meanings.

    Raises:
        InvalidSettingError: arrays do not fit, or hold Python objects.
        StoreError: the file is damaged.
    """
    if file.head.startswith(NPY):
        with reading(f"'{file.path}' cannot be read"):
            return of_array(file, _loaded(file.path, ""))
    if not any(name.endswith(".npy") for name in file.members) and file.path.suffix.lower() != ".npz":
        return None
    with reading(f"'{file.path}' cannot be read"), np.load(file.path, allow_pickle=False) as arrays:
        held = {name: _loaded(arrays, name) for name in arrays.files}
    return of_equal_length(file, held, "arrays of NumPy", "array")


def of_array(file: File, array: Array, what: str = "an array of NumPy") -> Found:
    """Return the columns of a structured array, or the messages that an array or a tensor holds.

    Raises:
        InvalidSettingError: the array has no rows.
    """
    if names := getattr(array.dtype, "names", None):
        return of_equal_length(file, {name: array[name] for name in names}, what, "column")
    if array.ndim == 0 or len(array) == 0:
        raise InvalidSettingError(f"The file holds {what} of shape {tuple(array.shape)}, which has no rows.")
    return Found({"messages": array}, what, meanings=(), messages=("messages",), remarks=["messages without meanings"])


def _loaded(source: Container, name: str) -> Array:
    try:
        array: Array = source[name] if name else np.load(source, allow_pickle=False)
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        raise InvalidSettingError(OBJECTS.format(name or source)) from error
    if array.dtype.hasobject:
        raise InvalidSettingError(OBJECTS.format(name or source))
    return array
