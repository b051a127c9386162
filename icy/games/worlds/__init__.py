"""Worlds of the multi-target games: what objects there are, and how agents see them. They register like plug-ins."""

from typing import TYPE_CHECKING

from icy.core.registry import register_world

_WORLDS = {
    "thing": (
        "thing:Thing",
        "Objects of five attributes with ten values, seen as one-hot vectors.",
        "CBM24, section 4",
    ),
    "shape": ("shape:Shape", "Images of a figure on black: 5 shapes, 6 colours, 3 x 3 places.", "CBM24, section 4"),
}

for _name, (_place, _description, _source) in _WORLDS.items():
    register_world(_name, f"{__name__}.{_place}", description=_description, source=_source)

_WHERE = {"Bank": "bank", "Shape": "shape", "Thing": "thing", "World": "base", "make_world": "factory"}

__all__ = ["Bank", "Shape", "Thing", "World", "make_world"]

if TYPE_CHECKING:
    from .bank import Bank
    from .base import World
    from .factory import make_world
    from .shape import Shape
    from .thing import Thing
else:

    def __getattr__(name: str) -> object:
        """Import a name on first access (PEP 562), and keep it."""
        if name not in _WHERE:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        from importlib import import_module

        globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        return globals()[name]
