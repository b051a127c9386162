"""A new study: its settings file, and the texts to be written."""

from __future__ import annotations

from pathlib import Path

from icy.core.errors import InvalidSettingError, StoreError, unknown
from icy.core.files import write_atomically

from .plan import checked_name, read_plan
from .platforms import PLATFORMS

DOCUMENTS = Path(__file__).with_name("documents")
TEXTS = ("information", "debriefing")


def languages() -> list[str]:
    """Return the languages that there are texts in."""
    return sorted(path.suffixes[0][1:] for path in DOCUMENTS.glob("information.*.md"))


def new_study(given: str | Path, platform: str = "link", language: str = "en") -> list[Path]:
    """Write the files of a new study, and return their paths.

    Args:
        given: name of the study, or path of its settings file.
        platform: where people will come from.
        language: of the texts.

    Raises:
        StoreError: a file is there already, or cannot be written.
        UnknownNameError, InvalidSettingError: no such platform or language, or no name for a study.
    """
    path = Path(given)
    path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
    name = checked_name(path.stem)
    if platform not in PLATFORMS:
        raise unknown("platform", platform, list(PLATFORMS))
    if language not in languages():
        raise unknown("language of the texts", language, languages())
    if not path.absolute().parent.is_dir():
        raise InvalidSettingError(f"The folder {path.absolute().parent} does not exist.")
    template = (DOCUMENTS / "study.toml").read_text(encoding="utf-8")
    files = {path: template.format(name=name, platform=platform, language=language)}
    for text in TEXTS:
        files[path.with_name(f"{name}-{text}.md")] = (DOCUMENTS / f"{text}.{language}.md").read_text(encoding="utf-8")
    if there := [file for file in files if file.exists()]:
        raise StoreError(f"{there[0]} is there already; choose another name for the study.")
    for file, content in files.items():
        write_atomically(file, content.encode())
    read_plan(path)
    return list(files)
