"""`icy atlas`: show the contents of the atlas, or make your own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.options import file_option
from icy.cli.output import FORMATS, checked_file, note, print_rows
from icy.core.errors import InvalidSettingError
from icy.core.files import write_atomically
from icy.core.text import counted

if TYPE_CHECKING:
    from icy.analysis.atlas.atlas import Atlas

EPILOG = """\b
Examples:
  icy atlas
  icy atlas --models --format csv
  icy atlas --html atlas.html
  icy probe --model Bottleneck --plugin mine.py --compare atlas
  icy table atlas --sort=-shufdet
  icy atlas --pack my-results -o mine.parquet
  icy probe --model Bottleneck --plugin mine.py --compare mine.parquet

\b
The atlas holds icy's own measurements of its model zoo, under the default settings. A model is placed among
models measured under the same protocol, sizes and representation.
"""


@command("atlas", epilog=EPILOG)
@click.argument("file", required=False, type=click.Path())
@click.option("--models", is_flag=True, help="Show one row per model, with the number of seeds per grammar.")
@click.option("--pack", metavar="FOLDER", type=click.Path(), help="Make an atlas from the results in FOLDER.")
@file_option("File for the new atlas: a .parquet file.")
@click.option("--html", metavar="FILE", type=click.Path(), help="Write a page to explore the atlas: .html.")
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="table", show_default=True, help="Output format."
)
def atlas_command(
    file: str | None, models: bool, pack: str | None, out: str | None, html: str | None, format_: str
) -> int:
    """Show the contents of the atlas and how it was made. FILE is your own atlas."""
    from icy.analysis.atlas.atlas import FILE, Atlas

    if (pack is None) != (out is None):
        raise InvalidSettingError("Give --pack FOLDER (the results) and --out FILE (the new atlas) together.")
    if pack is not None and out is not None:
        if not out.endswith(".parquet"):
            raise InvalidSettingError(f"An atlas is a .parquet file, not '{out}'.")
        atlas = Atlas.load(pack)
        note(f"Written: {atlas.save(out)}, {counted(atlas.about['runs'], 'run')}.")
        return DONE
    atlas = Atlas.load(file or FILE)
    if html is not None:
        return _write_page(atlas, html)
    table = atlas.coverage() if models else atlas.settings()
    shown = table.loc[:, [name for name in table if table[name].nunique(dropna=False) > 1 or name in _ALWAYS]]
    headings = [str(name).replace("_", " ") for name in shown]
    print_rows(headings, [list(map(_cell_text, row)) for row in shown.itertuples(index=False)], format_)
    about = atlas.about
    note(
        f"{counted(about['runs'], 'run')}, {counted(about['hours'], 'hour')}, made "
        f"{' to '.join(dict.fromkeys(about['made']))} with"
    )
    note(f"{'; '.join(about['versions'])} on {', '.join(about['devices'])}; commits {', '.join(about['git'])}.")
    return DONE


def _write_page(atlas: Atlas, html: str) -> int:
    from icy.analysis.report.explorer import explorer_page

    path = checked_file(html, [".html", ".htm"], "A page is")
    write_atomically(path, explorer_page(atlas).encode(), "--html")
    note(f"Written: {path} ({path.stat().st_size / 1e6:.1f} MB).")
    return DONE


def _cell_text(value: Any) -> Any:
    """Return a value as shown: whole numbers without a decimal point, missing values as an empty cell."""
    import pandas as pd

    return "" if pd.isna(value) else int(value) if isinstance(value, float) and value.is_integer() else value


_ALWAYS = ("role", "representation", "protocol", "meanings", "target", "models", "grammars", "seeds", "runs", "model")
