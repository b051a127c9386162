"""The cheating language of MetaRG22 and MetaRG24: the numbers of a stimulus as digits, regardless of the episode."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError
from icy.s2b.settings import GameSettings
from icy.s2b.streams import Wholes


def check_digital(settings: GameSettings) -> None:
    """Refuse a game that the digital players cannot play.

    Raises:
        IncompatibleError: stimuli are not continuous, or messages have fewer tokens than dimensions.
    """
    if settings.representation != "scs" or settings.length < settings.dimensions:
        raise IncompatibleError("The digital players need continuous stimuli (scs) and a token per dimension (length).")


def digits(stimuli: Float[NDArray[Any], "*lead dimension"], vocab_size: int) -> Int64[Wholes, "*lead dimension"]:
    """Return in which of V equal parts of [-1, 1] numbers lie, counted from 1."""
    found: Wholes = np.clip(np.floor((stimuli + 1) / 2 * vocab_size), 0, vocab_size - 1).astype(np.int64) + 1
    return found
