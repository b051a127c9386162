"""`icy s2b train` and `recall`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from icy.cli import main
from icy.config.requests import RunRequest
from icy.games.settings import GamesRequest
from icy.records.kinds import job_kind
from icy.s2b.agents.kinds import AgentRequest, RecallRequest
from icy.training.combinations import jobs_of
from tests.cli.commands.s2b.helpers import run

# -- `icy s2b train`, and trained agents in the other commands ---------------------------------------------------------


TINY = ["--most", "2", "--updates", "2", "--episodes", "10", "--set", "episodes=4", "--workers", "1"]
PAIRS = ["--learner", "pair", "--seeds", "2", "--keep-models"]
SMALL = ["--episodes", "4", "--seeds", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with two pairs, kept."""
    out = tmp_path_factory.mktemp("agents")
    done = train(out, *PAIRS)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == f"The agents were saved: `icy s2b eval --listener {out}` evaluates them."
    return out


def train(out: Path, *words: str) -> Result:
    tiny = [
        "--most",
        "2",
        "--updates",
        "2",
        "--episodes",
        "10",
        "--set",
        "episodes=4",
        "--workers",
        "1",
        "-o",
        str(out),
    ]
    return run("train", *tiny, *words)


@pytest.mark.slow
def test_a_table_of_agents_and_nothing_twice(folder: Path) -> None:
    again = train(folder, *PAIRS)
    assert "Nothing to train: 2 of 2 on file" in again.output
    (row,) = json.loads(run("train", *TINY, *PAIRS, "-o", str(folder), "--format", "json").stdout)[:1]
    assert (row["model"], row["grammar"], row["kind"]) == ("pairs+pair", "learned", "s2b")
    (heading,) = [line for line in again.output.splitlines() if line.startswith("agent ")]
    assert heading in CliRunner().invoke(main, ["table", str(folder)]).output
    for name in ("agent", "speaker", "V", "S", "O", "K", "query", "deaf", "support", "distinct"):
        assert name in heading


@pytest.mark.slow
def test_the_last_line_says_how_to_keep_agents(tmp_path: Path) -> None:
    *_, last = train(tmp_path, "--seeds", "1", "--learner", "pair").output.splitlines()
    assert last.startswith(
        "The agents were not saved: run the same command with --keep-models to train them again and save"
    )
    assert last.endswith(f"`icy s2b eval --listener {tmp_path}`.")


@pytest.mark.parametrize("spec", [AgentRequest, GamesRequest])
def test_quick_trainings_keep_their_agents(spec: type[RunRequest]) -> None:
    assert spec.asked(quick=True).keep_models
    assert not spec.asked(quick=True, keep_models=False).keep_models
    assert not spec.asked().keep_models


@pytest.mark.slow
def test_curves_are_drawn(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "curves.png"
    drawn = CliRunner().invoke(main, ["plot", "curves", str(folder), "--save", str(target)])
    assert drawn.exit_code == 0, drawn.output
    assert target.stat().st_size > 1000


@pytest.mark.slow
def test_a_dry_run_trains_nothing(tmp_path: Path) -> None:
    shown = train(tmp_path / "none", "--shots", "1,2", "--deaf", "--dry-run", "--format", "json")
    assert [row["to_train"] for row in json.loads(shown.stdout)] == [3] * 4
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_trained_agents_are_evaluated(folder: Path) -> None:
    done = run("eval", *SMALL, "--speaker", str(folder), "--listener", str(folder), "--format", "json")
    rows = json.loads(done.stdout)
    labels = ["pairs+pair, seed 123", "pairs+pair, seed 124"]
    assert [(row["speaker"], row["listener"]) for row in rows] == [(s, h) for s in labels for h in labels]
    one = run("eval", *SMALL, "--listener", str(folder), "--where", "seed=124", "--format", "json")
    assert [row["listener"] for row in json.loads(one.stdout)] == labels[1:]
    file = next((folder / "models").iterdir())
    assert run("eval", *SMALL, "--listener", str(file)).exit_code == 0
    wrong = run("eval", *SMALL, "--listener", str(folder), "--where", "seed=9")
    assert wrong.exit_code == 1
    assert "seed=9" in wrong.output


@pytest.mark.slow
def test_trained_agents_play_speak_and_are_recorded(folder: Path, tmp_path: Path) -> None:
    which = ["--where", "seed=123"]
    watched = run("play", "--speaker", str(folder), "--listener", str(folder), *which, "--no-pause")
    assert watched.exit_code == 0, watched.output
    several = run("play", "--listener", str(folder), "--values", "2")
    assert several.exit_code == 1
    assert "has 2 saved models that match, which differ in seed (123, 124)" in several.output
    spoken = run("language", "--speaker", str(folder), *which, "--episodes", "2", "--metric", "posdis")
    assert "pairs+pair, seed 123" in spoken.stdout
    quick = ["--episodes", "1", "--seeds", "1", "--epochs", "2"]
    eoa = run("eoa", "--speaker", str(folder), *which, *quick)
    assert "pairs+pair, seed 123" in eoa.stdout
    out = tmp_path / "games.parquet"
    kept = run("record", "--listener", str(folder), *which, "--episodes", "2", "--out", str(out))
    assert kept.exit_code == 0, kept.output
    assert out.exists()


# -- `icy s2b recall` --------------------------------------------------------------------------------------------------


SMALL_RECALL = ["--task", "most=2", "--seeds", "1", "--episodes", "4", "--workers", "1"]
TINY_RECALL = [*SMALL_RECALL, "--updates", "2", "--set", "episodes=4"]


@pytest.mark.slow
def test_a_table_with_what_agents_without_memory_score_and_nothing_twice(tmp_path: Path) -> None:
    words = [*TINY_RECALL, "-o", str(tmp_path), "--keep-models"]
    rows = json.loads(run("recall", *words, "--format", "json").stdout)
    assert [(row["model"], row["grammar"], row["kind"]) for row in rows] == [
        ("pairs+ppo", "ohe", "recall"), ("pairs+ppo", "scs", "recall"),
    ]  # fmt: skip
    again = run("recall", *words)
    assert "Nothing to train: 2 of 2 on file" in again.output
    for shown in (again.output, CliRunner().invoke(main, ["table", str(tmp_path)]).output):
        heading = next(line for line in shown.splitlines() if line.startswith("agent "))
        for name in ("stimuli", "second shot", "first shot", "chance", "no memory", "one game"):
            assert name in heading
        lines = [line.split() for line in shown.splitlines() if line.startswith("pairs+ppo  ")]
        assert [line[1] for line in lines] == ["ohe", "scs"]
        assert {line[-3] for line in lines} == {"50.0±-"} or {line[-3][:4] for line in lines} == {"50.0"}


@pytest.mark.slow
def test_a_core_learns_by_r2d2_with_the_reconstruction_loss(tmp_path: Path) -> None:
    words = [*SMALL_RECALL, "--core", "lstm", "--option", "sizes=[8]", "--stimuli", "ohe", "--observations", "3000"]
    words += ["-o", str(tmp_path), "--preset", "metarg24"]
    (row,) = json.loads(run("recall", *words, "--format", "json").stdout)
    assert row["model"] == "LSTM+r2d2"
    assert 0 <= row["reconstructed"] <= 1
    assert row["observations"] == 2976


@pytest.mark.slow
def test_variants_are_named(tmp_path: Path) -> None:
    jobs = jobs_of(job_kind("recall"), RecallRequest(compat="near32", seeds=1, task={"games_per_shot": 5}))
    assert [job.settings.game.least for job in jobs] == [5, 2]  # the authors' one-hot spaces have all values
    for job in jobs:
        options = job.config(job.replicates[0])["options"]
        assert options == {"compat": "near32", "task.games_per_shot": 5}
        assert job.settings.game.replacement
