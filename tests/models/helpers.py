"""Models of a small space, and plain loops written from their formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from icy.languages.meanings import MeaningSpace
from icy.models import create_receiver, create_sender

CREATE: dict[str, Callable[..., Any]] = {"sender": create_sender, "receiver": create_receiver}

# -- plain loops written from the formulas -----------------------------------------------------------------------------

A, K, L, V, E, BATCH = 3, 4, 6, 4, 16, 5
SPACE = MeaningSpace(A, K)
LIBRARY: dict[str, Callable[..., nn.Module]] = {"RNN": nn.RNNCell, "GRU": nn.GRUCell, "LSTM": nn.LSTMCell}
Pair = tuple[Tensor, Tensor | None]


def make(side: str, name: str, **options: Any) -> Any:
    torch.manual_seed(5)
    return CREATE[side](name, SPACE, L, V, E, **options)


def some_meanings(count: int = BATCH) -> Tensor:
    return torch.randint(K, (count, A), generator=torch.Generator().manual_seed(1))


def some_messages(count: int = BATCH) -> Tensor:
    return torch.randint(V, (count, L), generator=torch.Generator().manual_seed(2))


class Plain:
    """A library cell with the weights of one of icy's, on states (h, c) where c is None but for the LSTM."""

    def __init__(self, cell: Any, kind: str) -> None:
        self.cell = LIBRARY[kind](cell.input_size, E)
        self.has_c = kind == "LSTM"
        weights = cell.state_dict()
        weights.setdefault("weight_ih", torch.randn_like(self.cell.weight_ih))  # multiplies zeros
        self.cell.load_state_dict(weights)

    def __call__(self, x: Tensor, state: Pair) -> Pair:
        h, c = state
        if self.has_c:
            assert c is not None
            h, c = self.cell(x, (h, c))
            return h, c
        return self.cell(x, h), None

    def start(self, h: Tensor) -> Pair:
        return h, torch.zeros_like(h) if self.has_c else None


def between(s: Tensor, new: Pair, old: Pair) -> Pair:
    """s new + (1 - s) old, for h and c."""
    h = s * new[0] + (1 - s) * old[0]
    return h, None if new[1] is None or old[1] is None else s * new[1] + (1 - s) * old[1]


def summed_embedding(model: Any, meanings: Tensor) -> Tensor:
    """Row a*K + m_a for every attribute, summed."""
    rows = [model.embed.weight[a * K + meanings[:, a]] for a in range(A)]
    return torch.stack(rows).sum(0)


def assert_same(found: Tensor, expected: Tensor, model: nn.Module) -> None:
    """Equal scores, and equal gradients for some loss of them."""
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=0)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    shared = {n: p for n, p in model.named_parameters() if not any(part in n for part in CELL_PARTS)}
    mine = torch.autograd.grad((weight * found).sum(), list(shared.values()), retain_graph=True)
    plain = torch.autograd.grad((weight * expected).sum(), list(shared.values()))
    for a, b in zip(mine, plain, strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


CELL_PARTS = ("upper.", "lower.", "net.")  # the reference holds copies of their weights


def plain_sru(layer: Any, x: Tensor, c: Tensor, tanh: bool = False) -> tuple[Tensor, Tensor]:
    """The formulas as they stand: h of every step [batch, step, E] and the last c. What a layer leaves out is zero."""
    full: dict[str, Tensor] = {"weight": torch.zeros(3 * E, E), "state_weight": torch.zeros(2, E)}
    full["bias"] = full["state_weight"]
    for name, p in layer.named_parameters():
        full[name] = torch.cat([p, torch.zeros(len(full[name]) - len(p), E)])
    (v_f, v_r), (b_f, b_r), outputs = full["state_weight"], full["bias"], []
    for x_t in x.unbind(1):
        candidate, f, r = (x_t @ full["weight"].T).split(E, 1)
        f, r = torch.sigmoid(f + v_f * c + b_f), torch.sigmoid(r + v_r * c + b_r)
        c = f * c + (1 - f) * candidate
        outputs.append(r * (torch.tanh(c) if tanh else c) + (1 - r) * x_t)
    return torch.stack(outputs, 1), c


def sru_model(side: str, name: str) -> Any:
    """With biases that are not zero, as they are after some training."""
    model = make(side, name)
    for layer in model.net.layers:
        nn.init.normal_(layer.bias)
    return model


def assert_same_everywhere(found: Tensor, expected: Tensor, *of: Tensor) -> None:
    """Equal scores, and equal gradients of everything for some loss of them."""
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=0)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    mine = torch.autograd.grad((weight * found).sum(), of)
    for a, b in zip(mine, torch.autograd.grad((weight * expected).sum(), of), strict=True):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)
