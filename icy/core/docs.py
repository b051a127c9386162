"""Docstrings: read descriptions of arguments, and write them in place of **options for `help()`."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping

from .types import AnyFunction

WIDTH = 120  # longest line of a docstring
ENTRY = re.compile(r"^( *)\*\*\w+: .*(?:\n\1 +\S.*)*\n?", re.MULTILINE)  # of **options under "Args:"


def described(kind: type) -> dict[str, str]:
    """Return the description of each attribute of a class, from its docstring and the docstrings of its bases."""
    descriptions: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        text = inspect.cleandoc(one.__doc__ or "").partition("Attributes:")[2]
        entries = re.findall(r"^    (\w+): ((?:.*)(?:\n {8}.*)*)", text, re.MULTILINE)
        descriptions.update((name, " ".join(description.split())) for name, description in entries)
    return descriptions


def spell_out_arguments(function: AnyFunction, descriptions: Mapping[str, str], keep: bool = False) -> None:
    """Replace the entry `**options` in a function's docstring by an entry for each argument.

    Args:
        function: a function with an entry `**options`, or `**` and another name, in its docstring.
        descriptions: description of each argument, by name.
        keep: whether to keep the entry `**options` before the new entries, because the function takes more arguments.
    """
    text = function.__doc__ or ""
    if (entry := ENTRY.search(text)) is None:  # for example with `python -OO`
        return
    indent = entry[1]
    entries = [
        textwrap.fill(f"{name}: {description}", WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ",
                      break_long_words=False, break_on_hyphens=False)
        for name, description in descriptions.items()
    ]  # fmt: skip
    whole = "\n".join([*([entry[0].rstrip("\n")] if keep else []), *entries, ""])
    function.__doc__ = text[: entry.start()] + whole + text[entry.end() :]
