"""The sender that remembers."""

from __future__ import annotations

import torch

from tests.models.helpers import L, make, some_meanings


def test_hashtable_sender_keeps_the_first_and_knows_nothing_else() -> None:
    model = make("sender", "Hashtable")
    assert not model(some_meanings()).any()
    meanings = torch.tensor([[0, 0, 1], [0, 0, 1], [3, 3, 3]])
    messages = torch.stack([torch.full((L,), v) for v in (2, 1, 3)])
    model.observe(meanings, messages)
    model.observe(meanings[:1], messages[2:])
    scores = model(torch.tensor([[0, 0, 1], [3, 3, 3], [0, 1, 0]]))
    assert scores[0].argmax(-1).tolist() == [2] * L
    assert scores[1].argmax(-1).tolist() == [3] * L
    assert not scores[2].any()
    assert scores[0].sum() == L
