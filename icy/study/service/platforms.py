"""Platforms that people come from: the parameters of their links, and where people go back to (spycodes-facts 16)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit

from icy.core.errors import InvalidSettingError, quoted

from .sites import Site, site_of

MOST_ID = 128  # letters of an external id
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"  # MTurk's assignment of someone who only looks
MTURK_SITES = (Site("https", "www.mturk.com", 443), Site("https", "workersandbox.mturk.com", 443))  # that take work
MTURK_FRAMES = ("https://www.mturk.com", "https://workersandbox.mturk.com", "https://worker.mturk.com")
PROLIFIC = "https://app.prolific.com/submissions/complete"
ANY_ID = "(?!.*://).+"  # where the platform does not say how its ids look: any text except an address

# Values that templates and programs leave in place of an id. Strangers share them, so they are not taken for ids.
WORDS = re.compile(
    r"undefined|null|none|nil|nan|n/a|na|true|false|unknown|anonymous|empty|missing|blank|default|todo|tbd|"
    r"(\w*[ _-])?not[ _-](available|set|found|filled)"
)
NAMES = re.compile(  # of parameters, as in PROLIFIC_PID
    r"((insert|enter|your|my|the)[ _-]?)*"
    r"((prolific|worker|user|participant|subject|person|survey|session|study|external|assignment|hit|response|"
    r"respondent|panelist|completion)[ _-]?)?((p|r|u|gu|ps)?id|code|name)([ _-]?here)?"
)
SIGNS = re.compile(r"[{}\[\]<>%$|*`\\\ufffd]|^:")  # as in {{%ID%}}, ${id}, [PID], <id>, %ID%, *|ID|*, :id
WRAPPED = re.compile(r"([\W_])[^\d]*\1")  # as in __ID__, @@ID@@ and #ID#
REPEATED = re.compile(r"(.)\1{5,}|x{3,}|0{4,}", re.IGNORECASE)  # as in XXXX and 000000

Fault = Literal["", "placeholder", "malformed"]
Case = Literal["", "lower", "upper"]


@dataclass(frozen=True)
class Platform:
    """A place where people are recruited.

    Attributes:
        id_parameter: parameter of the link that names the person.
        needs_id: whether nobody takes part without.
        id_pattern: regular expression of its ids.
        case: the case that its ids are written in, where they are compared without case; "" where case matters.
        kept: further parameters, by the name under which they are kept until ids are deleted.
        link: parameters of the link that a researcher gives to the platform, which fills in the ids.
        frames: who may show the study in a frame.
    """

    id_parameter: str
    needs_id: bool = False
    id_pattern: str = ANY_ID
    case: Case = ""
    kept: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    link: str = ""
    frames: tuple[str, ...] = ()


PLATFORMS: Mapping[str, Platform] = {
    "link": Platform("id"),
    "kiosk": Platform(""),
    "prolific": Platform(
        "PROLIFIC_PID",
        needs_id=True,
        id_pattern="[0-9a-f]{24}",
        case="lower",
        kept={"STUDY_ID": "study", "SESSION_ID": "session"},
        link="PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
    ),
    "mturk": Platform(
        "workerId",
        needs_id=True,
        id_pattern="[A-Z0-9]+",
        case="upper",
        kept={"assignmentId": "assignment", "hitId": "hit", "turkSubmitTo": "submit_to"},
        frames=MTURK_FRAMES,
    ),
    "sona": Platform("survey_code", needs_id=True, link="survey_code=%SURVEY_CODE%"),
}


@dataclass(frozen=True)
class Visit:
    """How someone came.

    Attributes:
        external: the id that the platform gave; "" for none.
        kept: what else the link held.
        preview: whether the platform only shows what there is.
        fault: why the link's id cannot be used; "" if it can, or if there is none.
    """

    external: str = ""
    kept: Mapping[str, str] = field(default_factory=dict)
    preview: bool = False
    fault: Fault = ""


def visit_of(platform: str, id_parameter: str, given: Mapping[str, str], id_pattern: str = "") -> Visit:
    """Return how someone came, from the parameters of the address; others than the platform's are not looked at.

    Args:
        platform: its name.
        id_parameter: that names the person; "" for the platform's.
        given: the parameters.
        id_pattern: regular expression of ids; "" for the platform's.

    Example:
        >>> visit_of("prolific", "", {"PROLIFIC_PID": " 60A1C9D5E8F70B2A3C4D5E6F ", "grammar": "concat"}).external
        '60a1c9d5e8f70b2a3c4d5e6f'
        >>> visit_of("prolific", "", {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}).fault
        'placeholder'
        >>> visit_of("mturk", "", {"workerId": "A1", "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}).preview
        True
    """
    known = PLATFORMS[platform]
    name = id_parameter or known.id_parameter
    found = {short: cleaned(given.get(parameter, "")) for parameter, short in known.kept.items()}
    preview = found.get("assignment") == PREVIEW
    kept = {short: value for short, value in found.items() if 0 < len(value) <= MOST_ID and not is_placeholder(value)}
    external = "" if preview or not name else cleaned(given.get(name, ""))
    is_named = bool(name) and name in given and not preview  # also by nothing, which a platform may put in
    fault = fault_of(platform, external, id_pattern) if is_named else ""
    return Visit("" if fault else canonical_id(platform, external), kept, preview, fault)


def parameters_of(platform: str, id_parameter: str, visit: Visit) -> dict[str, str]:
    """Return the parameters that `visit_of` reads a visit from."""
    known = PLATFORMS[platform]
    kept = {parameter: visit.kept[name] for parameter, name in known.kept.items() if name in visit.kept}
    name = id_parameter or known.id_parameter
    return kept | ({name: visit.external} if visit.external else {})


def cleaned(given: str) -> str:
    """Return a text of an address without control characters, line separators and space around it."""
    kept = (letter for letter in given if unicodedata.category(letter)[0] != "C" and letter not in "\u2028\u2029")
    return "".join(kept).strip()


def canonical_id(platform: str, given: str) -> str:
    """Return an id as it is compared and kept: in the case of the platform, and in one form of Unicode (NFC).

    Example:
        >>> canonical_id("mturk", "a1b2"), canonical_id("link", "a1b2")
        ('A1B2', 'a1b2')
    """
    text, case = unicodedata.normalize("NFC", cleaned(given)), PLATFORMS[platform].case
    return text.lower() if case == "lower" else text.upper() if case == "upper" else text


def fault_of(platform: str, given: str, id_pattern: str = "") -> Fault:
    """Return why a text cannot be an id of a platform; "" if it can.

    Example:
        >>> fault_of("prolific", "undefined"), fault_of("prolific", "5f1"), fault_of("link", "5f1")
        ('placeholder', 'malformed', '')
    """
    known = PLATFORMS[platform]
    if is_placeholder(given):
        return "placeholder"
    flags = re.IGNORECASE | re.ASCII if known.case else re.NOFLAG  # ASCII, or the sign for kelvin would be a K
    is_id = len(given) <= MOST_ID and re.fullmatch(id_pattern or known.id_pattern, given, flags)
    return "" if is_id else "malformed"


def is_placeholder(given: str) -> bool:
    """Return whether a text is what stays in a link if a platform does not fill in an id.

    Example:
        >>> [is_placeholder(text) for text in ("${e://Field/PID}", "[PID]", "null", "WORKER_ID", "5f1c", "Anna-7")]
        [True, True, True, True, False, False]
    """
    word = given.strip("()\"'` ").lower()
    return bool(
        not any(letter.isalnum() for letter in given)
        or SIGNS.search(given)
        or WRAPPED.fullmatch(given)
        or any(pattern.fullmatch(word) for pattern in (WORDS, NAMES, REPEATED))
    )


def checked_pattern(given: str) -> str:
    """Return a regular expression of ids.

    Raises:
        InvalidSettingError: it is not a regular expression.
    """
    try:
        re.compile(given)
    except re.error as error:
        raise InvalidSettingError(
            f"The pattern of ids (id_pattern) is a regular expression like '[0-9]{{6}}', not {quoted(given)}: {error}."
        ) from error
    return given


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
    site = site_of(submit_to)
    return f"https://{site.host}/mturk/externalSubmit" if site in MTURK_SITES and site else ""
