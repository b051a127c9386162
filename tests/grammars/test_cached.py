"""Languages that are made once."""

from __future__ import annotations

from typing import Any

import pytest

import icy
from icy.core.errors import InvalidSettingError
from icy.core.register import register_grammar
from icy.core.registry import registry
from icy.grammars import cached_language, languages, make_language
from icy.languages.meanings import MeaningSpace

SPACE = MeaningSpace(3, 4)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is made, in order; nothing was before."""
    monkeypatch.setattr(languages, "_cache", {})
    calls: list[Any] = []

    def make(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        return make_language(*arguments, **options)

    monkeypatch.setattr(languages, "make_language", make)
    return calls


def test_a_language_is_made_once(made: list[Any]) -> None:
    one = cached_language("rot+perm", SPACE, 4, 2, 1)
    assert one == make_language("rot+perm", SPACE, 4, 2, 1)
    assert cached_language("rot + perm", SPACE, 4, 2, 1) is one
    assert len(made) == 1
    for other in (("rot", SPACE, 4, 2, 1), ("rot+perm", SPACE, 5, 2, 1), ("rot+perm", SPACE, 4, 3, 1),
                  ("rot+perm", MeaningSpace(3, 5), 4, 2, 1), ("rot+perm", SPACE, 4, 2, 2)):  # fmt: skip
        assert cached_language(*other) == make_language(*other)
    assert len(made) == 6


def test_what_cannot_be_made_is_an_error_each_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidSettingError, match="raise the vocabulary"):
            cached_language("concat", SPACE, 2, 2, 1)


def test_the_least_recently_used_is_removed(monkeypatch: pytest.MonkeyPatch, made: list[Any]) -> None:
    size = make_language("rot", SPACE, 4, 2, 1).messages.nbytes + languages.BYTES_OF_ONE
    monkeypatch.setattr(languages, "CACHE_BYTES", 2 * size)
    for seed in (1, 2, 1, 3):  # 3 takes the place of 2
        cached_language("rot", SPACE, 4, 2, seed)
    assert [seed for *_, seed in made] == [1, 2, 3]
    assert [seed for *_, seed in languages._cache] == [1, 3]
    cached_language("rot", SPACE, 4, 2, 2)
    assert [seed for *_, seed in made] == [1, 2, 3, 2]
    monkeypatch.setattr(languages, "CACHE_BYTES", size - 1)  # more than there is room for is made, and not kept
    assert cached_language("rot", SPACE, 4, 2, 5).seed == 5
    assert not languages._cache


@pytest.mark.usefixtures("forgetting")
def test_a_grammar_that_is_registered_anew_is_another(made: list[Any]) -> None:
    def one(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
        return make_language("concat", space, vocab_size, word_length, seed).messages

    def two(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
        return make_language("rot", space, vocab_size, word_length, seed).messages

    register_grammar("mine", source="a test")(one)
    first = cached_language("mine", SPACE, 4, 2, 1)
    register_grammar("mine", source="a test")(two)
    assert registry.get("mine", "grammar").factory is two
    assert cached_language("mine", SPACE, 4, 2, 1).digest() == make_language("rot", SPACE, 4, 2, 1).digest()
    assert first.digest() != make_language("rot", SPACE, 4, 2, 1).digest()


def test_a_run_makes_each_language_once(tmp_path: Any, made: list[Any]) -> None:
    sizes = {"meanings": "2x3", "word_length": 2, "hidden": [4, 8], "seeds": 2, "target": 0.5}
    icy.probe(["sender/FC1L", "receiver/FC1L"], "perm", workers=1, out=str(tmp_path), **sizes)  # type: ignore[arg-type]
    assert len(made) == len(set(made)) == 4
