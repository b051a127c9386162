"""A build of the site refuses pages that nobody can reach, and links that open nothing; old addresses redirect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.browsers import driven, why_not
from tests.pages import DOCS

pytest.importorskip("sphinx", reason='needs pip install ".[docs]"')

CONF = f"""
import sys
sys.path.insert(0, {str(DOCS / "_ext")!r})
extensions = ["myst_parser", "addresses"]
html_theme = "basic"
myst_heading_anchors = 4
moved_pages = {{"old": "first#a-heading"}}
"""
PAGES = {
    "index.md": "# Home\n\n```{toctree}\nfirst\n```\n",
    "first.md": "# First\n\n[home](index.md)\n\n## A heading\n\nText\n",
}


def built(folder: Path, pages: dict[str, str], conf: str = CONF) -> tuple[int, str]:
    """Build a small site strictly; return the exit status and the warnings."""
    for name, content in ({"conf.py": conf} | PAGES | pages).items():
        (folder / name).write_text(content)
    command = ["-m", "sphinx", "--fail-on-warning", "--nitpicky", "-q", str(folder), str(folder / "html")]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.docs
def test_a_good_site_is_built_and_its_old_addresses_redirect(tmp_path: Path) -> None:
    assert built(tmp_path, {}) == (0, "")
    redirect = (tmp_path / "html" / "old.html").read_text()
    assert 'content="1; url=first.html#a-heading"' in redirect
    assert 'location.replace("first.html" + (location.hash || "#a-heading"))' in redirect


@pytest.mark.docs
@pytest.mark.parametrize(
    ("pages", "conf", "problem"),
    [
        ({"search.md": "# Lost\n", "first.md": "# First\n\n## A heading\n\n```{toctree}\nsearch\n```\n"}, CONF,
         "two pages have the address search.html"),
        ({"alone.md": "# Alone\n"}, CONF, "isn't included in any toctree"),
        ({"first.md": "# First\n\n[there](nowhere.md)\n\n## A heading\n"}, CONF, "nowhere.md"),
        ({"first.md": "# First\n\n[there](index.md#nothing)\n\n## A heading\n"}, CONF, "nothing"),
        ({"first.md": '# First\n\n<a href="nowhere.html">x</a>\n\n## A heading\n'}, CONF,
         "first.html: this link opens nothing: nowhere.html"),
        ({}, CONF.replace("#a-heading", "#no-heading"), "old.html: this link opens nothing: first.html#no-heading"),
        ({}, CONF.replace('"first#', '"gone#'), "old.html: this link opens nothing: gone.html#a-heading"),
        ({}, CONF.replace('"old"', '"first"'), "two pages have the address first.html: a page, and a redirect"),
    ],
    ids=["same address", "no menu", "no page", "no heading", "no file", "moved to no heading", "moved to no page",
         "moved but there"],
)  # fmt: skip
def test_a_site_with_a_fault_is_refused(pages: dict[str, str], conf: str, problem: str, tmp_path: Path) -> None:
    status, warnings = built(tmp_path, pages, conf)
    assert status == 1
    assert problem in warnings


# Elements with a hidden part to the right, except wide tables and formulas, which scroll in their own frame; and short
# names that are broken because their column is too narrow.
CUT_OFF = """() => [document.documentElement, ...document.querySelectorAll("article pre, article img, article p")]
    .filter(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
    .concat([...document.querySelectorAll("article td code")]
        .filter(one => one.textContent.length < 6 && one.getClientRects().length > 1))
    .map(one => one.tagName + ": " + one.textContent.slice(0, 60))"""
# Tables that scroll, and pictures without a text, or with letters of less than 10.7 pixels (8 points at 220 dpi).
NOT_FOR_PHONES = """() => [...document.querySelectorAll("article .table-wrapper, article img")]
    .filter(one => one.scrollWidth > one.clientWidth + 1 || one.tagName == "IMG"
        && (one.alt.length < 30 || 8 / 72 * 220 * one.clientWidth / one.naturalWidth < 10.7))
    .map(one => one.textContent || one.src)"""


@pytest.mark.browser
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_no_page_is_cut_off_or_scrolls_sideways(tmp_path: Path) -> None:
    subprocess.run([sys.executable, DOCS / "build.py", tmp_path], check=True)
    pages = [page for page in (tmp_path / "html").rglob("*.html") if "moved</title>" not in page.read_text()]
    assert len(pages) > 60
    wrong = []
    for width in (390, 1280):
        with driven(viewport={"width": width, "height": 900}, offline=True) as context:
            opened = context.new_page()
            for page in pages:
                opened.goto(page.as_uri())
                wrong += [f"{page.name} at {width} pixels: {found}" for found in opened.evaluate(CUT_OFF)]
                if page.name == "findings.html":  # is for strangers
                    wrong += [f"{page.name} at {width} pixels: {found}" for found in opened.evaluate(NOT_FOR_PHONES)]
    assert not wrong, "\n".join(wrong)
