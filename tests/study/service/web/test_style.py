"""The look of the pages: contrast, sizes, accessible names and well-formed HTML."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from icy.study.service.web.desk import STATIC
from tests.study.service.helpers import study
from tests.study.service.web.helpers import RIGHT, browsing, without_limits

CSS = (STATIC / "study.css").read_text()
TEXT, PARTS = 4.5, 3.0  # least contrast of text and of other parts (WCAG 2.2, 1.4.3 and 1.4.11)
PAIRS = [
    *((one, "page", TEXT) for one in ("ink", "accent")),
    *((one, "panel", TEXT) for one in ("ink", "right", "wrong")),
    *(("on-accent", "accent", TEXT), ("on-note", "note", TEXT)),
    *((one, other, PARTS) for one in ("line", "focus") for other in ("page", "panel")),
    ("accent", "panel", PARTS),
]
VOID = {"img", "input", "link", "meta", "br", "hr"}


def colours(scheme: str) -> dict[str, str]:
    """The colours of a scheme; colours of the dark scheme replace the light ones."""
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    found = dict(re.findall(r"--([\w-]+): (#\w{6});", light))
    return found | (dict(re.findall(r"--([\w-]+): (#\w{6});", dark)) if scheme == "dark" else {})


def luminance(colour: str) -> float:
    """The relative luminance of a colour (WCAG 2.2)."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_high_enough() -> None:
    wrong = []
    for scheme in ("light", "dark"):
        found = colours(scheme)
        low = [(one, other, least) for one, other, least in PAIRS if contrast(found[one], found[other]) < least]
        wrong += [f"{scheme}: {one} on {other} has a contrast below {least}" for one, other, least in low]
    assert not wrong, "\n".join(wrong)


def test_all_colours_belong_to_the_schemes() -> None:
    rules = re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL)
    assert re.findall(r"#[0-9a-f]{3,8}\b|rgb|hsl", rules) == []
    assert set(re.findall(r"var\(--([\w-]+)\)", CSS)) <= set(colours("light"))
    assert set(colours("light")) == set(colours("dark"))


def test_targets_are_of_44_pixels_and_motion_can_be_reduced() -> None:
    assert re.search(
        r"^button, \.button \{[^}]*min-block-size: 2\.75rem; min-inline-size: 2\.75rem", CSS, re.M | re.DOTALL
    )
    assert "prefers-reduced-motion" in CSS
    assert ":focus-visible { outline: 3px solid" in CSS
    assert not re.search(r"outline: (0|none)(?![^}]*\})", re.sub(r"main:focus[^}]*\}", "", CSS))


class Outline(HTMLParser):
    """The elements of a page, each with its open ancestors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str], tuple[str, ...]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice"
        self.found.append((tag, {name: value or "" for name, value in attrs}, tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another"


def all_pages(folder: Path) -> dict[str, str]:
    """Every page of a study, by a name."""
    of = study(folder, pages={"demographics": True}, platform={"name": "mturk"}, people={"most_bonus_cents": 99})
    found: dict[str, str] = {}
    with browsing(of, without_limits(researcher=True, password="x")) as browser:
        browser.get("/pilot?workerId=1&assignmentId=A&turkSubmitTo=https://www.mturk.com")
        found["consent"] = browser.text
        for form, fields in (
            ("enter", {"agree": "1"}),
            ("demographics", {}),
            ("instructions", {"palette": "primary"}),
            ("comprehension", {}),
            ("comprehension", RIGHT),
            ("colours", {}),
            ("game", {}),
            ("tab train", {}),
            ("tab test", {}),
            ("answer", {"answer": "?"}),
            ("answer", {"answer": "abc"}),
        ):
            browser.send(form, **fields)
            found[f"after {form} {len(found)}"] = browser.text
        link = browser.address
        found["stop"] = browser.get(f"{link}/stop").text
        browser.get(link)
        browser.send("next")
        browser.play()
        found["feedback"] = browser.text
        browser.send("feedback")
        found["done"] = browser.text
        found["declined"] = browser.get("/pilot/declined").text
        found["nothing"] = browser.get("/nothing").text
        found["researcher"] = browser.get("/pilot/researcher", headers={"authorization": "Basic bWU6eA=="}).text
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return all_pages(tmp_path_factory.mktemp("pages"))


def test_every_page_is_well_formed(pages: dict[str, str]) -> None:
    assert len(pages) > 15
    for name, text in pages.items():
        outline = Outline(text)
        assert outline.open == [], name
        tags = Counter(tag for tag, _, _ in outline.found)
        assert all(tags[one] == 1 for one in ("html", "head", "title", "main", "h1", "body")), name
        ids = [given["id"] for _, given, _ in outline.found if "id" in given]
        assert len(set(ids)) == len(ids), name
        for _, given, _ in outline.found:
            for reference in ("aria-describedby", "aria-labelledby", "for"):
                assert given.get(reference, ids[0]) in ids, (name, given)


def test_everything_has_a_name(pages: dict[str, str]) -> None:
    """Pictures have texts, fields have labels, buttons and links have words, and headings are in order."""
    for name, text in pages.items():
        found = Outline(text).found
        labelled = {given["for"] for tag, given, _ in found if tag == "label" and "for" in given}
        for tag, given, above in found:
            if tag == "img":
                assert given["alt"], name
            if tag in ("input", "select", "textarea") and given.get("type") != "hidden":
                assert "label" in above or given.get("id") in labelled or given.get("aria-label"), (name, given)
            if tag == "form":
                assert (given["method"], given["action"][:1]) == ("post", "/") or "mturk" in given["action"], name
        for words in re.findall(r"<(?:button|a|summary|legend|th|option value=\"\w)[^>]*>(.*?)</", text, re.DOTALL):
            assert re.sub(r"<[^>]+>", "", words).strip(), (name, words)
        levels = [int(level) for level in re.findall(r"<h(\d)", text)]
        assert levels[0] == 1, name
        assert all(after <= before + 1 for before, after in pairwise(levels)), name


def test_keyboards_do_not_correct_code_fields(pages: dict[str, str]) -> None:
    (field,) = [given for _, given, _ in Outline(pages["after game 7"]).found if given.get("name") == "answer"]
    wanted = {"autocapitalize": "none", "autocorrect": "off", "autocomplete": "off", "spellcheck": "false"}
    assert {name: field[name] for name in wanted} == wanted
    assert "autofocus" in field


def test_feedback_is_announced_to_screen_readers(pages: dict[str, str]) -> None:
    for text in pages.values():
        assert '<div id="live" class="unseen" role="status"></div>' in text
    assert "data-live" in pages["after answer 10"]
    assert "data-live" in pages["after answer 11"]
