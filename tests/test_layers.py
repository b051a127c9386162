"""Every import points to a lower layer (the contract in pyproject.toml), and no imports make a circle.

Imports inside functions and imports for types count too. `lint-imports` checks the contract from the command line.
"""

from __future__ import annotations

import logging.config
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports


def test_every_import_points_to_a_lower_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)
    monkeypatch.setattr(logging.config, "dictConfig", lambda config: None)  # it would silence the loggers of icy
    assert lint_imports(no_cache=True) == 0  # it prints the wrong imports with their lines


def test_no_imports_make_a_circle() -> None:
    graph = grimp.build_graph("icy", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 350
    TopologicalSorter(imports).prepare()  # its error names the modules of a circle
