"""Loading native libraries, and building them."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from icy.core import native
from icy.core.errors import IcyError, InvalidSettingError
from icy.core.native import build

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("icy.models.native", "icy.metrics.topographic.native")
NEWEST_GLIBC = (2, 17)  # of manylinux_2_17, for CentOS 7 and newer systems
WIDTHS = {"baseline": 16, "neon": 16, "avx2": 32, "avx512": 64}
SOURCE = (
    '#include "export.h"\n#include <vector>\nICY_EXPORT(int, twice)(int x) { std::vector<int> v(x, 2); return %s; }\n'
)

needs_compiler = pytest.mark.skipif(not build.possible(), reason="no native library can be built here")


@pytest.fixture(autouse=True)
def setting_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the best variant, independent of the environment, and clear the cache of libraries."""
    monkeypatch.delenv(native.SETTING, raising=False)
    native._find.cache_clear()
    yield
    native._find.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package with a source and without a library."""
    folder = tmp_path / "a_room" / "native"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder.parent / "__init__.py").touch()
    (folder / "twice.cpp").write_text(SOURCE % "x * v[0]")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("a_room", "a_room.native"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


def built(folder: Path) -> str:
    """Build a package's library in place."""
    return build.build(folder, folder, folder.parents[1] / "scratch")


def libraries() -> list[native.Library]:
    """Return icy's own libraries."""
    found = [native.load(package) for package in PACKAGES]
    return [library for library in found if library is not None]


@needs_compiler
@pytest.mark.parametrize("package", PACKAGES)
def test_library_is_built_here(package: str) -> None:
    """If a compiler is available, installation builds a library that can be loaded."""
    assert native.why_not(package) is None
    library = native.load(package)
    assert library is not None
    assert library.variant == library.usable[-1]
    assert native.load(package) is library


@needs_compiler
def test_variants_differ_in_their_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    library = native.load("icy.models.native")
    assert library is not None
    for variant in library.usable:
        monkeypatch.setenv("ICY_NATIVE", variant)
        forced = native.load("icy.models.native")
        assert forced is not None
        assert forced.variant == variant
        assert forced.function("vector_bytes", ctypes.c_int)() == WIDTHS[variant]


def test_native_code_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICY_NATIVE", "off")
    assert native.load("icy.models.native") is None
    assert native.why_not("icy.models.native") == "switched off by ICY_NATIVE=off"


def test_impossible_settings_are_rejected(monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
    monkeypatch.setenv("ICY_NATIVE", "avx")
    with pytest.raises(IcyError, match=r"No value of ICY_NATIVE is called 'avx'.*avx2"):
        native.load("icy.models.native")
    foreign = "neon" if "avx2" in build.variants() else "avx2"
    monkeypatch.setenv("ICY_NATIVE", foreign)
    with pytest.raises(InvalidSettingError, match=f"ICY_NATIVE={foreign} is not possible"):
        native.load("icy.models.native")
    with pytest.raises(InvalidSettingError, match="not built"):
        native.load("a_room.native")


@pytest.mark.process
@needs_compiler
def test_life_of_a_library(package: Path) -> None:
    """A library is missing, built, used, older than its sources, not compilable, and usable again."""
    assert native.load("a_room.native") is None
    assert native.why_not("a_room.native") == f"not built: `{native.REBUILD}` in a checkout builds it"

    def now() -> str | None:
        native._find.cache_clear()
        return native.why_not("a_room.native")

    assert re.search(r"built for (.*, )?(avx512|neon)$", built(package))
    assert now() is None
    library = native.load("a_room.native")
    assert library is not None
    assert library.function("twice", ctypes.c_int, ctypes.c_int)(21) == 42
    with pytest.raises(AttributeError, match="thrice"):
        library.function("thrice", None)

    (package / "twice.cpp").write_text(SOURCE % "missing")
    assert now() == f"older than its sources; `{native.REBUILD}` builds it again"
    assert "missing" in built(package)
    assert re.fullmatch(
        r"not built: .* failed: twice\.cpp.*error: .*missing.*|not built: .*error: .*missing.*", now() or ""
    )
    assert not (package / build.LIBRARY).exists()

    (package / "twice.cpp").write_text(SOURCE % "x * v[0]")
    built(package)
    assert now() is None
    assert not (package / build.NOTE).exists()


@pytest.mark.process
@needs_compiler
def test_only_what_changed_is_compiled_again(package: Path, tmp_path: Path) -> None:
    (package / "other.cpp").write_text(
        '#include "export.h"\n#include "some.h"\nICY_EXPORT(int, other)() { return SOME; }\n'
    )
    (package / "some.h").write_text("#define SOME 1\n")

    def objects() -> set[Path]:
        built(package)
        return set((tmp_path / "scratch").glob("*.o"))

    first = objects()
    assert len(first) == 2 + 2 * len(build.variants())
    (package / "other.cpp").write_text((package / "other.cpp").read_text() + "\n")
    second = objects()
    assert {file.stem.partition("-")[0] for file in second - first} == {"other", "dispatch"}
    (package / "some.h").write_text("#define SOME 2\n")
    assert {file.stem.partition("-")[0] for file in objects() - second} >= {"other", "twice"}


def test_without_a_compiler(package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The build succeeds with one line of output, and icy reports why the library is missing."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    (package / build.LIBRARY).write_text("a library of earlier sources")
    if build.variants():
        assert built(package) == (
            f"{package}: native library not built: no C++ compiler was found when icy was installed"
        )
        assert native.why_not("a_room.native") == "not built: no C++ compiler was found when icy was installed"
        monkeypatch.setenv("CXX", "no-such-compiler -O2")
        assert built(package).endswith("no C++ compiler was found when icy was installed (CXX=no-such-compiler -O2)")
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    assert "native code does not support pdp11" in built(package)


def test_a_library_of_another_machine_is_not_used(package: Path) -> None:
    (package / build.LIBRARY).write_bytes(b"\x7fELF of something else")
    assert (native.why_not("a_room.native") or "").startswith("built for another machine than this")


def test_a_missing_package_gives_a_reason() -> None:
    assert native.why_not("icy.core.no_such") == "not found: the package icy.core.no_such does not exist"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no glibc")
@pytest.mark.parametrize("package", PACKAGES)
def test_libraries_need_only_an_old_glibc(package: str) -> None:
    """So a wheel works on every Linux of the last ten years; the tag manylinux_2_17 requires this."""
    library = native.load(package)
    if library is None:
        pytest.skip(str(native.why_not(package)))
    content = library.path.read_bytes()
    versions = {(int(a), int(b)) for a, b in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", content)}
    assert versions
    assert max(versions) <= NEWEST_GLIBC
    assert not re.search(rb"GLIBCXX_|CXXABI_|GCC_\d", content)
    assert set(re.findall(rb"\0(lib[\w+-]+)\.so", content)) <= {b"libc", b"libm"}


@pytest.mark.skipif(shutil.which("nm") is None or sys.platform != "linux", reason="needs nm, and ELF files")
@pytest.mark.parametrize("package", PACKAGES)
def test_libraries_export_only_variants_of_functions(package: str) -> None:
    library = native.load(package)
    if library is None:
        pytest.skip(str(native.why_not(package)))
    listed = subprocess.run(["nm", "-D", "--defined-only", library.path], capture_output=True, text=True, check=True)
    names = {line.split()[-1] for line in listed.stdout.splitlines()}
    by_variant = {v: {n.removesuffix(f"_{v}") for n in names if n.endswith(f"_{v}")} for v in build.variants()}
    assert len({frozenset(functions) for functions in by_variant.values()}) == 1
    assert {n for n in names if n.rpartition("_")[2] not in by_variant} == {"icy_built", "icy_runs", "icy_sources"}


def test_importing_icy_loads_no_library() -> None:
    code = (
        "import icy, icy.models, icy.metrics, icy.training\n"
        "maps = open('/proc/self/maps').read() if __import__('sys').platform == 'linux' else ''\n"
        "assert '_native.so' not in maps"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
