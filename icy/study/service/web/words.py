"""The texts of the pages: one file per language."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from markdown_it import MarkdownIt
from markupsafe import Markup

from icy.core.errors import unknown

FOLDER = Path(__file__).with_name("texts")
MARKDOWN = MarkdownIt("commonmark", {"html": False})  # HTML tags are escaped


def languages() -> list[str]:
    """Return the languages of the pages."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@cache
def words(language: str) -> SimpleNamespace:
    """Return the texts of a language, by nested names, as in `words("en").game.send`.

    Raises:
        UnknownNameError: there are no texts in this language.
    """
    if language not in languages():
        raise unknown("language of the pages", language, languages())
    found = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    return SimpleNamespace(**{name: _namespaces(value) for name, value in found.items()})


def _namespaces(found: object) -> object:
    if isinstance(found, dict):
        return SimpleNamespace(**{name: _namespaces(value) for name, value in found.items()})
    return [_namespaces(one) for one in found] if isinstance(found, list) else found


def fill(text: str, **values: object) -> str:
    """Replace {names} in a text by values."""
    return text.format(**values)


def counted(number: int, forms: Sequence[str]) -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, ["{n} point", "{n} points"]), counted(2, ["{n} point", "{n} points"])
        ('1 point', '2 points')
    """
    return forms[number != 1].format(n=number)


def inline(text: str) -> Markup:
    """Convert a line of Markdown to HTML."""
    return Markup(MARKDOWN.renderInline(text))  # icy's own texts, and escaped


def block(text: str, top: int = 1) -> Markup:
    """Convert Markdown to HTML. HTML tags in the text are escaped.

    Args:
        text: Markdown text.
        top: highest level of a heading; headings above it are lowered, all by the same number of levels.
    """
    tokens = MARKDOWN.parse(text)
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    lower = max(0, top - min((int(token.tag[1]) for token in headings), default=top))
    for token in headings:
        token.tag = f"h{min(6, int(token.tag[1]) + lower)}"
    return Markup(MARKDOWN.renderer.render(tokens, MARKDOWN.options, {}))


def numbered(options: Sequence[str]) -> list[tuple[str, str]]:
    """Return options of a form field, with their positions as values."""
    return [(str(place), option) for place, option in enumerate(options)]


def zipped(options: Sequence[str]) -> list[tuple[str, str]]:
    """Return options of a form field, with their texts as values."""
    return [(option, option) for option in options]
