"""Records whose models were kept, found by what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icy.core.errors import StoreError, unknown
from icy.core.text import listed

from .kinds import kind_of
from .load import load_records
from .pack import is_pack
from .record import Record, model_file

FACTS = ("model", "grammar", "seed", "key")  # beside the configuration


def kept_records(path: str | Path, kind: str, what: str, **where: Any) -> tuple[Path, list[Record]]:
    """Return the folder or pack of some results, and those of its records whose models were kept.

    Args:
        path: of a results folder, a pack, or a file in a results folder.
        kind: of the jobs.
        what: was trained, as in "agent".
        **where: what they must have, by the names of records: seed=124, samples=4.

    Raises:
        StoreError: there are none.
        UnknownNameError: something that these records do not say.
    """
    path = Path(path)
    folder = path if path.is_dir() or is_pack(path) else path.parent
    records = [r for r in load_records(path) if kind_of(r).name == kind and model_file(r) is not None]
    _check_facts(records, what, where)
    fits = [r for r in records if all(_said(r, name) == str(value) for name, value in where.items())]
    if not fits:
        spelt = listed([f"{name}={value}" for name, value in where.items()])
        lacking = "was kept with its weights (--keep-models)" if not records else f"is of {spelt}"
        raise StoreError(f"No {what} of {path} {lacking}.")
    return folder, fits


def _check_facts(records: Sequence[Record], what: str, where: dict[str, Any]) -> None:
    for name in where:
        if records and all(_said(record, name) == "None" for record in records):
            raise unknown(f"fact of {what}", name, list(dict.fromkeys((*FACTS, *records[0]["config"]))))


def _said(record: Record, name: str) -> str:
    found: Any = record.get(name, record["config"].get(name))
    return str(found)
