"""Shared by the tests of `benchmarks/`, whose scripts import each other as files of one folder."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import a script of the folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(name)


def models() -> list[str]:
    """Return the models that speed.py measures, without importing it."""
    assigned = [node for node in ast.parse((FOLDER / "speed.py").read_text()).body if isinstance(node, ast.Assign)]
    (rows,) = [node.value for node in assigned if getattr(node.targets[0], "id", "") == "ROWS"]
    found: tuple[str, ...] = ast.literal_eval(rows)
    return list(found)
