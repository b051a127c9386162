"""The simulated players: those that learn nothing, that know codes by heart, and that compose."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from icy.core.checks import real_number

from .player import Item, StudyPlayer, StudySeat

Letters = dict[int, str]
"""A letter by value of an attribute."""


class RandomPlayer(StudyPlayer):
    """Types random letters."""

    def answer(self, item: Item) -> str:
        """Return random letters."""
        return self.seat.letters(self.seat.content.length)

    def looks(self, cards: int, seen: int) -> bool:
        """Return that it does not study."""
        return False


class ConstantPlayer(StudyPlayer):
    """Types one and the same code always: the first that it sees (Icy22 appendix K).

    Args:
        adds: whether it adds all cards at once.
    """

    def __init__(self, adds: bool = False) -> None:
        self.adds = adds

    def begin(self, seat: StudySeat) -> None:
        """Take a seat."""
        super().begin(seat)
        self.code = ""

    def learn(self, item: Item, code: str) -> None:
        """Keep the first code."""
        self.code = self.code or code

    def answer(self, item: Item) -> str:
        """Return the code."""
        return self.code

    def looks(self, cards: int, seen: int) -> bool:
        """Return that it looks at one card."""
        return not self.code


class Memoriser(StudyPlayer):
    """Knows every code that it was shown; for an item that it was not, it copies a nearest one.

    Args:
        adds: whether it adds all cards at once.
    """

    def __init__(self, adds: bool = False) -> None:
        self.adds = adds

    def begin(self, seat: StudySeat) -> None:
        """Take a seat."""
        super().begin(seat)
        self.known: dict[Item, str] = {}

    def learn(self, item: Item, code: str) -> None:
        """Remember a code."""
        self.known[item] = code

    def answer(self, item: Item) -> str:
        """Return the code of an item, or a guess."""
        return self.known[item] if item in self.known else self.guess(item)

    def guess(self, item: Item) -> str:
        """Return the code of an item that shares the colour or the shape, or of any other."""
        if not self.known:
            return self.seat.letters(self.seat.content.length)
        shared = {other: (other[0] == item[0]) + (other[1] == item[1]) for other in self.known}
        nearest = [other for other, count in shared.items() if count == max(shared.values())]
        return self.known[nearest[int(self.seat.rng.integers(len(nearest)))]]


class Composer(Memoriser):
    """Remembers codes, and puts new ones together of a word for the colour and a word for the shape.

    A word is what the codes of a colour most often begin with, or those of a shape end with; for one that it never saw
    it types random letters. It is right wherever the language is that of concat and both words were shown.
    """

    def guess(self, item: Item) -> str:
        """Return two words side by side."""
        half = self.seat.content.word_length
        begins = (code[:half] for (colour, _), code in self.known.items() if colour == item[0])
        ends = (code[half:] for (_, shape), code in self.known.items() if shape == item[1])
        return self._word(begins) + self._word(ends)

    def _word(self, seen: Iterable[str]) -> str:
        """Return the most frequent of some words, the one seen first of equals."""
        counts = Counter(seen)
        return counts.most_common(1)[0][0] if counts else self.seat.letters(self.seat.content.word_length)


class CarelessPlayer(Composer):
    """Composes, but looks at fewer cards, forgets and mistypes.

    Args:
        slip: probability that a letter is mistyped.
        lapse: probability that an answer is random letters.
        looking: probability that it looks at one more card, where there is one it has not seen.
        forgetting: probability that a code that it knows does not come to its mind, so that it composes.
        adds: whether it adds all cards at once.

    Raises:
        InvalidSettingError: a probability that is none.
    """

    def __init__(
        self,
        slip: float = 0.02,
        lapse: float = 0.05,
        looking: float = 0.7,
        forgetting: float = 0.3,
        adds: bool = False,
    ) -> None:
        super().__init__(adds)
        given = {"slip": slip, "lapse": lapse, "looking": looking, "forgetting": forgetting}
        checked = {name: real_number(f"probability {name}", value, most=1.0) for name, value in given.items()}
        self.slip, self.lapse = checked["slip"], checked["lapse"]
        self.looking, self.forgetting = checked["looking"], checked["forgetting"]

    def answer(self, item: Item) -> str:
        """Return what it types, with its mistakes."""
        rng, content = self.seat.rng, self.seat.content
        if rng.random() < self.lapse:
            return self.seat.letters(content.length)
        forgets = rng.random() < self.forgetting
        text = self.guess(item) if forgets or item not in self.known else self.known[item]
        return "".join(self.seat.letters(1) if rng.random() < self.slip else letter for letter in text)

    def looks(self, cards: int, seen: int) -> bool:
        """Return whether it looks at one more card."""
        return seen < cards and bool(self.seat.rng.random() < self.looking)


@dataclass(frozen=True)
class CodeFit:
    """A rule that codes were fitted by.

    Attributes:
        faults: number of letters that it gets wrong.
        answer: what it says of an item: a letter per position, None where it does not know.
    """

    faults: int
    answer: tuple[str | None, ...]


class FamilyComposer(Memoriser):
    """Remembers codes, and fits rules to them to compose new ones; the ceiling of what evidence allows.

    Rules are that every position depends on the colour alone or on the shape alone (concat and perm), and that two
    words are put in an order that the shape decides (shufdet). Of the rules with the fewest faults it follows the first
    that knows most letters, and guesses the others at random.
    """

    def guess(self, item: Item) -> str:
        """Return what the best rule says."""
        if not self.known:
            return self.seat.letters(self.seat.content.length)
        fits = [by_position(self.known, item), *by_order(self.known, item, self.seat.content.word_length)]
        best = min(fits, key=lambda fit: (fit.faults, fit.answer.count(None)))
        return "".join(letter or self.seat.letters(1) for letter in best.answer)


def by_position(known: Mapping[Item, str], item: Item) -> CodeFit:
    """Fit every position by the colour or by the shape, whichever has fewer faults; of equals, by what it knows of."""
    faults, answer = 0, []
    for place in range(len(next(iter(known.values())))):
        choices = [_letters(known, place, attribute) for attribute in (0, 1)]
        wrong, letter = min(
            ((wrong, letters.get(item[attribute])) for attribute, (wrong, letters) in enumerate(choices)),
            key=lambda choice: (choice[0], choice[1] is None),
        )
        faults += wrong
        answer.append(letter)
    return CodeFit(faults, tuple(answer))


def _letters(known: Mapping[Item, str], place: int, attribute: int) -> tuple[int, Letters]:
    """Return the letter at a place for every value of an attribute, the first seen, and how often it was another."""
    letters: Letters = {}
    faults = sum(code[place] != letters.setdefault(item[attribute], code[place]) for item, code in known.items())
    return faults, letters


def by_order(known: Mapping[Item, str], item: Item, half: int) -> list[CodeFit]:
    """Fit two words in an order that the shape decides, for every order of the shapes that were seen."""
    shapes = sorted({shape for _, shape in known} | {item[1]})
    fits = []
    for swapped in product((False, True), repeat=len(shapes)):
        swap = dict(zip(shapes, swapped, strict=True))
        fits.append(_two_words(known, item, half, swap))
    return fits


def _two_words(known: Mapping[Item, str], item: Item, half: int, swap: Mapping[int, bool]) -> CodeFit:
    words: tuple[dict[int, str], dict[int, str]] = ({}, {})
    faults = 0
    for seen, code in known.items():
        parts = (code[half:], code[:half]) if swap[seen[1]] else (code[:half], code[half:])
        for of, value, part in zip(words, seen, parts, strict=True):
            faults += sum(a != b for a, b in zip(of.setdefault(value, part), part, strict=True))
    found = [tuple(of[value]) if value in of else (None,) * half for of, value in zip(words, item, strict=True)]
    return CodeFit(faults, (*found[1], *found[0]) if swap[item[1]] else (*found[0], *found[1]))
