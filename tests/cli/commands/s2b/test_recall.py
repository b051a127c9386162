"""`icy s2b recall`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from icy.cli import main
from tests.cli.commands.s2b.helpers import run

SMALL = ["--task", "most=2", "--seeds", "1", "--episodes", "4", "--workers", "1"]
TINY = [*SMALL, "--updates", "2", "--set", "episodes=4"]


@pytest.mark.slow
def test_a_table_with_what_agents_without_memory_score_and_nothing_twice(tmp_path: Path) -> None:
    words = [*TINY, "-o", str(tmp_path), "--keep-models"]
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
    words = [*SMALL, "--core", "lstm", "--option", "sizes=[8]", "--stimuli", "ohe", "--observations", "3000"]
    words += ["-o", str(tmp_path), "--preset", "metarg24"]
    (row,) = json.loads(run("recall", *words, "--format", "json").stdout)
    assert row["model"] == "LSTM+r2d2"
    assert 0 <= row["reconstructed"] <= 1
    assert row["observations"] == 2976


def test_variants_are_named(tmp_path: Path) -> None:
    from icy.s2b.agents.recall_job import recall_jobs
    from icy.s2b.agents.spec import RecallSpec

    jobs = recall_jobs(RecallSpec(compat="near32", seeds=1, task={"games_per_shot": 5}))
    assert [job.task.game_settings().least for job in jobs] == [5, 2]  # the authors' one-hot spaces have all values
    for job in jobs:
        options = job.config(job.replicates[0])["options"]
        assert options == {"compat": "near32", "task.games_per_shot": 5}
        assert job.task.game_settings().replacement
