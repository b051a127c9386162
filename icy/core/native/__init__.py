"""Load native libraries: C++ code of a package `native`, in a variant per instruction set, called through ctypes.

The libraries are optional. If a library could not be built, or with ICY_NATIVE=off in the environment, icy computes the
same results more slowly.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError, InvalidSettingError, unknown
from icy.core.types import AnyFunction

from . import build

if TYPE_CHECKING:
    from torch import Tensor

SETTING = "ICY_NATIVE"  # environment variable; "off", or the variant to use instead of the best
OFF = "off"
REBUILD = "python setup.py build_ext --inplace"


@dataclass(frozen=True)
class Library:
    """A native library with the variant for this processor.

    Attributes:
        package: package of the library, such as "icy.models.native".
        path: path of the library.
        variant: the variant in use, such as "avx2".
        usable: variants in the library that this processor can run, worst to best.
        built: all variants in the library.
    """

    package: str
    path: Path
    variant: str
    usable: tuple[str, ...]
    built: tuple[str, ...]
    _loaded: ctypes.CDLL

    def function(self, name: str, returns: Any, *takes: Any) -> AnyFunction:
        """Return an exported function, with ctypes types for its result (None for no result) and its arguments.

        Other threads can run during a call.

        Raises:
            AttributeError: the library does not export this function.
        """
        found = self._loaded[f"{name}_{self.variant}"]
        found.restype, found.argtypes = returns, takes
        return found


def load(package: str) -> Library | None:
    """Return the native library of a package; None if it is not usable (`why_not` returns the reason).

    Args:
        package: full name of the package with the sources, such as "icy.models.native".

    Raises:
        InvalidSettingError: ICY_NATIVE is a variant that the library does not have or the processor cannot run.
        UnknownNameError: ICY_NATIVE is not "off" or a variant.
    """
    library = _find(package, _requested_variant())
    return library if isinstance(library, Library) else None


def why_not(package: str) -> str | None:
    """Return why the native library of a package is not usable, without a full stop; None if it is usable."""
    library = _find(package, _requested_variant())
    return library if isinstance(library, str) else None


def in_use(package: str, instead: str) -> str:
    """Describe which code runs, and why: a variant of a package's library, or the alternative `instead`."""
    library = load(package)
    if library is None:
        return f"{instead}, native code {why_not(package)}"
    why = f"chosen by {SETTING}" if _requested_variant() else f"best for this processor of {', '.join(library.built)}"
    return f"native, {library.variant}: {why}"


def _requested_variant() -> str | None:
    """Return the value of ICY_NATIVE; None if it is not set."""
    requested = os.environ.get(SETTING, "").strip()
    known = [OFF, *dict.fromkeys(name for kinds in build.VARIANTS.values() for name in kinds)]
    if requested and requested not in known:
        raise unknown(f"value of {SETTING}", requested, known)
    return requested or None


@functools.cache
def _find(package: str, requested: str | None) -> Library | str:
    """Return the library of a package, or the reason why it is not usable."""
    if requested == OFF:
        return f"switched off by {SETTING}={OFF}"
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return f"not found: the package {package} does not exist"
    library = _open(Path(spec.origin).parent)
    if isinstance(library, str):
        if requested is not None:
            raise InvalidSettingError(f"{SETTING}={requested} is not possible for {package}: {library}.")
        return library
    built = tuple(library.icy_built().decode().split())
    usable = tuple(name for name in built if library.icy_runs(name.encode()))
    if not usable:
        return f"not usable: this processor cannot run its variants {', '.join(built)}"
    if requested is not None and requested not in usable:
        raise InvalidSettingError(
            f"{SETTING}={requested} is not possible for {package}: this processor runs {', '.join(usable)}."
        )
    return Library(package, Path(library._name), requested or usable[-1], usable, built, library)


def _open(folder: Path) -> ctypes.CDLL | str:
    """Return the library in a folder, or the reason why it cannot be used."""
    path, note = folder / build.LIBRARY, folder / build.NOTE
    if not path.exists():
        why = note.read_text(encoding="utf-8").strip() if note.exists() else f"`{REBUILD}` in a checkout builds it"
        return f"not built: {why}"
    try:
        loaded = ctypes.CDLL(str(path))
        loaded.icy_built.restype = loaded.icy_sources.restype = ctypes.c_char_p
        loaded.icy_runs.argtypes = [ctypes.c_char_p]
    except (OSError, AttributeError) as error:
        return f"built for another machine than this {platform.machine()} with {platform.system()} ({error})"
    # In a checkout, the sources may be newer than the library; callers need the functions of the sources.
    if build.sources(folder) and loaded.icy_sources().decode() != build.digest(folder):
        return f"older than its sources; `{REBUILD}` builds it again"
    return loaded


# -- arguments ---------------------------------------------------------------------------------------------------------


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
    actual, held, fault = str(array.dtype).removeprefix("torch."), None, ", not contiguous or not aligned"
    try:
        held = array if isinstance(array, np.ndarray) else array.detach().numpy()
    except (RuntimeError, TypeError, NotImplementedError):  # on a GPU, a lazy view, or within a transform of PyTorch
        fault = ", without its own memory on the CPU"
    if held is not None and held.flags.c_contiguous and held.flags.aligned and held.dtype.isnative:
        fault = ""
    if held is None or fault or actual != dtype or held.size != count:
        raise IncompatibleError(
            f"Native code takes '{name}' as {count} contiguous numbers of {dtype} on the CPU; got shape "
            f"{list(array.shape)} of {actual}{fault}."
        )
    return held.ctypes.data
