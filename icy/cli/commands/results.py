"""Commands that read results: `icy report`, `plot`, `pack` and `atlas`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import click

from icy.analysis.plots import KINDS, plot_function, plot_style
from icy.cli import options
from icy.cli.exit_codes import DONE
from icy.cli.output import checked_plot, note, print_rows, save_figure
from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import write_atomically
from icy.core.text import counted, size, words

HTML = (".html", ".htm")

# -- report ------------------------------------------------------------------------------------------------------------


@options.command("report")
@options.plugin_option
def report_command(
    results: options.Paths = (),
    *,
    out: Annotated[Path, options.written("A report is", HTML)] = Path("report.html"),
    title: Annotated[str, {"metavar": "TEXT"}] = "",
    spread: options.Spread = "sd",
    compare: Annotated[str | None, {"metavar": "WITH"}] = None,
    methods: bool = False,
    selected: options.Selection,
) -> None:
    """Write RESULTS as one HTML file: tables, pictures, curves, settings, failures and versions.

    Args:
        out: file to write: .html.
        title: heading.  [default: the models]
        compare: reference values of probes: published, one published table, or results.
        methods: print the methods in sentences, for a paper, and write no file.

    Examples:
      icy report icy-results
      icy report icy-results elsewhere -o report.html --title 'Two senders'
      icy report atlas --where meanings=3x4 --where representation=soft -o atlas.html
      icy report icy-results --compare published --spread ci95
      icy report icy-results --methods

    RESULTS are results folders, packs, files written by ProbeResult.save, long tables (results.csv, results.parquet,
    which hold no curves), or atlas; the default is icy-results. The file opens in a browser, needs no other file and no
    network: it can be sent, archived and printed. It needs the extra icy-toolkit[report].
    """
    if methods:
        from icy.analysis.report.methods import methods as in_sentences

        click.echo(in_sentences(selected.read(results)))
        return
    from icy.analysis.tables.references import compared_with
    from icy.experiments.report import report

    chosen = selected.read(results)
    report(chosen, out, title, spread, compared_with(compare)[0])
    note(f"Written: {out} ({out.stat().st_size / 1e6:.1f} MB).")


# -- plot --------------------------------------------------------------------------------------------------------------


SPREAD_OF_PLOT = {"type": click.Choice(options.SPREADS), "help": "Spread over seeds.  [default: sem for curves, or sd]"}


@options.command("plot")
def plot_command(
    kind: Annotated[str | None, {"completes": "plots"}] = None,
    results: Annotated[options.Paths, {"metavar": "[RESULTS]..."}] = (),
    *,
    list_: Annotated[bool, {"flags": ("--list",)}] = False,
    out: Annotated[str | None, options.OUT] = None,
    style: Annotated[str | None, options.STYLE] = None,
    selected: options.Selection,
    spread: Annotated[str | None, SPREAD_OF_PLOT] = None,
    measures: Annotated[str | None, {"metavar": "NAME[,...]"}] = None,
    title: Annotated[str | None, {"metavar": "TEXT"}] = None,
    width: Annotated[float | None, {"type": click.FloatRange(1, 40), "metavar": "INCHES"}] = None,
    quiet: Annotated[options.Quiet, {"help": "Print no remarks."}] = False,
) -> None:
    """Plot RESULTS; KIND is heat, bars, curves, ratios, tradeoff, parameters, e2e, pairings, chain_curves or
    chain_paths.

    Args:
        list_: list the kinds of plots, with descriptions.
        out: file to write: .png, .svg or .pdf.  [default: KIND.png; KIND.pdf in the style paper]
        measures: measures of chain_curves, as in posdis,bosdis.  [default: accuracy,distinct,topsim]
        title: title of the plot; '' for none.  [default: the measure]
        width: figure width.  [default: about 7]

    Examples:
      icy plot heat bias
      icy plot tradeoff bias --where protocol=budget -o tradeoff.pdf
      icy plot curves icy-results --model 'HierZero:*' --grammar rot --grammar shufdet
      icy plot bars icy-results elsewhere/results.csv --spread ci95 --style paper -o bars.pdf
      icy plot chain_paths icy-results --model FC2L
      icy plot --list

    RESULTS are results folders, files written by ProbeResult.save (.json), or tables (results.parquet, results.csv,
    which have no curves); the default is icy-results, and several are plotted together. `icy plot --list` describes the
    plots. In Python, they are functions that return a matplotlib figure; help(icy.analysis.plots.heat) lists the
    arguments of a plot. The style paper is a column of 3.25 inches (--width 7 for two) with letters of 8 points, as
    KIND.pdf; the title and the notes are printed for the caption. The style slides is 6.3 inches, a slide of 160 by
    90 mm, with letters of 10 to 12.
    """
    if list_:
        print_rows(["plot", "what it shows"], [[name, shows] for name, (_, shows) in KINDS.items()])
        return
    if kind is None:
        raise InvalidSettingError(f"Name a plot: {', '.join(KINDS)}. `icy plot --list` describes them.")
    function = plot_function(kind)
    path = checked_plot(out or f"{kind}.{'pdf' if style == 'paper' else 'png'}")
    given = {
        "spread": spread,
        "measures": None if measures is None else words(measures),
        "title": title,
        "width": width,
    }
    look = {name: value for name, value in given.items() if value is not None}
    for name in look.keys() - inspect.signature(function).parameters.keys():
        raise InvalidSettingError(f"The plot '{kind}' has no --{name}: leave it out.")
    from icy.analysis.order import models_in_order
    from icy.records.load import long_of

    chosen = selected.read(results)
    if long_of(chosen)["failed"].astype(bool).all():
        raise InvalidSettingError("All of these runs failed, so there is nothing to draw; `icy table` says why.")
    order = map(str, long_of(chosen)["model"]) if selected.model else ()
    with plot_style(style), models_in_order(order):
        figure = function(chosen, **look)
        save_figure(figure, path, quiet)


# -- pack --------------------------------------------------------------------------------------------------------------


@options.command("pack")
def pack_command(
    results: options.Paths,
    *,
    out: Annotated[str, options.OUT],
    quiet: Annotated[options.Quiet, {"help": "Print no remarks."}] = False,
) -> int:
    """Pack complete results into one compressed file that runs can resume from.

    RESULTS are results folders, packs, or files of ProbeResult.save. Together they become one pack, in which every
    replicate occurs once. An existing pack FILE keeps its replicates.

    Args:
        out: the pack: a .parquet file.

    Examples:
      icy pack icy-results -o bias.parquet
      icy pack bias.parquet shard-1 shard-2 -o whole.parquet
      icy probe -m HierZero:GRU -g all --from bias.parquet

    A pack holds complete records, with learning curves, emerged languages, versions and a checksum. All commands that
    read a results folder read a pack. With --from, commands that train copy its records and train only missing
    replicates.
    """
    from icy.records.pack import Pack, is_pack, keep_unreadable, merge_packs

    path, new = Path(out), list(map(Pack.read, results))
    if path.exists() and not is_pack(path):
        raise StoreError(f"{path} exists and is not a pack: give another name, or remove the file.")
    before = [Pack.read(path)] if path.exists() else []
    pack = merge_packs([*before, *new])
    keep_unreadable(path, before)
    pack.write(path)
    if not quiet:
        kept = len(pack.records) - len(merge_packs(new).records)
        also = f", including {kept} that only this file had" if kept else ""
        note(f"Written: {path}, {counted(len(pack.records), 'replicate')}{also}, {size(path.stat().st_size)}.")
    return DONE


# -- atlas -------------------------------------------------------------------------------------------------------------

ALWAYS = ("role", "representation", "protocol", "meanings", "target", "models", "grammars", "seeds", "runs", "model")


@options.command("atlas")
def atlas_command(
    file: Annotated[str | None, {"type": click.Path()}] = None,
    *,
    models: bool = False,
    pack: Annotated[str | None, {**options.FILE, "metavar": "FOLDER"}] = None,
    out: Annotated[str | None, options.OUT] = None,
    html: Annotated[Path | None, options.written("A page is", HTML, flags=("--html",), old=())] = None,
    format_: options.ListFormat = "table",
) -> int:
    """Show the contents of the atlas and how it was made. FILE is your own atlas.

    Args:
        models: show one row per model, with the number of seeds per grammar.
        pack: make an atlas from the results in FOLDER.
        out: file for the new atlas: a .parquet file.
        html: write a page to explore the atlas: .html.

    Examples:
      icy atlas
      icy atlas --models --format csv
      icy atlas --html atlas.html
      icy probe --model Bottleneck --plugin mine.py --compare atlas
      icy table atlas --sort=-shufdet
      icy atlas --pack my-results -o mine.parquet
      icy probe --model Bottleneck --plugin mine.py --compare mine.parquet

    The atlas holds icy's own measurements of its model zoo, under the default settings. A model is placed among models
    measured under the same protocol, sizes and representation.
    """
    import pandas as pd

    from icy.analysis.atlas.atlas import FILE as ATLAS_FILE
    from icy.analysis.atlas.atlas import Atlas

    def shown(value: Any) -> Any:
        """Return a value as shown: whole numbers without a decimal point, missing values as an empty cell."""
        return "" if pd.isna(value) else int(value) if isinstance(value, float) and value.is_integer() else value

    if (pack is None) != (out is None):
        raise InvalidSettingError("Give --pack FOLDER (the results) and --out FILE (the new atlas) together.")
    if pack is not None and out is not None:
        if not out.endswith(".parquet"):
            raise InvalidSettingError(f"An atlas is a .parquet file, not '{out}'.")
        atlas = Atlas.load(pack)
        note(f"Written: {atlas.save(out)}, {counted(atlas.about['runs'], 'run')}.")
        return DONE
    atlas = Atlas.load(file or ATLAS_FILE)
    if html is not None:
        from icy.analysis.report.explorer import explorer_page

        write_atomically(html, explorer_page(atlas).encode(), "--html")
        note(f"Written: {html} ({html.stat().st_size / 1e6:.1f} MB).")
        return DONE
    table = atlas.coverage() if models else atlas.settings()
    table = table.loc[:, [name for name in table if table[name].nunique(dropna=False) > 1 or name in ALWAYS]]
    headings = [str(name).replace("_", " ") for name in table]
    print_rows(headings, [list(map(shown, row)) for row in table.itertuples(index=False)], format_)
    about = atlas.about
    note(
        f"{counted(about['runs'], 'run')}, {counted(about['hours'], 'hour')}, made "
        f"{' to '.join(dict.fromkeys(about['made']))} with"
    )
    note(f"{'; '.join(about['versions'])} on {', '.join(about['devices'])}; commits {', '.join(about['git'])}.")
    return DONE
