"""A small language by hand, and interactions of EGG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

MESSAGES = [[0, 0], [0, 1], [1, 0], [1, 2]]
GRID = [[a, b] for a in range(3) for b in range(3)]
SYMBOLS = torch.tensor([[1 + a, 4 + b, 0] for a, b in GRID])
Save = Callable[..., Path]


def small() -> Language:
    return Language(MeaningSpace(2, 2), np.array(MESSAGES), 3, name="small", seed=5)
