"""Evaluating players."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icy import metrics
from icy.analysis.tables.s2b import with_deaf
from icy.core.errors import IcyError
from icy.s2b import Action, BatchedGame, GameSettings, Player, evaluate, never_listening, play, record
from icy.s2b.evaluation import Evaluation, episode_seeds, write
from icy.s2b.game import Scores


def test_measures_are_means_over_the_episodes_of_a_seed() -> None:
    found = evaluate("posdis", "random", episodes=10, seeds="7,9")
    games = record("posdis", "random", episodes=10, seed=7)
    own = games[games["phase"] == "query"].groupby("episode")["correct"].mean().mean()
    assert found.table()["zsct"][0] == pytest.approx(own)
    assert found.table()["seed"].tolist() == [7, 9]
    assert found.summary().loc["zsct", "mean"] == pytest.approx(found.table()["zsct"].mean())
    assert "zsct 0." in repr(found)
    assert "<table" in found._repr_html_()


def test_an_episode_without_a_query_is_left_out_of_the_mean() -> None:
    zsct, rest = np.array([1.0, np.nan, 0.5, np.nan, np.nan, np.nan]), np.ones(6)
    scores = Scores(zsct, rest, rest, rest, np.zeros((6, 2), dtype=np.int64))
    table = Evaluation(GameSettings(), "posdis", "binding", 3, (7, 9), scores).table()
    np.testing.assert_array_equal(table["zsct"], [0.75, np.nan])
    assert table["support"].tolist() == [1.0, 1.0]


@pytest.mark.slow
def test_batches_do_not_change_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate("posdis", "binding", episodes=20, seeds=2, samples=2).table()
    monkeypatch.setattr("icy.s2b.evaluation.AT_ONCE", 7)
    told: list[tuple[int, int]] = []
    parts = evaluate("posdis", "binding", episodes=20, seeds=2, samples=2, progress=lambda *t: told.append(t)).table()
    pd.testing.assert_frame_equal(whole, parts)
    assert told[-1] == (40, 40)


@pytest.mark.parametrize(
    ("speaker", "listener"),
    [("posdis", "binding"), ("holistic", "oracle"), ("random", "nearest"), ("bosdis", "posdis")],
)
def test_players_play_games_on_a_device_as_on_arrays(speaker: str, listener: str) -> None:
    given: dict[str, Any] = {"most": 3, "vocab_size": 9, "samples": 2, "episodes": 6}
    arrays, tensors = (
        play(BatchedGame(device=device, **given), speaker, listener, range(6)) for device in (None, "cpu")
    )
    np.testing.assert_array_equal(arrays.zsct, tensors.zsct)
    np.testing.assert_array_equal(arrays.support, tensors.support)
    np.testing.assert_array_equal(arrays.illegal, tensors.illegal)


def test_mistakes_are_answered_in_a_sentence() -> None:
    with pytest.raises(IcyError, match="did you mean binding"):
        evaluate("posdis", "bindin")
    with pytest.raises(IcyError, match="did you mean samples"):
        evaluate(sample=2)
    with pytest.raises(IcyError, match="number of episodes"):
        evaluate(episodes=0)
    with pytest.raises(IcyError, match="take more seeds"):
        episode_seeds(1, 2_000_000)
    with pytest.raises(IcyError, match="not both"):
        evaluate("posdis", "binding", GameSettings(), shots=2)


# -- floors ------------------------------------------------------------------------------------------------------------


def test_floors_are_of_the_episodes_that_others_are_evaluated_in() -> None:
    given: dict[str, Any] = {"episodes": 6, "seeds": [3, 5], "compat": "near32", "most": 3}
    floors = never_listening(**given)
    assert floors["seed"].tolist() == [3, 5]
    for name in ("novelty", "novelty-meaning", "order", "always-yes", "always-no"):
        assert floors[name].tolist() == evaluate("posdis", name, **given).table()["zsct"].tolist()
    known = never_listening(feedback=False, descriptive=False, distractors=1, episodes=1, seeds=1).notna().all()
    assert known[known].index.tolist() == ["seed", "always-yes"]


def test_constant_answers_belong_to_the_floor() -> None:
    """In few games, one of them is often right by chance."""
    given: dict[str, Any] = {"episodes": 4, "seeds": [1, 2]}
    table = evaluate("posdis", "random", **given).table()
    floors = never_listening(**given)
    assert floors["always-yes"].tolist() == pytest.approx(table["kept"].tolist())
    assert (floors["always-yes"] + floors["always-no"]).tolist() == pytest.approx([1, 1])
    found = with_deaf(table, floors)["deaf"].mean()
    assert found >= max(floors["always-yes"].mean(), floors["always-no"].mean())


# -- records of games --------------------------------------------------------------------------------------------------


def test_a_record_holds_what_happened(tmp_path: Path) -> None:
    games = record("posdis", "random", episodes=6, samples=2, distractors=1)
    assert (games["correct"] == (games["decision"] == games["answer"])).all()
    assert games.attrs["settings"]["samples"] == 2
    assert games.attrs["listener"] == "random"
    kept = games["answer"] < 2
    same = [list(m[3 * a : 3 * a + 3]) for m, a in zip(games["listener_meanings"], games["answer"], strict=True)]
    target = games[["meaning_0", "meaning_1", "meaning_2"]].to_numpy().tolist()
    assert all(s == t for s, t, k in zip(same, target, kept, strict=True) if k)
    assert games.groupby("episode")["game"].apply(lambda g: (np.diff(g) == 1).all()).all()
    file = write(games, tmp_path / "games.parquet")
    again = pd.read_parquet(file)
    assert again["heard"].tolist() == games["heard"].tolist()
    assert again.attrs == games.attrs
    table = metrics.read_table(file, meaning_columns=[f"meaning_{i}" for i in range(3)], message_columns=["said"])
    assert len(table) == len(games)
    with pytest.raises(IcyError, match="recorded as"):
        write(games, tmp_path / "games.csv")
    with pytest.raises(IcyError, match="does not exist"):
        write(games, tmp_path / "none" / "games.parquet")


class Wild(Player):
    """Says a token that there is not, then nothing, and decides what there is not."""

    def acting(self, seen: Any) -> Action:
        message = np.full((self.seat.episodes, 3), 9 if self.steps == 1 else 2) if self.steps < 5 else None
        return Action(message, np.full(self.seat.episodes, 9))


def test_a_record_holds_what_the_game_took() -> None:
    games = record(Wild(), Wild(), episodes=1)
    assert games["said"].tolist()[:3] == ["0 0 0", "2 2 2", "0 0 0"]
    assert set(games["decision"]) == {0}
    zsct = evaluate(Wild(), Wild(), episodes=1, seeds=[123]).table()["zsct"][0]
    assert games[games["phase"] == "query"]["correct"].mean() == zsct
