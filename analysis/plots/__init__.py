"""Plots of results: one function per kind. Each takes results and optionally axes, and returns the figure.

    >>> from icy.analysis.plots import KINDS
    >>> [name for name in KINDS if name.startswith("c")]
    ['chain_curves', 'chain_paths', 'curves']

A function in a file of this package with the decorator `icy.analysis.picture.plot` and the first argument `results`
is a kind of plot. The first line of its docstring describes it. matplotlib is imported when the first plot is drawn,
and new figures do not depend on the user's settings of it.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from icy.analysis.style import load_matplotlib, plot_style
from icy.core.errors import unknown

if os.environ.get("MPLBACKEND"):
    load_matplotlib()  # before a module of this package imports it, in case the name is not valid


# A function that draws results, and the first line of its docstring; found without an import of its file.
_KIND = re.compile(r'^@plot\ndef (\w+)\(\s*results: .*?"""(.*?)$', re.MULTILINE | re.DOTALL)
_FILES = {file.stem: file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("*.py")}
_FOUND = {name: (module, shows) for module, text in _FILES.items() for name, shows in _KIND.findall(text)}
KINDS = dict(sorted(_FOUND.items()))  # name: (module with the function of this name, description of the plot)
__all__ = ["KINDS", "plot_function", "plot_style", *KINDS]


def plot_function(kind: str) -> Callable[..., Any]:
    """Import and return the function that draws a kind of plot.

    Raises:
        UnknownNameError: an unknown kind.
    """
    if kind not in KINDS:
        raise unknown("plot", kind, list(KINDS), "`icy plot --list` describes them.")
    load_matplotlib()
    function: Callable[..., Any] = getattr(importlib.import_module(f"{__name__}.{KINDS[kind][0]}"), kind)
    return function


def __getattr__(name: str) -> Any:
    if name in KINDS:
        return plot_function(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *KINDS])
