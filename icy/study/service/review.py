"""Review and pay: bonuses, completion codes, decisions on finished games, and payment files for platforms."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.files import write_atomically
from icy.core.text import csv_cell
from icy.study.rows import LEAST_MS, MOST_ALIKE, MOST_STRANGE, strange_answers

from .persons import match_name
from .play import game_of
from .studies import Row, Study, minutes_between

# -- pay and completion codes ------------------------------------------------------------------------------------------


def bonus_cents(study: Study, game: Row) -> int:
    """Return the bonus of a finished game, in cents, at most `most_bonus_cents` of the plan.

    Raises:
        StoreError: the game is not finished.
    """
    if game["state"] != "closed":
        raise StoreError("A bonus is paid only for a finished game.")
    most = study.plan.people.most_bonus_cents
    return min(most, round(game_of(game["rules_json"]).settings.bonus_cents(game["score"])))


def money(cents: int, currency: str) -> str:
    """Format an amount.

    Example:
        >>> money(305, "GBP")
        '3.05 GBP'
    """
    return f"{cents // 100}.{cents % 100:02d} {currency}"


# -- review ------------------------------------------------------------------------------------------------------------

APPROVE, REJECT = "approve", "reject"
LEAST_SCORE, EXAMPLES = 100, 50  # Icy22 pays games of 50 items with at least 100 points without a review


@dataclass(frozen=True)
class GameReview:
    """The information on a finished game for its review.

    Attributes:
        person: opaque name of the person.
        cell: the condition.
        score: score of the game.
        bonus_cents: bonus in hundredths of the currency.
        minutes: minutes from the first contact to the end.
        alike: share of the most frequent answer among all answers.
        reaction_ms: median reaction time in milliseconds, over the items with a reported time; None without times.
        strange: number of answers with a letter that no code of the game has.
        blurs: number of times that the player left the window.
        pastes: number of times that the player pasted.
        odd: unusual properties of the game, in words; "" if there are none. A researcher decides on the game.
        decision: "approve", "reject", or "" before the decision.
    """

    person: str
    cell: str
    score: int
    bonus_cents: int
    minutes: float
    alike: float
    reaction_ms: float | None
    strange: int
    blurs: int
    pastes: int
    odd: str
    decision: str


GAMES = """
    SELECT game.*, person.first_seen, review.decision, external_id.kept_json
    FROM game JOIN person ON person.id = game.person LEFT JOIN review ON review.game = game.id
    LEFT JOIN external_id ON external_id.person = person.id
    WHERE person.study = ? AND person.pilot = ? AND game.state = 'closed' ORDER BY game.finished
"""


def review_games(study: Study) -> list[GameReview]:
    """Return the information for the review of every finished game."""
    with study.database.reading() as connection:
        games = connection.execute(GAMES, (study.number, study.is_pilot)).fetchall()
        trials = {
            game["id"]: connection.execute("SELECT * FROM trial WHERE game = ?", (game["id"],)).fetchall()
            for game in games
        }
    counts = Counter(one for game in games for one in _assignments(game))
    shared = {one for one, people in counts.items() if people > 1}
    return [_review(study, game, trials[game["id"]], shared) for game in games]


def _assignments(row: Row) -> list[str]:
    """Return the ids of a person's MTurk assignments, in order; several if the person accepted the task again."""
    saved = json.loads(row["kept_json"] or "{}")
    return [*saved.get("earlier", []), *([saved["assignment"]] if "assignment" in saved else [])]


def _review(study: Study, game: Row, trials: list[Row], shared: set[str]) -> GameReview:
    answers = [trial["answer"] for trial in trials]
    times = [trial["reaction_ms"] for trial in trials if trial["reaction_ms"] is not None]
    position = json.loads(game["position_json"])
    alike = max(Counter(answers).values()) / len(answers)
    median = statistics.median(times) if times else None
    strange = strange_answers(game_of(game["rules_json"]).codes, answers)
    assignments = _assignments(game)
    odd = {
        f"score below {LEAST_SCORE}": game["score"] < LEAST_SCORE and len(answers) == EXAMPLES,
        "same answer": alike > MOST_ALIKE,
        "very fast": median is not None and median < LEAST_MS,
        "other letters": strange / len(answers) > MOST_STRANGE,
        f"{len(assignments)} assignments": len(assignments) > 1,
        "assignment of another worker": not shared.isdisjoint(assignments),
    }
    return GameReview(
        person=game["person"],
        cell=f"{game['dataset']}/{game['grammar']}",
        score=game["score"],
        bonus_cents=bonus_cents(study, game),
        minutes=minutes_between(game["first_seen"], game["finished"]),
        alike=alike,
        reaction_ms=median,
        strange=strange,
        blurs=position["blurs"],
        pastes=position["pastes"],
        odd=", ".join(what for what, is_so in odd.items() if is_so),
        decision=game["decision"] or "",
    )


# -- decisions ---------------------------------------------------------------------------------------------------------


def decide(study: Study, name: str, decision: str, reason: str = "") -> str:
    """Save a decision on a finished game. Until its payment is exported, a later decision replaces it.

    Args:
        study: the study.
        name: opaque name of the person, or its first letters.
        decision: "approve" or "reject".
        reason: reason that the person sees; required for a rejection.

    Returns:
        The full opaque name.

    Raises:
        UnknownNameError: nobody with a finished game has this name.
        InvalidSettingError: several names match, a rejection has no reason, or the payment was exported already.
    """
    if decision == REJECT and not reason.strip():
        raise InvalidSettingError("A rejection needs a reason; the person will see it.")
    with study.database.writing() as connection:
        games = {game["person"]: game for game in connection.execute(GAMES, (study.number, study.is_pilot))}
        game = games[match_name("person with a finished game", name, list(games))]
        saved = connection.execute(
            "INSERT INTO review VALUES (?, ?, ?, ?, ?, NULL) ON CONFLICT (game) DO UPDATE SET "
            "decision = excluded.decision, reason = excluded.reason, decided = excluded.decided WHERE exported IS NULL",
            (game["id"], decision, reason.strip(), bonus_cents(study, game), study.time),
        ).rowcount
    if not saved:
        raise InvalidSettingError(
            f"The payment of {game['person']} was exported already; change the decision on the platform."
        )
    return str(game["person"])


# -- payments ----------------------------------------------------------------------------------------------------------

PAID = """
    SELECT external_id.external, external_id.kept_json, person.id, review.*, game.completion_code
    FROM review JOIN game ON game.id = review.game JOIN person ON person.id = game.person
    LEFT JOIN external_id ON external_id.person = person.id
    WHERE person.study = ? AND person.pilot = ? ORDER BY review.decided, person.id
"""


def export_payments(study: Study, folder: Path) -> list[Path]:
    """Write the payment files of all decisions for the platform, and mark the decisions as exported.

    Raises:
        InvalidSettingError: no game has a decision.
        StoreError: a file cannot be written.
    """
    with study.database.reading() as connection:
        rows = connection.execute(PAID, (study.number, study.is_pilot)).fetchall()
    if not rows:
        raise InvalidSettingError("There is nothing to pay: approve or reject finished games first.")
    writer = {"prolific": _prolific, "mturk": _mturk}.get(study.plan.platform.name, _general)
    files = writer(study, rows)
    for name, content in files.items():
        write_atomically(folder / name, content.encode(), "--pay", private=True)
    with study.database.writing() as connection:
        connection.executemany(
            "UPDATE review SET exported = ? WHERE game = ? AND exported IS NULL",
            [(study.time, row["game"]) for row in rows],
        )
    return [folder / name for name in files]


def _amount(cents: int) -> str:
    return f"{cents / 100:.2f}"


def _table(*rows: tuple[object, ...]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([csv_cell(cell) for cell in row] for row in rows)
    return file.getvalue()


def _prolific(study: Study, rows: list[Row]) -> dict[str, str]:
    """Return files for Prolific's bulk forms: ids to approve, bonuses as "id,amount", and rejections."""
    approved = [row for row in rows if row["decision"] == APPROVE and row["external"]]
    bonuses = [(row["external"], _amount(row["bonus_cents"])) for row in approved if row["bonus_cents"]]
    rejected = [(row["external"], row["reason"]) for row in rows if row["decision"] == REJECT and row["external"]]
    return {
        f"{study.name}-prolific-approve.txt": _table(*((row["external"],) for row in approved)),
        f"{study.name}-prolific-bonus.txt": _table(*bonuses),
        f"{study.name}-prolific-reject.csv": _table(("participant_id", "reason"), *rejected),
    }


def _mturk(study: Study, rows: list[Row]) -> dict[str, str]:
    """Return a table in the format of MTurk's results, with the columns that MTurk reads, and two more.

    The two columns are the bonus, and the worker's earlier assignments. A submission of an earlier assignment is a
    duplicate.
    """
    head = ("AssignmentId", "WorkerId", "HITId", "Approve", "Reject", "BonusAmount", "EarlierAssignments")
    found = []
    for row in rows:
        if row["external"]:
            saved, reason = json.loads(row["kept_json"]), row["reason"] if row["decision"] == REJECT else ""
            approve, earlier = "x" if row["decision"] == APPROVE else "", " ".join(saved.get("earlier", []))
            ids = (saved.get("assignment", ""), row["external"], saved.get("hit", ""))
            found.append((*ids, approve, reason, _amount(row["bonus_cents"]), earlier))
    return {f"{study.name}-mturk.csv": _table(head, *found)}


def _general(study: Study, rows: list[Row]) -> dict[str, str]:
    """Return a table of codes and amounts. People without an id are paid by their completion code."""
    head = ("id", "completion_code", "decision", "reason", "base", "bonus", "currency")
    base, currency = _amount(study.plan.people.base_cents), study.plan.people.currency
    found = [
        (
            *(row["external"] or "", row["completion_code"], row["decision"], row["reason"]),
            *((base, _amount(row["bonus_cents"])) if row["decision"] == APPROVE else ("0.00", "0.00")),
            currency,
        )
        for row in rows
    ]
    return {f"{study.name}-payments.csv": _table(head, *found)}
