"""The trained listener that comes with icy."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, registry
from icy.s2b import GameSettings, evaluate
from icy.s2b.agents.saved_networks import FILE, FittedPlayer, fitted, one_agent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "least"),
    [
        ({"most": 3}, 0.98),
        ({}, 0.98),
        ({"most": 5, "samples": 4, "query": "tss"}, 0.97),
        ({"most": 3, "dimensions": 2}, 0.97),
        ({"most": 3, "dimensions": 4}, 0.95),
        ({"most": 3, "rounds": 2, "length": 2}, 0.95),
    ],
)
def test_the_memory_plays_games_that_it_was_not_trained_on(given: dict[str, Any], least: float) -> None:
    assert float(evaluate("posdis", "memory", episodes=40, seeds=1, **given).table()["zsct"][0]) >= least


def test_the_memory_is_at_chance_with_random_messages() -> None:
    deaf = evaluate("random", "memory", most=3, episodes=100, seeds=1).table()["zsct"][0]
    assert float(deaf) == pytest.approx(0.5, abs=0.05)


def test_games_that_the_memory_cannot_play_raise_an_error() -> None:
    for given, why in (({"representation": "ohe"}, "one number"), ({"vocab_size": 40}, "vocabulary of 32")):
        with pytest.raises(IncompatibleError, match=why):
            evaluate("posdis", "memory", episodes=2, seeds=1, **given)  # type: ignore[arg-type]


def test_the_file_is_small_and_has_a_card() -> None:
    assert FILE.stat().st_size < 100_000
    card = one_agent(FILE).card
    assert card["model"] == "pairs+ppo"
    assert card["scores"]["zsct"] > 0.98
    assert card["git"]


def test_fitted_memories_keep_weights_and_adapt_the_alignment() -> None:
    player = registry.get("memory", LISTENER).create()
    assert isinstance(player, FittedPlayer)
    assert fitted(player.trained, GameSettings()) is player.trained
    other = fitted(player.trained, GameSettings(dimensions=2, length=4))
    assert other.alignment.shape == (2, 4)
    assert other.alignment.argmax(1).tolist() == [0, 1]
    assert torch.equal(other.lookup.query.weight, player.trained.lookup.query.weight)
    rounds = fitted(player.trained, GameSettings(rounds=2, length=2))
    assert rounds.alignment.argmax(1).tolist() == [0, 1, 3]
