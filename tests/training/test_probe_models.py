"""Languages that trained senders of probes speak."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from icy.records.record import Record
from icy.training.task_models import spoken


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
