"""`icy show` and `icy generate`."""

from __future__ import annotations

from pathlib import Path

import pytest

import icy
from tests.cli.helpers import assert_one_sentence, run


def test_generate_takes_bounds_of_word_lengths(tmp_path: Path) -> None:
    language = icy.make_language("rot", "2x3", word_length="1-3", frequencies="zipf:1")
    words = ("rot", "--meanings", "2x3", "--word-length", "1-3", "--frequencies", "zipf:1")
    file = tmp_path / "language.csv"
    assert run("generate", *words, "-o", str(file)).exit_code == 0
    assert icy.Language.load(file) == language


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npz"])
def test_generate_writes_a_language_once(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"language.{suffix}"
    words = ("generate", "shufdet", "--meanings", "3x4", "--seed", "7", "-o", str(file))
    assert run(*words).exit_code == 0
    assert icy.Language.load(file) == icy.make_language("shufdet", "3x4", seed=7)
    assert_one_sentence(run(*words), "--force", code=1)
    assert run(*words, "--force").exit_code == 0
