"""The commands of a study that is run: from its files to payments, and what they say of mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from icy.study import service as serving
from icy.study.service import open_study, read_plan
from icy.study.service.links import count_refusal
from tests.cli.helpers import assert_one_sentence, run
from tests.study.service.helpers import GAME, finish, person, rows, started

SETTINGS = f"""
[conditions]
dataset = ["eng"]
grammar = ["concat"]
game = {{examples = {GAME["examples"]}, held_out_at = {GAME["held_out_at"]}}}
[people]
most_bonus_cents = 100
[platform]
name = "prolific"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study that one person has finished, and another has begun."""
    monkeypatch.chdir(tmp_path)
    assert run("study", "new", "pilot").exit_code == 0
    (tmp_path / "pilot.toml").write_text(SETTINGS)
    of = open_study(read_plan("pilot"))
    finish(of, started(of, "WORKER-1"), "redcir")
    started(of, "WORKER-2")
    return tmp_path


def test_a_new_study_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("study", "new", "first.toml", "--platform", "mturk", "--language", "de")
    assert result.exit_code == 0
    assert "icy study serve first.toml" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "first-debriefing.md",
        "first-information.md",
        "first.toml",
    ]
    assert read_plan("first").platform.name == "mturk"


def test_status_counts(home: Path) -> None:
    (found,) = json.loads(run("study", "status", "pilot", "--format", "json").stdout)
    assert (found["condition"], found["wanted"], found["finished"], found["playing"]) == ("eng/concat", "20", "1", "1")
    assert "2 persons have agreed to take part, 1 finished" in run("study", "status", "pilot.toml").stderr
    (found,) = json.loads(run("study", "status", "pilot", "--no-pilot", "--format", "json").stdout)
    assert found["finished"] == "0"


def test_check_tells_and_fails(home: Path) -> None:
    result = run("study", "check", "pilot")
    assert (result.exit_code, result.stdout) == (0, "2 games and 7 items: no errors.\n")
    of = open_study(read_plan("pilot"))
    with of.database.writing() as connection:
        connection.execute("UPDATE game SET score = 99")
    result = run("study", "check", "pilot")
    assert result.exit_code == 1
    assert "The column score has 99" in result.stdout


def test_export_and_report_go_together(home: Path) -> None:
    result = run("study", "export", "pilot", "-o", "data")
    assert result.exit_code == 0, result.output
    assert (home / "data" / "codebook.md").exists()
    assert "WORKER" not in "".join(path.read_text() for path in (home / "data").iterdir())
    assert "WORKER-1" not in (home / "data" / "games.csv").read_text()
    report = run("study", "report", "--rows", "data/rows.csv")
    assert report.exit_code == 0, report.output
    assert "people" in report.stdout
    assert run("study", "export", "pilot", "--with-ids", "--format", "json").exit_code == 0
    assert "WORKER-1" in (home / "pilot-data" / "games.json").read_text()
    assert run("study", "export", "pilot", "--backup", "copy.sqlite").exit_code == 0
    assert_one_sentence(run("study", "export", "pilot", "--backup", "copy.sqlite"), "exists already", code=1)


def test_review_decides_and_pays(home: Path) -> None:
    (shown,) = json.loads(run("study", "review", "pilot", "--format", "json").stdout)
    assert (shown["condition"], shown["odd"], shown["decision"]) == ("eng/concat", "same answer", "-")
    name = shown["person"]
    said = run("study", "review", "pilot", "--approve", "all").stderr
    assert said == f"Approved: 0 games. 1 undecided game is odd: decide on {name} by name.\n"
    (shown,) = json.loads(
        run("study", "review", "pilot", "--reject", f"{name}=always the same", "--format", "json").stdout
    )
    assert shown["decision"] == "reject"
    result = run("study", "review", "pilot", "--approve", name, "--pay", "pay")
    assert result.exit_code == 0, result.output
    assert (home / "pay" / "pilot-prolific-approve.txt").read_text() == "WORKER-1\n"
    said = run("study", "review", "pilot", "--approve", "all").stderr
    assert said == "Approved: 0 games. 1 finished game has been decided already.\n"
    assert_one_sentence(run("study", "review", "pilot", "--approve", name), "was exported")
    assert_one_sentence(run("study", "review", "pilot", "--reject", name), "A rejection needs a reason")
    assert_one_sentence(run("study", "review", "pilot", "--approve", "zz"), "No person with a finished game")


def test_approving_all_of_nothing_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("study", "new", "pilot")
    of = open_study(read_plan("pilot"))
    said = run("study", "review", "pilot", "--approve", "all").stderr
    assert said == "Approved: 0 games. No game is finished.\n"
    person(of)
    assert run("study", "review", "pilot", "--approve", "all").stderr == said


@pytest.mark.parametrize("data", [(), ("--data",)])
def test_forget_erases(data: tuple[str, ...], home: Path) -> None:
    result = run("study", "forget", "pilot", "WORKER-1", *data)
    assert result.exit_code == 0, result.output
    of = open_study(read_plan("pilot"))
    assert [row["external"] for row in rows(of, "SELECT external FROM external_id")] == ["WORKER-2"]
    assert len(rows(of, "SELECT * FROM game")) == (1 if data else 2)
    assert_one_sentence(run("study", "forget", "pilot", "WORKER-1"), "No person is called")


def test_serve_says_where_and_hands_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    monkeypatch.setattr(serving, "app_of", lambda studies, how: given.extend([*studies, how]))
    monkeypatch.setattr(serving, "listening", lambda how: None)
    monkeypatch.setattr(serving, "serve", lambda app, how, at: None)
    monkeypatch.setenv("ICY_STUDY_PASSWORD", "secret")
    words = ("--base-url", "https://study.example", "--root-path", "/spy", "--behind-proxy", "--researcher")
    result = run("study", "serve", "pilot", *words)
    assert result.exit_code == 0, result.output
    assert "pilot (pilot): https://study.example/spy/pilot\n" in result.stderr
    assert result.stderr.endswith("Stopped; all recorded data is saved.\n")
    assert "secret" not in result.output
    study, how = given
    assert (study.name, how.password, how.behind_proxy) == ("pilot", "secret", True)
    assert person(study, "WORKER-1").stage == "game"


def test_serve_wants_the_link_tested_and_can_go_without(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "listening", lambda how: None)
    monkeypatch.setattr(serving, "serve", lambda app, how, at: None)
    texts = "people = {purpose = 'a', controller = 'b', contact = 'c', retention = 'd'}\n"
    for text in ("information", "debriefing"):
        (home / f"spy-codes-{text}.md").write_text("Hello.")
    (home / "spy-codes.toml").write_text(f'state = "open"\n{texts}[platform]\nname = "prolific"\n')
    base = ("study", "serve", "spy-codes", "--base-url", "https://study.example/", "--root-path", "/spy")
    said = run(*base).stderr
    assert "Nobody can take part in spy-codes until its link is tested." in said
    ids = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    assert re.search(rf" https://study.example/spy/spy-codes\?{re.escape(ids)}&icy_test=[0-9A-F]{{32}}\n", said)
    assert run(*base).stderr == said
    assert "Warning: Nobody can take part yet" in run("study", "status", "spy-codes").stderr
    assert "before its link is tested" not in run(*base, "--skip-link-test").stderr
    assert "before its link is tested" not in run(*base).stderr
    assert "Warning" not in run("study", "status", "spy-codes").stderr


def test_status_warns_of_links_that_were_not_filled_in(home: Path) -> None:
    of = open_study(read_plan("pilot"))
    for reason in ("placeholder", "placeholder", "malformed", "full"):
        count_refusal(of, reason)
    said = " ".join(run("study", "status", "pilot").stderr.split())
    assert "Warning: 3 visits were turned away because of the link: 2 had a placeholder instead of an id" in said
    assert "and 1 had an id that does not match the platform; the last was at 2" in said


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (("status", "nothing"), "`icy study new nothing.toml` creates it", 1),
        (("serve", "nothing"), "`icy study new nothing.toml` creates it", 1),
        (("serve", "pilot", "--host", "0.0.0.0", "--researcher"), "needs a password", 2),
        (("serve", "pilot", "--base-url", "x"), "must be like https://study.example", 2),
        (("new", "Pilot"), "lowercase letters, digits and hyphens", 2),
        (("new", "pilot"), "exists already", 1),
        (("new", "other", "--platform", "prolifc"), "did you mean prolific", 2),
        (("forget", "pilot", "nobody"), "No person is called 'nobody'", 2),
        (("review", "pilot", "--pay", "x"), "There is nothing to pay", 2),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else None,
)
def test_mistakes_are_errors_in_one_sentence(words: tuple[str, ...], said: str, code: int, home: Path) -> None:
    result = run("study", *words)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_study_that_was_never_served_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("study", "new", "pilot")
    assert_one_sentence(run("study", "status", "pilot"), "`icy study serve` creates it", code=1)
    run("study", "new", "other")
    open_study(read_plan("pilot")).database.close()
    assert_one_sentence(run("study", "check", "other"), "does not have the study 'other'; it has pilot", code=1)


@pytest.mark.slow
def test_nothing_of_the_web_is_imported_for_help_and_lists() -> None:
    code = (
        "import sys, icy; from icy.cli import main\n"
        "for words in (['--help'], ['list', 'grammars'], ['study', '--help'], ['study', 'status', '--help']):\n"
        "    try: main(words, standalone_mode=False)\n"
        "    except SystemExit: pass\n"
        "print('found', sorted({'starlette', 'uvicorn', 'jinja2', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.strip().endswith("found []")
