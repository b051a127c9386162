"""Receivers that remember."""

from __future__ import annotations

import pytest
import torch

from icy.core.representations import one_hot
from tests.models.helpers import L, V, make, some_meanings, some_messages


@pytest.mark.parametrize("name", ["Hashtable", "kNN"])
def test_receivers_that_remember_keep_the_first(name: str) -> None:
    model = make("receiver", name)
    messages = some_messages(3)
    messages[1] = messages[0]
    assert not model(messages).any()
    model.observe(messages, torch.tensor([[1, 2, 3], [0, 0, 0], [3, 2, 1]]))
    model.observe(messages[:1], torch.tensor([[2, 2, 2]]))
    assert model(messages).argmax(-1).tolist() == [[1, 2, 3], [1, 2, 3], [3, 2, 1]]
    assert torch.equal(model(one_hot(messages, V + 1)), model(messages))


def test_hashtable_receiver_answers_nothing_to_an_unseen_message() -> None:
    model = make("receiver", "Hashtable")
    model.observe(torch.zeros(1, L, dtype=torch.long), torch.tensor([[1, 2, 3]]))
    assert not model(torch.ones(2, L, dtype=torch.long)).any()


def test_knn_is_the_nearest_by_hamming_distance_first_seen_first() -> None:
    model, messages, meanings = make("receiver", "kNN"), some_messages(40), some_meanings(40)
    seen: dict[tuple[int, ...], list[int]] = {}
    for start in range(0, 30, 10):
        model.observe(messages[start : start + 10], meanings[start : start + 10])
    for message, meaning in zip(messages[:30].tolist(), meanings[:30].tolist(), strict=True):
        seen.setdefault(tuple(message), meaning)

    def distance(a: list[int], b: tuple[int, ...]) -> int:
        return sum(x != y for x, y in zip(a, b, strict=True))

    expected = [seen[min(seen, key=lambda known: distance(query, known))] for query in messages.tolist()]
    assert model(messages).argmax(-1).tolist() == expected
