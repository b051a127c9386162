"""`icy s2b` as a whole: examples of every command, and mistakes."""

from __future__ import annotations

import pytest

from icy.cli.commands.s2b import s2b_command
from tests.cli.commands.s2b.helpers import run


def test_every_command_has_examples() -> None:
    for name in s2b_command.commands:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert f"\n    icy s2b {name}" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["eval", "--listener", "bindin"], "did you mean binding"),
        (["eval", "--vocab-size", "3"], "a vocabulary of 5 tokens"),
        (["eval", "--distractors", "9"], "take fewer distractors"),
        (["eval", "--dimensions", "1"], "threshold=2 is above the number of dimensions, 1"),
        (["eval", "--shots", "one"], "a whole number, or several"),
        (["eval", "--values", "x"], "is not a number of values"),
        (["eval", "--ratio", "half"], "is not a share"),
        (["eval", "--seeds", "0"], "has no seeds"),
        (["eval", "--seeds", "9999999999999-9999999999999"], "seed must be at most"),
        (["eval", "--out", "rows.txt"], ".csv or .parquet"),
        (["play", "--seed", "-1"], "seed"),
        (["record", "-o", "games.csv"], "recorded as .parquet"),
        (["stimuli", "--rows", "some"], "choice of stimuli"),
        (["stimuli", "--representation", "ohe"], "no densities"),
        (["stimuli", "--plot", "figure.txt"], ".png"),
        (["language", "--metric", "topsi"], "did you mean topsim"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(words: list[str], said: str) -> None:
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
