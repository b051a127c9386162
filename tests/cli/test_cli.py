"""The command line as a whole: help, version, exit codes, and what a quick answer must not import."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

import icy
from icy.cli import COMMANDS
from tests.cli.helpers import FC2L, ROOT, run

# -- help and lists ----------------------------------------------------------------------------------------------------


def test_help_names_every_command_and_how_to_complete() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert all(f"  {name} " in result.stdout for name in COMMANDS)
    assert "_ICY_COMPLETE=bash_source" in result.stdout


def test_version() -> None:
    assert run("--version").stdout == f"icy {icy.__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["list", "models"], ["probe", "--help"]])
def test_quick_answers_wait_for_neither_torch_nor_pandas(words: list[str]) -> None:
    code = (
        "import sys\nfrom icy.cli import main\n"
        f"try: main({words!r}, prog_name='icy')\n"
        "except SystemExit as end: code = end.code\n"
        "heavy = [m for m in ('torch', 'pandas', 'sklearn', 'matplotlib') if m in sys.modules]\n"
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


# -- bad input ---------------------------------------------------------------------------------------------------------


# -- real processes ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_closed_pipe_is_no_error_message() -> None:
    command = f"{sys.executable} -m icy list models | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("model")
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [(*FC2L, "-g", "perm", "--dry-run", "--quiet"), ("metrics", "perm", "--meanings", "2x3", "-q")]
)
def test_a_command_leaves_the_log_as_it_was(words: tuple[str, ...]) -> None:
    def state() -> list[tuple[int, list[logging.Handler]]]:
        return [(log.level, list(log.handlers)) for log in map(logging.getLogger, ("icy", "icy.metrics.evaluation"))]

    before = state()
    assert run(*words).exit_code == 0
    assert state() == before
