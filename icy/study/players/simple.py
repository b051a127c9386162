"""Players that learn nothing."""

from .base import Item, Seat, StudyPlayer


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

    def begin(self, seat: Seat) -> None:
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
