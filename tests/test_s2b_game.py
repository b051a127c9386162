"""The referential game of S2B: what is dealt, and what comes of steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icy.core.errors import IcyError
from icy.s2b import BatchedGame, GameSettings, Turn
from icy.s2b.channel import inverses, permutations, regular, sentence_count, sentence_number, sentences
from icy.s2b.episodes import Deal, deal
from icy.s2b.settings import NEAR32
from icy.s2b.stimuli import Spaces
from icy.s2b.streams import Draws
from icy.s2b.targets import query_meanings

GAMES: dict[str, dict[str, Any]] = {
    "default": {},
    "object-centric": {"samples": 4, "shots": 2},
    "distractors": {"distractors": 3, "samples": 2},
    "partial": {"distractors": 2, "view": "partial"},
    "no feedback": {"feedback": False, "rounds": 2},
    "both speak": {"listener_messages": True, "rounds": 2, "length": 2},
    "near32": {"compat": "near32", "distractors": 2},
    "one-hot": {"representation": "ohe", "descriptive": False, "distractors": 1},
    "common": {"kind": "common", "games": 4, "split": "all", "distractors": 1},
}


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
    "count", [8, pytest.param(112, marks=pytest.mark.slow)], ids=["72 episodes", "1008 episodes, slow"]
)
@pytest.mark.parametrize("name", GAMES)
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


# -- what is dealt -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_answers_are_right_and_distractors_never_share_the_meaning(name: str) -> None:
    settings = GameSettings.of(**{**GAMES[name], "distinct": True})
    dealt = deal(settings, np.arange(300))
    spoken, seen = dealt.speaker_numbers // settings.samples, dealt.listener_numbers // settings.samples
    same = seen == spoken[:, :1]
    assert (same.sum(1) == (dealt.answer < settings.slots)).all()
    assert (same.argmax(1)[same.any(1)] == dealt.answer[same.any(1)]).all()
    assert (spoken[:, 1:] != spoken[:, :1]).all()
    assert same.any(1).mean() == pytest.approx(settings.kept, abs=0.03)
    kept = same.any(1)
    if settings.samples > 1:  # never the speaker's own sample
        own = np.take_along_axis(dealt.listener_numbers, dealt.answer.clip(0, settings.slots - 1)[:, None], 1)[:, 0]
        assert (own != dealt.speaker_numbers[:, 0])[kept].all()
    if settings.slots > 1:  # the target's place tells nothing
        places = np.bincount(dealt.answer[kept], minlength=settings.slots) / kept.sum()
        assert places == pytest.approx(1 / settings.slots, abs=0.04)


def test_everything_shown_has_been_scheduled() -> None:
    """In the support, stimuli are those of its targets; in the query, of all targets."""
    settings = GameSettings(samples=4, shots=2)
    dealt = deal(settings, np.arange(100))
    for episode in range(100):
        own = dealt.episode_of == episode
        support, query = own & ~dealt.query, own & dealt.query
        targets = set(dealt.speaker_numbers[support, 0].tolist())
        others = dealt.listener_numbers[support & (dealt.answer == 1)]
        assert set(others.ravel().tolist()) <= targets
        others = dealt.listener_numbers[query & (dealt.answer == 1)]
        assert set(others.ravel().tolist()) <= targets | set(dealt.speaker_numbers[query, 0].tolist())


def test_the_query_shows_every_meaning_and_sample_once() -> None:
    settings = GameSettings(samples=2)
    dealt = deal(settings, np.arange(50))
    spaces = Spaces(dealt.sizes, settings.most)
    wanted = spaces.valid & query_meanings(spaces)
    for episode in range(50):
        shown = dealt.speaker_numbers[(dealt.episode_of == episode) & dealt.query, 0]
        assert sorted(shown) == np.flatnonzero(wanted[episode].repeat(2)).tolist()
        assert (np.diff(dealt.query[dealt.episode_of == episode].astype(int)) >= 0).all()


def test_a_small_pool_is_widened_and_never_empty() -> None:
    """Four meanings in the support, and three distractors: the authors' program raises here (s2b-facts 12c)."""
    settings = GameSettings(least=2, most=2, distractors=3)
    dealt = deal(settings, np.arange(200))
    support = ~dealt.query
    assert (dealt.speaker_numbers[:, 1:] != dealt.speaker_numbers[:, :1]).all()
    alike = np.array([len(set(row)) < 4 for row in dealt.listener_numbers[support].tolist()])
    kept = dealt.answer[support] < 4
    assert alike[kept].mean() == alike[~kept].mean() == 1  # two alike tell nothing
    assert (dealt.listener_numbers[support][~kept] != dealt.speaker_numbers[support, :1][~kept]).all()


def test_a_game_that_always_shows_the_target_needs_no_other() -> None:
    """So that all others may be distractors, each once."""
    dealt = deal(GameSettings(descriptive=False, distractors=3, least=2, most=2), np.arange(50))
    assert all(len(set(row)) == 4 for row in dealt.listener_numbers[~dealt.query].tolist())
    settings = GameSettings(kind="common", dimensions=2, least=2, most=2, split="query", ratio=1.0, games=5)
    dealt = deal(settings, np.arange(20))
    assert (dealt.speaker_numbers == 3).all()
    assert (dealt.listener_numbers == 3).all()


def test_streams_of_an_episode_do_not_hang_on_the_others() -> None:
    settings = GameSettings(samples=3, distractors=2)
    together = deal(settings, np.array([4, 8, 15]), np.array([0, 2, 1]))
    alone = deal(settings, np.array([8]), np.array([2]))
    part = together.take(np.array([1]))
    for name in vars(alone):
        assert np.array_equal(getattr(part, name), getattr(alone, name)), name
    joined = Deal.join([together.take(np.array([0])), alone])
    assert np.array_equal(joined.listener, together.take(np.array([0, 1])).listener)


# -- compat ------------------------------------------------------------------------------------------------------------

PUBLISHED = {  # shots, samples: games of support and query, share of query meanings shown, episodes that show all
    (1, 1): (11.4, 14.6, 0.67, 0.12),
    (2, 1): (19.1, 16.1, 0.95, 0.88),
    (4, 1): (36.9, 17.5, 1.00, 1.00),
    (1, 4): (10.1, 13.2, 0.70, 0.12),
    (2, 4): (18.9, 26.8, 0.87, 0.39),
    (4, 4): (39.1, 47.2, 0.95, 0.64),
}


@pytest.mark.parametrize(("shots", "samples"), PUBLISHED)
def test_schedules_of_the_authors_program(shots: int, samples: int) -> None:
    """s2b-facts 3: means of 120 episodes of theirs, so that their standard error is what ours may be off by."""
    count = 600
    dealt = deal(GameSettings.of(compat="near32", shots=shots, samples=samples), np.arange(count))
    owner, meanings = dealt.episode_of, dealt.speaker_numbers[:, 0] // samples
    spaces = Spaces(dealt.sizes, 5)
    there = (spaces.valid & query_meanings(spaces)).sum(1)
    pairs = np.unique(np.stack([owner, meanings], 1)[dealt.query], axis=0)
    shown = np.bincount(pairs[:, 0], minlength=count) / there
    found = (
        np.bincount(owner[~dealt.query], minlength=count),
        np.bincount(owner[dealt.query], minlength=count),
        shown,
        shown == 1,
    )
    for ours, theirs in zip(found, PUBLISHED[shots, samples], strict=True):
        error = np.std(ours) * np.sqrt(1 / 120 + 1 / count)
        assert np.mean(ours) == pytest.approx(theirs, abs=2.5 * error + 0.005)


def test_compat_brings_back_what_the_published_numbers_depend_on() -> None:
    """s2b-facts 12 a and b: the speaker's own sample in 26 % of games, duplicates in 7 % of those with K = 3."""
    dealt = deal(GameSettings.of(compat="near32", samples=4), np.arange(400))
    kept = dealt.answer == 0
    assert (dealt.speaker_numbers[:, 0] == dealt.listener_numbers[:, 0])[kept].mean() == pytest.approx(0.26, abs=0.03)
    dealt = deal(GameSettings.of(compat="near32", distractors=3), np.arange(400))
    twice = np.array([len(set(row)) < 4 for row in dealt.speaker_numbers.tolist()])
    assert twice.mean() == pytest.approx(0.07, abs=0.012)
    assert (dealt.answer < 4).mean() == pytest.approx(0.2, abs=0.02)


def test_compat_is_a_set_of_named_departures() -> None:
    ours, theirs = GameSettings(), GameSettings.of(compat="near32")
    changed = {name for name in vars(ours) if getattr(ours, name) != getattr(theirs, name)}
    assert changed == {name for departure in NEAR32.values() for name in departure.settings}
    assert GameSettings.of(compat="near32", query="all").query == "all"


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


# -- channel -----------------------------------------------------------------------------------------------------------


def test_sentences_and_their_numbers() -> None:
    """s2b-facts 5 and 6.2: 259, 1555 and 85 sentences; the first token runs fastest."""
    assert [sentence_count(6, 3), sentence_count(6, 4), sentence_count(4, 3)] == [259, 1555, 85]
    every = sentences(6, 3)
    assert len({tuple(s) for s in every.tolist()}) == 259
    assert np.array_equal(regular(every), every)
    assert sentence_number(every, 6).tolist() == list(range(259))
    assert regular(np.array([[3, 0, 5, 1], [0, 2, 2, 2], [1, 2, 3, 4]])).tolist() == [
        [3, 0, 0, 0],
        [0, 0, 0, 0],
        [1, 2, 3, 4],
    ]


def test_renamings_are_permutations_that_leave_the_end() -> None:
    found = permutations(Draws.of_seeds(np.arange(200)), 5)
    assert (found[:, 0] == 0).all()
    assert (np.sort(found, axis=1) == np.arange(6)).all()
    assert (np.take_along_axis(found, inverses(found), 1) == np.arange(6)).all()
    assert len({tuple(row) for row in found.tolist()}) > 70


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dimensions": 1}, "test values in 2 dimensions, and there is 1"),
        ({"distractors": 4}, "4 stimuli are to be shown beside the target's"),
        ({"least": 4, "most": 3}, "from 4 to 3, which leaves none"),
        ({"query": "tss", "dimensions": 2, "samples": 4}, "the query has no plain values"),
        ({"ratio": 1.5}, "a share, from 0 to 1"),
        ({"ratio": "x"}, "a share, from 0 to 1"),
        ({"descriptive": 2}, "True or False"),
        ({"descriptive": False}, "one answer only"),
        ({"threshold": 1}, "cannot show every value"),
        ({"games": 5}, "for common games"),
        ({"kind": "common", "dimensions": 1, "least": 2, "most": 2, "split": "all", "distractors": 1}, "2 stimuli"),
        ({"shots": 0}, "shots"),
        ({"shots": 10**9}, "At most 1,000 shots"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"most": 200, "dimensions": 3}, "more than 1,000,000 meanings"),
        ({"samples": 2, "representation": "ohe"}, "One-hot stimuli"),
        ({"view": "ful"}, "did you mean full"),
        ({"shot": 1}, "did you mean shots"),
        ({"compat": "near"}, "did you mean near32"),
    ],
)
def test_settings_that_do_not_go_are_answered_in_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IcyError, match=said):
        BatchedGame(**given)


def test_shots_that_cannot_be_met_end_in_an_error_and_not_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.s2b.targets.MOST_ROUNDS", 50)
    with pytest.raises(IcyError, match="No targets with 40 shots of every value were found in 50 draws"):
        BatchedGame(shots=40).reset(seed=1)


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
    with pytest.raises(IcyError, match=r"have the shape \(2, 3\), not \(3,\)"):
        game.step(said=np.zeros(3, dtype=int))
    with pytest.raises(IcyError, match="whole numbers, not float64"):
        game.step(said=np.ones((2, 3)))
    with pytest.raises(IcyError, match="needs about"):
        BatchedGame(episodes=100_000, most=20, dimensions=4).reset(seed=1)
    with pytest.raises(IcyError, match="not both"):
        BatchedGame(GameSettings(), shots=2)
