"""Build the native library of a folder of C++ sources: one shared library with a variant per instruction set.

setup.py loads this file by its path, before icy can be imported. So this file must not import icy.

A folder named `native` with C++ sources becomes one library in the same folder. Every source is compiled once per
variant for this type of machine (`VARIANTS`), with a plain C interface. When icy loads the library, it chooses the best
variant that the processor can run. So the library depends on the type of machine, but not on the version of Python.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMMON = Path(__file__).parent  # folder of export.h and of the sources that every library contains
LIBRARY = "_native.so"  # the same name on every system, because only ctypes loads it
NOTE = "_native.txt"  # written if the library could not be built, with the reason in one sentence
DISPATCH, RUNTIME = EXTRA = "dispatch.cpp", "runtime.cpp"
EXPORTS = "exports.map"

FLAGS = (
    "-std=c++17",
    "-O3",
    "-ffp-contract=fast",  # fused multiply-add, within and across expressions
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-exceptions",  # with the next two flags and runtime.cpp, only headers of libstdc++ are needed
    "-fno-rtti",
    "-fno-threadsafe-statics",
    "-fPIC",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",  # about vectors as arguments, which are never passed from one variant to another
)
# Names of instruction sets, because compilers before GCC 11 do not have levels (x86-64-v3).
_SSE = ("-msse4.2", "-mpopcnt", "-mcx16")
_AVX2 = (*_SSE, "-mavx2", "-mfma", "-mbmi", "-mbmi2", "-mf16c", "-mlzcnt", "-mmovbe")
_AVX512 = (*_AVX2, "-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512")
VARIANTS: dict[
    str, dict[str, tuple[str, ...]]
] = {  # worst to best, by type of machine; dispatch.cpp checks which variants a processor can run
    "x86_64": {"baseline": _SSE, "avx2": _AVX2, "avx512": _AVX512},
    "aarch64": {"neon": ()},
}
LINK = {
    # Link only libc and libm, so that the library loads on systems with old versions of these.
    "linux": (
        "-nodefaultlibs",
        "-Wl,--gc-sections,--as-needed,-z,defs,-s",
        f"-Wl,--version-script={EXPORTS}",
        "-lm",
        "-lc",
        "-lgcc",
    ),
    "darwin": (),
}


Unit = tuple[Path, tuple[str, ...]]  # a source, and flags to compile it with


class NotBuiltError(Exception):
    """The library cannot be built; the message is the reason in one sentence."""


def variants() -> dict[str, tuple[str, ...]]:
    """Return the flags of each variant for this type of machine, worst to best; empty for other machines."""
    kind = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    return VARIANTS.get(kind, {}) if sys.platform in LINK else {}


def sources(folder: Path) -> list[Path]:
    """Return the C++ sources of a folder, in order."""
    return sorted(folder.glob("*.cpp"))


def headers(folder: Path) -> list[Path]:
    """Return the headers that the sources of a folder may include."""
    return [*sorted(folder.glob("*.h")), *sorted(COMMON.glob("*.h"))]


def digest(folder: Path) -> str:
    """Return a hash of all inputs of a folder's library. The library stores it, so that an old library is detected."""
    made = hashlib.sha256(repr((FLAGS, VARIANTS, LINK)).encode())
    for file in (*sources(folder), *headers(folder), *(COMMON / name for name in (*EXTRA, EXPORTS))):
        made.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return made.hexdigest()[:16]


def build(folder: Path, target: Path, scratch: Path) -> str:
    """Build the library of a folder of sources. If this is not possible, write a note with the reason; never fail.

    Args:
        folder: folder of the sources.
        target: folder for the library or the note.
        scratch: folder for object files, so that the next build compiles only changed sources.

    Returns:
        A line about the result.
    """
    target.mkdir(parents=True, exist_ok=True)
    try:
        library = _linked(folder, scratch)
    except (NotBuiltError, OSError) as error:
        (target / LIBRARY).unlink(missing_ok=True)
        (target / NOTE).write_text(f"{error}\n", encoding="utf-8")
        return f"{folder}: native library not built: {error}"
    new = target / f"{LIBRARY}.new"
    shutil.copy(library, new)
    new.replace(target / LIBRARY)  # a process may have the old one open
    (target / NOTE).unlink(missing_ok=True)
    return f"{folder}: native library built for {', '.join(variants())}"


def compiler() -> list[str]:
    """Return the command of the C++ compiler: $CXX, or the first of c++, g++ and clang++.

    Raises:
        NotBuiltError: no compiler was found.
    """
    requested = os.environ.get("CXX")
    for name in [requested] if requested else ["c++", "g++", "clang++"]:
        command = shlex.split(name)
        if command and shutil.which(command[0]):
            return command
    raise NotBuiltError(f"no C++ compiler was found when icy was installed{f' (CXX={requested})' if requested else ''}")


def possible() -> bool:
    """Return whether libraries can be built on this machine."""
    try:
        return bool(compiler() and variants())
    except NotBuiltError:
        return False


def _linked(folder: Path, scratch: Path) -> Path:
    """Compile and link the library in `scratch`, and return its path."""
    kinds = variants()
    if not kinds:
        raise NotBuiltError(f"native code does not support {platform.machine()} on {platform.system()}")
    command = compiler()
    worst = next(iter(kinds))
    about = [f'-DICY_BUILT="{" ".join(kinds)}"', f'-DICY_SOURCES="{digest(folder)}"']
    units: list[Unit] = [(COMMON / DISPATCH, (*kinds[worst], *about)), (COMMON / RUNTIME, kinds[worst])]
    # The worst variant first: the linker takes the first copy of a standard template that several variants contain.
    units += [(s, (*flags, f"-DICY_VARIANT={name}")) for name, flags in kinds.items() for s in sources(folder)]
    known = [_run([*command, "--version"]), *(file.read_text(encoding="utf-8") for file in headers(folder))]
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # each thread waits for its own compiler
        objects = list(threads.map(lambda unit: _object(unit, command, folder, known, scratch), units))
    library = scratch / LIBRARY
    shared = ["-shared", "-Wl,-dead_strip"] if sys.platform == "darwin" else ["-shared"]
    _run([*command, *shared, "-o", str(library), *map(str, objects), *LINK[sys.platform]], COMMON)
    return library


def _object(unit: Unit, command: Sequence[str], folder: Path, known: Sequence[str], scratch: Path) -> Path:
    """Compile a source, unless the same source was compiled with the same command before."""
    source, flags = unit
    compile_ = [*command, *FLAGS, *flags, f"-I{folder}", f"-I{COMMON}"]
    text = "\0".join([*compile_, *known, source.read_text(encoding="utf-8")])
    place = scratch / f"{source.stem}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.o"
    if not place.exists():
        scratch.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_suffix(f".{os.getpid()}")
        _run([*compile_, "-c", str(source), "-o", str(unfinished)])
        unfinished.replace(place)
    return place


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    """Run a compiler and return its output. If it fails, print all errors, and raise NotBuiltError with the first."""
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode == 0:
        return result.stdout
    print(result.stderr, file=sys.stderr)
    lines = [line for line in result.stderr.splitlines() if re.search(r"\berror\b|undefined reference", line)]
    first = (lines or result.stderr.splitlines() or [f"exit code {result.returncode}"])[0].strip()
    raise NotBuiltError(f"{Path(command[0]).name} failed: {first}")
