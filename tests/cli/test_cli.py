"""The command line as a whole: help, version, completion, mistyped words, and what a quick answer must not import."""

from __future__ import annotations

import io
import logging
import subprocess
import sys

import pytest
from rich.console import Console

import icy
from icy.cli import COMMANDS
from icy.cli.output import print_on_terminal
from icy.core.entry import ENTRY_KINDS
from icy.core.text import duration
from tests.cli.helpers import FC2L, ROOT, run

# -- the command line as a whole ---------------------------------------------------------------------------------------


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
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr


# -- real processes ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_closed_pipe_is_no_error_message() -> None:
    command = f"{sys.executable} -m icy list models | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=900)
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


# -- mistyped and misplaced words: the sentence says what was probably meant -------------------------------------------


def test_help_is_printed_whatever_else_is_typed() -> None:
    assert run("probe", "foo", "--help").exit_code == 0


def test_lists_have_names_in_the_singular_and_the_plural() -> None:
    assert all(icy.describe(kind) for kind in ENTRY_KINDS)
    one, several = run("list", "sender", "FC*"), run("list", "models", "sender/FC*")
    assert one.stdout == several.stdout != ""
    assert run("list", "speaker").stdout.count("speaker/") == run("list", "players").stdout.count("speaker/")


def test_an_empty_line_prints_the_help() -> None:
    assert "Usage: " in (done := run()).output
    assert "Traceback" not in done.output
    assert done.exit_code == run("s2b").exit_code


# -- completion in bash ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "breaks", "expected"),
    [
        ("icy probe --model HierZero:G", ":=", ["GRU"]),
        ("icy probe --model HierZero:G", "=", ["HierZero:GRU"]),
        ("icy probe --model=hierzero:g", ":=", ["GRU"]),
        ("icy probe -m sender/FC1", ":=", ["sender/FC1L"]),
        ("icy probe -m X -g rot+pe", ":=", ["rot+perm"]),
        ("icy probe --protocol ", ":=", ["budget", "acquire", "generalise"]),
        ("icy show shu", ":=", ["shuf", "shufdet"]),
        ("icy list pre", ":=", ["presets"]),
        ("icy s2b text --model scripted-o", ":=", ["scripted-oracle"]),
        ("icy do", ":=", ["doctor"]),
    ],
)
def test_bash_completes_names(line: str, breaks: str, expected: list[str]) -> None:
    environment = {"_ICY_COMPLETE": "bash_complete", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    result = run(env={**environment, "COMP_BREAKS": breaks, "COMP_WORDS": "", "COMP_CWORD": "0"})
    assert result.stdout.split() == [f"plain,{word}" for word in expected]


def test_the_bash_script_hands_over_the_line() -> None:
    assert 'COMP_LINE="$COMP_LINE"' in run(env={"_ICY_COMPLETE": "bash_source"}).stdout


# -- output: tables that fit the terminal, and durations ---------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 80, 120])
def test_bias_table_fits_the_terminal(tiny: icy.ProbeResult, width: int) -> None:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    print_on_terminal(tiny.bias_table(), console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    assert all(word in shown for word in ("sender/FC2L", "concat", "perm", "rot"))


def test_durations_are_short() -> None:
    assert [duration(s) for s in (0.2, 59, 60, 3725, 90_000)] == ["0.2 s", "59 s", "1 min", "1 h 2 min", "1 d 1 h"]


@pytest.mark.process
def test_commands_work_without_docstrings() -> None:
    program = (
        "import click\n"
        "from icy.cli import main\n"
        "def build(command, ctx):\n"
        "    command.get_help(ctx)\n"
        "    for name in command.list_commands(ctx) if isinstance(command, click.Group) else ():\n"
        "        build(command.get_command(ctx, name), click.Context(command, parent=ctx, info_name=name))\n"
        "build(main, click.Context(main, info_name='icy'))\n"
        "main(['show', 'rot', '--meanings', '3x4'])\n"
    )
    done = subprocess.run([sys.executable, "-OO", "-c", program], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "64 distinct messages" in done.stdout
