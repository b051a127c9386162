"""The game of a pair: games of other lengths leave no trace in their neighbours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icy.config.protocols import EndToEndProtocol
from icy.training.job import Outcome, Replicate
from icy.training.pairs.job import PairJob
from icy.training.pairs.train import train_pairs
from tests.training.pairs.helpers import SETTINGS, assert_same_curve, pair_task, run


def test_other_lengths_of_the_game_do_not_disturb(tmp_path: Path) -> None:
    """Seeds whose games are of different length: the longer one goes on as if alone."""
    protocol = EndToEndProtocol(cap=0.5, most=None, report_every=5, target=0.9)
    replicates = [Replicate("perm", seed) for seed in (1, 2)]
    both = run(tmp_path, replicates, pair_task(), protocol, baselines={1: 10, 2: 30})
    assert [both[r].steps for r in replicates] == [5, 15]
    alone = run(tmp_path, replicates[1:], pair_task(), protocol, baselines={2: 30})
    assert_same_curve(alone[replicates[1]], both[replicates[1]])


def test_what_ends_off_the_grid_leaves_no_trace_in_the_others(tmp_path: Path) -> None:
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
