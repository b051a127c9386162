"""Text models as players of the study: what they read, and what they type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import icy
from icy.analysis.people import published_accuracies
from icy.analysis.tables.study import people_distances
from icy.core.errors import UnknownNameError
from icy.core.register import register_text_model
from icy.study.game import StudyGame, StudyGameSettings, dataset, instance_of
from icy.study.players.player import StudySeat, play
from icy.study.players.simulated import Memoriser
from icy.study.players.text import TextPlayer
from icy.study.rows import rows_of_long
from icy.text.interface import Answer, Question
from tests.text.conftest import no_proxy as no_proxy
from tests.text.server import failed, said, serving

pytestmark = pytest.mark.usefixtures("forgetting")


@pytest.fixture(autouse=True)
def reader() -> None:
    """A model that looks the shape up in the screens, and copies the first code for a new one."""

    def reply(question: Question) -> Answer:
        prompt = str(question.prompt)
        asked = re.findall(r"Test: (\w+ \w+)\. What is the code of this shape\?$", prompt, re.MULTILINE)
        seen = re.findall(r": (\w+ \w+)\..*?(?:Code: |right code is )([a-z]+)", prompt)
        return Answer(f"Its code is {dict(reversed(seen)).get(asked[-1], seen[0][1])}.")

    register_text_model("reader")(lambda name, settings: reply)


def test_it_reads_all_that_people_see() -> None:
    settings = StudyGameSettings.of("clean", dataset="synth", grammar="perm")
    game = StudyGame(settings, instance_of(settings, 0), seed=3)
    text, memory = (play(game, player, seed=3).state for player in (TextPlayer("reader", cache="none"), Memoriser()))
    shown = [(trial.meaning, trial.correct) for trial in text.trials if trial.held_out is None]
    assert shown == [(trial.meaning, trial.correct) for trial in memory.trials if trial.held_out is None]
    assert all(correct for _, correct in shown)


def test_screens_are_those_of_people() -> None:
    player = TextPlayer("reader", cache="none")
    player.begin(StudySeat(dataset("synth"), 0))
    player.learn((0, 1), "abcd")
    assert player.answer((0, 1)) == "abcd"
    player.learn((0, 1), "abcd")
    assert player.answer((2, 2)) == "abcd"
    player.learn((2, 2), "bbbb")
    assert player.screens[0] == "Secret Spy Codes"
    assert "a word of 4 letters" in player.screens[1]
    assert player.screens[2:] == [
        "",
        "Train: red triangle. Code: abcd",
        "Test: red triangle. What is the code of this shape? You typed: abcd. Yes!",
        "Test: blue square. What is the code of this shape? You typed: abcd. No. The right code is bbbb.",
    ]


READ = {
    "abcd": "abcd", "I think:\n**ABCD**": "abcd", "The code is dcba.": "dcba", "<think>aaaa</think>bbbb": "bbbb",
    "I do not know it": "know", "": "a", "abc": "a", "<think>abcd": "a", "12": "a",
}  # fmt: skip


@pytest.mark.parametrize("place", range(len(READ)))
def test_answers_are_read(place: int) -> None:
    text, typed = [*READ.items()][place]
    register_text_model(f"fixed{place}")(lambda name, settings: lambda question: Answer(text))
    player = TextPlayer(f"fixed{place}", cache="none")
    player.begin(StudySeat(dataset("synth"), 0))
    assert player.answer((0, 0)) == typed
    assert player.unreadable == (typed == "a")
    with pytest.raises(UnknownNameError, match="option of a text model"):
        TextPlayer("reader", cold=True)


def test_servers_play_the_same_instances(tmp_path: Path) -> None:
    """The rows are those of other players; a second run asks for nothing, and a failure ends the run."""
    options: dict[str, Any] = {"dataset": "synth", "grammar": "concat", "instances": 1, "out": tmp_path / "games"}
    options |= {"options": {"cache": str(tmp_path / "cache")}, "workers": 1}
    with serving(lambda asked: said("abcd")) as server:
        found = icy.train("study", player=f"text:{server.url}#x", **options)
        (record,) = found.records
        asked = len(server.asked)
        icy.train("study", player=f"text:{server.url}#x", **{**options, "rerun": "always"})
        assert len(server.asked) == asked + 1  # a game asks which model answers
    assert (record["model"], record["steps"]) == (f"text:{server.url}#x", 50)
    rows = rows_of_long(found.to_dataframe())
    assert set(rows["agent_kind"]) == {"model"}
    with serving(lambda asked: failed(400)) as server, pytest.raises(icy.IcyError, match="status 400"):
        icy.train("study", player=f"text:{server.url}#y", **options)


def test_distances_to_people_are_those_of_searches() -> None:
    people = published_accuracies().part("synth")
    about = {"agent_kind": "model", "agent": "m", "protocol": "played", "preset": "clean", "dataset": "synth"}
    exact = {"metric": "exact", "split": "held-out"}
    rows = pd.DataFrame(
        {**about, **exact, "grammar": grammar, "instance": number, "value": mean + 0.1}
        for (_, grammar), mean in zip(people.conditions, people.means, strict=True)
        for number in range(2)
    )
    (found,) = people_distances(rows).to_dict("records")
    assert found["distance"] == pytest.approx(0.1)
    assert found["ceiling"] == people.ceiling().value
    assert not len(people_distances(rows[rows["grammar"] != "rot"]))
