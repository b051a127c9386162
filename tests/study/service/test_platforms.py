"""Parameters of platforms, and the ways back to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.errors import InvalidSettingError
from icy.study.service.platforms import (
    MOST_ID,
    PLATFORMS,
    checked_address,
    cleaned,
    hand_in_address,
    parameters_of,
    return_address,
    visit_of,
)

PROLIFIC = {"PROLIFIC_PID": "5f1c", "STUDY_ID": "st", "SESSION_ID": "se", "grammar": "concat"}
MTURK = {"workerId": "A1", "assignmentId": "as", "hitId": "hi", "turkSubmitTo": "https://www.mturk.com"}


def test_each_platform_has_its_parameters() -> None:
    prolific, mturk = visit_of("prolific", "", PROLIFIC), visit_of("mturk", "", MTURK)
    assert (prolific.external, dict(prolific.kept)) == ("5f1c", {"study": "st", "session": "se"})
    assert (mturk.external, mturk.kept["submit_to"], mturk.preview) == ("A1", "https://www.mturk.com", False)
    assert visit_of("sona", "", {"survey_code": "7"}).external == "7"
    assert visit_of("link", "", {"id": "7"}).external == "7"
    assert visit_of("link", "who", {"id": "7", "who": "8"}).external == "8"
    assert visit_of("kiosk", "", {"id": "7"}).external == ""


def test_a_preview_is_nobody() -> None:
    found = visit_of("mturk", "", {**MTURK, "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"})
    assert (found.preview, found.external) == (True, "")


@given(st.text(max_size=200))
def test_ids_are_short_and_printable(text: str) -> None:
    found = cleaned(text)
    assert len(found) <= MOST_ID
    assert found == found.strip()
    assert cleaned(found) == found
    assert not any(ord(letter) < 32 for letter in found)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_form_brings_the_same_visit(platform: str) -> None:
    came = visit_of(platform, "", {**PROLIFIC, **MTURK, "id": "7", "survey_code": "8"})
    assert visit_of(platform, "", parameters_of(platform, "", came)) == came


def test_people_go_back_with_their_code() -> None:
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
    ["http://www.mturk.com", "https://www.mturk.com.evil.example", "https://a@www.mturk.com", "", "//www.mturk.com"],
)
def test_work_is_handed_in_at_mturk_alone(given: str) -> None:
    assert hand_in_address(given) == ""
