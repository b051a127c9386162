"""The datasets of the study."""

from __future__ import annotations

import pytest

from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.languages.language import LETTERS
from icy.study.game import DATASETS, dataset


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
        dataset(name).changed(**sizes)


def test_unknown_datasets_get_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match=r"No dataset is called 'sinth'; did you mean synth\?"):
        dataset("sinth")
