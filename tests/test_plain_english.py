"""Texts are in plain English: few constructions that are hard to read, and none in help texts and errors."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from icy.cli import main
from tests.plain import ROOT, errors, habits, prose, texts

PACKAGES = ("icy", "models", "grammars", "analysis")


def per_1000_words(places: tuple[str, ...] = ()) -> float:
    """Return the number of hard constructions per 1,000 words in all files, or in those below some places."""
    found = words = 0
    for path in texts():
        if not places or path.relative_to(ROOT).as_posix().startswith(places):
            text = prose(path)
            found, words = found + len(habits(text)), words + len(text.split())
    assert words > 1000
    return 1000 * found / words


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and the help text of a command and of all commands below it."""
    yield context.command_path, command.get_help(context)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)
        assert below is not None
        yield from commands(below, click.Context(below, info_name=name, parent=context))


@pytest.mark.docs
def test_the_repository_has_few_hard_constructions() -> None:
    assert per_1000_words() <= 1.5


def test_readme_and_documentation_have_fewer() -> None:
    assert per_1000_words(("README.md", "docs/")) <= 0.5


def test_help_texts_have_none() -> None:
    shown = dict(commands(main, click.Context(main, info_name="icy")))
    assert len(shown) > 40
    assert {name: found for name, text in shown.items() if (found := habits(text))} == {}


@pytest.mark.docs
def test_errors_warnings_and_notes_have_none() -> None:
    paths = [path for path in texts() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in PACKAGES]
    shown = {
        f"{path.relative_to(ROOT)}:{line}": found
        for path in paths
        for line, text in errors(path)
        if (found := habits(text))
    }
    assert shown == {}
