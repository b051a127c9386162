"""The order in which a game adds cards, and draws of cards."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from icy.core.streams import stream

from .instances import Instance
from .settings import LEAST_DESIGNED, StudyGameSettings
from .state import Bag


def card_order(settings: StudyGameSettings, instance: Instance, seed: int) -> tuple[int, ...]:
    """Return the meanings of all cards, in the order in which they are added.

    Held-out meanings are left out, unless they are the next cards of the order (`held_out="next"`).

    Args:
        settings: settings of the game.
        instance: instance with the held-out items.
        seed: seed of the person.
    """
    cards = [m for m in range(settings.content.space.size) if m not in instance.held_out]
    if settings.card_order == "by-colour":
        return tuple(cards)
    first = designed_cards(settings, instance, seed) if settings.card_order == "designed" else ()
    rest = [m for m in cards if m not in first]
    return (*first, *_shuffled(rest, seed, "cards"))


def designed_cards(settings: StudyGameSettings, instance: Instance, seed: int) -> tuple[int, ...]:
    """Return cards that show every color and every shape of the held-out items twice.

    Colors and shapes are renumbered so that held-out item i has color i and shape i. If fewer than three items are
    held out, other values fill the numbers up to 2. The cards (color, shape) are all pairs of different numbers:
    (0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1).
    """
    values = settings.content.values
    colours = _first(values, [m // values for m in instance.held_out], seed, "colours")
    shapes = _first(values, [m % values for m in instance.held_out], seed, "shapes")
    pairs = combinations(range(max(len(instance.held_out), LEAST_DESIGNED)), 2)
    return tuple(colours[a] * values + shapes[b] for pair in pairs for a, b in (pair, pair[::-1]))


def _first(values: int, first: list[int], seed: int, name: str) -> list[int]:
    """Return the values in `first`, then all other values in random order."""
    return [*first, *_shuffled([v for v in range(values) if v not in first], seed, name)]


def _shuffled(of: Sequence[int], seed: int, *names: str | int) -> list[int]:
    return [of[int(place)] for place in stream(seed, *names).permutation(len(of))]


def draw(bag: Bag, cards: Sequence[int], last: int | None, seed: int, purpose: str) -> tuple[int, Bag]:
    """Draw a card from a bag. The bag is refilled when it is empty or when the number of cards has changed.

    Args:
        bag: the bag after the previous draw.
        cards: meanings of the available cards.
        last: the previous card, which is not the first of a refilled bag; None if there is none.
        seed: seed of the person.
        purpose: "test" or "train".

    Returns:
        The meaning of the card, and the bag after the draw.
    """
    if not bag.left or bag.cards != len(cards):
        number = bag.number + 1
        left = _shuffled(cards, seed, purpose, number)
        if left[0] == last and len(left) > 1:
            left = [*left[1:], left[0]]
        bag = Bag(number, len(cards), tuple(left))
    return bag.left[0], replace(bag, left=bag.left[1:])


def draw_with_replacement(bag: Bag, cards: Sequence[int], seed: int, purpose: str) -> tuple[int, Bag]:
    """Draw a card with replacement; see `draw`. The bag only counts the draws."""
    number = bag.number + 1
    return cards[int(stream(seed, purpose, number).integers(len(cards)))], Bag(number, len(cards))
