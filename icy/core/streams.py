"""Named random streams: every draw in icy comes from a stream derived from a seed and a name, never from global state.

Two streams with different names are independent, and drawing more from one never shifts another. So all grammars of a
seed share their base words, and a seed's numbers do not depend on what else is run.
"""

from __future__ import annotations

import hashlib

import numpy as np


def stream_key(seed: int, *names: str | int) -> int:
    """Return the 63-bit key of the stream `names` of `seed`, the same on every machine and Python version."""
    text = "\x1f".join(["icy", str(int(seed)), *map(str, names)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return a NumPy generator for the stream `names` of `seed`.

    Example:
        >>> from icy.core.streams import stream
        >>> a, b = stream(3, "words").integers(100, size=4), stream(3, "words").integers(100, size=4)
        >>> bool((a == b).all())
        True
    """
    return np.random.Generator(np.random.PCG64(stream_key(seed, *names)))
