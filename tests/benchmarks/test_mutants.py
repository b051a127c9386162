"""The mutants of `benchmarks/mutants.py` fit the code as it is; trying them takes minutes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from .helpers import FOLDER, benchmark

ROOT = FOLDER.parent


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("mutants", monkeypatch)


def test_every_mutant_can_be_made_and_has_tests(mutants: ModuleType) -> None:
    assert [fault for mutant in mutants.MUTANTS if (fault := mutant.fault(ROOT)) is not None] == []
    assert all((ROOT / test).exists() for mutant in mutants.MUTANTS for test in mutant.tests)
    assert all(mutant.text != mutant.replacement for mutant in mutants.MUTANTS)
    assert len({(mutant.file, mutant.text) for mutant in mutants.MUTANTS}) == len(mutants.MUTANTS)


def test_what_is_not_there_once_is_refused(mutants: ModuleType, tmp_path: Path) -> None:
    mutant = mutants.Mutant("nothing", "a.py", "x > 1", "x >= 1", ())
    for text in ("x = 1\n", "x > 1 or x > 1\n"):
        (tmp_path / "a.py").write_text(text)
        with pytest.raises(SystemExit, match="not once"):
            mutant.make(tmp_path)
        assert (tmp_path / "a.py").read_text() == text
    (tmp_path / "a.py").write_text("y = x > 1\n")
    mutant.make(tmp_path)
    assert (tmp_path / "a.py").read_text() == "y = x >= 1\n"


def test_one_that_survives_is_told_until_it_is_caught(
    mutants: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that could not show one would say "all" for ever."""
    monkeypatch.setattr(mutants, "PAGE", tmp_path / "mutants.md")
    monkeypatch.setattr(mutants, "MUTANTS", two := mutants.MUTANTS[:2])
    caught, missed = mutants.Result(two[0], True, "tests/a.py::b", 1.0), mutants.Result(two[1], False, "", 1.0)
    mutants.PAGE.write_text(text := mutants.page([mutants.line(caught), mutants.line(missed)]))
    assert "**1 of 2 mutants" in text
    assert "| `a.py::b` | 1 |" in text
    assert "| **not caught** | 1 |" in text
    text = mutants.page([mutants.line(mutants.Result(two[1], True, "tests/c.py::d", 2.0))])
    assert "**2 of 2 mutants" in text
    assert ["a.py::b" in text, "c.py::d" in text, "not caught" in text] == [True, True, False]


def test_the_page_is_of_these_mutants(mutants: ModuleType) -> None:
    assert mutants.page([]) == mutants.PAGE.read_text()
    assert f"**{len(mutants.MUTANTS)} of {len(mutants.MUTANTS)} mutants" in mutants.PAGE.read_text()
