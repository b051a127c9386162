"""Native cores that draw their batches give the numbers of batches that are drawn for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from icy.core.errors import IncompatibleError
from icy.core.representations import get_representation
from icy.grammars import make_language
from icy.languages.meanings import MeaningSpace
from icy.training.batches import Batches
from icy.training.engine import Probes
from icy.training.learners import Learner, make_learner, supervised_loss
from icy.training.lockstep import Lockstep
from icy.training.native import NativeLearner
from icy.training.probe_settings import ProbeSettings
from icy.training.task_models import make_model
from tests.cores import needs_native
from tests.helpers import mark_others
from tests.training.helpers import CPU, SETTINGS, assert_same_bits, job

pytestmark = needs_native

GRAMMARS, SEEDS = ("concat", "rot", "perm"), (7, 7, 8)
SHARING = "receiver/Hier:RNN"  # with the gate of the first example for all
GRID, RAGGED = MeaningSpace(3, 4), MeaningSpace.of_sizes(4, 2, 3)
MODELS = ("sender/FC2L", "sender/FC1L", "receiver/MeanEmbeddings", "sender/RNNZero:SRU", "receiver/Hier:GRU", SHARING)


def made(model: str, space: MeaningSpace = GRID, vocab: int = 4, how: str = "native", rep: str = "soft") -> Learner:
    options = {"shared_gate": True} if model == SHARING else {}
    of = ProbeSettings.of_model(model, space, vocab, 2, 20, rep, options)
    loss = supervised_loss(get_representation(rep), of.side)
    models, sample = [make_model(of, seed, SETTINGS) for seed in SEEDS], torch.zeros(3, 2, 3, dtype=torch.long)
    if of.side == "receiver":
        sample = torch.zeros(3, 2, of.message_length, dtype=torch.long)
    return make_learner(models, SEEDS, loss, replace(SETTINGS, batch_size=130), CPU, sample, how)


def draws_of(space: MeaningSpace, vocab: int = 4) -> Batches:
    languages = [make_language(g, space, vocab, 2, s) for g, s in zip(GRAMMARS, SEEDS, strict=True)]
    return Batches(languages, list(SEEDS), CPU)


def drawn_by_pytorch(draws: Batches, side: str, *which: int, purpose: str = "training") -> tuple[Tensor, Tensor]:
    native, draws._native = draws._native, False
    meanings, messages = draws.batches(purpose, *which)
    draws._native = native
    return (meanings, messages) if side == "sender" else (messages, meanings)


@pytest.mark.parametrize("size", mark_others("native", [1, 63, 65, 130], lambda size: size in (1, 65)))
@pytest.mark.parametrize("model", mark_others("native", MODELS, lambda model: "FC2L" in model or "Mean" in model))
def test_updates_draw_the_same_batches(model: str, size: int) -> None:
    side, draws = model.partition("/")[0], draws_of(GRID)
    drawing, given = made(model), made(model)
    assert isinstance(drawing, NativeLearner)
    for first in (0, 3):
        noise, which = draws.noise(first, 3), (first, 3, size)
        batches = draws.drawing("training", *which)
        assert batches is not None
        drawing.train_on_draws(batches, noise, side == "sender")
        given.train(*drawn_by_pytorch(draws, side, *which), noise)
    for place in range(3):
        assert_same_bits(drawing, place, given, place)
    assert torch.equal(drawing.losses(), given.losses())  # type: ignore[arg-type]


@pytest.mark.parametrize("which", [None, [2, 0]])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000], ids=str)  # 64 meanings: below, each drawn example is read
@pytest.mark.parametrize("space", [GRID, RAGGED], ids=str)
@pytest.mark.parametrize("model", mark_others("native", MODELS, lambda model: model in ("sender/FC2L", SHARING)))
def test_readings_draw_the_same_batches(
    model: str, space: MeaningSpace, size: int, which: Sequence[int] | None
) -> None:
    side, draws = model.partition("/")[0], draws_of(space)
    try:
        learner = made(model, space)
    except IncompatibleError:
        pytest.skip("native cores do not support this space")
    assert isinstance(learner, NativeLearner)
    drawing = draws.drawing("check", 5, 1, size, which)
    assert drawing is not None
    found = learner.right_of_draws(drawing, side == "sender", which)
    inputs, targets = (x[0] for x in drawn_by_pytorch(draws, side, 5, 1, size, purpose="check"))
    if which is not None:
        inputs, targets = inputs[list(which)], targets[list(which)]
    assert torch.equal(found, learner.right(inputs, targets, which))
    assert found.sum() > 0 or size == 1


@pytest.mark.parametrize(
    "model", mark_others("native", ["sender/FC2L", "receiver/MeanEmbeddings"], lambda model: model == "sender/FC2L")
)
def test_a_run_is_the_same_with_batches_of_pytorch(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = replace(job(model, [("concat", 1), ("rot", 1), ("rot", 2)], baselines={1: 1, 2: 1}), engine="native")
    found, readings = Probes(of), []
    loop = Lockstep(found)
    for _ in range(3):
        loop.advance(found.updates + 4)
        readings.append([reading.accuracy for reading in found.read()])
    monkeypatch.setattr(Batches, "drawing", lambda *_: None)
    expected = Probes(of)
    loop = Lockstep(expected)
    for reading in readings:
        loop.advance(expected.updates + 4)
        assert [r.accuracy for r in expected.read()] == reading
    for place in range(3):
        assert_same_bits(found.learner, place, expected.learner, place)


@pytest.mark.parametrize("size", [1, 63, 65])
@pytest.mark.parametrize("vocab", [1, 2, 16, 64])
@pytest.mark.parametrize(
    ("representation", "model"),
    mark_others(
        "native",
        [(r, m) for r in ("soft", "gumb", "discr") for m in ("sender/FC2L", "sender/FC1L", "sender/RNNZero:SRU")],
        lambda case: case == ("soft", "sender/FC2L"),
    ),
)
def test_losses_over_any_number_of_symbols(representation: str, model: str, vocab: int, size: int) -> None:
    """Squares of columns begin and end anywhere: V + 1 = 2, 3, 17 and 65 symbols at a place."""
    generator = torch.Generator().manual_seed(3)
    native, pytorch = (made(model, vocab=vocab, how=how, rep=representation) for how in ("native", "broadcast"))
    inputs = torch.randint(4, (2, 3, size, 3), generator=generator)
    targets = torch.randint(vocab + 1, (2, 3, size, 6), generator=generator)
    keys = torch.randint(2**60, (2, 3), generator=generator)
    if representation == "discr" and size == 1:
        return  # the deviation of one reward is undefined
    for one in (native, pytorch):
        one.train(inputs, targets, keys)
    torch.testing.assert_close(native.losses(), pytorch.losses(), check_dtype=False, atol=1e-4, rtol=1e-4)
    scores = [one.scores(inputs[0]) for one in (native, pytorch)]
    torch.testing.assert_close(*scores, atol=2e-3, rtol=1e-3)


def test_batches_of_another_model_are_refused() -> None:
    learner, noise = made("sender/FC2L"), torch.zeros(1, 3, dtype=torch.long)
    assert isinstance(learner, NativeLearner)
    drawing = draws_of(GRID).drawing("training", 0, 1, 8)
    assert drawing is not None
    for refused, of_meanings, message in [
        (drawing, False, "6 tokens for 3 targets"),
        (draws_of(MeaningSpace(3, 5)).drawing("training", 0, 1, 8), True, "Tokens must be 0 to 3 here, not up to 4"),
        (draws_of(MeaningSpace(2, 4)).drawing("training", 0, 1, 8), True, "2 tokens for 4 targets"),
        (drawing._replace(keys=drawing.keys[:2], rows=drawing.rows[:2]), True, "2 replicates, not of 3"),
        (drawing._replace(rows=drawing.rows + 1), True, "one row per meaning"),
    ]:
        assert refused is not None
        with pytest.raises(IncompatibleError, match=message):
            learner.train_on_draws(refused, noise, of_meanings)
        with pytest.raises(IncompatibleError, match=message):
            learner.right_of_draws(refused, of_meanings)
