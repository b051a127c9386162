"""Streams of an episode: uniform, independent, and depending on its seed alone."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from icy.s2b.episode_streams import EpisodeStreams
from icy.s2b.targets import Sections, Spaces

SEEDS = np.arange(300)


def make(samples: int = 1, truncate: str = "resample", least: int = 2, most: int = 5) -> Sections:
    streams = EpisodeStreams.of_seeds(SEEDS)
    return Sections.draw(streams, Spaces.draw(streams, 3, least, most), samples, truncate)


def test_draws_are_uniform_and_independent() -> None:
    streams = EpisodeStreams.of_seeds(np.arange(500))
    one, other = streams.uniform("one", (40,)), streams.uniform("other", (40,))
    for found in (one, other, streams.within("a", 1).uniform("one", (40,))):
        assert kstest(found.ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(one[:, 0], one[:, 1])[0, 1]) < 0.15
    assert (streams.uniform("one", (5,), first=3) == one[:, 3:8]).all()
    assert set(streams.integers("whole", 3, (40,)).ravel().tolist()) == {0, 1, 2}
    assert (np.sort(streams.order("order", 6), 1) == np.arange(6)).all()


def test_an_episode_is_the_same_alone_and_in_company() -> None:
    together, alone = make(4), EpisodeStreams.of_seeds(SEEDS[7:8])
    single = Sections.draw(alone, Spaces.draw(alone, 3, 2, 5), 4)
    assert (single.spaces.sizes[0] == together.spaces.sizes[7]).all()
    assert (single.samples[0] == together.samples[7]).all()
    assert (EpisodeStreams.of_seeds(SEEDS).rows(SEEDS == 7).keys == alone.keys).all()
