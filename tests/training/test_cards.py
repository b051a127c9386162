"""Trained models in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import StoreError, UnknownNameError
from icy.games.final import kept_agents
from icy.training import weights

CARD = {
    "model": "FC2L+FC2L", "grammar": "uniform", "seed": 123,
    "setup": {"channel": "qt", "model": "inner", "turns": {"rule_length": 4}},
}  # fmt: skip


@pytest.mark.parametrize(
    "where",
    [{"seed": 123}, {"channel": "qt"}, {"representation": "QT"}, {"rule_length": "2,4"}, {"agents": "FC2L+FC2L"}],
)
def test_a_choice_is_checked_against_the_card_of_a_single_file(
    where: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "card_of_file", lambda path, what: CARD)
    file = Path("mine.safetensors")
    assert [found.label for found in kept_agents(file, **where)] == ["FC2L+FC2L, seed 123"]
    (name,) = where
    with pytest.raises(StoreError, match=rf"mine.safetensors has no agents with {name}=other; available: {name} \("):
        kept_agents(file, **{name: "other"})
    with pytest.raises(UnknownNameError, match="did you mean seed"):
        kept_agents(file, sed=123)
