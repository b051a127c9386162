"""People of a study: assignment of conditions, enrollment, return visits, withdrawal and deletion."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from icy.core.errors import InvalidSettingError, quoted, unknown
from icy.core.streams import stream
from icy.study.game import StudyGame, StudyGameSettings, instance_of

from .links import is_untested
from .plan import Conditions
from .platforms import Visit
from .studies import Row, Study, before, insert, new_token, update

# -- conditions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """A place in the order of conditions.

    Attributes:
        number: number of the place, from 0.
        cell: name of the condition.
        game: game settings of the condition.
        instance: number of the instance, and of the block; people in a block share held-out items.
    """

    number: int
    cell: str
    game: StudyGameSettings
    instance: int


def slots(conditions: Conditions) -> Iterator[Slot]:
    """Yield the places of a study, in the order of assignment.

    Example:
        >>> places = list(slots(Conditions(dataset=["synth"], grammar=["rot", "perm"], quota=2)))
        >>> [place.instance for place in places], {place.cell for place in places[:2]} == {"synth/rot", "synth/perm"}
        ([0, 0, 1, 1], True)
    """
    number = count()
    for block in count():
        left = [cell for cell in conditions.cells if not 0 < conditions.quota_of(cell[0]) <= block]
        if not left:
            return
        for place in stream(conditions.list_seed, "block of conditions", block).permutation(len(left)):
            cell, game = left[int(place)]
            yield Slot(next(number), cell, game, block)


TAKEN = """
    SELECT game.slot FROM game JOIN person ON person.id = game.person
    WHERE person.study = ? AND person.pilot = ?
        AND (game.state = 'closed' OR game.state <> 'dropped' AND game.touched > ?)
"""


def free_slot(connection: sqlite3.Connection, study: Study) -> Slot | None:
    """Return the first place without a finished or active game; None if no place is free."""
    conditions = study.plan.conditions
    limit = before(study.now(), minutes=conditions.drop_after)
    taken = {slot for (slot,) in connection.execute(TAKEN, (study.number, study.is_pilot, limit))}
    return next((slot for slot in slots(conditions) if slot.number not in taken), None)


Refusal = Literal["closed", "placeholder", "malformed", "no_id", "untested", "excluded", "full"]
SEED_BITS = 63  # number of bits of a person's seed


@dataclass(frozen=True)
class Person:
    """A person who agreed to take part.

    Attributes:
        id: opaque name, also used in the export.
        token: token of the private link, which identifies the person.
        stage: current page of the person; see `stages`.
        attempts: number of attempts at the questions about the instructions.
        withdrawn: time of withdrawal; None if the person did not withdraw.
    """

    id: str
    token: str
    stage: str
    attempts: int
    withdrawn: str | None

    @classmethod
    def of(cls, row: Row) -> Person:
        """Create a person from a row of the database."""
        return cls(row["id"], row["token"], row["stage"], row["attempts"], row["withdrawn"])


# -- first and later visits --------------------------------------------------------------------------------------------


def hash_of(study: Study, external: str) -> str | None:
    """Return the keyed hash of an external id, which is the same in all studies of a database and platform."""
    recruiting = study.plan.platform
    return study.key.mark("external id", recruiting.name, recruiting.canonical_id(external)) if external else None


def person_of_token(connection: sqlite3.Connection, study: Study, token: str) -> Person | None:
    """Find the person with a private link; None if the link is unknown."""
    row = connection.execute("SELECT * FROM person WHERE token = ? AND study = ?", (token, study.number)).fetchone()
    return None if row is None else Person.of(row)


def person_of_external(connection: sqlite3.Connection, study: Study, external: str) -> Person | None:
    """Find the person with an id of the platform; None if nobody with this id took part in the study."""
    mark = hash_of(study, external)
    row = connection.execute("SELECT * FROM person WHERE id_hash = ? AND study = ?", (mark, study.number)).fetchone()
    return None if row is None else Person.of(row)


def come_again(study: Study, visit: Visit) -> Person | None:
    """Find the person of a visit, and save the parameters of this visit; None for a new person."""
    with study.database.reading() as connection:
        known = person_of_external(connection, study, visit.external)
    if known is not None and visit.extra:
        with study.database.writing() as connection:
            _save_visit(connection, known, visit)
    return known


def _save_visit(connection: sqlite3.Connection, person: Person, visit: Visit) -> None:
    """Save the link parameters of another visit of a person, unless the id was erased.

    A person who returns a task of MTurk and accepts it again gets a new assignment, and can submit only this one. The
    earlier assignments are saved as "earlier", because the person may have submitted one of them too.
    """
    row = connection.execute("SELECT kept_json FROM external_id WHERE person = ?", (person.id,)).fetchone()
    if row is None:
        return
    old: dict[str, Any] = json.loads(row["kept_json"])
    new = {**old, **visit.extra}
    assignments = [*new.pop("earlier", []), *([old["assignment"]] if "assignment" in old else [])]
    if earlier := [one for one in dict.fromkeys(assignments) if one != new.get("assignment")]:
        new["earlier"] = earlier
    if new != old:
        update(connection, "external_id", "person = ?", person.id, kept_json=json.dumps(new))


def refusal(connection: sqlite3.Connection, study: Study, visit: Visit) -> Refusal | None:
    """Return why a new person cannot take part; None if they can."""
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


def enter(study: Study, visit: Visit, device: str, first_seen: str) -> Person | Refusal:
    """Enroll a person who agreed to take part: save the consent and assign a condition, in one transaction.

    A person who takes part already keeps the condition and the state of the game.

    Args:
        study: the study.
        visit: the visit.
        device: kind of device.
        first_seen: time when the person first saw the information page.
    """
    with study.database.writing() as connection:
        known = person_of_external(connection, study, visit.external)
        if known is not None:
            _save_visit(connection, known, visit)
            return known
        refused = refusal(connection, study, visit)
        slot = None if refused else free_slot(connection, study)
        if slot is None:
            return refused or "full"
        person = _save_person(connection, study, visit, device, first_seen)
        _save_game(connection, study, person, slot)
        return person


def _save_person(connection: sqlite3.Connection, study: Study, visit: Visit, device: str, first_seen: str) -> Person:
    person = new_token()
    insert(
        connection,
        "person",
        id=person,
        token=new_token(),
        study=study.number,
        pilot=study.is_pilot,
        platform=study.plan.platform.name,
        id_hash=hash_of(study, visit.external),
        device=device,
        stage="demographics",
        first_seen=first_seen,
        consent_version=study.plan.consent_version,
        consented=study.time,
    )
    if visit.external:
        kept = json.dumps(dict(visit.extra))
        insert(connection, "external_id", person=person, external=visit.external, kept_json=kept)
    return Person.of(connection.execute("SELECT * FROM person WHERE id = ?", (person,)).fetchone())


def _save_game(connection: sqlite3.Connection, study: Study, person: Person, slot: Slot) -> None:
    instance = instance_of(slot.game, slot.instance, study.plan.conditions.list_seed)
    game, time = StudyGame(slot.game, instance, secrets.randbits(SEED_BITS)), study.time
    insert(
        connection,
        "game",
        person=person.id,
        slot=slot.number,
        dataset=slot.game.dataset,
        grammar=slot.game.grammar,
        instance=slot.instance,
        language_seed=instance.language_seed,
        person_seed=game.seed,
        rules_json=json.dumps(game.to_json()),
        state="assigned",
        position_json=json.dumps(game.new().to_json()),
        cards=slot.game.start,
        assigned=time,
        touched=time,
        palette=study.plan.display.palette,
        patterns=study.plan.display.patterns,
        sound=study.plan.display.sound,
    )


def match_name(what: str, name: str, names: Sequence[str]) -> str:
    """Return the opaque name that begins with some letters.

    Raises:
        UnknownNameError: no name begins with them.
        InvalidSettingError: several names do.
    """
    matches = [one for one in names if name and one.startswith(name.upper())]
    if len(matches) > 1:
        raise InvalidSettingError(f"The names of {len(matches)} people begin with {quoted(name)}; type more letters.")
    if not matches:
        raise unknown(what, name, names)
    return matches[0]


# -- withdrawal and deletion -------------------------------------------------------------------------------------------


def withdraw(study: Study, person: Person, delete: bool) -> None:
    """Withdraw a person from the study, and free the place of an unfinished game.

    Args:
        study: the study.
        person: the person.
        delete: whether to delete all data and ids of the person.
    """
    with study.database.writing() as connection:
        where = "id = ? AND withdrawn IS NULL"
        update(connection, "person", where, person.id, stage="withdrawn", withdrawn=study.time)
        update(connection, "game", "person = ? AND state <> 'closed'", person.id, state="dropped")
        if delete:
            _erase(connection, person.id, study.time, data=True)
    if delete:
        study.database.scrub()


def forget(study: Study, name: str, data: bool) -> str:
    """Erase the ids of a person, and optionally all data, and return the person's opaque name.

    Args:
        study: the study.
        name: opaque name or its first letters, or external id.
        data: whether to erase the data too.

    Raises:
        UnknownNameError: nobody has this name or id.
        InvalidSettingError: several names match.
    """
    with study.database.writing() as connection:
        names = [row["id"] for row in connection.execute("SELECT id FROM person WHERE study = ?", (study.number,))]
        known = person_of_external(connection, study, name)
        person = known.id if known else match_name("person", name, names)
        _erase(connection, person, study.time, data)
    study.database.scrub()
    return person


def _erase(connection: sqlite3.Connection, person: str, time: str, data: bool) -> None:
    connection.execute("DELETE FROM external_id WHERE person = ?", (person,))
    connection.execute("UPDATE person SET id_hash = NULL WHERE id = ?", (person,))
    if data:
        for table in ("game", "survey", "feedback"):  # deleting a game deletes its trials, events and reviews
            connection.execute(f"DELETE FROM {table} WHERE person = ?", (person,))
        connection.execute(
            "UPDATE person SET stage = 'withdrawn', withdrawn = coalesce(withdrawn, ?) WHERE id = ?", (time, person)
        )


def delete_old_ids(study: Study) -> int:
    """Delete external ids `ids_days` days after the export of the payment, and return the number of deleted ids."""
    days = study.plan.people.ids_days
    if not days:
        return 0
    with study.database.writing() as connection:
        deleted = connection.execute(
            "DELETE FROM external_id WHERE person IN (SELECT person.id FROM person "
            "JOIN game ON game.person = person.id JOIN review ON review.game = game.id "
            "WHERE person.study = ? AND review.exported < ?)",
            (study.number, before(study.now(), days=days)),
        ).rowcount
    if deleted:
        study.database.scrub()
    return int(deleted)
