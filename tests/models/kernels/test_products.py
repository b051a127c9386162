"""Products of stacks of matrices: those of matmul, with bits that do not depend on the place in the stack."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from icy.models.kernels.products import LINE, add_product, product, put_product

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
