"""Simulated players: players that do not learn, and players that memorize or compose codes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from icy.core.checks import real_number

from .player import Item, StudyPlayer, StudySeat


class RandomPlayer(StudyPlayer):
    """Player that types random letters."""

    def answer(self, item: Item) -> str:
        """Return random letters."""
        return self.seat.letters(self.seat.content.length)

    def looks(self, cards: int, seen: int) -> bool:
        """Return False: the player never opens Train."""
        return False


class ConstantPlayer(StudyPlayer):
    """Player that always types the first code that it saw (Icy22 appendix K).

    Args:
        adds: whether the player adds all cards as soon as possible.
    """

    def __init__(self, adds: bool = False) -> None:
        self.adds = adds

    def begin(self, seat: StudySeat) -> None:
        """Forget the code of an earlier game."""
        super().begin(seat)
        self.code = ""

    def learn(self, item: Item, code: str) -> None:
        """Remember the code if it is the first one; ignore all others."""
        self.code = self.code or code

    def answer(self, item: Item) -> str:
        """Return the remembered code."""
        return self.code

    def looks(self, cards: int, seen: int) -> bool:
        """Return True until the player has seen one code."""
        return not self.code


class Memoriser(StudyPlayer):
    """Player that remembers all codes, and answers a new item with the code of a most similar item.

    Args:
        adds: whether the player adds all cards as soon as possible.
    """

    def __init__(self, adds: bool = False) -> None:
        self.adds = adds

    def begin(self, seat: StudySeat) -> None:
        """Forget the codes of an earlier game."""
        super().begin(seat)
        self.known: dict[Item, str] = {}

    def learn(self, item: Item, code: str) -> None:
        """Remember the code of an item, for later answers."""
        self.known[item] = code

    def answer(self, item: Item) -> str:
        """Return the code of a known item, or a guess."""
        return self.known[item] if item in self.known else self.guess(item)

    def guess(self, item: Item) -> str:
        """Return the code of a random item with the same color or shape; without one, the code of a random item."""
        if not self.known:
            return self.seat.letters(self.seat.content.length)
        shared = {other: (other[0] == item[0]) + (other[1] == item[1]) for other in self.known}
        nearest = [other for other, count in shared.items() if count == max(shared.values())]
        return self.known[nearest[int(self.seat.rng.integers(len(nearest)))]]


class Composer(Memoriser):
    """Player that remembers codes, and composes new codes of a word for the color and a word for the shape.

    The word for a color is the most frequent first half of its codes. The word for a shape is the most frequent second
    half. For a value that was never shown, the player types random letters. So in concat, the composed code is right if
    both values were shown.
    """

    def guess(self, item: Item) -> str:
        """Return the word for the color, followed by the word for the shape."""
        half = self.seat.content.word_length
        begins = (code[:half] for (colour, _), code in self.known.items() if colour == item[0])
        ends = (code[half:] for (_, shape), code in self.known.items() if shape == item[1])
        return self._word(begins) + self._word(ends)

    def _word(self, words: Iterable[str]) -> str:
        """Return the most frequent word, the first of them if several are; random letters without words."""
        counts = Counter(words)
        return counts.most_common(1)[0][0] if counts else self.seat.letters(self.seat.content.word_length)


class CarelessPlayer(Composer):
    """Composer that views fewer cards, forgets codes and mistypes.

    Args:
        slip: probability that a letter is mistyped.
        lapse: probability that an answer is random letters.
        looking: probability of viewing another card, while there are unseen cards.
        forgetting: probability of forgetting a known code; the player then composes the answer.
        adds: whether the player adds all cards as soon as possible.

    Raises:
        InvalidSettingError: a probability is not between 0 and 1.
    """

    def __init__(
        self, slip: float = 0.02, lapse: float = 0.05, looking: float = 0.7, forgetting: float = 0.3, adds: bool = False
    ) -> None:
        super().__init__(adds)
        self.slip = real_number("probability slip", slip, most=1.0)
        self.lapse = real_number("probability lapse", lapse, most=1.0)
        self.looking = real_number("probability looking", looking, most=1.0)
        self.forgetting = real_number("probability forgetting", forgetting, most=1.0)

    def answer(self, item: Item) -> str:
        """Return the answer, with random mistakes."""
        rng, content = self.seat.rng, self.seat.content
        if rng.random() < self.lapse:
            return self.seat.letters(content.length)
        forgets = rng.random() < self.forgetting
        text = self.guess(item) if forgets or item not in self.known else self.known[item]
        return "".join(self.seat.letters(1) if rng.random() < self.slip else letter for letter in text)

    def looks(self, cards: int, seen: int) -> bool:
        """Return whether to view another card; see StudyPlayer."""
        return seen < cards and bool(self.seat.rng.random() < self.looking)


@dataclass(frozen=True)
class CodeFit:
    """The fit of a rule to the known codes, and its prediction.

    Attributes:
        faults: number of letters that the rule predicts wrongly.
        answer: predicted code of the item: a letter per position, or None if the rule does not predict it.
    """

    faults: int
    answer: tuple[str | None, ...]


class FamilyComposer(Memoriser):
    """Player that remembers codes, and fits rules to compose new codes; an upper bound.

    There are two kinds of rules. Either every position depends only on the color or only on the shape (concat and
    perm), or the code is two words in an order that the shape determines (shufdet). The player follows the rule with
    the fewest wrong letters, and among equal rules the first that predicts the most letters. It guesses the other
    letters.
    """

    def guess(self, item: Item) -> str:
        """Return the code that the best rule predicts."""
        if not self.known:
            return self.seat.letters(self.seat.content.length)
        fits = [by_position(self.known, item), *by_order(self.known, item, self.seat.content.word_length)]
        best = min(fits, key=lambda fit: (fit.faults, fit.answer.count(None)))
        return "".join(letter or self.seat.letters(1) for letter in best.answer)


def by_position(known: Mapping[Item, str], item: Item) -> CodeFit:
    """Fit the rule that each letter depends only on the color or only on the shape, whichever fits better.

    If both fit equally well, use the attribute with a prediction for this item.
    """
    faults, answer = 0, []
    for place in range(len(next(iter(known.values())))):
        choices: list[tuple[int, str | None]] = []
        for attribute in (0, 1):
            letters: dict[int, str] = {}  # the first letter seen for each value of the attribute
            seen = ((other[attribute], code[place]) for other, code in known.items())
            wrong = sum(letter != letters.setdefault(value, letter) for value, letter in seen)
            choices.append((wrong, letters.get(item[attribute])))
        wrong, letter = min(choices, key=lambda choice: (choice[0], choice[1] is None))
        faults += wrong
        answer.append(letter)
    return CodeFit(faults, tuple(answer))


def by_order(known: Mapping[Item, str], item: Item, half: int) -> list[CodeFit]:
    """Fit the rule of two words in an order that the shape determines, for every combination of orders."""
    shapes = sorted({shape for _, shape in known} | {item[1]})
    orders = product((False, True), repeat=len(shapes))
    return [_two_words(known, item, half, dict(zip(shapes, swapped, strict=True))) for swapped in orders]


def _two_words(known: Mapping[Item, str], item: Item, half: int, swap: Mapping[int, bool]) -> CodeFit:
    words: tuple[dict[int, str], dict[int, str]] = ({}, {})
    faults = 0
    for other, code in known.items():
        parts = (code[half:], code[:half]) if swap[other[1]] else (code[:half], code[half:])
        for of, value, part in zip(words, other, parts, strict=True):
            faults += sum(a != b for a, b in zip(of.setdefault(value, part), part, strict=True))
    found = [tuple(of[value]) if value in of else (None,) * half for of, value in zip(words, item, strict=True)]
    return CodeFit(faults, (*found[1], *found[0]) if swap[item[1]] else (*found[0], *found[1]))
