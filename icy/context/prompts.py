"""Prompts with examples of a language, how answers are read, and baselines that learn from the same examples."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError
from icy.core.text import counted, listed
from icy.languages.language import LETTERS, Language
from icy.languages.meanings import MeaningSpace
from icy.text.answers import without_thoughts
from icy.text.interface import Answer

Rows = NDArray[np.int64]  # meanings or messages, one per row

# -- prompts and answers -----------------------------------------------------------------------------------------------

NAMES = {  # of attributes, and of their values
    "color": ["red", "blue", "green", "black", "white", "yellow", "orange", "purple", "brown", "pink"],
    "shape": ["circle", "square", "star", "heart", "moon", "cross", "arrow", "ring", "cube", "cone"],
    "material": ["wood", "stone", "glass", "metal", "paper", "cloth", "clay", "wool", "wax", "bone"],
    "number": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
    "place": ["house", "garden", "forest", "river", "bridge", "tower", "island", "harbor", "market", "cave"],
    "time": ["dawn", "morning", "noon", "evening", "night", "spring", "summer", "autumn", "winter", "midnight"],
}
SYLLABLES = [consonant + vowel for vowel in "aeiou" for consonant in "bdfgklmnprstvz"]
LABELS = {"sender": ("Meaning", "Message"), "receiver": ("Message", "Meaning")}
MARKUP = " \t*_`\"'.:;()[]"  # around an answer
NUMBERING = re.compile(r"\s*\d+[.)]\s+(?=.)")  # of the lines of a list
WITHOUT_RULE = "hol"  # the grammar of random messages
FORMS = ("plain-1", "named-1", "spoken-1", "story-1")  # with names of values, with syllables, or with both


@dataclass(frozen=True, eq=False)
class Shown:
    """The content of a question, for models that read no text.

    Attributes:
        sheet: the sizes of the language, and the direction.
        inputs: the inputs of the examples: the meanings for a sender, the messages for a receiver.
        outputs: the outputs of the examples, in the same order.
        queries: the inputs to answer.
        begun: the first places of the answer, if only the next one is asked for.
    """

    sheet: "Sheet"
    inputs: Rows
    outputs: Rows
    queries: Rows
    begun: Sequence[int] = ()


@dataclass(frozen=True)
class Sheet:
    """How a language is shown: a form of prompts, for the sizes of a language and a direction.

    Attributes:
        space: the meanings.
        vocab_size: number of tokens.
        length: tokens of a message.
        role: "sender", from meanings to messages; or "receiver".
        form: one of FORMS.

    Raises:
        IncompatibleError: the form has no name for a value or a token.
    """

    space: MeaningSpace
    vocab_size: int
    length: int
    role: str = "sender"
    form: str = "plain-1"

    def __post_init__(self) -> None:
        tokens, sizes = self._tokens, self.space.size_of_each
        if len(tokens) < self.vocab_size:
            raise IncompatibleError(f"The form '{self.form}' has only {len(tokens)} tokens, not {self.vocab_size}.")
        if self._named and (len(sizes) > len(NAMES) or max(sizes) > len(NAMES["color"])):
            raise IncompatibleError(
                f"The form '{self.form}' has names for {len(NAMES)} attributes of {len(NAMES['color'])} values, not "
                f"for {self.space}: choose 'plain-1' or 'spoken-1'."
            )

    @property
    def _named(self) -> bool:
        return self.form in ("named-1", "story-1")

    @property
    def _tokens(self) -> Sequence[str]:
        return SYLLABLES if self.form in ("spoken-1", "story-1") else LETTERS

    @cached_property
    def _words(self) -> dict[str, list[Sequence[str]]]:
        """The texts at each place of a meaning and of a message, by label."""
        sizes = self.space.size_of_each
        named = [names[:size] for names, size in zip(NAMES.values(), sizes, strict=False)]
        values = named if self._named else [[*map(str, range(size))] for size in sizes]
        return {"Meaning": [*values], "Message": [self._tokens[: self.vocab_size]] * self.length}

    @property
    def options(self) -> list[Sequence[str]]:
        """The possible texts at each place of an answer."""
        return self._words[LABELS[self.role][1]]

    def text(self, label: str, row: Sequence[int]) -> str:
        """Return the text of a meaning or message, or of its beginning."""
        return " ".join(words[number] for words, number in zip(self._words[label], row, strict=False))

    def _rules(self) -> str:
        """Return the sentences that describe meanings and messages."""
        ends = [f"from {words[0]} to {words[-1]}" for words in self._words["Meaning"]]
        meaning = f"{counted(len(ends), 'number')} {ends[0] if len(set(ends)) == 1 else listed(ends)}"
        if self._named:
            named = zip(NAMES, self._words["Meaning"], strict=False)
            meaning = listed([f"a {name} ({', '.join(words)})" for name, words in named])
        unit = "letter" if self._tokens is LETTERS else "syllable"
        message = f"{counted(self.length, unit)} out of {', '.join(self._tokens[: self.vocab_size])}"
        return f"A language has a message for every meaning. A meaning is {meaning}. A message is {message}."

    def prompt(self, shown: Shown, whole: bool = True) -> str:
        """Return the prompt of a question.

        Args:
            shown: its content.
            whole: whether it asks for whole answers; otherwise for the next place after `shown.begun`.
        """
        given, wanted = LABELS[self.role]
        asked = [f"{given}: {self.text(given, row)}" for row in shown.queries]
        task = f"Answer with the {wanted.lower()} of the last {given.lower()} alone."
        if not whole:
            task = f"Answer with the next part of the last {wanted.lower()} alone."
        elif len(asked) > 1:
            task = (
                f"Answer with the {wanted.lower()}s of the last {len(asked)} {given.lower()}s, one per line, in order."
            )
        examples = [
            f"{given}: {self.text(given, x)}\n{wanted}: {self.text(wanted, y)}"
            for x, y in zip(shown.inputs, shown.outputs, strict=True)
        ]
        begun = " " + self.text(wanted, shown.begun) if len(shown.begun) else ""
        last = "\n".join([*asked, f"{wanted}{'s' * (len(asked) > 1)}:{begun}"])
        return "\n\n".join([f"{self._rules()} {task}", *examples, last])

    def read(self, answer: Answer, count: int = 1) -> Sequence[list[int] | None]:
        """Return the meanings or messages in an answer: its last lines that hold one. None for one that is missing."""
        found: list[list[int]] = []
        for line in (without_thoughts(answer.text if answer.marked is None else answer.marked) or "").splitlines():
            if found and line.startswith(f"{LABELS[self.role][0]}:"):
                break  # the model continues with examples of its own
            if (row := self._row(line)) is not None:
                found.append(row)
        return found[-count:] if len(found) >= count else [None] * count

    def _row(self, line: str) -> list[int] | None:
        """Return the numbers of the words in a line; None without a whole answer."""
        text = NUMBERING.sub("", line, count=1) if NUMBERING.match(line) else line
        text = re.sub(rf"^\W*{LABELS[self.role][1]}\W*:", "", text, flags=re.IGNORECASE).strip(MARKUP).lower()
        words, options = re.split(r"[\s,|/-]+", text), self.options
        size = len(options[0][0])
        if len(words) != len(options):  # words that are not apart
            joined = "".join(words)
            words = [joined[start : start + size] for start in range(0, len(joined), size)]
        if len(words) != len(options) or any(w not in known for w, known in zip(words, options, strict=True)):
            return None
        return [known.index(word) for word, known in zip(words, options, strict=True)]


# -- baselines that read the same examples -----------------------------------------------------------------------------


def baselines(shown: Shown, language: Language) -> Mapping[str, Rows]:
    """Return the answers of each baseline.

    `nearest` copies the answer of the example with the most equal places. `bag` does so without regard to order.
    `lookup` finds for every place of the answer the place of the input that fits it best, and the answer that this has
    most often. `composer` knows the grammar: it is right if it saw each value of the meaning in an example.

    Args:
        shown: examples and queries.
        language: the language, for the composer.
    """
    inputs, outputs, queries = shown.inputs, shown.outputs, shown.queries
    size = int(max(inputs.max(), queries.max())) + 1
    bags = [np.stack([(rows == value).sum(1) for value in range(size)], 1) for rows in (inputs, queries)]
    return {
        "nearest": outputs[(inputs[None] != queries[:, None]).sum(2).argmin(1)],
        "bag": outputs[np.abs(bags[0][None] - bags[1][:, None]).sum(2).argmin(1)],
        "lookup": _lookup(inputs, outputs, queries, size),
        "composer": _composed(shown, language),
    }


def _lookup(inputs: Rows, outputs: Rows, queries: Rows, size: int) -> Rows:
    """Answer each place by the place of the input that fits it best; the most frequent answer for unseen inputs."""
    found = np.empty((len(queries), outputs.shape[1]), dtype=np.int64)
    for place, answers in enumerate(outputs.T):
        counts = np.zeros((inputs.shape[1], size, int(answers.max()) + 1), dtype=np.int64)
        for which, values in enumerate(inputs.T):
            np.add.at(counts[which], (values, answers), 1)
        best = int(counts.max(2).sum(1).argmax())
        table = np.where(counts[best].any(1), counts[best].argmax(1), np.bincount(answers).argmax())
        found[:, place] = table[queries[:, best]]
    return found


def _composed(shown: Shown, language: Language) -> Rows:
    """Answer by the rule of the grammar, where all values were seen; otherwise the most frequent tokens or values."""
    usual = np.array([np.bincount(answers).argmax() for answers in shown.outputs.T])
    if language.name == WITHOUT_RULE:
        return np.tile(usual, (len(shown.queries), 1))
    speaks = shown.sheet.role == "sender"
    seen = shown.inputs if speaks else shown.outputs
    known = np.all([np.isin(values, own) for values, own in zip(language.meanings.T, seen.T, strict=True)], axis=0)
    source, target = (language.meanings, language.messages)[:: 1 if speaks else -1]
    equal = (source[None] == shown.queries[:, None]).all(2) & known
    return np.where(equal.any(1)[:, None], target[equal.argmax(1)], usual)
