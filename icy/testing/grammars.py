"""Checks of grammars."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace

import numpy as np

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import SIDES
from icy.core.streams import stream
from icy.grammars import Corruption, WordTable, grammar_sides, make_language
from icy.grammars.grammar import base_messages
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

from .cases import Case, CheckFailure, NotApplicable, require

# Errors by which a grammar may refuse sizes. PluginError is excluded: any crash of a grammar becomes a PluginError.
REFUSALS = (InvalidSettingError, IncompatibleError)


@dataclass(frozen=True)
class GrammarCase(Case):
    """A grammar under test, registered at least during the checks, and its small sizes in the tests.

    Attributes:
        space: the meanings.
        vocab_size: V.
        word_length: w; a text such as "1-3" for words of different lengths.
        seed: seed of the language.
    """

    space: MeaningSpace | str | tuple[int, int] = "3x4"
    vocab_size: int = 4
    word_length: int | str = 2
    seed: int = field(default=0, kw_only=True)

    def make(self, name: str = "") -> Language:
        """Make the language, or that of another grammar with the same settings."""
        space = MeaningSpace.of(self.space)
        return make_language(name or self.entry.name, space, self.vocab_size, self.word_length, self.seed)

    def use(self) -> None:
        """Make the language."""
        self.make()

    def require_messages(self, name: str = "") -> None:
        """Fail the check unless the language, or that of another grammar, has the agreed messages."""
        language = self.make(name)
        messages, space = language.messages, language.space
        expected = (space.size, space.attributes * int(self.word_length))
        require(messages.shape == expected, f"The messages have shape {messages.shape}, not {expected}.")
        require(messages.dtype.kind == "u", f"The tokens are {messages.dtype}.")
        require(messages.max() < self.vocab_size, f"A token is not below the vocabulary size {self.vocab_size}.")

    def check_messages(self) -> None:
        """Every meaning has one message of A * w tokens, each an unsigned integer below V."""
        self.require_messages()

    def check_same_seed_same_language(self) -> None:
        """A seed gives the same language every time."""
        first = self.make()
        stream(self.seed, "testing").random(5)
        replace(self, seed=self.seed + 1).make()
        again = self.make()
        differing = int((first.messages != again.messages).any(1).sum())
        require(not differing, f"{differing} meanings have another message the second time, with the same seed.")

    def check_different_seeds_differ(self) -> None:
        """Another seed gives another language."""
        digests = {replace(self, seed=self.seed + i).make().digest() for i in range(3)}
        require(len(digests) > 1, "Three seeds give the same language.")

    def check_base_messages_unchanged(self) -> None:
        """A corruption does not change its input messages."""
        factory = self.entry.load()
        if not (isinstance(factory, type) and issubclass(factory, Corruption)):
            raise NotApplicable("the grammar is not a corruption of base messages")
        sizes = MeaningSpace.of(self.space), self.vocab_size, int(self.word_length)
        given = base_messages(*sizes, self.seed)
        before = given.copy()
        self.entry.create().apply(given, WordTable(*sizes, stream(self.seed, self.entry.name)))
        require(np.array_equal(given, before), "`apply` changed the base messages in place; work on a copy.")

    def check_other_settings(self) -> None:
        """Other spaces, vocabularies and word lengths work."""
        for space, vocab_size, word_length in (("2x3", 4, 2), ("4x2", 3, 2), ("2x10", 2, 5), ("3x3", 30, 1)):
            replace(self, space=space, vocab_size=vocab_size, word_length=word_length).require_messages()

    def check_attributes_of_several_sizes(self) -> None:
        """Attributes with different numbers of values work, or are refused with an IncompatibleError."""
        for space in ("5,2,3", "2,6"):
            try:
                replace(self, space=space).require_messages()
            except IncompatibleError as refusal:
                raise NotApplicable(f"the grammar is for grids only: {refusal}") from refusal

    def check_words_of_different_lengths(self) -> None:
        """With words of different lengths, messages are as long as in concat; or IncompatibleError refuses them."""
        case = replace(self, word_length="1-3")
        try:
            language = case.make()
        except IncompatibleError as refusal:
            raise NotApplicable(str(refusal)) from refusal
        differing = int((language.lengths != case.make("concat").lengths).sum())
        require(not differing, f"{differing} messages have another length than the words of their meanings.")

    def check_one_attribute(self) -> None:
        """A space of one attribute works, or is refused with an IcyError."""
        with contextlib.suppress(*REFUSALS):
            replace(self, space="1x5").make()

    def check_small_vocabulary(self) -> None:
        """A vocabulary too small for different words works, or an IcyError refuses it; a single token is refused."""
        with contextlib.suppress(*REFUSALS):
            replace(self, vocab_size=2, word_length=1).make()
        try:
            replace(self, vocab_size=1).make()
        except REFUSALS:
            return
        raise CheckFailure("A vocabulary of a single token is accepted.")

    def check_chains(self) -> str:
        """A corruption works in a chain, at either end; any other grammar is refused there."""
        try:
            for chain in (f"{self.entry.name}+perm", f"perm+{self.entry.name}"):
                self.require_messages(chain)
        except IncompatibleError as refusal:
            return f"refused: {refusal}"
        return "chains"

    def check_sides(self) -> str:
        """The grammar is for senders, receivers or both."""
        sides = grammar_sides(self.entry.name)
        require(sides, f"`sides` must name at least one of {' and '.join(SIDES)}.")
        return " and ".join(f"for {side}s" for side in sides)
