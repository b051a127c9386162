"""Settings of a game, and those that do not go together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import icy.s2b
from icy.core.errors import IcyError
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.channel import inverses, permutations, regular, sentence_count, sentences
from icy.s2b.episode_streams import EpisodeStreams
from icy.s2b.settings import NEAR32


def test_compat_is_a_set_of_named_departures() -> None:
    ours, theirs = GameSettings(), GameSettings.of(compat="near32")
    changed = {name for name in vars(ours) if getattr(ours, name) != getattr(theirs, name)}
    assert changed == {name for departure in NEAR32.values() for name in departure.settings}
    assert GameSettings.of(compat="near32", query="all").query == "all"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dimensions": 1}, "threshold=2 is above the number of dimensions, 1"),
        ({"distractors": 4}, "4 stimuli are needed in addition to the target"),
        ({"least": 4, "most": 3}, "least=4, must not be above the largest, most=3"),
        ({"query": "tss", "dimensions": 2, "samples": 4}, "the query has no plain values"),
        ({"ratio": 1.5}, "must be from 0 to 1"),
        ({"descriptive": 2}, "True or False"),
        ({"descriptive": False}, "only one answer"),
        ({"threshold": 1}, "cannot show every value"),
        ({"games": 5}, "settings of common games"),
        ({"kind": "common", "dimensions": 1, "least": 2, "most": 2, "split": "all", "distractors": 1}, "2 stimuli are"),
        ({"shots": 0}, "shots"),
        ({"shots": 10**9}, "shots must be at most 1,000"),
        ({"most": 200, "dimensions": 3}, "more than 1,000,000 meanings"),
        ({"samples": 2, "representation": "ohe"}, "One-hot stimuli"),
        ({"view": "ful"}, "did you mean full"),
        ({"compat": "near"}, "did you mean near32"),
    ],
)
def test_impossible_settings_are_errors_in_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(IcyError, match=said):
        BatchedGame(**given)


# -- the channel: sentences, their numbers, and renamings of tokens ----------------------------------------------------


def test_sentences_and_their_numbers() -> None:
    """s2b-facts 5 and 6.2: 259, 1555 and 85 sentences; the first token runs fastest."""
    assert [sentence_count(6, 3), sentence_count(6, 4), sentence_count(4, 3)] == [259, 1555, 85]
    every = sentences(6, 3)
    assert len({tuple(s) for s in every.tolist()}) == 259
    assert np.array_equal(regular(every), every)
    keys = [(np.count_nonzero(s), *s[::-1]) for s in every.tolist()]
    assert keys == sorted(keys)
    assert regular(np.array([[3, 0, 5, 1], [0, 2, 2, 2], [1, 2, 3, 4]])).tolist() == [
        [3, 0, 0, 0],
        [0, 0, 0, 0],
        [1, 2, 3, 4],
    ]


def test_renamings_are_permutations_that_leave_the_end() -> None:
    found = permutations(EpisodeStreams.of_seeds(np.arange(200)), 5)
    assert (found[:, 0] == 0).all()
    assert (np.sort(found, axis=1) == np.arange(6)).all()
    assert (np.take_along_axis(found, inverses(found), 1) == np.arange(6)).all()
    assert len({tuple(row) for row in found.tolist()}) > 70


# -- the public names of icy.s2b ---------------------------------------------------------------------------------------


def test_icy_s2b_offers_what_it_says() -> None:
    assert {getattr(icy.s2b, name) is not None for name in icy.s2b.__all__} == {True}
    assert set(icy.s2b.__all__) <= set(dir(icy.s2b))
    with pytest.raises(AttributeError):
        _ = icy.s2b.evaluat
