"""Check that the tests notice bugs that would change a published number: `python -m tests.stress.mutants`.

Each mutant is one small change of icy's Python: off by one, > for >=, a population's deviation for a sample's, a wrong
axis, a clip that is left out. It is made in a copy of the repository, and the tests of its own module run there, until
one fails: the default suite first, then the marked tests. The same tests must pass in a copy without a change.
Native cores are not built again, so no mutant is in C++. Takes ten to twenty minutes, writes mutants.md, and ends with
1 if a mutant is not caught.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from icy.core.text import markdown_table
from results.pages import describe_versions, fill_template

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_suffix(".md")
BUILT = ("_native.so", "_native.txt")  # which git ignores, and the tests of native cores need
PATIENCE = 900.0  # seconds for the tests of a mutant
MARKED = "contract or native or process or docs or slow"  # tests outside the default suite
FAILED, PASSED = 1, 0  # exit codes of pytest; any other means that the tests did not run


@dataclass(frozen=True)
class Mutant:
    """A bug.

    Attributes:
        changes: what published number it would change.
        file: where it is, below the repository's root.
        text: what stands there, once.
        replacement: what stands there instead.
        tests: folders or modules of tests that must notice.
    """

    changes: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]

    def fault(self, root: Path) -> str | None:
        """Return why it cannot be made, in words; None if it can."""
        found = (root / self.file).read_text(encoding="utf-8").count(self.text)
        return None if found == 1 else f"{self.file} holds {self.text!r} {found} times, not once"

    def make(self, root: Path) -> None:
        """Change the file of a copy of the repository."""
        if (fault := self.fault(root)) is not None:
            raise SystemExit(fault)
        path = root / self.file
        path.write_text(path.read_text(encoding="utf-8").replace(self.text, self.replacement), encoding="utf-8")


MUTANTS = [
    Mutant(changes, module["file"], text, replacement, tuple(module["tests"]))
    for module in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["module"]
    for changes, text, replacement in module["mutants"]
]


@dataclass(frozen=True)
class Result:
    """What the tests made of a mutant.

    Attributes:
        mutant: which.
        caught: whether a test failed.
        test: the first that failed, or "".
        seconds: until then.
        by_default: whether the test is one of the default suite.
    """

    mutant: Mutant
    caught: bool
    test: str
    seconds: float
    by_default: bool


@contextmanager
def copied() -> Iterator[Path]:
    """Make a copy of what git tracks, with what was built."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    built = [str(path.relative_to(ROOT)) for name in BUILT for path in ROOT.rglob(name)]
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        for name in [*filter(None, tracked.split("\0")), *built]:
            if (ROOT / name).is_symlink() or (ROOT / name).exists():  # what was removed may still be tracked
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, Path(folder) / name, follow_symlinks=False)
        yield Path(folder)


def tried(mutant: Mutant) -> Result:
    """Return what tests make of a mutant."""
    started = time.perf_counter()
    test = first_failure(mutant.tests, mutant)
    by_default = test is not None
    test = test or first_failure([*mutant.tests, "-m", MARKED], mutant)
    return Result(mutant, test is not None, test or "", time.perf_counter() - started, by_default)


def first_failure(tests: Sequence[str], mutant: Mutant | None = None) -> str | None:
    """Run tests in a copy of the repository, with a mutant or without; return the first that fails, or None.

    Raises:
        SystemExit: they do not run.
    """
    with copied() as root:
        if mutant is not None:
            mutant.make(root)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-rfE", *tests]
        environment = {**os.environ, "PYTHONPATH": str(root / "src"), "TMPDIR": str(root), "COLUMNS": "1000"}
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (FAILED, PASSED) or (done.returncode == FAILED) != (found is not None):
        raise SystemExit(f"The tests {' '.join(tests)} did not run:\n{done.stdout}{done.stderr}")
    return found[1] if found else None


def cells(mutant: Mutant) -> list[str]:
    """Return the first cells of a mutant's line, which tell it from all others."""
    shown = [f"`{' '.join(text.split())}`" if text else "nothing" for text in (mutant.text, mutant.replacement)]
    return [mutant.changes, f"`{mutant.file}`", " to ".join(shown)]


def line(result: Result) -> str:
    """Return the line of the table of what was tried."""
    by = f"`{result.test.removeprefix('tests/')}`" if result.caught else MISSED
    by += LATER if result.caught and not result.by_default else ""
    return row(*cells(result.mutant), by, f"{result.seconds:.0f}")


def row(*found: str) -> str:
    """Return a line of the table, or its beginning."""
    return markdown_table(found, [], markup=True).splitlines()[0]


def page(lines: Sequence[str], versions: str) -> str:
    """Return the page of these lines, and of earlier ones of mutants that are still the same."""
    earlier = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    begins = [row(*cells(mutant)) for mutant in MUTANTS]
    found = [next((one for one in (*lines, *earlier) if one.startswith(begin)), None) for begin in begins]
    told = [one for one in found if one is not None]
    return fill_template(
        PAGE,
        versions=versions,
        count=len(MUTANTS),
        caught=sum(MISSED not in one for one in told),
        by_default=sum(MISSED not in one and LATER not in one for one in told),
        files=len({mutant.file for mutant in MUTANTS}),
        table="\n".join([markdown_table(HEAD, [], numbers=[4]), *told]),
    )


HEAD = ["what it changes", "file", "mutant", "caught by", "seconds"]
MISSED = "**not caught**"
LATER = " (a marked suite)"


def main() -> None:
    """Try mutants, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "only", nargs="*", help="parts of files' names or of what changes; other lines of the page stay"
    )
    given = parser.parse_args()
    chosen = [m for m in MUTANTS if not given.only or any(part in f"{m.file} {m.changes}" for part in given.only)]
    if (test := first_failure(sorted({test for mutant in chosen for test in mutant.tests}))) is not None:
        raise SystemExit(f"{test} fails without a mutant.")
    lines = []
    for mutant in chosen:
        lines.append(line(tried(mutant)))
        print(lines[-1], flush=True)
    PAGE.write_text(page(lines, describe_versions()), encoding="utf-8")
    sys.exit(any(MISSED in one for one in lines))


if __name__ == "__main__":
    main()
