"""`icy pack`: keep complete results in one file."""

from __future__ import annotations

from pathlib import Path

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.output import note
from icy.core.errors import StoreError
from icy.core.text import counted, size

EPILOG = """\b
Examples:
  icy pack icy-results -o bias.parquet
  icy pack bias.parquet shard-1 shard-2 -o whole.parquet
  icy probe -m HierZero:GRU -g all --from bias.parquet

\b
A pack holds complete records, with learning curves, emerged languages, versions and a checksum. All commands that read
a results folder read a pack; with --from, commands that train go on from it, and train only what it lacks.
"""


@command("pack", epilog=EPILOG)
@click.argument("results", nargs=-1, required=True, type=click.Path())
@click.option("--out", "-o", required=True, metavar="FILE", type=click.Path(), help="The pack: a .parquet file.")
@click.option("--quiet", "-q", is_flag=True, help="No remarks.")
def pack_command(results: tuple[str, ...], out: str, quiet: bool) -> int:
    """Pack complete results into one compressed file, from which runs can go on.

    RESULTS are results folders, packs, or files of ProbeResult.save; together they become one pack, in which no
    replicate is lost and each stands once. What FILE holds already, if it is a pack, is kept too.
    """
    from icy.records.pack import Pack, is_pack, keep_odd, merged

    path, new = Path(out), list(map(Pack.read, results))
    if path.exists() and not is_pack(path):
        raise StoreError(f"{path} is there already, and is no pack: give another name, or remove it.")
    before = [Pack.read(path)] if path.exists() else []
    pack = merged([*before, *new])
    keep_odd(path, before)
    pack.write(path)
    if not quiet:
        kept = len(pack.records) - len(merged(new).records)
        also = f", {kept} of which only the file itself held before" if kept else ""
        note(f"Written: {path}, {counted(len(pack.records), 'replicate')}{also}, {size(path.stat().st_size)}.")
    return DONE
