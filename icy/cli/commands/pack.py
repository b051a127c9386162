"""`icy pack`: pack complete results into one file."""

from __future__ import annotations

from pathlib import Path

import click

from icy.cli.exit_codes import DONE
from icy.cli.groups import command
from icy.cli.options import file_option
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
a results folder read a pack. With --from, commands that train copy its records and train only missing replicates.
"""


@command("pack", epilog=EPILOG)
@click.argument("results", nargs=-1, required=True, type=click.Path())
@file_option("The pack: a .parquet file.", required=True)
@click.option("--quiet", "-q", is_flag=True, help="Print no remarks.")
def pack_command(results: tuple[str, ...], out: str, quiet: bool) -> int:
    """Pack complete results into one compressed file that runs can resume from.

    RESULTS are results folders, packs, or files of ProbeResult.save. Together they become one pack, in which every
    replicate occurs once. An existing pack FILE keeps its replicates.
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
