"""What is answered to requests: pages are shown (GET); forms are filed and lead back to a page (POST, redirect)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from icy.core.checks import parse_whole
from icy.study.game import COLOURS, Event
from icy.study.game.state import EventKind
from icy.study.service import links, persons, stages
from icy.study.service.pay import code_of, leave_address
from icy.study.service.persons import Arrival, Person
from icy.study.service.platforms import Visit, parameters_of
from icy.study.service.play import EventResult, act, set_display
from icy.study.service.studies import Study
from icy.study.stimuli import PALETTES

from . import pages
from .desk import Desk
from .guard import entry_token, first_seen, is_form_token, seconds_since
from .words import block, fill

Form = Mapping[str, str]
PICTURE = {
    "cache-control": "private, max-age=3600",
    "content-security-policy": "default-src 'none'",
}


# -- information and consent -------------------------------------------------------------------------------------------


def device_of(agent: str) -> str:
    """Return the kind of device that a browser names itself by; the name itself is not kept.

    Example:
        >>> device_of("Mozilla/5.0 (iPhone) Mobile/15E148"), device_of("Mozilla/5.0 (iPad)"), device_of("Firefox/150")
        ('phone', 'tablet', 'computer')
    """
    if "iPad" in agent or "Tablet" in agent or ("Android" in agent and "Mobile" not in agent):
        return "tablet"
    return "phone" if "Mobi" in agent else "computer"


def entry(desk: Desk, request: Request) -> Response:
    """Show the page of information; or lead someone who has taken part already back to where they were."""
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
        return _refused_device(desk, device)
    return refused_page(desk, refused) if refused else _information(desk, came)


def is_test(study: Study, given: Mapping[str, str]) -> bool:
    """Return whether a link is the test link of a study that waits for its test; later it is a link like others."""
    return study.key.matches(given.get(links.TEST, ""), "link test", study.name) and links.needs_test(study)


def confirm_link(desk: Desk, request: Request, form: Form) -> Response:
    """Open a study after its researcher saw that the link brings the right id."""
    if not is_test(desk.study, form):
        raise HTTPException(404)
    if not desk.study.plan.platform.visit(form).external:
        return pages.link_page(desk, form)
    links.pass_test(desk.study)
    t = desk.words.link
    return pages.end_page(desk, t.title, [t.done])


def _information(desk: Desk, came: Visit) -> Response:
    plan = desk.study.plan
    given = {
        "information": block(plan.information_text),
        "people": plan.people,
        "pay": _pay(desk),
        "preview": came.preview,
        "action": desk.address("enter"),
        "decline": desk.address("declined"),
        "token": entry_token(desk.study),
        "parameters": [*parameters_of(plan.platform.name, plan.platform.id_parameter, came).items()],
    }
    return desk.page("consent", given)


def _pay(desk: Desk) -> str:
    people, t = desk.study.plan.people, desk.words.consent
    if not people.base_cents and not people.most_bonus_cents:
        return str(t.pay_none)
    text = t.pay_bonus if people.most_bonus_cents else t.pay_base
    return fill(text, base=desk.money(people.base_cents), bonus=desk.money(people.most_bonus_cents))


def refused_page(desk: Desk, why: str) -> Response:
    """Return the page for someone who cannot take part, and count it where their link is to blame."""
    links.count_refusal(desk.study, why)
    t, outcome, people = desk.words.refused, why if why == "full" else "", desk.study.plan.people
    address, code = (leave_address(desk.study, outcome), code_of(desk.study, outcome)) if outcome else ("", "")
    texts = [getattr(t, why)]
    if why in ("placeholder", "malformed"):
        texts += [fill(t.again, contact=people.contact)] if "contact" not in people.missing else []
    elif not address and why not in ("no_id", "untested"):
        texts += _return(desk)
    return pages.end_page(desk, t.title, texts, address, code)


def _refused_device(desk: Desk, device: str) -> Response:
    t = desk.words.refused
    text, address = fill(t.device, device=getattr(t, device)), leave_address(desk.study, "device")
    texts = [text, *([] if address else _return(desk))]
    return pages.end_page(desk, t.title, texts, address, code_of(desk.study, "device"))


def _return(desk: Desk) -> list[str]:
    """Return what asks those who came by a platform to give their place back."""
    return [] if desk.study.plan.platform.name in ("link", "kiosk") else [getattr(desk.words.declined, "return")]


def declined(desk: Desk, request: Request) -> Response:
    """Thank someone who does not want to take part; nothing is recorded."""
    t = desk.words.declined
    return pages.end_page(
        desk, t.title, [t.text, *_return(desk)], leave_address(desk.study, "declined"), code_of(desk.study, "declined")
    )


def enter(desk: Desk, request: Request, form: Form) -> Response:
    """Take in someone who agreed; the condition is the server's choice alone."""
    study, seen = desk.study, first_seen(desk.study, form.get("form", ""))
    if seen is None:
        raise HTTPException(403)
    is_program = bool(form.get("website")) or seconds_since(study, seen) < study.plan.pages.least_seconds
    if is_program or form.get("agree") != "1":
        raise HTTPException(400)
    if not desk.web.newcomers.allows(study.name):
        raise HTTPException(429)
    device, came = device_of(request.headers.get("user-agent", "")), study.plan.platform.visit(form)
    if device not in study.plan.people.devices:
        return _refused_device(desk, device)
    found = "no_id" if came.preview else persons.enter(study, Arrival(came, device, seen))
    return refused_page(desk, found) if isinstance(found, str) else RedirectResponse(desk.private(found.token), 303)


# -- a person's pages --------------------------------------------------------------------------------------------------


def person_of(desk: Desk, token: str) -> Person:
    """Return the person of a private link.

    Raises:
        HTTPException: it is nobody's, or the person asks too often.
    """
    with desk.study.database.reading() as connection:
        found = persons.person_of_token(connection, desk.study, token)
    if found is None:
        raise HTTPException(404)
    if not desk.web.person.allows(found.id):
        raise HTTPException(429)
    return found


def show(desk: Desk, request: Request) -> Response:
    """Show the page that a person is at."""
    person = person_of(desk, request.path_params["token"])
    return pages.person_page(desk, person, request.query_params.get("say", ""))


def show_stop(desk: Desk, request: Request) -> Response:
    """Ask whether someone really wants to stop."""
    person = person_of(desk, request.path_params["token"])
    if stages.stage_of(desk.study, person) in stages.ENDS:
        return RedirectResponse(desk.private(person.token), 303)
    return pages.stop_page(desk, person)


def show_picture(desk: Desk, request: Request) -> Response:
    """Show a picture of a person's own page."""
    person = person_of(desk, request.path_params["token"])
    found = pages.picture(desk, person, request.path_params["mark"])
    if found is None:
        raise HTTPException(404)
    return Response(found, media_type="image/svg+xml", headers=PICTURE)


def do(desk: Desk, request: Request, form: Form) -> Response:
    """File what a person did, and lead back to their page."""
    person = person_of(desk, request.path_params["token"])
    if not is_form_token(desk.study, person.token, form.get("form", "")):
        raise HTTPException(403)
    said = ACTIONS[request.path_params["action"]](Deed(desk, person, form))
    address = desk.private(person.token)
    return RedirectResponse(f"{address}?say={said}" if said else address, 303)


@dataclass(frozen=True)
class Deed:
    """Something that a person sent.

    Attributes:
        desk: the study.
        person: who.
        form: what.
    """

    desk: Desk
    person: Person
    form: Form

    def text(self, name: str) -> str:
        """Return a field; "" if it is not there."""
        return self.form.get(name, "")

    def number(self, name: str) -> int | None:
        """Return a field as a whole number; None if it is none."""
        return parse_whole(self.text(name))

    def display(self) -> dict[str, str | int]:
        """Return how the game is to look."""
        choose, palette = self.desk.study.plan.display.choose, self.text("palette")
        chosen: dict[str, str | int] = {"palette": palette, "patterns": int(self.text("patterns") == "1")}
        return chosen if choose and palette in PALETTES else {}

    def display_and_sound(self) -> dict[str, str | int]:
        """Return how the game is to look, and whether it is to sound."""
        return self.display() | {"sound": int(self.text("sound") == "1")}

    def act(self, event: Event, trial: str = "", reaction: int | None = None) -> EventResult | None:
        """Apply an event to the game, if the person is at it."""
        if stages.stage_of(self.desk.study, self.person) != "game":
            return None
        return act(self.desk.study, self.person.id, event, trial, reaction)


Action = Callable[[Deed], str | None]


def _demographics(deed: Deed) -> None:
    t = deed.desk.words.demographics
    accepted = {"age": t.ages, "colour_vision": t.colour_visions}
    answers = {name: deed.text(name) for name, known in accepted.items() if deed.text(name) in known}
    answers["languages"] = deed.text("languages").strip()
    stages.answer_page(deed.desk.study, deed.person, "demographics", answers)


def _instructions(deed: Deed) -> None:
    stages.read_instructions(deed.desk.study, deed.person, deed.display_and_sound(), deed.text("viewport"))


def _comprehension(deed: Deed) -> None:
    questions = deed.desk.words.comprehension.questions
    given = [deed.text(f"question{n}")[:2] for n in range(1, len(questions) + 1)]
    if deed.number("attempt") == deed.person.attempts:  # else it is a second click
        stages.answer_questions(deed.desk.study, deed.person, given, [str(one.right) for one in questions])


def _colours(deed: Deed) -> None:
    known = (*vars(deed.desk.words.colours.names), "unsure")
    given = {f"colour {name}": deed.text(f"colour{n}") for n, name in enumerate(COLOURS, 1) if n < len(known)}
    set_display(deed.desk.study, deed.person.id, deed.display())
    answers = {key: name if name in known else "" for key, name in given.items()}
    stages.answer_page(deed.desk.study, deed.person, "colours", answers)


def _answer(deed: Deed) -> str | None:
    found = deed.act(Event("answer", deed.text("answer")), deed.text("trial"), deed.number("reaction"))
    return found.said if found else None


def _next(deed: Deed) -> None:
    found = deed.act(Event("next"), deed.text("trial"))
    if found and found.found.is_closed:
        stages.end_game(deed.desk.study, deed.person)


def _start(deed: Deed) -> None:
    deed.act(Event("start"))


def _tab(deed: Deed) -> None:
    deed.act(Event("tab", deed.text("tab")))


def _button(kind: EventKind) -> Action:
    """Return the action of a button, whose page says the number that it showed."""

    def press(deed: Deed) -> None:
        if (at := deed.number("at")) is not None:
            deed.act(Event(kind, at=at))

    return press


def _note(deed: Deed) -> None:
    if deed.text("kind") in ("blur", "paste"):
        deed.act(Event.of_json({"kind": deed.text("kind")}))


ACTIONS: Mapping[str, Action] = {
    "demographics": _demographics,
    "instructions": _instructions,
    "comprehension": _comprehension,
    "colours": _colours,
    "game": _start,
    "answer": _answer,
    "next": _next,
    "tab": _tab,
    "view": _button("train_view"),
    "add": _button("add"),
    "remove": _button("remove"),
    "note": _note,
    "display": lambda deed: set_display(deed.desk.study, deed.person.id, deed.display_and_sound()),
    "feedback": lambda deed: stages.leave_remarks(deed.desk.study, deed.person, deed.text("text")),
    "withdraw": lambda deed: persons.withdraw(deed.desk.study, deed.person, delete=deed.text("delete") == "1"),
}
