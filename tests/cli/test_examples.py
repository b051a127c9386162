"""Examples of help texts and pages: every one is a command that exists, with names that are known.

What trains is planned and not trained; what is quick runs on a small results folder; the rest is parsed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

import icy
from icy.analysis.atlas.atlas import Atlas
from icy.cli import main, session
from icy.core.registry import registry
from icy.experiments.plan import Plan
from icy.experiments.results import ProbeResult
from icy.records.load import long_of
from icy.records.pack import Pack
from tests.analysis.plots.helpers import MODELS, acquire, budget
from tests.cli.helpers import run
from tests.helpers import readable
from tests.pages import PAGES, code, shell_commands
from tests.pages import commands as commands_of

TRAINING = ("probe", "sweep", "e2e", "reproduce")
QUICK = ("list", "show", "generate", "atlas", "table", "plot", "pack")  # are run; others are parsed
KINDS = {  # of names, by parameter
    "metric": ("metric",),
    "speaker": ("speaker",),
    "listener": ("listener",),
    "names": ("sender", "receiver", "cell", "grammar", "metric", "speaker", "listener"),
}
RESULTS = "results/"  # a folder of trained agents
FREE = ("me", "all", "mine")  # a player at the keyboard, everything, one of a plug-in's
PLUG_IN = """
import torch, icy
class Sum(torch.nn.Module):
    def __init__(self, space, message_length, vocab_size, hidden_size, layers=1, **options):
        super().__init__()
        self.shape = (message_length, vocab_size + 1)
        self.embed = torch.nn.Embedding(space.attributes * space.values, message_length * (vocab_size + 1))
    def forward(self, meanings):
        return self.embed(meanings).sum(1).unflatten(-1, self.shape)
@icy.register_sender('MyModel')
class MyModel(Sum):
    'A sum of embeddings.'
@icy.register_sender('Bottleneck')
class Bottleneck(Sum):
    'A sum of embeddings.'
"""


WINNER = """
import icy
@icy.register_sender('Winner')
def winner(space, message_length, vocab_size, hidden_size):
    'A winner of a search.'
    return icy.create_sender('Steps', space, message_length, vocab_size, hidden_size)
"""


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with its words."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, (*words, name))


@cache
def examples() -> dict[str, str]:
    """Return the examples of help texts and the commands in blocks of pages, each with its page and line."""
    found = [
        (f"icy {' '.join(words)} --help", line)
        for words, command in commands(main)
        for line in re.findall(r"^ +(icy .+)$", command.epilog or "", re.MULTILINE)
    ]
    found += [item for page in PAGES for item in shell_commands(page, "sh")]
    found += [(place, line) for place, line in commands_of("README.md") if "--plugin" not in line]
    return {line: place for place, line in reversed(found)}


def kind_of(line: str) -> str:
    """Return "training" for commands that train, "quick" for commands that take a second, and "other"."""
    words = line.split()[1:]
    if words[:2] == ["reproduce", "icy22/table9"]:  # which trains nothing, and takes half a minute
        return "other"
    if (words[0] in TRAINING or words[:2] == ["s2b", "train"]) and "--list" not in words:
        return "training"
    if words[:3] == ["plot", "tradeoff", "atlas"] or words[:2] in (["plot", "chain_curves"], ["plot", "chain_paths"]):
        return "other"  # the first takes 10 s, and the others need chains
    return "quick" if words[0] in QUICK else "other"


def folder(path: Path, result: ProbeResult) -> None:
    """Write a results folder."""
    (path / "records").mkdir(parents=True)
    for record in map(readable, result.records):
        (path / "records" / f"{record['key']}.json").write_text(json.dumps(record))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the examples name."""
    home = tmp_path_factory.mktemp("home")
    make_home(home)
    return home


def make_home(home: Path) -> None:
    """Write everything that the examples name; `.ci/net` also runs them."""
    models = [*MODELS, "sender/FC1L", "sender/RNNZero:GRU", "sender/RNNAutoReg:GRU", "sender/HierZero:LSTM"]
    both = ProbeResult([
        {**record, "meanings": "5x10", "word_length": 4, "hidden_size": 128, "versions": {"icy": "1"}, "device": "cpu"}
        for record in (budget(models) + acquire(models)).records
    ])  # fmt: skip
    for name in ("bias", "icy-results", "mine", "my-results", "plain", "tuned", "shard-1", "shard-2", "context"):
        folder(home / name, both)
    icy.probe(["sender/FC1L", "receiver/FC1L"], "perm", quick=True, keep_models=True, workers=1, out=home / "kept")
    (home / "elsewhere").mkdir()
    long_of(acquire()).to_csv(home / "elsewhere" / "results.csv", index=False)
    Atlas.of(both.records, "mine").save(home / "mine.parquet")
    Pack.read(home / "bias").write(home / "bias.parquet")
    icy.make_language("perm", "3x4", 4, 2, 1).save(home / "emerged.csv")
    (home / "mine.py").write_text(PLUG_IN)
    (home / "tumors.csv").write_text("radius,diagnosis\n0,benign\n1,benign\n2,malignant\n")
    (home / "steps.py").write_text(code("docs/architecture-search.md")[0])
    (home / "found").mkdir()
    (home / "found" / "winner.py").write_text(WINNER)
    for block in (block for page in PAGES if page.startswith("docs/plug-ins") for block in code(page)):
        if named := re.match(r"# (my_\w+\.py)\n", block):
            (home / named[1]).write_text(block)
    (sweep,) = code("docs/sweeps.md", "toml")
    (home / "zoo.toml").write_text(sweep)


class Planned(Exception):
    """What would be trained."""


@pytest.fixture
def planning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that train end when they have a plan."""

    def stop(plan: Plan) -> None:
        assert plan.rows
        raise Planned

    monkeypatch.setattr(session, "run_watched", lambda plan, *rest: stop(plan))
    monkeypatch.setattr(session, "print_plan", lambda plan, *rest: stop(plan))


def unknown_names(given: dict[str, Any]) -> list[str]:
    """The names among the arguments of a command that nothing has."""
    found = []
    for name, kinds in KINDS.items():
        asked = given.get(name) or ()
        given_at_once = (asked,) if isinstance(asked, str) else asked
        for one in (word for words in given_at_once for word in words.split(",")):
            if one.startswith(RESULTS):
                continue
            kind, _, rest = one.rpartition("/")
            wanted = (kind,) if kind else kinds
            found += [one] if one not in FREE and not registry.match([rest], *wanted) else []
    return found


def parsed(words: list[str]) -> dict[str, Any]:
    """The arguments of a command, as it takes them."""
    context, command = click.Context(main), main
    while isinstance(command, click.Group) and words:
        inner = command.get_command(context, words[0])
        assert inner is not None, words
        command, words = inner, words[1:]  # type: ignore[assignment]
    return command.make_context("icy", words).params


@contextmanager
def example(line: str, home: Path, folder: Path) -> Iterator[list[str]]:
    """Work in a new folder with all files of `home`, and forget afterwards which plug-ins the example registers."""
    folder.mkdir()
    for file in home.iterdir():
        (folder / file.name).symlink_to(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(registry, "_entries", dict(registry._entries))
        patch.setattr(registry, "plugin_files", list(registry.plugin_files))
        yield shlex.split(line, comments=True)[1:]


def each(kind: str) -> list[tuple[int, str, str]]:
    """Return number, place and line of the examples of a kind."""
    return [(n, place, line) for n, (line, place) in enumerate(examples().items()) if kind_of(line) == kind]


@pytest.mark.docs
@pytest.mark.usefixtures("planning", "forgetting")
def test_examples_that_train_can_be_planned(home: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, place, line in each("training"):
        with subtests.test(f"{place}: {line}"), example(line, home, tmp_path / str(number)) as words:
            result = run(*words)
            assert isinstance(result.exception, Planned), result.output


@pytest.mark.docs
@pytest.mark.usefixtures("forgetting")
def test_quick_examples_run(home: Path, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, place, line in each("quick"):
        with subtests.test(f"{place}: {line}"), example(line, home, tmp_path / str(number)) as words:
            result = run(*words)
            assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("forgetting")
def test_examples_parse_and_their_names_are_known(subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load_file", lambda file: None)  # plug-ins of the reader
    for line, place in examples().items():
        with subtests.test(f"{place}: {line}"):
            given = parsed(shlex.split(line, comments=True)[1:])
            assert kind_of(line) != "other" or "--plugin" in line or unknown_names(given) == []


def test_there_are_examples_of_every_command() -> None:
    assert len(examples()) > 80
    helps = {words: command.epilog or "" for words, command in commands(main) if words}
    assert not [words for words, text in helps.items() if f"icy {' '.join(words)}" not in text], "has no example"
