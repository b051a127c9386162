"""A player that makes mistakes, as people do."""

from icy.core.checks import real_number

from .base import Item
from .composer import Composer


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
