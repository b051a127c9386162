"""Learning from dealt episodes: exact resumption, objectives equal hand-computed values, and agents learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from icy.core.errors import IcyError, IncompatibleError, UnknownNameError
from icy.s2b import Action, BatchedGame, GameSettings, evaluate, play
from icy.s2b.agents.dealt import deal_games, decide, generalized_advantages
from icy.s2b.agents.memories.attention import MemoryListener, MemoryPlayer, MemorySettings
from icy.s2b.agents.memories.dealt_learning import DealtLearning, DealtLearningSettings, read
from icy.s2b.agents.training import TRAINING, first_episode, practice, rate_factor
from icy.s2b.evaluation import episode_seeds

# -- attention memories ------------------------------------------------------------------------------------------------


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
    some = dealt[torch.tensor([3, 1])]
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


SMALL: dict[str, Any] = {"updates": 4, "episodes": 8, "minibatch": 4}


def learning(game: GameSettings | None = None, **given: Any) -> DealtLearning:
    torch.manual_seed(3)
    game = game or GameSettings(most=3)
    return DealtLearning(MemoryListener(game), game, DealtLearningSettings(**{**SMALL, **given}), seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["ppo", "supervised"])
def test_resumed_equals_uninterrupted(learner: str) -> None:
    whole, part, other = (learning(learner=learner) for _ in range(3))
    whole.run(4)
    part.run(2)
    other.load(part.state())
    other.run(9)
    assert whole.done
    assert other.done
    assert other.updates == 4
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, other.model.state_dict()[name])


def test_the_episodes_of_an_update_do_not_depend_on_earlier_updates() -> None:
    one, other = learning(), learning()
    one.batch(0), one.batch(1)
    for field in ("stimuli", "messages", "answers"):
        assert torch.equal(getattr(one.batch(200), field), getattr(other.batch(200), field))
    assert not torch.equal(one.batch(200).answers[:, :10], one.batch(201).answers[:, :10])


def test_the_learning_rate_rises_and_falls() -> None:
    assert [rate_factor(n, 100, warm_up=10, decay=0.5) for n in (0, 9, 50, 75, 99)] == [0.1, 1.0, 1.0, 0.5, 0.02]


def test_advantages_are_centered_per_phase_and_zero_in_padding() -> None:
    found = learning()
    games = found.batch(0)
    sampled = found._sample(games)
    right = sampled.drawn == games.answers
    for phase in (games.there & games.query, games.there & ~games.query):
        gains = sampled.gain[phase]
        assert float(gains.mean()) == pytest.approx(0, abs=1e-5)
        assert gains[right[phase]].unique().numel() == 1  # one reward for the right, one for the wrong
        assert gains[right[phase]].min() > gains[~right[phase]].max()
    spread = {  # of 1 and -2 in the query, of 1 and 0 before it
        name: float(sampled.gain[phase & right][0] - sampled.gain[phase & ~right][0])
        for name, phase in (("query", games.query), ("support", games.there & ~games.query))
    }
    assert spread["query"] == pytest.approx(3 * spread["support"], rel=1e-4)
    assert not sampled.gain[~games.there].any()


def test_the_clipped_objective_equals_hand_computed_values() -> None:
    found = learning(entropy=0.0)
    games = found.batch(0)
    sampled = found._sample(games)
    with torch.no_grad():
        moved = found.model(games).log_softmax(-1) + 0.5  # every ratio is e^0.5
    gain = sampled.gain
    expected = torch.where(gain > 0, 1.2 * gain, gain * torch.tensor(0.5).exp())[games.there].mean()
    assert float(found._ppo(games, moved, sampled)) == pytest.approx(-float(expected), rel=1e-4)


def test_accuracies_on_dealt_episodes_equal_those_of_play() -> None:
    game = GameSettings(most=3)
    model = MemoryListener(game)
    for name, value in read(model, game, episodes=20, seed=5).items():
        played = evaluate("posdis", MemoryPlayer(model), game, episodes=20, seeds=[5]).table()[name][0]
        assert value == pytest.approx(float(played), abs=1e-6)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"learner": "r2"}, "learner"),
        ({"updates": 0}, "updates"),
        ({"decay": 2}, "at most 1"),
        ({"learning_rate": 0}, "above 0"),
        ({"clip": -1}, "above 0"),
        ({"warm_up": -3}, "at least 0"),
        ({"entropy": float("nan")}, "entropy must be a number"),
    ],
)
def test_settings_that_are_not_accepted_raise_errors(given: dict[str, Any], why: str) -> None:
    with pytest.raises(IcyError, match=why):
        DealtLearningSettings(**given)


@pytest.mark.stress
def test_a_memory_learns_from_rewards_only_and_a_deaf_memory_does_not() -> None:
    game = GameSettings(most=3)
    for deaf, least, most in ((False, 0.98, 1.0), (True, 0.48, 0.52)):
        torch.manual_seed(1)
        model = MemoryListener(game, MemorySettings(deaf=deaf))
        found = DealtLearning(model, game, DealtLearningSettings(updates=120))
        found.run(120)
        assert least <= read(model, game, episodes=500)["zsct"] <= most


def test_the_alignment_has_its_own_learning_rate() -> None:
    game = GameSettings(most=2)
    learning = DealtLearning(
        MemoryListener(game), game, DealtLearningSettings(updates=4, episodes=4, warm_up=1, decay=0.1)
    )
    learning.run(1)
    rates = {len(group["params"]): group["lr"] for group in learning.optimizer.param_groups}
    assert rates.pop(1) == pytest.approx(0.02)  # the alignment only
    assert list(rates.values()) == [pytest.approx(0.001)]


def test_training_episodes_have_a_short_query_where_meanings_have_several_samples() -> None:
    assert practice(GameSettings()).query == "all"
    assert practice(GameSettings(samples=4)).query == "tss"
    assert practice(GameSettings(samples=4), "all").query == "all"
    with pytest.raises(UnknownNameError, match="query"):
        practice(GameSettings(), "none")  # type: ignore[arg-type]
    game = GameSettings(samples=4)
    learning = DealtLearning(MemoryListener(game), game, DealtLearningSettings(updates=1, episodes=4))
    assert learning.practice.query == "tss"
    assert learning.read(2) == read(learning.model, game, episodes=2)


def test_training_and_evaluation_have_no_episode_in_common() -> None:
    for seed in (0, 1, 123, 10**6):
        assert first_episode(seed) >= TRAINING > episode_seeds(10**6, 1000).max()
    assert len({first_episode(seed) for seed in range(100)}) == 100


# -- advantages equal values computed by hand --------------------------------------------------------------------------


REWARDS = torch.tensor([[1.0, -2.0, 1.0], [1.0, 1.0, 9.0]])
VALUES = torch.tensor([[0.5, 0.25, 2.0], [1.0, 0.0, 9.0]])
THERE = torch.tensor([[True, True, True], [True, True, False]])


def test_advantages_equal_hand_computed_values() -> None:
    # errors of the first row, from the last: 1 - 2; -2 + 2 / 2 - 1/4; 1 + 1/8 - 1/2; each adds 1/4 of the later ones
    first = [0.625 - 0.25 * 1.5, -1.25 - 0.25, -1.0]
    second = [0.0 + 0.25 * 1.0, 1.0, 0.0]  # values after the end of the episode do not count
    found = generalized_advantages(REWARDS, VALUES, THERE, discount=0.5, trace=0.5)
    assert found.tolist() == [first, second]


def test_without_discount_the_advantage_is_reward_minus_value() -> None:
    assert torch.equal(generalized_advantages(REWARDS, VALUES, THERE, 0.0, 0.9), (REWARDS - VALUES) * THERE)


def test_with_a_full_trace_and_zero_values_the_advantage_is_the_return() -> None:
    found = generalized_advantages(REWARDS, torch.zeros_like(VALUES), THERE, discount=0.9)
    assert found.tolist() == [
        pytest.approx([1 - 1.8 + 0.81, -2 + 0.9, 1.0]), pytest.approx([1.9, 1.0, 0.0])
    ]  # fmt: skip
