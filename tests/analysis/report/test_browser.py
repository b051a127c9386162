"""Reports and the atlas in a real browser, from a file, without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import icy
from icy.analysis.report.explorer import explorer_page
from tests.browsers import driven, why_not
from tests.helpers import THREE, long

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@contextmanager
def opened(path: Path, **options: Any) -> Iterator[Any]:
    """Open a page, and ask afterwards that nothing was fetched and no error was thrown."""
    asked: list[str] = []
    errors: list[str] = []
    with driven(offline=True, **options) as context:
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None
        )
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]")
        page.wait_for_selector(".chart svg")
        yield page
    assert asked == [path.as_uri()]
    assert errors == []


def violations(page: Any) -> list[Any]:
    from axe_playwright_python.sync_playwright import Axe

    return [(one["id"], one["nodes"][0]["html"]) for one in Axe().run(page).response["violations"]]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    result = icy.probe(["sender/FC1L", "sender/FC2L"], ["perm", "rot"], meanings="2x3", word_length=2, seeds=2,
                       target=0.4, workers=1, out=tmp_path / "results", progress=False)  # fmt: skip
    return icy.report(result, tmp_path / "report.html")


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("atlas") / "atlas.html"
    path.write_text(explorer_page(icy.atlas()))
    return path


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_keep_to_rules_of_access_and_to_their_width(report: Path, atlas: Path, theme: str, width: int) -> None:
    for path in (report, atlas):
        with opened(path, viewport={"width": width, "height": 800}, color_scheme=theme) as page:
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("html").get_attribute("data-theme") == theme


def test_tables_sort_by_number_and_filter(tmp_path: Path) -> None:
    path = icy.report(long(THREE), tmp_path / "report.html")
    with opened(path) as page:
        names = page.locator("#table-0 tbody tr:not([hidden]) th")
        head = page.get_by_role("columnheader", name="rot")
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == "ascending"
        assert names.all_inner_texts() == ["sender/C", "sender/A", "sender/B"]
        head.get_by_role("button").press("Enter")
        assert names.all_inner_texts() == ["sender/B", "sender/A", "sender/C"]
        page.get_by_label("Filter rows").fill("sender/a")
        assert names.all_inner_texts() == ["sender/A"]
        assert page.locator("[data-count]").inner_text() == "1 of 3 rows"
        page.wait_for_function("document.querySelectorAll('#heat-0 .mark-rect.marks path').length === 4")


def test_a_row_shows_its_curves_by_click_and_by_keyboard(report: Path) -> None:
    with opened(report) as page:
        lines = page.locator("#curves-0 .mark-line path")
        assert lines.count() == 6  # three grammars, two seeds
        page.locator("#table-0").get_by_role("button", name="sender/FC2L").press("Enter")
        assert page.locator("[data-chosen]").input_value() == "1"
        assert "chosen" in (page.locator("#table-0 tbody tr").nth(1).get_attribute("class") or "")
        page.locator("#heat-0 .mark-rect.marks path").first.click()
        page.wait_for_function("document.querySelector('[data-chosen]').value === '0'")


def test_a_cell_says_its_numbers_when_pointed_at(report: Path) -> None:
    with opened(report) as page:
        page.locator("#heat-0 .mark-rect.marks path").nth(1).hover()
        tip = page.locator("#vg-tooltip-element.visible")
        tip.wait_for()
        assert "sender/FC1L" in tip.inner_text()
        assert "seeds" in tip.inner_text()


def test_all_runs_and_the_print_are_there(report: Path, tmp_path: Path) -> None:
    with opened(report) as page:
        page.get_by_text("All 12 runs").click()
        runs = page.get_by_role("region", name="All runs").locator("tbody tr")
        runs.first.wait_for()  # they are made when the browser says that it has opened, which is after the click
        assert runs.count() == 12
        assert page.pdf()[:5] == b"%PDF-"
        page.get_by_role("button", name="Switch to dark").click()
        assert page.locator("html").get_attribute("data-theme") == "dark"


@pytest.mark.parametrize("name", ['receiver/Mine, "so called"', "receiver/Hier:GRU"])
@pytest.mark.parametrize("factor", [1, 2])
def test_results_of_ones_own_are_placed_as_icy_places_them(atlas: Path, tmp_path: Path, name: str, factor: int) -> None:
    table = icy.atlas().table
    setting = {"side": "receiver", "protocol": "acquire", "representation": "soft", "meanings": "3x4", "settings": ""}
    same = table[(table[list(setting)] == pd.Series(setting)).all(axis=1)]
    mine = same[same["model"] == "receiver/Hier:GRU"]
    assert len(mine)
    mine = mine.assign(model=name, value=mine["value"] * 1.1, hidden_size=mine["hidden_size"] * factor)
    mine.to_csv(tmp_path / "mine.csv", index=False)
    placed = icy.atlas().place(mine)
    with opened(atlas) as page:
        page.set_input_files("#file", tmp_path / "mine.csv")
        page.get_by_text("Placed: receiver/").wait_for()
        assert page.get_by_label("Side").input_value() == "receiver"
        names = page.locator("#neighbours button").all_inner_texts()
        far = [float(text.split(" at ")[1].split(",")[0]) for text in page.locator("#neighbours li").all_inner_texts()]
        rows = page.locator("#ranks tbody tr").all()
        ranks = {row.locator("td").nth(0).inner_text(): row.locator("td").nth(3).inner_text() for row in rows}
    sized = re.compile(r" \(E=\d+\)$")  # which icy says where sizes differ, and the page within the atlas alone
    assert names == [sized.sub("", one) for one in placed.neighbours["neighbour"]]
    assert far == pytest.approx(placed.neighbours["distance"].tolist(), abs=0.006)
    assert ranks == {row.grammar: f"{row.rank} of {row.of}" for row in placed.ranks.itertuples()}


def test_another_file_is_told_so(atlas: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with opened(atlas) as page:
        page.set_input_files("#file", tmp_path / "other.csv")
        page.get_by_text("This is no results.csv of icy: it has no column model").wait_for()


def test_settings_and_axes_can_be_chosen(atlas: Path) -> None:
    with opened(atlas) as page:
        page.get_by_label("Side").select_option("receiver")
        page.get_by_label("Axes").select_option(label="principal components")
        page.wait_for_function("document.querySelector('#space svg').textContent.includes('component 1')")
        page.locator("#all").get_by_role("button", name="receiver/CNN").click()
        assert page.locator("#model h3").first.inner_text() == "receiver/CNN"
