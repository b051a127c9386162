"""Batches: paired across grammars, independent of the packing, and held-out meanings kept apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from icy.core.errors import InvalidSettingError
from icy.core.streams import stream_key
from icy.grammars import make_language
from icy.languages.frequencies import Frequencies
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import SPLITS, Split
from icy.training.batches import EQUALLY, PURPOSES, Batches, MeaningPool, draw_meanings
from tests.cores import needs_native
from tests.training.helpers import CPU, SMALL, SPACE

# -- initial weights and draws -----------------------------------------------------------------------------------------


def draws(grammars: Sequence[str], seeds: Sequence[int]) -> Batches:
    return Batches([make_language(g, SPACE, 4, 2, s) for g, s in zip(grammars, seeds, strict=True)], list(seeds), CPU)


def test_grammars_of_a_seed_see_the_same_meanings_and_their_own_messages() -> None:
    grammars, seeds = ["concat", "rot", "rot"], [7, 7, 8]
    meanings, messages = draws(grammars, seeds).batches("training", 0, 4, 16)
    assert meanings.shape == (4, 3, 16, 3)
    assert messages.shape == (4, 3, 16, 6)
    assert torch.equal(meanings[:, 0], meanings[:, 1])
    assert not torch.equal(meanings[:, 1], meanings[:, 2])
    for i, (grammar, seed) in enumerate(zip(grammars, seeds, strict=True)):
        language = make_language(grammar, SPACE, 4, 2, seed)
        expected = language.messages[SPACE.index(meanings[:, i].numpy())]
        np.testing.assert_array_equal(messages[:, i].numpy(), expected)


def test_draws_do_not_depend_on_the_packing_or_on_the_cutting() -> None:
    alone, packed = draws(["rot"], [7]), draws(["concat", "rot", "rot"], [9, 8, 7])
    for a, b in zip(alone.batches("check", 3, 2, 8), packed.batches("check", 3, 2, 8), strict=True):
        assert torch.equal(a[:, 0], b[:, 2])
    whole, _ = alone.batches("training", 0, 5, 8)
    later, _ = alone.batches("training", 3, 2, 8)
    assert torch.equal(whole[3:], later)
    packed.keep([2, 0])
    assert torch.equal(packed.batches("training", 0, 5, 8)[0][:, 0], whole[:, 0])
    assert not torch.equal(packed.batches("training", 0, 5, 8)[0][:, 1], whole[:, 0])


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_native), False])
def test_a_batch_begins_where_the_one_before_it_ends(native: bool) -> None:
    of = draws(["rot", "perm"], [7, 8])
    of._native = native
    in_one = [drawn.transpose(0, 1).flatten(1, 2) for drawn in of.batches("training", 0, 1, 40)]
    in_five = [drawn.transpose(0, 1).flatten(1, 2) for drawn in of.batches("training", 0, 5, 8)]
    last_two = [drawn.transpose(0, 1).flatten(1, 2) for drawn in of.batches("training", 3, 2, 8)]
    for whole, cut, later in zip(in_one, in_five, last_two, strict=True):
        assert torch.equal(whole, cut)
        assert torch.equal(whole[:, 24:], later)


@needs_native
def test_native_draws_equal_pytorchs() -> None:
    """On a GPU, and where nothing is compiled, the same numbers train."""
    of = draws(["concat", "rot", "rot"], [9, 7, 8])
    for purpose in PURPOSES[:-1]:
        found = {}
        for of._native in (True, False):
            found[of._native] = of.batches(purpose, 3, 2, 8)
        for native, plain in zip(*found.values(), strict=True):
            assert torch.equal(native, plain)


def test_noise_is_of_the_seed_and_of_the_update() -> None:
    of = draws(["concat", "rot", "rot"], [7, 7, 8])
    noise = of.noise(0, 4)
    assert torch.equal(noise[:, 0], noise[:, 1])
    assert len(noise[:, 1:].unique()) == 8
    assert torch.equal(of.noise(2, 2), noise[2:])
    assert torch.equal(draws(["rot"], [8]).noise(0, 4), noise[:, 2:])
    of.keep([2])
    assert torch.equal(of.noise(0, 4), noise[:, 2:])


def test_purposes_have_streams_of_their_own() -> None:
    of = draws(["rot"], [7])
    drawn = [of.batches(purpose, 0, 1, 32)[0] for purpose in ("training", "check", "report")]
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[1], drawn[2])


@pytest.mark.parametrize("values", [3, 4, 10])
def test_meanings_are_uniform_and_independent(values: int) -> None:
    space, count = MeaningSpace(2, values), 40_000
    drawn = draw_meanings(space, torch.tensor([stream_key(1, "x"), stream_key(2, "x")]), 5, 2, count // 2)
    assert drawn.shape == (2, 2, count // 2, 2)
    for meanings in drawn.flatten(1, 2):
        cells = torch.bincount(meanings[:, 0] * values + meanings[:, 1], minlength=values**2).double()
        expected = count / values**2
        degrees = values**2 - 1
        chi_square = ((cells - expected) ** 2 / expected).sum().item()
        assert abs(chi_square - degrees) < 5 * math.sqrt(2 * degrees)
    agreement = (drawn[0] == drawn[1]).double().mean().item()
    assert agreement == pytest.approx(1 / values, abs=0.02)
    assert (drawn[0, 0, 1:] == drawn[0, 0, :-1]).double().mean().item() == pytest.approx(1 / values, abs=0.02)


@needs_native
def test_native_draws_of_attributes_of_several_sizes_equal_pytorchs() -> None:
    space = MeaningSpace.parse("10,4,2")
    languages = [make_language("concat", space, 4, 2, seed) for seed in (7, 8)]
    of = Batches(languages, [7, 8], CPU)
    found = {}
    for of._native in (True, False):
        found[of._native] = of.batches("training", 3, 50, 16)
    for native, plain in zip(*found.values(), strict=True):
        assert torch.equal(native, plain)
    meanings, messages = found[True]
    assert meanings.amax((0, 1, 2)).tolist() == [9, 3, 1]
    expected = languages[1].messages[space.index(meanings[:, 1].numpy())]
    np.testing.assert_array_equal(messages[:, 1].numpy(), expected)


# -- frequencies -------------------------------------------------------------------------------------------------------


def shares(of: Batches, purpose: str, place: int = 0) -> np.ndarray:
    meanings, _ = of.batches(purpose, 0, 40, 1000)
    numbers = of.space.index(meanings[:, place].flatten(0, 1).numpy())
    return np.bincount(numbers, minlength=of.space.size) / len(numbers)


def test_meanings_are_drawn_by_their_weights() -> None:
    frequencies, languages = Frequencies("zipf:1"), [make_language("concat", "3,2", 4, 2, seed) for seed in (7, 8)]
    of = Batches(languages, [7, 8], CPU, frequencies=frequencies)
    for place, seed in enumerate((7, 8)):
        _, weights = frequencies.of_seed(of.space, seed)
        for purpose in ("training", "check", "report"):
            np.testing.assert_allclose(shares(of, purpose, place), weights, atol=0.015)
        np.testing.assert_allclose(shares(of, EQUALLY, place), 1 / 6, atol=0.015)
    alone = Batches(languages[1:], [8], CPU, frequencies=frequencies)
    assert torch.equal(alone.batches("training", 3, 2, 8)[0][:, 0], of.batches("training", 3, 2, 8)[0][:, 1])


def test_meanings_that_do_not_exist_are_never_drawn() -> None:
    frequencies = Frequencies("", "some", np.array([1, 4]), np.array([3.0, 1.0]))
    of = Batches([make_language("concat", "3,2", 4, 2, 7)], [7], CPU, frequencies=frequencies)
    np.testing.assert_allclose(shares(of, "training"), [0, 0.75, 0, 0, 0.25, 0], atol=0.015)
    np.testing.assert_allclose(shares(of, EQUALLY), [0, 0.5, 0, 0, 0.5, 0], atol=0.015)


def test_held_out_meanings_keep_their_weights() -> None:
    frequencies, split = Frequencies("zipf:2"), Split("random", 0.4)
    of = Batches([make_language("concat", SMALL, 4, 2, 7)], [7], CPU, split, frequencies)
    _, weights = frequencies.of_seed(SMALL, 7)
    for purpose, part in zip(("training", "report"), split.parts(SMALL, 7), strict=True):
        expected = np.zeros(SMALL.size)
        expected[part] = weights[part] / weights[part].sum()
        np.testing.assert_allclose(shares(of, purpose), expected, atol=0.015)


def test_a_split_without_meanings_that_exist_is_refused() -> None:
    one = Frequencies("", "one", np.array([0]), np.array([1.0]))
    with pytest.raises(InvalidSettingError, match="Of the 1 meanings that exist, 1 stay in training"):
        Batches([make_language("concat", SMALL, 4, 2, 7)], [7], CPU, Split("random", 0.4), one)


# -- held-out meanings -------------------------------------------------------------------------------------------------


def drawn_numbers(draws: Batches, purpose: str, place: int) -> set[int]:
    meanings, _ = draws.batches(purpose, 3, 5, 64)
    return set(SMALL.index(meanings[:, place].flatten(0, 1).numpy()).tolist())


@pytest.mark.parametrize("kind", SPLITS)
def test_held_out_meanings_are_drawn_only_for_the_report(kind: str) -> None:
    seeds, split = [1, 2, 2], Split(kind, 0.4)
    languages = [make_language(g, SMALL, 4, 2, s) for g, s in zip(("rot", "rot", "hol"), seeds, strict=True)]
    of = Batches(languages, seeds, CPU, split)
    for place, (seed, language) in enumerate(zip(seeds, languages, strict=True)):
        held_out = set(split.held_out(SMALL, seed).tolist())
        assert drawn_numbers(of, "report", place) == held_out
        for purpose in ("training", "check", "report on training"):
            assert drawn_numbers(of, purpose, place) == set(range(9)) - held_out
        meanings, messages = of.batches("training", 0, 2, 8)
        expected = language.messages[SMALL.index(meanings[:, place].numpy())]
        np.testing.assert_array_equal(messages[:, place].numpy(), expected)


def test_draws_of_a_pool_do_not_depend_on_other_pools() -> None:
    pools, keys = [np.array([4, 7, 8]), np.array([0, 1, 2, 3, 9])], torch.tensor([stream_key(s, "x") for s in (1, 2)])
    both = MeaningPool(pools, CPU).draw(keys, 2, 3, 1000)
    for i, numbers in enumerate(pools):
        alone = MeaningPool([numbers], CPU).draw(keys[i : i + 1], 2, 3, 1000)
        assert torch.equal(alone[0], both[i])
        counts = torch.bincount(both[i].flatten(), minlength=10)[numbers].double()
        expected = 3000 / len(numbers)
        assert ((counts - expected) ** 2 / expected).sum().item() < 20  # chi square, with at most 4 degrees of freedom
    later = MeaningPool(pools, CPU).draw(keys, 3, 2, 1000)
    assert torch.equal(both[:, 1:], later)
