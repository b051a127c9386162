"""Pairs over the channels of games: messages are read as words, and not by the largest score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from icy.config.protocols import SCRATCH, EndToEndProtocol
from icy.core.errors import InvalidSettingError
from icy.core.representations import LearnedCodebook
from icy.languages.language import Language
from icy.training.job import Outcome, Replicate
from icy.training.pair_job import PairJob
from icy.training.pair_training import train_pairs
from icy.training.task_models import Pair, make_pair, try_pair
from icy.training.weights import restore, unpack_weights
from tests.training.pairs.helpers import SETTINGS, SHORT, SPACE, assert_same_curve, pair_task, run

CHANNELS = ("gs", "qt", "cb")
FAR = EndToEndProtocol(steps=12, report_every=12, target=0.95)


def played(folder: Path, task: object, replicate: Replicate) -> tuple[Outcome, Language, Pair]:
    """What came of a short game: its outcome, the language that emerged, and the pair."""
    job = PairJob(task, FAR, SETTINGS, replicates=(replicate,), folder=str(folder), keep_models=True)  # type: ignore[arg-type]
    (outcome,) = train_pairs(job)
    (folder / "said.npz").write_bytes(outcome.files[outcome.extra["language"]])
    language = Language.load(folder / "said.npz")
    (weights,) = (content for name, content in outcome.files.items() if name != outcome.extra["language"])
    pair = restore(make_pair(task, replicate.seed, SETTINGS), unpack_weights(weights), "pair")  # type: ignore[arg-type]
    return outcome, language, pair  # type: ignore[return-value]


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_language_that_emerged_has_the_words_that_the_receiver_reads(channel: str, tmp_path: Path) -> None:
    task = pair_task(representation=channel)
    outcome, language, pair = played(tmp_path, task, Replicate(SCRATCH, 1))
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
    task = replace(pair_task(representation=channel), pretrain_representation=channel)
    outcome, _, pair = played(tmp_path, task, Replicate("concat", 1))
    _, accuracy, *_, of_sender, of_receiver = outcome.curve[0]
    assert min(of_sender, of_receiver) > 0.85  # type: ignore[type-var]
    assert accuracy > 0.75  # over the representation
    if channel == "cb":
        assert isinstance(pair.link, LearnedCodebook)
        moved = (pair.link.codes - torch.eye(4)).abs()
        assert 0 < moved.max() < 0.5


def test_a_codebook_learns_and_is_kept(tmp_path: Path) -> None:
    task = pair_task(representation="cb")
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
    together = run(tmp_path, replicates, pair_task(representation=channel), SHORT, engine="broadcast")
    (alone,) = run(tmp_path, replicates[1:], pair_task(representation=channel), SHORT, engine="loop").values()
    assert together[replicates[1]].engine == "broadcast"
    assert_same_curve(together[replicates[1]], alone)


def test_too_many_words_are_refused_early() -> None:
    with pytest.raises(InvalidSettingError, match="too many for 64-bit numbers"):
        try_pair(replace(pair_task(representation="qt"), vocab_size=70), SETTINGS)
