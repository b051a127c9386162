"""The multi-target games of CBM24: worlds, turns, representations and agents.

In a turn, a sender sees target objects that share a rule, such as "red and on the left", and sends a message. A
receiver sees targets and distractors, and classifies each as target or distractor. A world (`icy list worlds`) defines
the objects and how agents see them.

Example:
    >>> import icy
    >>> icy.games.make_world("thing").shape
    (270,)
"""

import warnings

import lazy_loader

from . import perception as _perception  # noqa: F401  registers the perceptions
from . import registered as _registered  # noqa: F401  registers the kind of job
from . import worlds as _worlds  # noqa: F401  registers the worlds

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_load = __getattr__


def __getattr__(name: str) -> object:
    """Return a public object by name. An old name works, with a warning."""
    if name == "LearningSettings":
        warnings.warn("icy.games.LearningSettings is now icy.games.GamesLearningSettings", FutureWarning, stacklevel=2)
        name = "GamesLearningSettings"
    return _load(name)
