"""Reads of the ESBN equal values computed by hand; both variants equal loops over the equations (s2b-facts 10.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.testing import assert_close

from icy.s2b.agents.cores.entries import view
from icy.s2b.agents.cores.esbn import ESBN, Binding, StrictESBN


def test_a_read_equals_hand_computed_values() -> None:
    binding = Binding().double()
    values = torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]]], dtype=torch.float64)
    keys = torch.tensor([[[10.0], [20.0]]], dtype=torch.float64)
    seen = view(torch.tensor([2]), None, 1, 2)
    asked = torch.tensor([[[3.0, 1.0]]], dtype=torch.float64)
    reads = binding(asked, torch.cat([values.transpose(0, 1), asked], 1), keys, seen)
    first = math.exp(3) / (math.exp(3) + math.exp(2))  # the products are 3 and 2

    def sure(product: float) -> float:
        return 1 / (1 + math.exp(-product))

    expected = [10 * first + 20 * (1 - first), sure(3) * first + sure(2) * (1 - first)]
    assert_close(reads.at(0), torch.tensor([expected], dtype=torch.float64))


def read(z: Tensor, keys: list[Tensor], values: list[Tensor], binding: Binding, width: int) -> Tensor:
    """Return sum_n a_n [K_n, c_n], as in s2b-facts; zeros if the memory is empty."""
    if not keys:
        return z.new_zeros(width)
    products = torch.stack([z @ value for value in values])
    weights = products.softmax(0)
    sure = (binding.gain * products + binding.bias).sigmoid()
    found = [torch.cat([key, one[None]]) for key, one in zip(keys, sure, strict=True)]
    return (weights[:, None] * torch.stack(found)).sum(0)


def test_the_strict_variant_equals_the_original_with_its_extra_step() -> None:
    torch.manual_seed(0)
    core = StrictESBN(5, capacity=8, value=3, key=4, controller=6).double()
    torch.nn.init.constant_(core.binding.gain, 1.5)
    xs = torch.randn(4, 1, 5).double()
    ys, _ = core.unroll(xs, core.start(1))
    zs = [core.embed(x[0]) for x in xs]
    for end in range(1, 5):  # the original answers once, at the end of a sequence
        keys: list[Tensor] = []
        key_read, state = torch.zeros(5).double(), None
        for t in range(end + 1):  # one more step than inputs
            h, c = core.controller(key_read[None], state)
            state = h, c
            if t < end:
                key_read = core.gate(h[0]).sigmoid() * read(zs[t], keys, zs[:t], core.binding, 5)
                keys.append(core.to_key(h[0]).relu())
        assert_close(ys[end - 1], h)


def test_the_variant_of_the_papers_equals_its_equations() -> None:
    torch.manual_seed(0)
    core = ESBN(5, capacity=8, key=4, controller=6, hidden=7, output=3).double()
    xs = torch.randn(4, 1, 5).double()
    ys, latents, _ = core.trace(xs, core.start(1))
    keys: list[Tensor] = []
    key_read, state, above = torch.zeros(5).double(), None, core.above.start(xs[0])
    for t, x in enumerate(xs):
        h, c = core.controller(torch.cat([x[0], key_read])[None], state)
        state = h, c
        key_read = core.gate(h[0]).sigmoid() * read(x[0], keys, list(xs[:t, 0]), core.binding, 5)
        keys.append(core.to_key(h[0]))
        latent = torch.cat([h[0], key_read])
        assert_close(latents[t, 0], latent)
        y, _, above = core.above(torch.cat([x[0], latent])[None, None], above)
        assert_close(ys[t], core.answer(y)[0])


def test_the_strict_controller_sees_no_input() -> None:
    core = StrictESBN(5, capacity=8)
    one, _ = core.step(torch.randn(1, 5), core.start(1))
    other, _ = core.step(torch.randn(1, 5), core.start(1))
    assert torch.equal(one, other)  # the memory is empty
