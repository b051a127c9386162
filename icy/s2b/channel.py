"""The channel between the players: sentences of tokens, and the renaming of tokens between speaker and listener.

A sentence has L tokens in 0..V. Token 0 ends the sentence and is never renamed. A sentence is regular if only zeros
follow its first zero. `regular` takes NumPy arrays and torch tensors alike.
"""

from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Int, Int64
from numpy.typing import NDArray

from .episode_streams import EpisodeStreams, Wholes

END = 0  # the token that ends a sentence
Array = Any  # a NumPy array or a torch tensor


def regular(tokens: Int[Array, "batch length"]) -> Int[Array, "batch length"]:
    """Set every token after a sentence's first end token to the end token, [B, L]."""
    columns, going = [tokens[:, 0]], True
    for place in range(1, tokens.shape[1]):  # by column, because reducing along this short axis is slower
        going = going & (tokens[:, place - 1] != END)
        columns.append(tokens[:, place] * going)
    if isinstance(tokens, np.ndarray):
        return np.stack(columns, 1)
    import torch

    return torch.stack(columns, 1)


def permutations(streams: EpisodeStreams, vocab_size: int, asked: bool = True) -> Int64[Wholes, "batch vocab"]:
    """Draw the renaming of tokens: the token that the listener hears for each token of the speaker, [B, V + 1].

    The end token keeps its number. With `asked` False, all tokens do. The authors' program renames the tokens of each
    player. Two random renamings compose to one, so one is drawn here.
    """
    count = len(streams.keys)
    renamed = streams.order("vocabulary", vocab_size) if asked else np.arange(vocab_size)[None].repeat(count, 0)
    return np.concatenate([np.zeros((count, 1), dtype=np.int64), renamed + 1], axis=1)


def inverses(mappings: Int64[Wholes, "batch vocab"]) -> Int64[Wholes, "batch vocab"]:
    """Return the inverse renamings: the token that the speaker hears for each token of the listener, [B, V + 1]."""
    return np.argsort(mappings, axis=1)


# -- numbers of sentences ----------------------------------------------------------------------------------------------


def sentence_count(vocab_size: int, length: int) -> int:
    """Count the regular sentences of up to `length` tokens: the sum of V^l for l from 0 to L.

    Example:
        >>> sentence_count(6, 3), sentence_count(6, 4), sentence_count(4, 3)
        (259, 1555, 85)
    """
    return sum(vocab_size**n for n in range(length + 1))


@cache
def sentences(vocab_size: int, length: int) -> Int64[NDArray[np.int64], "sentence length={length}"]:
    """Return all regular sentences of up to L tokens, [sentences, L].

    Shorter sentences come first, and the first token varies fastest. The row of a sentence is its number.

    Example:
        >>> sentences(2, 2).tolist()
        [[0, 0], [1, 0], [2, 0], [1, 1], [2, 1], [1, 2], [2, 2]]
    """
    found = np.zeros((sentence_count(vocab_size, length), length), dtype=np.int64)
    for n in range(1, length + 1):
        first = sentence_count(vocab_size, n - 1)
        place = np.arange(vocab_size**n)
        for j in range(n):
            found[first : first + len(place), j] = place // vocab_size**j % vocab_size + 1
    found.flags.writeable = False  # the cache shares it between all callers
    return found
