"""The wheel, the checkout without an installation, and a quick `import icy`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
from filelock import FileLock

import icy
from icy.core.native import build

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ("icy/models/native", "icy/metrics/topographic/native")  # folders of the wheel with a library
FOLDERS = {"icy": "icy", "models": "icy/models", "grammars": "icy/grammars", "analysis": "icy/analysis"}
LINKED = ("models", "grammars", "analysis")

# An editable install answers for `icy` too, through a finder of its own, and would hide what these tests look for.
NO_EDITABLE_FINDER = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if '__editable__' not in repr(f)]\n"

SPAWN = """
import importlib
import multiprocessing

def where(module):
    return importlib.import_module(module).__name__

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(where, ("icy.grammars",)) == "icy.grammars"
"""


needs_compiler = pytest.mark.skipif(not build.possible(), reason="no native library can be built here")


def run_python(*arguments: str, cwd: Path, path: Path | None = None, settings: Mapping[str, str] | None = None) -> str:
    """Run this interpreter in `cwd` with only `path` on PYTHONPATH; return its output. Fail if it has an error."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "ICY_NATIVE"}}
    environment |= settings or {}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_of_sources(copy: Path, *folders: str) -> None:
    """Copy the files that a build needs, without an old build/ folder."""
    for name in ("setup.py", "pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy)
    for folder in folders:
        shutil.copytree(
            ROOT / folder,
            copy / folder,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__", build.LIBRARY, build.NOTE),
        )


def built_wheel(tmp_path_factory: pytest.TempPathFactory, *options: str, **settings: str) -> Path:
    """Build a wheel from a copy of the sources."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    copy_of_sources(copy, *FOLDERS)
    command = ("-m", "build", "--no-isolation", *options, "--outdir", str(out), str(copy))
    run_python(*command, cwd=out, settings=settings)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return a wheel that is built from an sdist, as for a release. The workers of one run share it."""
    if worker_id == "master":
        return built_wheel(tmp_path_factory)
    place = tmp_path_factory.getbasetemp().parent / "wheel.txt"
    with FileLock(f"{place}.lock"):
        if not place.exists():
            place.write_text(str(built_wheel(tmp_path_factory)))
    return Path(place.read_text())


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the wheel installs."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(params=["installed", "checkout"])
def icy_path(request: pytest.FixtureRequest) -> Path:
    """The folder to import icy from: installed from the wheel, and the repository itself."""
    if request.param == "checkout":
        return ROOT
    return Path(request.getfixturevalue("installed"))


@pytest.fixture
def users_folder(tmp_path: Path) -> Path:
    """A user's folder with other folders models/ and grammars/; only models/ is a package."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("raise ImportError('the wrong models')\n")
    (tmp_path / "grammars").mkdir()
    return tmp_path


def is_shipped(file: Path) -> bool:
    """Whether a file of the source folders belongs in the wheel."""
    data = {".csv", ".json", ".parquet", ".safetensors", ".toml"}
    pages = {".css", ".html", ".js", ".md", ".svg"}  # of the service of the study
    return file.suffix in {".py", ".pyi", *data, *pages} or file.name == "py.typed"


def files_on_disk() -> list[str]:
    """The files the wheel should hold, under the names they are installed as; the links in icy/ are not followed."""
    found = []
    for folder, target in FOLDERS.items():
        for parent, _, names in os.walk(ROOT / folder, followlinks=False):
            place = Path(target) / Path(parent).relative_to(ROOT / folder)
            found += [(place / name).as_posix() for name in names if is_shipped(Path(name))]
    return found


@pytest.mark.process
def test_wheel_holds_every_file_once_and_only_icy(wheel: Path) -> None:
    """A folder without __init__.py, or data that setup.py does not name, would be left out silently."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in names} == {"icy"}
    native = [name for name in names if Path(name).name in {build.LIBRARY, build.NOTE}]
    assert Counter(set(names) - set(native)) == Counter(files_on_disk())
    assert len(native) == len(set(native)) == len(NATIVE)


@pytest.mark.process
@needs_compiler
def test_a_wheel_with_native_libraries_is_for_any_python_of_one_kind_of_machine(wheel: Path, installed: Path) -> None:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")
    assert {f"{folder}/{build.LIBRARY}" for folder in NATIVE} == {
        file.relative_to(installed).as_posix() for file in installed.rglob(build.LIBRARY)
    }
    assert not list(installed.rglob("*.cpp"))
    (information,) = installed.glob("*.dist-info/WHEEL")
    assert f"Root-Is-Purelib: false\nTag: py3-none-{platform}\n" in information.read_text()


@pytest.mark.process
@needs_compiler
def test_native_libraries_load_where_no_compiler_is(installed: Path, tmp_path: Path) -> None:
    """The installed wheel needs no compiler."""
    code = (
        "import shutil; assert shutil.which('c++') is None\n"
        "from icy.core import native\n"
        f"for package in {[folder.replace('/', '.') for folder in NATIVE]}:\n"
        "    print(native.why_not(package), native.load(package).path)"
    )
    told = run_python("-c", NO_EDITABLE_FINDER + code, cwd=tmp_path, path=installed, settings={"PATH": str(tmp_path)})
    assert told.splitlines() == [f"None {installed / folder / build.LIBRARY}" for folder in NATIVE]


@pytest.mark.process
def test_without_a_compiler_a_wheel_is_for_any_machine(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """The wheel can be installed, and says why it has no libraries."""
    built = built_wheel(tmp_path_factory, "--wheel", CXX="no-such-compiler")
    assert built.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path)
    (information,) = tmp_path.glob("*.dist-info/WHEEL")
    assert "Root-Is-Purelib: true\nTag: py3-none-any\n" in information.read_text()
    code = NO_EDITABLE_FINDER + "from icy.core import native; print(native.why_not('icy.models.native'))"
    told = run_python("-c", code, cwd=tmp_path, path=tmp_path)
    assert re.match(
        r"not built: (no C\+\+ compiler was found when icy was installed|native code does not support)", told
    )


@pytest.mark.process
def test_wheel_metadata(wheel: Path) -> None:
    """The version is from icy/version.py, and the wheel has the command and the license."""
    with zipfile.ZipFile(wheel) as archive:
        information = {n.split(".dist-info/")[1]: archive.read(n).decode() for n in archive.namelist() if "-info/" in n}
    assert f"\nVersion: {icy.__version__}\n" in information["METADATA"]
    assert "icy = icy.cli:main" in information["entry_points.txt"]
    assert any(name.endswith("LICENSE") for name in information)


@pytest.mark.process
@pytest.mark.parametrize("links", [True, False])
def test_an_editable_install_is_a_path_that_type_checkers_follow(tmp_path: Path, links: bool) -> None:
    """The path leads to icy alone. Without links, as on Windows, setuptools' import hook finds the folders."""
    copy, site = tmp_path / "source", tmp_path / "site"
    copy.mkdir()
    copy_of_sources(copy, *FOLDERS, *(["src"] if links else []))
    run_python("-c", f"from setuptools import build_meta; build_meta.build_editable({str(tmp_path)!r})", cwd=copy)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(site)
    assert bool(list(site.glob("__editable__*finder.py"))) is not links
    assert [(copy / "models/native" / file).exists() for file in (build.LIBRARY, build.NOTE)].count(True) == 1
    assert (copy / "models/native" / build.LIBRARY).exists() is build.possible()
    if links:
        (path,) = next(site.glob("*.pth")).read_text().split()
        assert [found.name for found in Path(path).iterdir()] == ["icy"]
        code = "import icy, icy.models, icy.analysis; print(icy.analysis.__file__)"
        assert Path(run_python("-c", code, cwd=tmp_path, path=Path(path)).strip()).samefile(
            copy / "analysis/__init__.py"
        )


@pytest.mark.process
def test_stray_folders_of_the_user_do_no_harm(icy_path: Path, users_folder: Path) -> None:
    """The folder of a notebook is first on the path, and a user's folder may contain models/."""
    code = NO_EDITABLE_FINDER + "import icy.models, icy.grammars; print(icy.models.__name__, icy.__file__)"
    name, file = run_python("-c", code, cwd=users_folder, path=icy_path).split(maxsplit=1)
    assert name == "icy.models"
    assert Path(file.strip()).is_relative_to(icy_path)


@pytest.mark.parametrize("folder", LINKED)
def test_links_are_relative(folder: str) -> None:
    """The links must work in every clone."""
    link = ROOT / "icy" / folder
    assert link.is_symlink()
    assert os.readlink(link) == f"../{folder}"
    assert os.readlink(ROOT / "src" / "icy") == "../icy"


def test_runs_from_the_repository_root_without_install() -> None:
    """The links make icy.models importable where nothing is installed."""
    code = NO_EDITABLE_FINDER + "import icy.models, icy.grammars, icy.analysis; print(icy.models.__file__)"
    assert Path(run_python("-c", code, cwd=ROOT).strip()).is_relative_to(ROOT / "icy")


@pytest.mark.process
def test_spawned_workers_import_icy(icy_path: Path, tmp_path: Path) -> None:
    """A spawned worker starts with a bare interpreter."""
    script = tmp_path / "work.py"
    script.write_text(SPAWN)
    run_python(str(script), cwd=tmp_path, path=icy_path)


def test_import_icy_is_light() -> None:
    """`import icy` does not load heavy libraries."""
    code = "import icy, sys; print(*sorted({'torch', 'pandas', 'matplotlib', 'scipy', 'numpy'} & set(sys.modules)))"
    assert run_python("-c", code, cwd=ROOT).strip() == ""


@pytest.mark.parametrize("arguments", [["--help"], ["list", "models"], ["list", "grammars"]], ids=" ".join)
def test_quick_commands_leave_torch_alone(arguments: list[str]) -> None:
    """Lists and help should not wait seconds for the import of torch."""
    code = f"import sys; from icy.cli import main; main({arguments!r}, standalone_mode=False); "
    run_python("-c", code + "assert 'torch' not in sys.modules", cwd=ROOT)


def test_public_names_load(subtests: pytest.Subtests) -> None:
    """Every public name gives an object, and the same object each time."""
    for name in icy.__all__:
        with subtests.test(name):
            assert getattr(icy, name) is getattr(icy, name)


def test_dir_shows_public_names_alone() -> None:
    """Completion in an interactive shell shows only public names."""
    assert dir(icy) == sorted([*icy.__all__, "list"])
    assert {"analysis", "games", "grammars", "metrics", "models", "s2b", "study", "testing"} <= set(dir(icy))


def test_no_submodule_hides_a_public_function() -> None:
    """Importing a submodule `icy.probe` would replace the function of that name."""
    modules = {path.stem for path in (ROOT / "icy").iterdir()}
    assert modules & set(icy.__all__) == {name for name in icy.__all__ if isinstance(getattr(icy, name), ModuleType)}


def test_unknown_attribute_is_an_attribute_error() -> None:
    """The error is the same as for any module, so hasattr and copy tools work."""
    with pytest.raises(AttributeError, match="No icy attribute prob"):
        getattr(icy, "prob")  # noqa: B009


def test_no_committed_file_names_a_folder_of_one_machine() -> None:
    """An absolute path from the author's machine is useless on other machines."""
    pattern = "(^|[^[:alnum:]_./~-])/(" + "|".join(["work", "root", "home"]) + ")/"
    try:
        grep = subprocess.run(["git", "grep", "-nIE", pattern], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if grep.returncode == 128:
        pytest.skip(f"not a git checkout: {grep.stderr}")
    assert grep.stdout == ""
