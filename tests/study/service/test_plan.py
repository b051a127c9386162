"""Settings files of studies: accepted settings and error messages; new studies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.study.service import open_study
from icy.study.service.plan import Conditions, StudyPlan, languages, new_study, plan_of, plan_path, read_plan
from icy.study.service.platforms import PLATFORMS
from tests.study.service.helpers import plan


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"titel": "x"}, "No setting in pilot.toml is called 'titel'; did you mean title"),
        ({"pages": {"demographic": True}}, "did you mean demographics?"),
        ({"title": 5}, "The setting title in pilot.toml cannot be 5: Expected `str`, got `int`."),
        ({"state": "opened"}, "No state in pilot.toml is called 'opened'; did you mean open or closed?"),
        ({"conditions": 5}, "[conditions] of pilot.toml must be a table of settings, not 5."),
        (
            {"conditions": {"quota": -1}},
            "setting quota in [conditions] of pilot.toml cannot be -1: Expected `int` >= 0",
        ),
        ({"conditions": {"grammar": ["cncat"]}}, "did you mean concat?"),
        ({"conditions": {"dataset": ["end"]}}, "did you mean eng?"),
        ({"conditions": {"grammar": []}}, "A study needs at least one condition"),
        ({"conditions": {"grammar": ["concat", "comp"]}}, "each named once"),
        ({"conditions": {"quotas": {"eng/rto": 5}}}, "No condition is called 'eng/rto'; did you mean eng/rot"),
        ({"conditions": {"game": {"example": 5}}}, "did you mean examples?"),
        ({"conditions": {"preset": "publish"}}, "did you mean published?"),
        ({"conditions": {"drop_after": 0}}, "cannot be 0: Expected `float` > 0.0"),
        ({"people": {"devices": ["laptop"]}}, "No kind of device is called 'laptop'"),
        ({"people": {"base_cents": 1.5}}, "Expected `int`, got `float`"),
        ({"display": {"palette": "save"}}, "No palette in [display] of pilot.toml is called 'save'; did you mean"),
        ({"platform": {"name": "prolifik"}}, "did you mean prolific"),
        ({"platform": {"codes": {"finished": "C1"}}}, "No outcome with a code is called 'finished'"),
        ({"platform": {"return_to": "http://example.org"}}, "must begin with https://"),
        ({"platform": {"id_pattern": "[0-9"}}, "must be a regular expression like '[0-9]{6}', not '[0-9'"),
        ({"platform": {"id_pattern": 6}}, "Expected `str`, got `int`"),
        ({"exclude": ["pilot"]}, "cannot exclude its own participants"),
        ({"name": "other"}, "The name of the file is the name of the study"),
    ],
)
def test_wrong_settings_are_reported_in_one_sentence(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(IcyError) as error:
        plan_of(settings, tmp_path / "pilot.toml")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["Pilot", "a b", "static", "-a", "a" * 41, "é"])
def test_names_are_parts_of_addresses(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="lowercase letters, digits and hyphens"):
        plan_of({}, tmp_path / f"{name}.toml")


def test_paths_that_are_not_settings_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("notes.txt").write_text("")
    for given, message in {
        "folder": "'folder' is a folder; name the settings file of a study, as in 'folder/pilot.toml'",
        ".": "'.' is a folder",
        "notes.txt": "'notes.txt' is not the settings file of a study",
        "nothing": "The study 'nothing.toml' does not exist; `icy study new nothing.toml` creates it",
    }.items():
        with pytest.raises(StoreError, match=re.escape(message)):
            read_plan(given)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="icy study new"):
        read_plan(tmp_path / "nothing")
    (tmp_path / "bad.toml").write_text("title = ")
    with pytest.raises(InvalidSettingError, match="is not TOML"):
        read_plan(tmp_path / "bad")
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(StoreError, match="it is not text in UTF-8"):
        read_plan(tmp_path / "latin.toml")
    assert plan_path(tmp_path / "bad") == tmp_path / "bad.toml"


def test_conditions_are_every_dataset_with_every_grammar() -> None:
    found = Conditions(grammar=["comp", "rot+perm"], quotas={"eng/rot+perm": 3})
    assert [name for name, _ in found.cells] == ["synth/concat", "synth/rot+perm", "eng/concat", "eng/rot+perm"]
    assert [found.quota_of(name) for name, _ in found.cells] == [20, 20, 20, 3]


def test_the_preset_and_changes_reach_the_game(tmp_path: Path) -> None:
    found = plan(tmp_path, conditions={"preset": "published", "game": {"held_out_feedback": "none"}})
    _, game = found.conditions.cells[0]
    assert (game.card_order, game.held_out_feedback) == ("by-colour", "none")


def test_the_digest_covers_the_content_of_pages_and_game(tmp_path: Path) -> None:
    usual = plan(tmp_path)
    same = plan(
        tmp_path,
        state="open",
        people={"base_cents": 5},
        conditions={"quota": 9, "quotas": {"eng/perm": 1}, "drop_after": 3.0},
    )
    assert usual.digest == same.digest
    for other in (
        {"conditions": {"grammar": ["concat"]}},
        {"conditions": {"list_seed": 1}},
        {"pages": {"colour_check": False}},
        {"display": {"palette": "safe"}},
        {"language": "de"},
    ):
        assert plan(tmp_path, **other).digest != usual.digest


def test_consent_texts_have_a_version(tmp_path: Path) -> None:
    usual = plan(tmp_path).consent_version
    assert plan(tmp_path, people={"retention": "ten years"}).consent_version != usual
    (tmp_path / "other.md").write_text("Something else.")
    assert plan(tmp_path, information="other.md").consent_version != usual


def test_an_open_study_needs_all_texts(tmp_path: Path) -> None:
    ready = plan(tmp_path, state="open")
    ready.check_ready()
    with pytest.raises(InvalidSettingError, match="needs controller and contact"):
        plan(tmp_path, state="open", people={"controller": " ", "contact": "TODO: name"}).check_ready()
    plan(tmp_path, people={"controller": ""}).check_ready()  # a pilot may be unfinished
    (tmp_path / "todo.md").write_text("TODO: who you are")
    with pytest.raises(InvalidSettingError, match=r"todo\.md still contains TODO"):
        plan(tmp_path, state="open", information="todo.md").check_ready()


# -- new studies -------------------------------------------------------------------------------------------------------


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
