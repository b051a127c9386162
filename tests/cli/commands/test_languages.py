"""`icy show` and `icy generate`."""

from __future__ import annotations

from pathlib import Path

import pytest

import icy
from tests.cli.helpers import assert_one_sentence, run


def test_show_prints_the_language() -> None:
    language = icy.make_language("rot+perm", "3x10")
    shown = run("show", "rot+perm").stdout
    assert all(f"{m}  {text}" in shown for m, text in language.examples().itertuples(index=False))
    assert "1000 distinct messages (100.0%)" in shown


def test_show_all_has_a_column_per_grammar() -> None:
    assert run("show", "all", "--format", "csv").stdout.startswith(
        "meaning,concat,hol,pairsum,perm,proj,rot,shuf,shufdet\n"
    )
    assert ",shuf," not in run("show", "all", "--format", "csv", "--side", "sender").stdout


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz"])
def test_generate_writes_a_language_once(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"language.{suffix}"
    words = ("generate", "shufdet", "--meanings", "3x4", "--seed", "7", "-o", str(file))
    assert run(*words).exit_code == 0
    assert icy.Language.load(file) == icy.make_language("shufdet", "3x4", seed=7)
    assert_one_sentence(run(*words), "--force", code=1)
    assert run(*words, "--force").exit_code == 0
