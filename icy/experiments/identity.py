"""The identity of code of users in a job: the versions in the keys of its records.

A record is used again only for the same code and the same behavior. `icy.core.code` describes the code, and
`icy.training.behavior` the behavior; both are stored in the record. The digest of the code and a name of the behavior
are among the versions of the record, and so determine its key.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from icy.core.code import edited_modules
from icy.core.machine import SOFTWARE
from icy.core.text import listed
from icy.core.types import Fields
from icy.records.record import Record
from icy.records.store import Store
from icy.training.job import Job
from icy.training.outcomes import Replicate

log = logging.getLogger(__name__)
J = TypeVar("J", bound=Job)
Versions = Mapping[str, str]
BEHAVIOR = "behavior"  # name of a version
OF_REPLICATES = {*SOFTWARE, "grammar", "language", "protocol", BEHAVIOR}  # versions that are not of the code of a model
MOST_NAMED = 4  # most changed parts in a warning
_warned: set[str] = set()  # sentences, to warn only once


def with_identity(job: J, store: Store) -> J:
    """Return a job with the versions and the description of its code of users; other jobs are returned unchanged.

    Args:
        job: a job with all replicates of a row.
        store: the results folder. Its records with the same code and the same behavior give the behavior its name.
    """
    users = [entry for entry in job.entries if entry.is_users]
    if not users:
        return job
    from icy.training.behavior import behavior_name, same_behavior  # imports torch

    for module in edited_modules():  # plug-in files are imported again
        _warn(f"{module} was edited after it was imported; the imported code is used, until Python is restarted.")
    parts = {entry.qualified: {"code": {n: digest[:8] for n, digest in entry.parts.items()}} for entry in users}
    behaviors: Mapping[str, Fields] = {}
    with contextlib.suppress(Exception):  # the training will report the error
        behaviors = job.behavior()
    for entry in users:
        entry.note_changes(entry.parts)
    made_by = parts | {name: {**parts.get(name, {}), BEHAVIOR: one} for name, one in behaviors.items()}
    own: dict[Replicate, Versions] = {r: job.versions(r) for r in job.replicates}
    known = store.of_users(job.name, job.row)
    other = f"{job.name} counts as another model than the one of earlier results in {store.folder}"
    of_code = {name: version for name, version in next(iter(own.values()), {}).items() if name not in OF_REPLICATES}
    same_code = [one for one in known if of_code.items() <= one["versions"].items()]
    match = next((one for one in same_code if same_behavior(_behaviors(one), behaviors)), None)
    if same_code and match is None:
        _warn(f"{other}, although its code is the same, since it behaves differently for a fixed input.")
    elif known and not same_code:
        alike = behaviors and same_behavior(_behaviors(known[-1]), behaviors)
        same = "; for a fixed input it behaves the same" if alike else ""
        _warn(f"{other}, since {_changes(known[-1], made_by)}{same}.")
    name = behavior_name(behaviors) if match is None else match["versions"].get(BEHAVIOR)
    further = {BEHAVIOR: name} if behaviors and name else {}
    return replace(job, identity={r: {**one, **further} for r, one in own.items()}, made_by=made_by)


def _behaviors(record: Record) -> dict[str, Fields]:
    """Return the behaviors in a record; none in a record of an older version."""
    return {name: one[BEHAVIOR] for name, one in record.get("made_by", {}).items() if BEHAVIOR in one}


def _changes(record: Record, made_by: Mapping[str, Fields]) -> str:
    """Return the difference of the code from that of a record, as a part of a sentence."""
    before = {part for of in record.get("made_by", {}).values() for part in of.get("code", {}).items()}
    after = {part for of in made_by.values() for part in of.get("code", {}).items()}
    names = sorted({name for name, _ in before ^ after})
    if not before:
        return "an older version of icy recorded less of its code"
    return f"its code has changed ({listed(names, most=MOST_NAMED)})"


def _warn(sentence: str) -> None:
    """Warn once."""
    if sentence not in _warned:
        _warned.add(sentence)
        log.warning("%s", sentence)
