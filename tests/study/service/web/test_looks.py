"""Every page in a real browser, at three widths: axe finds nothing, and nothing is wider than the screen.

Where the variable ICY_SCREENSHOTS names a folder, pictures of all pages are left there.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from icy.study.service.links import link_mark
from icy.study.service.web.desk import words
from tests.browsers import why_not
from tests.study.service.helpers import finish, loaded, pid, started, study
from tests.study.service.web.helpers import without_limits
from tests.study.service.web.test_browser import begin, opened, play, press, small

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(why_not()), reason=why_not())]

T = words("en")
FOLDER = os.environ.get("ICY_SCREENSHOTS")
WIDTHS = [(1280, "light"), (375, "light"), (320, "dark")]


@dataclass
class Look:
    """Check the pages of a browser with axe, and record their names."""

    page: Any
    width: int
    part: str
    seen: list[str] = field(default_factory=list)

    def __call__(self, name: str) -> None:
        """Check the open page."""
        from axe_playwright_python.sync_playwright import Axe

        self.seen.append(name)
        self.page.wait_for_load_state("networkidle")
        if FOLDER:
            Path(FOLDER).mkdir(parents=True, exist_ok=True)
            file = f"{FOLDER}/{self.width}-{self.part}{len(self.seen):02d}-{name}.png"
            self.page.screenshot(path=file, full_page=True)
        found = Axe().run(self.page, options={}).response["violations"]
        assert [(name, one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
        assert self.page.evaluate("document.documentElement.scrollWidth") <= self.width, name


def screen(width: int, scheme: str) -> dict[str, Any]:
    """Options of a browser. The tests inject axe into pages, so the browser must ignore the pages' policy."""
    return {"viewport": {"width": width, "height": 800}, "color_scheme": scheme, "bypass_csp": True}


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_axe_finds_nothing_from_consent_to_the_end(width: int, scheme: str, tmp_path: Path) -> None:
    of = small(tmp_path, conditions={"grammar": ["perm"]})
    with opened(of, **screen(width, scheme)) as page:
        look = Look(page, width, "a")
        begin(page, look)
        look("test")
        press(page, T.game.train)
        page.get_by_role("button", name=T.game.next_card).wait_for()
        look("train")
        press(page, T.game.to_test)
        page.get_by_label(T.game.question).fill("?")
        press(page, T.game.send)
        page.locator("#notice").wait_for()
        look("no-answer")
        page.locator("summary").click()
        look("colours-and-sound")
        for name in ("wrong", "right", "held-out"):
            page.get_by_label(T.game.question).fill(loaded(of).state.trial.code if name == "right" else "abc")
            press(page, T.game.send)
            page.get_by_role("button", name=T.game.next).wait_for()
            look(name)
            if name != "held-out":
                press(page, T.game.next)
        page.get_by_role("link", name=T.game.stop).click()
        look("stop")
        page.get_by_role("link", name=T.stop.back).click()
        press(page, T.game.next)
        play(page, 3)
        look("remarks")
        press(page, T.feedback.send)
        page.get_by_role("heading", name=T.done.title).wait_for()
        look("done")
        for address in ("declined", "nothing"):
            page.goto(re.sub("/pilot.*", f"/pilot/{address}", page.url))
            look(address)
    assert len(look.seen) == 18


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_axe_finds_nothing_on_the_other_pages(width: int, scheme: str, tmp_path: Path) -> None:
    """Final pages, pages of platforms, a study in German, and the researcher's page."""
    pages = {"demographics": False, "colour_check": False}
    studies = [
        study(tmp_path, platform={"name": "prolific", "codes": {"complete": "C1AB"}}, pages=pages),
        study(tmp_path, name="by-mturk", platform={"name": "mturk"}, pages=pages),
        study(tmp_path, name="full", conditions={"grammar": ["concat"], "quota": 1}),
        study(tmp_path, name="closed", state="closed"),
        study(tmp_path, name="desktop", people={"devices": ["phone"]}),
        study(tmp_path, name="deutsch", language="de"),
        study(tmp_path, name="untested", platform={"name": "prolific"}, state="open"),
    ]
    finish(studies[2], started(studies[2]))
    with opened(studies, without_limits(researcher=True), **screen(width, scheme)) as page:
        look, root = Look(page, width, "b"), page.url.removesuffix("/pilot")

        def agree(address: str) -> None:
            page.goto(f"{root}/{address}")
            page.get_by_label(T.consent.check).check()
            press(page, T.consent.agree)
            press(page, getattr(T, "continue"))
            page.get_by_role("heading", name=T.comprehension.title).wait_for()

        def answer(right: bool) -> None:
            for question in T.comprehension.questions:
                place = question.right if right else (question.right + 1) % len(question.options)
                page.get_by_label(question.options[place]).check()
            press(page, getattr(T, "continue"))

        agree(f"pilot?PROLIFIC_PID={pid(1)}")
        answer(right=False)
        page.get_by_text(T.comprehension.again).first.wait_for()
        look("questions-again")
        answer(right=False)
        page.get_by_role("heading", name=T.screened.title).wait_for()
        look("screened")
        agree(f"pilot?PROLIFIC_PID={pid(2)}")
        answer(right=True)
        press(page, T.start.begin)
        page.get_by_label(T.game.question).wait_for()
        play(page)
        press(page, T.feedback.send)
        page.get_by_role("heading", name=T.done.title).wait_for()
        look("done-prolific")
        page.goto(f"{root}/by-mturk?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")
        look("preview-mturk")
        agree("by-mturk?workerId=A1W&assignmentId=A&turkSubmitTo=https://www.mturk.com")
        answer(right=True)
        press(page, T.start.begin)
        page.get_by_label(T.game.question).wait_for()
        play(page)
        press(page, T.feedback.send)
        page.get_by_role("heading", name=T.done.title).wait_for()
        look("done-mturk")
        agree(f"pilot?PROLIFIC_PID={pid(3)}")
        page.get_by_role("link", name=T.game.stop).click()
        press(page, T.stop.delete)
        page.get_by_role("heading", name=T.withdrawn.title).wait_for()
        look("withdrawn")
        page.goto(f"{root}/untested?PROLIFIC_PID=null")
        page.get_by_text(T.refused.placeholder).wait_for()
        look("id-not-filled-in")
        page.goto(f"{root}/untested?PROLIFIC_PID={pid(4)}&icy_test={link_mark(studies[6])}")
        look("link-test")
        press(page, T.link.open)
        page.get_by_text(T.link.done).wait_for()
        look("link-tested")
        for address in ("full", "closed", "desktop", "deutsch", "pilot/researcher"):
            page.goto(f"{root}/{address}")
            look(address.rpartition("/")[2])
    assert len(look.seen) == 14
