"""Mistyped and misplaced words: the sentence says what was probably meant."""

from __future__ import annotations

from icy.cli.commands.list import LISTS, kind_to_list
from icy.core.entry import ENTRY_KINDS
from tests.cli.helpers import run


def test_help_is_printed_whatever_else_is_typed() -> None:
    assert run("probe", "foo", "--help").exit_code == 0


def test_lists_have_names_in_the_singular_and_the_plural() -> None:
    for kind in (*ENTRY_KINDS, *LISTS):
        name = kind_to_list(kind)
        assert name in LISTS
        assert kind_to_list(name) == name
    one, several = run("list", "sender", "FC*"), run("list", "models", "sender/FC*")
    assert one.stdout == several.stdout != ""
    assert run("list", "speaker").stdout.count("speaker/") == run("list", "players").stdout.count("speaker/")


def test_an_empty_line_prints_the_help() -> None:
    assert "Usage: " in (done := run()).output
    assert "Traceback" not in done.output
    assert done.exit_code == run("s2b").exit_code
