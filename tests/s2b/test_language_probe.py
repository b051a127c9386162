"""Languages of speakers, and disentanglement of stimuli."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icy.core.errors import IcyError, IncompatibleError
from icy.languages.meanings import MeaningSpace
from icy.s2b import Action, BatchedGame, Player, disentanglement, probe_language
from icy.s2b.evaluation import episode_seeds


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
