"""A player that knows codes by heart."""

from .base import Item, Seat, StudyPlayer


class Memoriser(StudyPlayer):
    """Knows every code that it was shown; for an item that it was not, it copies a nearest one.

    Args:
        adds: whether it adds all cards at once.
    """

    def __init__(self, adds: bool = False) -> None:
        self.adds = adds

    def begin(self, seat: Seat) -> None:
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
