"""Parameters of platforms, and return addresses."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.study.service.platforms import (
    MOST_ID,
    PLATFORMS,
    checked_address,
    clean_parameter,
    hand_in_address,
    parameters_of,
    return_address,
    visit_of,
)

PROLIFIC = {"PROLIFIC_PID": "5F1C00000000000000000001", "STUDY_ID": "st", "SESSION_ID": "se", "grammar": "concat"}
MTURK = {"workerId": "A1", "assignmentId": "as", "hitId": "hi", "turkSubmitTo": "https://www.mturk.com"}


def test_each_platform_has_its_parameters() -> None:
    prolific, mturk = visit_of("prolific", "", PROLIFIC), visit_of("mturk", "", MTURK)
    assert (prolific.external, dict(prolific.extra)) == ("5f1c00000000000000000001", {"study": "st", "session": "se"})
    assert (mturk.external, mturk.extra["submit_to"], mturk.preview) == ("A1", "https://www.mturk.com", False)
    assert visit_of("sona", "", {"survey_code": "7"}).external == "7"
    assert visit_of("link", "", {"id": "7"}).external == "7"
    assert visit_of("link", "who", {"id": "7", "who": "8"}).external == "8"
    assert visit_of("kiosk", "", {"id": "7"}).external == ""


def test_a_preview_has_no_id() -> None:
    found = visit_of("mturk", "", {**MTURK, "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"})
    assert (found.preview, found.external) == (True, "")


@given(st.text(max_size=200))
def test_ids_are_short_and_printable(text: str) -> None:
    found = visit_of("link", "", {"id": text}).external
    assert len(found) <= MOST_ID
    assert found == found.strip()
    assert clean_parameter(found) == found
    assert len(found.splitlines()) <= 1


PLACEHOLDERS = [
    *("{{%PROLIFIC_PID%}}", "{{%25PROLIFIC_PID%25}}", "{%PROLIFIC_PID%}", "%PROLIFIC_PID%", "%%ID%%", "%7B%7BID%7D%7D"),
    *("${e://Field/PROLIFIC_PID}", "${m://ExternalDataReference}", "${workerId}", "$workerId", "#{id}", "{id}"),
    *("[PID]", "[[psid]]", "[%RID%]", "[object Object]", "<id>", "<%= id %>", "*|EMAIL|*", "@@ID@@", "##ID##"),
    *("{{ id }}", "__ID__", "YOUR_ID_HERE", "insert your worker id", "not set", "ID_NOT_FOUND", "TODO", "userName"),
    *("#ID#", "(null)", '"null"', ":id", "%s", "%(id)s", "$(id)", "`id`", "\\(id)", "\ufffd\ufffdID", "|id|"),
    *("undefined", "UNDEFINED", "null", "NULL", "Null", "None", "nil", "NaN", "nan", "n/a", "NA", "true", "False"),
    *("unknown", "anonymous", "PROLIFIC_PID", "prolific_pid", "workerId", "WORKERID", "survey_code", "PID", "id", "ID"),
    *("participantId", "participant-id", "Participant ID", "your_id", "ASSIGNMENT_ID_NOT_AVAILABLE"),
    *("WORKER_ID_NOT_AVAILABLE", "xxxx", "XXXXXXXXXXXXXX", "0" * 24, "f" * 24, "-", "...", "???", "--", "\u2014"),
    *("", " ", "\u200b", "\0", "placeholder", "PLACEHOLDER", "nullnull", "undefined-null", "\uff4e\uff55\uff4c\uff4c"),
    *("\uff50\uff49\uff44", "\uff3bPID\uff3d", "\uff24\uff25\uff26\uff21\uff35\uff2c\uff34"),
]
WORDS = [  # names of parameters, which platforms may leave in place of ids
    *("PARTICIPANT_LABEL", "IDENTIFIER", "MID", "LUCID_RID", "transaction_id", "TOKEN", "rid", "psid", "AID", "subId"),
    *("panelist", "EMAIL", "hash", "Random ID", "ExternalDataReference", "username", "your-code-goes-here", "prolific"),
    *("respondent_token", "tid", "CINT_ID", "m_id", "RespondentGuid", "kennung", "identifiant", "worker", "Test"),
]


@pytest.mark.parametrize("text", PLACEHOLDERS)
def test_placeholders_are_not_ids(text: str) -> None:
    for platform in ("link", "prolific", "mturk", "sona"):
        name = PLATFORMS[platform].id_parameter
        found = visit_of(platform, "", {name: f" {text} "})
        assert (found.external, found.fault) == ("", "placeholder")
        assert visit_of(platform, "", {name: text}, id_pattern=".*").fault == "placeholder"  # with any pattern


@pytest.mark.parametrize("text", WORDS)
def test_words_are_not_ids_without_a_pattern_that_allows_them(text: str) -> None:
    for platform in ("link", "prolific", "mturk", "sona"):
        found = visit_of(platform, "", {PLATFORMS[platform].id_parameter: text})
        assert found.external == ""
        assert found.fault


@pytest.mark.parametrize(
    ("platform", "text"),
    [
        *(
            ("prolific", text)
            for text in ("5f1c", "5f1c" * 7, "g" + "0" * 22 + "1", "A1B2C3D4E5F6G7", "6 0a1c9d5e8f70b2a3c4d5e6")
        ),
        ("prolific", "60a1c9d5e8f70b2a3c4d5e6f@email.prolific.com"),
        ("prolific", "60a1c9d5e8f70b2a3c4d5e6f,60a1c9d5e8f70b2a3c4d5e70"),
        *(("mturk", text) for text in ("A1-B2", "A1B2,C3", 'A1"B2', "A1 B2", "Ä1B2", "A1\u212aB2", "A" + "1" * 128)),
        *(("link", text) for text in ("a" * 64 + "b" * 65, "https://x.example/a")),
    ],
)
def test_ids_that_do_not_match_the_platform_are_malformed(platform: str, text: str) -> None:
    found = visit_of(platform, "", {PLATFORMS[platform].id_parameter: text})
    assert (found.external, found.fault) == ("", "malformed")


@pytest.mark.parametrize(
    ("platform", "text", "expected"),
    [
        ("prolific", "60A1C9D5E8F70B2A3C4D5E6F", "60a1c9d5e8f70b2a3c4d5e6f"),
        ("prolific", "\u200b60a1c9d5e8f70b2a3c4d5e6f\n", "60a1c9d5e8f70b2a3c4d5e6f"),
        ("mturk", "a3k9xw2mno7qrs", "A3K9XW2MNO7QRS"),
        ("sona", "48213", "48213"),
        ("mturk", "abcdefghijklmn", "ABCDEFGHIJKLMN"),
        ("link", "Müller 2, Hans", "Müller 2, Hans"),
        ("link", "Mu\u0308ller 2, Hans", "Müller 2, Hans"),
        *(
            ("link", text, text)
            for text in ("7", "w01", "ABC1", "a-b_3=", "-V1StGXR8_Z5jdHi6B-myT-", "anna2@x.example", "100", "\u0663")
        ),
    ],
)
def test_ids_are_normalized(platform: str, text: str, expected: str) -> None:
    found = visit_of(platform, "", {PLATFORMS[platform].id_parameter: text})
    assert (found.external, found.fault) == (expected, "")


def test_a_study_may_have_its_own_pattern_of_ids() -> None:
    assert visit_of("link", "", {"id": "123456"}, "[0-9]{6}").external == "123456"
    assert visit_of("link", "", {"id": "12345"}, "[0-9]{6}").fault == "malformed"
    assert visit_of("link", "", {"id": "1234567"}, "[0-9]{6}").fault == "malformed"
    assert visit_of("mturk", "", {"workerId": "ab,c"}, "[A-Z,]+").external == "AB,C"
    for word in ("anna", "Müller, Hans", "anna@x.example"):
        assert visit_of("link", "", {"id": word}).fault == "malformed"
        assert visit_of("link", "", {"id": word}, ".+").external == word


def test_placeholders_in_other_parameters_are_left_out() -> None:
    found = visit_of("mturk", "", {**MTURK, "assignmentId": "${assignmentId}", "hitId": "h" * 200})
    assert dict(found.extra) == {"submit_to": "https://www.mturk.com"}
    assert (found.external, found.preview) == ("A1", False)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_unfilled_link_for_the_platform_has_a_placeholder(platform: str) -> None:
    link = PLATFORMS[platform].link
    assert not link or visit_of(platform, "", dict(parse_qsl(link))).fault == "placeholder"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_form_parameters_give_the_same_visit(platform: str) -> None:
    came = visit_of(platform, "", {**PROLIFIC, **MTURK, "id": "7", "survey_code": "8"})
    assert visit_of(platform, "", parameters_of(platform, "", came)) == came


def test_return_addresses_have_the_code() -> None:
    assert return_address("prolific", "", "C1", "5f") == "https://app.prolific.com/submissions/complete?cc=C1"
    assert return_address("prolific", "", "", "5f") == ""
    own = "https://x.example/a?id={id}&code={code}"
    assert return_address("link", own, "C&1", "a/b") == "https://x.example/a?id=a%2Fb&code=C%261"


@pytest.mark.parametrize("address", ["http://x.example", "javascript:alert(1)", "https://", "https://x/'\""])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InvalidSettingError):
        checked_address(address)


@pytest.mark.parametrize(
    "given",
    [
        *("http://www.mturk.com", "https://www.mturk.com:8443", "https://worker.mturk.com", "", "//www.mturk.com"),
        *("https://www.mturk.com.evil.example", "https://a@www.mturk.com"),
    ],
)
def test_assignments_are_submitted_only_to_mturk(given: str) -> None:
    assert hand_in_address(given) == ""


@pytest.mark.parametrize(
    "given", ["https://www.mturk.com:443", "https://WWW.MTURK.COM/", " https://www.mturk.com./mturk"]
)
def test_one_address_of_mturk_may_be_written_in_several_ways(given: str) -> None:
    assert hand_in_address(given) == "https://www.mturk.com/mturk/externalSubmit"
