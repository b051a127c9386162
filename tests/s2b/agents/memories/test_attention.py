"""Attention memories: whole episodes equal play step by step, and decisions do not use later games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import IncompatibleError
from icy.s2b import Action, BatchedGame, GameSettings, evaluate, play
from icy.s2b.agents.dealt import deal_games, decide
from icy.s2b.agents.memories.attention import MemoryListener, MemoryPlayer, MemorySettings

SEEDS = range(20, 32)
KINDS = pytest.mark.parametrize("kind", ["pairs", "joint"])


def memory(game: GameSettings, **given: Any) -> MemoryListener:
    torch.manual_seed(5)
    made = MemoryListener(game, MemorySettings(**given))
    with torch.no_grad():
        for parameter in made.parameters():  # far from uniform attention
            parameter.mul_(2).add_(0.1 * torch.randn_like(parameter))
        bias, dealt = made.lookup.judge[-1].bias, deal_games(game, SEEDS)
        for _ in range(30):  # until it decides yes about as often as no
            bias -= made(dealt)[..., 0][dealt.there].median() / 3
    return made


# -- dealt games -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [{}, {"samples": 3, "distractors": 2}, {"distractors": 2, "view": "partial"}, {"rounds": 2, "length": 2}],
)
@pytest.mark.parametrize("speaker", ["posdis", "random"])
def test_dealt_games_equal_played_games(speaker: str, given: dict[str, Any]) -> None:
    settings = GameSettings(**given)
    dealt = deal_games(settings, SEEDS, speaker)
    game = BatchedGame(settings, episodes=len(SEEDS))
    checked = 0

    def watch(game: BatchedGame, turn: Any, said: Action, heard: Action) -> None:
        nonlocal checked
        for episode in np.flatnonzero(~turn.done):
            at, seen = (episode, game.game_number[episode]), turn.listener
            if (place := seen.round[episode]) <= settings.rounds:
                assert (dealt.stimuli[at].numpy() == seen.stimulus[episode]).all()
            else:
                assert (dealt.feedback[at].numpy() == seen.stimulus[episode]).all()
                assert (dealt.shown[at].numpy() == seen.stimulus[episode, 0]).all()
            if 0 < place <= settings.rounds:
                heard_now = dealt.messages[at][(place - 1) * settings.length : place * settings.length]
                assert heard_now.tolist() == seen.message[episode].tolist()
            assert dealt.there[at]
            assert dealt.query[at] == seen.query[episode]
            assert dealt.answers[at] == game.answer[episode]
            checked += 1

    play(game, speaker, "always-no", SEEDS, watch)
    assert dealt.there.sum(1).tolist() == game.games.tolist()
    assert checked > 12 * 15 * 3


def test_games_that_depend_on_the_listener_are_not_dealt() -> None:
    for given in ({"feedback": False}, {"listener_messages": True}):
        with pytest.raises(IncompatibleError, match="Dealt games must end with feedback"):
            deal_games(GameSettings(**given), [1])  # type: ignore[arg-type]


def test_selected_episodes_have_no_unnecessary_padding() -> None:
    dealt = deal_games(GameSettings(), SEEDS)
    some = dealt.take(torch.tensor([3, 1]))
    assert some.there.shape[1] == dealt.there[[3, 1]].sum(1).max()
    assert (some.answers[0] == dealt.answers[3, : some.there.shape[1]]).all()


@pytest.mark.slow
def test_grouping_episodes_by_length_does_not_change_decisions() -> None:
    game = GameSettings(most=5)
    dealt, model = deal_games(game, range(20)), memory(game)
    found, expected = decide(model, dealt), model(dealt).log_softmax(-1)
    assert len(set(dealt.there.sum(1).tolist())) > 3
    torch.testing.assert_close(found[dealt.there], expected[dealt.there])
    assert not found[~dealt.there].any()


# -- memories ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("given", [{}, {"distractors": 2, "samples": 2}, {"rounds": 2, "length": 2, "shots": 2}])
def test_a_whole_episode_at_once_equals_playing_it(kind: str, given: dict[str, Any]) -> None:
    settings = GameSettings(**given)
    model = memory(settings, kind=kind)
    dealt = deal_games(settings, SEEDS)
    with torch.no_grad():
        expected = model(dealt).argmax(-1)
    decided = torch.full_like(expected, -1)

    def watch(game: BatchedGame, turn: Any, said: Action, heard: Action) -> None:
        assert heard.decision is not None
        for episode in np.flatnonzero(turn.listener.may_decide):
            decided[episode, game.game_number[episode]] = int(heard.decision[episode])

    play(BatchedGame(settings, episodes=len(SEEDS)), "posdis", MemoryPlayer(model), SEEDS, watch)
    assert (decided == expected)[dealt.there].all()
    assert 0.1 < (decided[dealt.there] == 0).double().mean() < 0.8


@pytest.mark.slow
@KINDS
def test_a_decision_does_not_depend_on_later_games(kind: str) -> None:
    settings = GameSettings()
    dealt, model = deal_games(settings, SEEDS), memory(settings, kind=kind)
    with torch.no_grad():
        before = model(dealt)
        dealt.shown[:, 7:] = 0.3
        dealt.messages[:, 8:] = 1
        after = model(dealt)
    torch.testing.assert_close(after[:, :8], before[:, :8])
    assert not torch.allclose(after[:, 9:12], before[:, 9:12])


@KINDS
def test_a_deaf_memory_ignores_messages(kind: str) -> None:
    dealt, settings = deal_games(GameSettings(), SEEDS), GameSettings()
    silent = memory(settings, kind=kind, deaf=True)
    with torch.no_grad():
        before = silent(dealt)
        dealt.messages[:] = 2
        assert torch.equal(silent(dealt), before)


def test_the_log_odds_of_dimensions_are_combined_as_a_conjunction() -> None:
    """The value by hand for log-odds 2, -1 and 0 in three dimensions, each at its own position."""
    model = MemoryListener(GameSettings(), MemorySettings(aligned=True))
    agree = torch.zeros(1, 9, 1)
    agree[0, [0, 4, 8], 0] = torch.tensor([2.0, -1.0, 0.0])
    together = 1 / (1 + np.exp(-2)) / (1 + np.exp(1)) / 2
    found = float(model._pooled(agree))
    assert found == pytest.approx(np.log(together / (1 - together)), rel=1e-5)


def test_a_memory_refuses_games_of_other_sizes() -> None:
    player = MemoryPlayer(MemoryListener(GameSettings()))
    with pytest.raises(IncompatibleError, match="created for stimuli of 3 numbers, 3 tokens per game"):
        evaluate("posdis", player, dimensions=4, episodes=1, seeds=1)
    with pytest.raises(IncompatibleError, match="games with feedback"):
        evaluate("posdis", player, feedback=False, episodes=1, seeds=1)
    assert evaluate("posdis", player, most=4, episodes=2, seeds=1).table()["zsct"][0] >= 0  # fewer tokens


GAME = GameSettings(most=3)


@pytest.mark.slow
def test_every_game_is_stored_once_in_episodes_of_different_lengths() -> None:
    """The last game of the longest episodes is not stored, because players do not act when all episodes have ended."""
    game, player = BatchedGame(GAME, episodes=6), MemoryPlayer(MemoryListener(GAME))
    play(game, "posdis", player, range(6))
    expected = game.games - (game.games == game.games.max())
    assert len(np.unique(expected)) > 1
    assert torch.equal(player.memory.known.sum(1), torch.as_tensor(expected))
