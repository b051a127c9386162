"""Every example in a docstring gives what it says."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import icy


def modules() -> list[str]:
    found = [m.name for m in pkgutil.walk_packages(icy.__path__, "icy.") if not m.name.endswith("__main__")]
    return ["icy", *(name for name in found if ">>>" in source(name))]


def source(name: str) -> str:
    spec = importlib.util.find_spec(name)
    is_python = spec is not None and spec.origin is not None and spec.origin.endswith(".py")
    return Path(str(spec.origin)).read_text() if spec and is_python else ""


@pytest.mark.parametrize("name", modules())
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0
