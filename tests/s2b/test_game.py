"""The referential game: batches equal single games, and what comes of steps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from icy.core.errors import IcyError
from icy.s2b import BatchedGame, BatchedRecall, GameSettings, RecallSettings, Turn
from tests.helpers import mark_others
from tests.s2b.helpers import GAMES


def actions(settings: GameSettings, episodes: int, seed: int) -> Any:
    """Random actions of all episodes, step by step; tokens and decisions that there are not among them."""
    rng = np.random.default_rng(seed)
    while True:
        said = rng.integers(-1, settings.vocab_size + 2, (episodes, settings.length))
        answered = rng.integers(0, settings.vocab_size + 1, (episodes, settings.length))
        yield said, rng.integers(0, settings.decisions + 1, episodes), answered


def facts(turn: Turn) -> dict[str, Any]:
    """Everything that a turn holds, by name."""
    found = {f"{side}.{n}": v for side in ("speaker", "listener") for n, v in vars(getattr(turn, side)).items()}
    return found | {name: getattr(turn, name) for name in ("reward", "done", "decided", "correct")}


def assert_same_rows(several: BatchedGame, turn: Turn, single: BatchedGame, alone: Turn, row: int) -> None:
    own = facts(alone)
    for name, values in facts(turn).items():
        assert np.array_equal(np.asarray(values)[row], np.asarray(own[name])[0]), name
    for name in ("game_number", "answer", "games", "sizes"):
        assert np.array_equal(getattr(several, name)[row], getattr(single, name)[0]), name
    assert [several.illegal[p][row] for p in several.illegal] == [single.illegal[p][0] for p in single.illegal]


# -- a batch and single games ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "count", [3, pytest.param(112, marks=pytest.mark.stress)], ids=["27 episodes", "1008 episodes"]
)
@pytest.mark.parametrize("name", mark_others("slow", GAMES, lambda name: name in ("default", "both speak", "near32")))
def test_a_batch_plays_as_single_games_do(name: str, count: int) -> None:
    """Step by step for the same seed, through two episodes of each."""
    given = GAMES[name]
    game = BatchedGame(episodes=count, autoreset=True, ahead=1, **given)
    singles = [BatchedGame(episodes=1, autoreset=True, ahead=3, **given) for _ in range(count)]
    turn, alone = game.reset(seed=40), [single.reset(seed=40 + i) for i, single in enumerate(singles)]
    ended = np.zeros(count, dtype=int)
    for said, decided, answered in actions(game.settings, count, seed=1):
        for i, single in enumerate(singles):
            assert_same_rows(game, turn, single, alone[i], i)
        ended += turn.done
        if ended.min() >= 2:
            return
        turn = game.step(said, decided, answered)
        alone = [s.step(said[[i]], decided[[i]], answered[[i]]) for i, s in enumerate(singles)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["default", "partial", "both speak", "near32"])
def test_tensors_play_as_arrays_do(name: str) -> None:
    given: dict[str, Any] = {"episodes": 20, "autoreset": True, "ahead": 1, **GAMES[name]}
    game, other = BatchedGame(**given), BatchedGame(device="cpu", **given)
    turn, tensors = game.reset(seed=3), other.reset(seed=3)
    steps = actions(game.settings, 20, seed=2)
    for _ in range(150):
        found = facts(tensors)
        for fact, values in facts(turn).items():
            assert np.array_equal(values, found[fact].numpy()), fact
        said, decided, answered = next(steps)
        turn, tensors = game.step(said, decided, answered), other.step(said, decided, answered)
    np.testing.assert_array_equal(game.scores().support, other.scores().support)


def test_reset_begins_the_next_episodes_of_the_seeds() -> None:
    game, other = BatchedGame(episodes=3), BatchedGame(episodes=1, autoreset=True)
    game.reset(seeds=[5, 5, 9])
    turn, after = game.reset(), other.reset(seed=9)
    while not other.episode_number[0]:
        after = other.step()
    assert game.episode_number.tolist() == [1, 1, 1]
    assert np.array_equal(turn.speaker.stimulus[0], turn.speaker.stimulus[1])
    assert after.speaker.fresh[0]
    assert np.array_equal(after.speaker.stimulus[0], turn.speaker.stimulus[2])


@pytest.mark.parametrize("autoreset", mark_others("slow", [False, True], bool))
@pytest.mark.parametrize("name", mark_others("slow", GAMES, lambda name: name in ("default", "both speak")))
def test_a_game_goes_on_from_its_state(name: str, autoreset: bool) -> None:
    """As one that was never left, from anywhere, through ends of episodes; on arrays and on tensors."""
    given: dict[str, Any] = {"episodes": 5, "autoreset": autoreset, **GAMES[name]}
    game = BatchedGame(**given)
    turn = game.reset(seeds=[7, 7, 90, 1, 3])
    steps = actions(game.settings, 5, seed=2)
    others: list[tuple[BatchedGame, Turn]] = []
    for step in range(150):
        if step in (0, 1, 40, 41, 42, 120):
            state = json.loads(json.dumps(game.state()))
            other = BatchedGame(device=None if step % 2 else "cpu", **given)
            others.append((other, other.load(state)))
        for other, after in others:
            assert_same_turns(turn, after)
            assert [c.tolist() for c in game.illegal.values()] == [c.tolist() for c in other.illegal.values()]
        said, decided, answered = next(steps)
        turn = game.step(said, decided, answered)
        others = [(other, other.step(said, decided, answered)) for other, _ in others]
    for other, _ in others:
        np.testing.assert_array_equal(game.scores().support, other.scores().support)
        assert game.episode_number.tolist() == other.episode_number.tolist()
    assert turn.done.any() or autoreset


def assert_same_turns(one: Turn, other: Turn) -> None:
    found = facts(other)
    for fact, values in facts(one).items():
        assert np.array_equal(values, np.asarray(found[fact])), fact


# -- steps -------------------------------------------------------------------------------------------------------------


def test_the_rounds_of_a_game() -> None:
    """s2b-facts 4.1: N + 2 observations; the decision is read at round N, the feedback shows what the speaker saw."""
    game = BatchedGame(episodes=1, distractors=2)
    turn = game.reset(seed=5)
    seen = []
    total, steps, games = 0.0, 0, int(game.games[0])
    while not turn.done[0]:
        seen.append((int(turn.listener.round[0]), bool(turn.speaker.may_speak[0]), bool(turn.listener.may_decide[0])))
        shown, right = turn.speaker.stimulus.copy(), game.answer.copy()
        turn = game.step(said=np.array([[1, 0, 2]]), decided=right * turn.listener.may_decide)
        steps += 1
        total += float(turn.reward[0])
        if turn.decided[0]:
            assert turn.correct[0]
            assert np.array_equal(turn.listener.stimulus, shown)
            assert turn.listener.result[0] == 2
    assert seen[:3] == [(0, True, False), (1, False, True), (2, False, False)]
    assert steps == 3 * games - 1
    assert total == games
    assert int(game.illegal["speaker"][0]) == 2 * games - 1


def test_rewards_and_results() -> None:
    """Wrong: 0 in the support, -2 in the query (s2b-facts 4.2)."""
    game = BatchedGame(episodes=40)
    turn = game.reset(seed=0)
    while not turn.done.all():
        wrong, query, asked = 1 - game.answer, turn.listener.query, turn.listener.may_decide
        turn = game.step(decided=wrong * asked)
        assert (turn.reward == np.where(asked & query, -2, 0)).all()
        if asked.any():
            assert (turn.listener.result[asked] == 1).all()
            assert (turn.listener.reward[asked] == np.where(query, -2, 0)[asked]).all()
    assert (game.scores().zsct == 0).all()


def test_messages_are_regular_and_renamed() -> None:
    game = BatchedGame(episodes=30)
    game.reset(seed=2)
    said = np.array([[4, 0, 2]]).repeat(30, 0)
    turn = game.step(said=said)
    assert (turn.listener.message[:, 1:] == 0).all()
    assert (turn.listener.message[:, 0] == game.heard_as[:, 4]).all()
    assert len(set(turn.listener.message[:, 0].tolist())) > 1
    assert (turn.speaker.message == [4, 0, 0]).all()  # it hears itself
    plain = BatchedGame(episodes=2, permutation=False)
    plain.reset(seed=2)
    assert (plain.step(said=np.array([[1, 2, 3]] * 2)).listener.message == [1, 2, 3]).all()


def test_the_listener_answers_in_the_speakers_words() -> None:
    game = BatchedGame(episodes=5, listener_messages=True, rounds=2)
    game.reset(seed=1)
    turn = game.step(said=np.array([[1, 2, 3]] * 5))
    turn = game.step(answered=turn.listener.message)
    assert (turn.speaker.message == [1, 2, 3]).all()


def test_actions_that_are_not_legal_are_ignored_and_counted() -> None:
    game = BatchedGame(episodes=2)
    game.reset(seed=1)
    turn = game.step(said=np.array([[9, 1, 1], [1, 1, 1]]), decided=np.array([1, 0]))
    assert turn.listener.message[0].tolist() == [0, 0, 0]
    assert turn.listener.message[1].any()
    turn = game.step(said=np.array([[0, 0, 0], [1, 0, 0]]), decided=np.array([7, -1]))
    assert turn.decided.all()
    assert (turn.correct == (game.answer == 0)).all()
    assert game.illegal["speaker"].tolist() == [1, 1]
    assert game.illegal["listener"].tolist() == [2, 1]


def test_an_episode_that_is_over_stays() -> None:
    game = BatchedGame(episodes=3)
    turn = game.reset(seed=3)
    while not turn.done.all():
        turn = game.step(decided=game.answer * turn.listener.may_decide)
    over = facts(turn)
    after = facts(game.step(said=np.ones((3, 3), dtype=int), decided=np.ones(3, dtype=int)))
    for name in ("speaker.stimulus", "listener.round", "done", "listener.result"):
        assert np.array_equal(over[name], after[name]), name
    assert (game.scores().zsct == 1).all()
    assert (np.stack(list(game.illegal.values())) == 0).all()


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_steps_that_do_not_go_are_answered_in_a_sentence() -> None:
    game = BatchedGame(episodes=2)
    for early in (game.step, game.scores, lambda: game.answer, lambda: game.latents("speaker")):
        with pytest.raises(IcyError, match=r"call reset\(\) first"):
            early()
    with pytest.raises(IcyError, match="2 episodes need as many seeds"):
        game.reset(seeds=[1])
    with pytest.raises(IcyError, match="seed"):
        game.reset(seed=-1)
    game.reset(seed=1)
    with pytest.raises(IcyError, match=r"must have the shape \(2, 3\), not \(3,\)"):
        game.step(said=np.zeros(3, dtype=int))
    with pytest.raises(IcyError, match="whole numbers, not float64"):
        game.step(said=np.ones((2, 3)))
    with pytest.raises(IcyError, match="needs about"):
        BatchedGame(episodes=100_000, most=20, dimensions=4).reset(seed=1)
    with pytest.raises(IcyError, match="not both"):
        BatchedGame(GameSettings(), shots=2)


@pytest.mark.parametrize("autoreset", [False, True])
def test_feedback_comes_once_per_game_and_an_episode_ends_once(autoreset: bool) -> None:
    game = BatchedGame(episodes=6, autoreset=autoreset, most=3)
    turn = game.reset(seed=3)
    games = game.games.copy()
    told, last, idle = (np.zeros(6, dtype=int) for _ in range(3))
    for _ in range(200):
        first = game.episode_number == 0
        told += first & turn.listener.feedback
        last += first & turn.listener.over & ~turn.listener.idle
        idle += turn.listener.idle
        assert np.array_equal(turn.listener.feedback, turn.speaker.feedback)
        assert not (turn.listener.feedback & (turn.listener.round != 2)).any()
        turn = game.step()
    assert told.tolist() == games.tolist()
    assert last.tolist() == [1] * 6
    steps = 3 * games - 1  # after which the episode has ended
    assert idle.tolist() == ([0] * 6 if autoreset else (199 - steps).tolist())


def test_games_without_feedback_give_none_even_at_the_end() -> None:
    game = BatchedGame(feedback=False)
    turn = game.reset(seed=3)
    for _ in range(100):
        assert not turn.listener.feedback.any()
        turn = game.step()
    assert turn.listener.idle.all()


# -- the recall task ---------------------------------------------------------------------------------------------------


def test_recall_shows_every_stimulus_once_in_each_of_two_shots() -> None:
    task = BatchedRecall(episodes=1, most=3)
    turn = task.reset(seed=7)
    shown, rewards = [], 0.0
    while not turn.done[0]:
        if turn.asked[0] == 0:
            shown.append(tuple(turn.stimulus[0].tolist()))
            turn = task.step(np.array([3]))
        else:
            assert sorted(turn.stimulus[0].tolist()) == [0, 0, 1]
            turn = task.step(task.answers)
        rewards += float(turn.reward[0])
    half = len(shown) // 2
    assert len(set(shown[:half])) == half
    assert set(shown[:half]) == set(shown[half:])
    assert rewards == len(shown)
    assert task.illegal[0] == 0
    assert task.accuracy()[0] == 1


def test_recall_of_the_authors() -> None:
    """s2b-facts 8: the support of 5x5x5, 81 stimuli a shot, drawn with replacement; no right answer is rewarded."""
    task = BatchedRecall(episodes=2, compat="near32", representation="ohe")
    turn = task.reset(seed=1)
    steps, low = 0, 0.0
    while not turn.done.all():
        turn = task.step(np.full(2, 5))
        low = min(low, float(turn.reward.min()))
        steps += 1
    assert steps == 81 * 2 * 2
    assert low == -1
    assert task.illegal.tolist() == [162, 162]
    assert task.settings.least == 5


@pytest.mark.parametrize("compat", [None, "near32"])
def test_an_episode_of_recall_is_the_same_alone_and_in_a_batch(compat: str | None) -> None:
    together, alone = BatchedRecall(episodes=3, compat=compat), BatchedRecall(compat=compat)
    theirs, own = together.reset(seeds=[4, 8, 15]), alone.reset(seeds=[8])
    while not own.done[0]:
        for name in ("stimulus", "asked", "result", "reward", "done"):
            assert np.array_equal(getattr(theirs, name)[1], getattr(own, name)[0]), name
        theirs, own = together.step(together.answers), alone.step(alone.answers)


def test_settings_of_recall_that_do_not_go() -> None:
    with pytest.raises(IcyError, match="did you mean shots"):
        RecallSettings.of(shot=1)
    with pytest.raises(IcyError, match="must not be above the largest"):
        BatchedRecall(least=4, most=3)
    with pytest.raises(IcyError, match="split 'all'"):
        BatchedRecall(dimensions=1, split="support")
    with pytest.raises(IcyError, match=r"call reset\(\) first"):
        BatchedRecall().step([1])
