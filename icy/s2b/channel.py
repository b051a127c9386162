"""The channel between the players: regular sentences, their numbers, and the renaming of tokens.

A sentence is L tokens in 0..V. Token 0 ends it and is never renamed; whatever follows it is 0 too. Functions here take
and give arrays of NumPy or tensors of torch alike.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .streams import Draws, Wholes

END = 0  # the token that ends a sentence
Array = Any  # of NumPy or torch


def library_of(array: Array) -> ModuleType:
    """NumPy or torch, whichever an array is of."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def regular(tokens: Array) -> Array:
    """Sentences in which nothing but the end follows the end, [B, L]."""
    columns, going = [tokens[:, 0]], True
    for place in range(1, tokens.shape[1]):  # one column after another: a reduction along so short an axis is slower
        going = going & (tokens[:, place - 1] != END)
        columns.append(tokens[:, place] * going)
    return library_of(tokens).stack(columns, 1)


def permutations(draws: Draws, vocab_size: int, asked: bool = True) -> Wholes:
    """What the listener hears for each token of the speaker: the end for the end, the others renamed, [B, V + 1].

    The authors' program renames for either player; of two random renamings one after the other comes one.
    """
    count = len(draws.keys)
    renamed = draws.order("vocabulary", vocab_size) if asked else np.arange(vocab_size)[None].repeat(count, 0)
    return np.concatenate([np.zeros((count, 1), dtype=np.int64), renamed + 1], axis=1)


def inverses(mappings: Wholes) -> Wholes:
    """What the speaker hears for each token of the listener, [B, V + 1]."""
    return np.argsort(mappings, axis=1)


# -- numbers of sentences ----------------------------------------------------------------------------------------------


def sentence_count(vocab_size: int, length: int) -> int:
    """Regular sentences of up to `length` tokens: the sum of V^l for l from 0 to L.

    Example:
        >>> sentence_count(6, 3), sentence_count(6, 4), sentence_count(4, 3)
        (259, 1555, 85)
    """
    return sum(vocab_size**n for n in range(length + 1))


@cache
def sentences(vocab_size: int, length: int) -> NDArray[np.int64]:
    """Every regular sentence by its number, [sentences, L]: shorter ones first, the first token runs fastest.

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
    found.flags.writeable = False  # it is shared by all who ask
    return found


def sentence_number(tokens: Wholes, vocab_size: int) -> Wholes:
    """The numbers of regular sentences [..., L].

    Example:
        >>> sentence_number(sentences(6, 3), 6).tolist() == list(range(259))
        True
    """
    tokens = np.asarray(tokens)
    used = (tokens != END).sum(-1)
    strides = vocab_size ** np.arange(tokens.shape[-1])
    offsets = np.array([sentence_count(vocab_size, n - 1) for n in range(tokens.shape[-1] + 1)])
    found: Wholes = offsets[used] + (np.maximum(tokens - 1, 0) * strides).sum(-1)
    return found
