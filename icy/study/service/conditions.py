"""Assignment of conditions, in permuted blocks: each block has every condition once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from icy.core.streams import stream
from icy.study.game import StudyGameSettings

from .clock import before
from .plan import Conditions
from .studies import Study


@dataclass(frozen=True)
class Slot:
    """A place in the order of conditions.

    Attributes:
        number: number of the place, from 0.
        cell: name of the condition.
        game: game settings of the condition.
        instance: number of the instance, and of the block; people in a block share held-out items.
    """

    number: int
    cell: str
    game: StudyGameSettings
    instance: int


def slots(conditions: Conditions) -> Iterator[Slot]:
    """Yield the places of a study, in the order of assignment.

    Example:
        >>> places = list(slots(Conditions(dataset=["synth"], grammar=["rot", "perm"], quota=2)))
        >>> [place.instance for place in places], {place.cell for place in places[:2]} == {"synth/rot", "synth/perm"}
        ([0, 0, 1, 1], True)
    """
    number = count()
    for block in count():
        left = [cell for cell in conditions.cells if not 0 < conditions.quota_of(cell[0]) <= block]
        if not left:
            return
        for place in stream(conditions.list_seed, "block of conditions", block).permutation(len(left)):
            cell, game = left[int(place)]
            yield Slot(next(number), cell, game, block)


TAKEN = """
    SELECT game.slot FROM game JOIN person ON person.id = game.person
    WHERE person.study = ? AND person.pilot = ?
        AND (game.state = 'closed' OR game.state <> 'dropped' AND game.touched > ?)
"""


def free_slot(connection: sqlite3.Connection, study: Study) -> Slot | None:
    """Return the first place without a finished or active game; None if no place is free."""
    conditions = study.plan.conditions
    limit = before(study.now(), minutes=conditions.drop_after)
    taken = {slot for (slot,) in connection.execute(TAKEN, (study.number, study.is_pilot, limit))}
    return next((slot for slot in slots(conditions) if slot.number not in taken), None)
