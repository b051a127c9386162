"""Helpers for the scripts in `benchmarks/`, `results/` and `tests/stress`: options, records, and pages.

A page such as panel.md is made from a template next to it, panel.template.md, and states how its numbers were made.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import pyarrow.parquet

import icy
from icy.core.machine import circumstances, git_revision, now, software
from icy.experiments.results import ProbeResult
from icy.records.load import load_records, long_of
from icy.records.pack import Pack, add_to_pack

REVISION = git_revision()  # at the start, because the files that a script writes count as changes


def read_options(description: str | None, words: Sequence[str] | None = None, **options: object) -> argparse.Namespace:
    """Read the options of a script from its command line.

    Args:
        description: docstring of the script.
        words: words of the command line; by default `sys.argv`.
        **options: the default of each option, or a tuple of the default and a help text. The default `False` makes a
            flag, a type means no default, and a dict holds arguments of `add_argument`.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in options.items():
        flag, (default, text) = f"--{name.replace('_', '-')}", value if isinstance(value, tuple) else (value, None)
        if isinstance(default, dict):
            parser.add_argument(flag, help=text, **default)
        elif default is False:
            parser.add_argument(flag, help=text, action="store_true")
        elif isinstance(default, type):
            parser.add_argument(flag, help=text, type=default)
        else:
            parser.add_argument(flag, help=text, type=type(default), default=default)
    return parser.parse_args(words)


class RecordFolder:
    """The records of a folder: a file of packed records, which is committed, and the folder `runs`, which is not.

    Args:
        folder: folder of the script.
        pack: name of the file of packed records.
        runs: folder of results that icy writes.
        files: whether files of records, such as the languages of chains, are packed too.
    """

    def __init__(self, folder: Path, pack: str = "records.parquet", runs: str = "runs", files: bool = True) -> None:
        self.pack, self.runs, self.files = folder / pack, folder / runs, files

    def sweep(self, file: Path, rerun: str = "missing", **more: object) -> ProbeResult:
        """Train the missing rows of a sweep and load the others; with `rerun="never"`, only load."""
        start = [self.pack] if self.pack.exists() else []
        return icy.sweep(file=file, out=self.runs, initial_results=start, rerun=rerun, **more)  # type: ignore[arg-type]

    def update_pack(self) -> None:
        """Add new records of `runs` to the packed ones."""
        if self.runs.exists():
            pack = add_to_pack(self.pack, self.runs)
            if not self.files and pack.files:
                Pack.of(pack.records).write(self.pack)

    def long_table(self) -> pd.DataFrame:
        """Return the packed records as a table with a row per run."""
        return long_of(load_records(self.pack))


def run_sweeps(
    description: str | None, words: Sequence[str] | None, records: RecordFolder, names: Iterable[str], **options: object
) -> dict[str, ProbeResult]:
    """Train the sweeps that the command line names, update the pack, and return the results of all sweeps.

    Args:
        description: docstring of the script.
        words: words of the command line; by default `sys.argv`.
        records: records of the sweeps; the sweep files are next to the pack.
        names: names of the sweeps.
        **options: further options of the script, which are passed to the sweeps.
    """
    options |= {"workers": (int, "processes at once")}
    train = ({"choices": names, "action": "append", "default": []}, "which sweeps to run")
    chosen = vars(read_options(description, words, train=train, **options))
    files = {name: records.pack.with_name(f"{name}.toml") for name in names}
    for name in chosen.pop("train"):
        records.sweep(files[name], **chosen)
    records.update_pack()
    return {name: records.sweep(file, rerun="never") for name, file in files.items()}


def fill_template(page: Path, **values: object) -> str:
    """Return the template of a page (`NAME.template.md` next to it), with the names in braces replaced by values."""
    return page.with_suffix(".template.md").read_text(encoding="utf-8").format(**values)


def describe_version() -> str:
    """Return the version of icy, its commit and the day, as in "icy 0.2.0 (25fe592, 2026-11-25)"."""
    commit, *changes = (REVISION or "no commit").split("+")
    return f"icy {software()['icy']} ({'+'.join([commit[:7], *changes])}, {now()[:10]})"


def describe_versions() -> str:
    """Return the current versions of icy, Python and the libraries."""
    return ", ".join([describe_version(), *(f"{name} {found}" for name, found in software().items() if name != "icy")])


def describe_packs(*packs: Path) -> str:
    """Return the versions, dates and devices of packed records, as text."""
    texts = [text for pack in packs for text in pyarrow.parquet.read_table(pack)["record"].to_pylist()]
    found = circumstances([json.loads(text) for text in texts])
    days = " to ".join(dict.fromkeys(found["made"]))
    return f"{' and '.join(found['versions'])}, {days}, on {' and '.join(found['devices'])}"
