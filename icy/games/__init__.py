"""The multi-target games of CBM24: worlds, turns, channels and agents.

In a turn, a sender is shown target objects that share a rule, such as "red and on the left", and sends a message; a
receiver says of every object shown whether it is a target. Worlds (`icy list worlds`) say what the objects are and how
agents see them.

Example:
    >>> import icy
    >>> icy.games.make_world("thing").shape
    (270,)
"""

import warnings

import lazy_loader

from . import perception as _perception  # noqa: F401  registers perceptions
from . import registered as _registered  # noqa: F401  likewise
from . import worlds as _worlds  # noqa: F401  registers them

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_load = __getattr__


def __getattr__(name: str) -> object:
    """Return a public name; an old one with a warning."""
    if name == "LearningSettings":
        warnings.warn("icy.games.LearningSettings is now icy.games.GamesLearningSettings", FutureWarning, stacklevel=2)
        name = "GamesLearningSettings"
    return _load(name)
