"""Every example in a docstring gives the output that it shows."""

import doctest
import importlib
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = sorted(path.parent.name for path in (ROOT / "icy").glob("*/__init__.py"))
SLOW = {"analysis", "experiments", "s2b", "testing"}  # which plot, train and play


def modules_with_examples(folder: Path) -> list[str]:
    """Return the modules in a folder of icy that have examples."""
    files = [Path(parent, name) for parent, _, names in os.walk(folder) for name in names if name.endswith(".py")]
    found = [file.relative_to(ROOT).with_suffix("") for file in files if ">>>" in file.read_text(encoding="utf-8")]
    return sorted(".".join(file.parts).removesuffix(".__init__") for file in found)


@pytest.mark.parametrize(
    "package", [pytest.param(name, marks=[pytest.mark.docs] if name in SLOW else []) for name in PACKAGES]
)
def test_examples(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests) -> None:
    monkeypatch.chdir(tmp_path)
    for name in modules_with_examples(ROOT / "icy" / package):
        with subtests.test(name):
            assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_of_icy_itself() -> None:
    assert doctest.testmod(importlib.import_module("icy")).failed == 0
