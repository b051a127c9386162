"""Episodes: what is dealt, and what the compat settings bring back."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from icy.s2b import GameSettings
from icy.s2b.episodes import Episodes, deal
from icy.s2b.stimuli import Spaces
from icy.s2b.targets import query_meanings
from tests.s2b.helpers import GAMES


def owners(episodes: Episodes) -> NDArray[np.int64]:
    """The episode of every game, [T]."""
    return np.repeat(np.arange(len(episodes)), episodes.games)


# -- what is dealt -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_answers_are_right_and_distractors_never_share_the_meaning(name: str) -> None:
    settings = GameSettings.of(**{**GAMES[name], "distinct": True})
    episodes = deal(settings, np.arange(300))
    spoken, seen = episodes.speaker_numbers // settings.samples, episodes.listener_numbers // settings.samples
    same = seen == spoken[:, :1]
    assert (same.sum(1) == (episodes.answer < settings.slots)).all()
    assert (same.argmax(1)[same.any(1)] == episodes.answer[same.any(1)]).all()
    assert (spoken[:, 1:] != spoken[:, :1]).all()
    assert same.any(1).mean() == pytest.approx(settings.kept, abs=0.03)
    kept = same.any(1)
    if settings.samples > 1:  # never the speaker's own sample
        own = np.take_along_axis(episodes.listener_numbers, episodes.answer.clip(0, settings.slots - 1)[:, None], 1)[
            :, 0
        ]
        assert (own != episodes.speaker_numbers[:, 0])[kept].all()
    if settings.slots > 1:  # the target's place tells nothing
        places = np.bincount(episodes.answer[kept], minlength=settings.slots) / kept.sum()
        assert places == pytest.approx(1 / settings.slots, abs=0.04)


def test_everything_shown_has_been_scheduled() -> None:
    """In the support, stimuli are those of its targets; in the query, of all targets."""
    settings = GameSettings(samples=4, shots=2)
    episodes = deal(settings, np.arange(100))
    for episode in range(100):
        own = owners(episodes) == episode
        support, query = own & ~episodes.query, own & episodes.query
        targets = set(episodes.speaker_numbers[support, 0].tolist())
        others = episodes.listener_numbers[support & (episodes.answer == 1)]
        assert set(others.ravel().tolist()) <= targets
        others = episodes.listener_numbers[query & (episodes.answer == 1)]
        assert set(others.ravel().tolist()) <= targets | set(episodes.speaker_numbers[query, 0].tolist())


def test_the_query_shows_every_meaning_and_sample_once() -> None:
    settings = GameSettings(samples=2)
    episodes = deal(settings, np.arange(50))
    spaces = Spaces(episodes.sizes, settings.most)
    wanted = spaces.valid & query_meanings(spaces)
    for episode in range(50):
        shown = episodes.speaker_numbers[(owners(episodes) == episode) & episodes.query, 0]
        assert sorted(shown) == np.flatnonzero(wanted[episode].repeat(2)).tolist()
        assert (np.diff(episodes.query[owners(episodes) == episode].astype(int)) >= 0).all()


def test_too_few_candidates_are_widened_and_never_empty() -> None:
    """Four meanings in the support, and three distractors: the authors' program raises here (s2b-facts 12c)."""
    settings = GameSettings(least=2, most=2, distractors=3)
    episodes = deal(settings, np.arange(200))
    support = ~episodes.query
    assert (episodes.speaker_numbers[:, 1:] != episodes.speaker_numbers[:, :1]).all()
    alike = np.array([len(set(row)) < 4 for row in episodes.listener_numbers[support].tolist()])
    kept = episodes.answer[support] < 4
    assert alike[kept].mean() == alike[~kept].mean() == 1  # two alike tell nothing
    assert (episodes.listener_numbers[support][~kept] != episodes.speaker_numbers[support, :1][~kept]).all()


def test_a_game_that_always_shows_the_target_needs_no_other() -> None:
    """So that all others may be distractors, each once."""
    episodes = deal(GameSettings(descriptive=False, distractors=3, least=2, most=2), np.arange(50))
    assert all(len(set(row)) == 4 for row in episodes.listener_numbers[~episodes.query].tolist())
    settings = GameSettings(kind="common", dimensions=2, least=2, most=2, split="query", ratio=1.0, games=5)
    episodes = deal(settings, np.arange(20))
    assert (episodes.speaker_numbers == 3).all()
    assert (episodes.listener_numbers == 3).all()


def test_streams_of_an_episode_do_not_hang_on_the_others() -> None:
    settings = GameSettings(samples=3, distractors=2)
    together = deal(settings, np.array([4, 8, 15]), np.array([0, 2, 1]))
    alone = deal(settings, np.array([8]), np.array([2]))
    part = together.take(np.array([1]))
    for name in vars(alone):
        assert np.array_equal(getattr(part, name), getattr(alone, name)), name
    joined = Episodes.join([together.take(np.array([0])), alone])
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
    episodes = deal(GameSettings.of(compat="near32", shots=shots, samples=samples), np.arange(count))
    owner, meanings = owners(episodes), episodes.speaker_numbers[:, 0] // samples
    spaces = Spaces(episodes.sizes, 5)
    there = (spaces.valid & query_meanings(spaces)).sum(1)
    pairs = np.unique(np.stack([owner, meanings], 1)[episodes.query], axis=0)
    shown = np.bincount(pairs[:, 0], minlength=count) / there
    found = (
        np.bincount(owner[~episodes.query], minlength=count),
        np.bincount(owner[episodes.query], minlength=count),
        shown,
        shown == 1,
    )
    for ours, theirs in zip(found, PUBLISHED[shots, samples], strict=True):
        error = np.std(ours) * np.sqrt(1 / 120 + 1 / count)
        assert np.mean(ours) == pytest.approx(theirs, abs=2.5 * error + 0.005)


def test_compat_brings_back_what_the_published_numbers_depend_on() -> None:
    """s2b-facts 12 a and b: the speaker's own sample in 26 % of games, duplicates in 7 % of those with K = 3."""
    episodes = deal(GameSettings.of(compat="near32", samples=4), np.arange(400))
    kept = episodes.answer == 0
    assert (episodes.speaker_numbers[:, 0] == episodes.listener_numbers[:, 0])[kept].mean() == pytest.approx(
        0.26, abs=0.03
    )
    episodes = deal(GameSettings.of(compat="near32", distractors=3), np.arange(400))
    twice = np.array([len(set(row)) < 4 for row in episodes.speaker_numbers.tolist()])
    assert twice.mean() == pytest.approx(0.07, abs=0.012)
    assert (episodes.answer < 4).mean() == pytest.approx(0.2, abs=0.02)
