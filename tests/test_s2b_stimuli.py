"""Stimuli of S2B: spaces, sections and samples, and draws that depend on an episode's seed alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from icy import metrics
from icy.core.errors import IcyError
from icy.s2b.stimuli import Sections, Spaces, meaning_numbers, nearest_values, one_hot
from icy.s2b.streams import Draws

SEEDS = np.arange(300)


def make(samples: int = 1, truncate: str = "resample", least: int = 2, most: int = 5) -> Sections:
    draws = Draws.of_seeds(SEEDS)
    return Sections.draw(draws, Spaces.draw(draws, 3, least, most), samples, truncate)


def test_draws_are_uniform_and_independent() -> None:
    draws = Draws.of_seeds(np.arange(500))
    one, other = draws.uniform("one", (40,)), draws.uniform("other", (40,))
    for found in (one, other, draws.within("a", 1).uniform("one", (40,))):
        assert kstest(found.ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(one[:, 0], one[:, 1])[0, 1]) < 0.15
    assert (draws.uniform("one", (5,), first=3) == one[:, 3:8]).all()
    assert set(draws.integers("whole", 3, (40,)).ravel().tolist()) == {0, 1, 2}
    assert (np.sort(draws.order("order", 6), 1) == np.arange(6)).all()


def test_an_episode_is_the_same_alone_and_in_company() -> None:
    together, alone = make(4), Draws.of_seeds(SEEDS[7:8])
    single = Sections.draw(alone, Spaces.draw(alone, 3, 2, 5), 4)
    assert (single.spaces.sizes[0] == together.spaces.sizes[7]).all()
    assert (single.samples[0] == together.samples[7]).all()
    assert (Draws.of_seeds(SEEDS).rows(SEEDS == 7).keys == alone.keys).all()


def test_numbers_of_values_are_uniform() -> None:
    sizes = Spaces.draw(Draws.of_seeds(np.arange(4000)), 3, 2, 5).sizes
    assert np.bincount(sizes.ravel())[2:] == pytest.approx(3000, rel=0.08)


def test_meanings_in_the_episodes_own_order() -> None:
    spaces = Spaces(np.array([[2, 3], [3, 3]]), 3)
    assert spaces.valid.sum(1).tolist() == [6, 9]
    assert spaces.meanings[spaces.valid[0]].tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert (meaning_numbers(spaces.meanings, 3) == np.arange(9)).all()


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
    assert sections.latents()[there] == pytest.approx((left + width / 2)[there])


@pytest.mark.parametrize(("truncate", "most"), [("resample", 0), ("clip", 0), ("none", 0.003)])
def test_samples_lie_in_their_sections(truncate: str, most: float) -> None:
    sections = make(16, truncate)
    table, spaces = sections.table, sections.spaces
    read = nearest_values(table, spaces.sizes[:, None, None])
    wrong = (read != spaces.meanings[:, None]).any(-1)[spaces.valid]
    assert wrong.mean() <= 3 * most
    assert (wrong.mean() > 0) == (most > 0)
    if not most:
        assert np.abs(table[spaces.valid]).max() <= 1


def test_samples_are_normal_about_their_means() -> None:
    sections = make(50, "none")
    there = np.arange(5) < sections.spaces.sizes[:, :, None]
    scores = (sections.samples - sections.means[..., None]) / sections.deviations[..., None]
    assert kstest(scores[there].ravel()[:20_000], "norm").pvalue > 1e-3


def test_shapes_and_repeats() -> None:
    """A stimulus has a number per dimension whatever the space; sample o is sample o in every dimension."""
    sections = make(4)
    assert sections.table.shape == (300, 125, 4, 3)
    assert sections.table.dtype == np.float32
    meaning = int(meaning_numbers(np.array([1, 0, 1]), 5))
    expected = [sections.samples[3, 0, 1, 2], sections.samples[3, 1, 0, 2], sections.samples[3, 2, 1, 2]]
    assert sections.table[3, meaning, 2] == pytest.approx(expected)
    blocks = one_hot(sections.spaces)
    assert blocks.shape == (125, 15)
    assert np.flatnonzero(blocks[meaning]).tolist() == [1, 5, 11]


def test_disentanglement_of_the_stimuli() -> None:
    """s2b-facts 1.4: at d = 5 and O = 5, 512 drawn stimuli; and all of them."""
    sections = make(5, least=5)
    codes = sections.table[0].reshape(-1, 3).astype(float)
    factors = sections.spaces.meanings.repeat(5, axis=0)
    some = np.random.default_rng(0).choice(len(codes), 512, replace=False)
    assert metrics.mig(factors, codes).value >= 0.93
    assert metrics.mig(factors[some], codes[some]).value >= 0.93
    assert metrics.modularity(factors[some], codes[some]).value >= 0.97
    assert metrics.factor_vae(factors[some], codes[some], training_votes=1000, test_votes=1000).value == 1


def test_mistakes_are_answered_in_a_sentence() -> None:
    draws = Draws.of_seeds([1])
    with pytest.raises(IcyError, match="from 5 to 2, which leaves none"):
        Spaces.draw(draws, 3, 5, 2)
    with pytest.raises(IcyError, match="number of dimensions"):
        Spaces.draw(draws, 0, 2, 5)
    with pytest.raises(IcyError, match="did you mean clip"):
        Sections.draw(draws, Spaces.draw(draws, 3, 2, 5), 1, "clipp")
    with pytest.raises(IcyError, match="number of samples"):
        Sections.draw(draws, Spaces.draw(draws, 3, 2, 5), 0)
