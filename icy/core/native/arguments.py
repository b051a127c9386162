"""Check arrays before their addresses are passed to native code, so that it cannot access other memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError

if TYPE_CHECKING:
    from torch import Tensor


def address(array: Tensor | Shaped[NDArray[Any], "*shape"], dtype: str, count: int, name: str) -> int:
    """Return the address of the first number of an array.

    Args:
        array: an array on the CPU, contiguous and aligned.
        dtype: name of the dtype that the native code expects, such as "float32".
        count: number of numbers that the native code reads or writes.
        name: name of the argument, for the error.

    Raises:
        IncompatibleError: the array does not have these properties.
    """
    actual, fault, place = _of_array(array) if isinstance(array, np.ndarray) else _of_tensor(array)
    if fault or actual != dtype or math.prod(array.shape) != count:
        raise IncompatibleError(
            f"Native code takes '{name}' as {count} contiguous numbers of {dtype} on the CPU; got shape "
            f"{list(array.shape)} of {actual}{fault}."
        )
    return place


def _of_array(array: NDArray[Any]) -> tuple[str, str, int]:
    """Return the dtype, a fault ("" for no fault) and the address."""
    flags = array.flags
    plain = flags.c_contiguous and flags.aligned and array.dtype.isnative  # bytes in this machine's order
    return array.dtype.name, "" if plain else ", not contiguous or not aligned", array.ctypes.data


def _of_tensor(tensor: Tensor) -> tuple[str, str, int]:
    """Return the dtype, a fault ("" for no fault) and the address (0 without an address)."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    try:
        if tensor.device.type != "cpu":
            return dtype, f" on {tensor.device}", 0
        if not tensor.is_contiguous() or tensor.is_neg() or tensor.is_conj():
            return dtype, ", not contiguous", 0
        place = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        return dtype, ", a tensor without its own memory", 0
    if place % max(tensor.element_size(), 1) or (place == 0 and tensor.numel()):
        return dtype, ", not aligned", 0
    return dtype, "", place
