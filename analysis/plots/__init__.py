"""Plots of results: one function per kind. Each takes results and optionally axes, and returns the figure.

    >>> from icy.analysis.plots import KINDS
    >>> sorted(KINDS)
    ['bars', 'chain_curves', 'chain_paths', 'curves', 'e2e', 'heat', 'pairings', 'parameters', 'ratios',
     'side_by_side', 'tradeoff']

matplotlib is imported when the first plot is drawn. New figures do not depend on the user's settings of it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from icy.analysis.style import load_matplotlib, plot_style
from icy.core.errors import unknown

if os.environ.get("MPLBACKEND"):
    load_matplotlib()  # before a module of this package imports it, in case the name is not valid

# Name: (module with the function of this name, description of the plot).
KINDS = {
    "heat": ("heat_map", "Heat map of the bias table: a row per model, a column per grammar, a mean and spread each."),
    "bars": ("error_bars", "Bars with errors: groups by grammar for few models, a panel per grammar for many."),
    "curves": ("learning_curves", "Accuracy over updates: a panel per model, a line per grammar, bands over seeds."),
    "ratios": ("error_bars", "Ratios on a log axis: a row per model, a dot per grammar, arrows for cut runs."),
    "tradeoff": ("points", "Compositional grammars against noise grammars: models ranked, best at the front."),
    "parameters": ("points", "Results against the number of parameters: a panel per grammar, a line per model."),
    "e2e": ("learning_curves", "Sender and receiver together: accuracy, loss and topsim over the updates of the game."),
    "pairings": ("heat_map", "Populations: the accuracy of every pairing of sender and receiver, a panel per seed."),
    "chain_curves": ("chain_plots", "Chains over generations: a row per measure, a column per model."),
    "side_by_side": ("in_context", "Text models next to networks and people: ratios and accuracies by grammar."),
    "chain_paths": ("chain_plots", "Paths of languages of chains in bias space: a panel per model."),
}
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
