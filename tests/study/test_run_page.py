"""docs/study-run.md shows the output of icy: its commands run in order, after three robots have played."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from icy.cli import main
from icy.study import service
from icy.study.players.simulated import ConstantPlayer, FamilyComposer
from icy.study.service import open_study, read_plan
from icy.study.service.persons import slots
from tests.study.service.helpers import Clock
from tests.study.service.robot import Robot
from tests.study.service.web.helpers import browsing

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "study-run.md").read_text()
ALIKE = (  # text that varies from run to run, and its replacement
    (r"\b[0-9A-F]{8}\b", "NAME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME"),
    (r"\d+(\.\d+)?", "0"),
    (r" +", " "),
)


class Slow(Clock):
    """A clock for slow readers: every call moves it by two seconds."""

    def __call__(self) -> Any:
        self.time += timedelta(seconds=2)
        return super().__call__()


def shown() -> list[tuple[str, str]]:
    """Every command of the page with the output below it; "" for no output."""
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    found: list[tuple[str, str]] = []
    for (language, text), (following, output) in pairwise([*blocks, ("end", "")]):
        if language == "sh":
            commands = [line.partition("    #")[0] for line in text.splitlines()]
            found += [(command, "") for command in commands[:-1]]
            found.append((commands[-1], output if following == "" else ""))
    return found


def alike(text: str) -> list[str]:
    """Lines with the varying text replaced."""
    for pattern, given in ALIKE:
        text = re.sub(pattern, given, text)
    return [line.strip() for line in text.strip().splitlines()]


def play_pilot() -> None:
    """Let two people who find the rule, and one person who always types the same code, take part in the pilot."""
    of = open_study(read_plan("pilot"), Slow())
    places = slots(of.plan.conditions)
    for seed, player in enumerate((FamilyComposer(), FamilyComposer(), ConstantPlayer())):
        robot = Robot(player, next(places).game.content, seed, looks=3)
        with browsing(of) as browser:
            browser.let(robot)
    of.database.close()


@pytest.mark.docs
def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    served = iter([play_pilot, lambda: None])  # the pilot, and then the study behind a proxy
    monkeypatch.setattr(service, "listening", lambda _: None)
    monkeypatch.setattr(service, "serve", lambda *_: next(served)())
    monkeypatch.setenv("ICY_STUDY_PASSWORD", "x")
    commands, names = shown(), dict[str, str]()
    for command, wanted in commands:
        if command.startswith(("pip", "export")):
            continue
        if "spy-codes" in command:
            open_spy_codes(tmp_path)
        for written, name in names.items():
            command = command.replace(written, name)
        done = CliRunner().invoke(main, shlex.split(command)[1:])
        assert done.exit_code == 0, (command, done.output)
        output = done.output.replace("Stopped; all recorded data is saved.\n", "")
        if wanted:
            assert alike(output) == alike(wanted), command
        if command == "icy study review pilot":
            names = dict(zip(*(re.findall(r"(?m)^[0-9A-F]{8}\b", text) for text in (wanted, output)), strict=True))
    assert len([wanted for _, wanted in commands if wanted]) >= 9


def open_spy_codes(folder: Path) -> None:
    """Write an open study, as the page says: the files of the pilot with their TODOs filled in."""
    for name in ("pilot.toml", "pilot-information.md", "pilot-debriefing.md"):
        text = (folder / name).read_text().replace("TODO", "done").replace('state = "pilot" ', 'state = "open" ')
        (folder / name.replace("pilot", "spy-codes")).write_text(text.replace("pilot-", "spy-codes-"))
