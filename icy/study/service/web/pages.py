"""The pages of a person, one per stage. They show what `StudyGame.shown` returns, and opaque picture addresses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace

from starlette.responses import Response

from icy.study.game import COLOURS, AnswerFeedback, Picture, StudyGame
from icy.study.service.links import TEST, link_mark
from icy.study.service.pay import bonus_cents, code_of, leave_address, outcome_of
from icy.study.service.persons import Person
from icy.study.service.platforms import MOST_ID, PLATFORMS, hand_in_address, parameters_of
from icy.study.service.play import OnFile, load
from icy.study.service.stages import ENDS, end_game, stage_of
from icy.study.stimuli import svg

from .desk import Desk
from .guard import form_token
from .words import block, counted, fill

EXAMPLE = "kobadefumiro"  # whose first letters are the code of the star; no language has it
ACTIONS = ("tab", "answer", "next", "view", "add", "remove", "display")
SAID = ("stale", "empty", "long", "letters")


def person_page(desk: Desk, person: Person, said: str = "") -> Response:
    """Return the page that a person is at.

    Args:
        desk: the study.
        person: who.
        said: what to say of the last answer: one of SAID, or nothing.
    """
    stage = stage_of(desk.study, person)
    if stage in ENDS:
        return _end(desk, person, stage)
    with desk.study.database.reading() as connection:
        found = load(connection, person.id)
    if stage == "game" and found.is_closed:  # after a crash between the last answer and the next page
        return person_page(desk, end_game(desk.study, person))
    return _STAGES[stage](desk, person, found, said)


def _common(desk: Desk, person: Person, stage: str) -> dict[str, str]:
    """Return what all pages before the end need."""
    return {
        "action": desk.private(person.token, stage),
        "token": form_token(desk.study, person.token),
        "stop_address": desk.private(person.token, "stop"),
    }


def _now(found: OnFile) -> SimpleNamespace:
    """Return how the game looks and sounds."""
    row = found.row
    return SimpleNamespace(palette=row["palette"], patterns=bool(row["patterns"]), sound=bool(row["sound"]))


def _rule(desk: Desk, game: StudyGame) -> SimpleNamespace:
    """Return what the instructions say of the game."""
    settings, people, t = game.settings, desk.study.plan.people, desk.words.instructions
    length = settings.content.length
    bonus = fill(
        t.bonus,
        amount=f"{settings.bonus_cents(10) / 100:g} {people.currency}",
        most=desk.money(people.most_bonus_cents),
    )
    return SimpleNamespace(
        letters=length,
        start=settings.start,
        examples=settings.examples,
        example=(EXAMPLE * length)[:length],
        star=desk.web.static("star.svg"),
        bonus=bonus if people.most_bonus_cents else "",
    )


# -- before the game ---------------------------------------------------------------------------------------------------


def _demographics(desk: Desk, person: Person, found: OnFile, said: str) -> Response:
    return desk.page("demographics", _common(desk, person, "demographics"))


def _instructions(desk: Desk, person: Person, found: OnFile, said: str) -> Response:
    given = {"rule": _rule(desk, found.game), "now": _now(found), "choose": desk.study.plan.display.choose}
    return desk.page("instructions", _common(desk, person, "instructions") | given)


def _comprehension(desk: Desk, person: Person, found: OnFile, said: str) -> Response:
    given = {"rule": _rule(desk, found.game), "again": person.attempts > 0, "attempt": person.attempts}
    return desk.page("comprehension", _common(desk, person, "comprehension") | given)


def _colours(desk: Desk, person: Person, found: OnFile, said: str) -> Response:
    values = found.game.settings.content.values
    swatches = [desk.private(person.token, "picture", mark) for mark in _swatch_marks(desk, person, found)]
    given = {"swatches": swatches, "names": COLOURS[:values], "now": _now(found)}
    return desk.page("colours", _common(desk, person, "colours") | given | {"choose": desk.study.plan.display.choose})


# -- the game ----------------------------------------------------------------------------------------------------------


def _game(desk: Desk, person: Person, found: OnFile, said: str) -> Response:
    """Return the page of the game; or the one before it."""
    common = _common(desk, person, "game")
    if found.state.phase == "new":
        return desk.page("start", common | {"rule": _rule(desk, found.game)})
    shown = found.game.shown(found.state)
    given = {
        "shown": shown,
        "told": told(desk.words, shown.feedback) if shown.feedback else "",
        "said": getattr(desk.words.say, said) if said in SAID else "",
        "trial": found.trial,
        "now": _now(found),
        "choose": desk.study.plan.display.choose,
        "notes": desk.private(person.token, "note"),
        "actions": SimpleNamespace(**{name: desk.private(person.token, name) for name in ACTIONS}),
        "picture": desk.private(person.token, "picture", test_mark(desk, person, found)),
        "train_picture": desk.private(person.token, "picture", train_mark(desk, person, found)),
    }
    return desk.page("game", common | given)


def told(t: SimpleNamespace, feedback: AnswerFeedback) -> str:
    """Return what an answer is told, but for the right code.

    Args:
        t: words.
        feedback: of the game.
    """
    if feedback.correct is None:
        return str(t.game.untold)
    if feedback.correct:
        return fill(t.game.right, points=counted(feedback.points or 0, t.counts.point))
    return str(t.game.wrong if feedback.code else t.game.wrong_untold)


def _feedback(desk: Desk, person: Person, found: OnFile, said: str) -> Response:
    return desk.page("feedback", _common(desk, person, "feedback") | {"now": _now(found)})


Stage = Callable[[Desk, Person, OnFile, str], Response]
_STAGES: Mapping[str, Stage] = {
    "demographics": _demographics,
    "instructions": _instructions,
    "comprehension": _comprehension,
    "colours": _colours,
    "game": _game,
    "feedback": _feedback,
}


# -- the end -----------------------------------------------------------------------------------------------------------


def _end(desk: Desk, person: Person, stage: str) -> Response:
    """Return the page of someone who has finished, withdrew, or failed the questions."""
    study, outcome = desk.study, outcome_of(stage)
    with study.database.reading() as connection:
        row = connection.execute("SELECT * FROM external_id WHERE person = ?", (person.id,)).fetchone()
        game = connection.execute("SELECT * FROM game WHERE person = ?", (person.id,)).fetchone()
    external = row["external"] if row else ""
    kept = {} if row is None else json.loads(row["kept_json"])
    if stage != "done" or game is None:
        address, code = leave_address(study, outcome, external), code_of(study, outcome)
        return end_page(desk, *_end_texts(desk, stage, deleted=game is None), address, code)
    own = game["completion_code"]
    given = {
        "score": game["score"],
        "pay": _pay(desk, bonus_cents(study, game)),
        "address": leave_address(study, outcome, external, own),
        "code": code_of(study, outcome, own),
        "hand_in": hand_in_address(kept.get("submit_to", "")) if kept.get("assignment") else "",
        "assignment": kept.get("assignment", ""),
        "debriefing": block(study.plan.debriefing_text, top=2),
        "person": person.id,
        "again": desk.address() if study.plan.platform.name == "kiosk" else "",
    }
    return desk.page("done", given, form_action=given["hand_in"] or "'self'")


def _pay(desk: Desk, bonus: int) -> str:
    base = desk.study.plan.people.base_cents
    return fill(desk.words.done.pay, base=desk.money(base), bonus=desk.money(bonus)) if base or bonus else ""


def _end_texts(desk: Desk, stage: str, deleted: bool) -> tuple[str, list[str]]:
    t = desk.words.screened if stage == "screened" else desk.words.withdrawn
    return t.title, [t.text, *([t.deleted] if stage == "withdrawn" and deleted else [])]


def end_page(
    desk: Desk, heading: str, texts: list[str], address: str = "", code: str = "", label: str = "", status: int = 200
) -> Response:
    """Return a page that ends the study for someone, with where to go; the label is that of the link there."""
    given = {"heading": heading, "texts": texts, "address": address, "code": code, "leave_label": label}
    return desk.page("end", given, status)


def link_page(desk: Desk, given: Mapping[str, str]) -> Response:
    """Return the page that shows a researcher the parameters in the link of the platform."""
    recruiting, t = desk.study.plan.platform, desk.words.link
    came, known = recruiting.visit(given), PLATFORMS[recruiting.name]
    arrived = {recruiting.parameter: came.fault or ("good" if came.external else "missing")}
    for parameter, name in known.kept.items():
        arrived[parameter] = "good" if name in came.kept else "placeholder" if given.get(parameter) else "missing"
    found = [(name, given.get(name, "")[:MOST_ID], getattr(t, said)) for name, said in arrived.items()]
    more = {
        "action": desk.address("link"),
        "token": "",
        "found": found,
        "parameters": [*parameters_of(recruiting.name, recruiting.id_parameter, came).items()],
        "test": (TEST, link_mark(desk.study)),
        "good": bool(came.external),
        "preview": came.preview,
    }
    return desk.page("link", more)


# -- pictures ----------------------------------------------------------------------------------------------------------


def _mark(desk: Desk, person: Person, found: OnFile, *of: str | int) -> str:
    """Return the opaque end of a picture's address, which changes with how it looks."""
    return desk.study.key.mark("picture", person.token, *of, found.row["palette"], found.row["patterns"])


def test_mark(desk: Desk, person: Person, found: OnFile) -> str:
    """Return the end of the address of the item on screen."""
    return _mark(desk, person, found, "test", found.state.trial.example)


def train_mark(desk: Desk, person: Person, found: OnFile) -> str:
    """Return the end of the address of the card that Train shows."""
    return _mark(desk, person, found, "train", found.state.views)


def _swatch_marks(desk: Desk, person: Person, found: OnFile) -> list[str]:
    return [_mark(desk, person, found, "colour", n) for n in range(found.game.settings.content.values)]


def picture(desk: Desk, person: Person, mark: str) -> str | None:
    """Return the picture of an address, as SVG: that on screen, that in Train, or a swatch; None for any other."""
    with desk.study.database.reading() as connection:
        found = load(connection, person.id)
    pictures: dict[str, Picture | None] = {
        mark: Picture(n, 0, n) for n, mark in enumerate(_swatch_marks(desk, person, found))
    }
    if found.state.trials:
        pictures[test_mark(desk, person, found)] = found.game.picture(found.state)
        pictures[train_mark(desk, person, found)] = found.game.train_picture(found.state)
    wanted = pictures.get(mark)
    now = _now(found)
    return None if wanted is None else svg(wanted, now.palette, patterns=now.patterns)


def stop_page(desk: Desk, person: Person) -> Response:
    """Return the page that asks whether someone really wants to stop."""
    token = form_token(desk.study, person.token)
    back, action = desk.private(person.token), desk.private(person.token, "withdraw")
    return desk.page("stop", {"action": action, "token": token, "back": back})
