"""The command line: what it prints, where, and with which exit code; Ctrl-C, kill and resume in real processes."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import icy
from icy.cli import COMMANDS, main
from icy.cli.commands.e2e import e2e_command
from icy.cli.commands.probe import probe_command
from icy.cli.display import LiveWatcher
from icy.cli.options import SPREADS
from icy.cli.output import counted, duration, print_on_terminal
from icy.cli.progress import RowProgress
from icy.config.specs import EndToEndSpec, ProbeSpec
from icy.core.registry import registry
from icy.experiments.plan import Plan
from icy.experiments.probe import make_plan
from icy.training.job import Reading, Replicate

ROOT = Path(__file__).resolve().parent.parent
TINY = ("--meanings", "2x3", "--word-length", "2", "--hidden", "8", "--seeds", "2", "--target", "0.6", "--workers", "1")
FC2L = ("probe", "--model", "sender/FC2L", *TINY)


def run(*words: str, **more: Any) -> Result:
    """The command in this process."""
    return CliRunner().invoke(main, words, prog_name="icy", **more)


def assert_one_sentence(result: Result, *parts: str, code: int = 2) -> None:
    """An error of one line on stderr, nothing on stdout, no stack trace."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    for part in parts:
        assert part in result.stderr


@pytest.fixture
def out(tmp_path: Path) -> str:
    """A results folder that is not there yet."""
    return str(tmp_path / "results")


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[str]:
    """A plug-in file with a good and a bad sender, forgotten again after the test."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch, icy\n"
        "class Base(torch.nn.Module):\n"
        "    def __init__(self, space, message_length, vocab_size, hidden_size, **options):\n"
        "        super().__init__()\n"
        "        self.shape = (message_length, vocab_size + 1)\n"
        "        self.embed = torch.nn.Embedding(space.attributes * space.values, message_length * (vocab_size + 1))\n"
        "@icy.register_sender('CliGood')\n"
        "class Good(Base):\n"
        "    'A sum of embeddings.'\n"
        "    def forward(self, meanings):\n"
        "        return self.embed(meanings).sum(1).unflatten(-1, self.shape)\n"
        "@icy.register_sender('CliBad')\n"
        "class Bad(Base):\n"
        "    def forward(self, meanings):\n"
        "        return self.embed(meanings).sum(1)\n"
    )
    yield str(file)
    registry.plugin_files.clear()
    for name in ("CliGood", "CliBad"):
        registry._entries.pop(("sender", name), None)


# -- help and lists ----------------------------------------------------------------------------------------------------


def test_help_names_every_command_and_how_to_complete() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert all(f"  {name} " in result.stdout for name in COMMANDS)
    assert "_ICY_COMPLETE=bash_source" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"\n    icy {name}" in result.stdout


@pytest.mark.parametrize(
    ("command", "spec", "more"),
    [(probe_command, ProbeSpec, {"compare", "plot"}), (e2e_command, EndToEndSpec, {"plot"})],
    ids=["probe", "e2e"],
)
def test_options_are_the_fields_of_the_specification(command: click.Command, spec: type, more: set[str]) -> None:
    options = {str(p.name): p for p in command.params if isinstance(p, click.Option)}
    fields = {f.name: f.default for f in dataclasses.fields(spec)}
    assert set(options) - set(fields) == {"dry_run", "format_", "spread", "quiet", "verbose", *more}
    assert all(options[name].help for name in fields)
    for name in ("meanings", "hidden", "out"):
        assert f"[default: {fields[name]}]" in " ".join(run(str(command.name), "--help").stdout.split())


def test_spreads_are_those_of_the_tables() -> None:
    from icy.analysis import cells

    assert tuple(cells.SPREADS) == SPREADS


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
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_list_in_every_format() -> None:
    assert "sender/HierZero:GRU" in run("list", "models", "hierzero").stdout
    assert "HierAutoReg" not in run("list", "models", "hierzero").stdout
    assert run("list", "cells", "--format", "markdown").stdout.startswith("| cell | description | source |")
    rows = json.loads(run("list", "grammars", "--format", "json").stdout)
    assert {"grammar": "shuf", "for": "receiver"}.items() <= next(r for r in rows if r["grammar"] == "shuf").items()
    table = csv.DictReader(io.StringIO(run("list", "protocols", "--format", "csv").stdout))
    assert [row["protocol"] for row in table] == ["budget", "acquire", "generalise"]


def test_list_presets_gives_every_departure_its_reason() -> None:
    from icy.config.settings import PUBLISHED

    shown = run("list", "presets").stdout
    assert all(name in shown and departure.reason in shown for name, departure in PUBLISHED.items())


def test_list_knows_plugins(plugin: str) -> None:
    assert "sender/CliGood  A sum of embeddings." in run("list", "models", "CliG", "--plugin", plugin).stdout


# -- languages ---------------------------------------------------------------------------------------------------------


def test_show_prints_the_language() -> None:
    language = icy.make_language("rot+perm", "3x10")
    shown = run("show", "rot+perm").stdout
    assert all(f"{m}  {text}" in shown for m, text in language.examples().itertuples(index=False))
    assert "1000 messages are distinct (100.0%)" in shown


def test_show_all_has_a_column_per_grammar() -> None:
    assert run("show", "all", "--format", "csv").stdout.startswith(
        "meaning,concat,hol,pairsum,perm,proj,rot,shuf,shufdet\n"
    )
    assert ",shuf," not in run("show", "all", "--format", "csv", "--side", "sender").stdout


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz"])
def test_generate_writes_a_language_once(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"language.{suffix}"
    words = ("generate", "shufdet", "--meanings", "3x4", "--seed", "7", "-o", str(file))
    assert run(*words).exit_code == 0
    assert icy.Language.load(file) == icy.make_language("shufdet", "3x4", seed=7)
    assert_one_sentence(run(*words), "--force", code=1)
    assert run(*words, "--force").exit_code == 0


# -- probe -------------------------------------------------------------------------------------------------------------


def test_probe_prints_the_table_and_then_finds_it_on_file(out: str) -> None:
    first = run(*FC2L, "--grammar", "perm", "--out", out)
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("acquire: ")
    assert "sender/FC2L" in first.stdout
    assert "[1/4] FC2L concat seed 123: ratio 1.00 after" in first.stderr
    assert f"Written: {out}" in first.stderr
    again = run(*FC2L, "--grammar", "perm", "--out", out)
    assert again.stdout == first.stdout
    assert again.stderr == f"Nothing to train: 4 of 4 on file in {out}.\n"


def test_formats_leave_stdout_to_the_results(out: str) -> None:
    def shown(*words: str) -> str:
        result = run(*FC2L, "-g", "perm", "-o", out, *words)
        assert result.exit_code == 0, result.output
        return result.stdout

    (row,) = csv.DictReader(io.StringIO(shown("--format", "csv")))
    assert float(row["concat_mean"]) == 1
    records = json.loads(shown("--format", "json"))
    assert [(r["grammar"], r["seed"]) for r in records] == [(g, s) for g in ("concat", "perm") for s in (123, 124)]
    assert shown("--format", "latex").startswith("% needs \\usepackage{booktabs,graphicx}\n\\begin{table}")
    assert "| sender/FC2L |" in shown("--format", "markdown", "--spread", "sem")


def test_quiet_and_verbose(out: str) -> None:
    quiet = run(*FC2L, "-g", "concat", "-o", out, "-q")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    verbose = run(*FC2L, "-g", "perm", "-o", out, "-v")
    assert "FC2L" in verbose.stderr
    assert "engine 'broadcast'" in verbose.stderr
    assert ", engine broadcast" in verbose.stderr


def test_settings_options_and_plugins_reach_the_library(out: str, plugin: str) -> None:
    words = ("probe", "-m", "CliGood", "--plugin", plugin, *TINY, "-g", "concat", "-o", out)
    result = run(*words, "--set", "learning_rate=0.01", "--set", "check-every=25", "--option", "anything=[1, 2]")
    assert result.exit_code == 0, result.output
    record = icy.ProbeResult.load(out).records[0]
    assert record["config"]["settings"]["learning_rate"] == 0.01
    assert record["config"]["settings"]["check_every"] == 25
    assert record["config"]["options"] == {"anything": [1, 2]}


def test_a_failed_replicate_is_counted_and_tried_again(out: str) -> None:
    words = (*FC2L, "-g", "perm", "-o", out, "--target", "1", "--set", "max_steps=50")
    failed = run(*words)
    assert failed.exit_code == 1
    assert "failed" in failed.stdout
    assert "4 of 4 replicates failed; the same command with --rerun failed tries them again." in failed.stderr
    assert "Nothing to train" in run(*words).stderr
    assert "[4/4]" in run(*words, "--rerun", "failed").stderr


def test_rerun_never_shows_what_is_there(out: str) -> None:
    result = run(*FC2L, "-g", "perm", "-o", out, "--rerun", "never")
    assert result.exit_code == 0, result.output
    assert "No results." in result.stdout


def test_dry_run_trains_and_writes_nothing(out: str) -> None:
    result = run(*FC2L, "-m", "RNNZero:GRU", "-g", "perm", "-o", out, "--dry-run")
    assert result.exit_code == 0, result.output
    assert "4 of 4" in result.stdout
    assert "This is an estimate." in result.stderr
    assert not Path(out).exists()
    rows = json.loads(run(*FC2L, "-g", "perm", "-o", out, "--dry-run", "--format", "json").stdout)
    assert rows[0]["grammars"] == "concat perm"
    assert 0 < rows[0]["least_seconds"] < rows[0]["most_seconds"]


def test_rows_of_one_model_are_told_apart_by_their_hidden_size(out: str) -> None:
    words = (*FC2L, "-g", "perm", "-o", out, "--hidden", "4,8")
    planned = run(*words, "--dry-run")
    assert planned.exit_code == 0, planned.output
    head, *lines = planned.stdout.splitlines()
    assert "hidden size" in head
    assert [line.split()[:3] for line in lines] == [["sender/FC2L", "4", "128"], ["sender/FC2L", "8", "236"]]
    rows = json.loads(run(*words, "--dry-run", "--format", "json").stdout)
    assert [row["hidden_size"] for row in rows] == [4, 8]
    assert rows[0]["update_seconds"] != rows[1]["update_seconds"]
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "8 replicates of 1 model at 2 hidden sizes to train" in result.stderr
    assert "FC2L E=4 concat seed 123: " in result.stderr
    assert "FC2L E=8 perm seed 123: " in result.stderr
    assert "Nothing to train: 8 of 8" in run(*words).stderr


def test_generalise_from_plan_to_table(out: str) -> None:
    words = (*FC2L, "-g", "perm", "-o", out, "--protocol", "generalise", "--held-out", "0.3", "--target", "0.9")
    planned = run(*words, "--split", "combinations", "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert "to 20 times as many" in planned.stderr
    result = run(*words, "--split", "combinations")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("generalise: accuracy on meanings held out of training, target 0.9; 0.3 held out")
    assert "FC2L concat seed 123: held out 0." in result.stderr
    assert ", trained on " in result.stderr
    assert "Nothing to train: 4 of 4" in run(*words, "--split", "combinations").stderr
    capped = run(*words, "--cap", "1", "--set", "check_every=5", "--set", "batch_size=8", "-g", "hol")
    assert "(cut at the cap)" in capped.stderr
    assert "† not learnt to the target within 1 times concat's steps" in capped.stdout
    json.loads(run(*words, "--split", "combinations", "--format", "json").stdout)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--model", "HeirZero:GRU"], ["No sender or receiver is called 'HeirZero:GRU'", "HierZero:GRU"]),
        (["--model", "FC2L"], ["exists on both sides", "sender/FC2L"]),
        (["-m", "sender/FC2L", "-g", "shufdte"], ["No grammar is called 'shufdte'", "shufdet"]),
        (["-m", "sender/FC2L", "-g", "shuf"], ["'shuf'", "receivers only"]),
        (["-m", "sender/FC2L", "--meanings", "9x100", "--vocab-size", "40"], ["9x100", "memory"]),
        (["-m", "sender/FC2L", "--meanings", "5y10"], ["'5y10' is not a meaning space"]),
        (["-m", "sender/FC2L", "--seeds", ""], ["Seeds are a number"]),
        (["-m", "sender/FC2L", "--seeds", "0"], ["leaves none to train"]),
        (["-m", "sender/FC2L", "--target", "1.5"], ["target", "1.5"]),
        (["-m", "sender/FC2L", "--hidden", "64,a"], ["hidden size", "64,a"]),
        (["-m", "sender/FC2L", "--hidden", "0"], ["hidden size", "0"]),
        (["-m", "sender/FC2L", "--held-out", "0.3"], ["'acquire' holds out no meanings", "generalise"]),
        (["-m", "sender/FC2L", "--protocol", "generalise", "--meanings", "1x9"], ["one attribute"]),
        (["-m", "sender/FC2L", "--set", "learnig_rate=1"], ["learning_rate"]),
        (["-m", "sender/FC2L", "--device", "cuda:77"], ["There is no device 'cuda:77'"]),
    ],
)
def test_a_mistake_is_answered_in_one_sentence(words: list[str], parts: list[str], out: str) -> None:
    assert_one_sentence(run("probe", "--workers", "1", "--out", out, *words), *parts)
    assert not Path(out).exists()


def test_an_unwritable_folder_is_found_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "results")
    result = run(*FC2L, "-g", "perm", "-o", out, "-q")
    assert_one_sentence(result, "Cannot write", "--out", code=1)


@pytest.mark.parametrize("command", [["probe", "-m", "all"], ["list", "models"], ["check", "rot"]])
def test_a_broken_plugin_is_named(tmp_path: Path, command: list[str]) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import no_such_module\n")
    assert_one_sentence(run(*command, "--plugin", str(file)), "broken.py", "no_such_module", code=1)
    assert_one_sentence(run(*command, "--plugin", str(tmp_path / "absent.py")), "absent.py", "does not exist", code=1)


@pytest.mark.parametrize(
    "words",
    [
        ["probe"],
        ["prob"],
        ["list", "models", "--format", "xml"],
        ["probe", "-m", "sender/FC1L", "--protocol", "aquire"],
        ["probe", "-m", "sender/FC1L", "--set", "rate"],
    ],
)
def test_usage_errors_exit_with_2(words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


# -- check and doctor --------------------------------------------------------------------------------------------------


def test_check_reports_every_check(plugin: str) -> None:
    good = run("check", "rot")
    assert good.exit_code == 0
    assert "grammar/rot keeps its contract" in good.stdout
    bad = run("check", "CliBad", "--plugin", plugin, "--quiet")
    assert bad.exit_code == 1
    assert "FAIL  " in bad.stdout
    assert "sender/CliBad fails" in bad.stdout
    assert_one_sentence(run("check", "rott"), "rot")


def test_doctor_reports_and_judges(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    healthy = run("doctor", "--out", str(tmp_path / "new" / "results"))
    assert healthy.exit_code == 0, healthy.output
    assert all(word in healthy.stdout for word in ("python", "torch", "cores", "memory", "plug-ins", "can be written"))
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    assert run("doctor", "--out", str(tmp_path / "file" / "results")).exit_code == 1


def test_doctor_survives_what_it_reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = run("doctor", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "cannot tell" in result.stdout


# -- completion --------------------------------------------------------------------------------------------------------


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
        ("icy do", ":=", ["doctor"]),
    ],
)
def test_bash_completes_names(line: str, breaks: str, expected: list[str]) -> None:
    environment = {"_ICY_COMPLETE": "bash_complete", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    result = run(env={**environment, "COMP_BREAKS": breaks, "COMP_WORDS": "", "COMP_CWORD": "0"})
    assert result.stdout.split() == [f"plain,{word}" for word in expected]


def test_the_bash_script_hands_over_the_line() -> None:
    assert 'COMP_LINE="$COMP_LINE"' in run(env={"_ICY_COMPLETE": "bash_source"}).stdout


# -- display -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def plan(out: str) -> Plan:
    """Two seeds of FC2L on concat and perm."""
    return make_plan(ProbeSpec("sender/FC2L", "perm", meanings="2x3", word_length=2, hidden=8, seeds=2, out=out))


def test_remaining_time_is_bounded_once_concat_is_known(plan: Plan) -> None:
    row = RowProgress("FC2L", plan.rows[0])
    everyone = plan.rows[0].job.replicates
    row.read([Reading(r, 0, 0.1) for r in everyone], now=0.0)
    row.read([Reading(r, 100, 0.5) for r in everyone], now=4.0)
    assert row.remaining() is None
    for seed in (123, 124):
        row.filed({"grammar": "concat", "seed": seed, "failed": False, "baseline_steps": 100})
    # Two replicates of perm may go on to 20 * 100 steps; 400 replicate steps took 4 seconds.
    assert row.remaining() == pytest.approx(2 * 1900 * 4 / 400)
    assert [name for name, _, ended in row.accuracies() if ended] == ["concat"]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_live_display_fits_the_terminal(plan: Plan, width: int) -> None:
    console = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    watcher = LiveWatcher(console, clock=lambda: 5.0)
    watcher.started(plan)
    watcher.read(plan.rows[0].job, [Reading(Replicate(g, s), 50, 0.25) for g in ("concat", "perm") for s in (123, 124)])
    console.print(watcher.render())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "perm\N{NO-BREAK SPACE}0.25" in shown
    assert "FC2L" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_live_display_tells_hidden_sizes_apart(tmp_path: Path) -> None:
    sizes = ProbeSpec(
        ["sender/FC2L", "receiver/FC2L"], "perm", meanings="2x3", word_length=2, hidden="4,8", out=tmp_path
    )
    plan = make_plan(sizes)
    console = Console(width=100, file=io.StringIO(), force_terminal=True, color_system=None)
    watcher = LiveWatcher(console, clock=lambda: 5.0)
    watcher.started(plan)
    for row, accuracy in zip(plan.rows[:2], (0.25, 0.75), strict=True):
        watcher.read(row.job, [Reading(Replicate("perm", 123), 50, accuracy)])
    console.print(watcher.render())
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    for place, (label, accuracy) in enumerate((("sender/FC2L E=4", "0.25"), ("sender/FC2L E=8", "0.75"))):
        assert lines[2 * place].startswith(label)
        assert accuracy in lines[2 * place + 1]
    assert "0 of 4 rows" in lines[-1]
    assert "2 rows waiting" in lines[-1]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_bias_table_fits_the_terminal(tiny: icy.ProbeResult, width: int) -> None:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    print_on_terminal(tiny.bias_table(), console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    assert all(word in shown for word in ("sender/FC2L", "concat", "perm", "rot"))


def test_durations_are_short() -> None:
    assert [duration(s) for s in (0.2, 59, 60, 3725, 90_000)] == ["0.2 s", "59 s", "1 min", "1 h 2 min", "1 d 1 h"]


# -- real processes ----------------------------------------------------------------------------------------------------

SLOW = (
    "probe", "-m", "RNNZero:GRU", "-g", "perm", "--meanings", "3x4", "--word-length", "2", "--hidden", "64",
    "--seeds", "5", "--set", "check_every=20", "--workers", "2",
)  # fmt: skip
IN_ALL = 10  # replicates; so many that the first is on file long before the last


def start(*words: str) -> subprocess.Popen[str]:
    """The command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "icy.cli", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_record(process: subprocess.Popen[str], out: str, seconds: float = 60) -> None:
    """Until the first replicate is on file."""
    end = time.monotonic() + seconds
    while not list(Path(out).glob("records/*.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def files(out: str) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in Path(out).glob("records/*.json")}


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(out: str) -> None:
    process = start(*SLOW, "--out", out)
    assert process.stderr is not None
    seen = ""
    while f"[1/{IN_ALL}]" not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=30)
    kept = files(out)
    assert process.returncode == 130
    assert "Traceback" not in seen + rest
    assert f"Interrupted: {len(kept)} of {IN_ALL} finished and kept in {out}." in rest
    assert "run the same command again: icy probe -m RNNZero:GRU -g perm --meanings 3x4" in rest
    assert 1 <= len(kept) < IN_ALL
    assert (Path(out) / "results.csv").exists()

    again = run(*SLOW, "--out", out, "--workers", "1")
    assert again.exit_code == 0, again.output
    assert f"{counted(IN_ALL - len(kept), 'replicate')} of 1 model to train" in again.stderr
    assert f"{len(kept)} on file" in again.stderr
    assert kept.items() <= files(out).items()
    assert len(files(out)) == IN_ALL


def test_kill_loses_and_repeats_nothing_that_is_finished(out: str) -> None:
    process = start(*SLOW, "--out", out)
    wait_for_record(process, out)
    process.kill()
    process.communicate(timeout=30)  # ends once the workers, which share stderr, are gone too
    kept = files(out)
    assert 1 <= len(kept) < IN_ALL
    assert not (Path(out) / "results.csv").exists()

    again = run(*SLOW, "--out", out, "--workers", "1")
    assert again.exit_code == 0, again.output
    assert kept.items() <= files(out).items()
    assert len(files(out)) == IN_ALL
    assert not list(Path(out).rglob(".*"))


def test_a_closed_pipe_is_no_error_message() -> None:
    command = f"{sys.executable} -m icy.cli list models | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("model")
    assert done.stderr == ""


# -- icy e2e -----------------------------------------------------------------------------------------------------------

PAIR = ["e2e", "-s", "FC2L", "-r", "RNN1L:GRU", "--quick", "--seeds", "1", "--workers", "1", "--steps", "20"]


def test_e2e_trains_prints_and_draws(tmp_path: Path) -> None:
    figure = tmp_path / "curves.png"
    result = run(*PAIR, "--out", str(tmp_path / "o"), "--plot", str(figure))
    assert result.exit_code == 0, result.stderr
    assert "FC2L+RNN1L:GRU" in result.stdout
    assert "end-to-end accuracy" in result.stdout
    assert figure.stat().st_size > 10_000
    again = run(*PAIR, "--out", str(tmp_path / "o"))
    assert "Nothing to train" in again.stderr
    assert again.stdout == result.stdout
    as_csv = run(*PAIR, "--out", str(tmp_path / "o"), "--format", "csv").stdout.splitlines()
    assert as_csv[0].startswith("model,seeds,measure,none_mean")


def test_e2e_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = run(*PAIR, "--pretrain", "perm", "--dry-run", "--out", str(tmp_path / "o"))
    assert result.exit_code == 0, result.stderr
    assert "1 of 1" in result.stdout
    assert "games of 20 updates" in result.stderr
    assert not (tmp_path / "o").exists()


def test_e2e_whose_pre_training_fails_exits_with_1(tmp_path: Path) -> None:
    given = [*PAIR, "--pretrain", "hol", "--target", "0.999", "--set", "max_steps=50", "--out", str(tmp_path / "o")]
    result = run(*given)
    assert result.exit_code == 1
    assert "failed" in result.stdout
    assert "did not reach 0.999 within 50 updates" in result.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["e2e", "-s", "FC2L"], "Missing option '--receiver'"),
        (["e2e", "-r", "CNN"], "Missing option '--sender'"),
        (["e2e", "-s", "FC2L", "-r", "CNNN"], "did you mean CNN"),
        (["e2e", "-s", "FC2L", "-r", "CNN", "--plot", "x.gif"], "written as .png"),
        (["e2e", "-s", "FC2L", "-r", "CNN", "--plot", "no/such/x.png"], "does not exist"),
        (["e2e", "-s", "RNNSampling:GRU", "-r", "CNN"], "only in discr"),
        (["probe", "-m", "RNNSampling:GRU"], "use --representation discr"),
        (["probe", "-m", "sender/FC2L", "--representation", "gum"], "did you mean gumb"),
    ],
)
def test_mistakes_with_pairs_and_representations(words: list[str], sentence: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_check_in_every_representation() -> None:
    result = run("check", "receiver/FC1L", "sender/RNNSampling:RNN", "--representation", "all", "--quiet")
    assert result.exit_code == 0
    for label in ("receiver/FC1L (soft)", "receiver/FC1L (gumb)", "sender/RNNSampling:RNN (discr)"):
        assert f"{label} keeps its contract" in result.stdout
    assert "RNNSampling:RNN (soft)" not in result.stdout
