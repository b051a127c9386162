"""Records of games."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icy import metrics
from icy.core.errors import IcyError
from icy.s2b import Action, Player, evaluate, record
from icy.s2b.evaluation import write


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
