"""Platforms that people come from: the parameters of their links, and where people go back to (spycodes-facts 16)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import quote, urlencode, urlsplit

from icy.core.errors import InvalidSettingError, quoted

MOST_ID = 128  # letters of an external id
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"  # MTurk's assignment of someone who only looks
MTURK_HOSTS = ("www.mturk.com", "workersandbox.mturk.com")  # frames, and where work is handed in
MTURK_FRAMES = ("https://www.mturk.com", "https://workersandbox.mturk.com", "https://worker.mturk.com")
PROLIFIC = "https://app.prolific.com/submissions/complete"


@dataclass(frozen=True)
class Platform:
    """A place where people are recruited.

    Attributes:
        id_parameter: parameter of the link that names the person.
        needs_id: whether nobody takes part without.
        kept: further parameters, by the name under which they are kept until ids are deleted.
        frames: who may show the study in a frame.
    """

    id_parameter: str
    needs_id: bool = False
    kept: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    frames: tuple[str, ...] = ()


PLATFORMS: Mapping[str, Platform] = {
    "link": Platform("id"),
    "kiosk": Platform(""),
    "prolific": Platform("PROLIFIC_PID", True, {"STUDY_ID": "study", "SESSION_ID": "session"}),
    "mturk": Platform(
        "workerId", True, {"assignmentId": "assignment", "hitId": "hit", "turkSubmitTo": "submit_to"}, MTURK_FRAMES
    ),
    "sona": Platform("survey_code", True),
}


@dataclass(frozen=True)
class Visit:
    """How someone came.

    Attributes:
        external: the id that the platform gave; "" for none.
        kept: what else the link held.
        preview: whether the platform only shows what there is.
    """

    external: str = ""
    kept: Mapping[str, str] = field(default_factory=dict)
    preview: bool = False


def visit_of(platform: str, id_parameter: str, given: Mapping[str, str]) -> Visit:
    """Return how someone came, from the parameters of the address; others than the platform's are not looked at.

    Example:
        >>> visit_of("prolific", "", {"PROLIFIC_PID": " 5f1 ", "grammar": "concat"}).external
        '5f1'
        >>> visit_of("mturk", "", {"workerId": "A1", "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}).preview
        True
    """
    known = PLATFORMS[platform]
    name = id_parameter or known.id_parameter
    kept = {kept: cleaned(given[parameter]) for parameter, kept in known.kept.items() if given.get(parameter)}
    preview = kept.get("assignment") == PREVIEW
    return Visit("" if preview or not name else cleaned(given.get(name, "")), kept, preview)


def parameters_of(platform: str, id_parameter: str, visit: Visit) -> dict[str, str]:
    """Return the parameters that `visit_of` reads a visit from."""
    known = PLATFORMS[platform]
    kept = {parameter: visit.kept[name] for parameter, name in known.kept.items() if name in visit.kept}
    name = id_parameter or known.id_parameter
    return kept | ({name: visit.external} if visit.external else {})


def cleaned(given: str) -> str:
    """Return a text of an address without control characters and space around it, cut to a length that ids have."""
    kept = (letter for letter in given.strip() if unicodedata.category(letter)[0] != "C")
    return "".join(kept)[:MOST_ID].strip()


def checked_address(given: str) -> str:
    """Return an address to send people to.

    Raises:
        InvalidSettingError: it is no https address.
    """
    parts = urlsplit(given)
    if parts.scheme != "https" or not parts.netloc or set(given) & set(" \"'<>\\"):
        raise InvalidSettingError(f"People go back to an address that begins with https://, not {quoted(given)}.")
    return given


def return_address(platform: str, return_to: str, code: str, external: str) -> str:
    """Return where someone goes at the end; "" for nowhere.

    Example:
        >>> return_address("prolific", "", "C1AB", "5f1")
        'https://app.prolific.com/submissions/complete?cc=C1AB'
        >>> return_address("sona", "https://x.example/credit?survey_code={id}", "", "a b")
        'https://x.example/credit?survey_code=a%20b'
    """
    if return_to:
        return return_to.replace("{id}", quote(external, safe="")).replace("{code}", quote(code, safe=""))
    return f"{PROLIFIC}?{urlencode({'cc': code})}" if platform == "prolific" and code else ""


def hand_in_address(submit_to: str) -> str:
    """Return where MTurk takes a finished assignment; "" for an address that is not MTurk's.

    Example:
        >>> hand_in_address("https://workersandbox.mturk.com")
        'https://workersandbox.mturk.com/mturk/externalSubmit'
        >>> hand_in_address("https://evil.example"), hand_in_address("https://www.mturk.com@evil.example")
        ('', '')
    """
    parts = urlsplit(submit_to)
    if parts.scheme != "https" or parts.netloc not in MTURK_HOSTS:
        return ""
    return f"https://{parts.netloc}/mturk/externalSubmit"
