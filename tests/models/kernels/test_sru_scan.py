"""The SRU over a whole sequence: its numbers and its hand-written gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from icy.models.kernels import sru_scan as scan
from icy.models.kernels.sru_scan import sru_scan
from tests.models.cell_helpers import assert_close, check_gradients, double, sru_by_the_book

BLOCKS = {"unfed": 0, "no r": 2, "unfed, no r": 0, "passes x on": 3, "passes a product on": 4}


@pytest.mark.native
@pytest.mark.parametrize(  # slabs of one step, of four and a rest, of all
    ("in_cache", "activation"), [(1, "tanh"), (18, "identity"), (18, "tanh"), (2**14, "identity")]
)
@pytest.mark.parametrize("lead", [(), (2,)])
@pytest.mark.parametrize("case", BLOCKS)
def test_sru_scan(
    case: str, lead: tuple[int, ...], in_cache: int, activation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "IN_CACHE", in_cache)
    size, batch, steps, blocks = 2, 2, 5, BLOCKS[case]
    gates, inputs = 1 if "no r" in case else 2, 4 if blocks == 4 else size
    bias, v, c = (double(*lead, rows, size, seed=i) for i, rows in enumerate((gates, gates, batch)))
    fed = [double(*lead, steps, batch, inputs, seed=3), double(*lead, inputs, blocks * size, seed=4)] if blocks else []

    def run(*of: Tensor) -> Tensor:
        x, matrix = of[3:] or (None, None)
        return sru_scan(x, matrix, of[0], of[1], of[2], steps, activation)

    assert check_gradients(run, bias, v, c, *fed)
    x, matrix = fed or (c.new_zeros(*lead, steps, batch, size), c.new_zeros(*lead, size, 3 * size))
    if gates == 1:  # r, of which nothing is read
        bias, v = bias.repeat_interleave(2, -2), v.repeat_interleave(2, -2)
        matrix = torch.cat([matrix[..., : 2 * size], matrix[..., :size]], -1)
    h, last = sru_by_the_book(x, matrix, v, bias, c, activation)
    found = run(bias[..., :gates, :], v[..., :gates, :], c, *fed)
    assert_close(found, last if gates == 1 else h, 1e-12)


def test_an_sru_scan_shares_inputs_without_a_replicate_axis() -> None:
    x, matrix = double(4, 2, 3), double(2, 3, 9, seed=1)
    bias, v, c = double(2, 2, 3, seed=2), double(2, 2, 3, seed=3), double(2, 2, 3, seed=4)
    shared = sru_scan(x, matrix, bias, v, c, 4, "identity")
    assert torch.equal(shared, sru_scan(x.expand(2, -1, -1, -1), matrix, bias, v, c, 4, "identity"))
