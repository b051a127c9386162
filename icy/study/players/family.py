"""A player that knows the family of grammars: concat, perm and shufdet."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from .base import Item
from .memory import Memoriser

Letters = dict[int, str]
"""A letter by value of an attribute."""


@dataclass(frozen=True)
class Fit:
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


def by_position(known: Mapping[Item, str], item: Item) -> Fit:
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
    return Fit(faults, tuple(answer))


def _letters(known: Mapping[Item, str], place: int, attribute: int) -> tuple[int, Letters]:
    """Return the letter at a place for every value of an attribute, the first seen, and how often it was another."""
    letters: Letters = {}
    faults = sum(code[place] != letters.setdefault(item[attribute], code[place]) for item, code in known.items())
    return faults, letters


def by_order(known: Mapping[Item, str], item: Item, half: int) -> list[Fit]:
    """Fit two words in an order that the shape decides, for every order of the shapes that were seen."""
    shapes = sorted({shape for _, shape in known} | {item[1]})
    fits = []
    for swapped in product((False, True), repeat=len(shapes)):
        swap = dict(zip(shapes, swapped, strict=True))
        fits.append(_two_words(known, item, half, swap))
    return fits


def _two_words(known: Mapping[Item, str], item: Item, half: int, swap: Mapping[int, bool]) -> Fit:
    words: tuple[dict[int, str], dict[int, str]] = ({}, {})
    faults = 0
    for seen, code in known.items():
        parts = (code[half:], code[:half]) if swap[seen[1]] else (code[:half], code[half:])
        for of, value, part in zip(words, seen, parts, strict=True):
            faults += sum(a != b for a, b in zip(of.setdefault(value, part), part, strict=True))
    found = [tuple(of[value]) if value in of else (None,) * half for of, value in zip(words, item, strict=True)]
    return Fit(faults, (*found[1], *found[0]) if swap[item[1]] else (*found[0], *found[1]))
