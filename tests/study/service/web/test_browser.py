"""The pages in a real browser: a whole game with its traffic searched, by keyboard, without scripts, on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from icy.study.service import Study
from icy.study.service.export import audit
from icy.study.service.network import Serving
from icy.study.service.web.desk import words
from tests.browsers import driven, why_not
from tests.study.service.helpers import loaded, rows, secrets_of, study
from tests.study.service.web.serving import reachable
from tests.study.service.web.test_security import TELLING

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(why_not()), reason=why_not())]

T = words("en")
WHOLE = {"examples": 50, "held_out_at": [29, 39, 49], "interval": 8}
TONES = """
window.tones = [];
const made = window.OscillatorNode;
window.OscillatorNode = class extends made {
  constructor(context, options) { super(context, options); window.tones.push(options.frequency); }
};
"""


@contextmanager
def opened(of: Sequence[Study] | Study, web: Serving | None = None, **options: Any) -> Iterator[Any]:
    """Open the first page of the first study, and check that the browser reports no errors."""
    with reachable(of, web) as address, driven(**options) as context:
        faults: list[str] = []
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda one: faults.append(one.text) if one.type in ("error", "warning") else None)
        page.goto(f"{address}/{of.name if isinstance(of, Study) else of[0].name}")
        yield page
        assert [fault for fault in faults if "404 (Not Found)" not in fault] == []  # from missing pages


def press(page: Any, name: str) -> None:
    """Press a button."""
    page.get_by_role("button", name=name, exact=True).click()


def begin(page: Any, look: Callable[[str], None] = lambda name: None) -> None:
    """Go through the pages before the game, and check each of them."""
    look("consent")
    page.get_by_label(T.consent.check).check()
    press(page, T.consent.agree)
    for heading, name in (
        (T.demographics.title, "about"),
        (T.instructions.title, "instructions"),
        (T.comprehension.title, "questions"),
        (T.colours.title, "colours"),
    ):
        page.get_by_role("heading", name=heading, exact=True).wait_for()
        look(name)
        if name == "questions":
            for question in T.comprehension.questions:
                page.get_by_label(question.options[question.right]).check()
        press(page, getattr(T, "continue"))
    page.get_by_role("button", name=T.start.begin).wait_for()
    look("start")
    press(page, T.start.begin)
    page.get_by_label(T.game.question).wait_for()


def small(folder: Path, **given: Any) -> Study:
    """A study of short games, with all pages."""
    return study(folder, **{"pages": {"demographics": True}, "people": {"most_bonus_cents": 99}, **given})


# -- a whole game ------------------------------------------------------------------------------------------------------


class Traffic:
    """All network traffic so far, as text."""

    def __init__(self, page: Any) -> None:
        self.texts: list[str] = []
        self.hosts: set[str] = set()
        page.context.on("request", self.on_request)
        page.context.on("response", self.on_response)

    def on_request(self, request: Any) -> None:
        """Record the address of a request."""
        self.texts.append(request.url)
        self.hosts.add(re.sub(r"^(\w+://[^/]+).*", r"\1", request.url))

    def on_response(self, response: Any) -> None:
        """Record a reply with its headers."""
        self.texts.append(str(response.headers))
        if response.status < 300:
            self.texts.append(response.text())

    def take(self) -> str:
        """Return the traffic since the last call."""
        found, self.texts = "\n".join(self.texts), []
        return found


def test_a_whole_game_and_its_whole_traffic(tmp_path: Path) -> None:
    """No reply contains the code before its item is graded; no third party gets requests; the audit finds no faults."""
    of = small(tmp_path, conditions={"grammar": ["perm"], "game": WHOLE}, pages={"demographics": True})
    with opened(of, viewport={"width": 1280, "height": 800}) as page:
        traffic = Traffic(page)
        begin(page)
        secrets, displayed = {*secrets_of(of)}, set[str]()
        for number in range(50):
            if number % 5 == 0:
                page.keyboard.press("Escape")
                page.get_by_role("button", name=T.game.next_card).wait_for()
                displayed.add(page.locator("b.code").inner_text())
                page.keyboard.press("Escape")
                page.get_by_label(T.game.question).wait_for()
            page.locator(".picture").evaluate("picture => picture.decode()")
            before = traffic.take()
            found = [secret for secret in secrets - displayed if re.search(rf"\b{secret}\b", before)]
            assert found == [], (number, found)
            assert not any(word in before.lower() for word in TELLING)
            page.get_by_label(T.game.question).fill(loaded(of).state.trial.code if number % 2 else "redcir")
            page.keyboard.press("Enter")
            go_on = page.get_by_role("button", name=T.game.finish if number == 49 else T.game.next)
            go_on.wait_for()
            displayed |= {*page.locator("b.code").all_inner_texts()} | {rows(of, "SELECT code FROM trial")[-1]["code"]}
            go_on.click()
            page.locator(".item").filter(has_text=f"Shape {number + 2} of").wait_for() if number < 49 else None
        page.get_by_label(T.feedback.label).fill("done by a browser")
        press(page, T.feedback.send)
        page.get_by_role("heading", name=T.done.title).wait_for()
        assert len(traffic.hosts) == 1
        code = page.locator("#completion").inner_text()
    (game,) = rows(of, "SELECT * FROM game")
    assert (game["state"], game["completion_code"], game["viewport"]) == ("closed", code, "1280x800")
    times = [row["reaction_ms"] for row in rows(of, "SELECT reaction_ms FROM trial")]
    assert all(time is not None and 0 < time < 60_000 for time in times)
    assert audit(of).faults == ()


# -- ways to use it ----------------------------------------------------------------------------------------------------


def test_by_keyboard_alone(tmp_path: Path) -> None:
    of = small(tmp_path)
    with opened(of) as page:

        def tab_to(name: str) -> None:
            for _ in range(40):
                page.keyboard.press("Tab")
                focused = page.evaluate(
                    "() => { const e = document.activeElement; "
                    "return (e.labels?.[0]?.innerText ?? e.innerText ?? '').trim(); }"
                )
                if focused == name:
                    outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
                    assert outline == "solid"
                    return
            raise AssertionError(f"{name} cannot be reached")

        def follow(name: str) -> None:
            tab_to(name)
            left = page.locator("h1").inner_text()
            page.keyboard.press("Enter")  # wait: the next keys must not go to the old page
            page.wait_for_function(
                "left => ![left, undefined].includes(document.querySelector('h1')?.innerText)", arg=left
            )

        tab_to(T.consent.check)
        page.keyboard.press("Space")
        follow(T.consent.agree)
        for _ in range(2):
            follow(getattr(T, "continue"))
        page.get_by_role("heading", name=T.comprehension.title).wait_for()
        for place in (0, 1, 2):
            page.keyboard.press("Tab")
            for _ in range(place):
                page.keyboard.press("ArrowDown")
            page.keyboard.press("Space")
        follow(getattr(T, "continue"))
        page.get_by_role("heading", name=T.colours.title, exact=True).wait_for()
        follow(getattr(T, "continue"))
        page.get_by_role("button", name=T.start.begin).wait_for()
        page.keyboard.press("Enter")  # which has the focus
        for number in range(6):
            page.get_by_label(T.game.question).wait_for()
            if number == 0:
                page.keyboard.press("Escape")
                page.get_by_role("button", name=T.game.next_card).wait_for()
                page.keyboard.press("Enter")
                page.locator(".panel .code").wait_for()
                page.keyboard.press("Escape")
                page.get_by_label(T.game.question).wait_for()
            page.keyboard.type("redcir")
            page.keyboard.press("Enter")
            page.get_by_role("button", name=T.game.finish if number == 5 else T.game.next).wait_for()
            page.keyboard.press("Enter")
        page.get_by_role("heading", name=T.feedback.title).wait_for()
        tab_to(T.feedback.send)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name=T.done.title).wait_for()
    assert len(rows(of, "SELECT * FROM trial WHERE state = 'graded'")) == 6


def play(page: Any, count: int = 6) -> None:
    """Answer all items, and finish."""
    for number in range(count):
        page.get_by_label(T.game.question).fill("redcir")
        press(page, T.game.send)
        press(page, T.game.finish if number == count - 1 else T.game.next)
    page.get_by_role("heading", name=T.feedback.title).wait_for()


def test_without_scripts(tmp_path: Path) -> None:
    of = small(tmp_path)
    with opened(of, java_script_enabled=False) as page:
        begin(page)
        press(page, T.game.train)
        press(page, T.game.next_card)
        press(page, T.game.to_test)
        press(page, T.game.more)
        play(page)
        press(page, T.feedback.send)
        page.get_by_role("heading", name=T.done.title).wait_for()
    assert {row["reaction_ms"] for row in rows(of, "SELECT reaction_ms FROM trial")} == {None}
    assert audit(of).faults == ()


def test_double_clicks_reloads_back_and_two_tabs(tmp_path: Path) -> None:
    of = small(tmp_path)
    with opened(of) as page:
        begin(page)
        page.get_by_label(T.game.question).fill("redcir")
        page.get_by_role("button", name=T.game.send).dblclick()
        page.get_by_role("button", name=T.game.next).wait_for()
        assert len(rows(of, "SELECT * FROM trial")) == 1
        page.reload()
        page.get_by_role("button", name=T.game.next).dblclick()
        page.get_by_text("Shape 2 of 6").first.wait_for()
        other = page.context.new_page()
        other.goto(page.url)
        other.get_by_label(T.game.question).fill("abc")
        press(other, T.game.send)
        press(other, T.game.next)
        page.get_by_label(T.game.question).fill("maghex")
        press(page, T.game.send)  # the other tab has answered this item
        page.get_by_text(T.say.stale).first.wait_for()
        page.goto("about:blank")
        page.go_back()
        page.get_by_text("Shape 3 of 6").first.wait_for()
    assert [row["answer"] for row in rows(of, "SELECT answer FROM trial")] == ["redcir", "abc", None]
    assert audit(of).faults == ()


def test_typed_text_is_restored_after_a_look_at_train_and_an_invalid_answer(tmp_path: Path) -> None:
    with opened(small(tmp_path)) as page:
        begin(page)
        page.get_by_label(T.game.question).press_sequentially("red1")
        page.keyboard.press("Escape")
        page.get_by_role("button", name=T.game.next_card).wait_for()
        page.keyboard.press("Escape")
        assert page.get_by_label(T.game.question).input_value() == "red1"
        page.keyboard.press("Enter")
        page.get_by_text(T.say.letters).first.wait_for()
        assert page.get_by_label(T.game.question).input_value() == "red1"
        assert page.locator("#live").inner_text() == T.say.letters


def test_tones_sound_after_a_key_and_not_when_off(tmp_path: Path) -> None:
    with opened(small(tmp_path)) as page:
        page.context.add_init_script(TONES)
        begin(page)
        assert page.evaluate("window.tones") == []
        page.keyboard.type("redcir")
        page.keyboard.press("Enter")
        page.get_by_role("button", name=T.game.next).wait_for()
        heard = page.evaluate("window.tones")
        assert len(heard) >= 2
        page.locator("summary").click()
        page.get_by_label(T.instructions.sound).uncheck()
        press(page, T.game.change)
        page.locator(".game[data-sound=off]").wait_for()
        page.get_by_role("button", name=T.game.next).click()
        page.get_by_label(T.game.question).fill("redcir")
        page.keyboard.press("Enter")
        page.get_by_role("button", name=T.game.next).wait_for()
        assert page.evaluate("window.tones") == heard


def test_leaving_and_pasting_are_logged(tmp_path: Path) -> None:
    of = small(tmp_path)
    with opened(of) as page:
        begin(page)
        page.evaluate("window.dispatchEvent(new Event('blur'))")
        page.get_by_label(T.game.question).dispatch_event("paste", {"bubbles": True})
        page.get_by_label(T.game.question).fill("redcir")
        page.keyboard.press("Enter")
        page.get_by_role("button", name=T.game.next).wait_for()
    kinds = [row["kind"] for row in rows(of, "SELECT kind FROM event")]
    assert {"blur", "paste"} <= {*kinds}


def test_on_a_small_phone_picture_and_field_are_above_the_keyboard(tmp_path: Path) -> None:
    width, height, keyboard = 320, 568, 250
    viewport = {"width": width, "height": height}
    with opened(small(tmp_path), viewport=viewport, has_touch=True, is_mobile=True, device_scale_factor=2) as page:

        def narrow(name: str) -> None:
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name

        begin(page, narrow)
        narrow("game")
        picture = page.locator(".picture").bounding_box()
        field = page.get_by_label(T.game.question).bounding_box()
        assert field["y"] + field["height"] - picture["y"] <= height - keyboard
        for button in page.get_by_role("button").all():
            box = button.bounding_box()
            assert min(box["width"], box["height"]) >= 44
