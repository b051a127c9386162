"""The link from a platform: placeholders, its test before a study opens, and links back from error pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from icy.core.errors import StoreError
from icy.study.service import Study, persons
from icy.study.service.links import link_to_test, needs_test, pass_test, progress
from icy.study.service.network import Limit
from icy.study.service.platforms import PLATFORMS
from icy.study.service.web.desk import words
from tests.study.service.helpers import person, pid, rows, study
from tests.study.service.web.helpers import HOST, Browser, browsing, without_limits

T = words("en")
WORKER = "A3K9XW2MNO7QRS"
GOOD = {"prolific": pid(1), "mturk": WORKER, "sona": "48213", "link": "w01"}
SPOILED = ["", "{{%PROLIFIC_PID%}}", "${e://Field/PROLIFIC_PID}", "undefined", "null", "[PID]", "%%ID%%", "WORKERID"]


def link_to(platform: str, given: str) -> str:
    """The address of the study with an id."""
    return f"/pilot?{urlencode({PLATFORMS[platform].id_parameter: given})}"


def open_study_of(folder: Path, platform: str, **given: Any) -> Study:
    """An open study of a platform that needs an id."""
    return study(folder, platform={"name": platform, "needs_id": True, **given}, state="open")


# -- placeholders and malformed ids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["pilot", "open"])
@pytest.mark.parametrize("platform", GOOD)
def test_strangers_with_an_unfilled_link_never_share_a_game(platform: str, state: str, tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": platform}, state=state)
    pass_test(of)
    with browsing(of) as browser:
        browser.get(link_to(platform, GOOD[platform]))
        form = browser.page.forms["enter"]
        for spoiled in SPOILED:
            browser.get(link_to(platform, spoiled))
            assert T.refused.placeholder in browser.text
            assert of.plan.people.contact in browser.text
            assert "enter" not in browser.page.forms
            name = PLATFORMS[platform].id_parameter
            browser.post(form.action, {**form.fields, "agree": "1", name: spoiled})  # without using the page
            assert T.refused.placeholder in browser.text
    assert rows(of, "SELECT * FROM person") == []
    found = progress(of).link
    assert found.visits == {"placeholder": 2 * len(SPOILED)}
    (warning,) = found.warnings
    assert warning.startswith(
        "16 visits were turned away because of the link: 16 had a placeholder instead of an id; the last was at 2026-"
    )


@pytest.mark.parametrize(("platform", "given"), [("prolific", "5f1c"), ("mturk", "a b"), ("link", "1")])
def test_an_id_that_does_not_match_the_platform_is_refused(platform: str, given: str, tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": platform, "id_pattern": "[0-9]{6}" if platform == "link" else ""})
    with browsing(of) as browser:
        assert T.refused.malformed in browser.get(link_to(platform, given)).text
        assert "enter" in Browser(browser.client).get("/pilot").text  # a pilot can be tried without an id
    assert progress(of).link.visits == {"malformed": 1}


def test_failed_visits_are_counted_by_reason_and_state(tmp_path: Path) -> None:
    given: dict[str, Any] = {"platform": {"name": "prolific"}}
    with browsing(study(tmp_path, **given)) as browser:
        browser.get(link_to("prolific", "null"))
    of = study(tmp_path, state="open", **given)
    pass_test(of)
    with browsing(of, without_limits(researcher=True, password="x")) as browser:
        for address in ("/pilot", link_to("prolific", "null"), link_to("prolific", "5"), link_to("prolific", "6")):
            browser.get(address)
        browser.get("/pilot/researcher", auth=("me", "x"))
        for reason, number in (("placeholder", 1), ("malformed", 2), ("no_id", 1)):
            assert f"{getattr(T.researcher.reasons, reason)}: {number}" in browser.text
    assert progress(of).link.visits == {"placeholder": 1, "malformed": 2, "no_id": 1}
    assert progress(of, pilot=True).link.visits == {"placeholder": 1}


def test_no_data_of_refused_visitors_are_stored(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "prolific"})
    with browsing(of) as browser:
        browser.get(link_to("prolific", "Jane-Q-Public"))
    of.database.scrub()
    assert b"Jane-Q" not in b"".join(path.read_bytes() for path in tmp_path.glob("studies.sqlite*"))


def test_a_task_that_is_accepted_again_is_submitted_with_its_last_assignment(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "mturk"})
    submit = "turkSubmitTo=https%3A%2F%2Fwww.mturk.com"
    with browsing(of) as browser:
        browser.start(f"/pilot?workerId={WORKER}&assignmentId=FIRST&hitId=H1&{submit}")
        browser.get(f"/pilot?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=H2&{submit}")  # a preview changes nothing
        browser.get(f"/pilot?workerId={WORKER}&assignmentId=SECOND&hitId=H2&{submit}")
        browser.play()
        browser.send("feedback")
        assert browser.page.forms["externalSubmit"].fields["assignmentId"] == "SECOND"
        browser.get(f"/pilot?workerId={WORKER.lower()}&assignmentId=THIRD&hitId=H3&{submit}")
        assert browser.page.forms["externalSubmit"].fields["assignmentId"] == "THIRD"
    assert len(rows(of, "SELECT * FROM person")) == 1


# -- the test of the link ----------------------------------------------------------------------------------------------


def filled_in(of: Study, given: str) -> str:
    """The test link on this server, with the id filled in."""
    recruiting = of.plan.platform
    link = link_to_test(of, "/pilot")
    template = f"{recruiting.parameter}={{{{%PROLIFIC_PID%}}}}"
    if template in link:
        return link.replace(template, urlencode({recruiting.parameter: given}))
    link = link.replace("survey_code=%SURVEY_CODE%&", "")
    return f"{link}&{urlencode({recruiting.parameter: given})}"


@pytest.mark.parametrize("platform", GOOD)
def test_nobody_takes_part_before_the_link_is_tested(platform: str, tmp_path: Path) -> None:
    of = open_study_of(tmp_path, platform)
    with browsing(of) as browser:
        browser.get(link_to(platform, GOOD[platform]))
        assert T.refused.untested in browser.text
        assert progress(of).link.untested
        assert "`icy study serve` prints the test link" in progress(of).link.warnings[0]
        browser.get(filled_in(of, GOOD[platform]))
        assert T.link.right in browser.text
        assert f'<td translate="no">{GOOD[platform]}</td>' in browser.text
        assert needs_test(of)  # opening the page does not pass the test
        browser.send("link")
        assert T.link.done in browser.text
        assert not needs_test(of)
        browser.enter(filled_in(of, GOOD[platform]))  # the link can stay as it is
        assert len(rows(of, "SELECT * FROM person")) == 1
    assert not progress(of).link.untested


@pytest.mark.parametrize("platform", GOOD)
@pytest.mark.parametrize("spoiled", ["{{%PROLIFIC_PID%}}", "undefined", "", "a,b" * 50])
def test_a_wrong_link_does_not_open_a_study(spoiled: str, platform: str, tmp_path: Path) -> None:
    of = open_study_of(tmp_path, platform)
    with browsing(of) as browser:
        browser.get(filled_in(of, spoiled))
        assert T.link.wrong in browser.text
        assert "link" not in browser.page.forms
        test = link_to_test(of, "").rpartition("=")[2]
        browser.post("/pilot/link", {"icy_test": test, PLATFORMS[platform].id_parameter: spoiled})
        assert T.link.wrong in browser.text
    assert needs_test(of)
    assert progress(of).link.visits == {}  # a test is not a visit


def test_a_test_needs_its_secret_and_its_own_site(tmp_path: Path) -> None:
    of = open_study_of(tmp_path, "prolific")
    with browsing(of) as browser:
        for wrong in ("", "0" * 32, "ä"):
            browser.get(f"/pilot?{urlencode({'PROLIFIC_PID': pid(1), 'icy_test': wrong})}")
            assert T.refused.untested in browser.text
            assert browser.post("/pilot/link", {"PROLIFIC_PID": pid(1), "icy_test": wrong}).status_code == 404
        browser.get(filled_in(of, pid(1)))
        form = browser.page.forms["link"]
        assert browser.post(form.action, form.fields, headers={"origin": "https://evil.example"}).status_code == 403
    assert needs_test(of)


def test_the_preview_of_mturk_is_not_a_test(tmp_path: Path) -> None:
    of = open_study_of(tmp_path, "mturk")
    with browsing(of) as browser:
        browser.get(f"{link_to_test(of, '/pilot')}&assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")
        assert T.consent.preview in browser.text
        assert "link" not in browser.page.forms


def test_only_open_studies_that_need_an_id_are_tested(tmp_path: Path) -> None:
    assert not needs_test(study(tmp_path, name="a", platform={"name": "prolific"}))
    assert not needs_test(study(tmp_path, name="b", state="open"))
    assert not needs_test(study(tmp_path, name="c", platform={"name": "kiosk"}, state="open"))
    assert not needs_test(study(tmp_path, name="d", platform={"name": "prolific"}, state="closed"))
    assert not needs_test(study(tmp_path, name="e", platform={"name": "sona", "needs_id": False}, state="open"))


def test_another_platform_or_parameter_is_tested_again(tmp_path: Path) -> None:
    of = open_study_of(tmp_path, "prolific")
    pass_test(of)
    assert not needs_test(open_study_of(tmp_path, "prolific", codes={"complete": "C1"}))
    for other in ({"name": "sona"}, {"id_parameter": "pid"}, {"id_pattern": "[0-9]+"}):
        assert needs_test(open_study_of(tmp_path, **{"platform": "prolific", **_named(other)}))


def _named(given: dict[str, str]) -> dict[str, str]:
    return {"platform" if name == "name" else name: value for name, value in given.items()}


def test_a_study_that_runs_already_needs_no_test(tmp_path: Path) -> None:
    """In a study from an earlier version of icy, people have already used the link."""
    of = open_study_of(tmp_path, "prolific")
    pass_test(of)
    person(of, pid(1))
    with of.database.writing() as connection:
        connection.execute("DELETE FROM link_test")
    assert not needs_test(of)


# -- links back --------------------------------------------------------------------------------------------------------


def back_of(browser: Browser) -> str:
    """The address of the link back."""
    (address,) = re.findall(rf'href="([^"]*)">{T.error.back}<', browser.text)
    return str(address).replace("&amp;", "&")


def test_rate_limited_requests_get_a_link_back(tmp_path: Path) -> None:
    time = [0.0]
    web = without_limits(person=Limit(rate=1, burst=30, clock=lambda: time[0]))
    with browsing(study(tmp_path), web) as browser:
        browser.start()
        link = browser.address
        form = browser.page.forms["answer"]
        while browser.get(link).status_code != 429:
            pass
        assert f"{HOST}{back_of(browser)}" == link
        browser.post(form.action, {**form.fields, "answer": "abc"})
        assert browser.reply.status_code == 429
        assert f"{HOST}{back_of(browser)}" == link
        time[0] += 5
        assert browser.get(back_of(browser)).status_code == 200


@pytest.mark.parametrize("root", ["", "/spy"])
def test_a_newcomer_goes_back_with_the_id(root: str, tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "prolific"})
    with browsing(of, without_limits(newcomers=Limit(rate=0, burst=0), root_path=root)) as browser:
        address = link_to("prolific", pid(1))
        form = browser.get(address) and browser.page.forms["enter"]
        headers = {"referer": f"{HOST}{root}{address}"}
        browser.post(form.action.removeprefix(root), {**form.fields, "agree": "1"}, headers=headers)
        assert browser.reply.status_code == 429
        assert back_of(browser) == f"{root}{address}"
        for wrong in ("https://evil.example/x", f"{HOST}//evil.example", f"{HOST}{root}/pilots", "javascript:1", ""):
            browser.post(form.action.removeprefix(root), {**form.fields, "agree": "1"}, headers={"referer": wrong})
            assert back_of(browser) == f"{root}/pilot"


def test_a_database_that_cannot_be_used_gets_a_link_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise StoreError("The disk is full.")

    of = study(tmp_path, platform={"name": "mturk"}, language="de")
    with browsing(of) as browser:
        browser.start(f"/pilot?workerId={WORKER}")
        link = browser.address
        with monkeypatch.context() as patch:
            patch.setattr(persons, "person_of_token", broken)
            assert browser.get(link).status_code == 503
        assert f'href="{link.removeprefix(HOST)}">{words("de").error.back}<' in browser.text
        assert browser.reply.headers["retry-after"] == "5"
        assert "frame-ancestors https://www.mturk.com" in browser.reply.headers["content-security-policy"]
        assert browser.get(link).status_code == 200


def test_missing_pages_have_no_link_back(tmp_path: Path) -> None:
    with browsing(study(tmp_path)) as browser:
        for address in ("/nothing", "/pilot/p/x", "/pilot/nothing", "//evil.example/pilot"):
            browser.get(f"{HOST}{address}")
            assert T.error.back not in browser.text


# -- translation -------------------------------------------------------------------------------------------------------


def test_codes_and_names_are_marked_as_untranslatable(tmp_path: Path) -> None:
    """Otherwise, browsers that translate pages change codes, answers and names."""
    of = study(tmp_path, platform={"name": "link"})
    with browsing(of) as browser:
        browser.start()
        browser.send("tab train")
        browser.send("tab test")
        browser.send("answer", answer="abc")
        browser.send("next")
        browser.play()
        browser.send("feedback")
        (who,) = rows(of, "SELECT person, completion_code FROM game")
        assert f'<span translate="no">{who["person"]}</span>' in browser.text
        assert re.search(rf'<b class="code" translate="no" id="completion">{who["completion_code"]}</b>', browser.text)
    seen = 0
    for _, text in browser.seen:
        for tag in re.findall(r'<[^>]*class="(?:code|picture)"[^>]*>', text):
            seen += 1
            assert 'translate="no"' in tag
        codes = re.findall(r"<b\b[^>]*>", text)
        assert all('translate="no"' in tag for tag in codes)
    assert seen > 10
