"""The mutants of `tests/stress/mutants.py` fit the code as it is; trying them takes minutes."""

from __future__ import annotations

from tests.stress import mutants


def test_every_mutant_can_be_made_and_has_tests() -> None:
    assert [fault for mutant in mutants.MUTANTS if (fault := mutant.fault(mutants.ROOT)) is not None] == []
    assert all((mutants.ROOT / test).exists() for mutant in mutants.MUTANTS for test in mutant.tests)
    assert all(mutant.text != mutant.replacement for mutant in mutants.MUTANTS)
    assert len({(mutant.file, mutant.text) for mutant in mutants.MUTANTS}) == len(mutants.MUTANTS)


def test_the_page_has_every_mutant_and_all_are_caught() -> None:
    text = mutants.PAGE.read_text()
    lacking = [row for mutant in mutants.MUTANTS if (row := mutants.row(*mutants.cells(mutant))) not in text]
    assert lacking == []
    assert f"**{len(mutants.MUTANTS)} of {len(mutants.MUTANTS)} mutants" in text
