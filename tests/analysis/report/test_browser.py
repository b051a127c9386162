"""Reports and the atlas in a real browser, from a file, without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import icy
from icy.analysis.report.explorer import explorer_page, explorer_settings
from icy.analysis.report.page import Section, report_page
from icy.analysis.tables.bias import bias_table
from icy.analysis.tables.references import numbered
from tests.browsers import driven, why_not
from tests.helpers import THREE, long

from .helpers import trained_otherwise

pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(why_not()), reason=why_not())]


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


@pytest.mark.parametrize("width", [320, 375, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_keep_to_rules_of_access_and_to_their_width(report: Path, atlas: Path, theme: str, width: int) -> None:
    for path in (report, atlas):
        with opened(path, viewport={"width": width, "height": 800}, color_scheme=theme) as page:
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("html").get_attribute("data-theme") == theme


def test_wide_tables_scroll_at_1200_pixels_and_fade_where_they_go_on(tmp_path: Path) -> None:
    table = long({"sender/RNNAutoReg:LSTM": {f"grammar{i}": [0.5, 0.25] for i in range(20)}})
    with opened(icy.report(table, tmp_path / "r.html"), viewport={"width": 1200, "height": 800}) as page:
        region = page.get_by_role("region", name="Table of")
        assert region.evaluate("it => it.scrollWidth > it.clientWidth && it.classList.contains('more')")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        region.evaluate("it => { it.scrollLeft = it.scrollWidth; }")
        page.wait_for_function("!document.querySelector('.scrolls').classList.contains('more')")
        page.set_content(bias_table(table).render("html"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        assert page.evaluate("(it => it.scrollWidth > it.clientWidth)(document.querySelector('div'))")


def test_a_heat_map_has_the_numbers_of_a_single_row(tmp_path: Path) -> None:
    ratios = long({"A": {"concat": 1.0, "rot": [4.0, 6.0], "perm": [0.5, 0.5]}}, measure="ratio", protocol="acquire")
    for table in (ratios, ratios.assign(measure="accuracy", value=ratios["value"] / 10)):
        with opened(icy.report(table, tmp_path / "r.html")) as page:
            assert page.locator("#heat-0 .mark-rect.role-mark path").count() == 3
            numbers = page.locator("#heat-0 .mark-text.role-mark text").all_text_contents()
            assert any("×" if table is ratios else "±" in number for number in numbers)
            assert ("Ratios are" in page.locator("#about").inner_text()) is (table is ratios)


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
        page.wait_for_function("document.querySelectorAll('#heat-0 .mark-rect.role-mark path').length === 4")


def test_a_row_shows_its_curves_by_click_and_by_keyboard(report: Path) -> None:
    with opened(report) as page:
        lines = page.locator("#curves-0 .mark-line path")
        assert lines.count() == 3  # a mean per grammar
        assert page.locator("#curves-0 .mark-area path").count() == 3
        page.get_by_label("Each seed").check()
        page.wait_for_function("document.querySelectorAll('#curves-0 .mark-line path').length === 9")  # and two seeds
        page.locator("#table-0").get_by_role("button", name="sender/FC2L").press("Enter")
        assert page.locator("[data-chosen]").input_value() == "1"
        assert "chosen" in (page.locator("#table-0 tbody tr").nth(1).get_attribute("class") or "")
        page.locator("#heat-0 .mark-rect.role-mark path").first.click()
        page.wait_for_function("document.querySelector('[data-chosen]').value === '0'")


def test_pointing_at_a_row_shows_its_curves_and_keeps_its_numbers(report: Path) -> None:
    with opened(report) as page:
        cells = page.locator("#heat-0 .mark-rect.role-mark path")
        cells.last.hover()
        tip = page.locator("#vg-tooltip-element.visible")
        tip.wait_for()
        assert "FC2L" in tip.inner_text()
        assert "seeds" in tip.inner_text()
        page.get_by_text("of the row under the pointer: sender/FC2L").wait_for()
        page.wait_for_timeout(400)  # by now the curves are drawn, which must not take the numbers away
        assert tip.count() == 1
        assert page.locator("[data-chosen]").input_value() == "0"
        page.mouse.move(0, 0)
        page.wait_for_function("document.querySelector('[data-of]').textContent === 'of sender/FC1L'")


@pytest.mark.parametrize("name", ["heat-0", "space"])
def test_saved_pictures_are_light_whatever_the_page_is(report: Path, atlas: Path, tmp_path: Path, name: str) -> None:
    with opened(report if name == "heat-0" else atlas, color_scheme="dark") as page:
        for kind in ("svg", "png"):
            with page.expect_download() as saved:
                page.locator(f"[data-save={name}][data-type={kind}]").click()
            assert saved.value.suggested_filename == f"{name}.{kind}"
            saved.value.save_as(tmp_path / kind)
        assert page.locator("html").get_attribute("data-theme") == "dark"
    svg = (tmp_path / "svg").read_text()
    assert 'fill="white"' in svg
    assert "#e8e6e1" not in svg  # ink of the dark theme
    assert (tmp_path / "png").read_bytes()[:4] == b"\x89PNG"


def test_print_is_light_and_fits_the_page(tmp_path: Path) -> None:
    grammars = dict.fromkeys(["concat", "perm", "shufdet", "rot", "pairsum", "proj", "hol"], 0.5)
    table = long({"A" * 40: grammars, "B": grammars}).assign(
        settings=[", ".join(["some_setting=1"] * 8)] * 7 + [""] * 7
    )
    with opened(icy.report(table, tmp_path / "r.html"), color_scheme="dark") as page:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 1046, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 1046
        label = page.locator("#heat-0 .role-axis-label text").first
        assert label.evaluate("it => getComputedStyle(it).fill") == "rgb(0, 0, 0)"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("table").first.evaluate("it => it.style.zoom") == ""


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
@pytest.mark.parametrize("factor", [1, 2, 1.0])  # as pandas may write whole numbers: 32.0
def test_results_of_ones_own_are_placed_as_icy_places_them(
    atlas: Path, tmp_path: Path, name: str, factor: float
) -> None:
    table = icy.atlas().table
    setting = {"role": "receiver", "protocol": "acquire", "representation": "soft", "meanings": "3x4", "settings": ""}
    same = table[(table[list(setting)] == pd.Series(setting)).all(axis=1)]
    mine = same[same["model"] == "receiver/Hier:GRU"]
    assert len(mine)
    mine = mine.assign(model=name, value=mine["value"] * 1.1, hidden_size=mine["hidden_size"] * factor)
    mine.to_csv(tmp_path / "mine.csv", index=False)
    placed = icy.atlas().place(mine)
    with opened(atlas) as page:
        page.set_input_files("#file", tmp_path / "mine.csv")
        page.get_by_text("Placed: receiver/").wait_for()
        assert page.get_by_label("Role").input_value() == "receiver"
        names = page.locator("#neighbours button").all_inner_texts()
        far = [float(text.split(" at ")[1].split(",")[0]) for text in page.locator("#neighbours li").all_inner_texts()]
        rows = page.locator("#ranks tbody tr").all()
        ranks = {row.locator("td").nth(0).inner_text(): row.locator("td").nth(4).inner_text() for row in rows}
    sized = re.compile(r" \(E=\d+\)$")  # which icy says where sizes differ, and the page within the atlas alone
    assert names == [sized.sub("", one) for one in placed.neighbors["neighbour"]]
    assert far == pytest.approx(placed.neighbors["distance"].tolist(), abs=0.006)
    assert ranks == {
        row.grammar: "-" if pd.isna(row.rank) else f"{row.rank} of {row.of}" for row in placed.ranks.itertuples()
    }


def test_models_with_one_value_share_their_ranks(atlas: Path, tmp_path: Path) -> None:
    copy = rows_of("receiver/Hier:GRU").assign(model="receiver/Copy")
    copy.to_csv(tmp_path / "copy.csv", index=False)
    ranks = icy.atlas().place(copy).ranks
    with opened(atlas) as page:
        page.set_input_files("#file", tmp_path / "copy.csv")
        page.get_by_text("Placed: receiver/").wait_for()
        rows = page.locator("#ranks tbody tr").all()
        shown = {row.locator("td").nth(0).inner_text(): row.locator("td").nth(4).inner_text() for row in rows}
    assert shown == {
        row.grammar: "-" if pd.isna(row.rank) else f"{row.rank}–{row.rank + 1} of {row.of}"
        for row in ranks.itertuples()
    }


def rows_of(model: str, **settings: str) -> pd.DataFrame:
    """Rows of a model of the atlas, by default of the small space."""
    setting = {"protocol": "acquire", "representation": "soft", "meanings": "3x4", "settings": "", **settings}
    table = icy.atlas().table
    found = table[(table[list(setting)] == pd.Series(setting)).all(axis=1) & table["model"].eq(model)]
    assert len(found) > 0
    return found


def files_of(folder: Path) -> dict[str, Path]:
    """Files that may be dropped on the atlas, good ones and others."""
    sender, receiver = rows_of("sender/FC1L"), rows_of("receiver/CNN")
    csvs = {
        "both": pd.concat([sender, receiver]).to_csv(index=False),
        "receivers": receiver.to_csv(index=False),
        "other": "a,b\n1,2\n",
        "empty": "",
        "heads": sender[:0].to_csv(index=False),
        "failed": sender.assign(failed=True).to_csv(index=False),
        "elsewhere": sender.assign(protocol="generalise", held_out=0.25, split="pairs").to_csv(index=False),
        "combined": sender.assign(representation="gumb", meanings="5x10", word_length=4).to_csv(index=False),
    }
    for name, text in csvs.items():
        (folder / f"{name}.csv").write_text(text)
    return {name: folder / f"{name}.csv" for name in csvs}


ERRORS = {
    "other": "This is not a results.csv of icy; missing columns: model, grammar, value, role, protocol, "
    "representation, meanings.",
    "empty": "empty.csv is empty.",
    "heads": "heads.csv has no runs.",
    "failed": "failed.csv has no runs with a value.",
    "elsewhere": "These results have protocol generalise; held out 0.25; split pairs; "
    "the atlas has protocol acquire, budget; held out none; split none.",
    "combined": "These results have representation gumb; the nearest setting of the atlas has representation soft.",
}


def test_rows_without_grammars_of_the_axes_are_counted(atlas: Path, tmp_path: Path) -> None:
    rows = rows_of("sender/FC1L")
    rows[rows["grammar"].isin(["concat", "shufdet"])].to_csv(tmp_path / "few.csv", index=False)
    with opened(atlas) as page:
        page.set_input_files("#file", tmp_path / "few.csv")
        page.get_by_text("Placed: sender/FC1L").wait_for()
        assert "sender/FC1L *" in page.locator("#rest").inner_text()
        assert page.locator("#neighbours li").first.inner_text().endswith("over 1 grammar")


def test_a_file_may_be_dropped_anywhere(atlas: Path) -> None:
    csv = rows_of("sender/FC1L").to_csv(index=False)
    with opened(atlas) as page:
        page.evaluate(
            """csv => {
              const data = new DataTransfer();
              data.items.add(new File([csv], "mine.csv"));
              const event = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
              document.getElementById("all").dispatchEvent(event);
            }""",
            csv,
        )
        page.get_by_text("Placed: sender/FC1L").wait_for()


def test_a_file_that_cannot_be_placed_shows_an_error_and_the_earlier_file_stays(atlas: Path, tmp_path: Path) -> None:
    files = files_of(tmp_path)
    with opened(atlas) as page:
        for name, error in ERRORS.items():
            page.set_input_files("#file", files[name])
            page.locator("#told.error").get_by_text(error, exact=True).wait_for()
        page.set_input_files("#file", files["both"])
        page.get_by_text("Placed: sender/FC1L").wait_for()
        for name, error in ERRORS.items():
            page.set_input_files("#file", files[name])
            page.locator("#told.error").get_by_text(f"{error} The earlier file, both.csv, is still shown.").wait_for()
        assert page.locator("#all").get_by_role("button", name="sender/FC1L *").count() == 1


def test_a_file_stays_when_another_setting_is_chosen(atlas: Path, tmp_path: Path) -> None:
    files = files_of(tmp_path)
    senders, receivers = len(rows_of("sender/FC1L")), len(rows_of("receiver/CNN"))
    status = "#told"
    with opened(atlas) as page:
        page.set_input_files("#file", files["both"])
        page.get_by_text("Placed: ").wait_for()
        assert page.locator(status).inner_text() == (
            f"Placed: sender/FC1L, of {senders} runs in both.csv, marked *; "
            f"{receivers} runs are under other settings (role receiver)."
        )
        page.get_by_label("Role").select_option("receiver")
        assert page.locator(status).inner_text().startswith(f"Placed: receiver/CNN, of {receivers} runs in both.csv")
        assert page.locator("#model h3").first.inner_text() == "receiver/CNN *"
        page.set_input_files("#file", files["receivers"])
        page.get_by_text("in receivers.csv, marked *.").wait_for()
        page.get_by_label("Role").select_option("sender")
        assert page.locator(status).inner_text() == (
            f"No run of receivers.csv is placed here: {receivers} runs are under other settings (role receiver)."
        )
        assert page.locator("#all").get_by_text("*").count() == 0
        page.set_input_files("#file", files["receivers"])  # the same again, which a browser reports if it was let go
        page.get_by_text("Placed: receiver/CNN").wait_for()
        assert page.get_by_label("Role").input_value() == "receiver"
        assert page.locator("#file").input_value() == ""


def test_every_setting_can_be_chosen(atlas: Path) -> None:
    reached = set()
    with opened(atlas) as page:
        selects = {select.get_attribute("data-choice"): select for select in page.locator("[data-choice]").all()}

        def walk(names: Sequence[str], path: tuple[str, ...] = ()) -> None:
            if not names:
                count = page.locator("#setting").inner_text().partition(" ")[0]
                reached.add((*(select.input_value() for select in selects.values()), int(count)))
                return
            for value in selects[names[0]].locator("option").evaluate_all("all => all.map((one) => one.value)"):
                for name, before in zip(selects, (*path, value), strict=False):
                    if selects[name].is_visible():
                        selects[name].select_option(before)
                walk(names[1:], (*path, value))

        walk(list(selects))
    settings = explorer_settings(icy.atlas())
    expected = {(*(one["setting"][name] for name in selects), len(one["models"])) for one in settings}
    assert reached == expected


def test_models_that_were_trained_otherwise_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "atlas.html"
    path.write_text(explorer_page(trained_otherwise()))
    with opened(path) as page:
        training = page.get_by_label("Training settings")
        assert training.locator("option").all_inner_texts() == ["default", "check_every=50"]
        training.select_option(label="check_every=50")
        otherwise = rows_of("sender/FC1L")
        mean = 2 * otherwise[otherwise["grammar"].eq("perm")]["value"].mean()
        row = page.locator("#all tbody tr", has=page.get_by_role("button", name="sender/FC1L", exact=True))
        assert f"{mean:.2f}" in row.inner_text()
        page.get_by_label("Messages").select_option("gumb")
        assert training.is_hidden()  # all of these were trained in one way
        assert "settings check_every=50" in page.locator("#setting").inner_text()


def test_the_keyboard_stays_where_a_neighbour_was_chosen(atlas: Path) -> None:
    with opened(atlas) as page:
        button = page.locator("#neighbours button").first
        name = button.inner_text()
        button.press("Enter")
        assert page.evaluate("document.activeElement.matches('#model h3')")
        assert page.evaluate("document.activeElement.textContent") == name
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('#model') !== null")


LONG_NAMES = ["Wide" * 30, "RNNAutoReg:GRU+RNN1L:GRU, end-to-end accuracy"]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A report of ratios with all pictures, and long names in it."""
    grammars = {"concat": 1.0, "perm": 1.1, "shufdet": 1.5, "rot": 3.0, "pairsum": 4.0, "proj": 8.0}
    table = long(dict.fromkeys(LONG_NAMES, grammars), protocol="acquire", measure="ratio")
    return icy.report(table, tmp_path / "wide.html")


def test_long_names_leave_room_for_numbers(wide: Path, atlas: Path, tmp_path: Path) -> None:
    mine = pd.concat([rows_of("sender/FC1L").assign(model=f"sender/{name}") for name in LONG_NAMES])
    mine.to_csv(tmp_path / "mine.csv", index=False)
    with opened(wide, viewport={"width": 320, "height": 640}) as page:
        page.locator("#tradeoff-0 .mark-symbol.role-mark").wait_for()
        page.get_by_text("All 12 runs").click()
        page.get_by_role("region", name="All runs").locator("tbody tr").first.wait_for()
        for table in page.locator("table").all():
            assert table.locator("tbody tr > :first-child").first.bounding_box()["width"] <= 0.45 * 320 + 1
        first = page.locator("#heat-0 .mark-rect.role-mark path").first.bounding_box()
        assert first["x"] <= 160
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        assert violations(page) == []
    with opened(atlas, viewport={"width": 320, "height": 640}) as page:
        page.set_input_files("#file", tmp_path / "mine.csv")
        page.get_by_text("Placed: ").wait_for()
        assert page.locator("#all tbody th").first.bounding_box()["width"] <= 0.45 * 320 + 1
        assert page.locator("#model h3").first.bounding_box()["width"] <= 320
        assert page.locator("#model .scrolls").evaluate("it => it.querySelector('ol').scrollWidth <= it.clientWidth")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        assert violations(page) == []


def test_names_of_a_heat_map_have_the_room_that_there_is(tmp_path: Path) -> None:
    table = long({"A" * 60: {"concat": 1.0, "rot": 0.5}, "B": {"concat": 1.0, "rot": 0.5}})
    with opened(icy.report(table, tmp_path / "r.html"), viewport={"width": 1280, "height": 800}) as page:
        whole = "document.querySelector('#heat-0 svg').textContent.includes('A'.repeat(60))"
        page.wait_for_function(whole)
        page.set_viewport_size({"width": 375, "height": 800})
        page.wait_for_function(f"!({whole})")
        assert page.locator("#heat-0 svg").bounding_box()["width"] <= 375
        page.set_viewport_size({"width": 1280, "height": 800})
        page.wait_for_function(whole)


@pytest.mark.parametrize("name", ["space", "curves-0"])
def test_legends_move_below_when_the_window_becomes_narrow(report: Path, atlas: Path, name: str) -> None:
    below = """([chart, under]) => {
      const svg = document.querySelector(`#${chart} svg`);
      const legend = svg?.querySelector(".role-legend"), plot = svg?.querySelector(".background");
      return legend && under === (legend.getBoundingClientRect().top >= plot.getBoundingClientRect().bottom - 1);
    }"""
    with opened(atlas if name == "space" else report, viewport={"width": 1280, "height": 800}) as page:
        page.wait_for_function(below, arg=[name, False])
        for width, under in ((375, True), (1000, False)):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_function(below, arg=[name, under])
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_games_are_counted_in_trials(tmp_path: Path) -> None:
    table = long({"A": {"rot": [0.5, 0.5]}}).assign(job_kind="study")
    records: Any = [{"key": key, "curve": [[0, 0.4], [20, 0.5], [40, 0.6]]} for key in table["key"]]
    section = Section("study", "games", bias_table(table), numbered(table), records)
    (tmp_path / "games.html").write_text(report_page([section], "Games", ""))
    with opened(tmp_path / "games.html") as page:
        assert page.locator("#curves-0 .role-axis-title").get_by_text("trials").count() == 1
        page.locator("#curves-0 .mark-symbol.role-mark path").nth(1).hover()
        tip = page.locator("#vg-tooltip-element.visible")
        tip.wait_for()
        assert "trials" in tip.inner_text()
        page.get_by_text("All 2 runs").click()
        heads = page.get_by_role("region", name="All runs").locator("thead th")
        heads.first.wait_for()
        assert heads.all_inner_texts() == ["row", "grammar", "seed", "value", "steps", "seconds", "ended by"]
        assert "updates" not in page.locator("#section-0").inner_text()


def test_settings_and_axes_can_be_chosen(atlas: Path) -> None:
    with opened(atlas) as page:
        page.get_by_label("Filter rows").fill("CNN")
        page.get_by_label("Role").select_option("receiver")
        assert page.locator("#all tbody tr:visible").count() == 1
        assert page.locator("#count").inner_text().startswith("1 of ")
        page.get_by_label("Axes").select_option(label="principal components")
        page.wait_for_function("document.querySelector('#space svg').textContent.includes('component 1')")
        page.locator("#all").get_by_role("button", name="receiver/CNN").click()
        assert page.locator("#model h3").first.inner_text() == "receiver/CNN"
        page.wait_for_function(
            "document.querySelector('#space .mark-text.role-mark').textContent.includes('receiver/CNN')"
        )


def test_the_chosen_model_is_named_in_the_picture_and_its_neighbours_are_ringed(atlas: Path) -> None:
    with opened(atlas) as page:
        assert page.locator("[data-choice=meanings]").input_value() == "5x10"  # what icy probe measures by default
        page.locator("#space .mark-symbol.layer_1_marks path").last.click(force=True)
        name = page.locator("#model h3").first.inner_text()
        named = "name => document.querySelector('#space .mark-text.role-mark').textContent === name"
        page.wait_for_function(named, arg=name)  # of all other points it is empty
        rings = page.locator("#space .mark-symbol.layer_0_marks path")
        seen = rings.evaluate_all("all => all.filter((one) => one.getAttribute('opacity') !== '0').length")
        assert seen == page.locator("#neighbours li").count() + 1


def test_text_is_aligned_left_and_numbers_right(atlas: Path, report: Path) -> None:
    with opened(atlas) as page:
        heads = page.locator("#ranks thead th")
        words = dict(
            zip(heads.all_inner_texts(), heads.evaluate_all("all => all.map((one) => one.className)"), strict=True)
        )
        numbers = dict.fromkeys(["grammar", "ratio", "updates", "seeds", "others' median"], "")
        assert words == {**numbers, "rank": "words"}
        assert page.locator("#all thead th.words").count() == 0  # though some ratios have a dagger
        head = page.locator("#all").get_by_role("columnheader", name="rot")
        head.get_by_role("button").click()
        texts = page.locator("#all tbody tr td:nth-child(6)").all_inner_texts()
        texts = [text.split("\n")[0] for text in texts]  # the updates stand below
        values = [float(text.removesuffix("†")) for text in texts if text != "-"]
        assert values == sorted(values)
        assert any(text.endswith("†") for text in texts)
    with opened(report, viewport={"width": 375, "height": 640}) as page:
        table = page.locator("#table-0")
        table.locator("xpath=..").evaluate("it => it.scrollLeft = 500")
        assert table.locator("tbody th").first.bounding_box()["x"] < 40  # the name stays in sight
