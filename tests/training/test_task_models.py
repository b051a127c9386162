"""Models of tasks: restored from records, and pairs."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from icy.config.settings import settings_for
from icy.core.noise import Noise, drawing_from
from icy.records.record import Record
from icy.training.task_models import make_pair, spoken
from tests.training.pairs.helpers import SETTINGS, pair_task

# -- languages that trained senders of probes speak --------------------------------------------------------------------


class Says(nn.Module):
    """Gives the same scores for every meaning, with the start symbol's the largest."""

    def forward(self, meanings: Tensor) -> Tensor:
        return torch.tensor([[1.0, 3.0, -1.0, 9.0], [-2.0, -2.0, -1.0, 9.0]]).expand(len(meanings), -1, -1)


@pytest.mark.parametrize(
    ("representation", "words", "count"),
    [("soft", [3, 3], 4), ("gs", [1, 2], 3), ("qt", [6, 0], 8), ("cb", [1, 2], 3)],
)
def test_a_language_has_the_words_of_its_representation(representation: str, words: list[int], count: int) -> None:
    config = {"meanings": "2x2", "representation": representation, "vocab_size": 3, "settings": {"levels": 2}}
    record: Any = {"config": config, "model": "sender/Mine", "grammar": "perm", "seed": 7}
    language = spoken(cast(Record, record), Says())
    assert language.messages.tolist() == [words] * 4
    assert (language.vocab_size, language.name) == (count, f"sender/Mine {representation} on perm")


# -- a pair as a model: messages over the link -------------------------------------------------------------------------


@pytest.mark.parametrize("representation", ["gumb", "discr"])
def test_the_receiver_reads_the_feedback_of_the_sender(representation: str) -> None:
    """Samples are drawn once: the message equals the feedback of the loop at every position."""
    pair = make_pair(pair_task(representation=representation), 1, SETTINGS).train()
    fed, noise = [], Noise(torch.tensor(5))
    if representation == "discr":
        pair = make_pair(pair_task("RNNSampling:GRU", representation="discr"), 1, SETTINGS).train()
    original = pair.sender.feedback.seen  # type: ignore[union-attr]

    def watched(scores: torch.Tensor, step: int) -> torch.Tensor:
        fed.append(original(scores, step))  # type: ignore[operator]
        return fed[-1]

    pair.sender.feedback.seen = watched  # type: ignore[union-attr, assignment]
    with drawing_from(noise):
        sent, _ = pair(torch.randint(3, (16, 2)))
        message = pair.link.message(sent, noise)
    torch.testing.assert_close(torch.stack(fed, 1), message[:, :-1])


def test_published_senders_see_their_symbols_as_probabilities() -> None:
    task = pair_task(representation="gumb")
    assert task.feedback(settings_for("default", "e2e")) == "gumb"
    assert task.feedback(settings_for("published", "e2e")) == "soft"
    published = settings_for("published", "e2e")
    assert (published.entropy_weight, settings_for("published").entropy_weight) == (0.01, 0.1)
    assert make_pair(task, 1, published).sender.feedback.representation.name == "soft"  # type: ignore[union-attr]


def test_the_sides_start_from_different_numbers() -> None:
    pair = make_pair(pair_task(), 1, SETTINGS)
    a, b = pair.sender.embed.weight.flatten(), pair.receiver.embed.weight.flatten()  # type: ignore[union-attr, operator]
    assert not torch.equal(a[:8], b[:8])


def test_messages_are_greedy_in_evaluation() -> None:
    pair = make_pair(pair_task(representation="discr"), 1, SETTINGS).eval()
    meanings = torch.randint(3, (16, 2))
    sent, answered, told = pair(meanings, torch.zeros(16, 4, dtype=torch.long))
    assert torch.equal(answered, pair.receiver(sent.argmax(-1)))
    assert torch.equal(told, pair.receiver(torch.zeros(16, 4, dtype=torch.long)))
