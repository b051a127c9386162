"""Datasets and settings of games."""

from __future__ import annotations

import json
from typing import Any

import pytest

from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, UnknownNameError
from icy.languages.language import LETTERS
from icy.study import game
from icy.study.game import DATASETS, PUBLISHED, StudyGameSettings, dataset

# -- datasets ----------------------------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_paper() -> None:
    sizes = {
        d.name: (d.values, d.space.size, d.word_length, d.vocab_size, d.length, d.cents_per_ten)
        for d in DATASETS.values()
    }
    assert sizes == {"synth": (3, 9, 2, 4, 4, 4), "eng": (5, 25, 3, 26, 6, 1)}
    assert [dataset("synth").named(m) for m in (0, 1, 3, 8)] == [
        ("red", "circle"),
        ("red", "triangle"),
        ("green", "circle"),
        ("blue", "square"),
    ]


def test_english_words_are_letters() -> None:
    words = dataset("eng").words
    assert words is not None
    shown = [["".join(LETTERS[t] for t in word) for word in of_values] for of_values in words]
    assert shown == [["red", "grn", "blu", "yel", "mag"], ["cir", "tri", "box", "pnt", "hex"]]


def test_sizes_can_be_others() -> None:
    small = dataset("eng").changed(values=3)
    assert small.words is not None
    assert [len(of_values) for of_values in small.words] == [3, 3]
    assert dataset("synth").changed(values=5, word_length=3, vocab_size=6).length == 6
    assert dataset("eng").changed() == dataset("eng")


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("eng", {"word_length": 2}, "dataset 'eng' has fixed words"),
        ("eng", {"values": 6}, "at most 5"),
        ("synth", {"vocab_size": 27}, "at most 26"),
        ("synth", {"values": "three"}, "whole number"),
    ],
)
def test_invalid_sizes_are_refused(name: str, sizes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        StudyGameSettings(dataset=name, **sizes)  # type: ignore[arg-type]


def test_unknown_datasets_get_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match=r"No dataset is called 'sinth'; did you mean synth\?"):
        dataset("sinth")


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dataset", "cap", "most"), [("synth", 6, 246), ("eng", 22, 1030)])
def test_most_cards_and_points(dataset: str, cap: int, most: int) -> None:
    settings = StudyGameSettings.of("published", dataset=dataset)
    assert (settings.cap, settings.most_points) == (cap, most)


def test_examples_at_which_a_card_is_due() -> None:
    clean, published = StudyGameSettings(dataset="eng"), StudyGameSettings.of("published", dataset="eng")
    due = lambda settings: {i: settings.due(i) for i in range(50) if settings.due(i)}  # noqa: E731
    assert due(clean) == {8: 3, 16: 4, 24: 5, 32: 6, 40: 7, 48: 8}
    assert due(published) == {7: 3, 15: 4, 23: 5, 31: 6, 39: 7, 47: 8}
    assert due(StudyGameSettings(dataset="synth"))[48] == 6  # all cards


def test_presets_differ_only_in_the_settings_they_name() -> None:
    clean, published = StudyGameSettings().to_json(), StudyGameSettings.of("published").to_json()
    named = {name for departure in PUBLISHED.values() for name in departure.settings}
    assert {name for name in clean if clean[name] != published[name]} == named


def test_json_round_trip() -> None:
    settings = StudyGameSettings.of("published", dataset="eng", grammar="rot+perm", examples=30, held_out_at=[9, 29])
    read = json.loads(json.dumps(settings.to_json()))
    assert StudyGameSettings.of(**read) == settings
    assert settings.held_out_at == (9, 29)


def test_grammars_have_their_canonical_names() -> None:
    assert StudyGameSettings(grammar="comp") == StudyGameSettings(grammar="concat")


def test_the_bonus_is_linear() -> None:
    assert StudyGameSettings(dataset="synth").bonus_cents(246) == pytest.approx(98.4)
    assert StudyGameSettings(dataset="eng").bonus_cents(1030) == pytest.approx(103)
    assert StudyGameSettings(cents_per_ten=0).bonus_cents(100) == 0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"dataset": "sint"}, UnknownNameError, "did you mean synth"),
        ({"grammar": "rotate"}, UnknownNameError, "did you mean rot"),
        ({"draws": "bag"}, UnknownNameError, "did you mean bags"),
        ({"held_out_feedback": True}, UnknownNameError, "choice of held_out_feedback"),
        ({"start": 1}, InvalidSettingError, "cards at the start"),
        ({"start": 7}, InvalidSettingError, "at most 6"),
        ({"held_out_at": ()}, InvalidSettingError, "numbers in rising order"),
        ({"held_out_at": (39, 29)}, InvalidSettingError, "numbers in rising order"),
        ({"held_out_at": (29, 50)}, InvalidSettingError, "at most 49"),
        ({"held_out_at": "29"}, InvalidSettingError, "must be a list"),
        ({"held_out_at": (5, 6, 7, 8)}, InvalidSettingError, "3 values allow at most 3"),
        ({"held_out": "next"}, IncompatibleError, "'designed' needs held_out='apart'"),
        ({"values": 2, "held_out_at": (9, 19)}, IncompatibleError, "at least 3 values"),
        ({"cents_per_ten": -1}, InvalidSettingError, "pay of ten points"),
        ({"examples": 0}, InvalidSettingError, "number of examples"),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, Any], error: type[IcyError], message: str) -> None:
    with pytest.raises(error, match=message):
        StudyGameSettings(**given)


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean published"):
        StudyGameSettings.of("publish")
    with pytest.raises(UnknownNameError, match="did you mean examples"):
        StudyGameSettings.of("clean", exampels=3)


def test_names_of_earlier_versions_warn() -> None:
    with pytest.warns(FutureWarning, match="GameSettings is now StudyGameSettings"):
        assert game.GameSettings is StudyGameSettings
