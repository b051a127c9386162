"""The order of grammars and of other values."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from icy.analysis.order import heading, in_order, place_of, text_of, without_hashes


def test_grammars_are_in_the_papers_order_and_others_follow() -> None:
    assert in_order(["zeta", "hol", "alpha", "concat", "rot", "rot"]) == ["concat", "rot", "hol", "alpha", "zeta"]


def test_known_values_come_before_others() -> None:
    values = ["other", "discr", "soft", "another"]
    assert sorted(values, key=lambda value: place_of("representation", value)) == ["soft", "discr", "another", "other"]


def test_values_of_other_columns_are_in_alphabetical_order() -> None:
    assert sorted(["5x10", "3x4"], key=lambda value: place_of("meanings", value)) == ["3x4", "5x10"]
    assert place_of("cap", 20) == place_of("cap", 3)  # numbers keep their order


def test_plots_leave_out_the_hashes_of_languages_where_names_are_clear() -> None:
    hashes = [16 * digit for digit in "0123"]
    grammars = [
        "perm",
        "mine",
        f"emerged@{hashes[0]}",
        f"a@{hashes[0]}",
        f"a@{hashes[1]}",
        f"rot@{hashes[2]}",
        f"mine@{hashes[3]}",
    ]
    shown = without_hashes(pd.DataFrame({"grammar": grammars, "value": 1.0}))
    assert shown["grammar"].tolist() == ["perm", "mine", "emerged", *grammars[3:]]
    assert shown["value"].tolist() == [1.0] * 7


def test_tables_of_meanings_lose_their_hash_unless_two_have_the_same_name() -> None:
    one, two, other = ("pets@0704534bc80552ac", "pets@1704534bc80552ac", "cars@2704534bc80552ac")
    options = [f"existing={one}, layers=2", f"existing={two}", f"existing={other}, frequencies=zipf:1", ""]
    shown = without_hashes(pd.DataFrame({"grammar": "rot", "options": options}))
    assert shown["options"].tolist() == [*options[:2], "existing=cars, frequencies=zipf:1", ""]


# -- how columns and their values are written --------------------------------------------------------------------------


def test_headings_have_spaces() -> None:
    assert heading("word_length") == "word length"


@pytest.mark.parametrize(
    ("value", "text"), [(20.0, "20"), (0.99, "0.99"), (4, "4"), ("soft", "soft"), ("", "-"), (None, "-"), (pd.NA, "-")]
)
def test_values_are_short(value: Any, text: str) -> None:
    assert text_of(value) == text
