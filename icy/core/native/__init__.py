"""Load native libraries: C++ sources of a package `native`, in variants per instruction set, called through ctypes.

They are optional. Where one could not be built, or the environment has ICY_NATIVE=off, icy computes the same without,
only slower.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from icy.core.errors import InvalidSettingError, unknown
from icy.core.types import AnyFunction

from . import build

SETTING = "ICY_NATIVE"  # environment variable; "off", or the variant to take in place of the best
OFF = "off"
REBUILD = "python setup.py build_ext --inplace"


@dataclass(frozen=True)
class Library:
    """A native library in the variant that was chosen for this processor.

    Attributes:
        package: the package that it belongs to, such as "icy.models.native".
        path: its file.
        variant: the variant in use, such as "avx2".
        usable: the variants in it that this processor runs, worst to best.
        built: the variants in it.
    """

    package: str
    path: Path
    variant: str
    usable: tuple[str, ...]
    built: tuple[str, ...]
    _loaded: ctypes.CDLL

    def function(self, name: str, returns: object, *takes: object) -> AnyFunction:
        """Return an exported function, with the types of ctypes that it returns (None for nothing) and takes.

        Other threads run while it does.

        Raises:
            AttributeError: the library exports no such function.
        """
        found = self._loaded[f"{name}_{self.variant}"]
        found.restype, found.argtypes = returns, takes
        return found


def load(package: str) -> Library | None:
    """Return the native library of a package, or None if there is none to use, for which `why_not` has the reason.

    Args:
        package: full name of the package with the sources, such as "icy.models.native".

    Raises:
        InvalidSettingError: ICY_NATIVE asks for a variant that the library does not have or the processor does not run.
        UnknownNameError: ICY_NATIVE asks for anything else.
    """
    found = _find(package, _asked())
    return found if isinstance(found, Library) else None


def why_not(package: str) -> str | None:
    """Return why a package has no native library to use, in a sentence without its stop; None if it has one."""
    found = _find(package, _asked())
    return found if isinstance(found, str) else None


def in_use(package: str, instead: str) -> str:
    """Return which code is in use and why, for people: a variant of a package's library, or what there is `instead`."""
    library = load(package)
    if library is None:
        return f"{instead}, native code {why_not(package)}"
    why = f"asked for by {SETTING}" if _asked() else f"the best that this processor runs of {', '.join(library.built)}"
    return f"native, {library.variant}: {why}"


def _asked() -> str | None:
    """Return what the environment asks for, if anything."""
    asked = os.environ.get(SETTING, "").strip()
    known = [OFF, *dict.fromkeys(name for kinds in build.VARIANTS.values() for name in kinds)]
    if asked and asked not in known:
        raise unknown(f"value of {SETTING}", asked, known)
    return asked or None


@functools.cache
def _find(package: str, asked: str | None) -> Library | str:
    """Return the library of a package, or why there is none."""
    if asked == OFF:
        return f"switched off by {SETTING}={OFF}"
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return f"there is no package {package}"
    found = _open(Path(spec.origin).parent)
    if isinstance(found, str):
        if asked is not None:
            raise InvalidSettingError(f"{SETTING}={asked} cannot be had from {package}: {found}.")
        return found
    built = tuple(found.icy_built().decode().split())
    usable = tuple(name for name in built if found.icy_runs(name.encode()))
    if not usable:
        return f"of no use: this processor runs none of its variants {', '.join(built)}"
    if asked is not None and asked not in usable:
        raise InvalidSettingError(
            f"{SETTING}={asked} cannot be had from {package}: of its variants, this processor runs {', '.join(usable)}."
        )
    return Library(package, Path(found._name), asked or usable[-1], usable, built, found)


def _open(folder: Path) -> ctypes.CDLL | str:
    """Return the library in a folder, or why it cannot be used."""
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
    # A checkout has the sources, and may have moved on since; what is called must be what the callers are written for.
    if build.sources(folder) and loaded.icy_sources().decode() != build.digest(folder):
        return f"older than its sources; `{REBUILD}` builds it anew"
    return loaded
