"""New studies: they can run as a pilot at once, and open when their texts are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from icy.core.errors import IcyError, InvalidSettingError
from icy.study.service import open_study, read_plan
from icy.study.service.plan import StudyPlan, languages, new_study
from icy.study.service.platforms import PLATFORMS


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_new_study_has_the_usual_settings(platform: str, tmp_path: Path) -> None:
    new_study(tmp_path / "pilot.toml", platform)
    found, usual = read_plan(tmp_path / "pilot"), StudyPlan(path=tmp_path / "pilot.toml").to_json()
    given = found.to_json()
    for name in ("information", "debriefing", "people", "platform"):
        del given[name], usual[name]
    assert given == usual
    assert found.platform.name == platform


@pytest.mark.parametrize("language", languages())
def test_a_new_study_runs_as_a_pilot_and_opens_without_todos(language: str, tmp_path: Path) -> None:
    paths = new_study(tmp_path / "pilot", language=language)
    open_study(read_plan(tmp_path / "pilot"))
    settings = paths[0].read_text().replace('state = "pilot"', 'state = "open"')
    paths[0].write_text(settings)
    with pytest.raises(InvalidSettingError, match="needs purpose, controller, contact and retention"):
        open_study(read_plan(paths[0]))
    paths[0].write_text(settings.replace("TODO: ", ""))
    with pytest.raises(InvalidSettingError, match=r"pilot-information\.md and pilot-debriefing\.md still contain"):
        open_study(read_plan(paths[0]))
    for path in paths[1:]:
        path.write_text(path.read_text().replace("TODO: ", ""))
    assert open_study(read_plan(paths[0])).plan.state == "open"


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
    new_study(tmp_path / "pilot")
    with pytest.raises(IcyError, match="exists already"):
        new_study(tmp_path / "pilot")
    (tmp_path / "other-information.md").write_text("mine")
    with pytest.raises(IcyError, match="exists already"):
        new_study(tmp_path / "other")
    assert not (tmp_path / "other.toml").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("Pilot",), "lowercase letters"),
        (("pilot", "prolifik"), "did you mean prolific"),
        (("pilot", "link", "fr"), "No language of the texts is called 'fr'"),
        (("no/folder/pilot",), "does not exist"),
    ],
)
def test_invalid_arguments_are_refused(given: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(IcyError, match=message):
        new_study(tmp_path / given[0], *given[1:])
