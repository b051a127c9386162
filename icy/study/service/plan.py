"""The plan of a study: the settings in its file, in TOML."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from icy.core.errors import InvalidSettingError, StoreError, quoted, require_known
from icy.core.files import write_atomically
from icy.core.text import listed
from icy.study.game import StudyGameSettings
from icy.study.stimuli import PaletteName

from .platforms import PLATFORMS, Recruiting

State = Literal["pilot", "open", "closed"]
DEVICES = ("computer", "tablet", "phone")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
RESERVED = ("static",)  # names that are the start of other addresses
PLACEHOLDER = "TODO"  # marks text that the researcher must replace

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Minutes = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Conditions of the study: the table [conditions].

    Attributes:
        dataset: "synth", "eng" or both.
        grammar: names of grammars or chains; every pair of a dataset and a grammar is a condition.
        quota: number of persons per condition; 0 for no limit.
        quotas: other quotas for single conditions, as in "eng/proj" = 10.
        preset: "clean", or "published" for the game of the authors' service.
        list_seed: seed of the list of instances, which people and machines share.
        drop_after: minutes of inactivity after which a person's place becomes free.
        game: further settings of the game, as in examples = 30.
    """

    dataset: list[str] = field(default_factory=lambda: ["synth", "eng"])
    grammar: list[str] = field(default_factory=lambda: ["concat", "perm", "proj", "rot", "shufdet"])
    quota: Count = 20
    quotas: dict[str, Count] = field(default_factory=dict)
    preset: str = "clean"
    list_seed: Count = 0
    drop_after: Minutes = 90.0
    game: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [name for name, _ in self.cells]
        if not known or len(set(known)) < len(known):
            raise InvalidSettingError(
                "A study needs at least one condition, each named once: set dataset and grammar in [conditions]."
            )
        for name in self.quotas:
            require_known("condition", name, known)

    @cached_property
    def cells(self) -> tuple[tuple[str, StudyGameSettings], ...]:
        """Name and game settings of every condition."""
        pairs = product(self.dataset, self.grammar)
        games = [StudyGameSettings.of(self.preset, dataset=d, grammar=g, **self.game) for d, g in pairs]
        return tuple((f"{game.dataset}/{game.grammar}", game) for game in games)

    def quota_of(self, cell: str) -> int:
        """Return the number of persons needed in a condition; 0 for no limit."""
        return self.quotas.get(cell, self.quota)


@dataclass(frozen=True, kw_only=True)
class People:
    """Information for participants, pay and devices: the table [people].

    Attributes:
        purpose: purpose of the study, in a sentence.
        controller: name and place of the institution that is responsible for the data.
        contact: name and e-mail address for questions.
        retention: duration of data storage, in a sentence.
        minutes: duration in minutes.
        base_cents: fixed pay for taking part, in hundredths of the currency.
        most_bonus_cents: largest bonus for points, in hundredths of the currency.
        currency: code of the currency, as in "GBP".
        ids_days: days from the export of payments to the deletion of external ids; 0 for never.
        devices: devices that people may use: "computer", "tablet", "phone".
    """

    purpose: str = ""
    controller: str = ""
    contact: str = ""
    retention: str = ""
    minutes: Annotated[int, msgspec.Meta(ge=1, le=2**53)] = 25
    base_cents: Count = 0
    most_bonus_cents: Count = 0
    currency: str = "GBP"
    ids_days: Count = 30
    devices: list[str] = field(default_factory=lambda: list(DEVICES))

    def __post_init__(self) -> None:
        for device in self.devices:
            require_known("kind of device", device, DEVICES)

    @property
    def missing(self) -> list[str]:
        """Required fields that are empty or still contain a placeholder."""
        required = ("purpose", "controller", "contact", "retention")
        return [name for name in required if not getattr(self, name).strip() or PLACEHOLDER in getattr(self, name)]


@dataclass(frozen=True, kw_only=True)
class Pages:
    """Optional pages of the study: the table [pages].

    Attributes:
        demographics: whether to ask for age band, native languages and color vision; all answers can be skipped.
        comprehension: whether to ask questions about the instructions.
        colour_check: whether to ask for the names of colors.
        feedback: whether to ask for remarks at the end.
        least_seconds: shortest time on the consent page; a person who agrees sooner is treated as a bot.
    """

    demographics: bool = False
    comprehension: bool = True
    colour_check: bool = True
    feedback: bool = True
    least_seconds: Seconds = 2.0


@dataclass(frozen=True, kw_only=True)
class Display:
    """Initial display and sound of the game: the table [display].

    Attributes:
        palette: "primary", the published colors; or "safe", colors that most color-blind people can distinguish.
        patterns: whether every color also has a pattern of lines.
        choose: whether players may change palette and patterns.
        sound: whether tones are on; players can turn them on and off.
    """

    palette: PaletteName = "primary"
    patterns: bool = False
    choose: bool = True
    sound: bool = True


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """All settings of a study.

    Attributes:
        path: path of the settings file. Its name without the suffix is the name of the study.
        title: title of every page.
        state: "pilot": data are marked as such; "open"; or "closed": new people cannot start.
        language: language of the texts, as in "en".
        information: Markdown file with the information for the consent page.
        debriefing: Markdown file with the text of the last page.
        database: file of the database; by default one file for all studies in the folder.
        exclude: names of earlier studies in the database; people who took part in them are refused.
        conditions: conditions and quotas.
        people: information for participants, pay and devices.
        pages: optional pages.
        display: initial display and sound of the game.
        platform: the recruiting platform.
    """

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
        if self.name in self.exclude:
            raise InvalidSettingError(f"The study '{self.name}' cannot exclude its own participants.")

    @property
    def name(self) -> str:
        """Name of the study, which is part of addresses."""
        return self.path.stem

    @property
    def information_path(self) -> Path:
        """Path of the information for the consent page."""
        return self.path.parent / (self.information or f"{self.name}-information.md")

    @property
    def debriefing_path(self) -> Path:
        """Path of the text of the last page."""
        return self.path.parent / (self.debriefing or f"{self.name}-debriefing.md")

    @property
    def database_path(self) -> Path:
        """Path of the database."""
        return self.path.parent / self.database

    @cached_property
    def information_text(self) -> str:
        """Markdown text of the information."""
        return _text_of(self.information_path)

    @cached_property
    def debriefing_text(self) -> str:
        """Markdown text of the debriefing."""
        return _text_of(self.debriefing_path)

    def to_json(self) -> dict[str, Any]:
        """Return all settings except the path as a dictionary for JSON."""
        settings = {"name": self.name, **asdict(self)}
        del settings["path"]
        return settings

    @property
    def digest(self) -> str:
        """A hash of the settings that affect the pages and the game."""
        content = self.to_json()
        for name in ("state", "title", "database", "exclude", "people", "platform"):
            del content[name]
        for name in ("quota", "quotas", "drop_after"):
            del content["conditions"][name]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def consent_version(self) -> str:
        """A hash of the texts to which people agree."""
        texts = [self.information_text, self.people.purpose, self.people.controller, self.people.contact]
        return hashlib.sha256("\0".join([*texts, self.people.retention]).encode()).hexdigest()[:12]

    def check_ready(self) -> None:
        """Check that an open study has all required texts.

        Raises:
            InvalidSettingError: a required text is missing.
        """
        texts = (self.information_path, self.information_text), (self.debriefing_path, self.debriefing_text)
        if self.state != "open":
            return
        if missing := self.people.missing:
            raise InvalidSettingError(
                f"An open study needs {listed(missing)}; write the text into [people] of {self.path}."
            )
        if unfinished := [path.name for path, text in texts if PLACEHOLDER in text]:
            raise InvalidSettingError(
                f"{listed(unfinished)} still contains {PLACEHOLDER}: replace every {PLACEHOLDER}, then open the study."
            )


def checked_name(name: str) -> str:
    """Check the name of a study, and return it.

    Raises:
        InvalidSettingError: the name has other characters.
    """
    if not NAME.fullmatch(name) or name in RESERVED:
        raise InvalidSettingError(
            "The name of a study has only lowercase letters, digits and hyphens, as in spy-codes.toml, not "
            f"{quoted(name)}."
        )
    return name


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise StoreError(f"The text '{path}' cannot be read: {why}.") from error


# -- reading -----------------------------------------------------------------------------------------------------------


def plan_path(study: str | Path) -> Path:
    """Find the settings file of a study by name or path, as in pilot.toml for "pilot".

    Raises:
        StoreError: the settings file does not exist; the message describes how to create it.
    """
    path = Path(study)
    if path.suffix == ".toml" and path.is_file():
        return path
    named = path if path.suffix == ".toml" or not path.name else path.with_name(f"{path.name}.toml")
    if named.is_file():
        return named
    if path.is_dir():
        raise StoreError(f"'{path}' is a folder; name the settings file of a study, as in '{path / 'pilot.toml'}'.")
    if path.is_file():
        raise StoreError(f"'{path}' is not the settings file of a study; the name of a settings file ends in .toml.")
    raise StoreError(f"The study '{named}' does not exist; `icy study new {named}` creates it.")


def read_plan(study: str | Path) -> StudyPlan:
    """Read the plan of a study from its settings file.

    Args:
        study: path of the settings file, or its name without .toml.

    Raises:
        StoreError: the file, or a text that it names, cannot be read.
        IcyError: a setting is not accepted.
    """
    path = plan_path(study)
    try:
        found = tomllib.loads(_text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise InvalidSettingError(f"{path} is not TOML: {error}.") from error
    return plan_of(found, path)


def plan_of(found: Mapping[str, object], path: Path) -> StudyPlan:
    """Create a plan from the content of a settings file. Raises the errors of `read_plan`."""
    for name in ("name", "path"):
        if name in found:
            raise InvalidSettingError(f"The name of the file is the name of the study; remove {name} from {path.name}.")
    return StudyPlan(path=path, **_checked(StudyPlan, found, path.name))


def _checked(kind: type, table: object, where: str) -> dict[str, Any]:
    """Check settings against the names and types of a dataclass's fields, and return the settings.

    Raises:
        UnknownNameError, InvalidSettingError: a name or a value is wrong.
    """
    if not isinstance(table, Mapping):
        raise InvalidSettingError(f"{where} must be a table of settings, not {quoted(table)}.")
    hints, settings = get_type_hints(kind, include_extras=True), dict(table)
    for name, value in table.items():
        require_known(f"setting in {where}", name, [one.name for one in fields(kind) if one.name != "path"])
        hint = hints[name]
        if isinstance(hint, type) and is_dataclass(hint):
            settings[name] = hint(**_checked(hint, value, f"[{name}] of {where}"))
            continue
        if get_origin(hint) is Literal:
            require_known(f"{name} in {where}", value, get_args(hint))
        try:
            msgspec.convert(value, hint)
        except msgspec.ValidationError as error:
            raise InvalidSettingError(f"The setting {name} in {where} cannot be {quoted(value)}: {error}.") from error
    return settings


# -- new studies -------------------------------------------------------------------------------------------------------

DOCUMENTS = Path(__file__).with_name("documents")
TEXTS = ("information", "debriefing")


def languages() -> list[str]:
    """Return the languages of templates and pages."""
    return sorted(path.suffixes[0][1:] for path in DOCUMENTS.glob("information.*.md"))


def new_study(study: str | Path, platform: str = "link", language: str = "en") -> list[Path]:
    """Write the files of a new study, and return their paths.

    Args:
        study: name of the study, or path of its settings file.
        platform: name of the recruiting platform.
        language: language of the texts.

    Raises:
        StoreError: a file exists already, or cannot be written.
        UnknownNameError, InvalidSettingError: the platform or language is unknown, or the name is not valid.
    """
    path = Path(study)
    path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
    name = checked_name(path.stem)
    require_known("platform", platform, PLATFORMS)
    require_known("language of the texts", language, languages())
    if not path.absolute().parent.is_dir():
        raise InvalidSettingError(f"The folder {path.absolute().parent} does not exist.")
    template = (DOCUMENTS / "study.toml").read_text(encoding="utf-8")
    files = {path: template.format(name=name, platform=platform, language=language)}
    for text in TEXTS:
        files[path.with_name(f"{name}-{text}.md")] = (DOCUMENTS / f"{text}.{language}.md").read_text(encoding="utf-8")
    if existing := [file for file in files if file.exists()]:
        raise StoreError(f"{existing[0]} exists already; choose another name for the study.")
    for file, content in files.items():
        write_atomically(file, content.encode())
    read_plan(path)
    return list(files)
