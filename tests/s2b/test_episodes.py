"""Episodes: what is dealt, and what the compat settings bring back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from icy.core.errors import IcyError
from icy.s2b import GameSettings
from icy.s2b.episodes import Episodes, deal
from icy.s2b.targets import Spaces, query_meanings
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
    settings = GameSettings(samples=4, shots=2, query_of="speaker")
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
    speakers = deal(replace(settings, query_of="speaker"), np.arange(50))
    spaces = Spaces(episodes.sizes, settings.most)
    wanted = spaces.valid & query_meanings(spaces)
    for episode in range(50):
        query = (owners(episodes) == episode) & episodes.query
        for shown in (episodes.listener_numbers[query, 0], speakers.speaker_numbers[query, 0]):
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
    assert differences(together.take(np.array([1])), alone) == []
    joined = Episodes.join([together.take(np.array([0])), alone])
    assert np.array_equal(joined.listener, together.take(np.array([0, 1])).listener)


def differences(some: Episodes, others: Episodes) -> list[str]:
    """The attributes in which episodes differ."""
    return [name for name in vars(others) if not np.array_equal(getattr(some, name), getattr(others, name))]


@st.composite
def games(draw: st.DrawFn) -> GameSettings:
    """Settings of all kinds of games, of the papers and of the authors' program."""
    chosen: dict[str, Any] = {
        "compat": draw(st.sampled_from([None, "near32"])),
        "distractors": draw(st.integers(0, 4)),
        "samples": draw(st.sampled_from([1, 2, 4])),
        "shots": draw(st.integers(1, 2)),
        "most": draw(st.integers(2, 3)),
        "descriptive": draw(st.booleans()),
        "view": draw(st.sampled_from(["full", "partial"])),
        "query_order": draw(st.sampled_from(["random", "index"])),
        "query_of": draw(st.sampled_from(["listener", "speaker"])),
        "distinct": draw(st.booleans()),
    }
    if draw(st.booleans()):
        chosen |= {
            "kind": "common",
            "games": draw(st.integers(1, 6)),
            "split": draw(st.sampled_from(["support", "query", "all"])),
        }
    try:
        return GameSettings.of(**chosen)
    except IcyError:
        reject()


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(games(), st.lists(st.integers(0, 2**40), min_size=12, max_size=16, unique=True), st.data())
def test_an_episode_is_the_same_alone_and_in_any_batch(
    game: GameSettings, seeds: list[int], data: st.DataObject
) -> None:
    which = np.array(data.draw(st.lists(st.integers(0, len(seeds) - 1), min_size=1, max_size=3, unique=True)))
    together = deal(game, np.array(seeds), np.arange(len(seeds)))
    assert differences(together.take(which), deal(game, np.array(seeds)[which], which)) == []


@pytest.mark.parametrize("compat", [None, "near32"])
@pytest.mark.parametrize("samples", [1, 4])
def test_an_episode_short_of_candidates_changes_no_other(compat: str | None, samples: int) -> None:
    """The support of seed 46 has three games at O = 1, too few for three distractors; that of seed 47 has enough."""
    settings = GameSettings.of(compat=compat, distractors=3, samples=samples)
    together = deal(settings, np.arange(40, 60))
    for place in (6, 7, 8):
        alone = deal(settings, np.array([40 + place]))
        assert differences(together.take(np.array([place])), alone) == []


# -- compat ------------------------------------------------------------------------------------------------------------

PUBLISHED = {  # shots, samples: games of support and query, share of query meanings shown, episodes that show all
    (1, 1): (11.4, 14.6, 0.67, 0.12),
    (2, 1): (19.1, 16.1, 0.95, 0.88),
    (4, 1): (36.9, 17.5, 1.00, 1.00),
    (1, 4): (10.1, 13.2, 0.70, 0.12),
    (2, 4): (18.9, 26.8, 0.87, 0.39),
    (4, 4): (39.1, 47.2, 0.95, 0.64),
}


@pytest.mark.slow
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
    """s2b-facts 12 a and b: the speaker's own sample in 26 % of games, a distractor of the target's meaning in 7 %."""
    episodes = deal(GameSettings.of(compat="near32", samples=4), np.arange(400))
    kept = episodes.answer == 0
    assert (episodes.speaker_numbers[:, 0] == episodes.listener_numbers[:, 0])[kept].mean() == pytest.approx(
        0.26, abs=0.03
    )
    episodes = deal(GameSettings.of(compat="near32", distractors=3), np.arange(400))
    twice = (episodes.speaker_numbers[:, 1:] == episodes.speaker_numbers[:, :1]).any(axis=1)
    assert twice.mean() == pytest.approx(0.07, abs=0.012)
    assert (episodes.answer < 4).mean() == pytest.approx(0.2, abs=0.02)


def near32(samples: int = 4, count: int = 600) -> tuple[Episodes, NDArray[np.int64]]:
    """Episodes of the authors' program with three distractors, and the episode of every game."""
    episodes = deal(GameSettings.of(compat="near32", distractors=3, samples=samples), np.arange(count))
    return episodes, owners(episodes)


def error(share: float, of: int) -> float:
    """The standard error of a share."""
    return float(np.sqrt(share * (1 - share) / of))


def test_distractors_of_the_authors_are_shown_in_samples_drawn_anew() -> None:
    """Of 393 distractors in recorded episodes of theirs, K = 3 and O = 4, 120 coincide with a target's stimulus.

    Ours may be off by 2.5 standard errors of theirs. The sample is uniform whatever sample was scheduled: the share
    that coincides is, within 4 standard errors, the share of its meaning's samples that are targets.
    """
    episodes, owner = near32()
    targets = np.unique(owner * 500 + episodes.speaker_numbers[:, 0])
    shown = owner[:, None] * 500 + episodes.speaker_numbers[:, 1:]
    found = np.isin(shown, targets)
    assert found.mean() == pytest.approx(120 / 393, abs=2.5 * error(120 / 393, 393))
    among = np.stack([np.isin(shown - shown % 4 + k, targets) for k in range(4)]).mean(0)
    spread = np.sqrt((among * (1 - among)).sum())
    assert found.sum() == pytest.approx(among.sum(), abs=4 * spread)
    counts = np.bincount((shown % 4).ravel(), minlength=4) / shown.size
    assert counts == pytest.approx(1 / 4, abs=4 * error(1 / 4, shown.size))


@pytest.mark.parametrize("samples", [1, 4])
def test_the_stand_in_of_the_authors_is_drawn_apart_from_the_distractors(samples: int) -> None:
    """In recorded episodes of theirs, K = 3 and O = 4, it shares a distractor's meaning in 22 of 106 games.

    Ours may be off by 2.5 standard errors of theirs.
    """
    episodes, _ = near32(samples)
    absent = episodes.answer == 4
    beside = np.sort(episodes.speaker_numbers[absent, 1:], axis=1)
    seen = np.sort(episodes.listener_numbers[absent], axis=1)
    place = (seen[:, :3] == beside).cumprod(axis=1).sum(axis=1)  # the first that is not a distractor
    stand_in = np.take_along_axis(seen, place[:, None], axis=1)
    shares = (stand_in // samples == beside // samples).any(axis=1)
    assert (stand_in[:, 0] // samples != episodes.speaker_numbers[absent, 0] // samples).all()
    assert shares.mean() == pytest.approx(22 / 106, abs=2.5 * error(22 / 106, 106))


def test_a_query_of_few_stimuli_shows_theirs_in_samples_drawn_anew() -> None:
    """s2b-facts 12a: the sample is drawn when a stimulus is fetched, so each meaning comes O times in any samples."""
    episodes = deal(GameSettings.of(compat="near32", samples=2, most=2, shots=4), np.arange(200))
    query = episodes.speaker_numbers[episodes.query, 0]
    assert np.bincount(query // 2, minlength=8).tolist() == [0, 0, 0, 400, 0, 400, 400, 400]
    assert np.bincount(query % 2) / len(query) == pytest.approx(1 / 2, abs=4 * error(1 / 2, len(query)))
    assert (query.reshape(-1, 2) % 2 == [0, 1]).all(1).mean() == pytest.approx(1 / 4, abs=4 * error(1 / 4, 800))
