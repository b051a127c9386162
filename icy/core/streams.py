"""Named random streams: every random number in icy is from a stream of a seed and a name, never from global state.

Streams with different names are independent, and draws from one stream never change another. So all grammars of a seed
share their base words, and the numbers of a seed do not depend on other seeds in the run.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np

# Of languages: from icy's streams, or from the generators of the authors' program.
DrawsName = Literal["icy", "authors"]
Seed = int | np.random.Generator


def stream_key(seed: int, *names: str | int) -> int:
    """Return the 63-bit key of the stream `names` of `seed`, the same on every machine and Python version.

    Returns:
        A whole number from 0 to 2**63 - 1.
    """
    text = "\x1f".join(["icy", str(int(seed)), *map(str, names)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def stream(seed: Seed, *names: str | int) -> np.random.Generator:
    """Return a NumPy generator for the stream `names` of `seed`; a seed that is a generator is returned itself.

    Returns:
        A new generator at the start of the stream, so two calls give the same draws.

    Example:
        >>> from icy.core.streams import stream
        >>> a, b = stream(3, "words").integers(100, size=4), stream(3, "words").integers(100, size=4)
        >>> bool((a == b).all())
        True
    """
    if not isinstance(seed, (int, np.integer)):
        return seed
    return np.random.Generator(np.random.PCG64(stream_key(int(seed), *names)))
