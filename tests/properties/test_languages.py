"""Languages come back from every format as they were, and no damage to a file ends in more than a sentence."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

import icy
from icy.languages.language import Language
from icy.metrics import read_table
from tests.properties.helpers import damaged, languages, unless_refused

SUFFIXES = (".csv", ".parquet", ".npz")
LANGUAGE = icy.make_language("rot", "2x3", 4, 2, 1)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(language=languages())
def test_a_language_comes_back_as_it_was(suffix: str, language: Language) -> None:
    with TemporaryDirectory() as folder:
        file = language.save(Path(folder, f"l{suffix}"))
        loaded = Language.load(file)
        assert loaded == language
        assert loaded.messages.dtype == language.messages.dtype
        assert [*Path(folder).iterdir()] == [file]  # no temporary file stays
        assert file.read_bytes() == language.to_bytes(suffix) or suffix == ".npz"  # which has times


@given(language=languages(), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(language: Language, order: st.Random) -> None:
    with TemporaryDirectory() as folder:
        file = language.save(Path(folder, "l.csv"))
        head, columns, *rows = file.read_text(encoding="utf-8").splitlines()
        order.shuffle(rows)
        file.write_text("\n".join([head, columns, *rows]) + "\n", encoding="utf-8")
        assert Language.load(file) == language


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(data=st.data())
def test_a_damaged_language_is_told_in_a_sentence(suffix: str, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, f"l{suffix}")
        file.write_bytes(data.draw(damaged(LANGUAGE.to_bytes(suffix))))
        for read in (Language.load, Language.from_csv, read_table):
            if suffix == ".csv" or read is not Language.from_csv:
                unless_refused(partial(read, file))
