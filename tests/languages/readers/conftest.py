"""Interactions of EGG, as tests of readers need them."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.languages.helpers import GRID, SYMBOLS, Save


@dataclass
class Interaction:
    """Has the fields of EGG's class."""

    sender_input: Any = None
    receiver_input: Any = None
    labels: Any = None
    aux_input: Any = None
    message: Any = None
    receiver_output: Any = None
    message_length: Any = None
    aux: Any = None


@pytest.fixture
def save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Save:
    """Saves interactions as EGG does, where EGG is not installed afterwards."""

    def saved(name: str = "interaction_gpu0", module: str = "egg.core.interaction", **held: Any) -> Path:
        parts = module.split(".")
        modules = {".".join(parts[:n]): types.ModuleType(module) for n in range(1, len(parts) + 1)}
        with monkeypatch.context() as patch:
            for own, made in modules.items():
                patch.setitem(sys.modules, own, made)
            patch.setattr(Interaction, "__module__", module)
            modules[module].Interaction = Interaction  # type: ignore[attr-defined]
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            old = held.pop("old", False)
            fields = {"sender_input": torch.tensor(GRID), "message": SYMBOLS, "aux": {}, **held}
            torch.save(Interaction(**fields), tmp_path / name, _use_new_zipfile_serialization=not old)
        return tmp_path / name

    return saved
