"""`icy.list`: names of everything that is registered."""

from __future__ import annotations

import pytest

import icy
from icy.core.errors import UnknownNameError
from icy.core.register import LISTED
from icy.core.registry import registry


def test_every_kind_is_listed() -> None:
    listed = {name for kind in LISTED for name in icy.list(kind)}
    assert listed == {
        e.qualified if e.kind in (*LISTED["models"], *LISTED["players"]) else e.name for e in registry.entries()
    }


@pytest.mark.parametrize(
    ("kind", "pattern", "names"),
    [
        ("sender", "FC*", ["sender/FC1L", "sender/FC2L"]),
        ("Text models", "http", ["http"]),
        ("study_player", ["composer", "fam*"], ["composer", "family"]),
        ("listeners", "posdis", ["listener/posdis"]),
    ],
)
def test_names_match_a_pattern(kind: str, pattern: str | list[str], names: list[str]) -> None:
    assert icy.list(kind, pattern) == names


def test_unknown_kinds_are_rejected() -> None:
    with pytest.raises(UnknownNameError, match="No kind to list is called 'modles'; did you mean models"):
        icy.list("modles")


def test_a_star_import_keeps_pythons_list() -> None:
    assert "list" not in icy.__all__
