"""Floors of the recall task equal expected accuracies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from icy.core.registry import LISTENER
from icy.s2b import BatchedRecall, RecallSettings
from icy.s2b.agents.learners import RECALL_PRESETS as PRESETS
from icy.s2b.agents.memories.dealt_learning import DealtLearningSettings
from icy.s2b.agents.recall_learning import (
    RecallGames,
    RecallMemory,
    RecallMemoryLearning,
    RecallR2D2,
    recall_floors,
)

# -- trainings of the recall task --------------------------------------------------------------------------------------


TASKS: dict[str, dict[str, Any]] = {
    "scs": {"most": 3},
    "ohe": {"most": 3, "representation": "ohe"},
    "near32": {"most": 3, "compat": "near32", "games_per_shot": 4},
}


@pytest.mark.parametrize("name", TASKS)
def test_dealt_games_equal_played_games(name: str) -> None:
    task = BatchedRecall(episodes=3, **TASKS[name])
    turn = task.reset(seeds=[4, 8, 15])
    dealt, number = task.dealt(), np.zeros(3, dtype=int)
    assert dealt.there.sum(1).tolist() == (2 * dealt.last.sum(1)).tolist()
    while not turn.done.all():
        rows = np.flatnonzero((turn.asked == 0) & ~turn.done)
        width = task.settings.width // task.settings.dimensions
        stimuli = turn.stimulus.reshape(3, task.settings.dimensions, width)
        for row in rows:
            at = row, number[row]
            assert stimuli[row, dealt.dimension[at]].tolist() == dealt.numbers[at].tolist()
            assert task.answers[row] == dealt.answers[at]
            number[row] += 1
        turn = task.step(np.where(turn.asked == 1, task.answers, task.settings.nothing))
    assert number.tolist() == dealt.there.sum(1).tolist()
    assert (task.accuracy() == 1).all()
    assert task.illegal.sum() == 0


@pytest.mark.parametrize("name", TASKS)
def test_a_task_resumes_from_its_state(name: str) -> None:
    tasks = [BatchedRecall(episodes=3, autoreset=True, **TASKS[name]) for _ in range(2)]
    turns = [task.reset(seeds=range(3)) for task in tasks]
    for step in range(90):
        if step == 40:
            tasks[1] = BatchedRecall(episodes=3, autoreset=True, **TASKS[name])
            turns[1] = tasks[1].load(tasks[0].state())
        for part in vars(turns[0]):
            ours, theirs = (getattr(turn, part) for turn in turns)
            assert np.array_equal(ours, theirs), (step, part)
        turns = [task.step(np.full(3, step % 3)) for task in tasks]


def test_an_agent_may_answer_only_at_a_question() -> None:
    task = BatchedRecall(most=3, episodes=2)
    turn = task.reset(seeds=[1, 2])
    assert not turn.seen_by().may_decide.any()
    assert turn.fresh.all()
    turn = task.step(np.zeros(2, dtype=int))  # ignored, but counted: there is a question only in the next step
    assert turn.seen_by().may_decide.all()
    assert not turn.fresh.any()
    turn = task.step(task.answers)
    assert turn.reward.tolist() == turn.seen_by().reward.tolist() == [1, 1]
    assert task.illegal.tolist() == [1, 1]


def tiny(task: RecallSettings) -> RecallR2D2:
    """Return an R2D2 training with a small network and few steps between updates."""
    usual = PRESETS["default"]
    network = replace(usual.network, core="LSTM", options={"sizes": (8,)}, stimulus=(8,), joint=(8,))
    small = {
        "actors": 3,
        "learning_starts": 0,
        "observations": 400,
        "observations_per_update": 30,
        "batch": 4,
        "capacity": 600,
    }
    return RecallR2D2(task, replace(usual, network=network, **small), seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_a_resumed_r2d2_training_equals_an_uninterrupted_one(name: str) -> None:
    task = RecallSettings.of(**TASKS[name])
    whole, first, second = (tiny(task) for _ in range(3))
    assert whole.settings.reconstruction is not None
    assert whole.agents[0].actions.width == task.most + 1
    whole.run(5)
    first.run(3)
    second.load(first.state())
    second.run(2)
    for ours, theirs in zip(whole.agents[0].network.parameters(), second.agents[0].network.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert set(whole.read(5)) == {"zsct", "support", "reconstructed"}
    assert whole.networks().keys() == {LISTENER}


@pytest.mark.parametrize("name", TASKS)
def test_play_of_the_memory_equals_scoring_whole_episodes(name: str) -> None:
    task = RecallSettings.of(**TASKS[name])
    torch.manual_seed(0)
    model, games = RecallMemory(task), RecallGames.deal(task, range(4))
    decided, logs = model.play(games, torch.Generator().manual_seed(1))
    at_once = model(games, decided).log_softmax(-1)
    assert torch.allclose(at_once[games.there], logs[games.there], atol=1e-5)


def test_the_memory_does_not_use_later_games_or_other_dimensions() -> None:
    torch.manual_seed(0)
    task = RecallSettings(most=3)
    model, games = RecallMemory(task), RecallGames.deal(task, range(1))
    decided = torch.zeros_like(games.answers)
    usual = model(games, decided)
    later = decided.clone()
    later[:, 5] = 1
    changed = (model(games, later) != usual).any(-1)[0]
    same = games.dimension[0] == games.dimension[0, 5]
    assert changed[6:].any()
    assert not changed[:6].any()
    assert not changed[~same].any()


@pytest.mark.slow
def test_the_memory_learns_from_rewards_and_resumes_from_a_state() -> None:
    task = RecallSettings(most=3)
    settings = DealtLearningSettings(updates=12, games_per_shot=8, episodes=48, learning_rate=0.01, warm_up=2)

    def made() -> RecallMemoryLearning:
        torch.manual_seed(1)
        return RecallMemoryLearning(RecallMemory(task), task, settings, 1)

    whole, first, second = made(), made(), made()
    before = whole.read(40)
    whole.run(12)
    first.run(5)
    second.load(first.state())
    second.run(7)
    for ours, theirs in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert whole.read(40)["zsct"] > before["zsct"] + 0.2
    assert whole.observations == second.observations > 0


USUAL = sum(1 / d for d in (2, 3, 4, 5)) / 4  # how often the first value is right: 0.3208


def test_the_floor_without_memory_is_the_frequency_of_the_first_value() -> None:
    found = recall_floors(RecallSettings(), 300)
    assert found["no_memory"] == pytest.approx(USUAL, abs=0.03)
    assert found["no_memory"] < found["one_game"] < 0.8


def test_a_one_hot_stimulus_can_be_recalled_without_earlier_games() -> None:
    assert recall_floors(RecallSettings(representation="ohe"), 20)["one_game"] == 1


def test_a_space_of_one_size_can_be_recalled_without_earlier_games() -> None:
    found = recall_floors(RecallSettings(least=3, most=3), 20)
    assert found["no_memory"] == pytest.approx(1 / 3, abs=0.08)
    assert found["one_game"] > 0.98  # the sections of values are then always the same
