"""The trained agent that comes with icy. `benchmarks/s2b_memory.py` makes its file."""

from pathlib import Path

from icy.core.registry import LISTENER
from icy.s2b.players.base import Player

from .kept import one_agent

FILE = Path(__file__).with_name("memory.safetensors")


def memory() -> Player:
    """Return the attention memory that comes with icy, a listener for three dimensions and messages of three tokens.

    It was trained by reward alone on 2 to 5 values with up to 32 tokens, and plays any number of values, stimuli and
    samples.
    """
    return one_agent(FILE).player(LISTENER)
