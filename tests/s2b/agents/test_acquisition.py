"""Ease of acquisition: stacks equal single listeners, floors are exact, and compositional codes are acquired."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import IncompatibleError, InvalidSettingError, PluginError, UnknownNameError
from icy.core.noise import Noise
from icy.s2b import GameSettings, Player
from icy.s2b.agents.acquisition import (
    Acquisition,
    AcquisitionSettings,
    CommonGames,
    OrdinaryListener,
    ease_of_acquisition,
    loss_of,
)
from icy.s2b.agents.memories.pair_learning import PairLearning, PairSettings
from icy.s2b.evaluation import episode_seeds
from icy.s2b.language_probe import FrozenLanguage, frozen_languages

FAST = AcquisitionSettings(epochs=40, learning_rate=0.01)


def languages(speaker: str = "posdis", episodes: int = 5, **given: Any) -> list[FrozenLanguage]:
    return frozen_languages(speaker, GameSettings(**given), episode_seeds(123, episodes))


def toy(count: int, seed: int = 1) -> FrozenLanguage:
    """Return a language of one-hot stimuli. Each has its own token, and the query repeats the support."""
    numbers = np.arange(count).repeat(2)
    return FrozenLanguage(
        seed=seed,
        sizes=np.array([count]),
        meanings=numbers[:, None],
        stimuli=np.eye(count, 8, dtype=np.float32)[numbers],
        query=np.arange(2 * count) % 2 == 1,
        messages=numbers[:, None] + 1,
    )


# -- a stack ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_stack_of_listeners_equals_single_listeners() -> None:
    """Their supports differ in size, so listeners end at different updates and the stack shrinks."""
    found = languages(samples=2)
    settings = AcquisitionSettings(epochs=6, learning_rate=0.01)
    stack = Acquisition(found, 2, 7, settings)
    assert len(set(stack.batches)) > 1
    together = stack.train()
    for place, language in enumerate(found):
        alone = Acquisition([language], 2, 7, settings)
        scores = alone.train()
        assert alone.updates == stack.batches[place] * 6
        assert {name: x[0] for name, x in scores.items()} == {name: x[place] for name, x in together.items()}


def test_weights_in_a_stack_equal_those_of_single_listeners() -> None:
    found = languages(episodes=3)
    stack = Acquisition(found, 1, 7, FAST)
    alone = [Acquisition([language], 1, 7, FAST) for language in found]
    for training in (stack, *alone):
        for _ in range(12):
            training._learner.update(*training._batch(), torch.zeros(len(training.rows), dtype=torch.int64))
            training.updates += 1
    for place, training in enumerate(alone):
        for name, weight in training._learner.weights(0).items():
            assert torch.equal(weight, stack._learner.weights(place)[name])


@pytest.mark.slow
def test_an_episode_does_not_depend_on_the_other_episodes() -> None:
    few, more = (ease_of_acquisition(episodes=n, most=3, settings=FAST) for n in (2, 4))
    assert few.equals(more.head(2))


# -- games ------------------------------------------------------------------------------------------------------------


def test_an_epoch_shows_every_stimulus_of_the_support_once() -> None:
    (language,) = languages(episodes=1, samples=2)
    training = Acquisition([language], 2, 7, AcquisitionSettings(epochs=1, batch=8))
    shown, answers = [], []
    for _ in range(int(training.batches[0])):
        games, right = training._batch()
        shown.append(games[0][right[0] >= 0])
        answers.append(right[0][right[0] >= 0])
        training.updates += 1
    stimuli = torch.cat(shown)[:, :3]
    support = torch.as_tensor(language.stimuli[~language.query])
    assert sorted(stimuli.tolist()) == sorted(support.tolist())
    assert 0.2 < float(torch.cat(answers).double().mean()) < 0.8


@pytest.mark.parametrize("samples", [1, 3])
def test_the_speaker_sees_another_sample_of_the_meaning_or_another_meaning(samples: int) -> None:
    part = CommonGames.of(languages(episodes=4, samples=samples), True, samples)
    rows = np.arange(4)
    shown = np.random.default_rng(0).integers(0, 10**6, (4, 500)) % part.counts[:, None]
    same = np.arange(500) % 2 == 0
    uniform = np.random.default_rng(1).random((4, 500, 2))
    found = part.targets(shown, np.broadcast_to(same, shown.shape), uniform, rows)
    assert (found < part.counts[:, None]).all()
    assert ((found // samples == shown // samples) == same).all()
    assert (found[:, same] == shown[:, same]).all() == (samples == 1)
    if samples > 1:
        assert (found[:, same] != shown[:, same]).all()
    for row in rows:  # every other meaning occurs
        assert len(np.unique(found[row][~same] // samples)) == part.counts[row] // samples


@pytest.mark.slow
def test_a_listener_that_ignores_messages_scores_exactly_half() -> None:
    found = languages(episodes=4, samples=2)
    silent = [FrozenLanguage(**{**vars(x), "messages": np.zeros_like(x.messages)}) for x in found]
    assert Acquisition(silent, 2, 7, FAST).train()["zsct"].tolist() == [0.5] * 4


# -- learning ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "likelihood"])
@pytest.mark.parametrize("impatient", [True, False])
def test_a_language_with_one_token_per_stimulus_is_learned(loss: str, impatient: bool) -> None:
    settings = AcquisitionSettings(epochs=300, learning_rate=0.01, loss=loss, impatient=impatient)
    found = Acquisition([toy(6), toy(8)], 1, 9, settings).train()
    assert found["support"].tolist() == found["zsct"].tolist() == [1.0, 1.0]
    assert found["yes"].tolist() == [0.5, 0.5]


def test_losses_equal_hand_computed_values() -> None:
    scores = torch.tensor([[[[2.0, 1.5], [0.0, 0.0]], [[1.0, 3.0], [3.0, 1.0]], [[9.0, 9.0], [9.0, 9.0]]]])
    answers = torch.tensor([[0, 1, -1]])
    noise = Noise(torch.zeros(1, dtype=torch.int64))
    # right less wrong: 0.5 and 0, -(-2) and -2; the third is padding
    assert loss_of(AcquisitionSettings())(scores, answers, noise).tolist() == [(0.5 + 1 + 0 + 3) / 4]
    last = loss_of(AcquisitionSettings(impatient=False))
    assert last(scores, answers, noise).tolist() == [(1 + 3) / 2]
    likely = loss_of(AcquisitionSettings(impatient=False, loss="likelihood"))(scores, answers, noise)
    assert float(likely) == pytest.approx((np.log(2) + np.log(1 + np.e**2)) / 2)


def test_the_order_of_tokens_matters_to_the_listener() -> None:
    torch.manual_seed(1)
    listener = OrdinaryListener(2, 3, 5, AcquisitionSettings())
    games = torch.tensor([[0.1, 0.2, 1, 2, 3], [0.1, 0.2, 1, 2, 4], [0.1, 0.2, 2, 1, 3]])
    yes, no = listener(games).unbind(-1)
    assert no.tolist() == [[1.0] * 3] * 3
    assert yes[0, :2].tolist() == pytest.approx(yes[1, :2].tolist())
    assert abs(float((yes[0, 2] - yes[1, 2]).detach())) > 1e-4
    assert abs(float((yes[0, 2] - yes[2, 2]).detach())) > 1e-4


@pytest.mark.slow
def test_compositional_languages_are_acquired_and_others_are_not() -> None:
    settings = AcquisitionSettings(epochs=80, learning_rate=0.005)
    found = {
        name: ease_of_acquisition(name, least=5, most=5, vocab_size=15, episodes=6, settings=settings)
        for name in ("posdis", "bosdis", "holistic", "random")
    }
    query = {name: rows["zsct"].mean() for name, rows in found.items()}
    assert min(query["posdis"], query["bosdis"]) > 0.65
    assert max(query["holistic"], query["random"]) < 0.58
    assert (found["posdis"]["messages"] == 125).all()


@pytest.mark.slow
def test_a_speaker_that_learns_is_measured() -> None:
    game = GameSettings(most=3)
    speaker = PairLearning(game, PairSettings(seed=1)).speaker()
    rows = ease_of_acquisition(speaker, game, episodes=2, settings=FAST)
    assert rows["zsct"].between(0, 1).all()
    assert rows.columns.tolist() == ["episode", "space", "messages", "zsct", "support", "yes"]


def test_progress_counts_listeners() -> None:
    calls: list[tuple[int, int]] = []
    settings = AcquisitionSettings(epochs=1)
    ease_of_acquisition(episodes=4, settings=settings, progress=lambda *now: calls.append(now))
    assert calls[-1] == (4, 4)
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})


# -- bad input --------------------------------------------------------------------------------------------------------


class Shouting(Player):
    """Speaker that uses a token outside the vocabulary."""

    def acting(self, seen: Any) -> Any:
        from icy.s2b import Action

        return Action()

    def utter(self, stimuli: Any, meanings: Any, episode: int) -> Any:
        return np.full((len(stimuli), 3), 99)


def test_bad_input_raises_errors_with_clear_messages() -> None:
    with pytest.raises(UnknownNameError, match="did you mean hinge"):
        AcquisitionSettings(loss="hing")
    with pytest.raises(InvalidSettingError, match="ratio must be above 0 and below 1"):
        AcquisitionSettings(ratio=1.0)
    with pytest.raises(IncompatibleError, match="fewer than two meanings in its query"):
        ease_of_acquisition(episodes=1, least=2, most=2, threshold=3)
    with pytest.raises(PluginError, match="tokens must be from 0 to 6"):
        ease_of_acquisition(Shouting(), episodes=1)
