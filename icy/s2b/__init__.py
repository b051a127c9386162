"""S2B, the symbolic behaviour benchmark: meta-referential games (MetaRG22, MetaRG24).

A speaker and a listener play referential games about stimuli without knowing their meanings. Every episode has its own
symbolic space and its own vocabulary. A support phase shows every value; a query phase asks for combinations of values
that the support never showed.

`BatchedGame` plays thousands of episodes at once. `parallel_env` is the game for PettingZoo, `S2B/Listener-v0` and
`S2B/Recall-v0` are environments of Gymnasium, `evaluate` scores players, and `icy s2b play` lets a person play.

Example:
    >>> from icy import s2b
    >>> s2b.evaluate("posdis", "oracle", episodes=8, seeds=2).table()["zsct"].tolist()
    [1.0, 1.0]
"""

from typing import TYPE_CHECKING

from . import players as _players  # noqa: F401  registers them
from . import text as _text  # noqa: F401  likewise
from .agents import cores as _cores  # noqa: F401  likewise
from .agents import registered as _registered  # noqa: F401  likewise
from .environments.registration import register as _register

_WHERE = {
    "AcquisitionSettings": "agents.acquisition",
    "Action": "players.base",
    "BatchedGame": "game",
    "BatchedRecall": "recall",
    "GameSettings": "settings",
    "Player": "players.base",
    "RecallSettings": "recall",
    "Scores": "scores",
    "Seat": "players.base",
    "Seen": "turn",
    "TextListener": "text.player",
    "TextModel": "text.model",
    "TextReply": "text.requests",
    "TextRequest": "text.requests",
    "TextSettings": "text.model",
    "TextSpeaker": "text.player",
    "Turn": "turn",
    "disentanglement": "language_probe",
    "ease_of_acquisition": "agents.acquisition",
    "evaluate": "evaluation",
    "evaluate_text": "text.evaluation",
    "never_listening": "evaluation",
    "parallel_env": "environments.parallel",
    "play": "evaluation",
    "probe_language": "language_probe",
    "record": "recorder",
    "text_model": "text.model",
}

__all__ = [
    "AcquisitionSettings",
    "Action",
    "BatchedGame",
    "BatchedRecall",
    "GameSettings",
    "Player",
    "RecallSettings",
    "Scores",
    "Seat",
    "Seen",
    "TextListener",
    "TextModel",
    "TextReply",
    "TextRequest",
    "TextSettings",
    "TextSpeaker",
    "Turn",
    "disentanglement",
    "ease_of_acquisition",
    "evaluate",
    "evaluate_text",
    "never_listening",
    "parallel_env",
    "play",
    "probe_language",
    "record",
    "text_model",
]

_register()

if TYPE_CHECKING:
    from .agents.acquisition import AcquisitionSettings, ease_of_acquisition
    from .environments.parallel import parallel_env
    from .evaluation import evaluate, never_listening, play
    from .game import BatchedGame
    from .language_probe import disentanglement, probe_language
    from .players.base import Action, Player, Seat
    from .recall import BatchedRecall, RecallSettings
    from .recorder import record
    from .scores import Scores
    from .settings import GameSettings
    from .text.evaluation import evaluate_text
    from .text.model import TextModel, TextSettings, text_model
    from .text.player import TextListener, TextSpeaker
    from .text.requests import TextReply, TextRequest
    from .turn import Seen, Turn
else:

    def __getattr__(name: str) -> object:
        """Import a name on first access (PEP 562), and keep it."""
        if name not in _WHERE:
            raise AttributeError(f"module 'icy.s2b' has no attribute '{name}'")
        from importlib import import_module

        globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        return globals()[name]

    def __dir__() -> list[str]:
        """Return all names, loaded or not."""
        return sorted({*globals(), *_WHERE})
