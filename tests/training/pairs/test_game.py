"""The game of a pair: games of other lengths leave no trace in their neighbours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from icy.config.protocols import EndToEndProtocol
from icy.core.noise import Noise
from icy.core.representations import SOFT, one_hot
from icy.training.job import Outcome, Replicate
from icy.training.pair_game import PairStack, PlayingPair, _Tally
from icy.training.pair_job import PairJob
from icy.training.pair_training import train_pairs
from icy.training.task_models import make_pair
from tests.training.pairs.helpers import SETTINGS, SHORT, assert_same_curve, pair_task, run


@pytest.mark.slow
def test_other_lengths_of_the_game_do_not_disturb(tmp_path: Path) -> None:
    """Games of different lengths: the longer game continues as if alone."""
    protocol = EndToEndProtocol(cap=0.5, most=None, report_every=5, target=0.9)
    replicates = [Replicate("perm", seed) for seed in (1, 2)]
    both = run(tmp_path, replicates, pair_task(), protocol, baselines={1: 10, 2: 30})
    assert [both[r].steps for r in replicates] == [5, 15]
    alone = run(tmp_path, replicates[1:], pair_task(), protocol, baselines={2: 30})
    assert_same_curve(alone[replicates[1]], both[replicates[1]])


@pytest.mark.slow
def test_a_pair_that_ends_between_checks_adds_no_point_to_other_curves(tmp_path: Path) -> None:
    """Under `published` the accuracy is a mean since the last reading: it must not depend on a neighbour's end."""
    protocol = EndToEndProtocol(cap=1, most=None, report_every=10, target=0.9)
    published = replace(SETTINGS, training_readings=True, fresh_reading=False)
    replicates = [Replicate("perm", 1), Replicate("perm", 2)]

    def play(some: list[Replicate]) -> dict[Replicate, Outcome]:
        baselines: dict[int, int | str] = {1: 17, 2: 23}
        pairs = PairJob(
            pair_task(), protocol, published, replicates=tuple(some), baselines=baselines, folder=str(tmp_path)
        )
        return {outcome.replicate: outcome for outcome in train_pairs(pairs)}

    both, alone = play(replicates), play(replicates[1:])
    assert [row[0] for row in both[replicates[1]].curve] == [0, 10, 20, 23]
    assert_same_curve(both[replicates[1]], alone[replicates[1]])
    assert both[replicates[1]].extra["end_to_end_accuracy"] == pytest.approx(
        alone[replicates[1]].extra["end_to_end_accuracy"], abs=1e-3
    )


# -- readings ----------------------------------------------------------------------------------------------------------


def wrong_at(places: list[int], targets: Tensor, choices: int) -> Tensor:
    """Scores that are largest at the targets, except at some places of every example."""
    answers = targets.clone()
    answers[..., places] = (answers[..., places] + 1) % choices
    return one_hot(answers, choices)


def test_accuracies_of_a_pair_are_of_single_values_and_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three accuracies are separate: of the pair, of the sender's words, of the receiver on the language."""
    replicate, task = Replicate("perm", 1), pair_task()
    job = PairJob(task, SHORT, SETTINGS, replicates=(replicate,), folder=str(tmp_path))
    game = PairStack(job, [PlayingPair(replicate, 12, make_pair(task, 1, SETTINGS))])

    def scores(meanings: Tensor, messages: Tensor) -> list[Tensor]:
        return [wrong_at([2], messages, 5), wrong_at([1], meanings, 3), wrong_at([], meanings, 3)]

    monkeypatch.setattr(game, "_scores", scores)
    ((steps, accuracy, _, _, of_sender, of_receiver),) = game._read("check")
    assert (steps, accuracy, of_sender, of_receiver) == (0, 0.5, 0.75, 1.0)


def test_published_accuracies_of_a_pair_are_means_over_batches_of_single_values() -> None:
    tally, meanings = _Tally(SOFT, 1), torch.tensor([[[0, 1], [2, 2], [1, 0], [0, 0]]])
    for places in ([1], []):
        tally((torch.zeros(1, 4, 4, 5), wrong_at(places, meanings, 3)), meanings, Noise(torch.tensor([1])))
        tally.updates += 1
    assert tally.accuracy().tolist() == [0.75]
