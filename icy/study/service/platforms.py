"""Recruiting platforms: parameters of links, formats of ids, and return addresses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit

from icy.core.errors import InvalidSettingError, quoted, require_known

from .network import Site, site_of

MOST_ID = 128  # maximum length of an external id
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"  # MTurk's assignment id in a preview
MTURK_SITES = (Site("https", "www.mturk.com", 443), Site("https", "workersandbox.mturk.com", 443))  # accept submissions
MTURK_FRAMES = ("https://www.mturk.com", "https://workersandbox.mturk.com", "https://worker.mturk.com")
PROLIFIC = "https://app.prolific.com/submissions/complete"
ANY_ID = r"(?!.*://)(?=.*\d).+"  # a text with a digit, except an address, for platforms without a format of ids

# Placeholders that templates and programs leave instead of an id. They do not identify a person. These patterns cannot
# list all of them, but placeholders are words. So an id without digits is accepted only if `id_pattern` allows it.
WORDS = re.compile(
    r"((undefined|null|none|nil|nan|n/a|na|true|false|unknown|anonymous|empty|missing|blank|default|todo|tbd|"
    r"placeholder)[ _-]?)+|"
    r"(\w*[ _-])?not[ _-](available|set|found|filled)"
)
NAMES = re.compile(  # names of parameters, as in PROLIFIC_PID
    r"((insert|enter|your|my|the)[ _-]?)*"
    r"((prolific|worker|user|participant|subject|person|survey|session|study|external|assignment|hit|response|"
    r"respondent|panelist|completion)[ _-]?)?((p|r|u|gu|ps)?id|code|name)([ _-]?here)?"
)
SIGNS = re.compile(r"[{}\[\]<>%$|*`\\\ufffd]|^:")  # as in {{%ID%}}, ${id}, [PID], <id>, %ID%, *|ID|*, :id
WRAPPED = re.compile(r"([\W_])[^\d]*\1")  # as in __ID__, @@ID@@ and #ID#
REPEATED = re.compile(r"(.)\1{5,}|x{3,}|0{4,}", re.IGNORECASE)  # as in XXXX and 000000

OUTCOMES = ("complete", "declined", "failed_check", "withdrawn", "full", "device")
Fault = Literal["", "placeholder", "malformed"]
Case = Literal["", "lower", "upper"]


@dataclass(frozen=True)
class Platform:
    """A recruiting platform.

    Attributes:
        id_parameter: parameter of the link that contains the person's id.
        needs_id: whether people need an id to take part.
        id_pattern: regular expression of ids.
        case: "lower" or "upper": case in which ids are stored and compared; "" if case matters.
        extra: other parameters of the link, and the names under which they are stored until ids are deleted.
        link: parameters of the link to enter on the platform, with placeholders that the platform replaces.
        frames: sites that may embed the study in a frame.
    """

    id_parameter: str
    needs_id: bool = False
    id_pattern: str = ANY_ID
    case: Case = ""
    extra: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
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
        extra={"STUDY_ID": "study", "SESSION_ID": "session"},
        link="PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
    ),
    "mturk": Platform(
        "workerId",
        needs_id=True,
        id_pattern="(?=.*[0-9])[A-Z0-9]+|A[A-Z]{11,}",  # ids of workers begin with A, and most have digits
        case="upper",
        extra={"assignmentId": "assignment", "hitId": "hit", "turkSubmitTo": "submit_to"},
        frames=MTURK_FRAMES,
    ),
    "sona": Platform("survey_code", needs_id=True, link="survey_code=%SURVEY_CODE%"),
}


@dataclass(frozen=True)
class Visit:
    """The parameters of a visitor's link.

    Attributes:
        external: the person's id on the platform; "" if there is none.
        extra: other parameters of the link.
        preview: whether the platform only shows a preview.
        fault: fault of the id in the link; "" for a valid id or a link without an id.
    """

    external: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
    preview: bool = False
    fault: Fault = ""


@dataclass(frozen=True, kw_only=True)
class Recruiting:
    """Settings of the recruiting platform: the table [platform].

    Attributes:
        name: "link", "kiosk", "prolific", "mturk" or "sona".
        id_parameter: parameter of the link that contains a person's id; the default depends on the platform.
        id_pattern: regular expression of ids, as in "[0-9]{6}". The default depends on the platform: 24 hexadecimal
            digits for Prolific, capital letters and digits for MTurk, a text with a digit for others, because
            placeholders are words. People with other ids are refused; ".+" accepts words.
        needs_id: whether people need an id to take part; the default depends on the platform. A pilot never needs ids.
        return_to: address to which people return at the end; {id} and {code} are replaced by the person's id and code.
        codes: completion codes by outcome: "complete", "declined", "failed_check", "withdrawn", "full", "device".
            Without a code for "complete", every person gets a different code.
    """

    name: str = "link"
    id_parameter: str = ""
    id_pattern: str = ""
    needs_id: bool | None = None
    return_to: str = ""
    codes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_known("platform", self.name, PLATFORMS)
        for name in self.codes:
            require_known("outcome with a code", name, OUTCOMES)
        parts = urlsplit(self.return_to)
        if self.return_to and (parts.scheme != "https" or not parts.netloc or set(self.return_to) & set(" \"'<>\\")):
            raise InvalidSettingError(
                f"The return address (return_to) must begin with https://, unlike {quoted(self.return_to)}."
            )
        try:
            re.compile(self.id_pattern)
        except re.error as error:
            raise InvalidSettingError(
                "The pattern of ids (id_pattern) must be a regular expression like '[0-9]{6}', not "
                f"{quoted(self.id_pattern)}: {error}."
            ) from error

    @property
    def known(self) -> Platform:
        """The properties of the platform."""
        return PLATFORMS[self.name]

    @property
    def parameter(self) -> str:
        """The parameter of the link that contains a person's id; "" if there is none."""
        return self.id_parameter or self.known.id_parameter

    @property
    def link(self) -> str:
        """Parameters of the link to enter on the platform, with placeholders for ids; "" if the platform adds them."""
        return self.known.link.replace(f"{self.known.id_parameter}=", f"{self.parameter}=", 1)

    def needs_id_now(self, state: str) -> bool:
        """Return whether people need an id to take part in a state of the study. A pilot never needs ids."""
        return (self.known.needs_id if self.needs_id is None else self.needs_id) and state != "pilot"

    def visit(self, parameters: Mapping[str, str]) -> Visit:
        """Parse the parameters of a URL or of a form, and ignore parameters that the platform does not define.

        Example:
            >>> prolific, mturk = Recruiting(name="prolific"), Recruiting(name="mturk")
            >>> prolific.visit({"PROLIFIC_PID": " 60A1C9D5E8F70B2A3C4D5E6F ", "grammar": "concat"}).external
            '60a1c9d5e8f70b2a3c4d5e6f'
            >>> prolific.visit({"PROLIFIC_PID": "{{%PROLIFIC_PID%}}"}).fault
            'placeholder'
            >>> mturk.visit({"workerId": "A1", "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}).preview
            True
        """
        name, extra = self.parameter, self.known.extra
        values = {short: clean_parameter(parameters.get(parameter, "")) for parameter, short in extra.items()}
        preview = values.get("assignment") == PREVIEW
        valid = {short: text for short, text in values.items() if 0 < len(text) <= MOST_ID and not is_placeholder(text)}
        if not name or name not in parameters or preview:
            return Visit("", valid, preview)
        external = clean_parameter(parameters[name])  # it may be empty, and is then a placeholder
        fault = self.fault_of(external)
        return Visit("" if fault else self.canonical_id(external), valid, preview, fault)

    def parameters_of(self, visit: Visit) -> dict[str, str]:
        """Return the URL parameters of a visit, the inverse of `visit`."""
        extra = self.known.extra
        parameters = {parameter: visit.extra[name] for parameter, name in extra.items() if name in visit.extra}
        return parameters | ({self.parameter: visit.external} if visit.external else {})

    def canonical_id(self, external: str) -> str:
        """Normalize an id for comparison and storage: Unicode NFC, in the case of the platform.

        Example:
            >>> Recruiting(name="mturk").canonical_id("a1b2"), Recruiting(name="link").canonical_id("a1b2")
            ('A1B2', 'a1b2')
        """
        text, case = unicodedata.normalize("NFC", clean_parameter(external)), self.known.case
        return text.lower() if case == "lower" else text.upper() if case == "upper" else text

    def fault_of(self, external: str) -> Fault:
        """Return the fault of a text as an id of the platform; "" for a valid id.

        Example:
            >>> prolific = Recruiting(name="prolific")
            >>> prolific.fault_of("undefined"), prolific.fault_of("5f1"), Recruiting(name="link").fault_of("5f1")
            ('placeholder', 'malformed', '')
        """
        if is_placeholder(external):
            return "placeholder"
        flags = re.IGNORECASE | re.ASCII if self.known.case else re.NOFLAG  # without ASCII, the kelvin sign matches K
        pattern = self.id_pattern or self.known.id_pattern
        return "" if len(external) <= MOST_ID and re.fullmatch(pattern, external, flags) else "malformed"

    def leave(self, outcome: str, external: str = "", own: str = "") -> tuple[str, str]:
        """Return the address to which a person returns at the end, and the completion code; "" if there is none.

        Args:
            outcome: one of OUTCOMES.
            external: the person's id.
            own: the person's own code, for the outcome "complete" without a code in the settings.

        Example:
            >>> Recruiting(name="prolific", codes={"complete": "C1AB"}).leave("complete", "5f1")
            ('https://app.prolific.com/submissions/complete?cc=C1AB', 'C1AB')
            >>> Recruiting(name="sona", return_to="https://x.example/credit?survey_code={id}").leave("complete", "a b")
            ('https://x.example/credit?survey_code=a%20b', '')
        """
        code = self.codes.get(outcome, own if outcome == "complete" else "")
        if outcome != "complete" and not code:
            return "", ""
        if self.return_to:
            address = self.return_to.replace("{id}", quote(external, safe="")).replace("{code}", quote(code, safe=""))
            return address, code
        return f"{PROLIFIC}?{urlencode({'cc': code})}" if self.name == "prolific" and code else "", code


def clean_parameter(text: str) -> str:
    """Remove control characters, line separators and surrounding space from a URL parameter."""
    letters = (letter for letter in text if unicodedata.category(letter)[0] != "C" and letter not in "\u2028\u2029")
    return "".join(letters).strip()


def is_placeholder(text: str) -> bool:
    """Return whether a text is a placeholder instead of an id.

    Example:
        >>> [is_placeholder(text) for text in ("${e://Field/PID}", "[PID]", "null", "WORKER_ID", "5f1c", "Anna-7")]
        [True, True, True, True, False, False]
    """
    text = unicodedata.normalize("NFKC", text)  # full-width letters
    word = text.strip("()\"'` ").lower()
    return bool(
        not any(letter.isalnum() for letter in text)
        or SIGNS.search(text)
        or WRAPPED.fullmatch(text)
        or any(pattern.fullmatch(word) for pattern in (WORDS, NAMES, REPEATED))
    )


def hand_in_address(submit_to: str) -> str:
    """Return the URL for submitting an MTurk assignment; "" if `submit_to` is not a URL of MTurk.

    Example:
        >>> hand_in_address("https://workersandbox.mturk.com")
        'https://workersandbox.mturk.com/mturk/externalSubmit'
        >>> hand_in_address("https://evil.example"), hand_in_address("https://www.mturk.com@evil.example")
        ('', '')
    """
    site = site_of(submit_to)
    return f"https://{site.host}/mturk/externalSubmit" if site in MTURK_SITES and site else ""
