"""`icy plot`: plot results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import click

from icy.analysis.plots import KINDS, plot_function, plot_style
from icy.cli import groups
from icy.cli.groups import command
from icy.cli.options import SPREADS, Selection, file_option, selection, style_option
from icy.cli.output import checked_plot, print_rows, save_figure
from icy.core.errors import InvalidSettingError
from icy.core.text import words

EPILOG = """\b
Examples:
  icy plot heat bias
  icy plot tradeoff bias --where protocol=budget -o tradeoff.pdf
  icy plot curves icy-results --model 'HierZero:*' --grammar rot --grammar shufdet
  icy plot bars icy-results elsewhere/results.csv --spread ci95 --style paper -o bars.pdf
  icy plot chain_paths icy-results --model FC2L
  icy plot --list

\b
RESULTS are results folders, files written by ProbeResult.save (.json), or tables (results.parquet, results.csv, which
have no curves); the default is icy-results, and several are plotted together. `icy plot --list` describes the plots. In
Python, they are functions that return a matplotlib figure; help(icy.analysis.plots.heat) lists the arguments of a plot.
The style paper is a column of 3.25 inches (--width 7 for two) with letters of 8 points, as KIND.pdf; the title and the
notes are printed for the caption. The style slides is 6.3 inches, a slide of 160 by 90 mm, with letters of 10 to 12.
"""


@command("plot", epilog=EPILOG)
@click.argument("kind", required=False, shell_complete=groups.plots)
@click.argument("results", nargs=-1, type=click.Path(), metavar="[RESULTS]...")
@click.option("--list", "list_", is_flag=True, help="List the kinds of plots, with descriptions.")
@file_option("File to write: .png, .svg or .pdf.  [default: KIND.png; KIND.pdf in the style paper]")
@style_option(exposed=True)
@selection
@click.option("--spread", type=click.Choice(SPREADS), help="Spread over seeds.  [default: sem for curves, or sd]")
@click.option("--measures", metavar="NAME[,...]",
              help="Measures of chain_curves, as in posdis,bosdis.  [default: accuracy,distinct,topsim]")  # fmt: skip
@click.option("--title", metavar="TEXT", help="Title of the plot; '' for none.  [default: the measure]")
@click.option("--width", type=click.FloatRange(1, 40), metavar="INCHES", help="Figure width.  [default: about 7]")
@click.option("--quiet", "-q", is_flag=True, help="Print no remarks.")
def plot_command(
    kind: str | None,
    results: Sequence[str],
    list_: bool,
    out: str | None,
    style: str | None,
    selected: Selection,
    quiet: bool,
    **look: Any,
) -> None:
    """Plot RESULTS; KIND is heat, bars, curves, ratios, tradeoff, parameters, e2e, pairings, chain_curves or
    chain_paths."""
    if list_:
        print_rows(["plot", "what it shows"], [[name, shows] for name, (_, shows) in KINDS.items()])
        return
    if kind is None:
        raise InvalidSettingError(f"Name a plot: {', '.join(KINDS)}. `icy plot --list` describes them.")
    if look["measures"] is not None:
        look["measures"] = words(look["measures"])
    function = plot_function(kind)
    path = checked_plot(out or f"{kind}.{'pdf' if style == 'paper' else 'png'}")
    options = _options(kind, function, {name: value for name, value in look.items() if value is not None})
    from icy.analysis.order import models_in_order
    from icy.records.load import long_of

    chosen = selected.read(results)
    if long_of(chosen)["failed"].astype(bool).all():
        raise InvalidSettingError("All of these runs failed, so there is nothing to draw; `icy table` says why.")
    order = map(str, long_of(chosen)["model"]) if selected.model else ()
    with plot_style(style), models_in_order(order):
        figure = function(chosen, **options)
        save_figure(figure, path, quiet)


def _options(kind: str, function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the user set, after a check that this kind of plot has these options."""
    known = inspect.signature(function).parameters
    for name in given:
        if name not in known:
            raise InvalidSettingError(f"The plot '{kind}' has no --{name}: leave it out.")
    return given
