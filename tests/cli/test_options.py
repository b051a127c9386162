"""Options that commands share, and names from records that others made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pandas as pd
import pytest

import icy
from icy.cli import main
from icy.cli.options import SPREADS, FilePath
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from icy.records.long_table import write_tables
from icy.records.store import Store
from tests.cli.helpers import FC2L, assert_one_sentence, run
from tests.golden import make_names

# -- options that commands share ---------------------------------------------------------------------------------------


def test_spreads_are_those_of_the_tables() -> None:
    from icy.analysis import table_cells

    assert tuple(table_cells.SPREADS) == SPREADS


def test_an_empty_place_of_results_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(run("table", ""), "not ''", code=1)
    with pytest.raises(InvalidSettingError, match="out must be a folder for results"):
        icy.probe("sender/FC2L", "perm", quick=True, workers=1, out="")
    assert not list(tmp_path.iterdir())


def options_of(command: click.Command) -> Iterator[click.Option]:
    """The options of a command and of those below it."""
    yield from (one for one in command.params if isinstance(one, click.Option))
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), name)
            assert below is not None
            yield from options_of(below)


def test_no_path_of_an_option_may_be_empty() -> None:
    files = [one for one in options_of(main) if isinstance(one.type, click.Path) or one.metavar in ("FILE", "FOLDER")]
    assert files
    assert all(isinstance(one.type, FilePath) for one in files)


def test_a_name_may_repeat_its_value() -> None:
    assert run(*FC2L, "--set", "check_every=5", "--set", "check_every=5", "--dry-run").exit_code == 0


WRITTEN = {  # options of every command that name its result, its picture and its page
    **dict.fromkeys(["sweep", "search", "context", "learner", "games train", "s2b recall", "s2b train"], "out"),
    **dict.fromkeys(["study simulate", "study export", "report", "table", "pack", "generate", "plot", "doctor"], "out"),
    **dict.fromkeys(["games eval", "s2b eoa", "s2b eval", "s2b language", "s2b record", "s2b text"], "out"),
    **dict.fromkeys(["probe", "e2e", "iterate", "metrics", "compare", "games language", "study report"], "out plot"),
    **dict.fromkeys(["games show", "s2b stimuli"], "plot"),
    "reproduce": "out page",
    "atlas": "out html",
}


def leaves(command: click.Command, *path: str) -> dict[str, click.Command]:
    """Return the commands below a command, by their words."""
    if not isinstance(command, click.Group):
        return {" ".join(path): command}
    below = {
        name: command.get_command(click.Context(command), name)
        for name in command.list_commands(click.Context(command))
    }
    return {words: leaf for name, one in below.items() if one for words, leaf in leaves(one, *path, name).items()}


def test_every_command_names_its_result_out_and_its_picture_plot() -> None:
    """The result is -o/--out, and a picture next to it --plot; --save is only the old name of one of them."""
    for words, command in leaves(main).items():
        options = {one.name: set(one.opts) for one in command.params if isinstance(one, click.Option)}
        names = {name for name in ("out", "plot", "page", "html") if name in options}
        assert names == set(WRITTEN.get(words, "").split()), words
        assert "out" not in names or {"-o", "--out"} <= options["out"], words
        assert "save" not in options, words
        if any("--save" in names for names in options.values()):
            text = run(*words.split(), "--help").output.partition("Examples:")[0]
            assert "--save" not in text, words


@pytest.mark.slow
def test_old_names_of_files_write_them(tmp_path: Path) -> None:
    for flag in ("-o", "--out", "--save"):
        file = tmp_path / f"{flag.strip('-')}.png"
        assert run("plot", "heat", "atlas", "-m", "sender/FC2L", flag, str(file), "-q").exit_code == 0
        assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "same"), [("4", ("--least", "4", "--most", "4")), ("3-4", ("--least", "3", "--most", "4"))]
)
def test_values_of_trained_agents_are_named_as_in_other_commands(given: str, same: tuple[str, ...]) -> None:
    words = ("s2b", "train", "--quick", "--dry-run", "--format", "json", "-q", "--seeds", "1")
    shown, expected = (run(*words, *more) for more in (("--values", given), same))
    assert shown.exit_code == 0, shown.output
    fields = ("model", "parameters", "to_train")
    assert [[one[n] for n in fields] for one in json.loads(shown.stdout)] == [
        [one[n] for n in fields] for one in json.loads(expected.stdout)
    ]


# -- names from records that others made, through the commands that print them -----------------------------------------


FORMULA = "=HYPERLINK(1)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results of a model and a grammar with names that no registry would take; texts: `tests/golden/table.txt`."""
    monkeypatch.chdir(tmp_path)
    make_names()
    return tmp_path / "names"


def test_pages_and_notebooks(folder: Path) -> None:
    for shown in (run("table", str(folder), "--format", "html").stdout, ProbeResult.load(folder)._repr_html_()):
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown


def test_tables_of_the_folder(folder: Path) -> None:
    csv_file, parquet = write_tables(Store(folder))
    assert set(pd.read_csv(csv_file)["grammar"]) == {"concat", f"'{FORMULA}"}
    assert set(pd.read_parquet(parquet)["grammar"]) == {"concat", FORMULA}
    shown = run("table", str(csv_file)).stdout
    assert FORMULA in shown
    assert f"'{FORMULA}" not in shown
