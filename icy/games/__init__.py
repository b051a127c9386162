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
from icy.records.kinds import JobKind, register_job_kind

from . import perception as _perception  # noqa: F401  registers the perceptions
from . import worlds as _worlds  # noqa: F401  registers the worlds
from .settings import MEASURES, GamesRequest, GamesSettings, game_conventions

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = renamed(__name__, {"LearningSettings": "GamesLearningSettings"}, _load)

register_job_kind(
    JobKind(
        "games",
        "Train agents of multi-target games.",
        request=GamesRequest,
        settings=GamesSettings,
        rows="icy.games.jobs:rows",
        behavior="icy.games.model:behaviors",
        train="icy.games.game_stack:train",
        rehearse="icy.games.game_stack:rehearse",
        source="CBM24; MuGoodman21; icy",
        table="icy.analysis.tables.games:games_table",
        measures=(
            *("soft_accuracy", "seen_accuracy", "seen_cbm", *MEASURES),
            *("best_step", "rule_length", "targets", "distractors", "message_length"),
        ),
        curve=("steps", "accuracy", "loss", "cbm", "topsim", "words"),
        noun="agents",
        model="icy.games.playing:game_model",
        command="games train",
        conventions=game_conventions,
        evaluates="games eval",
    )
)
