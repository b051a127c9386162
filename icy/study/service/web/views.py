"""Views: GET requests show pages; POST requests save a form and redirect to a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from icy.core.checks import parse_whole
from icy.study.game import COLOURS, Event
from icy.study.game.state import EventKind
from icy.study.service import links, persons, play
from icy.study.service.persons import Person
from icy.study.service.platforms import Visit
from icy.study.service.play import act, set_display
from icy.study.service.studies import Study, minutes_between
from icy.study.stimuli import PALETTES

from . import pages
from .desk import Desk, block, entry_token, first_seen, form_token, is_form_token

Form = Mapping[str, str]
PICTURE = {"cache-control": "private, max-age=3600", "content-security-policy": "default-src 'none'"}


# -- information and consent -------------------------------------------------------------------------------------------


def device_of(agent: str) -> str:
    """Return the kind of device, from a browser's user agent.

    Example:
        >>> device_of("Mozilla/5.0 (iPhone) Mobile/15E148"), device_of("Mozilla/5.0 (iPad)"), device_of("Firefox/150")
        ('phone', 'tablet', 'computer')
    """
    if "iPad" in agent or "Tablet" in agent or ("Android" in agent and "Mobile" not in agent):
        return "tablet"
    return "phone" if "Mobi" in agent else "computer"


def entry(desk: Desk, request: Request) -> Response:
    """Show the information page. A person who agreed before is redirected to their current page."""
    study, came = desk.study, desk.study.plan.platform.visit(request.query_params)
    if is_test(study, request.query_params):
        return pages.link_page(desk, request.query_params)
    device = device_of(request.headers.get("user-agent", ""))
    known = persons.come_again(study, came)
    if known is not None:
        return RedirectResponse(desk.private(known.token), 303)
    with study.database.reading() as connection:
        refused = None if came.preview else persons.refusal(connection, study, came)
    if device not in study.plan.people.devices:
        return refused_page(desk, "device", device)
    return refused_page(desk, refused) if refused else _information(desk, came)


def is_test(study: Study, parameters: Mapping[str, str]) -> bool:
    """Return whether a link is the test link, and the test is not passed yet."""
    return study.key.matches(parameters.get(links.TEST, ""), "link test", study.name) and links.needs_test(study)


def confirm_link(desk: Desk, request: Request, form: Form) -> Response:
    """Record that the researcher confirmed the id in the test link, so that people can take part."""
    if not is_test(desk.study, form):
        raise HTTPException(404)
    if not desk.study.plan.platform.visit(form).external:
        return pages.link_page(desk, form)
    links.pass_test(desk.study)
    t = desk.words.link
    return pages.end_page(desk, t.title, [t.done])


def _information(desk: Desk, came: Visit) -> Response:
    plan, people, t = desk.study.plan, desk.study.plan.people, desk.words.consent
    pay = t.pay_bonus if people.most_bonus_cents else t.pay_base if people.base_cents else t.pay_none
    fields = {
        "information": block(plan.information_text),
        "people": people,
        "pay": pay.format(base=desk.money(people.base_cents), bonus=desk.money(people.most_bonus_cents)),
        "preview": came.preview,
        "action": desk.address("enter"),
        "decline": desk.address("declined"),
        "token": entry_token(desk.study),
        "parameters": [*plan.platform.parameters_of(came).items()],
    }
    return desk.page("consent", fields)


def refused_page(desk: Desk, why: str, device: str = "") -> Response:
    """Render the page for a person who cannot take part, and count the visit if the link is the cause."""
    links.count_refusal(desk.study, why)
    t, outcome, people = desk.words.refused, why if why in ("full", "device") else "", desk.study.plan.people
    address, code = desk.study.plan.platform.leave(outcome)
    texts = [getattr(t, why).format(device=getattr(t, device, ""))]
    if why in ("placeholder", "malformed"):
        texts += [t.again.format(contact=people.contact)] if "contact" not in people.missing else []
    elif not address and why not in ("no_id", "untested"):
        texts += _return(desk)
    return pages.end_page(desk, t.title, texts, address, code)


def _return(desk: Desk) -> list[str]:
    """Return the text that asks people from a platform to return their submission, as a list; [] if not needed."""
    return [] if desk.study.plan.platform.name in ("link", "kiosk") else [getattr(desk.words.declined, "return")]


def declined(desk: Desk, request: Request) -> Response:
    """Thank a person who does not want to take part, and record nothing."""
    t = desk.words.declined
    return pages.end_page(desk, t.title, [t.text, *_return(desk)], *desk.study.plan.platform.leave("declined"))


def enter(desk: Desk, request: Request, form: Form) -> Response:
    """Enroll a person who agreed. The server chooses the condition."""
    study, seen = desk.study, first_seen(desk.study, form.get("form", ""))
    if seen is None:
        raise HTTPException(403)
    is_fast = minutes_between(seen, study.time) < study.plan.pages.least_seconds / 60
    is_bot = bool(form.get("website")) or is_fast
    if is_bot or form.get("agree") != "1":
        raise HTTPException(400)
    if not desk.serving.newcomers.allows(study.name):
        raise HTTPException(429)
    device, came = device_of(request.headers.get("user-agent", "")), study.plan.platform.visit(form)
    if device not in study.plan.people.devices:
        return refused_page(desk, "device", device)
    found = "no_id" if came.preview else persons.enter(study, came, device, seen)
    return refused_page(desk, found) if isinstance(found, str) else RedirectResponse(desk.private(found.token), 303)


# -- a person's pages --------------------------------------------------------------------------------------------------


def person_of(desk: Desk, token: str) -> Person:
    """Find the person with a private link.

    Raises:
        HTTPException: the link is unknown, or the person sends too many requests.
    """
    with desk.study.database.reading() as connection:
        found = persons.person_of_token(connection, desk.study, token)
    if found is None:
        raise HTTPException(404)
    if not desk.serving.person.allows(found.id):
        raise HTTPException(429)
    return found


def show(desk: Desk, request: Request) -> Response:
    """Show the current page of a person."""
    person = person_of(desk, request.path_params["token"])
    return pages.person_page(desk, person, request.query_params.get("say", ""))


def show_stop(desk: Desk, request: Request) -> Response:
    """Ask whether the person really wants to stop."""
    person = person_of(desk, request.path_params["token"])
    if play.stage_of(desk.study, person) in play.ENDS:
        return RedirectResponse(desk.private(person.token), 303)
    back, action = desk.private(person.token), desk.private(person.token, "withdraw")
    return desk.page("stop", {"action": action, "token": form_token(desk.study, person.token), "back": back})


def show_picture(desk: Desk, request: Request) -> Response:
    """Return a picture of a person's page."""
    person = person_of(desk, request.path_params["token"])
    found = pages.picture(desk, person, request.path_params["mark"])
    if found is None:
        raise HTTPException(404)
    return Response(found, media_type="image/svg+xml", headers=PICTURE)


def do(desk: Desk, request: Request, form: Form) -> Response:
    """Save a person's action, and redirect to their page."""
    person = person_of(desk, request.path_params["token"])
    if not is_form_token(desk.study, person.token, form.get("form", "")):
        raise HTTPException(403)
    notice = ACTIONS[request.path_params["action"]](Submission(desk, person, form))
    address = desk.private(person.token)
    return RedirectResponse(f"{address}?say={notice}" if notice else address, 303)


@dataclass(frozen=True)
class Submission:
    """A submitted form.

    Attributes:
        desk: the study.
        person: the person.
        form: values of the form's fields.
    """

    desk: Desk
    person: Person
    form: Form

    def text(self, name: str) -> str:
        """Return a field; "" if it is missing."""
        return self.form.get(name, "")

    def number(self, name: str) -> int | None:
        """Return a field as a whole number; None if it is not a whole number."""
        return parse_whole(self.text(name))

    def display(self) -> dict[str, str | int]:
        """Return the palette and patterns in the form."""
        choose, palette = self.desk.study.plan.display.choose, self.text("palette")
        chosen: dict[str, str | int] = {"palette": palette, "patterns": int(self.text("patterns") == "1")}
        return chosen if choose and palette in PALETTES else {}

    def display_and_sound(self) -> dict[str, str | int]:
        """Return the palette, patterns and sound in the form."""
        return self.display() | {"sound": int(self.text("sound") == "1")}

    def act(self, event: Event, trial: str = "", reaction: int | None = None) -> str:
        """Apply an event to the game, unless the person is on another page, and return the notice for the player."""
        if play.stage_of(self.desk.study, self.person) != "game":
            return ""
        result = act(self.desk.study, self.person.id, event, trial, reaction)
        if result.saved.is_closed:
            play.end_game(self.desk.study, self.person)
        return result.notice


Action = Callable[[Submission], str | None]
"""A function that saves a form. It may return a notice for the person's page."""


def _demographics(form: Submission) -> None:
    t = form.desk.words.demographics
    accepted = {"age": t.ages, "colour_vision": t.colour_visions}
    answers = {name: form.text(name) for name, known in accepted.items() if form.text(name) in known}
    answers["languages"] = form.text("languages").strip()
    play.answer_page(form.desk.study, form.person, "demographics", answers)


def _comprehension(form: Submission) -> None:
    questions = form.desk.words.comprehension.questions
    answers = [form.text(f"question{n}")[:2] for n in range(1, len(questions) + 1)]
    if form.number("attempt") == form.person.attempts:  # otherwise it is a double click
        play.answer_questions(form.desk.study, form.person, answers, [str(one.right) for one in questions])


def _colours(form: Submission) -> None:
    known = (*vars(form.desk.words.colours.names), "unsure")
    answers = {f"colour {name}": form.text(f"colour{n}") for n, name in enumerate(COLOURS, 1) if n < len(known)}
    set_display(form.desk.study, form.person.id, form.display())
    answers = {key: name if name in known else "" for key, name in answers.items()}
    play.answer_page(form.desk.study, form.person, "colours", answers)


def _button(kind: EventKind) -> Action:
    """Create the action of a button, whose form includes the number on the page (`Event.at`)."""

    def press(form: Submission) -> None:
        if (at := form.number("at")) is not None:
            form.act(Event(kind, at=at))

    return press


def _note(form: Submission) -> None:
    if form.text("kind") in ("blur", "paste"):
        form.act(Event.of_json({"kind": form.text("kind")}))


ACTIONS: Mapping[str, Action] = {
    "demographics": _demographics,
    "instructions": lambda form: play.read_instructions(
        form.desk.study, form.person, form.display_and_sound(), form.text("viewport")
    ),
    "comprehension": _comprehension,
    "colours": _colours,
    "game": lambda form: form.act(Event("start")),
    "answer": lambda form: form.act(Event("answer", form.text("answer")), form.text("trial"), form.number("reaction")),
    "next": lambda form: form.act(Event("next"), form.text("trial")),
    "tab": lambda form: form.act(Event("tab", form.text("tab"))),
    "view": _button("train_view"),
    "add": _button("add"),
    "remove": _button("remove"),
    "note": _note,
    "display": lambda form: set_display(form.desk.study, form.person.id, form.display_and_sound()),
    "feedback": lambda form: play.leave_remarks(form.desk.study, form.person, form.text("text")),
    "withdraw": lambda form: persons.withdraw(form.desk.study, form.person, delete=form.text("delete") == "1"),
}
