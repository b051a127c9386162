"""Checks of grammars. The first line of each docstring is the claim that the check tests."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import SIDES, registry
from icy.core.streams import stream
from icy.grammars import Corruption, WordTable, grammar_sides, make_language
from icy.grammars.grammar import base_messages
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

from .cases import CheckFailure, NotApplicable, named, require, same_random_state

# Errors by which a grammar may refuse sizes. PluginError is excluded: any crash of a grammar becomes a PluginError.
REFUSALS = (InvalidSettingError, IncompatibleError)


@dataclass(frozen=True)
class GrammarCase:
    """A grammar under test, and its small sizes in the tests.

    Attributes:
        name: registered name, at least during the checks.
        space: the meanings.
        vocab_size: V.
        word_length: w.
        seed: seed of the language.
    """

    name: str
    space: MeaningSpace
    vocab_size: int = 4
    word_length: int = 2
    seed: int = 0

    def make(self) -> Language:
        """Make the language."""
        return make_language(self.name, self.space, self.vocab_size, self.word_length, self.seed)


def check_messages(case: GrammarCase) -> None:
    """Every meaning has one message of A * w tokens, each an unsigned integer below V."""
    language = case.make()
    expected = (case.space.size, case.space.attributes * case.word_length)
    require(language.messages.shape == expected, f"The messages have shape {language.messages.shape}, not {expected}.")
    require(language.messages.dtype.kind == "u", f"The tokens are {language.messages.dtype}.")
    require(language.messages.max() < case.vocab_size, f"A token is not below the vocabulary size {case.vocab_size}.")


def check_same_seed_same_language(case: GrammarCase) -> None:
    """A seed gives the same language every time."""
    first = case.make()
    stream(case.seed, "testing").random(5)
    replace(case, seed=case.seed + 1).make()
    again = case.make()
    differing = int((first.messages != again.messages).any(1).sum())
    require(not differing, f"{differing} meanings have another message the second time, with the same seed.")


def check_different_seeds_differ(case: GrammarCase) -> None:
    """Another seed gives another language."""
    digests = {replace(case, seed=case.seed + i).make().digest() for i in range(3)}
    require(len(digests) > 1, "Three seeds give the same language.")


def check_random_state_untouched(case: GrammarCase) -> None:
    """Making a language does not change the global random state of torch, NumPy and Python."""
    with same_random_state("Making the language"):
        case.make()


def check_base_messages_unchanged(case: GrammarCase) -> None:
    """A corruption does not change its input messages."""
    factory = registry.get(case.name, "grammar").load()
    if not (isinstance(factory, type) and issubclass(factory, Corruption)):
        raise NotApplicable("the grammar is not a corruption of base messages")
    given = base_messages(case.space, case.vocab_size, case.word_length, case.seed)
    before, table = given.copy(), WordTable(case.space, case.vocab_size, case.word_length, stream(case.seed, case.name))
    registry.get(case.name, "grammar").create().apply(given, table)
    require(np.array_equal(given, before), "`apply` changed the base messages in place; work on a copy.")


def check_other_settings(case: GrammarCase) -> None:
    """Other spaces, vocabularies and word lengths work."""
    for space, vocab_size, word_length in (("2x3", 4, 2), ("4x2", 3, 2), ("2x10", 2, 5), ("3x3", 30, 1)):
        case = replace(case, space=MeaningSpace.parse(space), vocab_size=vocab_size, word_length=word_length)
        check_messages(case)


def check_attributes_of_several_sizes(case: GrammarCase) -> None:
    """Attributes with different numbers of values work, or are refused with an IncompatibleError."""
    for space in ("5,2,3", "2,6"):
        try:
            check_messages(replace(case, space=MeaningSpace.parse(space)))
        except IncompatibleError as refusal:
            raise NotApplicable(f"the grammar is for grids only: {refusal}") from refusal


def check_one_attribute(case: GrammarCase) -> None:
    """A space of one attribute works, or is refused with an IcyError."""
    with contextlib.suppress(*REFUSALS):
        replace(case, space=MeaningSpace(1, 5)).make()


def check_small_vocabulary(case: GrammarCase) -> None:
    """A vocabulary too small for different words works, or is refused with an IcyError; a single token is refused."""
    with contextlib.suppress(*REFUSALS):
        replace(case, vocab_size=2, word_length=1).make()
    try:
        replace(case, vocab_size=1).make()
    except REFUSALS:
        return
    raise CheckFailure("A vocabulary of a single token is accepted.")


def check_saves_and_loads(case: GrammarCase) -> None:
    """The language survives every file format."""
    language = case.make()
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".parquet", ".csv", ".npz"):
            loaded = Language.load(language.save(Path(folder) / f"language{suffix}"))
            require(loaded == language, f"The language loaded from {suffix} differs from the saved one.")


def check_chains(case: GrammarCase) -> str:
    """A corruption works in a chain, at either end; any other grammar is refused there."""
    try:
        for chain in (f"{case.name}+perm", f"perm+{case.name}"):
            check_messages(replace(case, name=chain))
    except IncompatibleError as refusal:
        return f"refused: {refusal}"
    return "chains"


def check_sides(case: GrammarCase) -> str:
    """The grammar is for senders, receivers or both."""
    sides = grammar_sides(case.name)
    require(sides, f"`sides` must name at least one of {' and '.join(SIDES)}.")
    return " and ".join(f"for {side}s" for side in sides)


GRAMMAR_CHECKS = named(
    check_messages,
    check_same_seed_same_language,
    check_different_seeds_differ,
    check_random_state_untouched,
    check_base_messages_unchanged,
    check_other_settings,
    check_attributes_of_several_sizes,
    check_one_attribute,
    check_small_vocabulary,
    check_saves_and_loads,
    check_chains,
    check_sides,
)
