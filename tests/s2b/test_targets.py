"""What an episode of S2B plays: the split into support and query, and the targets of every shot."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from icy.core.errors import IcyError
from icy.s2b import BatchedGame, GameSettings
from icy.s2b.episode_streams import EpisodeStreams
from icy.s2b.episodes import shown
from icy.s2b.targets import NOTHING, Sections, Spaces, _Drawing, every_meaning, one_hot, query_meanings, shots

# -- streams of an episode: uniform, independent, and depending on its seed alone --------------------------------------


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


# -- stimuli of S2B ----------------------------------------------------------------------------------------------------


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


def fixed(*sizes: int) -> Spaces:
    return Spaces(np.array([sizes]), max(sizes))


@pytest.mark.parametrize(
    ("sizes", "support", "query"), [((2, 2, 2), 4, 4), ((3, 3, 3), 20, 7), ((4, 4, 4), 32, 32), ((5, 5, 5), 81, 44)]
)
def test_sizes_of_the_split(sizes: tuple[int, ...], support: int, query: int) -> None:
    """s2b-facts 2"""
    spaces = fixed(*sizes)
    kept = query_meanings(spaces)
    assert ((spaces.valid & ~kept).sum(), (spaces.valid & kept).sum()) == (support, query)


def test_every_value_occurs_in_the_support() -> None:
    spaces = Spaces.draw(EpisodeStreams.of_seeds(np.arange(200)), 3, 2, 5)
    support = spaces.valid & ~query_meanings(spaces)
    for i in range(3):
        for value in range(5):
            shown = (support & (spaces.meanings[:, i] == value)).any(1)
            assert (shown == (value < spaces.sizes[:, i])).all()
    assert support.sum(1).mean() == pytest.approx(27, abs=3)


@pytest.mark.parametrize(("asked", "samples", "published"), [(1, 1, 11.4), (2, 1, 19.1), (4, 1, 36.9), (2, 4, 18.9)])
def test_targets_of_the_support(asked: int, samples: int, published: float) -> None:
    """Every value as often as asked for; and the counts of 120 episodes of the authors' program (s2b-facts 3)."""
    streams = EpisodeStreams.of_seeds(np.arange(400))
    spaces = Spaces.draw(streams, 3, 2, 5)
    support = spaces.valid & ~query_meanings(spaces)
    targets = shots(streams.within("support"), spaces, support, asked, samples)
    counts = targets.counts
    assert counts.mean() == pytest.approx(published, abs=4 * counts.std() / np.sqrt(120))
    for b in range(40):
        played = targets.meanings[b, : counts[b]]
        assert support[b, played].all()
        assert (targets.meanings[b, counts[b] :] == NOTHING).all()
        for i in range(3):
            times = np.bincount(spaces.meanings[played, i], minlength=spaces.sizes[b, i])
            assert times.min() >= asked
            assert len(times) == spaces.sizes[b, i]
    assert targets.samples.min() >= 0
    assert set(targets.samples.ravel().tolist()) == set(range(samples))


@pytest.mark.parametrize(("asked", "samples", "repeats"), [(3, 2, False), (3, 1, True), (4, 2, True), (2, 2, False)])
def test_stimuli_are_repeated_from_the_start_only_where_shots_are_more(asked: int, samples: int, repeats: bool) -> None:
    """Of 3x3 meanings, 9 stimuli a sample; 6 values are shown as often as asked for."""
    spaces = fixed(3, 3)
    drawing = _Drawing(EpisodeStreams.of_seeds(np.arange(1)), spaces, spaces.valid, asked, samples)
    assert drawing.repeats.tolist() == [repeats]


def test_targets_of_an_episode_alone_and_in_company() -> None:
    streams = EpisodeStreams.of_seeds(np.arange(50))
    spaces = Spaces.draw(streams, 3, 2, 5)
    together = shots(streams, spaces, spaces.valid & ~query_meanings(spaces), 2, 4)
    one = streams.rows(np.arange(50) == 9)
    own = Spaces(spaces.sizes[9:10], 5)
    alone = shots(one, own, own.valid & ~query_meanings(own), 2, 4)
    count = int(alone.counts[0])
    assert count == together.counts[9]
    assert (alone.meanings[0, :count] == together.meanings[9, :count]).all()
    assert (alone.samples[0, :count] == together.samples[9, :count]).all()


def test_every_meaning_once() -> None:
    spaces = Spaces(np.array([[2, 2, 2], [3, 3, 3]]), 3)
    query = spaces.valid & query_meanings(spaces)
    targets = every_meaning(query, 2)
    assert targets.counts.tolist() == [8, 14]
    assert targets.samples[0, :8].tolist() == [0, 1] * 4
    assert (np.diff(targets.meanings[1]) >= 0).all()
    shuffled = every_meaning(query, 2, EpisodeStreams.of_seeds([1, 2]))
    for b, count in enumerate((8, 14)):
        pairs = [
            set(zip(t.meanings[b, :count].tolist(), t.samples[b, :count].tolist(), strict=True))
            for t in (targets, shuffled)
        ]
        assert pairs[0] == pairs[1]
    assert (shuffled.meanings[1] != targets.meanings[1]).any()


def test_unreachable_values_are_refused() -> None:
    """With two dimensions the query has no plain value, on which the authors' program never returns (s2b-facts 12d)."""
    streams, spaces = EpisodeStreams.of_seeds([1]), fixed(4, 4)
    query = spaces.valid & query_meanings(spaces)
    with pytest.raises(IcyError, match="No eligible meaning has value 0 in dimension 0"):
        shots(streams, spaces, query, 1, 4)


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_shots_that_cannot_be_met_end_in_an_error_and_not_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icy.s2b.targets.MOST_ROUNDS", 50)
    with pytest.raises(IcyError, match="No targets with 40 shots of every value were found in 50 draws"):
        BatchedGame(shots=40).reset(seed=1)
