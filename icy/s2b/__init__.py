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

import lazy_loader

from . import agents as _agents  # noqa: F401  registers the jobs that train agents
from . import environments as _environments  # noqa: F401  likewise
from . import players as _players  # noqa: F401  likewise
from . import text as _text  # noqa: F401  likewise
from .agents import cores as _cores  # noqa: F401  likewise

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
