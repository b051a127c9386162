"""The channel: sentences, their numbers, and renamings of tokens."""

from __future__ import annotations

import numpy as np

from icy.s2b.channel import inverses, permutations, regular, sentence_count, sentences
from icy.s2b.episode_streams import EpisodeStreams


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
