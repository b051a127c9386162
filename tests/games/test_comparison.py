"""Comparison of agents, and their turns as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icy.analysis.tables.games import evaluation_table, evaluation_tables
from icy.core.errors import IcyError
from icy.games import comparison
from icy.games.comparison import (
    ORACLES,
    GameAgents,
    GameOverrides,
    compare,
    images_of,
    make_oracle,
    one_player,
    players,
    show_turns,
    values_of,
)
from icy.games.rules import Rules
from icy.games.settings import GamesLearningSettings, GamesSettings, TurnSettings

FOUR = GameOverrides(turns={"rule_length": 4, "targets": 5}, count=60)


def test_compare_gives_a_row_per_agents_and_game() -> None:
    rows = compare(["ideal", "random"], FOUR)
    assert rows["agents"].tolist() == ["ideal", "random"]
    assert rows[["world", "rule_length", "targets", "distractors", "distractor_kind"]].iloc[0].tolist() == [
        "thing", 4, 5, 5, "near",
    ]  # fmt: skip
    assert rows["accuracy"].iloc[0] == 1
    assert rows["soft_accuracy"].isna().all()
    assert rows["total"].tolist() == [240, 240]


AGENTS = {"world": "thing", "representation": "qt", "word_size": 6, "world_options": {"attributes": 3, "values": 4}}


def beside(kind: str = "near", message_length: int = 2, evaluation: int = 40, **turns: Any) -> GameAgents:
    """Return a stand-in for trained agents of a game."""
    settings = TurnSettings(**{"rule_length": 2, "targets": 3, "distractors": 4, **turns})
    learning = GamesLearningSettings(turns=evaluation)
    setup = GamesSettings(**AGENTS, message_length=message_length, turns=settings, learning=learning)  # type: ignore[arg-type]
    return GameAgents("a+b, seed 1", 1, setup, kind, make_oracle("random", Rules.of(setup.made_world, 2)), setup)


def baseline(name: str, *agents: GameAgents) -> list[GameAgents]:
    return list(comparison._oracles(name, GameOverrides(), agents))


@pytest.mark.parametrize("name", list(ORACLES))
@pytest.mark.parametrize(
    "agents",
    [
        beside(),
        beside("uniform", targets=5),
        beside(message_length=3, held_out=0.25),
        beside(rule_sampling="uniform", repeat_target=True, evaluation=60),
    ],
)
def test_oracles_play_the_game_of_the_agents(name: str, agents: GameAgents) -> None:
    (player,) = baseline(name, agents)
    assert (player.label, player.game) == (name, agents.game)
    said = player.agents.play(player.turns.batch("test", 0, 1, 3)).words
    assert said.shape[-1] == {"ideal": 2, "literal": 1}.get(name, agents.setup.message_length)
    assert player.trained is None


def test_oracles_play_every_game_of_the_agents_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trained = [beside(), beside(), beside("uniform"), beside(message_length=3)]
    monkeypatch.setattr(comparison, "kept_agents", lambda _: trained)
    monkeypatch.setattr(comparison, "_with_game", lambda player, _: player)
    games = list(dict.fromkeys(one.game for one in trained))
    assert len(games) == 3
    found = players([tmp_path, "ideal", "random"])
    assert [(one.label, one.game) for one in found[4:]] == [(name, g) for name in ("ideal", "random") for g in games]
    rows = compare(["literal", tmp_path])
    assert [len(table.rows) for table in evaluation_tables(rows)] == [2, 2, 2]
    assert [table.title for table in evaluation_tables(rows)] == [f"games: {game}" for game in games]
    assert len(evaluation_table(rows).rows) == 6


@pytest.mark.parametrize(
    ("name", "agents", "why"),
    [
        ("ideal", beside(message_length=1), "needs 2 words per message, one per concept, and a message has 1"),
        ("holistic", beside(message_length=1), "There are 12 messages of 1 word, too few for 48 rules"),
        ("random", beside("groups", rules="formulas", rule_length=1), "conjunctions of concepts"),
    ],
)
def test_oracles_that_cannot_play_are_named(
    name: str, agents: GameAgents, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert [one.game for one in baseline(name, agents, beside())] == [beside().game]
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"Left out: {name} in 1 of 2 games.")
    assert why in caplog.messages[0]


@pytest.mark.parametrize(("of", "has_topsim"), [("targets", True), ("embedding", False)])
def test_oracles_have_no_topsim_of_embeddings(of: str, has_topsim: bool) -> None:
    agents = beside()
    setup = replace(agents.setup, learning=replace(agents.setup.learning, topsim_of=of))
    (player,) = baseline("ideal", replace(agents, setup=setup))
    assert (player.evaluate()[0]["topsim"] > 0) == has_topsim


def test_long_messages_of_a_holistic_language() -> None:
    (player,) = baseline("holistic", beside(message_length=30))
    scores, said = player.evaluate()
    assert (scores["accuracy"], said.words.shape[1]) == (1, 30)


def test_other_worlds_and_turns() -> None:
    game = GameOverrides("shape", {"canvas": 16}, {"rule_length": 2, "targets": 2, "distractors": 3}, 20)
    (player,) = players("holistic", game)
    assert player.setup.made_world.shape == (3, 16, 16)
    assert (player.setup.turns.distractors, player.distractor_kind) == (3, "near")
    scores, said = player.evaluate()
    assert scores["accuracy"] == 1
    assert len(said) == 20


def test_a_folder_without_agents_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(IcyError):
        players(tmp_path)


@pytest.mark.slow
def test_turns_are_shown_as_text() -> None:
    player = one_player("ideal", GameOverrides(turns={"rule_length": 2, "targets": 4}))
    first, second = show_turns(player, 2)
    words = [concept.strip() for concept in first.rule.split("and")]
    assert list(first.concepts) == words
    assert first.lines(1) == [
        f"turn 1: {first.rule}",
        f"  message: {' '.join(first.words)} (best matching concepts: {', '.join(words)})",
        "  chosen: 4 of 4 targets, 0 of 4 distractors",
    ]
    assert second.rule != first.rule
    assert show_turns(player, 12)[:2] == [first, second]
    assert images_of(player, 2) is None
    objects, demanded = values_of(player, 2)
    assert objects.shape == (2, 8, 5)
    fixed = demanded[0] >= 0
    assert fixed.sum() == 2
    assert (objects[0, :4][:, fixed] == demanded[0][fixed]).all()


def test_images_of_turns() -> None:
    player = one_player("ideal", GameOverrides("shape", {"canvas": 16}, {"targets": 2}))
    images = images_of(player, 3)
    assert images is not None
    assert images.shape == (3, 4, 3, 16, 16)
    assert np.ptp(images) > 0.3
