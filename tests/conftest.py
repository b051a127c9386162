"""Shared by all tests: one thread, so that numbers repeat to the last bit, and a small probe to look at."""

from pathlib import Path

import pytest

import icy
from icy.core.registry import registry

TINY = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 2, "target": 0.6, "settings": {"check_every": 20}}


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one finished row."""
    return tmp_path_factory.mktemp("tiny") / "results"


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> icy.ProbeResult:
    """FC2L on perm and rot in a space of nine meanings, in this process."""
    return icy.probe("sender/FC2L", ["perm", "rot"], workers=1, out=tiny_folder, **TINY)


@pytest.fixture
def forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    registry.load_all()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(registry, "plugin_files", list(registry.plugin_files))
