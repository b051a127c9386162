"""Players of S2B that do not learn, and what measures them: accuracies, languages, records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import icy
from icy import metrics
from icy.core.errors import IcyError, IncompatibleError
from icy.core.registry import register_listener, registry
from icy.s2b import Action, BatchedGame, GameSettings, Player, disentanglement, evaluate, play, probe_language, record
from icy.s2b.evaluation import episode_seeds
from icy.s2b.players.binding import Memory, evidence
from icy.s2b.recorder import write


def accuracy(speaker: str, listener: str, phase: str = "zsct", episodes: int = 150, **given: Any) -> float:
    return float(evaluate(speaker, listener, episodes=episodes, seeds=1, **given).table()[phase][0])


# -- players that know what comes out ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"samples": 4, "shots": 2},
        {"distractors": 3},
        {"distractors": 2, "samples": 3, "view": "partial"},
        {"feedback": False},
        {"kind": "common", "split": "query", "games": 5},
        {"descriptive": False, "distractors": 2},
        {"compat": "near32"},
    ],
)
def test_the_oracle_is_always_right(given: dict[str, Any]) -> None:
    found = evaluate("posdis", "oracle", episodes=100, seeds=2, **given).table()
    assert found["zsct"].tolist() == [1, 1]
    assert found["illegal"].tolist() == [0, 0]
    assert found["kept"].equals(found["yes"])


@pytest.mark.parametrize("distractors", [0, 1, 3])
def test_random_is_right_in_one_of_all_decisions(distractors: int) -> None:
    """s2b-facts 7.3."""
    game = BatchedGame(episodes=400, distractors=distractors)
    scores = play(game, "posdis", "random", range(400))
    share = 1 / (distractors + 2)
    assert np.mean(scores.zsct) == pytest.approx(share, abs=0.02)
    assert np.nanmean(scores.support) == pytest.approx(share, abs=0.02)


def test_always_no_is_right_where_the_target_is_not_there() -> None:
    assert accuracy("posdis", "always-no", ratio=0.5) == pytest.approx(0.5, abs=0.03)
    assert accuracy("posdis", "always-no", ratio=0.2) == pytest.approx(0.8, abs=0.03)
    with pytest.raises(IncompatibleError, match="not descriptive"):
        accuracy("posdis", "always-no", descriptive=False, distractors=1)


def test_the_posdis_listener_reads_the_posdis_speaker_unpermuted() -> None:
    """s2b-facts 7.2: it never answers none, so it is wrong on every descriptive negative."""
    assert accuracy("posdis", "posdis", permutation=False, descriptive=False, distractors=3) == 1
    assert accuracy("posdis", "posdis", descriptive=False, distractors=3) < 0.5
    found = evaluate("posdis", "posdis", permutation=False, episodes=100, seeds=1).table()
    assert found["yes"][0] == 1
    assert found["zsct"][0] == found["kept"][0]


def test_the_cheating_language_needs_an_unpermuted_vocabulary() -> None:
    """s2b-facts 7.4."""
    assert accuracy("digital", "digital", permutation=False, vocab_size=40) > 0.999
    assert accuracy("digital", "digital", vocab_size=40) == pytest.approx(0.5, abs=0.05)
    with pytest.raises(IncompatibleError, match="continuous stimuli"):
        accuracy("digital", "digital", representation="ohe")


def test_posdis_says_values_and_the_channel_carries_them_in_parts() -> None:
    games = record("posdis", "oracle", episodes=5, length=4)
    said = [f"{a + 1} {b + 1} {c + 1} 0" for a, b, c in games[["meaning_0", "meaning_1", "meaning_2"]].to_numpy()]
    assert games["said"].tolist() == said
    parts = record("posdis", "binding", episodes=5, length=1, rounds=3)
    said = [f"{a + 1} {b + 1} {c + 1}" for a, b, c in parts[["meaning_0", "meaning_1", "meaning_2"]].to_numpy()]
    assert parts["said"].tolist() == said


@pytest.mark.parametrize(
    ("speaker", "given", "said"),
    [
        ("posdis", {"vocab_size": 4}, "a vocabulary of 5 tokens"),
        ("posdis", {"length": 2}, "messages of 3 tokens"),
        ("bosdis", {}, "a vocabulary of 15 tokens"),
        ("holistic", {"vocab_size": 1}, "at least two tokens"),
        ("holistic", {"length": 2}, "messages of 3 tokens"),
    ],
)
def test_a_channel_too_narrow_for_a_language_is_said(speaker: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(IncompatibleError, match=said):
        evaluate(speaker, "oracle", episodes=2, seeds=1, **given)


# -- the binding listener ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{}, {"samples": 4}, {"samples": 4, "shots": 2, "distractors": 2}, {"samples": 16}])
def test_memory_and_inference_solve_the_query(given: dict[str, Any]) -> None:
    """Every value has been seen with its token by then."""
    assert accuracy("posdis", "binding", episodes=60, **given) > 0.995
    assert 0.8 < accuracy("posdis", "binding", "support", episodes=60, **given) < 0.99


def test_binding_learns_from_success_where_nothing_is_shown() -> None:
    assert accuracy("posdis", "binding", feedback=False) > 0.98
    assert accuracy("posdis", "binding", representation="ohe") == 1
    assert accuracy("posdis", "binding", length=1, rounds=3) == 1


def test_binding_finds_nothing_in_a_language_without_parts() -> None:
    assert accuracy("holistic", "binding") == pytest.approx(0.5, abs=0.06)
    assert accuracy("random", "binding") == pytest.approx(0.5, abs=0.06)


def test_binding_plays_an_episode_the_same_alone_and_in_company() -> None:
    together = record("posdis", "binding", episodes=12, samples=4)
    alone = record("posdis", "binding", episodes=3, samples=4)
    columns = ["episode", "game", "decision", "said", "heard"]
    assert together[columns].head(len(alone)).equals(alone[columns])


def test_memory_without_inference() -> None:
    """With one sample the nearest number is the number itself; with more, sections keep values apart."""
    assert accuracy("posdis", "nearest") == 1
    assert accuracy("posdis", "nearest", representation="ohe") == 1
    assert accuracy("posdis", "nearest", samples=4) > 0.995
    assert accuracy("posdis", "nearest", "support", samples=4) < accuracy("posdis", "binding", "support", samples=4)
    assert accuracy("holistic", "nearest") < 0.6
    with pytest.raises(IncompatibleError, match="needs feedback"):
        accuracy("posdis", "nearest", feedback=False)


def test_what_the_memory_infers() -> None:
    """Two numbers of one value at O = 1 cannot be: they are two values, so there are more than two."""
    memory = Memory(1, 1, np.array([2, 3, 4, 5]), 6, samples=1)
    rows = np.array([0])
    memory.see(rows, np.array([[-0.9]]))
    memory.see(rows, np.array([[-0.9]]))
    assert memory.seen[0, 0] == 1
    memory.see(rows, np.array([[-0.4]]))
    weights = memory._weights(rows)[0, 0]
    assert weights[0] < 1e-9
    assert weights.sum() == pytest.approx(1)
    memory.bind(rows, np.array([[-0.9]]), np.array([[3]]))
    assert memory.ratio(rows, np.array([[-0.9]]), np.array([[3]]))[0] > 100
    assert memory.ratio(rows, np.array([[-0.4]]), np.array([[3]]))[0] < 1e-9
    memory.forget(rows)
    assert memory.seen[0, 0] == 0
    assert np.isnan(memory.numbers).all()


def test_evidence_is_an_integral() -> None:
    """Of one number over the whole section it is 1: the densities are normalised, and hardly any leaves it."""
    place = (np.arange(400) + 0.5) / 400
    density = np.exp(evidence(np.stack([np.ones(400), place, place**2], -1)))
    assert density.mean() == pytest.approx(1, abs=2e-3)


# -- measures ----------------------------------------------------------------------------------------------------------


def test_measures_are_means_over_the_episodes_of_a_seed() -> None:
    found = evaluate("posdis", "random", episodes=10, seeds="7,9")
    games = record("posdis", "random", episodes=10, seed=7)
    own = games[games["phase"] == "query"].groupby("episode")["correct"].mean().mean()
    assert found.table()["zsct"][0] == pytest.approx(own)
    assert found.table()["seed"].tolist() == [7, 9]
    assert found.summary().loc["zsct", "mean"] == pytest.approx(found.table()["zsct"].mean())
    assert "zsct 0." in repr(found)
    assert "<table" in found._repr_html_()


def test_batches_do_not_change_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate("posdis", "binding", episodes=20, seeds=2, samples=2).table()
    monkeypatch.setattr("icy.s2b.evaluation.AT_ONCE", 7)
    told: list[tuple[int, int]] = []
    parts = evaluate("posdis", "binding", episodes=20, seeds=2, samples=2, told=lambda *t: told.append(t)).table()
    pd.testing.assert_frame_equal(whole, parts)
    assert told[-1] == (40, 40)


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


def test_languages_of_the_other_speakers() -> None:
    bag = probe_language("bosdis", metrics=["posdis", "bosdis", "cbm"], episodes=5, vocab_size=15)
    assert bag["bosdis"].tolist() == bag["cbm"].tolist() == [1.0] * 5
    assert bag["posdis"].max() < 0.5
    whole = probe_language("holistic", metrics=["topsim"], episodes=20)
    assert abs(whole["topsim"].mean()) < 0.1
    assert (whole["messages"] == [np.prod([int(n) for n in s.split("x")]) for s in whole["space"]]).all()
    with pytest.raises(IncompatibleError, match="has no `utter`"):
        probe_language(Yes(), episodes=1)


def test_disentanglement_of_stimuli() -> None:
    """s2b-facts 1.4: three ways to draw stimuli of 5x5x5."""
    papers: dict[str, Any] = {"least": 5, "most": 5}
    every = disentanglement(rows="all", episodes=2, samples=5, **papers)
    assert every[["factor_vae", "mig", "modularity"]].to_numpy().min() == pytest.approx(1.0, abs=1e-9)
    support = disentanglement(rows="support", episodes=2, metrics=["mig", "modularity"], **papers)
    assert support["mig"].tolist() == pytest.approx([0.958] * 2, abs=5e-4)
    assert support["modularity"].tolist() == pytest.approx([0.998] * 2, abs=5e-4)
    drawn = disentanglement(rows=512, episodes=3, samples=5, metrics=["mig", "modularity"], **papers)
    assert drawn["mig"].min() >= 0.93
    assert drawn["modularity"].min() >= 0.97
    with pytest.raises(IcyError, match="did you mean support"):
        disentanglement(rows="suport")


# -- records -----------------------------------------------------------------------------------------------------------


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


# -- a stranger's player -----------------------------------------------------------------------------------------------


class Yes(Player):
    """Says yes."""

    def acting(self, seen: Any) -> Action:
        return Action(decision=np.zeros(self.seat.episodes, dtype=int))


def test_a_strangers_player_plays_by_name_or_as_it_is() -> None:
    register_listener("yes", source="a test")(Yes)
    try:
        assert "listener/yes" in icy.list_players("*yes")
        named = evaluate("posdis", "yes", episodes=5, seeds=1)
        own = evaluate("posdis", Yes(), episodes=5, seeds=1)
        assert named.table().equals(own.table())
        assert (named.listener, own.listener) == ("yes", "Yes")
    finally:
        registry._entries.pop(("listener", "yes"))


def test_an_answer_that_is_no_action_is_said() -> None:
    class Wrong(Player):
        def acting(self, seen: Any) -> Any:
            return np.zeros(self.seat.episodes)

    with pytest.raises(IcyError, match="answers with an Action, not with ndarray"):
        evaluate("posdis", Wrong(), episodes=2, seeds=1)


def test_players_play_on_arrays() -> None:
    with pytest.raises(IncompatibleError, match="no device"):
        play(BatchedGame(device="cpu"), "posdis", "oracle", [1])


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


def test_players_without_privileges_do_not_see_the_game() -> None:
    class Curious(Player):
        def acting(self, seen: Any) -> Action:
            return Action(decision=self.game.answer)

    with pytest.raises(IcyError, match="is privileged and must be given the game"):
        evaluate("posdis", Curious(), episodes=2, seeds=1)


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
