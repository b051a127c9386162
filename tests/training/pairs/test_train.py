"""Training pairs: batched pairs equal pairs alone, and pre-training may fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from icy.config.protocols import SCRATCH
from icy.core.errors import InvalidSettingError
from icy.core.noise import Noise
from icy.core.representations import SOFT, LearnedCodebook, one_hot
from icy.languages.language import Language
from icy.training.job import Outcome, Reading, Replicate
from icy.training.pair_game import PairGame, Players, _Tally
from icy.training.pair_settings import EndToEndSettings
from icy.training.pair_training import train_pairs
from icy.training.task_models import Pair, make_pair, try_pair
from icy.training.weights import restore, unpack_weights
from tests.cores import both_engines
from tests.helpers import mark_others
from tests.training.helpers import Plain, plug_in
from tests.training.pairs.helpers import SETTINGS, SPACE, assert_same_curve, pair_job, pair_task, run

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
    plug_in(Plain, extra=nn.SiLU)
    task = pair_task("plug-in", "FC2L", "gumb")
    replicates = [Replicate(SCRATCH, seed) for seed in (1, 2)]
    found = run(tmp_path, replicates, task)
    assert {o.engine for o in found.values()} <= {"vmap", "loop"}
    assert_same_curve(run(tmp_path, replicates[1:], task, engine="loop")[replicates[1]], found[replicates[1]])


# -- errors ------------------------------------------------------------------------------------------------------------


def test_readings_are_reported(tmp_path: Path) -> None:
    seen: list[Reading] = []
    list(train_pairs(pair_job(tmp_path, [Replicate(SCRATCH, 1)], pair_task(updates=10)), seen.extend))
    assert [r.steps for r in seen] == [5, 10]
    assert isinstance(make_pair(pair_task(), 1, SETTINGS), Pair)


# -- former faults -----------------------------------------------------------------------------------------------------


def test_nothing_is_trained_after_a_known_failure_of_concat(tmp_path: Path) -> None:
    seen: list[Reading] = []
    job = pair_job(tmp_path, [Replicate("perm", 1)], pair_task(updates=None), baselines={1: "not_learnt"})
    (outcome,) = train_pairs(job, seen.extend)
    assert (outcome.reason, outcome.steps, seen) == ("no_baseline", 0, [])


# -- the game of a pair: games of other lengths leave no trace in their neighbours -------------------------------------


@pytest.mark.slow
def test_other_lengths_of_the_game_do_not_disturb(tmp_path: Path) -> None:
    """Games of different lengths: the longer game continues as if alone."""
    task = pair_task(updates=None, cap=0.5, most=None)
    replicates = [Replicate("perm", seed) for seed in (1, 2)]
    both = run(tmp_path, replicates, task, baselines={1: 10, 2: 30})
    assert [both[r].steps for r in replicates] == [5, 15]
    alone = run(tmp_path, replicates[1:], task, baselines={2: 30})
    assert_same_curve(alone[replicates[1]], both[replicates[1]])


@pytest.mark.slow
def test_a_pair_that_ends_between_checks_adds_no_point_to_other_curves(tmp_path: Path) -> None:
    """Under `published` the accuracy is a mean since the last reading: it must not depend on a neighbour's end."""
    published = replace(SETTINGS, training_readings=True, fresh_reading=False)
    task = pair_task(updates=None, cap=1, most=None, report_every=10, training=published)
    replicates = [Replicate("perm", 1), Replicate("perm", 2)]
    both, alone = (run(tmp_path, some, task, baselines={1: 17, 2: 23}) for some in (replicates, replicates[1:]))
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
    game = PairGame(
        pair_job(tmp_path, [replicate], task), [Players(replicate, steps=12, models=[make_pair(task, 1, SETTINGS)])]
    )

    def scores(meanings: Tensor, messages: Tensor, *_: Any) -> list[Tensor]:
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


# -- pairs over the channels of games ----------------------------------------------------------------------------------


CHANNELS = ("gs", "qt", "cb")


def far(channel: str, **more: Any) -> EndToEndSettings:
    return pair_task(representation=channel, report_every=12, target=0.95, **more)


def played(folder: Path, task: EndToEndSettings, replicate: Replicate) -> tuple[Outcome, Language, Pair]:
    """What came of a short game: its outcome, the language that emerged, and the pair."""
    (outcome,) = run(folder, [replicate], task, keep_models=True).values()
    (folder / "said.npz").write_bytes(outcome.files[outcome.extra["language"]])
    language = Language.load(folder / "said.npz")
    (weights,) = (content for name, content in outcome.files.items() if name != outcome.extra["language"])
    pair = restore(make_pair(task, replicate.seed, SETTINGS), unpack_weights(weights), "pair")
    return outcome, language, pair  # type: ignore[return-value]


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_language_that_emerged_has_the_words_that_the_receiver_reads(channel: str, tmp_path: Path) -> None:
    outcome, language, pair = played(tmp_path, far(channel), Replicate(SCRATCH, 1))
    read: list[torch.Tensor] = []
    pair.receiver.register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))
    with torch.no_grad():
        pair(torch.from_numpy(SPACE.meanings(np.arange(SPACE.size))))
    assert np.array_equal(language.messages, pair.link.words(read[0]).numpy())
    assert language.vocab_size == {"gs": 4, "qt": 16, "cb": 4}[channel]
    assert np.isfinite(outcome.extra["end_to_end_loss"])
    if channel == "qt":
        bits = read[0][..., :-1]
        assert set(bits.flatten().tolist()) == {0, 1}
        assert np.array_equal(language.messages, (bits @ torch.tensor([8.0, 4, 2, 1])).numpy())


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS)
def test_sides_that_know_a_language_start_from_its_words(channel: str, tmp_path: Path) -> None:
    task = far(channel, pretrain_representation=channel)
    outcome, _, pair = played(tmp_path, task, Replicate("concat", 1))
    _, accuracy, *_, of_sender, of_receiver = outcome.curve[0]
    assert min(of_sender, of_receiver) > 0.85  # type: ignore[type-var]
    assert accuracy > 0.75  # over the representation
    if channel == "cb":
        assert isinstance(pair.link, LearnedCodebook)
        moved = (pair.link.codes - torch.eye(4)).abs()
        assert 0 < moved.max() < 0.5


def test_a_codebook_learns_and_is_kept(tmp_path: Path) -> None:
    task = far("cb")
    _, _, pair = played(tmp_path, task, Replicate(SCRATCH, 1))
    start = make_pair(task, 1, SETTINGS).link
    assert isinstance(start, LearnedCodebook)
    assert not torch.equal(pair.link.codes, start.codes)  # type: ignore[union-attr, attr-defined]
    assert pair.sender.feedback.representation is pair.link  # type: ignore[union-attr]
    another = make_pair(task, 2, SETTINGS).link
    assert not torch.equal(another.codes, start.codes)  # type: ignore[union-attr, attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS)
def test_a_stack_of_pairs_is_each_alone(channel: str, tmp_path: Path) -> None:
    replicates = [Replicate(SCRATCH, seed) for seed in (1, 2)]
    together = run(tmp_path, replicates, pair_task(representation=channel), engine="broadcast")
    (alone,) = run(tmp_path, replicates[1:], pair_task(representation=channel), engine="loop").values()
    assert together[replicates[1]].engine == "broadcast"
    assert_same_curve(together[replicates[1]], alone)


def test_too_many_words_are_refused_early() -> None:
    with pytest.raises(InvalidSettingError, match="too many for 64-bit numbers"):
        try_pair(pair_task(representation="qt", vocab_size=70))
