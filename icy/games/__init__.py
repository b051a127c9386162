"""The multi-target games of CBM24: worlds, turns, representations and agents.

In a turn, a sender sees target objects that share a rule, such as "red and on the left", and sends a message. A
receiver sees targets and distractors, and classifies each as target or distractor. A world (`icy list worlds`) defines
the objects and how agents see them.

Example:
    >>> import icy
    >>> icy.games.make_world("thing").shape
    (270,)
"""

import lazy_loader

from icy.core.importing import renamed
from icy.core.register import register_kind_at

from . import perception as _perception  # noqa: F401  registers the perceptions
from . import worlds as _worlds  # noqa: F401  registers the worlds

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = renamed(__name__, {"LearningSettings": "GamesLearningSettings"}, _load)

register_kind_at(
    "games", f"{__name__}.settings:GAMES", "Train agents of multi-target games.", "CBM24; MuGoodman21; icy"
)
