"""Values that the sizes of a table determine or bound, and the reasons for them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import icy
from icy.core.registry import registry
from icy.metrics import Score, evaluate
from icy.metrics.construction import SAME

GREEDY = {"residual_entropy": {"search": "greedy"}}
METRICS = [entry.name for entry in registry.entries("metric") if entry.origin.startswith("icy")]
GRID = [[a, b] for a in range(2) for b in range(3)]


def scored(meanings: Any, messages: Any, metrics: Any = METRICS, **given: Any) -> dict[str, Score]:
    chosen = {name: value for name, value in GREEDY.items() if name in metrics}
    messages = list(messages) if isinstance(messages, str) else messages
    found: dict[str, Score] = evaluate(meanings, messages, metrics=metrics, conventions=chosen, **given).attrs["scores"]
    return found


@pytest.mark.parametrize(
    ("messages", "metric", "value", "note"),
    [
        (["a"] * 6, "hce", 0.0, "all messages are alike: 0 for any meanings"),
        (["a"] * 6, "residual_entropy", 1.0, "all messages are alike: 1 for any meanings"),
        (["a"] * 6, "npmi", 0.0, "all messages are alike: 0 for any meanings"),
        ("abcdef", "ami", 1.0, "every label and every message occurs once: 1 by convention"),
        ("aabbcc", "ami", 0.0, "every label occurs once"),
        ("abcdef", "mutual_information", math.log2(6), "no message occurs twice"),
        ("abcdef", "posdis", math.log2(1.5) / math.log2(6), "every position that changes has a different token"),
        ("aabbcc", "hce", None, "fewer positions (1) than attributes (2) change, and each encodes one: at most 0.5"),
        ("aabbcc", "residual_entropy", None, "at least 0.5"),
        ("aabbcc", "factor_vae", None, "only one position changes and wins every vote"),
        (["ax", "ay", "az", "bx", "by", "bz"], "context_independence", 0.25, "1 / A^2 = 0.25"),
        (["ax", "ay", "az", "bx", "by", "bz"], "sap", 1 - (1 / 2 + 1 / 3) / 2, "an ideal language has 0.583"),
        (["ax", "ay", "az", "bx", "by", "bz"], "posdis", 1.0, ""),
        (["ax", "ay", "az", "bx", "by", "bz"], "topsim", None, ""),
    ],
)  # fmt: skip
def test_the_reason_of_a_value(messages: Any, metric: str, value: float | None, note: str) -> None:
    score = scored(GRID, list(messages), [metric])[metric]
    assert score.note.startswith(note) if not note else note in score.note
    assert bool(score.note) == bool(note)
    if value is not None:
        assert score.value == pytest.approx(value)


def test_one_attribute_and_no_recurring_words() -> None:
    assert "only one attribute changes" in scored([[0], [1], [2]], ["ab", "ca", "bb"], ["tre"])["tre"].note
    assert SAME in scored(GRID, "abcdef", ["cbm"])["cbm"].note
    assert not scored(GRID, ["ax", "ay", "az", "bx", "by", "bz"], ["cbm"])["cbm"].note


@pytest.mark.parametrize("kind", range(4))
def test_what_is_the_same_for_any_meanings_is_so_in_another_order(kind: int) -> None:
    draws = np.random.default_rng(kind)
    for rows in (4, 5, 7):
        meanings, shape = draws.integers(3, size=(rows, 2)), (rows, 2)
        if kind == 0:
            meanings = np.stack([draws.permutation(rows) for _ in range(2)], 1)
        messages = {
            0: draws.integers(2, size=shape),
            1: np.zeros(shape, int),
            2: np.stack([draws.permutation(rows) for _ in range(2)], 1),
            3: np.arange(rows * 2).reshape(shape),
        }[kind]
        given, permuted = scored(meanings, messages), scored(meanings, messages[draws.permutation(rows)])
        for name, score in given.items():
            if score.why:
                continue
            bound = float(score.note.split()[-1]) if re.search("at (least|most) ", score.note) else score.value
            assert score.value >= bound - 1e-3 if "at least" in score.note else score.value <= bound + 1e-3
            if SAME in score.note or "for any" in score.note or "whatever" in score.note:
                assert permuted[name].value == pytest.approx(score.value, abs=0.02 if name == "factor_vae" else 1e-9)


def test_permutations_find_it_in_metrics_without_a_rule() -> None:
    score = scored(GRID, "aabbcc", ["message_entropy"], permutations=20)["message_entropy"]
    assert score.note == "the value is the same in every permutation"
    assert scored(GRID, ["ax", "ay", "az", "bx", "by", "bz"], ["topsim"], permutations=20)["topsim"].note == ""


def test_undefined_values_keep_their_own_reason() -> None:
    score = scored([[0, 0]] * 3, "abc", ["posdis"])["posdis"]
    assert (score.why, score.note) == ("no attribute ever changes", "")


def test_rows_have_the_reason() -> None:
    row = evaluate(icy.make_language("rot", "2x3", 4, 2), metrics=["ami", "posdis"])
    assert row["posdis_note"][0] == ""
    assert "every message occurs once" in row["ami_note"][0]
