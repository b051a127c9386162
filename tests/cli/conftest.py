"""A results folder and a plug-in file for the tests of the command line."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from icy.core.registry import registry


@pytest.fixture(autouse=True, scope="session")
def signals_that_are_heard() -> None:
    """Undo that a shell without jobs, or nohup, has tests and the commands that they start ignore some signals."""
    for one, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(one) == signal.SIG_IGN:
            signal.signal(one, usual)


@pytest.fixture
def out(tmp_path: Path) -> str:
    """A results folder that is not there yet."""
    return str(tmp_path / "results")


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[str]:
    """A plug-in file with a good and a bad sender, forgotten again after the test."""
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch, icy\n"
        "class Base(torch.nn.Module):\n"
        "    def __init__(self, space, message_length, vocab_size, hidden_size, **options):\n"
        "        super().__init__()\n"
        "        self.shape = (message_length, vocab_size + 1)\n"
        "        self.embed = torch.nn.Embedding(space.attributes * space.values, message_length * (vocab_size + 1))\n"
        "@icy.register_sender('CliGood')\n"
        "class Good(Base):\n"
        "    'A sum of embeddings.'\n"
        "    def forward(self, meanings):\n"
        "        return self.embed(meanings).sum(1).unflatten(-1, self.shape)\n"
        "@icy.register_sender('CliBad')\n"
        "class Bad(Base):\n"
        "    def forward(self, meanings):\n"
        "        return self.embed(meanings).sum(1)\n"
    )
    yield str(file)
    registry.plugin_files.clear()
    for name in ("CliGood", "CliBad"):
        registry._entries.pop(("sender", name), None)
