"""`icy list`, `icy show` and `icy generate`."""

from __future__ import annotations

from pathlib import Path

import pytest

import icy
from tests.cli.helpers import assert_one_sentence, run

# -- `icy list` --------------------------------------------------------------------------------------------------------


# -- help and lists ----------------------------------------------------------------------------------------------------


def test_list_presets_gives_every_departure_its_reason() -> None:
    from icy.config.settings import PUBLISHED

    shown = run("list", "presets").stdout
    assert all(name in shown and departure.reason in shown for name, departure in PUBLISHED.items())


def test_list_knows_plugins(plugin: str) -> None:
    assert "sender/CliGood  A sum of embeddings." in run("list", "models", "CliG", "--plugin", plugin).stdout


# -- icy.analysis, icy list --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["senders", "receivers", "tables", "Sender", "published"])
def test_kinds_by_other_names(kind: str) -> None:
    assert run("list", kind).exit_code == 0


# -- icy metrics -------------------------------------------------------------------------------------------------------


# -- `icy show` and `icy generate` -------------------------------------------------------------------------------------


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
