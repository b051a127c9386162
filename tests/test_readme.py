"""What the README shows is what icy does."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from icy.cli import main
from icy.config.specs import SweepSpec
from icy.core.registry import registry
from icy.experiments.sweep import make_sweep, read_sweep
from icy.testing import check_model

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The fenced blocks in a language, "" for none."""
    fenced = README.split("\n```")[1::2]
    return [rest for name, _, rest in (block.partition("\n") for block in fenced) if name == language]


@pytest.mark.usefixtures("forgetting")
def test_its_plug_in_keeps_the_contract(tmp_path: Path) -> None:
    (block,) = [b for b in blocks("python") if b.startswith("# mine.py")]
    (tmp_path / "mine.py").write_text(block)
    registry.load_file(tmp_path / "mine.py")
    check_model("sender/SquaredLinear")


@pytest.mark.parametrize(
    "command",
    [
        "show all --meanings 3x4 --word-length 2 --seed 123",
        "list presets",
        "metrics all --meanings 3x5 -m topsim -m posdis -m hce -m tre",
        "s2b eval --listener binding --listener nearest --listener random --samples 1,4 --episodes 50 --seeds 3",
        "table benchmarks/reproduced/replicates.parquet -m FC2L -g rot -g shufdet --where protocol=acquire "
        "--spread sem --compare icy22/table3",
    ],
    ids=["show", "presets", "metrics", "s2b", "table"],
)
def test_what_it_prints(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert command in README.replace("\n", " ")
    printed = CliRunner().invoke(main, command.split()).stdout.strip().splitlines()
    (shown,) = [b.strip().splitlines() for b in blocks("") if b.strip().splitlines()[0] == printed[0]]
    assert [line.rstrip() for line in printed] == [line.rstrip() for line in shown]


def test_the_episode_it_begins() -> None:
    printed = CliRunner().invoke(main, ["s2b", "play", "--seed", "7", "--no-pause"]).stdout
    (shown,) = [b for b in blocks("") if b.startswith("Episode of seed 7")]
    assert printed.startswith(shown.strip())


def test_its_sweep_can_be_planned(tmp_path: Path) -> None:
    (block,) = blocks("toml")
    (tmp_path / "zoo.toml").write_text(block)
    plan = make_sweep(sweep_spec(**read_sweep(tmp_path / "zoo.toml")))
    assert {row.job.task.side for row in plan.rows} == {"sender", "receiver"}
    assert len(plan.rows) > 50


def test_every_command_it_names_exists() -> None:
    commands = {line.split()[1] for block in blocks("") for line in block.splitlines() if line.startswith("icy ")}
    assert {"probe", "list", "show", "generate", "check", "doctor"} <= commands
    assert commands <= set(main.list_commands(click.Context(main)))
