"""Games of pairs that resume from checkpoints: killed and resumed equals uninterrupted, to the bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from icy.config.protocols import SCRATCH, EndToEndProtocol
from icy.records.store import CHECKPOINTS
from icy.training import pair_training as pairs_training
from icy.training.job import Replicate
from icy.training.pair_game import PairStack
from icy.training.pair_job import PairJob
from tests.cores import both_engines
from tests.training.pairs.helpers import SETTINGS, pair_task
from tests.training.resuming import killed, numbers, resumed, updates_of

LONGER = EndToEndProtocol(steps=24, report_every=10, target=0.5)
REPLICATES = tuple(Replicate(g, s) for g in (SCRATCH, "concat", "perm") for s in (1, 2))


def job(folder: Path, **changes: Any) -> PairJob:
    of = PairJob(pair_task(), LONGER, SETTINGS, replicates=REPLICATES, folder=str(folder), keep_models=True)
    return replace(of, **changes)


@pytest.mark.process
@both_engines
@pytest.mark.parametrize("after", [1, 3])  # within the first block, and after the first check
@pytest.mark.parametrize("readings", ["fresh", "training"])
def test_a_killed_training_resumes_to_the_same_bits(
    readings: str, after: int, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And learns no language again."""
    settings = replace(SETTINGS, training_readings=readings == "training")
    of = job(tmp_path, engine=how, settings=settings)
    whole = numbers(list(of.train()))
    assert killed(of, PairStack, after) == []
    assert updates_of(tmp_path) == [{1: 4, 3: 10}[after]] * len(REPLICATES)
    monkeypatch.setattr(pairs_training, "pretrain", None)
    assert numbers(resumed(of, [])) == whole
    assert not (tmp_path / CHECKPOINTS).exists()


@pytest.mark.slow
def test_games_with_a_length_relative_to_concat_resume(tmp_path: Path) -> None:
    """Some had ended, some resume from their checkpoints, and others are new."""
    protocol = EndToEndProtocol(steps=None, cap=2.0, most=80, report_every=10, target=0.5)
    of = job(tmp_path, protocol=protocol, replicates=REPLICATES[2:], settings=replace(SETTINGS, check_every=2))
    whole = list(of.train())
    steps = [outcome.steps for outcome in whole]
    assert len(set(steps)) > 1
    ended = killed(replace(of, replicates=REPLICATES[2:5]), PairStack, min(steps) // 4 + 3)
    assert ended
    assert len(updates_of(tmp_path)) == 3 - len(ended)
    assert numbers(resumed(of, ended)) == numbers(whole)


@pytest.mark.slow
def test_a_game_of_fixed_length_goes_on_without_concat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is asked for later, and trained first."""
    of = job(tmp_path, replicates=(Replicate("concat", 1), Replicate("perm", 1)))
    whole = numbers(list(of.train()))
    killed(replace(of, replicates=of.replicates[1:]), PairStack, 3)
    begun: list[tuple[str, ...]] = []
    real = pairs_training.pretrain

    def pretrain(job: PairJob, side: str, replicates: Any, report: Any) -> Any:
        begun.append(tuple(r.condition for r in replicates))
        return real(job, side, replicates, report)

    monkeypatch.setattr(pairs_training, "pretrain", pretrain)
    assert numbers(resumed(of, [])) == whole
    assert begun == [("concat",)] * 2  # perm learns nothing again


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["learner", "how", "format", "own"])
def test_pairs_with_an_unusable_checkpoint_are_pre_trained_again(damage: str, tmp_path: Path, caplog: Any) -> None:
    of = job(tmp_path)
    whole = numbers(list(of.train()))
    killed(of, PairStack, 3)
    for path in (tmp_path / CHECKPOINTS).glob("*.pt"):
        state = torch.load(path, weights_only=True)
        torch.save(state | {damage: {"weights": {}}}, path)
    assert numbers(resumed(of, [])) == whole
    assert "so training starts again" in caplog.text
