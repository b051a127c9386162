"""The plan of a study: what its settings file says, in TOML."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from icy.core.checks import real_number, whole_number
from icy.core.errors import InvalidSettingError, StoreError, quoted, unknown
from icy.core.text import listed
from icy.study.game import StudyGameSettings
from icy.study.stimuli import PALETTES

from .platforms import PLATFORMS, Visit, checked_address, checked_pattern, visit_of

State = Literal["pilot", "open", "closed"]
STATES: tuple[str, ...] = get_args(State)
DEVICES = ("computer", "tablet", "phone")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
RESERVED = ("static",)  # the first part of other addresses
UNWRITTEN = "TODO"  # what `icy study new` leaves to be written


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Who plays what: the table [conditions].

    Attributes:
        dataset: "synth", "eng" or both.
        grammar: names or chains of grammars; every dataset with every grammar is a condition.
        quota: persons per condition; 0 for as many as come.
        quotas: other numbers for some conditions, as in "eng/proj" = 10.
        preset: "clean", or "published" for the game of the authors' service.
        list_seed: of the list of instances, which people and machines share.
        drop_after: minutes without any action after which a place is given to someone else.
        game: further settings of the game, as in examples = 30.
    """

    dataset: list[str] = field(default_factory=lambda: ["synth", "eng"])
    grammar: list[str] = field(default_factory=lambda: ["concat", "perm", "proj", "rot", "shufdet"])
    quota: int = 20
    quotas: dict[str, int] = field(default_factory=dict)
    preset: str = "clean"
    list_seed: int = 0
    drop_after: float = 90.0
    game: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole_number("quota", self.quota, least=0)
        whole_number("seed of the list of instances (list_seed)", self.list_seed, 0, 2**53)
        real_number("time after which a place is free again (drop_after), in minutes,", self.drop_after, above=True)
        known = [name for name, _ in self.cells]
        if not known or len(set(known)) < len(known):
            raise InvalidSettingError(
                "A study has one condition or more, each named once: [conditions] dataset, grammar."
            )
        for name, quota in self.quotas.items():
            if name not in known:
                raise unknown("condition", name, known)
            whole_number(f"quota of {name}", quota, least=0)

    @cached_property
    def cells(self) -> tuple[tuple[str, StudyGameSettings], ...]:
        """Name and settings of the game of every condition."""
        pairs = product(self.dataset, self.grammar)
        games = [StudyGameSettings.of(self.preset, dataset=d, grammar=g, **self.game) for d, g in pairs]
        return tuple((f"{game.dataset}/{game.grammar}", game) for game in games)

    def quota_of(self, cell: str) -> int:
        """Return the number of persons wanted in a condition; 0 for as many as come."""
        return self.quotas.get(cell, self.quota)


@dataclass(frozen=True, kw_only=True)
class People:
    """What people must be told, and what they are paid: the table [people].

    Attributes:
        purpose: of the study, in a sentence.
        controller: who answers for the data: name and place of the institution.
        contact: whom to write to.
        retention: how long data are kept, in a sentence.
        minutes: how long it takes.
        base_cents: pay for taking part, in hundredths of the currency.
        most_bonus_cents: the most that points can add.
        currency: as in "GBP".
        ids_days: days after the export of payments when external ids are deleted; 0 for never.
        devices: those that people may use: "computer", "tablet", "phone".
    """

    purpose: str = ""
    controller: str = ""
    contact: str = ""
    retention: str = ""
    minutes: int = 25
    base_cents: int = 0
    most_bonus_cents: int = 0
    currency: str = "GBP"
    ids_days: int = 30
    devices: list[str] = field(default_factory=lambda: list(DEVICES))

    def __post_init__(self) -> None:
        whole_number("length of the study in minutes", self.minutes)
        for name in ("base_cents", "most_bonus_cents", "ids_days"):
            whole_number(f"setting {name}", getattr(self, name), least=0)
        for device in self.devices:
            if device not in DEVICES:
                raise unknown("kind of device", device, DEVICES)

    @property
    def missing(self) -> list[str]:
        """What people must be told and is not written."""
        must = ("purpose", "controller", "contact", "retention")
        return [name for name in must if not getattr(self, name).strip() or UNWRITTEN in getattr(self, name)]


@dataclass(frozen=True, kw_only=True)
class Pages:
    """Which pages there are: the table [pages].

    Attributes:
        demographics: whether to ask for age band, native languages and colour vision; all can be skipped.
        comprehension: whether to ask questions on the instructions.
        colour_check: whether to ask for the names of colours.
        feedback: whether to ask for remarks at the end.
        least_seconds: what agrees faster than this to take part is taken for a program.
    """

    demographics: bool = False
    comprehension: bool = True
    colour_check: bool = True
    feedback: bool = True
    least_seconds: float = 2.0

    def __post_init__(self) -> None:
        real_number("least time to read (least_seconds)", self.least_seconds)


@dataclass(frozen=True, kw_only=True)
class Display:
    """How the game looks and sounds at first: the table [display].

    Attributes:
        palette: "primary", the published colours; or "safe", which most colour-blind people can tell apart.
        patterns: whether every colour also has a pattern of lines.
        choose: whether players may change both.
        sound: whether there are tones; players can turn them off and on.
    """

    palette: str = "primary"
    patterns: bool = False
    choose: bool = True
    sound: bool = True

    def __post_init__(self) -> None:
        if self.palette not in PALETTES:
            raise unknown("palette", self.palette, list(PALETTES))


@dataclass(frozen=True, kw_only=True)
class Recruiting:
    """Where people come from and go to: the table [platform].

    Attributes:
        name: "link", "kiosk", "prolific", "mturk" or "sona".
        id_parameter: the parameter of the address that names a person; by default that of the platform.
        id_pattern: regular expression of ids, as in "[0-9]{6}"; by default that of the platform: 24 hexadecimal digits
            for Prolific, capital letters and digits for MTurk. Other ids are turned away.
        needs_id: whether nobody takes part without; by default as the platform has it. A pilot can always be tried.
        return_to: address to go to at the end; {id} and {code} in it stand for the person's id and the code.
        codes: completion codes by outcome: "complete", "declined", "failed_check", "withdrawn", "full", "device". Where
            there is none for "complete", every person gets a code of their own.
    """

    name: str = "link"
    id_parameter: str = ""
    id_pattern: str = ""
    needs_id: bool | None = None
    return_to: str = ""
    codes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in PLATFORMS:
            raise unknown("platform", self.name, list(PLATFORMS))
        outcomes = ("complete", "declined", "failed_check", "withdrawn", "full", "device")
        for name, code in self.codes.items():
            if name not in outcomes:
                raise unknown("outcome with a code", name, outcomes)
            if not isinstance(code, str):
                raise InvalidSettingError(f"The code of {name} is a text, not {quoted(code)}.")
        if self.return_to:
            checked_address(self.return_to)
        checked_pattern(self.id_pattern)

    @property
    def frames(self) -> tuple[str, ...]:
        """Who may show the study in a frame."""
        return PLATFORMS[self.name].frames

    @property
    def parameter(self) -> str:
        """The parameter of the link that names a person; "" for none."""
        return self.id_parameter or PLATFORMS[self.name].id_parameter

    @property
    def link(self) -> str:
        """Parameters of the link for the platform, which fills in the ids; "" where it adds them by itself."""
        known = PLATFORMS[self.name]
        return known.link.replace(f"{known.id_parameter}=", f"{self.parameter}=", 1)

    def visit(self, given: Mapping[str, str]) -> Visit:
        """Return how someone came, by the parameters of the address or of a form."""
        return visit_of(self.name, self.id_parameter, given, self.id_pattern)

    def needs_id_now(self, state: State) -> bool:
        """Return whether nobody takes part without an id; a pilot can be tried without."""
        needs_id = PLATFORMS[self.name].needs_id if self.needs_id is None else self.needs_id
        return needs_id and state != "pilot"


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """A study as its settings file describes it.

    Attributes:
        name: of the study: the file's, without its suffix; it is part of addresses.
        path: of the file.
        title: shown on every page.
        state: "pilot", whose data are marked; "open"; or "closed", when nobody new may start.
        language: of the texts, as in "en".
        information: Markdown file of the page of information and consent.
        debriefing: Markdown file of what is said at the end.
        database: file of the database; studies of one folder share it by default.
        exclude: names of earlier studies in that database; who took part in one is turned away.
        conditions: who plays what.
        people: what people are told and paid.
        pages: which there are.
        display: how the game looks at first.
        platform: where people come from.
    """

    name: str
    path: Path
    title: str = "Secret Spy Codes"
    state: State = "pilot"
    language: str = "en"
    information: str = ""
    debriefing: str = ""
    database: str = "studies.sqlite"
    exclude: list[str] = field(default_factory=list)
    conditions: Conditions = field(default_factory=Conditions)
    people: People = field(default_factory=People)
    pages: Pages = field(default_factory=Pages)
    display: Display = field(default_factory=Display)
    platform: Recruiting = field(default_factory=Recruiting)

    def __post_init__(self) -> None:
        checked_name(self.name)
        if self.state not in STATES:
            raise unknown("state of a study", str(self.state), STATES)
        if self.name in self.exclude:
            raise InvalidSettingError(f"The study '{self.name}' cannot exclude those who take part in itself.")

    @property
    def information_path(self) -> Path:
        """Path of the text of information and consent."""
        return self.path.parent / (self.information or f"{self.name}-information.md")

    @property
    def debriefing_path(self) -> Path:
        """Path of the text at the end."""
        return self.path.parent / (self.debriefing or f"{self.name}-debriefing.md")

    @property
    def database_path(self) -> Path:
        """Path of the database."""
        return self.path.parent / self.database

    @cached_property
    def information_text(self) -> str:
        """Markdown of information and consent."""
        return _text_of(self.information_path)

    @cached_property
    def debriefing_text(self) -> str:
        """Markdown of what is said at the end."""
        return _text_of(self.debriefing_path)

    def to_json(self) -> dict[str, Any]:
        """Return all settings but where they stand as plain JSON."""
        return {name: value for name, value in asdict(self).items() if name != "path"}

    @property
    def digest(self) -> str:
        """A hash of the settings that decide what people see and do."""
        deciding = self.to_json()
        for name in ("state", "title", "database", "exclude", "people", "platform"):
            del deciding[name]
        for name in ("quota", "quotas", "drop_after"):
            del deciding["conditions"][name]
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def consent_version(self) -> str:
        """A hash of what people agree to."""
        told = [self.information_text, self.people.purpose, self.people.controller, self.people.contact]
        return hashlib.sha256("\0".join([*told, self.people.retention]).encode()).hexdigest()[:12]

    def check_ready(self) -> None:
        """Require what an open study must tell.

        Raises:
            InvalidSettingError: something is not written yet.
        """
        texts = (self.information_path, self.information_text), (self.debriefing_path, self.debriefing_text)
        if self.state != "open":
            return
        if missing := self.people.missing:
            raise InvalidSettingError(
                f"An open study must tell its {listed(missing)}; write it into [people] of {self.path}."
            )
        if unwritten := [path.name for path, text in texts if UNWRITTEN in text]:
            raise InvalidSettingError(
                f"{listed(unwritten)} still holds {UNWRITTEN}: write what is missing, then open the study."
            )


def checked_name(name: str) -> str:
    """Return the name of a study, which becomes part of addresses.

    Raises:
        InvalidSettingError: it has other signs.
    """
    if not NAME.fullmatch(name) or name in RESERVED:
        raise InvalidSettingError(
            f"A study is named by small letters, digits and hyphens, as in spy-codes.toml, not {quoted(name)}."
        )
    return name


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise StoreError(f"The text '{path}' cannot be read: {said}.") from error


# -- reading -----------------------------------------------------------------------------------------------------------

PARTS = {"conditions": Conditions, "people": People, "pages": Pages, "display": Display, "platform": Recruiting}


def plan_path(given: str | Path) -> Path:
    """Return the settings file that a name or path stands for, as in "pilot" for pilot.toml.

    Raises:
        StoreError: there is none; the sentence says how to make one.
    """
    path = Path(given)
    if path.suffix == ".toml" and path.is_file():
        return path
    named = path if path.suffix == ".toml" or not path.name else path.with_name(f"{path.name}.toml")
    if named.is_file():
        return named
    if path.is_dir():
        raise StoreError(f"'{path}' is a folder; name the settings file of a study, as in '{path / 'pilot.toml'}'.")
    if path.is_file():
        raise StoreError(f"'{path}' is no study; the settings file of one ends in .toml.")
    raise StoreError(f"There is no study '{named}'; `icy study new {named}` makes one.")


def read_plan(given: str | Path) -> StudyPlan:
    """Return the plan of a study, from its settings file or the name of it.

    Raises:
        StoreError: the file, or a text that it names, cannot be read.
        IcyError: settings that are not accepted; the sentence says which.
    """
    path = plan_path(given)
    try:
        found = tomllib.loads(_text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise InvalidSettingError(f"{path} is not TOML: {error}.") from error
    return plan_of(found, path)


def plan_of(found: Mapping[str, object], path: Path) -> StudyPlan:
    """Return the plan of settings that were read. Errors as for `read_plan`."""
    parts = {name: _table(kind, found.get(name, {}), f"[{name}] of {path.name}") for name, kind in PARTS.items()}
    top = {name: value for name, value in found.items() if name not in PARTS}
    for name in ("name", "path"):
        if name in top:
            raise InvalidSettingError(f"A study has the name of its file; leave out {name} in {path.name}.")
    known = [one.name for one in fields(StudyPlan) if one.name not in ("name", "path")]
    return StudyPlan(name=path.stem, path=path, **_checked(StudyPlan, top, path.name, known), **parts)


def _table(kind: type, given: object, where: str) -> Any:
    if not isinstance(given, Mapping):
        raise InvalidSettingError(f"{where} is a table of settings, not {quoted(given)}.")
    return kind(**_checked(kind, given, where, [one.name for one in fields(kind)]))


def _checked(kind: type, given: Mapping[str, Any], where: str, known: list[str]) -> dict[str, Any]:
    """Return settings whose names and types are those of a dataclass.

    Raises:
        UnknownNameError, InvalidSettingError: one is not.
    """
    hints = get_type_hints(kind)
    for name, value in given.items():
        if name not in known:
            raise unknown(f"setting in {where}", name, known)
        if get_origin(hints[name]) is Literal and value not in get_args(hints[name]):
            raise unknown(f"{name} in {where}", str(value), get_args(hints[name]))
        try:
            msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            raise InvalidSettingError(f"The setting {name} in {where} cannot be {quoted(value)}: {error}.") from error
    return dict(given)
