"""The pages of a person, one per stage. They show `StudyGame.shown`, and pictures with opaque addresses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from starlette.responses import Response

from icy.study.game import COLOURS, AnswerFeedback, Picture, StudyGame
from icy.study.service.links import TEST, link_mark
from icy.study.service.persons import Person
from icy.study.service.platforms import MOST_ID, hand_in_address
from icy.study.service.play import ENDS, SavedGame, end_game, load, stage_of
from icy.study.service.review import bonus_cents
from icy.study.stimuli import svg

from .desk import Desk, block, counted, form_token

EXAMPLE = "kobadefumiro"  # its first letters are the code of the star in the instructions, which no language has
ACTIONS = ("tab", "answer", "next", "view", "add", "remove", "display")
NOTICES = ("stale", "empty", "long", "letters")


def person_page(desk: Desk, person: Person, notice: str = "") -> Response:
    """Render the current page of a person.

    Args:
        desk: the study.
        person: the person.
        notice: notice about the last answer: one of NOTICES, or "".
    """
    stage = stage_of(desk.study, person)
    if stage in ENDS:
        return _end(desk, person, stage)
    with desk.study.database.reading() as connection:
        saved = load(connection, person.id)
    if stage == "game" and saved.is_closed:  # possible after a crash between the last answer and the next page
        return person_page(desk, end_game(desk.study, person))
    return stage_page(desk, person, stage, saved, notice)


def stage_page(desk: Desk, person: Person, stage: str, saved: SavedGame, notice: str = "") -> Response:
    """Render a page before the end. It depends on the item on screen only by the address of the picture."""
    fields = {
        "action": desk.private(person.token, stage),
        "token": form_token(desk.study, person.token),
        "stop_address": desk.private(person.token, "stop"),
        "rule": _rule(desk, saved.game),
        "now": {name: saved.row[name] for name in ("palette", "patterns", "sound")},
        "choose": desk.study.plan.display.choose,
        "attempt": person.attempts,
        "swatches": [desk.private(person.token, "picture", mark) for mark in _marks(desk, person, saved)["colour"]],
        "names": COLOURS[: saved.game.settings.content.values],
    }
    template = "start" if stage == "game" and saved.state.phase == "new" else stage
    return desk.page(template, fields | (_game(desk, person, saved, notice) if template == "game" else {}))


def _rule(desk: Desk, game: StudyGame) -> SimpleNamespace:
    """Return the template variables of the instructions."""
    settings, people, t = game.settings, desk.study.plan.people, desk.words.instructions
    length = settings.content.length
    amount = f"{settings.bonus_cents(10) / 100:g} {people.currency}"
    bonus = t.bonus.format(amount=amount, most=desk.money(people.most_bonus_cents))
    return SimpleNamespace(
        letters=length,
        start=settings.start,
        examples=settings.examples,
        example=(EXAMPLE * length)[:length],
        star=desk.static("star.svg"),
        bonus=bonus if people.most_bonus_cents else "",
    )


# -- the game ----------------------------------------------------------------------------------------------------------


def _game(desk: Desk, person: Person, saved: SavedGame, notice: str) -> dict[str, object]:
    """Return the further template variables of a game that has started."""
    shown, marks = saved.game.shown(saved.state), _marks(desk, person, saved)
    return {
        "shown": shown,
        "result": _result(desk.words, shown.feedback) if shown.feedback else "",
        "notice": getattr(desk.words.say, notice) if notice in NOTICES else "",
        "trial": saved.trial,
        "notes": desk.private(person.token, "note"),
        "actions": SimpleNamespace(**{name: desk.private(person.token, name) for name in ACTIONS}),
        "picture": desk.private(person.token, "picture", *marks["test"]),
        "train_picture": desk.private(person.token, "picture", *marks["train"]),
    }


def _result(t: SimpleNamespace, feedback: AnswerFeedback) -> str:
    """Return the feedback on an answer in the language of the study, without the right code."""
    if feedback.correct is None:
        return str(t.game.untold)
    if feedback.correct:
        return str(t.game.right.format(points=counted(feedback.points or 0, t.counts.point)))
    return str(t.game.wrong if feedback.code else t.game.wrong_untold)


# -- the end -----------------------------------------------------------------------------------------------------------


def _end(desk: Desk, person: Person, stage: str) -> Response:
    """Render the page of a person who has finished, has withdrawn, or has failed the questions."""
    study = desk.study
    outcome = {"done": "complete", "screened": "failed_check", "withdrawn": "withdrawn"}[stage]
    with study.database.reading() as connection:
        row = connection.execute("SELECT * FROM external_id WHERE person = ?", (person.id,)).fetchone()
        game = connection.execute("SELECT * FROM game WHERE person = ?", (person.id,)).fetchone()
    external = row["external"] if row else ""
    parameters = {} if row is None else json.loads(row["kept_json"])
    if stage != "done" or game is None:
        t = desk.words.screened if stage == "screened" else desk.words.withdrawn
        texts = [t.text, *([t.deleted] if stage == "withdrawn" and game is None else [])]
        return end_page(desk, t.title, texts, *study.plan.platform.leave(outcome, external))
    address, code = study.plan.platform.leave(outcome, external, game["completion_code"])
    base, bonus = study.plan.people.base_cents, bonus_cents(study, game)
    pay = desk.words.done.pay.format(base=desk.money(base), bonus=desk.money(bonus)) if base or bonus else ""
    fields = {
        "score": game["score"],
        "pay": pay,
        "address": address,
        "code": code,
        "hand_in": hand_in_address(parameters.get("submit_to", "")) if parameters.get("assignment") else "",
        "assignment": parameters.get("assignment", ""),
        "debriefing": block(study.plan.debriefing_text, top=2),
        "person": person.id,
        "again": desk.address() if study.plan.platform.name == "kiosk" else "",
    }
    return desk.page("done", fields, form_action=fields["hand_in"] or "'self'")


def end_page(
    desk: Desk, heading: str, texts: list[str], address: str = "", code: str = "", label: str = "", status: int = 200
) -> Response:
    """Render a final page with texts, a completion code, and a link to an address."""
    fields = {"heading": heading, "texts": texts, "address": address, "code": code, "leave_label": label}
    return desk.page("end", fields, status)


def link_page(desk: Desk, parameters: Mapping[str, str]) -> Response:
    """Render the page that shows the researcher the parameters in the platform's link."""
    recruiting, t = desk.study.plan.platform, desk.words.link
    visit = recruiting.visit(parameters)
    results = {recruiting.parameter: visit.fault or ("good" if visit.external else "missing")}
    for parameter, name in recruiting.known.extra.items():
        is_filled = bool(parameters.get(parameter))
        results[parameter] = "good" if name in visit.extra else "placeholder" if is_filled else "missing"
    rows = [(name, parameters.get(name, "")[:MOST_ID], getattr(t, result)) for name, result in results.items()]
    fields = {
        "action": desk.address("link"),
        "token": "",
        "rows": rows,
        "parameters": [*recruiting.parameters_of(visit).items()],
        "test": (TEST, link_mark(desk.study)),
        "good": bool(visit.external),
        "preview": visit.preview,
    }
    return desk.page("link", fields)


# -- pictures ----------------------------------------------------------------------------------------------------------


def _marks(desk: Desk, person: Person, saved: SavedGame) -> dict[str, list[str]]:
    """Return the opaque last parts of the pictures' addresses, which change with the display settings.

    "test" is the picture on screen, "train" the picture that Train shows, and "colour" a swatch per color.
    """
    numbers: dict[str, Sequence[int]] = {"colour": range(saved.game.settings.content.values)}
    if saved.state.trials:
        numbers |= {"test": [saved.state.trial.example], "train": [saved.state.views]}
    display = saved.row["palette"], saved.row["patterns"]
    mark = desk.study.key.mark
    return {kind: [mark("picture", person.token, kind, n, *display) for n in some] for kind, some in numbers.items()}


def picture(desk: Desk, person: Person, mark: str) -> str | None:
    """Return the picture at an address as SVG: the item, Train's card or a color swatch; None if there is none."""
    with desk.study.database.reading() as connection:
        saved = load(connection, person.id)
    marks, row, match = _marks(desk, person, saved), saved.row, None
    if mark in marks["colour"]:
        match = Picture(n := marks["colour"].index(mark), 0, n)
    elif mark in marks.get("test", ()):
        match = saved.game.picture(saved.state)
    elif mark in marks.get("train", ()):
        match = saved.game.train_picture(saved.state)
    return None if match is None else svg(match, row["palette"], patterns=bool(row["patterns"]))
