"""Small searches, and a plug-in with options of its own."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from icy.experiments.requests import SearchRequest
from icy.experiments.search.setup import SearchSetup, set_up
from tests.helpers import TINY

MODELS = ["sender/FC1L", "sender/FC2L"]
SMALL: dict[str, Any] = {**TINY, "seeds": 1, "model": MODELS, "minimize": "ratio:perm", "workers": 1, "finalists": 0}

PLUGIN = """
    from torch import nn
    import icy

    @icy.register_sender("Mine", source="a test"{fields})
    class Mine(nn.Module):
        "A sender with two options."

        def __init__(self, space, message_length, vocab_size, hidden_size, depth=1, tanh=False):
            super().__init__()
            self.values, self.shape = space.values, (message_length, vocab_size + 1)
            sizes = [space.attributes * space.values] + depth * [hidden_size]
            layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
            self.net = nn.Sequential(*layers, nn.Tanh() if tanh else nn.Identity())
            self.out = nn.Linear(sizes[-1], message_length * (vocab_size + 1))

        def forward(self, meanings):
            first = nn.functional.one_hot(meanings, self.values).flatten(-2).to(self.out.weight.dtype)
            return self.out(self.net(first)).unflatten(-1, self.shape)
"""
CHOICES = ', choices={"depth": (1, 2), "tanh": (False, True)}'


def plugin_file(folder: Path, fields: str = "") -> Path:
    """Write a plug-in that registers the sender Mine."""
    file = folder / "mine.py"
    file.write_text(textwrap.dedent(PLUGIN).format(fields=fields))
    return file


def setup_of(**given: Any) -> SearchSetup:
    """Return the setup of a small search."""
    return set_up(SearchRequest.asked(**{**SMALL, **given}))
