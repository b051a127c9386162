"""LSTM cores equal torch's LSTM cells."""

from __future__ import annotations

import torch
from torch import nn

from icy.s2b.agents.cores.lstm import LSTM, LSTM512


def test_a_relu_follows_each_of_the_two_layers() -> None:
    torch.manual_seed(0)
    core = LSTM(5)
    cells = [nn.LSTMCell(5, 256), nn.LSTMCell(256, 128)]
    for layer, cell in zip(core.stack.layers, cells, strict=True):
        cell.load_state_dict({name.removesuffix("_l0"): value for name, value in layer.state_dict().items()})
    xs, states = torch.randn(4, 3, 5), [None, None]
    expected = []
    for x in xs:
        h = x
        for i, cell in enumerate(cells):
            states[i] = cell(h, states[i])
            h = states[i][0].relu()
        expected.append(h)
    ys, state = core.unroll(xs, core.start(3))
    torch.testing.assert_close(ys, torch.stack(expected))
    torch.testing.assert_close(state, (*states[0], *states[1]))
    assert (ys >= 0).all()


def test_lstm_512_has_no_relu() -> None:
    core = LSTM512(5)
    ys, (h, _) = core.unroll(torch.randn(4, 3, 5), core.start(3))
    assert (ys < 0).any()
    assert torch.equal(ys[-1], h)
