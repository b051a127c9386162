"""Records whose models were kept, found by what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icy.core.errors import StoreError, unknown
from icy.core.text import listed

from .kinds import kind_of
from .load import load_records
from .long_table import SYNONYMS
from .pack import is_pack
from .record import Record, model_file

KEY = "key"
LABELLED = ("model", "seed")  # what a label says anyhow
FACTS = ("model", "grammar", "seed", KEY)  # beside the configuration
SHOWN = 5  # values in a message


def kept_records(path: str | Path, kind: str, what: str, **where: Any) -> tuple[Path, list[Record]]:
    """Return the folder or pack of some results, and those of its records whose models were kept.

    Args:
        path: of a results folder, a pack, or a file in a results folder.
        kind: of the jobs.
        what: was trained, as in "agent".
        **where: what they must have, by the names of records, or SYNONYMS of them: seed=124, samples=4.

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
        there = "; ".join(f"there is {_told(records, name)}" for name in where if len(where) == 1)
        lacking = "was kept with its weights (--keep-models)" if not records else f"is of {spelt}"
        raise StoreError(f"No {what} of {path} {lacking}{'; ' * bool(there)}{there}.")
    return folder, fits


def require_one(path: str | Path, records: Sequence[Record]) -> None:
    """Check that a choice among kept models leaves one.

    Args:
        path: where they are.
        records: of those that are left, one or more.

    Raises:
        StoreError: several; the message says in what they differ.
    """
    if len(records) == 1:
        return
    names = _differing(records) or [KEY]
    told = listed([_told(records, name) for name in names])
    raise StoreError(
        f"{path} leaves a choice of {len(records)}, which differ in {told}: say which, "
        f"as in {names[0]}={_said(records[0], names[0])}."
    )


def distinctions(records: Sequence[Record]) -> list[str]:
    """Return for every record what tells it from others of its model and seed; "" if nothing need be said."""
    told = [name for name in _differing(records) if name not in LABELLED]
    facts = [{name: _said(record, name) for name in told} for record in records]
    whole = [(record["model"], record["seed"], *one.values()) for record, one in zip(records, facts, strict=True)]
    for record, one, label in zip(records, facts, whole, strict=True):
        if whole.count(label) > 1:
            one[KEY] = record["key"]
    return [", ".join(f"{name}={value}" for name, value in one.items()) for one in facts]


def _differing(records: Sequence[Record]) -> list[str]:
    """Return the facts in which records differ, but for their keys and what holds facts of its own."""
    if not records:
        return []
    names = [name for name in dict.fromkeys((*FACTS, *records[0]["config"])) if name != KEY]
    plain = [n for n in names if not any(isinstance(r["config"].get(n), (Mapping, list)) for r in records)]
    return [name for name in plain if len({_said(record, name) for record in records}) > 1]


def _told(records: Sequence[Record], name: str) -> str:
    """Return a fact with its values: seed (123, 124)."""
    values = list(dict.fromkeys(_said(record, name) for record in records))
    return f"{name} ({', '.join(values[:SHOWN])}{', …' * (len(values) > SHOWN)})"


def _check_facts(records: Sequence[Record], what: str, where: dict[str, Any]) -> None:
    for name in where:
        if records and all(_said(record, name) == "None" for record in records):
            raise unknown(f"fact of {what}", name, list(dict.fromkeys((*FACTS, *records[0]["config"]))))


def _said(record: Record, name: str) -> str:
    own = name if name in record or name in record["config"] else SYNONYMS.get(name, name)
    return str(record.get(own, record["config"].get(own)))
