"""How the numbers of a page were made. Every page of `benchmarks/`, `results/` and `tests/stress` states this."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet

from icy.core.provenance import circumstances, git_revision, now, software

REVISION = git_revision()  # at the start, because the files that a script writes count as changes


def version() -> str:
    """Return the version of icy, its commit and the day, as in "icy 0.2.0 (25fe592, 2026-11-25)"."""
    commit, *changes = (REVISION or "no commit").split("+")
    return f"icy {software()['icy']} ({'+'.join([commit[:7], *changes])}, {now()[:10]})"


def describe_versions() -> str:
    """Return the versions of icy, Python and the libraries of a measurement that ends now."""
    return ", ".join([version(), *(f"{name} {found}" for name, found in software().items() if name != "icy")])


def describe_packs(*packs: Path) -> str:
    """Return the versions, days and devices of packed records."""
    texts = [text for pack in packs for text in pyarrow.parquet.read_table(pack)["record"].to_pylist()]
    found = circumstances([json.loads(text) for text in texts])
    days = " to ".join(dict.fromkeys(found["made"]))
    return f"{' and '.join(found['versions'])}, {days}, on {' and '.join(found['devices'])}"
