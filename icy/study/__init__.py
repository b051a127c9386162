"""Secret Spy Codes: the human study of Icy22, for people, simulated players and models of the zoo."""

from . import players as _players  # noqa: F401  registers them
from . import registered as _registered  # noqa: F401  likewise
