"""Games in which the sender may end its messages: readings, stacks, engines and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from icy.config.protocols import SCRATCH
from icy.core.noise import Noise
from icy.core.representations import SOFT, one_hot, with_ends
from icy.languages.language import Language
from icy.records.store import CHECKPOINTS
from icy.training import pair_training as pairs_training
from icy.training.job import Outcome, Replicate
from icy.training.language_job import PairJob
from icy.training.lockstep import Lockstep
from icy.training.pair_game import PairGame, Players, _Tally
from icy.training.pair_settings import EndToEndSettings
from icy.training.task_models import make_pair
from tests.cores import both_engines
from tests.training.pairs.helpers import SETTINGS, assert_same_curve, pair_job, pair_task, run
from tests.training.resuming import killed, numbers, resumed, updates_of

REPLICATES = tuple(Replicate(SCRATCH, seed) for seed in (1, 2, 3))
LINKS = ("soft", "gumb", "discr")


def task(representation: str = "soft", cost: float | str = "lazimpa", **more: Any) -> EndToEndSettings:
    return pair_task(representation=representation, max_length=5, length_cost=cost, **more)


def spoken(outcome: Outcome) -> Language:
    return Language.from_bytes(outcome.files[outcome.extra["language"]])


@pytest.mark.parametrize("representation", LINKS)
def test_a_pair_alone_equals_the_pair_in_a_stack(representation: str, tmp_path: Path) -> None:
    together = run(tmp_path, REPLICATES, task(representation))
    alone = run(tmp_path, REPLICATES[1:2], task(representation))
    found, expected = (some[REPLICATES[1]] for some in (together, alone))
    assert_same_curve(found, expected)
    assert found.extra["length_curve"] == expected.extra["length_curve"]
    assert [point[0] for point in found.extra["length_curve"]] == [0, 5, 10, 12]
    language = spoken(found)
    assert (language.eos, language.vocab_size, language.message_length) == (4, 5, 5)
    assert found.extra["mean_length"] == language.lengths.mean()
    assert found.curve[-1][1] != found.curve[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("representation", LINKS)
def test_engines_agree(representation: str, tmp_path: Path) -> None:
    both = [run(tmp_path, REPLICATES, task(representation), engine=how) for how in ("auto", "loop")]
    for replicate in REPLICATES:
        assert_same_curve(*(found[replicate] for found in both))


@pytest.mark.process
@both_engines
@pytest.mark.parametrize("population", [{}, {"senders": 2, "receivers": 2, "replace_every": 4}])
def test_a_killed_training_resumes_to_the_same_bits(population: dict[str, int], how: str, tmp_path: Path) -> None:
    of = pair_job(tmp_path, REPLICATES[:2], task(**population), engine=how)
    whole = numbers(list(of.train()))
    assert killed(of, 3) == []
    assert updates_of(tmp_path)
    assert numbers(resumed(of, [])) == whole


def test_messages_that_never_end_have_the_curve_of_messages_of_a_fixed_length(tmp_path: Path) -> None:
    """Over a representation with sampled tokens, where the end token is one of the symbols of both."""
    fixed = pair_task(representation="discr")
    ending = replace(fixed, max_length=fixed.message_length)
    both = []
    for of in (fixed, ending):
        pair = make_pair(of, 1, SETTINGS)
        with torch.no_grad():
            pair.sender.out.bias[-1] = -100  # type: ignore[union-attr, index, operator]
        game = PairGame(pair_job(tmp_path, REPLICATES[:1], of), [Players(REPLICATES[0], steps=12, models=[pair])])
        (outcome,) = Lockstep(game).outcomes()
        both.append(outcome)
    assert_same_curve(*both)
    assert both[1].extra["mean_length"] == fixed.message_length
    assert np.array_equal(spoken(both[0]).messages, spoken(both[1]).messages)


def test_lengths_are_of_greedy_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, (replicate, *_) = task(), REPLICATES
    game = PairGame(
        pair_job(tmp_path, [replicate], of), [Players(replicate, steps=12, models=[make_pair(of, 1, SETTINGS)])]
    )

    def scores(meanings: Tensor, *_: Any) -> list[Tensor]:
        sent = one_hot(torch.tensor([0, 1, 4, 2, 2]).expand(*meanings.shape[:2], 5), 5)  # ends after two tokens
        return [sent, one_hot(meanings, 3), one_hot(meanings, 3)]

    monkeypatch.setattr(game, "_scores", scores)
    game._note(game._read("check"), [0])
    assert game.active[0].before["length_curve"][-1] == [0, 2.0]


def test_the_accuracy_of_training_batches_is_that_of_whole_messages() -> None:
    tally, meanings = _Tally(with_ends(SOFT, impatient=True), 1), torch.tensor([[[0, 1], [2, 2]]])
    answers = torch.cat([one_hot(meanings, 3), one_hot((meanings + 1) % 3, 3)], 1)
    tally((torch.zeros(1, 2, 2, 5), answers), meanings, Noise(torch.tensor([1])))
    tally.updates += 1
    assert tally.accuracy().tolist() == [1.0]


@pytest.mark.slow
def test_a_cost_shortens_messages(tmp_path: Path) -> None:
    means = {
        cost: np.mean([o.extra["mean_length"] for o in run(tmp_path, REPLICATES, of).values()])
        for cost in (0.0, 1.0)
        for of in [task(cost=cost, updates=300, report_every=300)]
    }
    assert means[1.0] < 0.2 < 2 < means[0.0]


# -- games of pairs that resume from checkpoints -----------------------------------------------------------------------


LEARNERS = tuple(Replicate(g, s) for g in (SCRATCH, "concat", "perm") for s in (1, 2))


def long_job(folder: Path, replicates: Sequence[Replicate] = LEARNERS, engine: str = "auto", **more: Any) -> PairJob:
    of = pair_task(**{"updates": 24, "report_every": 10, "target": 0.5, **more})
    return pair_job(folder, replicates, of, engine=engine, keep_models=True)


@pytest.mark.process
@both_engines
@pytest.mark.parametrize("after", [1, 3])  # within the first block, and after the first check
@pytest.mark.parametrize("readings", ["fresh", "training"])
def test_a_killed_game_resumes_to_the_same_bits(
    readings: str, after: int, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And learns no language again."""
    settings = replace(SETTINGS, training_readings=readings == "training")
    of = long_job(tmp_path, engine=how, training=settings)
    whole = numbers(list(of.train()))
    assert killed(of, after) == []
    assert updates_of(tmp_path) == [{1: 4, 3: 10}[after]] * len(LEARNERS)
    monkeypatch.setattr(pairs_training, "pretrain", None)
    assert numbers(resumed(of, [])) == whole
    assert not (tmp_path / CHECKPOINTS).exists()


@pytest.mark.slow
def test_games_with_a_length_relative_to_concat_resume(tmp_path: Path) -> None:
    """Some had ended, some resume from their checkpoints, and others are new."""
    of = long_job(tmp_path, LEARNERS[2:], updates=None, cap=2.0, most=80, training=replace(SETTINGS, check_every=2))
    whole = list(of.train())
    steps = [outcome.steps for outcome in whole]
    assert len(set(steps)) > 1
    ended = killed(replace(of, replicates=LEARNERS[2:5]), min(steps) // 4 + 3)
    assert ended
    assert len(updates_of(tmp_path)) == 3 - len(ended)
    assert numbers(resumed(of, ended)) == numbers(whole)


@pytest.mark.slow
def test_a_game_of_fixed_length_goes_on_without_concat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is asked for later, and trained first."""
    of = long_job(tmp_path, [Replicate("concat", 1), Replicate("perm", 1)])
    whole = numbers(list(of.train()))
    killed(replace(of, replicates=of.replicates[1:]), 3)
    begun: list[tuple[str, ...]] = []
    real = pairs_training.pretrain

    def pretrain(long_job: PairJob, side: str, replicates: Any, report: Any) -> Any:
        begun.append(tuple(r.condition for r in replicates))
        return real(long_job, side, replicates, report)

    monkeypatch.setattr(pairs_training, "pretrain", pretrain)
    assert numbers(resumed(of, [])) == whole
    assert begun == [("concat",)] * 2  # perm learns nothing again


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["learner", "how", "format", "own"])
def test_pairs_with_an_unusable_checkpoint_are_pre_trained_again(damage: str, tmp_path: Path, caplog: Any) -> None:
    of = long_job(tmp_path)
    whole = numbers(list(of.train()))
    killed(of, 3)
    for path in (tmp_path / CHECKPOINTS).glob("*.pt"):
        state = torch.load(path, weights_only=True)
        torch.save(state | {damage: {"weights": {}}}, path)
    assert numbers(resumed(of, [])) == whole
    assert "so training starts again" in caplog.text
