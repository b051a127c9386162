"""`icy report`: write results as one HTML file."""

from __future__ import annotations

import click

from icy.cli.groups import command
from icy.cli.options import SPREADS, Selection, file_option, plugin_option, selection
from icy.cli.output import checked_file, note

EPILOG = """\b
Examples:
  icy report icy-results
  icy report icy-results elsewhere -o report.html --title 'Two senders'
  icy report atlas --where meanings=3x4 --where representation=soft -o atlas.html
  icy report icy-results --compare published --spread ci95
  icy report icy-results --methods

\b
RESULTS are results folders, packs, files written by ProbeResult.save, long tables (results.csv, results.parquet, which
hold no curves), or atlas; the default is icy-results. The file opens in a browser, needs no other file and no network:
it can be sent, archived and printed. It needs the extra icy-toolkit[report].
"""


@command("report", epilog=EPILOG)
@click.argument("results", nargs=-1, type=click.Path())
@file_option("File to write: .html.", default="report.html", show_default=True)
@click.option("--title", default="", metavar="TEXT", help="Heading.  [default: the models]")
@click.option("--spread", type=click.Choice(SPREADS), default="sd", show_default=True, help="Spread over seeds.")
@click.option(
    "--compare", metavar="WITH", help="Reference values of probes: published, one published table, or results."
)
@click.option("--methods", is_flag=True, help="Print the methods in sentences, for a paper, and write no file.")
@plugin_option
@selection
def report_command(
    results: tuple[str, ...],
    out: str,
    title: str,
    spread: str,
    compare: str | None,
    methods: bool,
    selected: Selection,
) -> None:
    """Write RESULTS as one HTML file: tables, pictures, curves, settings, failures and versions."""
    if methods:
        from icy.analysis.report.methods import methods as written

        click.echo(written(selected.read(results)))
        return
    path = checked_file(out, [".html", ".htm"], "A report is")
    from icy.analysis.tables.references import compared_with
    from icy.experiments.report import report

    chosen = selected.read(results)
    report(chosen, path, title, spread, compared_with(compare)[0])
    note(f"Written: {path} ({path.stat().st_size / 1e6:.1f} MB).")
