"""Docstrings: the descriptions of arguments, and how `help()` shows arguments that a function takes by **options."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping

from .types import AnyFunction

WIDTH = 120  # of a line of a docstring
ENTRY = re.compile(r"^( *)\*\*\w+: .*(?:\n\1 +\S.*)*\n?", re.MULTILINE)  # of **options under "Args:"


def described(kind: type) -> dict[str, str]:
    """Return the description of each attribute of a class, from the docstrings of it and its base classes."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        text = inspect.cleandoc(one.__doc__ or "").partition("Attributes:")[2]
        said = re.findall(r"^    (\w+): ((?:.*)(?:\n {8}.*)*)", text, re.MULTILINE)
        found.update((name, " ".join(description.split())) for name, description in said)
    return found


def spell_out_arguments(function: AnyFunction, descriptions: Mapping[str, str], keep: bool = False) -> None:
    """Put an entry for each argument in the place of `**options` in a function's docstring.

    Args:
        function: has an entry `**options`, or of another name, in its docstring.
        descriptions: of the arguments, by name.
        keep: whether the entry `**options` stays, before the others: it takes more arguments than these.
    """
    text = function.__doc__ or ""
    if (found := ENTRY.search(text)) is None:  # as under `python -OO`
        return
    indent = found[1]
    entries = [
        textwrap.fill(f"{name}: {said}", WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ",
                      break_long_words=False, break_on_hyphens=False)
        for name, said in descriptions.items()
    ]  # fmt: skip
    whole = "\n".join([*([found[0].rstrip("\n")] if keep else []), *entries, ""])
    function.__doc__ = text[: found.start()] + whole + text[found.end() :]
