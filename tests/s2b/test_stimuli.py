"""Stimuli of S2B: spaces, sections and samples, and draws that depend on an episode's seed alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from icy.core.errors import IcyError
from icy.s2b import GameSettings
from icy.s2b.episode_streams import EpisodeStreams
from icy.s2b.episodes import shown
from icy.s2b.targets import Sections, Spaces, one_hot

SEEDS = np.arange(300)


def make(samples: int = 1, truncate: str = "resample", least: int = 2, most: int = 5) -> Sections:
    streams = EpisodeStreams.of_seeds(SEEDS)
    return Sections.draw(streams, Spaces.draw(streams, 3, least, most), samples, truncate)


def test_numbers_of_values_are_uniform() -> None:
    sizes = Spaces.draw(EpisodeStreams.of_seeds(np.arange(4000)), 3, 2, 5).sizes
    assert np.bincount(sizes.ravel())[2:] == pytest.approx(3000, rel=0.08)


def test_meanings_in_the_episodes_own_order() -> None:
    spaces = Spaces(np.array([[2, 3], [3, 3]]), 3)
    assert spaces.valid.sum(1).tolist() == [6, 9]
    assert spaces.meanings[spaces.valid[0]].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert (spaces.largest.index(spaces.meanings) == np.arange(9)).all()


def test_sections_tile_and_densities_keep_within_them() -> None:
    """s2b-facts 1.2 and 1.4."""
    sections = make()
    sizes = sections.spaces.sizes[:, :, None]
    there = np.arange(5) < sizes
    left, width = -1 + np.arange(5) * 2 / sizes, np.broadcast_to(2 / sizes, there.shape)
    deviations, means = sections.deviations, sections.means
    assert (deviations >= width / 12)[there].all()
    assert (deviations <= width / 6)[there].all()
    assert (means - 3 * deviations >= left - 1e-12)[there].all()
    assert (means + 3 * deviations <= left + width + 1e-12)[there].all()


@pytest.mark.parametrize(("truncate", "most"), [("resample", 0), ("clip", 0), ("none", 0.001)])
def test_samples_lie_in_their_sections(truncate: str, most: float) -> None:
    sections = make(16, truncate)
    sizes, samples = sections.spaces.sizes[:, :, None, None], sections.samples.astype(np.float32)
    there = np.broadcast_to(np.arange(5)[:, None] < sizes, samples.shape)
    read = np.clip(np.floor((samples + 1) / 2 * sizes), 0, sizes - 1)
    wrong = (read != np.arange(5)[:, None])[there]
    assert wrong.mean() <= most
    assert (wrong.mean() > 0) == (most > 0)
    if not most:
        assert np.abs(samples[there]).max() <= 1


def test_samples_are_normal_about_their_means() -> None:
    sections = make(50, "none")
    there = np.arange(5) < sections.spaces.sizes[:, :, None]
    scores = (sections.samples - sections.means[..., None]) / sections.deviations[..., None]
    assert kstest(scores[there].ravel()[:20_000], "norm").pvalue > 1e-3


def test_shapes_and_repeats() -> None:
    """A stimulus has a number per dimension whatever the space; sample o is sample o in every dimension."""
    sections = make(4)
    show = shown(GameSettings(samples=4), EpisodeStreams.of_seeds(SEEDS), sections.spaces)
    meaning = int(sections.spaces.largest.index([1, 0, 1]))
    stimuli = show(np.array([3, 7]), np.array([[4 * meaning + 2]] * 2))
    assert stimuli.shape == (2, 1, 3)
    assert stimuli.dtype == np.float32
    expected = [sections.samples[3, 0, 1, 2], sections.samples[3, 1, 0, 2], sections.samples[3, 2, 1, 2]]
    assert stimuli[0, 0] == pytest.approx(expected)
    blocks = one_hot(sections.spaces)
    assert blocks.shape == (125, 15)
    assert np.flatnonzero(blocks[meaning]).tolist() == [1, 5, 11]


def test_mistakes_are_answered_in_a_sentence() -> None:
    streams = EpisodeStreams.of_seeds([1])
    with pytest.raises(IcyError, match="least=5, must not be above the largest, most=2"):
        Spaces.draw(streams, 3, 5, 2)
    with pytest.raises(IcyError, match="number of dimensions"):
        Spaces.draw(streams, 0, 2, 5)
    with pytest.raises(IcyError, match="did you mean clip"):
        Sections.draw(streams, Spaces.draw(streams, 3, 2, 5), 1, "clipp")
    with pytest.raises(IcyError, match="number of samples"):
        Sections.draw(streams, Spaces.draw(streams, 3, 2, 5), 0)
