"""Creation of worlds by name."""

from typing import Any

from icy.core.errors import PluginError
from icy.core.registry import WORLD, Entry, registry

from .bank import Bank
from .world import World


def make_world(name: str, *, bank: int = 0, **options: Any) -> World:
    """Create a world by name.

    Args:
        name: name of a registered world (`icy list worlds`).
        bank: number of looks of each object to store for training, in addition to those for evaluations; 0: every
            object is drawn again.
        **options: options of the world, as in `canvas=32`.

    Returns:
        The world. Its method `observe` gives the look of objects.

    Raises:
        UnknownNameError: no world has this name.
        InvalidSettingError: the world does not accept a value, or the bank is too large.
        PluginError: the world does not accept these options, or is not a `World`.

    Example:
        >>> from icy.games import make_world
        >>> make_world("thing", attributes=2, values=3).concepts
        ('1.1', '1.2', '1.3', '2.1', '2.2', '2.3')
    """
    world = make_from_entry(registry.get(name, WORLD), **options)
    return Bank(world, bank) if bank else world


def make_from_entry(entry: Entry, **options: Any) -> World:
    """Create the world of a registry entry; see `make_world`."""
    made = entry.create(**options)
    if not isinstance(made, World):
        raise PluginError(f"{entry.qualified} makes a {type(made).__name__}; derive it from icy.games.World.")
    return made
