"""Worlds of the multi-target games: the objects, and how agents see them."""

import lazy_loader

from icy.core.register import register_world

_WORLDS = {
    "thing": (
        "thing:Thing",
        "Objects of five attributes with ten values, seen as one-hot vectors.",
        "CBM24, section 4",
    ),
    "shape": ("shape:Shape", "Images of a figure on black: 5 shapes, 6 colors, 3 x 3 places.", "CBM24, section 4"),
}

for _name, (_place, _description, _source) in _WORLDS.items():
    register_world(_name, f"{__name__}.{_place}", description=_description, source=_source)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
