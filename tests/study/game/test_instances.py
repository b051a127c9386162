"""Instances: lists that people and machines share, and rejected languages."""

from __future__ import annotations

from collections import Counter

import pytest

from icy.core.errors import InvalidSettingError
from icy.study.game import (
    Instance,
    StudyGame,
    StudyGameSettings,
    codes_of,
    dataset,
    distinct_codes,
    instance_of,
    instances,
    is_degenerate,
)
from icy.study.game.languages import person_seed, two_words

GRAMMARS = ("concat", "perm", "proj", "rot", "shufdet")


@pytest.mark.parametrize("name", ["synth", "eng"])
def test_grammars_share_held_out_items_and_lists_are_prefixes(name: str) -> None:
    lists = {g: instances(StudyGameSettings(dataset=name, grammar=g), 12, seed=3) for g in GRAMMARS}
    held_out = [[one.held_out for one in of_grammar] for of_grammar in lists.values()]
    assert all(one == held_out[0] for one in held_out)
    assert lists["rot"][:5] == instances(StudyGameSettings(dataset=name, grammar="rot"), 5, seed=3)
    assert lists["rot"] != instances(StudyGameSettings(dataset=name, grammar="rot"), 12, seed=4)


@pytest.mark.parametrize("name", ["synth", "eng"])
def test_held_out_items_have_colours_and_shapes_of_their_own(name: str) -> None:
    values = dataset(name).values
    for one in instances(StudyGameSettings(dataset=name), 50):
        assert len({m // values for m in one.held_out}) == len({m % values for m in one.held_out}) == 3


def test_all_sets_of_synth_occur() -> None:
    found = Counter(frozenset(one.held_out) for one in instances(StudyGameSettings(), 300))
    assert len(found) == 6  # spycodes-facts 12
    assert min(found.values()) > 25


def test_the_published_preset_holds_out_no_fixed_items() -> None:
    settings = StudyGameSettings.of("published", grammar="perm")
    assert [one.held_out for one in instances(settings, 3)] == [(), (), ()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grammar", "name", "share"),
    [("perm", "synth", 1 / 3), ("perm", "eng", 0.1), ("shufdet", "synth", 0.25), ("shufdet", "eng", 1 / 16)],
)
def test_degenerate_languages_are_as_frequent_as_they_should_be(grammar: str, name: str, share: float) -> None:
    settings = StudyGameSettings.of("published", grammar=grammar, dataset=name)
    count = 400
    found = sum(two_words(codes_of(settings, seed), dataset(name)) for seed in range(count))
    assert abs(found / count - share) < 3.5 * (share * (1 - share) / count) ** 0.5


@pytest.mark.parametrize("grammar", ["perm", "shufdet"])
def test_degenerate_languages_are_rejected(grammar: str) -> None:
    settings = StudyGameSettings(grammar=grammar)
    assert not any(is_degenerate(settings, one) for one in instances(settings, 40))
    kept = StudyGameSettings(grammar=grammar, degenerate="keep")
    assert any(is_degenerate(kept, one) for one in instances(kept, 40))


def test_only_held_out_values_decide_degeneracy() -> None:
    content = dataset("eng")
    codes = list(codes_of(StudyGameSettings(dataset="eng"), 0))
    for colour in range(5):  # the last shape is written in the other order
        codes[colour * 5 + 4] = codes[colour * 5 + 4][3:] + codes[colour * 5 + 4][:3]
    assert not two_words(tuple(codes), content)
    assert two_words(tuple(codes), content, of=(0, 6, 12))
    assert not two_words(tuple(codes), content, of=(0, 6, 24))


def test_concat_and_chains_that_keep_words_are_never_degenerate() -> None:
    settings = StudyGameSettings(grammar="concat")
    assert not any(is_degenerate(settings, one) for one in instances(settings, 10))


def test_projections_share_codes() -> None:
    settings = StudyGameSettings.of("published", grammar="proj")
    found = [distinct_codes(settings, one) for one in instances(settings, 200)]
    assert 7.2 < sum(found) / len(found) < 8.0  # spycodes-facts 2: 7.6 of 9
    assert 0.66 < sum(n < 9 for n in found) / len(found) < 0.86  # 76 %


def test_json_round_trip() -> None:
    one = instance_of(StudyGameSettings(grammar="perm"), 4)
    assert Instance.of_json(one.to_json()) == one


@pytest.mark.parametrize(
    ("preset", "held_out"), [("clean", ()), ("clean", (0, 1, 2)), ("clean", (0, 4)), ("published", (0, 4, 8))]
)
def test_instances_that_do_not_match_the_settings_are_refused(preset: str, held_out: tuple[int, ...]) -> None:
    with pytest.raises(InvalidSettingError, match="With these settings, an instance needs"):
        StudyGame(StudyGameSettings.of(preset), Instance(0, 0, held_out), 0)


def test_seeds_of_persons_differ() -> None:
    assert (
        len({person_seed(name, number, seed) for name in ("synth", "eng") for number in (0, 1) for seed in (0, 1)}) == 8
    )
