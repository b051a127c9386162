"""Parameters of platforms, and return addresses."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.study.service.platforms import MOST_ID, PLATFORMS, Recruiting, Visit, clean_parameter, hand_in_address

PROLIFIC_END = "https://app.prolific.com/submissions/complete"
PROLIFIC = {"PROLIFIC_PID": "5F1C00000000000000000001", "STUDY_ID": "st", "SESSION_ID": "se", "grammar": "concat"}
MTURK = {"workerId": "A1", "assignmentId": "as", "hitId": "hi", "turkSubmitTo": "https://www.mturk.com"}


def visit(platform: str, parameters: Mapping[str, str], id_pattern: str = "") -> Visit:
    """Parse the parameters of a visit."""
    return Recruiting(name=platform, id_pattern=id_pattern).visit(parameters)


def test_each_platform_has_its_parameters() -> None:
    prolific, mturk = visit("prolific", PROLIFIC), visit("mturk", MTURK)
    assert (prolific.external, dict(prolific.extra)) == ("5f1c00000000000000000001", {"study": "st", "session": "se"})
    assert (mturk.external, mturk.extra["submit_to"], mturk.preview) == ("A1", "https://www.mturk.com", False)
    assert visit("sona", {"survey_code": "7"}).external == "7"
    assert visit("link", {"id": "7"}).external == "7"
    assert Recruiting(name="link", id_parameter="who").visit({"id": "7", "who": "8"}).external == "8"
    assert visit("kiosk", {"id": "7"}).external == ""


def test_a_preview_has_no_id() -> None:
    found = visit("mturk", {**MTURK, "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"})
    assert (found.preview, found.external) == (True, "")


@given(st.text(max_size=200))
def test_ids_are_short_and_printable(text: str) -> None:
    found = visit("link", {"id": text}).external
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
        found = visit(platform, {name: f" {text} "})
        assert (found.external, found.fault) == ("", "placeholder")
        assert visit(platform, {name: text}, id_pattern=".*").fault == "placeholder"  # with any pattern


@pytest.mark.parametrize("text", WORDS)
def test_words_are_not_ids_without_a_pattern_that_allows_them(text: str) -> None:
    for platform in ("link", "prolific", "mturk", "sona"):
        found = visit(platform, {PLATFORMS[platform].id_parameter: text})
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
    found = visit(platform, {PLATFORMS[platform].id_parameter: text})
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
    found = visit(platform, {PLATFORMS[platform].id_parameter: text})
    assert (found.external, found.fault) == (expected, "")


def test_a_study_may_have_its_own_pattern_of_ids() -> None:
    assert visit("link", {"id": "123456"}, "[0-9]{6}").external == "123456"
    assert visit("link", {"id": "12345"}, "[0-9]{6}").fault == "malformed"
    assert visit("link", {"id": "1234567"}, "[0-9]{6}").fault == "malformed"
    assert visit("mturk", {"workerId": "ab,c"}, "[A-Z,]+").external == "AB,C"
    for word in ("anna", "Müller, Hans", "anna@x.example"):
        assert visit("link", {"id": word}).fault == "malformed"
        assert visit("link", {"id": word}, ".+").external == word


def test_placeholders_in_other_parameters_are_left_out() -> None:
    found = visit("mturk", {**MTURK, "assignmentId": "${assignmentId}", "hitId": "h" * 200})
    assert dict(found.extra) == {"submit_to": "https://www.mturk.com"}
    assert (found.external, found.preview) == ("A1", False)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_unfilled_link_for_the_platform_has_a_placeholder(platform: str) -> None:
    link = PLATFORMS[platform].link
    assert not link or visit(platform, dict(parse_qsl(link))).fault == "placeholder"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_form_parameters_give_the_same_visit(platform: str) -> None:
    came = visit(platform, {**PROLIFIC, **MTURK, "id": "7", "survey_code": "8"})
    assert visit(platform, Recruiting(name=platform).parameters_of(came)) == came


def test_people_return_with_their_code() -> None:
    assert Recruiting(name="prolific").leave("complete", "5f", "OWN") == (f"{PROLIFIC_END}?cc=OWN", "OWN")
    prolific = Recruiting(name="prolific", codes={"complete": "C1", "failed_check": "C3"})
    assert prolific.leave("complete", "5f", "OWN") == (f"{PROLIFIC_END}?cc=C1", "C1")
    assert prolific.leave("failed_check") == (f"{PROLIFIC_END}?cc=C3", "C3")
    assert prolific.leave("declined") == ("", "")  # without a code, people return their submission on the platform
    link = Recruiting(name="link", return_to="https://x.example/a?id={id}&code={code}")
    assert link.leave("complete", "a/b", "C&1") == ("https://x.example/a?id=a%2Fb&code=C%261", "C&1")
    assert link.leave("full") == ("", "")


@pytest.mark.parametrize("address", ["http://x.example", "javascript:alert(1)", "https://", "https://x/'\""])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InvalidSettingError):
        Recruiting(return_to=address)


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
