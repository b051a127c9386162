"""What a captured update launches, counted without a GPU."""

from __future__ import annotations

import pytest
import torch

from benchmarks import bound, floors

pytestmark = pytest.mark.slow

MATRIX = 4 * 8 * 16  # bytes of the tensors below


def test_kernels_and_their_bytes_are_counted_and_views_are_not() -> None:
    x = torch.zeros(8, 16)
    with floors.counting(triton=False) as found:
        y = (x.mT @ x)[:4].T + torch.empty(4)  # 16 x 16, then 16 x 4
        y.zero_()
        torch.add(x, x[:1].expand(8, 16), out=torch.empty(8, 16))
    names = [(kernel.name, kernel.bytes, kernel.operations) for kernel in found.kernels]
    assert names == [
        ("mm", 2 * MATRIX + 4 * 16 * 16, 2 * 16 * 16 * 8),
        ("add", 4 * (64 + 4 + 64), 64),
        ("zero_", 4 * 64, 64),
        ("add", 2 * MATRIX + 4 * 16, 128),
    ]


def test_a_product_with_an_addend_copies_it_first() -> None:
    a, b, addend = torch.zeros(3, 8, 4), torch.zeros(3, 4, 2), torch.zeros(3, 1, 2)
    with floors.counting(triton=False) as found:
        torch.baddbmm(addend, a, b)
    assert [(kernel.name, kernel.operations) for kernel in found.kernels] == [
        ("copy_", 0),
        ("baddbmm", 3 * 2 * 8 * 4 * 2),
    ]


def test_saved_tensors_are_counted_once() -> None:
    x = torch.zeros(8, 16, requires_grad=True)
    with floors.counting(triton=False) as found:
        y = x.sigmoid()
        y * y
        y.T * y[0, 0]
    assert found.needed == 2 * MATRIX


def test_triton_launches_half_as_often_and_computes_the_same() -> None:
    plain, fused = (floors.captured_update("sender/HierZero:GRU", 1, triton) for triton in (False, True))
    products = [[k.operations for k in found.kernels if "bmm" in k.name] for found in (plain, fused)]
    assert sum(products[0]) == sum(products[1])
    assert sum(products[0]) / 1e9 == pytest.approx(bound.operations("sender/HierZero:GRU"), rel=1e-3)
    steps = [k.name for k in fused.kernels if k.name.startswith("Triton: gru")]
    assert len(steps) == 2 * 2 * 20  # forward and backward, two levels, the steps
    assert fused.launches < plain.launches / 2
    assert fused.bytes < plain.bytes


def test_a_stack_launches_as_often_as_one_model() -> None:
    one, many = (floors.captured_update("sender/FC2L", replicates) for replicates in (1, 3))
    assert one.launches == many.launches
    assert many.operations == pytest.approx(3 * one.operations, rel=1e-3)
