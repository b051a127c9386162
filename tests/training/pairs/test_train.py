"""Training pairs: batched pairs equal pairs alone, and pre-training may fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from icy.config.protocols import SCRATCH, EndToEndProtocol
from icy.core.registry import registry
from icy.languages.meanings import MeaningSpace
from icy.training.job import Reading, Replicate
from icy.training.pair_job import PairJob
from icy.training.pair_training import train_pairs
from icy.training.task_models import Pair, make_pair
from icy.training.tasks import PairEntry
from tests.cores import both_engines
from tests.helpers import mark_others
from tests.training.pairs.helpers import SETTINGS, assert_same_curve, pair_task, run

REPRESENTATIONS = ("soft", "gumb", "discr")

# -- the same numbers, however it is run -------------------------------------------------------------------------------


@both_engines
@pytest.mark.parametrize("representation", mark_others("slow", REPRESENTATIONS, lambda name: name == "discr"))
@pytest.mark.parametrize(
    ("sender", "receiver"),
    mark_others(
        "slow",
        [("RNNAutoReg:GRU", "RNN1L:GRU"), ("HierZero:RNN", "Hier:RNN"), ("FC2L", "CNN")],
        lambda pair: pair == ("FC2L", "CNN"),
    ),
)
def test_pairs_together_equal_pairs_alone(
    tmp_path: Path, sender: str, receiver: str, representation: str, how: str
) -> None:
    task = pair_task(sender, receiver, representation)
    replicates = [Replicate(SCRATCH, seed) for seed in (1, 2, 3)]
    together = run(tmp_path, replicates, task, engine=how)
    assert {o.engine for o in together.values()} == {how}
    for replicate in replicates:
        alone = run(tmp_path, [replicate], task, engine="loop")
        assert_same_curve(alone[replicate], together[replicate])


@pytest.mark.slow
def test_pre_trained_pairs_together_equal_pairs_alone(tmp_path: Path) -> None:
    replicates = [Replicate(grammar, seed) for grammar in ("concat", "perm") for seed in (1, 2)]
    together = run(tmp_path, replicates, pair_task())
    for replicate in replicates[1:3]:
        assert_same_curve(run(tmp_path, [replicate], pair_task())[replicate], together[replicate])


# -- messages of the pair ----------------------------------------------------------------------------------------------


def test_a_strangers_plain_modules_play(tmp_path: Path) -> None:
    class Speaker(nn.Module):
        def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
            super().__init__()
            self.values, self.shape = space.values, (message_length, vocab_size + 1)
            self.net = nn.Linear(space.attributes * space.values, message_length * (vocab_size + 1))

        def forward(self, meanings: torch.Tensor) -> torch.Tensor:
            hot = (meanings.unsqueeze(-1) == torch.arange(self.values)).float().flatten(-2)
            found: torch.Tensor = self.net(hot).unflatten(-1, self.shape)
            return found

    speaker = replace(registry.get("FC1L", "sender"), name="Speaker", factory=Speaker)
    task = replace(pair_task("FC1L", "FC2L", "gumb"), entry=PairEntry(speaker, registry.get("FC2L", "receiver")))
    replicates = [Replicate(SCRATCH, seed) for seed in (1, 2)]
    found = run(tmp_path, replicates, task)
    assert {o.engine for o in found.values()} <= {"vmap", "loop"}
    assert_same_curve(run(tmp_path, replicates[1:], task, engine="loop")[replicates[1]], found[replicates[1]])


# -- errors ------------------------------------------------------------------------------------------------------------


def test_without_concat_the_length_is_unknown(tmp_path: Path) -> None:
    protocol = EndToEndProtocol(target=0.9, report_every=5)
    found = run(tmp_path, [Replicate("perm", 1)], pair_task(), protocol, baselines={1: "not_learnt"})
    assert found[Replicate("perm", 1)].reason == "no_baseline"


def test_readings_are_reported(tmp_path: Path) -> None:
    seen: list[Reading] = []
    job = PairJob(
        pair_task(),
        EndToEndProtocol(steps=10, report_every=5),
        SETTINGS,
        replicates=(Replicate(SCRATCH, 1),),
        folder=str(tmp_path),
    )
    list(train_pairs(job, seen.extend))
    assert [r.steps for r in seen] == [5, 10]
    assert isinstance(make_pair(pair_task(), 1, SETTINGS), Pair)


# -- former faults -----------------------------------------------------------------------------------------------------


def test_nothing_is_trained_after_a_known_failure_of_concat(tmp_path: Path) -> None:
    seen: list[Reading] = []
    pairs = PairJob(
        pair_task(),
        EndToEndProtocol(),
        SETTINGS,
        replicates=(Replicate("perm", 1),),
        baselines={1: "not_learnt"},
        folder=str(tmp_path),
    )
    (outcome,) = train_pairs(pairs, seen.extend)
    assert (outcome.reason, outcome.steps, seen) == ("no_baseline", 0, [])
