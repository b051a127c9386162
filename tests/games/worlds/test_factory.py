"""Worlds by name."""

from __future__ import annotations

import pytest

from icy.core.errors import PluginError, UnknownNameError
from icy.core.registry import WORLD, Entry, registry
from icy.games import World, make_world
from icy.games.worlds import Bank, Shape, Thing


def test_worlds_are_made_by_name() -> None:
    assert type(make_world("thing")) is Thing
    assert type(make_world("world/shape", canvas=32)) is Shape
    assert type(make_world("shape", bank=3)) is Bank


def test_a_world_has_numbers_of_values_and_of_concepts() -> None:
    world = make_world("shape")
    assert (world.sizes, world.objects, world.first_concepts) == ((5, 6, 3, 3), 270, (0, 5, 11, 14))
    assert len(world.concepts) == 17


def test_invalid_worlds_are_rejected() -> None:
    with pytest.raises(UnknownNameError, match=r"No world is called 'things'; did you mean thing.*`icy list worlds`"):
        make_world("things")
    with pytest.raises(PluginError, match="world/thing cannot be made"):
        make_world("thing", canvas=3)
    entry = Entry(WORLD, "nothing", dict, "", "", origin=__name__)
    with registry.holding(entry), pytest.raises(PluginError, match=r"makes a dict; derive it from icy\.games\.World"):
        make_world("nothing")


def test_values_with_the_same_name_get_their_attribute() -> None:
    class Twice(Thing):
        """Two attributes with the same names of values."""

        def __init__(self) -> None:
            super().__init__(2, 2)
            self.attributes, self.values = ("left", "right"), (("red", "blue"), ("red", "green"))

    world: World = Twice()
    assert world.concepts == ("left red", "blue", "right red", "green")
