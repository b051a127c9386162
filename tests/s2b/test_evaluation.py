"""Evaluating players."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icy import metrics
from icy.analysis.tables.s2b import with_deaf
from icy.core.errors import IcyError, IncompatibleError
from icy.experiments.measuring import save_rows
from icy.languages.meanings import MeaningSpace
from icy.s2b import (
    Action,
    BatchedGame,
    GameSettings,
    Player,
    disentanglement,
    evaluate,
    never_listening,
    play,
    probe_language,
    record,
)
from icy.s2b.evaluation import Evaluation, episode_seeds
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
    file = save_rows(games, tmp_path / "games.parquet")
    again = pd.read_parquet(file)
    assert again["heard"].tolist() == games["heard"].tolist()
    assert again.attrs == games.attrs
    table = metrics.read_table(file, meaning_columns=[f"meaning_{i}" for i in range(3)], message_columns=["said"])
    assert len(table) == len(games)


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


# -- languages of speakers, and disentanglement of stimuli -------------------------------------------------------------


@pytest.mark.slow
def test_the_language_of_the_posdis_speaker() -> None:
    """s2b-facts 9.2: over random spaces topsim 0.967 +- 0.011, bosdis 0.26 +- 0.17, posdis exactly 1."""
    found = probe_language("posdis", metrics=["topsim", "posdis", "bosdis"], episodes=60, length=4)
    assert found["posdis"].tolist() == [1.0] * 60
    assert found["topsim"].mean() == pytest.approx(0.967, abs=0.006)
    assert found["bosdis"].mean() == pytest.approx(0.26, abs=0.08)


@pytest.mark.parametrize(
    ("sizes", "topsim", "bosdis"), [((2, 2, 2), 0.980, 0.000), ((4, 4, 4), 0.937, 0.000), ((5, 5, 5), 0.942, 0.000)]
)
def test_the_language_in_one_space(sizes: tuple[int, ...], topsim: float, bosdis: float) -> None:
    """s2b-facts 9.2, rows of equal numbers of values (5x5x5 prints 0.940, within its tolerance of 0.01)."""
    found = probe_language("posdis", metrics=["topsim", "posdis", "bosdis"], episodes=1, least=sizes[0], most=sizes[0])
    assert found["topsim"][0] == pytest.approx(topsim, abs=0.002)
    assert found["bosdis"][0] == pytest.approx(bosdis, abs=1e-9)


@pytest.mark.slow
def test_languages_of_the_other_speakers() -> None:
    bag = probe_language("bosdis", metrics=["posdis", "bosdis", "cbm"], episodes=5, vocab_size=15)
    assert bag["bosdis"].tolist() == bag["cbm"].tolist() == [1.0] * 5
    assert bag["posdis"].max() < 0.5
    whole = probe_language("holistic", metrics=["topsim"], episodes=20)
    assert abs(whole["topsim"].mean()) < 0.1
    assert (whole["messages"] == [MeaningSpace.parse(space).size for space in whole["space"]]).all()
    with pytest.raises(IncompatibleError, match="has no method `utter`"):
        probe_language(Yes(), episodes=1)


def test_disentanglement_of_stimuli() -> None:
    """s2b-facts 1.4: three ways to draw stimuli of 5x5x5."""
    papers: dict[str, Any] = {"least": 5, "most": 5}
    every = disentanglement(rows="all", episodes=2, samples=5, **papers)
    assert every[["factor_vae", "mig", "modularity"]].to_numpy().min() == pytest.approx(1.0, abs=1e-9)
    support = disentanglement(rows="support", episodes=2, metrics=["mig", "modularity"], **papers)
    assert support["mig"].tolist() == pytest.approx([0.958] * 2, abs=5e-4)
    assert support["modularity"].tolist() == pytest.approx([0.998] * 2, abs=5e-4)
    drawn = disentanglement(rows=512, episodes=3, samples=5, **papers)
    assert drawn["factor_vae"].min() == 1
    assert drawn["mig"].min() >= 0.93
    assert drawn["modularity"].min() >= 0.97
    with pytest.raises(IcyError, match="did you mean support"):
        disentanglement(rows="suport")


class Yes(Player):
    """Says yes."""

    def acting(self, seen: Any) -> Action:
        return Action(decision=np.zeros(self.seat.episodes, dtype=int))


def test_a_speaker_is_probed_as_it_is_at_the_end_of_its_episode() -> None:
    class Counts(Player):
        def acting(self, seen: Any) -> Action:
            return Action()

        def utter(self, stimuli: Any, meanings: Any, episode: int) -> Any:
            asked.append((episode, self.steps))
            return meanings

    asked: list[tuple[int, int]] = []
    probe_language(Counts(), metrics=["posdis"], episodes=4)
    game = BatchedGame(episodes=4)
    game.reset(seeds=episode_seeds(123, 4))
    assert sorted(asked) == [(i, 3 * n - 1) for i, n in enumerate(game.games.tolist())]
