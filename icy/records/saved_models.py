"""Choose saved models by facts of their records (model, seed, configuration), and report ambiguous choices."""

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
LABELED = ("model", "seed")  # facts that are part of every label
FACTS = ("model", "grammar", "seed", KEY)  # in addition to the configuration
SHOWN = 5  # most values in a message
Facts = Options


def records_with_models(path: str | Path, kind: str, what: str, **where: object) -> tuple[Path, list[Record]]:
    """Return the folder or pack of results, and its records with saved models.

    Args:
        path: a results folder, a pack, or a file in a results folder.
        kind: kind of job.
        what: noun for a trained model, as in "agent".
        **where: required facts, by the field names of records or SYNONYMS of these: seed=124, samples=4.

    Raises:
        StoreError: no records match.
        UnknownNameError: these records do not have a fact of this name.
    """
    path = Path(path)
    folder = path if path.is_dir() or is_pack(path) else path.parent
    records = [r for r in load_records(path) if kind_of(r).name == kind and model_file(r) is not None]
    if not records:
        raise StoreError(f"{path} has no {what} with saved weights; --keep-models saves weights.")
    facts = [facts_of(record) for record in records]
    return folder, list(compress(records, match_facts(path, what, facts, where)))


def match_facts(path: str | Path, what: str, facts: Sequence[Facts], where: Options) -> list[bool]:
    """Return for each result whether it has all required facts.

    Args:
        path: place of the results, for errors.
        what: noun for a trained model, as in "agent".
        facts: facts of each result (`facts_of`); at least one result.
        where: required facts, each with one or several accepted values (`icy.core.text.words`).

    Raises:
        StoreError: no result has all of these facts.
        UnknownNameError: no result has a fact of this name.
    """
    known = list(dict.fromkeys(name for one in facts for name in one))
    for name in where:
        if all(_value(one, name) == "None" for one in facts):
            raise unknown(f"field of the saved {what}", name, known)
    accepted = {name: {str(one).lower() for one in (value, *words(value))} for name, value in where.items()}
    matches = [all(_value(one, name).lower() in accepted[name] for name in where) for one in facts]
    if not any(matches):
        required = listed([f"{name}={value}" for name, value in where.items()])
        available = "; ".join(f"available: {_values(facts, name)}" for name in where if len(where) == 1)
        raise StoreError(f"{path} has no {what} with {required}{'; ' * bool(available)}{available}.")
    return matches


def require_one(path: str | Path, records: Sequence[Record], without: Collection[str] = ()) -> None:
    """Require that only one saved model or language matches.

    Args:
        path: place of the results, for errors.
        records: records that match, at least one.
        without: facts that the message leaves out.

    Raises:
        StoreError: several models match. The message names the facts in which they differ.
    """
    if len(records) == 1:
        return
    names, differences = choices(records, without)
    raise StoreError(
        f"{path} has {len(records)} saved models that match, which differ in {differences}; choose one, "
        f"as in {names[0]}={_value(facts_of(records[0]), names[0])}."
    )


def choices(records: Sequence[Record], without: Collection[str] = ()) -> tuple[list[str], str]:
    """Return the facts in which records differ, and a phrase with their values: seed (123, 124).

    Facts that all records have are preferred to facts that only some records have. If no facts differ, return the key.

    Args:
        records: at least one record.
        without: facts to leave out.
    """
    facts = [facts_of(record) for record in records]
    names = [name for name in _differing(facts) if name not in without]
    names = [name for name in names if all(name in one for one in facts)] or names or [KEY]
    return names, listed([_values(facts, name) for name in names])


def distinctions(records: Sequence[Record]) -> list[str]:
    """Return for every record a text with the facts that distinguish it from records of the same model and seed."""
    every = [facts_of(record) for record in records]
    names = [name for name in _differing(every) if name not in LABELED]
    facts = [{name: _value(one, name) for name in names} for one in every]
    whole = [(record["model"], record["seed"], *one.values()) for record, one in zip(records, facts, strict=True)]
    for record, one, label in zip(records, facts, whole, strict=True):
        if whole.count(label) > 1:
            one[KEY] = record["key"]
    return [", ".join(f"{name}={value}" for name, value in one.items()) for one in facts]


def facts_of(record: Record) -> Facts:
    """Return the facts of a record by name: model, grammar, seed, key, and its configuration.

    Options and settings are facts under their own names; nested options and settings are left out.
    """
    config = record["config"]
    named = {name: record.get(name) for name in (*FACTS, "preset")}
    own = {name: value for name, value in config.items() if not isinstance(value, Mapping)}
    inner = {n: v for part in ("options", "settings") for n, v in config.get(part, {}).items()}
    return {**inner, **own, **named}


def _differing(facts: Sequence[Facts]) -> list[str]:
    """Return the names of facts in which results differ, without nested facts and keys."""
    names = dict.fromkeys((*FACTS, *(name for one in facts for name in one)))
    plain = [n for n in names if n != KEY and not any(isinstance(one.get(n), (Mapping, list)) for one in facts)]
    return [name for name in plain if len({_value(one, name) for one in facts}) > 1]


def _values(facts: Sequence[Facts], name: str) -> str:
    """Return a fact with its values: seed (123, 124)."""
    values = list(dict.fromkeys(_value(one, name) for one in facts))
    return f"{name} ({', '.join(values[:SHOWN])}{', …' * (len(values) > SHOWN)})"


def _value(facts: Facts, name: str) -> str:
    return str(facts.get(name if name in facts else SYNONYMS.get(name, name)))
