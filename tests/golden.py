"""Golden files: commands and their output. `python -m tests.golden` writes them again; the diff shows every change.

A file of `tests/golden/` has a section per command, in a folder of its own:

    # A comment.
    @ three                 makes files, by the function `make_three`
    > mine.csv              writes the lines below into a file
    $ icy table mine.csv    runs a command; below are its output, with "! " before lines of stderr, and its exit code
    >>> icy.probe("FC2L")   runs Python; below is its value, or the class and the text of its error

Numbers have at most six digits, since other processors and libraries compute other last digits.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import icy
from icy.cli import main
from icy.core.registry import registry
from icy.experiments.results import ProbeResult
from icy.records.store import Store
from tests.analysis.plots.helpers import acquire, budget
from tests.analysis.tables.test_factors import BALANCED, cut
from tests.helpers import THREE, long, on_file, readable

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(Path(__file__).with_name("golden").glob("*.txt"))


def make_three() -> None:
    """Accuracies of three models as a long table."""
    long(THREE).to_parquet("three.parquet")


def make_drawn() -> None:
    """A results folder, its records in one file, and tables of ratios, some with impossible numbers."""
    records = [readable(record) for record in budget().records]
    for record in records:
        (folder := Path("bias/records")).mkdir(parents=True, exist_ok=True)
        (folder / f"{record['key']}.json").write_text(json.dumps(record))
    ProbeResult([*map(readable, budget(["sender/FC1L"]).records)]).save("saved.json")
    ratios = acquire().to_dataframe()
    ratios.to_csv("results.csv", index=False)
    for name, value in (("negative", -1.0), ("infinite", math.inf)):
        ratios.assign(value=value).to_csv(f"{name}.csv", index=False)


def make_records() -> None:
    """Results in three representations, with two models and two seeds each."""
    store = Store(Path("mine"))
    for representation, model, seed in product(("soft", "gumb", "discr"), ("FC1L", "FC2L"), (1, 2)):
        changes = {"model": f"sender/{model}", "representation": representation, "protocol": "acquire"}
        store.put(on_file("concat", seed, **changes))


def make_names() -> None:
    """Results of a model and a grammar with names that no registry would take."""
    store = Store(Path("names"))
    for seed, grammar in product((1, 2), ("concat", "=HYPERLINK(1)")):
        store.put(on_file(grammar, seed, model="sender/<script>x</script>|\x1b[31m=`$[\n\n# two", protocol="acquire"))


def make_pairs() -> None:
    """Ratios of three models in a long table, and the same after one model became twice as fast."""
    for name, rot in (("before", [2.0, 3.0, 4.1]), ("after", [1.0, 1.5, 2.05])):
        of_rot = {"A": rot, "B": [2.2, 2.9, 3.6], "C": rot}
        values = {model: {"rot": numbers, "hol": [20.0] * 3} for model, numbers in of_rot.items()}
        table = long(values, protocol="acquire", measure="ratio", cap=20.0)
        table.assign(censored=table["value"].eq(20)).to_parquet(f"{name}.parquet")


def make_sizes() -> None:
    """A balanced design of two cells and two grammars, and the same with cut runs."""
    BALANCED.to_parquet("sizes.parquet")
    cut(BALANCED.query("grammar == 'rot'"), 10).to_parquet("cut.parquet")


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Return the first line and the other lines of each section."""
    for part in re.split(r"^(?=(?:[#@>$]|>>>) )", text, flags=re.MULTILINE)[1:]:
        head, *body = part.rstrip().splitlines()
        yield head, body


def rewritten(text: str) -> str:
    """Return a golden file with what its commands print now. The current folder must be new."""
    for name in ("analysis", "docs", "results"):
        Path(name).symlink_to(ROOT / name)
    parts, names = [], {"icy": icy}
    for head, body in sections(text):
        kind, _, rest = head.partition(" ")
        if kind == "@":
            globals()[f"make_{rest}"]()
        elif kind == ">":
            Path(rest).write_text("".join(f"{line}\n" for line in body))
        elif kind == "$":
            body = printed(shlex.split(rest)[1:])
        elif kind == ">>>":
            body = evaluated(rest, names)
        parts.append("\n".join([head, *body]))
    return "\n\n".join(parts) + "\n"


def shown(text: str) -> list[str]:
    """Return the lines of an output, with six digits of its numbers, and without icy's version and this folder."""
    text = text.replace(f"{Path.cwd()}/", "").replace(f"icy {icy.__version__}", "icy VERSION")
    text = re.sub(r"\(line \d+ of ", "(line N of ", text)
    text = re.sub(r"(Try '.*) -h'", r"\1 --help'", text)  # of older versions of click
    text = re.sub(r"\d+\.\d{7,}", lambda found: f"{float(found[0]):.6g}", text)
    return [line.rstrip() for line in text.splitlines()]


def evaluated(code: str, names: dict[str, Any]) -> list[str]:
    """Run a line of Python. Return the lines of its value, or the class and the text of its error."""
    before = sorted(Path().rglob("*"))
    try:
        value = eval(compile(code, "golden", "single" if re.match(r"from |import |\w+ \+?= ", code) else "eval"), names)
    except Exception as error:
        assert sorted(Path().rglob("*")) == before, f"{code} wrote files"
        return [f"! {type(error).__name__}: {error}"]
    return [] if value is None else shown(value if isinstance(value, str) else repr(value))


def printed(words: list[str]) -> list[str]:
    """Run a command. Return the lines of its output, and its exit code unless that is 0."""
    before = sorted(Path().rglob("*"))
    with pytest.MonkeyPatch.context() as patch:
        registry.load_all()
        patch.setattr(registry, "_entries", dict(registry._entries))
        patch.setattr(registry, "plugin_files", list(registry.plugin_files))
        done = CliRunner().invoke(main, words, prog_name="icy", env={"COLUMNS": "120"})
    if done.exception and not isinstance(done.exception, SystemExit | click.exceptions.Exit):
        raise done.exception
    if done.exit_code == 2:
        assert sorted(Path().rglob("*")) == before, f"{words} wrote files"
    lines = [*shown(done.stdout), *(f"! {line}".rstrip() for line in shown(done.stderr))]
    return lines + [f"[{done.exit_code}]"] * bool(done.exit_code)


if __name__ == "__main__":
    for file in [Path(name).resolve() for name in sys.argv[1:]] or FILES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            file.write_text(rewritten(file.read_text()))
        print(f"Written: {file.relative_to(ROOT)}")
