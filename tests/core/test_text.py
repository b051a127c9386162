"""Plain text: lists and counts in sentences, and Markdown tables."""

from __future__ import annotations

import pytest

from icy.core.text import counted, listed, markdown_table, natural, several


@pytest.mark.parametrize(
    ("names", "shown"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names_are_listed_as_in_a_sentence(names: list[str], shown: str) -> None:
    assert listed(names) == shown


def test_several_values_are_split_at_commas_and_numbers_converted() -> None:
    assert several("64, 128,soft,") == [64, 128, "soft"]
    assert several(("3x4", 5)) == ["3x4", 5]
    assert several(0.5) == [0.5]


def test_a_markdown_table_has_a_heading_a_rule_and_a_line_per_row() -> None:
    shown = markdown_table(("model", "steps", "ratio"), [["FC2L", 350, None], ("RNN", 1_400, 4.0)], numbers=(1, 2))
    assert shown.split("\n") == [
        "| model | steps | ratio |",
        "| --- | ---: | ---: |",
        "| FC2L | 350 | None |",
        "| RNN | 1400 | 4.0 |",
    ]


def test_a_markdown_table_without_rows_or_numbers_is_its_heading() -> None:
    assert markdown_table(["a", "b"], []) == "| a | b |\n| --- | --- |"


def test_bars_are_escaped_and_line_breaks_replaced_in_every_cell() -> None:
    assert markdown_table(["a|b"], [["c|d\ne"]]) == "| a\\|b |\n| --- |\n| c\\|d e |"


def test_headings_and_rows_may_be_iterators() -> None:
    assert (
        markdown_table(iter("ab"), (iter(row) for row in ("cd",)), range(1, 2))
        == "| a | b |\n| --- | ---: |\n| c | d |"
    )


@pytest.mark.parametrize(
    ("number", "word", "verb", "said"),
    [
        (0, "cell", "rest", "0 cells rest"),
        (1, "cell", "rest", "1 cell rests"),
        (2, "cell", "rest", "2 cells rest"),
        (1, "run", "have", "1 run has"),
        (3, "row", "are", "3 rows are"),
        (1, "name", "were", "1 name was"),
        (1, "entry", "", "1 entry"),
        (2, "entry", "", "2 entries"),
        (2, "array", "", "2 arrays"),
    ],
)
def test_a_count_agrees_with_its_noun_and_verb(number: int, word: str, verb: str, said: str) -> None:
    assert counted(number, word, verb) == said


def test_names_are_ordered_by_their_numbers() -> None:
    names = ["b10", "b2", "B02", "b²", "a" + "9" * 5000, "10", "9"]
    assert sorted(names, key=natural) == ["9", "10", "a" + "9" * 5000, "b2", "B02", "b10", "b²"]
