"""Agents side by side, and their turns in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from icy.core.errors import IcyError
from icy.games.comparison import GameChanges, compare, one_player, players
from icy.games.showing import images_of, show_turns, values_of

FOUR = GameChanges(turns={"rule_length": 4, "targets": 5}, count=60)


def test_a_row_per_agents_with_their_game() -> None:
    rows = compare(["ideal", "random"], FOUR)
    assert rows["agents"].tolist() == ["ideal", "random"]
    assert rows[["world", "rule_length", "targets", "distractors", "distractor_kind"]].iloc[0].tolist() == [
        "thing", 4, 5, 5, "near",
    ]  # fmt: skip
    assert rows["accuracy"].iloc[0] == 1
    assert rows["soft_accuracy"].isna().all()
    assert rows["total"].tolist() == [240, 240]


def test_other_worlds_and_turns() -> None:
    game = GameChanges("shape", {"canvas": 16}, {"rule_length": 2, "targets": 2, "distractors": 3}, 20)
    (player,) = players("holistic", game)
    assert player.setup.made_world.shape == (3, 16, 16)
    assert (player.setup.turns.distractors, player.distractor_kind) == (3, "near")
    scores, said = player.evaluate()
    assert scores["accuracy"] == 1
    assert len(said) == 20


@pytest.mark.parametrize(
    ("who", "game", "why"),
    [
        ("idea", FOUR, "did you mean ideal"),
        ("ideal", GameChanges(turns={"rule_lenth": 2}), "did you mean rule_length"),
        ("ideal", GameChanges(turns={"rule_length": 9}), "5 attributes"),
        ("ideal", GameChanges(count=1), "number of turns"),
        ("ideal", GameChanges(world="thinks"), "did you mean thing"),
    ],
)
def test_what_cannot_be_is_refused(who: str, game: GameChanges, why: str) -> None:
    with pytest.raises(IcyError, match=why):
        one_player(who, game)


def test_a_folder_without_agents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IcyError):
        players(tmp_path)


@pytest.mark.slow
def test_turns_are_shown_in_words() -> None:
    player = one_player("ideal", GameChanges(turns={"rule_length": 2, "targets": 4}))
    first, second = show_turns(player, 2)
    words = [concept.strip() for concept in first.rule.split("and")]
    assert list(first.read) == words
    assert (first.found, first.mistaken) == ((4, 4), (0, 4))
    assert first.lines(1) == [
        f"turn 1: {first.rule}",
        f"  said: {' '.join(first.said)}, which reads best as {', '.join(words)}",
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
    player = one_player("ideal", GameChanges("shape", {"canvas": 16}, {"targets": 2}))
    images = images_of(player, 3)
    assert images is not None
    assert images.shape == (3, 4, 3, 16, 16)
    assert np.ptp(images) > 0.3
