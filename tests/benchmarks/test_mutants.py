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


def test_one_that_survives_is_told(mutants: ModuleType) -> None:
    """A page that could not show one would say "all" for ever."""
    caught, missed = (mutants.Result(mutants.MUTANTS[i], not i, "tests/a.py::b" if not i else "", 1.0) for i in (0, 1))
    text = mutants.page([caught, missed], mutants.Result(None, False, "", 2.0))
    assert "**1 of 2 mutants" in text
    assert "`a.py::b`" in text
    assert "**not caught**" in text
    assert "{" not in text
