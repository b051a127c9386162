"""The pages in their order, without scripts: forms, redirects, two windows, restarts, and refusals."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from icy.study.service import Study
from icy.study.service.export import audit
from icy.study.service.links import pass_test, progress
from icy.study.service.web.desk import words
from tests.study.service.helpers import loaded, pid, rows, study, write
from tests.study.service.web.helpers import RIGHT, Browser, browsing, robot

T = words("en")
GIVE_BACK = getattr(T.declined, "return")


def heading(browser: Browser) -> str:
    """The title of the page, without the title of the study."""
    (found,) = re.findall(r"<title>(.*?)</title>", browser.text)
    return str(found).partition(" - ")[0]


# -- in order ----------------------------------------------------------------------------------------------------------


def test_all_pages_come_in_order(tmp_path: Path) -> None:
    of = study(tmp_path, pages={"demographics": True}, people={"base_cents": 300, "most_bonus_cents": 99})
    with browsing(of) as browser:
        browser.get("/")
        assert heading(browser) == T.consent.title
        for text in ("to test", "Nobody", "nobody@example.org", "a minute", "3.00 GBP", "0.99 GBP", "You can stop"):
            assert text in browser.text
        browser.send("enter", agree="1")
        found = []
        for form, fields in (
            ("demographics", {"age": "18 to 24", "languages": "de, en", "colour_vision": ""}),
            ("instructions", {"palette": "safe", "patterns": "1", "viewport": "320x568"}),
            ("comprehension", RIGHT),
            ("colours", {"palette": "safe", "colour1": "red", "colour2": "unsure", "colour3": "<b>"}),
            ("game", {}),
        ):
            found.append(heading(browser))
            browser.send(form, **fields)
        assert found == [
            T.demographics.title,
            T.instructions.title,
            T.comprehension.title,
            T.colours.title,
            T.start.title,
        ]
        browser.play()
        assert heading(browser) == T.feedback.title
        browser.send("feedback", text="  nice ")
        assert heading(browser) == T.done.title
    (person,), (game,) = rows(of, "SELECT * FROM person"), rows(of, "SELECT * FROM game")
    assert person["stage"] == "done"
    assert (game["palette"], game["patterns"], game["sound"], game["viewport"]) == ("safe", 0, 0, "320x568")
    assert game["completion_code"] in browser.text
    assert person["id"] in browser.text
    assert rows(of, "SELECT text FROM feedback") == [{"text": "nice"}]
    assert {row["key"]: row["value"] for row in rows(of, "SELECT * FROM survey")} == {
        "age": "18 to 24",
        "languages": "de, en",
        "colour red": "red",
        "colour green": "unsure",
        **{f"question {n}, attempt 1": str(n - 1) for n in (1, 2, 3)},
    }
    assert audit(of).faults == ()


def test_pages_that_a_study_does_not_have_are_left_out(tmp_path: Path) -> None:
    of = study(tmp_path, pages={"comprehension": False, "colour_check": False, "feedback": False})
    with browsing(of) as browser:
        browser.enter()
        browser.send("instructions")
        browser.send("game")
        browser.play()
        assert heading(browser) == T.done.title


def test_a_survey_page_can_be_skipped_and_sent_twice(tmp_path: Path) -> None:
    with browsing(study(tmp_path, pages={"demographics": True})) as browser:
        browser.enter()
        form = browser.page.forms["demographics"]
        browser.send("demographics")
        assert heading(browser) == T.instructions.title
        browser.post(form.action, {**form.fields, "age": "18 to 24"})  # as after the browser's back button
        assert heading(browser) == T.instructions.title


def test_the_study_ends_after_two_failed_attempts_at_the_questions(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "prolific", "codes": {"failed_check": "CHECK"}})
    with browsing(of) as browser:
        browser.enter()
        browser.send("instructions")
        first = browser.page.forms["comprehension"]
        browser.send("comprehension", question1="2", question2="2", question3="2")
        assert T.comprehension.again in browser.text
        assert T.instructions.notes in browser.text  # the page repeats the instructions
        browser.post(first.action, {**first.fields, "question1": "1"})  # a double click is not a second attempt
        assert T.comprehension.again in browser.text
        browser.send("comprehension", question1="2")
        assert heading(browser) == T.screened.title
        assert "https://app.prolific.com/submissions/complete?cc=CHECK" in browser.text
    assert progress(of).screened == 1
    assert progress(of).cells[0].dropped + progress(of).cells[1].dropped == 1


def test_a_second_attempt_may_be_right(browser: Browser) -> None:
    browser.enter()
    browser.send("instructions")
    browser.send("comprehension", **{**RIGHT, "question1": "1"})
    browser.send("comprehension", **RIGHT)
    assert heading(browser) == T.colours.title


# -- the game ----------------------------------------------------------------------------------------------------------


def test_right_and_wrong_answers_get_feedback(browser: Browser, of: Study) -> None:
    browser.start()
    right = loaded(of).state.trial.code
    browser.send("answer", answer=right)
    assert "Yes! You get 1 point." in browser.text
    browser.send("next")
    right = loaded(of).state.trial.code
    browser.send("answer", answer="abc")
    assert re.search(rf'{T.game.wrong} <b class="code" translate="no">{right}</b>', browser.text)
    assert re.search(rf'{T.game.yours} <b class="code" translate="no">abc</b>', browser.text)


def test_feedback_on_a_held_out_item_has_no_code(browser: Browser, of: Study) -> None:
    browser.start()
    for _ in range(2):
        browser.send("answer", answer="abc")
        browser.send("next")
    right = loaded(of).state.trial.code
    browser.send("answer", answer="abc")
    assert T.game.wrong_untold in browser.text
    assert right not in browser.text


@pytest.mark.parametrize(("typed", "notice"), [("", "empty"), ("a1", "letters"), ("x" * 65, "long")])
def test_invalid_answers_get_a_notice_and_cost_nothing(typed: str, notice: str, browser: Browser) -> None:
    browser.start()
    trial = browser.page.forms["answer"].fields["trial"]
    browser.send("answer", answer=typed)
    assert getattr(T.say, notice) in browser.text
    assert browser.page.forms["answer"].fields["trial"] == trial


def test_cards_are_added_and_removed_once_per_click(browser: Browser) -> None:
    browser.start()
    add = browser.page.forms["add"]
    for _ in range(3):
        browser.post(add.action, add.fields)  # clicks on the same page
    assert "You have 3 codes." in browser.text
    browser.send("remove")
    assert "You have 2 codes." in browser.text


def test_train_shows_a_card_with_its_code(browser: Browser, of: Study) -> None:
    browser.start()
    browser.send("tab train")
    (first,) = browser.page.codes
    picture = browser.page.picture
    browser.send("view")
    (second,) = browser.page.codes
    assert {first, second} <= {row["code"] for row in rows(of, "SELECT code FROM trial")} | {first, second}
    assert browser.page.picture != picture
    browser.send("tab test")
    assert "answer" in browser.page.forms


def test_after_a_post_the_page_can_be_loaded_again(browser: Browser) -> None:
    browser.start()
    link = browser.address
    reply = browser.send("answer", answer="abc")
    assert [one.status_code for one in (*reply.history, reply)] == [303, 200]
    before = browser.text
    assert browser.get(link).text == before
    assert browser.get(link).text == before


def test_blur_and_paste_are_logged(browser: Browser, of: Study) -> None:
    browser.start()
    note = re.search('data-notes="(.*?)" data-form="(.*?)"', browser.text)
    assert note is not None
    for kind in ("blur", "paste", "blur", "anything"):
        browser.post(note[1], {"form": note[2], "kind": kind})
    assert [row["kind"] for row in rows(of, "SELECT kind FROM event ORDER BY number")] == [
        "start",
        "blur",
        "paste",
        "blur",
    ]


def test_display_and_sound_can_be_changed_at_any_time(browser: Browser, of: Study) -> None:
    browser.start()
    before = browser.page.picture
    svg = browser.client.get(before).text
    browser.send("display", palette="safe", patterns="1")
    assert browser.page.picture != before  # so that browsers do not show the old picture
    assert browser.client.get(browser.page.picture).text != svg
    assert 'data-sound="off"' in browser.text
    assert rows(of, "SELECT palette, patterns, sound FROM game") == [{"palette": "safe", "patterns": 1, "sound": 0}]


def test_a_study_may_forbid_changes_of_colours(tmp_path: Path) -> None:
    of = study(tmp_path, display={"choose": False})
    with browsing(of) as browser:
        browser.start()
        assert 'name="palette"' not in browser.text
        browser.send("display", palette="safe", sound="1")
    assert rows(of, "SELECT palette, sound FROM game") == [{"palette": "primary", "sound": 1}]


# -- windows, restarts -------------------------------------------------------------------------------------------------


def test_two_windows_show_one_game(browser: Browser) -> None:
    browser.start()
    link, old = browser.address, browser.page.forms["answer"]
    other = Browser(browser.client)
    other.get(link)
    other.send("answer", answer="abc")
    other.send("next")
    browser.post(old.action, {**old.fields, "answer": "redcir"})  # an answer to an earlier item
    assert T.say.stale in browser.text
    assert browser.page.forms["answer"].fields == other.page.forms["answer"].fields
    assert "Shape 2 of 6" in browser.text


def test_a_restart_shows_the_same_item_with_the_same_picture(of: Study, tmp_path: Path) -> None:
    with browsing(of) as browser:
        browser.start()
        browser.send("answer", answer="abc")
        browser.send("next")
        link, before, address = browser.address, browser.text, browser.page.picture
        picture = browser.client.get(address).text
    of.database.close()
    with browsing(study(tmp_path)) as browser:
        browser.get(link)
        assert browser.text == before
        assert browser.client.get(address).text == picture


def test_two_servers_of_one_study_are_one_study(tmp_path: Path) -> None:
    """If a study is served at two ports, both servers show the same game, and nothing is graded twice."""
    one, two = study(tmp_path), study(tmp_path)
    with browsing(one) as here, browsing(two) as there:
        here.start()
        there.get(here.address)
        form, stale = here.page.forms["answer"], there.page.forms["answer"]
        here.post(form.action, {**form.fields, "answer": "abc"})
        there.post(stale.action, {**stale.fields, "answer": "maghex"})
        assert [row["answer"] for row in rows(one, "SELECT answer FROM trial")] == ["abc"]
        there.send("next")
        there.play()
        here.get(there.address)
        assert heading(there) == heading(here) == T.feedback.title
    assert audit(one).faults == ()


def test_the_platforms_id_leads_back_to_the_game(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "prolific"})
    with browsing(of) as browser:
        browser.start(f"/pilot?PROLIFIC_PID={pid(1)}&SESSION_ID=one")
        link = browser.address
        browser.get(f"/pilot?PROLIFIC_PID={pid(1)}&SESSION_ID=two")
        assert browser.address == link
        assert "answer" in browser.page.forms
        browser.enter(f"/pilot?PROLIFIC_PID={pid(2)}")
        assert browser.address != link
    assert len(rows(of, "SELECT * FROM game")) == 2


def test_a_crash_between_the_last_answer_and_the_next_page_is_repaired(browser: Browser, of: Study) -> None:
    browser.start()
    link = browser.address
    browser.play()
    write(of, "UPDATE person SET stage = 'game'")
    browser.get(link)
    assert heading(browser) == T.feedback.title


# -- refusals, declining and stopping ----------------------------------------------------------------------------------


def test_nothing_is_stored_of_people_who_decline(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "prolific", "codes": {"declined": "NO"}})
    with browsing(of) as browser:
        browser.get(f"/pilot?PROLIFIC_PID={pid(1)}")
        browser.get("/pilot/declined")
        assert getattr(T.declined, "return") in browser.text
        assert "complete?cc=NO" in browser.text
    assert rows(of, "SELECT * FROM person") == []


@pytest.mark.parametrize("delete", ["", "1"])
def test_stopping_is_possible_on_every_page_and_asks_once(delete: str, browser: Browser, of: Study) -> None:
    browser.start()
    link = browser.address
    assert f'href="{link.removeprefix("http://study.example")}/stop"' in browser.text
    browser.get(f"{link}/stop")
    form = browser.page.forms["withdraw"]
    browser.post(form.action, {**form.fields, "delete": delete})
    assert heading(browser) == T.withdrawn.title
    assert (T.withdrawn.deleted in browser.text) is bool(delete)
    assert len(rows(of, "SELECT * FROM game")) == (0 if delete else 1)
    browser.get(f"{link}/stop")
    assert browser.address == link
    assert heading(browser) == T.withdrawn.title


def test_a_full_study_says_so(tmp_path: Path) -> None:
    of = study(tmp_path, conditions={"quota": 1}, platform={"name": "prolific", "codes": {"full": "FULL"}})
    with browsing(of) as browser:
        browser.get(f"/pilot?PROLIFIC_PID={pid(1)}")
        late = browser.page.forms["enter"]
        for number in (2, 3):
            browser.enter(f"/pilot?PROLIFIC_PID={pid(number)}")
        browser.post(late.action, {**late.fields, "agree": "1"})  # who read the page for a long time
        assert T.refused.full in browser.text
        browser.get(f"/pilot?PROLIFIC_PID={pid(4)}")
        assert T.refused.full in browser.text
        assert "complete?cc=FULL" in browser.text
        assert GIVE_BACK not in browser.text


def test_people_from_a_platform_are_asked_to_return_their_submission(tmp_path: Path) -> None:
    with browsing(study(tmp_path, conditions={"quota": 1}, state="closed", platform={"name": "prolific"})) as browser:
        assert GIVE_BACK in browser.get(f"/pilot?PROLIFIC_PID={pid(1)}").text


def test_devices_can_be_refused(tmp_path: Path) -> None:
    of = study(tmp_path, people={"devices": ["computer"]})
    phone = {"user-agent": "Mozilla/5.0 (iPhone) Mobile/15E148"}
    with browsing(of) as browser:
        browser.get("/pilot", headers=phone)
        assert "does not work on a phone" in browser.text
        assert GIVE_BACK not in browser.text
        browser.get("/pilot")
        browser.post(*browser.filled("enter", agree="1"), headers=phone)
        assert "does not work on a phone" in browser.text
        browser.enter()
    assert [row["device"] for row in rows(of, "SELECT * FROM person")] == ["computer"]


def test_a_pilot_is_marked_on_every_page(tmp_path: Path) -> None:
    with browsing(study(tmp_path)) as browser:
        browser.start()
        assert T.pilot in browser.text
    with browsing(study(tmp_path, state="open")) as browser:
        browser.start()
        assert T.pilot not in browser.text


# -- platforms ---------------------------------------------------------------------------------------------------------


def test_people_return_to_prolific(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "prolific", "codes": {"complete": "C1DONE"}}, state="open")
    pass_test(of)
    with browsing(of) as browser:
        browser.get("/pilot")
        assert T.refused.no_id in browser.text
        browser.finish(f"/pilot?PROLIFIC_PID={pid(1)}&STUDY_ID=s&SESSION_ID=t")
        assert 'href="https://app.prolific.com/submissions/complete?cc=C1DONE"' in browser.text
    assert rows(of, "SELECT external, kept_json FROM external_id") == [
        {"external": pid(1), "kept_json": '{"study": "s", "session": "t"}'}
    ]


MTURK = "workerId=A1&assignmentId=AS&hitId=HI&turkSubmitTo=https%3A%2F%2Fworkersandbox.mturk.com"


def test_mturk_assignments_are_submitted_from_its_frame(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "mturk"}, state="open")
    pass_test(of)
    with browsing(of) as browser:
        browser.get(f"/pilot?{MTURK}".replace("=AS", "=ASSIGNMENT_ID_NOT_AVAILABLE"))
        assert T.consent.preview in browser.text
        assert "enter" not in browser.page.forms
        assert "frame-ancestors https://www.mturk.com" in browser.reply.headers["content-security-policy"]
        browser.start(f"/pilot?{MTURK}")
        assert browser.client.cookies == {}  # browsers block cookies in a frame
        browser.play()
        browser.send("feedback")
        form = browser.page.forms["externalSubmit"]
        address = "https://workersandbox.mturk.com/mturk/externalSubmit"
        assert (form.action, form.fields["assignmentId"]) == (address, "AS")
        assert f"form-action {address}" in browser.reply.headers["content-security-policy"]
    assert [row["completion_code"] for row in rows(of, "SELECT * FROM game")] == [form.fields["completion"]]


def test_mturk_also_works_with_link_and_code(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "mturk"}, state="open")
    pass_test(of)
    with browsing(of) as browser:
        browser.finish("/pilot?workerId=A1&turkSubmitTo=https://evil.example&assignmentId=X")
        assert "evil.example" not in browser.text
        assert T.done.copy in browser.text


def test_sona_and_others_get_their_return_address(tmp_path: Path) -> None:
    platform = {"name": "sona", "return_to": "https://x.example/credit?survey_code={id}"}
    of = study(tmp_path, platform=platform, state="open")
    pass_test(of)
    with browsing(of) as browser:
        browser.finish("/pilot?survey_code=77")
        assert 'href="https://x.example/credit?survey_code=77"' in browser.text


def test_a_kiosk_goes_back_to_its_start(tmp_path: Path) -> None:
    of = study(tmp_path, platform={"name": "kiosk"})
    with browsing(of) as browser:
        for _ in range(2):
            browser.finish("/pilot?id=always-the-same")
            assert '<a class="button" href="/pilot" data-return="60">' in browser.text
    assert len(rows(of, "SELECT * FROM person")) == 2


def test_texts_are_in_the_language_of_the_study(tmp_path: Path) -> None:
    with browsing(study(tmp_path, language="de")) as browser:
        browser.start()
        assert '<html lang="de">' in browser.text
        assert words("de").game.question in browser.text


def test_several_studies_are_served_at_once(tmp_path: Path) -> None:
    with browsing([study(tmp_path, name="one"), study(tmp_path, name="two", title="Other")]) as browser:
        assert browser.get("/").status_code == 404  # names of studies stay private
        browser.start("/one")
        link = browser.address.replace("/one/", "/two/")
        assert browser.get(link).status_code == 404
        assert "Other" in browser.get("/two").text


def test_a_proxy_may_add_a_root_path(tmp_path: Path) -> None:
    from tests.study.service.web.helpers import without_limits

    with browsing(study(tmp_path), without_limits(root_path="/spy")) as browser:
        browser.get("/pilot")
        assert 'action="/spy/pilot/enter"' in browser.text
        assert 'href="/spy/static/study.css?v=' in browser.text


# -- simulated players -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", ["synth", "eng"])
def test_a_simulated_player_plays_through_the_pages(dataset: str, tmp_path: Path) -> None:
    of = study(tmp_path, conditions={"dataset": [dataset], "grammar": ["concat"]})
    with browsing(of) as browser:
        reply: Any = browser.let(robot(of))
    assert T.done.title in reply.text
    (game,) = rows(of, "SELECT * FROM game")
    ordinary = rows(of, "SELECT correct FROM trial WHERE held_out IS NULL")
    assert (game["state"], game["finished"] is not None) == ("closed", True)
    assert sum(row["correct"] for row in ordinary) >= 2  # it sees the pictures, and remembers the codes
    assert audit(of).faults == ()
