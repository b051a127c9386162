"""The multi-target games of CBM24: worlds, turns, channels and agents.

In a turn, a sender is shown target objects that share a rule, such as "red and on the left", and sends a message; a
receiver says of every object shown whether it is a target. Worlds (`icy list worlds`) say what the objects are and how
agents see them.

Example:
    >>> import icy
    >>> icy.games.make_world("thing").shape
    (270,)
"""

from typing import TYPE_CHECKING

from . import perception as _perception  # noqa: F401  registers perceptions
from . import registered as _registered  # noqa: F401  likewise
from . import worlds as _worlds  # noqa: F401  registers them

_WHERE = {
    "Formulas": "formulas",
    "GameChanges": "comparison",
    "GameModel": "model",
    "LearningSettings": "settings",
    "Rules": "rules",
    "Spoken": "spoken",
    "TurnBatch": "turns",
    "TurnSettings": "turn_settings",
    "Turns": "turns",
    "World": "worlds.base",
    "cbm_floor": "floors",
    "compare": "comparison",
    "evaluate_agents": "final",
    "kept_agents": "kept",
    "language_scores": "evaluation",
    "make_oracle": "oracles",
    "make_world": "worlds.factory",
    "players": "comparison",
}

__all__ = [
    "Formulas",
    "GameChanges",
    "GameModel",
    "LearningSettings",
    "Rules",
    "Spoken",
    "TurnBatch",
    "TurnSettings",
    "Turns",
    "World",
    "cbm_floor",
    "compare",
    "evaluate_agents",
    "kept_agents",
    "language_scores",
    "make_oracle",
    "make_world",
    "players",
]

if TYPE_CHECKING:
    from .comparison import GameChanges, compare, players
    from .evaluation import language_scores
    from .final import evaluate_agents
    from .floors import cbm_floor
    from .formulas import Formulas
    from .kept import kept_agents
    from .model import GameModel
    from .oracles import make_oracle
    from .rules import Rules
    from .settings import LearningSettings
    from .spoken import Spoken
    from .turn_settings import TurnSettings
    from .turns import TurnBatch, Turns
    from .worlds.base import World
    from .worlds.factory import make_world
else:

    def __getattr__(name: str) -> object:
        """Import a name on first access (PEP 562), and keep it."""
        if name not in _WHERE:
            raise AttributeError(f"module 'icy.games' has no attribute '{name}'")
        from importlib import import_module

        globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        return globals()[name]

    def __dir__() -> list[str]:
        """Return all names, loaded or not."""
        return sorted({*globals(), *_WHERE})
