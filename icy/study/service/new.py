"""New studies: the settings file and the texts, from templates."""

from __future__ import annotations

from pathlib import Path

from icy.core.errors import InvalidSettingError, StoreError, require_known, unknown
from icy.core.files import write_atomically

from .plan import checked_name, read_plan
from .platforms import PLATFORMS

DOCUMENTS = Path(__file__).with_name("documents")
TEXTS = ("information", "debriefing")


def languages() -> list[str]:
    """Return the languages with templates."""
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
    if language not in languages():
        raise unknown("language of the texts", language, languages())
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
