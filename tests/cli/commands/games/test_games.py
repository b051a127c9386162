"""`icy games`: train, eval, show and language."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result

from icy.core.registry import registry
from tests.cli.helpers import run as icy_run

SMALL = [
    *("--rule-length", "2", "--targets", "3", "--updates", "8", "--seeds", "2", "--workers", "1"),
    *("--sender-hidden", "8", "--receiver-hidden", "8"),
    *("--world-options", "attributes=3", "--world-options", "values=4", "--set", "epoch=4", "--set", "turns=40"),
]


def icy(*words: str | Path) -> Result:
    return icy_run(*map(str, words))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two kept pairs of agents."""
    found = tmp_path_factory.mktemp("games")
    done = icy("games", "train", *SMALL, "--keep-models", "-o", found)
    assert done.exit_code == 0, done.output
    assert "agents of multi-target games" in done.output
    assert "accuracy" in done.output
    return found


@pytest.mark.slow
def test_train_takes_every_part_by_name(tmp_path: Path) -> None:
    given = ["--channel", "gs", "--sender", "HierZero:GRU", "--receiver", "FC2L", "--distractor-kind", "near"]
    given += ["--distractor-kind", "uniform", "--seeds", "1", "--steps", "4", "--game", "held_out=0.2"]
    done = icy("games", "train", *SMALL, *given, "-o", tmp_path, "--format", "json")
    assert done.exit_code == 0, done.output
    records = json.loads(done.stdout)
    assert {r["model"] for r in records} == {"HierZero:GRU+FC2L"}
    assert [r["grammar"] for r in records] == ["near", "near", "uniform", "uniform"]  # of 8 and of 4 steps
    assert records[0]["config"]["options"]["held_out"] == 0.2


@pytest.mark.slow
def test_train_plans(tmp_path: Path) -> None:
    shown = icy(
        "games", "train", *SMALL, "--representation", "gs", "--representation", "qt", "--dry-run", "-o", tmp_path
    )
    assert shown.exit_code == 0, shown.output
    assert "4" in shown.output
    assert not (tmp_path / "records").exists()
    assert (
        icy("games", "train", "--world", "thung").exit_code == 2
        or "did you mean thing" in icy("games", "train", "--world", "thung").output
    )


@pytest.mark.slow
def test_eval_has_a_row_per_agents(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    done = icy("games", "eval", "ideal", folder, "--game", "distractor_kind=uniform", "--turns", "30", "--out", file)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[4:6]] == ["ideal", "RNNAutoReg:LSTM+RNN1L:LSTM"]
    assert len(file.read_text().splitlines()) == 4
    one = icy("games", "eval", folder, "--where", "seed=124", "--format", "json")
    assert len(json.loads(one.stdout)) == 1


@pytest.mark.slow
def test_show_prints_the_messages(folder: Path, tmp_path: Path) -> None:
    done = icy("games", "show", folder, "--where", "seed=123", "--turns", "2", "--save", tmp_path / "turns.png")
    assert done.exit_code == 0, done.output
    assert done.output.count("best matching concepts: ") == 2
    assert (tmp_path / "turns.png").stat().st_size > 5000
    several = icy("games", "show", folder)
    assert "choose one, as in seed=123" in several.output
    images = icy("games", "show", "ideal", "--world", "shape", "--world-options", "canvas=16", "--game", "targets=3",
                 "--turns", "1", "--save", tmp_path / "images.png")  # fmt: skip
    assert images.exit_code == 0, images.output


@pytest.mark.slow
def test_language_is_translated_written_and_drawn(folder: Path, tmp_path: Path) -> None:
    said, picture = tmp_path / "said.jsonl", tmp_path / "translation.png"
    done = icy("games", "language", folder, "--where", "seed=123", "--out", said, "--plot", picture, "--format", "json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert {"word", "concept", "together"} == set(rows[0])
    assert all(set(row["word"]) <= {"0", "1"} for row in rows)  # bits of QT
    assert picture.stat().st_size > 5000
    measured = icy("metrics", said, "-m", "cbm", "-m", "ami", "--format", "json")
    of_folder = icy("metrics", folder, "-m", "cbm", "--format", "json")
    assert measured.exit_code == of_folder.exit_code == 0, of_folder.output
    together = sum(int(row["together"]) for row in rows)
    assert json.loads(measured.stdout)[0]["cbm"]["mean"] == pytest.approx(together / 80)


@pytest.mark.slow
def test_worlds_and_parts_of_a_plug_in(tmp_path: Path) -> None:
    file = tmp_path / "coins.py"
    file.write_text(
        "import torch, icy\n"
        "from icy.games import World\n\n"
        "@icy.register_world('coins')\n"
        "class Coins(World):\n"
        "    '''Coins of two metals and three values.'''\n"
        "    attributes, values, shape = ('metal', 'value'), (('gold', 'tin'), ('1', '5', '9')), (2,)\n"
        "    def observe(self, objects, keys):\n"
        "        return objects.float()\n"
    )
    entries, files = dict(registry._entries), list(registry.plugin_files)
    try:
        done = icy("games", "eval", "ideal", "--world", "coins", "--plugin", file, "--turns", "20", "--format", "csv")
        assert done.exit_code == 0, done.output
        small = [*SMALL[: SMALL.index("--world-options")], "--set", "epoch=4", "--set", "turns=40"]
        trained = icy("games", "train", "--world", "coins", "--plugin", file, *small, "--rule-length", "1",
                      "--seeds", "1", "--steps", "4", "-o", tmp_path / "out")  # fmt: skip
        assert trained.exit_code == 0, trained.output
        assert "coins" in trained.output
    finally:
        registry._entries, registry.plugin_files = entries, files
