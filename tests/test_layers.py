"""The layers of the code: every import points to a lower room, and there are no circles.

Imports inside functions and for types count as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"icy": "icy", "models": "icy.models", "grammars": "icy.grammars", "analysis": "icy.analysis"}
LAYERS = (  # low to high; the rooms of one line do not import each other
    ("core",),
    ("languages",),
    ("config", "models", "grammars", "metrics"),
    ("records",),
    ("training",),
    ("s2b", "analysis", "games", "study"),
    ("experiments", "testing"),
    ("cli",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
IN_NO_ROOM = {"icy", "icy.__main__", "icy.version"}

Sources = Mapping[str, str]
"""Module name to source text; a package is named `package.__init__`, so that relative imports can be resolved."""
Graph = dict[str, set[str]]
"""Module name to the modules that it imports."""


def sources() -> dict[str, str]:
    """Return the text of every module of icy."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if folder != "icy" or parts[0] not in FOLDERS:  # not by the links icy/models, ... once more
                found[".".join([package, *parts])] = path.read_text(encoding="utf-8")
    return found


def room_of(module: str) -> str | None:
    """Return `core` for icy.core.errors, and None for icy itself and what stands beside the rooms."""
    return None if module in IN_NO_ROOM else module.split(".")[1]


def imports(source: str, package: str, known: set[str]) -> Iterator[str]:
    """Yield the modules in `known` that a source text in a package imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for name in node.names:  # either a submodule or something defined in the package
                module = f"{base}.{name.name}" if f"{base}.{name.name}" in known else base
                if module in known:
                    yield module


def edges(of: Sources) -> Graph:
    """Map every module to those that it imports."""
    known = {name.removesuffix(".__init__") for name in of}
    return {
        (module := name.removesuffix(".__init__")): set(imports(text, name.rpartition(".")[0], known)) - {module}
        for name, text in of.items()
    }


@cache
def tree() -> Graph:
    """Return the imports of all of icy."""
    return edges(sources())


def upward(graph: Graph) -> list[str]:
    """List the imports that do not point to a lower room."""

    def allowed(here: str | None, there: str | None) -> bool:
        return here is None or there is None or here == there or LEVEL[there] < LEVEL[here]

    return [
        f"{module} imports {target}"
        for module, targets in sorted(graph.items())
        for target in sorted(targets)
        if not allowed(room_of(module), room_of(target))
        or (target == "icy" and room_of(module))  # whose names are loaded from all rooms
    ]


def circle(graph: Graph) -> list[str]:
    """Return the modules of one circle in order, the first again at the end, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_every_module_is_in_a_room() -> None:
    modules = tree()
    assert len(modules) > 150
    assert {room_of(module) for module in modules} - {None} <= set(LEVEL)


def test_no_import_points_upward_or_across() -> None:
    assert upward(tree()) == []


def test_no_imports_make_a_circle() -> None:
    assert circle(tree()) == []


HOUSE = {
    "icy.__init__": "",
    "icy.core.__init__": "",
    "icy.core.errors": "",
    "icy.core.registry": "from .errors import IcyError\nimport json",
    "icy.models.__init__": "from icy.core import registry",
    "icy.models.cells": "from icy.core.registry import register_cell",
    "icy.grammars.__init__": "",
    "icy.s2b.players.__init__": "from .. import game\nfrom . import base",
    "icy.s2b.players.base": "",
    "icy.s2b.game": "import icy.core.errors",
    "icy.analysis.style": "",
}


def test_a_sound_house_passes() -> None:
    assert upward(edges(HOUSE)) == []
    assert circle(edges(HOUSE)) == []
    assert edges(HOUSE)["icy.s2b.players"] == {"icy.s2b.game", "icy.s2b.players.base"}


@pytest.mark.parametrize(
    ("module", "source", "target"),
    [
        ("icy.core.errors", "from icy.models.cells import Cell", "icy.models.cells"),
        ("icy.core.errors", "import icy.models.cells as cells", "icy.models.cells"),
        ("icy.core.errors", "def f():\n    from icy.models import cells", "icy.models.cells"),
        ("icy.core.errors", "if TYPE_CHECKING:\n    import icy.s2b.game", "icy.s2b.game"),
        ("icy.core.errors", "from ..models.cells import Cell", "icy.models.cells"),
        ("icy.core.__init__", "from ..models import cells", "icy.models.cells"),
        ("icy.models.cells", "from icy.grammars import make_language", "icy.grammars"),  # a room of the same level
        ("icy.s2b.game", "def f():\n    from icy.analysis.style import ink", "icy.analysis.style"),
        ("icy.s2b.game", "import icy", "icy"),  # whose names are loaded from all rooms
        ("icy.s2b.game", "from icy import probe", "icy"),
    ],
)  # fmt: skip
def test_a_planted_upward_import_is_found(module: str, source: str, target: str) -> None:
    planted = edges({**HOUSE, module: source})
    assert upward(planted) == [f"{module.removesuffix('.__init__')} imports {target}"]


@pytest.mark.parametrize(
    ("planted", "members"),
    [
        ({"icy.core.errors": "from .registry import registry"}, {"icy.core.errors", "icy.core.registry"}),
        (
            {"icy.core.errors": "def f():\n    import icy.core.checks", "icy.core.checks": "from . import registry"},
            {"icy.core.errors", "icy.core.checks", "icy.core.registry"},
        ),
        ({"icy.s2b.players.base": "from icy.s2b.players import Player"}, {"icy.s2b.players", "icy.s2b.players.base"}),
    ],
)
def test_a_planted_circle_is_found(planted: dict[str, str], members: set[str]) -> None:
    graph = edges({**HOUSE, **planted})
    found = circle(graph)
    assert set(found) == members
    assert found[0] == found[-1]
    assert upward(graph) == []
