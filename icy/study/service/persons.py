"""People of a study: how one is taken in, found again, withdraws and is forgotten."""

from __future__ import annotations

import json
import secrets
import sqlite3
from dataclasses import dataclass
from typing import Any, Literal

from icy.core.errors import InvalidSettingError, unknown
from icy.study.game import StudyGame, instance_of

from .clock import before
from .conditions import Slot, free_slot
from .database import Row
from .keys import new_token
from .links import is_untested
from .platforms import Visit, canonical_id
from .studies import Study

Refusal = Literal["closed", "placeholder", "malformed", "no_id", "untested", "excluded", "full"]
SEED_BITS = 63  # of a person's seed


@dataclass(frozen=True)
class Person:
    """Someone who agreed to take part.

    Attributes:
        id: opaque name, which the export has.
        token: of the private link; whoever has it is this person.
        stage: which page is next; see `stages`.
        pilot: whether the data are of a pilot.
        attempts: at the questions on the instructions.
        withdrawn: when the person withdrew; None for never.
    """

    id: str
    token: str
    stage: str
    pilot: bool
    attempts: int
    withdrawn: str | None

    @classmethod
    def of(cls, row: Row) -> Person:
        """Return the person of a row."""
        return cls(row["id"], row["token"], row["stage"], bool(row["pilot"]), row["attempts"], row["withdrawn"])


@dataclass(frozen=True)
class Arrival:
    """Someone who wants to take part.

    Attributes:
        visit: how they came.
        device: kind of device.
        first_seen: when they first saw the page of information.
    """

    visit: Visit
    device: str
    first_seen: str


# -- coming and coming back --------------------------------------------------------------------------------------------


def hash_of(study: Study, external: str) -> str | None:
    """Return what an external id is told apart by; the same in all studies of a database and platform."""
    platform = study.plan.platform.name
    return study.key.mark("external id", platform, canonical_id(platform, external)) if external else None


def person_of_token(connection: sqlite3.Connection, study: Study, token: str) -> Person | None:
    """Return the person of a private link; None if it is nobody's."""
    row = connection.execute("SELECT * FROM person WHERE token = ? AND study = ?", (token, study.number)).fetchone()
    return None if row is None else Person.of(row)


def person_of_external(connection: sqlite3.Connection, study: Study, external: str) -> Person | None:
    """Return the person of a platform's id; None if nobody of it took part in this study."""
    mark = hash_of(study, external)
    row = connection.execute("SELECT * FROM person WHERE id_hash = ? AND study = ?", (mark, study.number)).fetchone()
    return None if row is None else Person.of(row)


def come_again(study: Study, visit: Visit) -> Person | None:
    """Return the person of a visit's id, and keep the parameters of this last visit; None for someone new."""
    with study.database.reading() as connection:
        known = person_of_external(connection, study, visit.external)
        changed = known is not None and _last_visit(connection, known, visit) is not None
    if known is not None and changed:
        with study.database.writing() as connection:
            _keep_visit(connection, known, visit)
    return known


def _keep_visit(connection: sqlite3.Connection, person: Person, visit: Visit) -> None:
    changed = _last_visit(connection, person, visit)
    if changed is not None:
        connection.execute("UPDATE external_id SET kept_json = ? WHERE person = ?", (json.dumps(changed), person.id))


def _last_visit(connection: sqlite3.Connection, person: Person, visit: Visit) -> dict[str, object] | None:
    """Return the parameters to keep of a person's link after another visit; None if nothing changes.

    Someone who returns a task of MTurk and accepts it again has a new assignment, which alone can be handed in. The
    assignments before it are kept as "earlier", since one of them may have been handed in as well.
    """
    row = connection.execute("SELECT kept_json FROM external_id WHERE person = ?", (person.id,)).fetchone()
    if row is None:  # forgotten
        return None
    old: dict[str, Any] = json.loads(row["kept_json"])
    new = {**old, **visit.kept}
    earlier = [
        one for one in (*old.get("earlier", []), old.get("assignment")) if one not in (None, new.get("assignment"))
    ]
    if earlier:
        new["earlier"] = list(dict.fromkeys(earlier))
    else:
        new.pop("earlier", None)
    return None if new == old else new


def refusal(connection: sqlite3.Connection, study: Study, visit: Visit) -> Refusal | None:
    """Return why someone new cannot take part; None if they can."""
    plan, needs_id = study.plan, study.plan.platform.needs_id_now(study.plan.state)
    if plan.state == "closed":
        return "closed"
    if visit.fault:
        return visit.fault
    if needs_id and not visit.external:
        return "no_id"
    if is_untested(connection, study):
        return "untested"
    marks = ", ".join("?" for _ in plan.exclude)
    earlier = connection.execute(
        f"SELECT 1 FROM person JOIN study ON study.id = person.study WHERE id_hash = ? AND study.name IN ({marks})",
        (hash_of(study, visit.external), *plan.exclude),
    ).fetchone()
    if earlier is not None:
        return "excluded"
    return "full" if free_slot(connection, study) is None else None


def enter(study: Study, arrival: Arrival) -> Person | Refusal:
    """Take in someone who has just agreed: file consent, and assign a condition, in one transaction.

    Who has taken part already is found again, and keeps condition and place in the game.
    """
    with study.database.writing() as connection:
        known = person_of_external(connection, study, arrival.visit.external)
        if known is not None:
            _keep_visit(connection, known, arrival.visit)
            return known
        refused = refusal(connection, study, arrival.visit)
        slot = None if refused else free_slot(connection, study)
        if slot is None:
            return refused or "full"
        person = _file_person(connection, study, arrival)
        _file_game(connection, study, person, slot)
        return person


def _file_person(connection: sqlite3.Connection, study: Study, arrival: Arrival) -> Person:
    person, time, visit = new_token(), study.time, arrival.visit
    connection.execute(
        "INSERT INTO person (id, token, study, pilot, platform, id_hash, device, stage, first_seen, consent_version, "
        "consented) VALUES (?, ?, ?, ?, ?, ?, ?, 'demographics', ?, ?, ?)",
        (
            *(person, new_token(), study.number, study.is_pilot, study.plan.platform.name),
            *(hash_of(study, visit.external), arrival.device, arrival.first_seen, study.plan.consent_version, time),
        ),
    )
    if visit.external:
        kept = json.dumps(dict(visit.kept))
        connection.execute("INSERT INTO external_id VALUES (?, ?, ?)", (person, visit.external, kept))
    return Person.of(connection.execute("SELECT * FROM person WHERE id = ?", (person,)).fetchone())


def _file_game(connection: sqlite3.Connection, study: Study, person: Person, slot: Slot) -> None:
    instance = instance_of(slot.game, slot.instance, study.plan.conditions.list_seed)
    game = StudyGame(slot.game, instance, secrets.randbits(SEED_BITS))
    display, time = study.plan.display, study.time
    connection.execute(
        "INSERT INTO game (person, slot, dataset, grammar, instance, language_seed, person_seed, rules_json, state, "
        "position_json, cards, assigned, touched, palette, patterns, sound) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'assigned', ?, ?, ?, ?, ?, ?, ?)",
        (
            *(person.id, slot.number, slot.game.dataset, slot.game.grammar, slot.instance, instance.language_seed),
            *(game.seed, json.dumps(game.to_json()), json.dumps(game.new().to_json()), slot.game.start, time, time),
            *(display.palette, display.patterns, display.sound),
        ),
    )


# -- going -------------------------------------------------------------------------------------------------------------


def withdraw(study: Study, person: Person, delete: bool) -> None:
    """Let a person stop; a game that is not finished gives its place away.

    Args:
        study: the study.
        person: who.
        delete: whether to delete all that was recorded, and the person's ids.
    """
    with study.database.writing() as connection:
        connection.execute(
            "UPDATE person SET stage = 'withdrawn', withdrawn = ? WHERE id = ? AND withdrawn IS NULL",
            (study.time, person.id),
        )
        connection.execute("UPDATE game SET state = 'dropped' WHERE person = ? AND state <> 'closed'", (person.id,))
        if delete:
            _erase(connection, person.id, study.time, data=True)
    if delete:
        study.database.scrub()


def forget(study: Study, given: str, data: bool) -> str:
    """Erase the ids of a person, and, if wished, all data; return the person's opaque name.

    Args:
        study: the study.
        given: opaque name, external id, or the first letters of the name.
        data: whether to erase the data too.

    Raises:
        UnknownNameError: nobody is called so.
        InvalidSettingError: several are.
    """
    with study.database.writing() as connection:
        person = _named(connection, study, given)
        _erase(connection, person, study.time, data)
    study.database.scrub()
    return person


def _named(connection: sqlite3.Connection, study: Study, given: str) -> str:
    names = [row["id"] for row in connection.execute("SELECT id FROM person WHERE study = ?", (study.number,))]
    by_id = person_of_external(connection, study, given)
    found = [by_id.id] if by_id else [name for name in names if given and name.startswith(given.upper())]
    if len(found) > 1:
        raise InvalidSettingError(f"{len(found)} people begin with {given!r}; give more letters.")
    if not found:
        raise unknown("person", given, names)
    return str(found[0])


def _erase(connection: sqlite3.Connection, person: str, time: str, data: bool) -> None:
    connection.execute("DELETE FROM external_id WHERE person = ?", (person,))
    connection.execute("UPDATE person SET id_hash = NULL WHERE id = ?", (person,))
    if data:
        for table in ("game", "survey", "feedback"):  # trials, events and reviews go with the game
            connection.execute(f"DELETE FROM {table} WHERE person = ?", (person,))
        connection.execute(
            "UPDATE person SET stage = 'withdrawn', withdrawn = coalesce(withdrawn, ?) WHERE id = ?", (time, person)
        )


def delete_old_ids(study: Study) -> int:
    """Delete external ids of those whose payment was exported long enough ago; return how many."""
    days = study.plan.people.ids_days
    if not days:
        return 0
    with study.database.writing() as connection:
        found = connection.execute(
            "DELETE FROM external_id WHERE person IN (SELECT person.id FROM person "
            "JOIN game ON game.person = person.id JOIN review ON review.game = game.id "
            "WHERE person.study = ? AND review.exported < ?)",
            (study.number, before(study.now(), days=days)),
        ).rowcount
    if found:
        study.database.scrub()
    return int(found)
