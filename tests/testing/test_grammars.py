"""The checks of grammars: each fails for a grammar that is wrong in the way it looks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from icy import testing
from icy.core.registry import registry
from icy.grammars import Corruption
from icy.languages.meanings import MeaningSpace
from icy.testing import (
    ContractError,
)
from tests.testing.helpers import seedless


def global_draws(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.randint(vocab_size, size=(space.size, space.attributes * word_length))


def too_many_tokens(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return seedless(space, vocab_size, word_length, seed) + vocab_size


def too_long(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return seedless(space, vocab_size, word_length + 1, seed)


def one_space(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(vocab_size, size=(64, 6))


def divides(space: MeaningSpace, vocab_size: int, word_length: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(vocab_size, size=(space.size, space.attributes * word_length)) + 0 // (
        word_length - 1
    )


class InPlace(Corruption):
    """A corruption that changes its input in place."""

    def apply(self, messages: Any, table: Any) -> Any:
        messages[:, 0] = 0
        return messages


class ForNobody(Corruption):
    """A corruption for neither senders nor receivers."""

    sides = ()

    def apply(self, messages: Any, table: Any) -> Any:
        return messages


class DropsTokens(Corruption):
    """A corruption that shortens messages."""

    shorter_words = True

    def apply(self, messages: Any, table: Any) -> Any:
        return np.where(messages == 0, -1, messages) if table.shorter_words else messages


@pytest.mark.parametrize(
    ("grammar", "check"),
    [
        (DropsTokens, "words_of_different_lengths"),
        (global_draws, "same_seed_same_language"),
        (global_draws, "random_state_untouched"),
        (seedless, "different_seeds_differ"),
        (too_many_tokens, "messages"),
        (too_long, "messages"),
        (one_space, "other_settings"),
        (divides, "small_vocabulary"),
        (InPlace, "base_messages_unchanged"),
        (ForNobody, "sides"),
    ],
)
def test_a_wrong_grammar_is_found_out(grammar: Callable[..., Any], check: str) -> None:
    results = {r.name: r for r in testing.check(grammar, "grammar", raise_on_failure=False)}
    assert not results[check].passed
    assert results[check].message


def test_grammars_need_no_registration_to_be_checked() -> None:
    before = registry.entries("grammar")
    results = testing.check(seedless, "grammar", expected_failures={"different_seeds_differ": "it draws nothing"})
    assert all(r.passed for r in results)
    assert registry.entries("grammar") == before
    assert {r.name: r for r in testing.check("hol", "grammar")}["chains"].message.startswith("refused")
    with pytest.raises(ContractError, match="different_seeds_differ"):
        testing.check(seedless, "grammar")
