"""A pass by native programs equals PyTorch's: scores and gradients of every family, cell and representation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from icy.models.native.calls import Caller
from icy.models.native.program import Program
from tests.cores import needs_native
from tests.helpers import mark_others
from tests.models.native.helpers import (
    FED,
    ODD,
    RECEIVERS,
    RECURRENT,
    SAMPLING,
    USUAL,
    assert_same_pass,
    by_program,
    inputs_of,
    make,
    with_cells,
)

pytestmark = needs_native

SENDERS = [
    *(("soft", name) for name in ("FC1L", "FC2L", *with_cells(RECURRENT))),
    *(
        (representation, name)
        for representation in ("soft", "gumb")
        for name in (*with_cells(FED), "TransDecSoft", "TransDecSoft2L")
    ),
    *((channel, name) for channel in ("gs", "qt") for name in ("RNNAutoReg:GRU", "HierAutoReg:LSTM", "TransDecSoft")),
    *(("discr", name) for name in (*with_cells(SAMPLING), "TransDecSampling", "TransDecSampling2L")),
]
FROM_TOKENS = ["FC1L", "FC2L", "FC2Lv2", "FC", "CNN", *with_cells(RECEIVERS)]
FROM_WEIGHTS = [name for name in FROM_TOKENS if name not in ("FC1L", "FC2Lv2")]


def in_default(case: str | tuple[str, str]) -> bool:
    """Return whether the default suite tries a model: each family with GRU, each cell in a sender and a receiver."""
    name = case if isinstance(case, str) else case[1]
    family, _, cell = name.partition(":")
    return cell in ("", "GRU") or family in ("HierZero", "RNN1L")


@pytest.mark.parametrize(("representation", "name"), mark_others("native", SENDERS, in_default))
def test_senders(name: str, representation: str) -> None:
    assert_same_pass(make("sender", name, representation=representation), inputs_of("sender"))


@pytest.mark.parametrize("name", mark_others("native", FROM_TOKENS, in_default))
def test_receivers_of_tokens(name: str) -> None:
    assert_same_pass(make("receiver", name), inputs_of("receiver"))


@pytest.mark.parametrize("name", mark_others("native", FROM_WEIGHTS, lambda name: name in ("CNN", "Hier:GRU")))
def test_receivers_of_weights_over_symbols(name: str) -> None:
    """Also the gradient of the input, which would train a sender."""
    assert_same_pass(make("receiver", name), inputs_of("receiver", weighted=True))


# The least sizes are in the default suite; the other sizes carry the mark `native`.
ODD_SIZES = mark_others("native", ODD, lambda sizes: sizes == "the least")


@pytest.mark.parametrize("sizes", ODD_SIZES)
@pytest.mark.parametrize(
    ("representation", "name"),
    [
        ("soft", "FC1L"),
        ("soft", "FC2L"),
        ("soft", "RNNZero2L:SRU"),
        ("soft", "HierZero:GRU"),
        ("gumb", "RNNAutoReg:dgsend"),
        ("gumb", "HierAutoReg:LSTM"),
        ("discr", "RNNSampling2L:LSTM"),
        ("discr", "HierSampling:RNN"),
        ("soft", "TransDecSoft2L"),
        ("discr", "TransDecSampling"),
    ],
)
def test_senders_of_odd_sizes(name: str, representation: str, sizes: str) -> None:
    assert_same_pass(make("sender", name, ODD[sizes], representation), inputs_of("sender", ODD[sizes]))


@pytest.mark.parametrize("sizes", ODD_SIZES)
@pytest.mark.parametrize("weighted", [False, True], ids=["tokens", "weights"])
@pytest.mark.parametrize("name", ["FC2L", "FC", "CNN", "RNN1L:GRU", "RNN2L:SRU", "RNN2L:dgrecv", "Hier:LSTM"])
def test_receivers_of_odd_sizes(name: str, weighted: bool, sizes: str) -> None:
    assert_same_pass(make("receiver", name, ODD[sizes]), inputs_of("receiver", ODD[sizes], weighted))


@pytest.mark.native
@pytest.mark.parametrize("batch", [75, 200])
def test_large_models_take_larger_chunks(batch: int) -> None:
    sizes = replace(USUAL, hidden=300, batch=batch)
    model, inputs = make("sender", "RNNAutoReg2L:LSTM", sizes), inputs_of("sender", sizes)
    chunks = [Program(m, inputs, training=True, gradient=True).chunks(200) for m in (make("sender", "FC2L"), model)]
    assert chunks == [4, 2]
    assert_same_pass(model, inputs)


@pytest.mark.parametrize("name", ["RNNAutoReg:GRU", "HierAutoReg:SRU", "TransDecSoft"])
def test_in_evaluation_a_sender_reads_its_largest_score(name: str) -> None:
    """Without noise, though the representation samples in training."""
    model, inputs = make("sender", name, representation="gumb"), inputs_of("sender")
    program, caller = Program(model, inputs, training=False, gradient=False), Caller()
    parameters = program.layout.pack(dict(model.named_parameters()))[None]
    found = [caller.scores(program, parameters, inputs[None], torch.tensor([key]))[0] for key in (1, 2)]
    assert torch.equal(*found)
    with torch.no_grad():
        torch.testing.assert_close(found[0], model.eval()(inputs), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found[0], by_program(model, inputs).scores, atol=1e-3)


@pytest.mark.parametrize("batch", mark_others("native", [1, 7, 63, 64, 65, 128, 200], lambda size: size in (1, 65)))
def test_examples_are_independent_however_a_batch_is_cut(batch: int) -> None:
    model = make("sender", "HierZero:GRU")
    program, caller = Program(model, inputs_of("sender"), training=False, gradient=False), Caller()
    parameters = program.layout.pack(dict(model.named_parameters()))[None]
    inputs = torch.randint(4, (1, batch, 3), generator=torch.Generator().manual_seed(1))
    whole = caller.scores(program, parameters, inputs)
    parts = [caller.scores(program, parameters, some) for some in inputs.split(50, 1)]
    torch.testing.assert_close(whole, torch.cat(parts, 1), atol=1e-6, rtol=1e-6)


def test_memory_is_reused_between_calls() -> None:
    """What a replicate leaves behind in the caller's memory does not reach the next, or another program."""
    inputs, caller = inputs_of("sender"), Caller()
    models = [make("sender", name) for name in ("HierZero:LSTM", "FC2L", "TransDecSoft")]
    programs = [Program(model, inputs, training=False, gradient=False) for model in models]
    packed = [p.layout.pack(dict(m.named_parameters()))[None] for p, m in zip(programs, models, strict=True)]
    poisoned = [torch.full_like(one, torch.nan) for one in packed]
    first = [Caller().scores(p, one, inputs[None]) for p, one in zip(programs, packed, strict=True)]
    for program, one, expected in zip(programs, packed, first, strict=True):
        for other, bad in zip(programs, poisoned, strict=True):
            assert caller.scores(other, bad, inputs[None]).isnan().any()
        assert torch.equal(caller.scores(program, one, inputs[None]), expected)


def test_a_stack_is_shared_by_threads() -> None:
    model, inputs = make("sender", "RNNAutoReg:GRU"), inputs_of("sender", USUAL)
    program = Program(model, inputs, training=False, gradient=False)
    one = program.layout.pack(dict(model.named_parameters()))
    parameters = torch.stack([one * (1 + 0.1 * i) for i in range(5)])
    stack = inputs.expand(5, *inputs.shape)
    alone = Caller().scores(program, parameters, stack)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(Caller().scores(program, parameters, stack), alone)
    finally:
        torch.set_num_threads(threads)
