"""Training in games: the same bits in every stack and after resuming, and evaluation of saved agents."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import icy
from icy.experiments.results import ProbeResult
from icy.games.comparison import GameOverrides, compare
from icy.games.playing import kept_agents
from icy.metrics import cbm
from icy.records.store import CHECKPOINTS
from icy.training.gradient import GradientLearner
from icy.training.job import Replicate
from icy.training.native import NativeStack
from icy.training.weights import card_of
from tests.cores import FASTEST, NO_NATIVE, both_engines
from tests.helpers import all_numbers
from tests.training.resuming import kill_at_checkpoint

from .helpers import FEW, TINY, course_of


def train(out: Path, **given: Any) -> ProbeResult:
    settings = {**FEW, **given.pop("settings", {})}
    return icy.train("games", out=out, settings=settings, progress=False, **{**TINY, **given})


def learned(
    seeds: list[int], kinds: str = "auto", engine: str = "auto", **given: Any
) -> dict[Replicate, dict[str, torch.Tensor]]:
    """Return the weights of each replicate after some updates as one stack."""
    course = course_of(engine, **given, settings=FEW, seeds=seeds, distractor_kind=kinds)
    job = course.job
    course.advance(job.settings.updates)
    return {runner.replicate: course.learner.weights(place) for place, runner in enumerate(course.active)}


@both_engines
@pytest.mark.parametrize(
    "given",
    [{"representation": "qt"}, {"representation": "gs"}, {"representation": "cb"}],
    ids=lambda g: g["representation"],
)
def test_training_of_a_replicate_does_not_depend_on_its_stack(given: dict[str, Any], how: str) -> None:
    alone, among = learned([5], engine=how, **given), learned([3, 5], "near,uniform", how, **given)
    ((replicate, weights),) = alone.items()
    assert all(torch.equal(value, among[replicate][name]) for name, value in weights.items())
    other = among[Replicate("uniform", 5)]
    assert any(not torch.equal(value, other[name]) for name, value in weights.items())


@pytest.mark.slow
def test_training_on_images_does_not_depend_on_the_stack() -> None:
    given = {"world": "shape", "world_options": {"canvas": 16}, "targets": 2, "steps": 4}
    alone, among = learned([5], **given), learned([3, 5], **given)
    ((replicate, weights),) = alone.items()
    assert any(name.endswith("norm.variance") for name in weights)  # running averages of batch norm
    assert all(torch.equal(value, among[replicate][name]) for name, value in weights.items())


def test_a_training_is_recorded_read_and_shown(tmp_path: Path) -> None:
    result = train(tmp_path, keep_models=True, rule_length=2)
    assert [(r["reason"], r["engine"]) for r in result.records] == [("steps", FASTEST)] * 2
    record: Any = result.records[0]
    assert [point[0] for point in record["curve"]] == [0, 6, 12]
    assert record["best_step"] in (0, 6, 12)
    best = max(record["curve"], key=lambda point: (point[1], -point[0]))
    assert best[0] == record["best_step"]
    assert record["total"] == max(record["rule_length"], record["message_length"]) * FEW["turns"]
    assert record["good"] / record["total"] == pytest.approx(record["cbm"])
    assert 0 < record["cbm_floor"] <= 1
    table = result.table()
    assert "thing" in table
    assert "chance" in table
    (said,) = [make() for of, make in result.languages() if of is record]
    assert cbm(said, concepts="items").value == pytest.approx(record["cbm"])
    assert len(said) == FEW["turns"]


@pytest.mark.slow
def test_saved_agents_have_the_scores_of_their_record(tmp_path: Path) -> None:
    result = train(tmp_path, keep_models=True, representation="gs")
    rows = compare(tmp_path, seed=124)
    record: Any = next(r for r in result.records if r["seed"] == 124)
    for name in ("accuracy", "soft_accuracy", "seen_accuracy", "cbm", "topsim", "unique_words"):
        assert rows[name].item() == pytest.approx(record[name] if record[name] is not None else math.nan, nan_ok=True)
    (kept,) = kept_agents(tmp_path, seed=124)
    file = tmp_path / kept.source[1]
    card = card_of(file.read_bytes())
    assert card["scores"]["cbm"] == record["cbm"]
    (alone,) = kept_agents(file)
    assert alone.label == kept.label == "RNNAutoReg:LSTM+RNN1L:LSTM, seed 124"
    other = compare(tmp_path, GameOverrides(turns={"targets": 1, "distractor_kind": "uniform"}, count=50), seed=124)
    assert other[["targets", "distractors", "distractor_kind"]].to_numpy().tolist() == [[1, 1, "uniform"]]
    model = result.model("near", seed=124)
    assert not model.training


@pytest.mark.slow
def test_a_pool_gives_the_same_numbers(tmp_path: Path) -> None:
    train(tmp_path / "serial", seeds=3)
    train(tmp_path / "pool", seeds=3, workers=2)
    assert all_numbers(tmp_path / "pool") == all_numbers(tmp_path / "serial")


@pytest.mark.process
@pytest.mark.parametrize("channel", ["gs", pytest.param("qt", marks=pytest.mark.slow)])
def test_killed_and_resumed_equals_uninterrupted(channel: str, tmp_path: Path) -> None:
    """If a training is killed and resumed, its numbers and weights have the same bits."""
    out = tmp_path / "killed"
    whole = {
        **TINY,
        "steps": 200,
        "representation": channel,
        "settings": {"epoch": 100, "turns": 40},
        "keep_models": True,
    }
    reached = [state["updates"] for state in kill_at_checkpoint('icy.train("games", ', out, whole, count=2)]
    assert 0 < max(reached) < 200
    assert not list((out / "records").glob("*.json"))
    icy.train("games", out=out, progress=False, **whole)
    assert not (out / CHECKPOINTS).exists()
    icy.train("games", out=tmp_path / "whole", progress=False, **whole)
    assert all_numbers(out) == all_numbers(tmp_path / "whole")
    kept = [sorted((folder / "models").iterdir()) for folder in (out, tmp_path / "whole")]
    assert [path.read_bytes() for path in kept[0]] == [path.read_bytes() for path in kept[1]]


@pytest.mark.slow
def test_only_the_diverged_replicate_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = NativeStack if NO_NATIVE is None else GradientLearner
    real = learner.losses

    def losses(self: Any) -> Any:
        found = real(self)
        return found if found is None or len(found) < 2 else torch.where(torch.arange(len(found)) == 0, math.nan, found)

    monkeypatch.setattr(learner, "losses", losses)
    result = train(tmp_path)
    assert [(r["seed"], r["reason"]) for r in result.records] == [(123, "diverged"), (124, "steps")]
    monkeypatch.undo()
    train(tmp_path / "whole")
    assert _of(124, tmp_path) == _of(124, tmp_path / "whole")


def _of(seed: int, folder: Path) -> dict[str, Any]:
    return next(record for record in all_numbers(folder) if record["seed"] == seed)


@pytest.mark.slow
def test_agents_learn(tmp_path: Path) -> None:
    """In a world of two attributes of three values, in a few hundred updates."""
    result = train(
        tmp_path, rule_length=1, steps=400, seeds=1, targets=5, world_options={"attributes": 2, "values": 3},
        sender_hidden=16, receiver_hidden=16, settings={"epoch": 100, "turns": 200, "learning_rate": 0.01},
    )  # fmt: skip
    record: Any = result.records[0]
    assert record["accuracy"] > 0.7  # 0.5 by chance
    assert record["cbm"] > record["cbm_floor"]


@pytest.mark.slow
def test_images_that_do_not_fit_in_memory_give_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.core.machine.available_memory", lambda: 3_000_000)
    result = train(tmp_path, world="shape", world_options={"canvas": 16}, rule_length=1, seeds=2)
    assert [record["failed"] for record in result.records] == [True, True]
    assert "of memory or more, and 3.0 MB is free; take a smaller batch" in str(result.failures[0]["error"])
