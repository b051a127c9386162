"""Plug-in files, and readings of results for the tests of probes."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import icy
from icy.experiments.plan import make_plan
from icy.experiments.progress import Watcher
from icy.training.pair_settings import EndToEndRequest
from tests.helpers import TINY

SMALL_PAIR: dict[str, Any] = {
    "meanings": "2x3",
    "hidden": 8,
    "seeds": 2,
    "steps": 20,
    "workers": 1,
    "report_every": 10,
    "settings": {"batch_size": 16, "evaluation_size": 64, "learning_rate": 0.02},
}


def pair_jobs(**given: Any) -> list[Any]:
    """Return the jobs of FC2L and CNN end to end."""
    return [row.job for row in make_plan(EndToEndRequest.asked(sender="FC2L", receiver="CNN", **given)).rows]


def curves(result: icy.ProbeResult) -> dict[tuple[str, int], Any]:
    return {(r["grammar"], r["seed"]): (r["steps"], r["accuracy"], r["curve"]) for r in result.records}


class Counter(Watcher):
    """Counts recorded replicates."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []
        self.readings = 0

    def filed(self, record: dict[str, Any]) -> None:
        self.keys.append(record["key"])

    def read(self, job: Any, readings: Any) -> None:
        self.readings += len(readings)


HOLDING = {**TINY, "protocol": "generalise", "target": 0.9, "held_out": 0.3}

PLUGIN = """
    from torch import nn
    import icy

    @icy.register_sender("{name}", source="a test")
    class Sender(nn.Module):
        "A stranger's sender."

        def __init__(self, space, message_length, vocab_size, hidden_size):
            super().__init__()
            self.values, self.shape = space.values, (message_length, vocab_size + 1)
            self.net = nn.Linear(space.attributes * space.values, message_length * (vocab_size + 1))

        def forward(self, meanings):
            {body}
            return self.net(nn.functional.one_hot(meanings, self.values).flatten(-2).float()).unflatten(-1, self.shape)
"""


def plugin_file(folder: Path, name: str, body: str = "pass") -> Path:
    file = folder / f"{name.lower()}_plugin.py"
    file.write_text(textwrap.dedent(PLUGIN).format(name=name, body=body))
    return file
