"""Extreme command lines and sweep files: no traceback, and, each in a process of its own, neither memory nor time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from icy.cli import main
from tests.cli.extremes import LINES, REFUSED, SWEEPS, write_files

MOST_MEMORY = 10**9
MOST_SECONDS = 15.0  # of the processor, whatever else the machine does
MEASURE = """
import resource, subprocess, sys
found = subprocess.run([sys.executable, "-m", "icy", *sys.argv[1:]])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"took {used.ru_maxrss * 1024} {used.ru_utime + used.ru_stime}")
sys.exit(found.returncode)
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the lines name."""
    found = tmp_path_factory.mktemp("extremes")
    write_files(found)
    for place, text in enumerate(SWEEPS.values()):
        (found / f"{place}.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return found


def name_of(words: tuple[str, ...]) -> str:
    return " ".join(word if len(word) < 30 else f"{word[:8]}..." for word in words if "folder}/out" not in word)


def assert_a_sentence(stderr: str) -> None:
    """What went wrong is told in a line, after what click says of the usage, and no value of thousands of digits."""
    said = [line for line in stderr.splitlines() if line.startswith("Error: ")]
    assert len(said) == 1, stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(("words", "codes"), LINES, ids=[name_of(words) for words, _ in LINES])
def test_a_line_ends_in_a_result_or_a_sentence(words: tuple[str, ...], codes: tuple[int, ...], folder: Path) -> None:
    result = CliRunner().invoke(main, [word.replace("{folder}", str(folder)) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code in codes, result.output
    if result.exit_code:
        assert_a_sentence(result.stderr)


@pytest.mark.parametrize("place", range(len(SWEEPS)), ids=list(SWEEPS))
def test_a_sweep_file_ends_in_a_sentence(place: int, folder: Path) -> None:
    result = CliRunner().invoke(main, ["sweep", str(folder / f"{place}.toml"), "--dry-run", "-o", str(folder / "out")])
    assert isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code in REFUSED
    assert_a_sentence(result.stderr)


def assert_runs_within_limits(words: list[str], codes: tuple[int, ...]) -> None:
    """Run a command in a process of its own, and measure its peak memory in bytes and its time."""
    command = [sys.executable, "-c", MEASURE, *words]
    found = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=20 * MOST_SECONDS,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert found.returncode in codes
    assert "Traceback" not in found.stderr
    _, peak, seconds = next(line for line in found.stdout.splitlines() if line.startswith("took ")).split()
    assert int(peak) < MOST_MEMORY
    assert float(seconds) < MOST_SECONDS


@pytest.mark.stress
@pytest.mark.parametrize(("words", "codes"), LINES, ids=[name_of(words) for words, _ in LINES])
def test_a_line_takes_neither_memory_nor_time(words: tuple[str, ...], codes: tuple[int, ...], folder: Path) -> None:
    assert_runs_within_limits([word.replace("{folder}", str(folder)) for word in words], codes)


@pytest.mark.stress
@pytest.mark.parametrize("place", range(len(SWEEPS)), ids=list(SWEEPS))
def test_a_sweep_file_takes_neither_memory_nor_time(place: int, folder: Path) -> None:
    words = ["sweep", str(folder / f"{place}.toml"), "--dry-run", "-o", str(folder / "out")]
    assert_runs_within_limits(words, REFUSED)
