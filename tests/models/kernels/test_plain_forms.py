"""Hand-written autograd functions where their passes do not serve: second derivatives, autocast, transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import icy
from icy.core import fused
from icy.core.representations import cross_entropy
from icy.models.attention import Cache, after_attention
from icy.models.kernels import cell_steps
from icy.models.kernels.products import LINE, add_product, product, put_product
from icy.models.kernels.sru_scan import sru_scan
from icy.models.layers import convolve, normalise, pool_relu
from tests.helpers import mark_others
from tests.models.test_cells import double


def attended(query: Tensor, *rows: Tensor) -> Tensor:
    """Attend to each row and those before it, with the same query."""
    cache = Cache(len(rows))
    return torch.stack([cache.attend(query, row) for row in rows])


ROWS = {
    "tanh": (cell_steps.tanh, [(3, 2)]),
    "mix": (cell_steps.mix, [(3, 2), (3, 2), (3, 1)]),
    "gru": (cell_steps.gru_step, [(3, 6), (3, 6), (3, 2)]),
    "gru without input": (cell_steps.gru_step, [(1, 6), (3, 6), (3, 2)]),
    "lstm": (cell_steps.lstm_step, [(3, 8), (3, 2)]),
    "highway": (lambda *x: cell_steps.highway_step(*x, "identity"), [(3, 4), (3, 2)]),
    "highway, tanh": (lambda *x: cell_steps.highway_step(*x, "tanh"), [(3, 4), (3, 2)]),
    "highway, relu": (lambda *x: cell_steps.highway_step(*x, "relu"), [(3, 4), (3, 2)]),
    "sru": (lambda *x: cell_steps.sru_step(*x, "identity"), [(3, 8), (2, 2), (3, 2)]),
    "sru, tanh": (lambda *x: cell_steps.sru_step(*x, "tanh"), [(1, 8), (2, 2), (3, 2)]),
    "stop gate": (cell_steps.stop_gate, [(3, 2), (1, 2), (1, 1)]),
    "sru scan": (lambda b, v, c, x, m: sru_scan(x, m, b, v, c, 3, "identity"), [(2, 2)] * 3 + [(3, 2, 2), (2, 6)]),
    "sru scan, tanh": (lambda b, v, c: sru_scan(None, None, b, v, c, 3, "tanh"), [(2, 2)] * 3),
    "sru scan, state": (
        lambda b, v, c, x, m: sru_scan(x, m, b, v, c, 3, "identity"),
        [(1, 2), (1, 2), (2, 2), (3, 2, 3), (3, 4)],
    ),
    "sru scan, highway": (lambda b, v, c, x, m: sru_scan(x, m, b, v, c, 3, "tanh"), [(2, 2)] * 3 + [(3, 2, 4), (4, 8)]),
    "convolution": (lambda *x: convolve(*x, 2), [(3, 2, 2), (3, 2, 1), (1,)]),
    "pooling": (pool_relu, [(4, 2, 2)]),
    "layer norm": (normalise, [(3, 4), (4,), (4,)]),
    "decoder layer": (
        after_attention,
        [(1, 2, 2), *[(1, 1, 2)] * 4, (1, 2, 3), (1, 1, 3), (1, 3, 2), *[(1, 1, 2)] * 3],
    ),
    "attention": (attended, [(2, 2), (2, 3), (2, 3), (2, 3)]),
    "product": (product, [(2, 2, 3), (2, 3, 2), (1, 1, 2)]),
    "cross-entropy": (lambda x: cross_entropy(x, torch.tensor([0, 2, 1])), [(3, 4)]),
}
FUNCTIONS = pytest.mark.parametrize("name", ROWS)
DEFAULT = ("lstm", "sru scan", "convolution", "decoder layer", "attention", "product")
SOME_FUNCTIONS = pytest.mark.parametrize("name", mark_others("contract", ROWS, lambda name: name in DEFAULT))


def inputs_of(name: str) -> tuple[Callable[..., Any], list[Tensor]]:
    function, shapes = ROWS[name]
    return function, [double(*shape, seed=i) for i, shape in enumerate(shapes)]  # type: ignore[misc]


def as_tuple(found: Any) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


def by_plain_operations(function: Callable[..., Any], *inputs: Tensor) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fused, "usable", lambda function: False)
        patch.setattr("icy.models.attention.usable", lambda function: False)
        return function(*inputs)


@FUNCTIONS
def test_second_derivatives(name: str) -> None:
    function, inputs = inputs_of(name)
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@SOME_FUNCTIONS
def test_third_derivatives_equal_those_of_the_plain_form(name: str) -> None:
    function, inputs = inputs_of(name)

    def third(run: Callable[..., Any]) -> tuple[Tensor | None, ...]:
        loss = torch.stack([y.sin().sum() for y in as_tuple(run(*inputs))]).sum()
        for _ in range(2):
            found = torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
            loss = torch.stack([g.sin().sum() for g in found if g is not None]).sum()
        return torch.autograd.grad(loss, inputs, allow_unused=True)

    expected = third(lambda *x: by_plain_operations(function, *x))
    for one, other, given in zip(third(function), expected, inputs, strict=True):
        torch.testing.assert_close(
            torch.zeros_like(given) if one is None else one, torch.zeros_like(given) if other is None else other
        )


@SOME_FUNCTIONS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_plain_form_has_the_same_values(name: str, dtype: torch.dtype) -> None:
    function, inputs = inputs_of(name)
    given = [x.detach().to(dtype) for x in inputs]
    for one, other in zip(as_tuple(function(*given)), as_tuple(by_plain_operations(function, *given)), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6 if dtype == torch.float32 else 1e-12, rtol=0)


@SOME_FUNCTIONS
def test_forward_mode_and_vmap(name: str) -> None:
    function, inputs = inputs_of(name)
    given = tuple(x.detach() for x in inputs)
    tangents = tuple(double(*x.shape, seed=20 + i).detach() for i, x in enumerate(inputs))
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, t) for x, t in zip(given, tangents, strict=True)]
        pushed = [forward_ad.unpack_dual(y).tangent for y in as_tuple(function(*duals))]
    for found, expected in zip(as_tuple(torch.func.jvp(function, given, tangents)[1]), pushed, strict=True):
        torch.testing.assert_close(found, expected)
    outputs = as_tuple(function(*inputs))
    ones = tuple(torch.ones_like(y) for y in outputs)
    gradients = torch.autograd.grad(outputs, inputs, ones)
    total = torch.stack([(g * t).sum() for g, t in zip(gradients, tangents, strict=True)]).sum()
    torch.testing.assert_close(torch.stack([t.sum() for t in pushed]).sum(), total)
    pulled = torch.func.vjp(lambda *x: as_tuple(function(*x)), *given)[1]
    both = torch.func.vmap(pulled)(tuple(torch.stack([y, 2 * y]) for y in ones))
    for found, expected in zip(both, gradients, strict=True):
        torch.testing.assert_close(found, torch.stack([expected, 2 * expected]))


@SOME_FUNCTIONS
def test_tensors_of_two_types_within_autocast(name: str) -> None:
    function, inputs = inputs_of(name)
    single = [x.detach().float() for x in inputs]
    mixed = [x.to(torch.bfloat16) if i % 2 else x.clone().requires_grad_() for i, x in enumerate(single)]
    with torch.autocast("cpu", torch.bfloat16):
        found = as_tuple(function(*mixed))
    for one, expected in zip(found, as_tuple(function(*single)), strict=True):
        torch.testing.assert_close(one.float(), expected, atol=0.1, rtol=0.1)
    torch.stack([y.float().sum() for y in found]).sum().backward()
    assert mixed[0].grad is not None
    assert mixed[0].grad.dtype == torch.float32


@SOME_FUNCTIONS
def test_a_backward_pass_within_autocast_is_that_outside(name: str) -> None:
    function, inputs = inputs_of(name)
    single = [x.detach().float().requires_grad_() for x in inputs]
    outputs = as_tuple(function(*single))
    ones = [torch.ones_like(y) for y in outputs]
    expected = torch.autograd.grad(outputs, single, ones, retain_graph=True)
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.autograd.grad(outputs, single, ones)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(reentrant: bool) -> None:
    function, inputs = inputs_of("lstm")
    expected = torch.autograd.grad(function(*inputs)[0].sum(), inputs)
    checkpoint(function, *inputs, use_reentrant=reentrant)[0].sum().backward()
    assert all(torch.equal(x.grad, g) for x, g in zip(inputs, expected, strict=True) if x.grad is not None)


@pytest.mark.filterwarnings("ignore")  # torch.jit.trace is deprecated, and checks of shapes ask for sizes
def test_hand_written_passes_run_in_ordinary_training_only() -> None:
    gates, c = torch.zeros(3, 8, requires_grad=True), torch.zeros(3, 2)
    node = "LSTMStepBackward"
    assert cell_steps.lstm_step(gates, c)[0].grad_fn.name() == node  # type: ignore[union-attr]
    with torch.autocast("cpu", torch.bfloat16):
        assert cell_steps.lstm_step(gates, c)[0].grad_fn.name() != node  # type: ignore[union-attr]
    with torch.autocast("cpu", enabled=False):
        assert cell_steps.lstm_step(gates, c)[0].grad_fn.name() == node  # type: ignore[union-attr]
    traced = torch.jit.trace(lambda gates: cell_steps.lstm_step(gates, c)[0], (gates,))
    assert "PythonOp" not in str(traced.graph)


def test_second_derivatives_of_fused_attention_are_refused_or_right() -> None:
    receiver = icy.create_receiver("Transformer", "3x4", 6, 4, 8).double()
    message, weights = torch.arange(12).view(2, 6) % 4, list(receiver.parameters())

    def product() -> tuple[Tensor, ...]:
        first = torch.autograd.grad(receiver(message).square().sum(), weights, create_graph=True)
        return torch.autograd.grad(torch.stack([g.sum() for g in first]).sum(), weights, allow_unused=True)

    with pytest.raises(NotImplementedError, match=r"fused attention has no second derivatives; .*SDPBackend\.MATH"):
        product()
    with sdpa_kernel(SDPBackend.MATH):
        assert any(g is not None and g.any() for g in product())


def test_a_state_dict_holds_stored_examples() -> None:
    stored, other = (icy.create_receiver("kNN", "3x4", 6, 4, 8) for _ in range(2))
    messages, meanings = torch.arange(12).view(2, 6) % 4, torch.arange(6).view(2, 3) % 4
    stored.observe(messages, meanings)
    other.observe(messages.flip(0) * 0, meanings)
    other.load_state_dict(stored.state_dict())
    assert torch.equal(other(messages).argmax(-1), meanings)
    assert len(other.known) == 2


def test_attention_may_turn_plain_midway(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where `torch.compile` compiles some steps and not others."""
    function, inputs = inputs_of("attention")
    expected = function(*inputs)
    gradients = torch.autograd.grad(expected.square().sum(), inputs)
    for pattern in ((True, False, True), (False, True, True), (True, True, False)):
        answers = iter(pattern)
        monkeypatch.setattr("icy.models.attention.usable", lambda function, answers=answers: next(answers))
        found = function(*inputs)
        torch.testing.assert_close(found, expected)
        again = torch.autograd.grad(found.square().sum(), inputs)
        for one, other in zip(again, gradients, strict=True):
            torch.testing.assert_close(one, other)


# -- products of stacks of matrices ------------------------------------------------------------------------------------


SIZES = [(128, 11, 11), (11, 20, 11), (5, 20, 60), (70, 20, 5), (128, 32, 5), (64, 16, 1), (33, 11, 11), (70, 8, 5)]
sizes = pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)


def matrices(*sizes: int, turned: bool = False, **how: torch.dtype) -> Tensor:
    generator = torch.Generator().manual_seed(sum(sizes))
    found = torch.randn(*sizes[:-2], *(sizes[:-3:-1] if turned else sizes[-2:]), generator=generator, **how)
    return found.mT if turned else found


@sizes
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False)])
def test_an_item_has_the_same_bits_at_any_place(rows: int, inner: int, columns: int, turned: tuple[bool, bool]) -> None:
    a, b = matrices(9, rows, inner, turned=turned[0]), matrices(9, inner, columns, turned=turned[1])
    addend = matrices(9, rows, columns)
    whole, added = product(a, b), product(a, b, addend)
    for places in ([8, 0], [3, 5, 8], [1, 2, 3, 4]):
        x, y = (part.mT[places].mT if t else part[places] for part, t in zip((a, b), turned, strict=True))
        assert torch.equal(product(x, y), whole[places])
        assert torch.equal(product(x, y, addend[places]), added[places])
        assert torch.equal(add_product(addend[places], x, y), add_product(addend.clone(), a, b)[places])


@sizes
def test_products_and_gradients_are_those_of_matmul(rows: int, inner: int, columns: int) -> None:
    a, b = matrices(3, rows, inner, dtype=torch.double), matrices(3, inner, columns, dtype=torch.double)
    row = matrices(3, 1, columns, dtype=torch.double)
    of_each = [[part.clone().requires_grad_() for part in (a, b, row)] for _ in range(2)]
    found, expected = product(*of_each[0]), of_each[1][0] @ of_each[1][1] + of_each[1][2]
    torch.testing.assert_close(found, expected)
    for value in (found, expected):
        (value * matrices(3, rows, columns, dtype=torch.double)).sum().backward()
    for mine, theirs in zip(*of_each, strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)
    torch.testing.assert_close(add_product(torch.ones_like(expected), a, b), 1 + a @ b)
    to = torch.empty_like(expected)
    put_product(to, a, b)
    torch.testing.assert_close(to, a @ b)


def test_both_ways_are_tested() -> None:
    whole = [all(n % LINE == 0 for n in (r * i, i * c, r * c)) for r, i, c in SIZES]
    assert set(whole) == {True, False}
