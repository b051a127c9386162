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


def test_show_and_generate_take_bounds_of_word_lengths(tmp_path: Path) -> None:
    language = icy.make_language("rot", "2x3", word_length="1-3", frequencies="zipf:1")
    words = ("rot", "--meanings", "2x3", "--word-length", "1-3", "--frequencies", "zipf:1")
    few, many = min(language.lengths), max(language.lengths)
    assert f"messages of {few} to {many} tokens, vocabulary 4 and the end token" in run("show", *words).stdout
    file = tmp_path / "language.csv"
    assert run("generate", *words, "-o", str(file)).exit_code == 0
    assert icy.Language.load(file) == language
    assert_one_sentence(run("show", "rot", "--word-length", "3-1"), "write 1-3")
    assert_one_sentence(run("show", "rot", "--frequencies", "zipf:1"), "words of different lengths")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz"])
def test_generate_writes_a_language_once(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"language.{suffix}"
    words = ("generate", "shufdet", "--meanings", "3x4", "--seed", "7", "-o", str(file))
    assert run(*words).exit_code == 0
    assert icy.Language.load(file) == icy.make_language("shufdet", "3x4", seed=7)
    assert_one_sentence(run(*words), "--force", code=1)
    assert run(*words, "--force").exit_code == 0
