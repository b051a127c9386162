"""Choose records by their facts (model, seed, configuration), and report an ambiguous choice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from pathlib import Path

from icy.core.errors import StoreError, unknown
from icy.core.text import listed, words
from icy.core.types import Options

from .kinds import kind_of
from .load import load_records
from .long_table import SYNONYMS
from .pack import is_pack
from .record import Record, model_file

KEY = "key"
LABELLED = ("model", "seed")  # what a label says anyhow
FACTS = ("model", "grammar", "seed", KEY)  # beside the configuration
SHOWN = 5  # values in a message
Facts = Options


def kept_records(path: str | Path, kind: str, what: str, **where: object) -> tuple[Path, list[Record]]:
    """Return the folder or pack of some results, and those of its records whose models were kept.

    Args:
        path: of a results folder, a pack, or a file in a results folder.
        kind: of the jobs.
        what: was trained, as in "agent".
        **where: facts that they must have, by the names of records, or SYNONYMS of them: seed=124, samples=4.

    Raises:
        StoreError: there are none.
        UnknownNameError: a fact that these records do not have.
    """
    path = Path(path)
    folder = path if path.is_dir() or is_pack(path) else path.parent
    records = [r for r in load_records(path) if kind_of(r).name == kind and model_file(r) is not None]
    if not records:
        raise StoreError(f"No {what} of {path} was kept with its weights (--keep-models).")
    facts = [facts_of(record) for record in records]
    return folder, list(compress(records, chosen(path, what, facts, where)))


def chosen(path: str | Path, what: str, facts: Sequence[Facts], where: Options) -> list[bool]:
    """Return for each of some results whether it has all the facts of a choice.

    Args:
        path: where the results are, for errors.
        what: was trained, as in "agent".
        facts: of each result (`facts_of`), one or more.
        where: facts that a result must have, each a value or several (`icy.core.text.words`).

    Raises:
        StoreError: no result has all of these facts.
        UnknownNameError: a fact that no result has.
    """
    known = list(dict.fromkeys(name for one in facts for name in one))
    for name in where:
        if all(_value(one, name) == "None" for one in facts):
            raise unknown(f"fact of {what}", name, known)
    fits = [all(_is(_value(one, name), value) for name, value in where.items()) for one in facts]
    if not any(fits):
        spelt = listed([f"{name}={value}" for name, value in where.items()])
        there = "; ".join(f"there is {_values(facts, name)}" for name in where if len(where) == 1)
        raise StoreError(f"No {what} of {path} is of {spelt}{'; ' * bool(there)}{there}.")
    return fits


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
    names, told = choices(records)
    raise StoreError(
        f"{path} leaves a choice of {len(records)}, which differ in {told}: say which, "
        f"as in {names[0]}={_value(facts_of(records[0]), names[0])}."
    )


def choices(records: Sequence[Record], without: Collection[str] = ()) -> tuple[list[str], str]:
    """Return the facts in which records differ, and a phrase with their values: seed (123, 124).

    These are facts that all of the records have, if they differ in any; else facts that some have; else their keys.

    Args:
        records: one or more.
        without: facts to leave out.
    """
    facts = [facts_of(record) for record in records]
    names = [name for name in _differing(facts) if name not in without]
    names = [name for name in names if all(name in one for one in facts)] or names or [KEY]
    return names, listed([_values(facts, name) for name in names])


def distinctions(records: Sequence[Record]) -> list[str]:
    """Return for every record the facts that distinguish it from others of its model and seed; "" for none."""
    every = [facts_of(record) for record in records]
    told = [name for name in _differing(every) if name not in LABELLED]
    facts = [{name: _value(one, name) for name in told} for one in every]
    whole = [(record["model"], record["seed"], *one.values()) for record, one in zip(records, facts, strict=True)]
    for record, one, label in zip(records, facts, whole, strict=True):
        if whole.count(label) > 1:
            one[KEY] = record["key"]
    return [", ".join(f"{name}={value}" for name, value in one.items()) for one in facts]


def facts_of(record: Record) -> Facts:
    """Return the facts of a record by name: model, grammar, seed, key, and its configuration.

    Options and settings have their own names, except those that hold several values themselves.
    """
    config = record["config"]
    named = {name: record.get(name) for name in (*FACTS, "preset")}
    own = {name: value for name, value in config.items() if not isinstance(value, Mapping)}
    inner = {n: v for part in ("options", "settings") for n, v in config.get(part, {}).items()}
    return {**inner, **own, **named}


def _differing(facts: Sequence[Facts]) -> list[str]:
    """Return the names of facts with a single value in which results differ, without their keys."""
    names = dict.fromkeys((*FACTS, *(name for one in facts for name in one)))
    plain = [n for n in names if n != KEY and not any(isinstance(one.get(n), (Mapping, list)) for one in facts)]
    return [name for name in plain if len({_value(one, name) for one in facts}) > 1]


def _values(facts: Sequence[Facts], name: str) -> str:
    """Return a fact with its values: seed (123, 124)."""
    values = list(dict.fromkeys(_value(one, name) for one in facts))
    return f"{name} ({', '.join(values[:SHOWN])}{', …' * (len(values) > SHOWN)})"


def _value(facts: Facts, name: str) -> str:
    return str(facts.get(name if name in facts else SYNONYMS.get(name, name)))


def _is(value: str, wanted: object) -> bool:
    """Return whether a value is the one wanted, or one of several; case does not count."""
    return value.lower() in {str(one).lower() for one in (wanted, *words(wanted))}
