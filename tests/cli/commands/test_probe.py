"""`icy probe` and `icy e2e`: what they print, where, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

import icy
from tests.cli.helpers import FC2L, TINY, assert_one_sentence, run
from tests.cores import FASTEST

# -- `icy probe`: what it prints, where, and with which exit code ------------------------------------------------------


# -- probe -------------------------------------------------------------------------------------------------------------


def test_probe_prints_the_table_and_then_finds_it_on_file(out: str) -> None:
    first = run(*FC2L, "--grammar", "perm", "--out", out)
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("acquire: ")
    assert "sender/FC2L" in first.stdout
    assert re.search(r"FC2L concat seed 123: ratio 1\.00, target at update \d+ of \d+, accuracy", first.stderr)
    assert "[4/4] FC2L" in first.stderr
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
    assert f"engine '{FASTEST}'" in verbose.stderr
    assert f", engine {FASTEST}" in verbose.stderr


def test_settings_options_and_plugins_reach_the_library(out: str, plugin: str) -> None:
    words = ("probe", "-m", "CliGood", "--plugin", plugin, *TINY, "-g", "concat", "-o", out)
    result = run(*words, "--set", "learning_rate=0.01", "--set", "check-every=25", "--option", "anything=[1, 2]")
    assert result.exit_code == 0, result.output
    record = icy.ProbeResult.load(out).records[0]
    assert record["config"]["settings"]["learning_rate"] == 0.01
    assert record["config"]["settings"]["check_every"] == 25
    assert record["config"]["options"] == {"anything": [1, 2]}


@pytest.mark.slow
def test_a_failed_replicate_is_counted_and_tried_again(out: str) -> None:
    words = (*FC2L, "-g", "perm", "-o", out, "--target", "1", "--set", "max_steps=50")
    failed = run(*words)
    assert failed.exit_code == 1
    assert "failed" in failed.stdout
    assert "4 of 4 replicates failed; run the same command with --rerun failed to try them again." in failed.stderr
    assert "Nothing to train" in run(*words).stderr
    assert "[4/4]" in run(*words, "--rerun", "failed").stderr


def test_rerun_never_shows_saved_results(out: str) -> None:
    result = run(*FC2L, "-g", "perm", "-o", out, "--rerun", "never")
    assert result.exit_code == 0, result.output
    assert "No results." in result.stdout


@pytest.mark.slow
def test_rows_of_one_model_are_told_apart_by_their_hidden_size(out: str) -> None:
    words = (*FC2L, "-g", "perm", "-o", out, "--hidden", "4")  # and 8
    planned = run(*words, "--dry-run")
    assert planned.exit_code == 0, planned.output
    head, *lines = planned.stdout.splitlines()
    assert "hidden size" in head
    assert [line.split()[:3] for line in lines] == [["sender/FC2L", "8", "236"], ["sender/FC2L", "4", "128"]]
    rows = json.loads(run(*words, "--dry-run", "--format", "json").stdout)
    assert [row["hidden_size"] for row in rows] == [8, 4]
    assert rows[0]["update_seconds"] != rows[1]["update_seconds"]
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "8 replicates of 1 model at 2 hidden sizes to train" in result.stderr
    assert "FC2L E=4 concat seed 123: " in result.stderr
    assert "FC2L E=8 perm seed 123: " in result.stderr
    assert "Nothing to train: 8 of 8" in run(*words).stderr


@pytest.mark.slow
def test_generalise_from_plan_to_table(out: str) -> None:
    words = (*FC2L, "-g", "perm", "-o", out, "--protocol", "generalise", "--held-out", "0.3", "--target", "0.9")
    planned = run(*words, "--split", "combinations", "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert re.search(r"a replicate takes [\d,]+ to [\d,]+ updates", planned.stderr)
    result = run(*words, "--split", "combinations")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("generalise: accuracy on meanings held out of training, target 0.9; 0.3 held out")
    assert "FC2L concat seed 123: held out 0." in result.stderr
    assert ", trained on " in result.stderr
    assert "Nothing to train: 4 of 4" in run(*words, "--split", "combinations").stderr
    capped = run(*words, "--cap", "1", "--set", "check_every=5", "--set", "batch_size=8", "-g", "hol")
    assert "(cut at the cap)" in capped.stderr
    assert "† not learned to the target within 1 times concat's updates" in capped.stdout
    json.loads(run(*words, "--split", "combinations", "--format", "json").stdout)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["-m", "sender/FC2L", "--meanings", "9x100", "--vocab-size", "40"], ["9x100", "memory"]),
        (["-m", "sender/FC2L", "--device", "cuda:77"], ["The device 'cuda:77' is not available"]),
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


@pytest.mark.slow
def test_a_small_space_may_be_learned_by_heart(out: str) -> None:
    words = ("probe", "-m", "sender/FC1L", "-g", "perm", "--out", out, "--workers", "1", "--seeds", "1", "--quick")
    assert "by heart, so grammars may have another order at 5x10" in run(*words).stderr
    assert "by heart" not in run(*words, "--protocol", "budget").stderr


# -- `icy e2e` ---------------------------------------------------------------------------------------------------------


PAIR = ["e2e", "-s", "FC2L", "-r", "RNN1L:GRU", "--quick", "--seeds", "1", "--workers", "1", "--steps", "20"]


@pytest.mark.slow
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


@pytest.mark.slow
def test_e2e_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = run(*PAIR, "--pretrain", "perm", "--dry-run", "--out", str(tmp_path / "o"))
    assert result.exit_code == 0, result.stderr
    assert "1 of 1" in result.stdout
    assert re.search(r"a replicate takes [\d,]+ to [\d,]+ updates", result.stderr)
    assert not (tmp_path / "o").exists()


def test_e2e_whose_pre_training_fails_exits_with_1(tmp_path: Path) -> None:
    given = [*PAIR, "--pretrain", "hol", "--target", "0.999", "--set", "max_steps=50", "--out", str(tmp_path / "o")]
    result = run(*given)
    assert result.exit_code == 1
    assert "failed" in result.stdout
    assert "did not reach 0.999 within 50 updates" in result.stdout
