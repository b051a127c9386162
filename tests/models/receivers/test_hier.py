"""The hierarchical receiver, against its formula, and its published defect."""

from __future__ import annotations

import pytest
import torch

from icy.core.registry import registry
from icy.core.representations import one_hot
from tests.models.helpers import BATCH, LIBRARY, A, E, K, L, Plain, V, assert_same, between, make, some_messages


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("kind", LIBRARY)
def test_hier_receiver_is_its_formula(kind: str, soft: bool) -> None:
    model = make("receiver", f"Hier:{kind}")
    message = torch.rand(BATCH, L, V + 1).softmax(-1) if soft else some_messages()
    weights = message if soft else one_hot(message, V + 1)
    upper_cell, lower_cell = Plain(model.upper, kind), Plain(model.lower, kind)
    nothing = torch.zeros(BATCH, E)
    low, u, s = lower_cell.start(nothing), upper_cell.start(nothing), torch.ones(BATCH, 1)
    for t in range(L):
        low = lower_cell(weights[:, t] @ model.embed.weight, between(1 - s, low, (low[0] * 0, low[0] * 0)))
        s = torch.sigmoid(model.stop.score(low[0]))
        u = between(s, upper_cell(low[0], u), u)
    assert_same(model(message), model.out(u[0]).view(BATCH, A, K), model)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM", "dgsend", "dgrecv"])
def test_only_the_shared_gate_makes_examples_depend_on_the_first(kind: str) -> None:
    messages = some_messages()
    swapped = messages[[1, 0, *range(2, BATCH)]]
    right, wrong = make("receiver", f"Hier:{kind}"), make("receiver", f"Hier:{kind}", shared_gate=True)
    torch.testing.assert_close(right(swapped)[2:], right(messages)[2:])
    depends = not torch.allclose(wrong(swapped)[2:], wrong(messages)[2:], atol=1e-4)
    assert depends == (kind != "LSTM")
    torch.testing.assert_close(wrong(messages)[0], right(messages)[0])


def test_the_published_preset_shares_the_gate() -> None:
    assert registry.get("Hier:GRU", "receiver").published == {"shared_gate": True}
