"""Every metric on random and degenerate tables: its range, its reasons, and what it must not depend on."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.core.registry import registry
from icy.metrics import Score, Table
from icy.metrics.evaluation import evaluate, score_all
from tests.properties.helpers import HUGE, Rows, tables, unless_refused

METRICS = [entry.name for entry in registry.match("all", "metric")]
FEW: dict[str, dict[str, Any]] = {"factor_vae": {"training_votes": 40, "test_votes": 40, "batch_size": 4}}
UNBOUNDED = ("tre", "conflict_count", "message_entropy", "mutual_information", "unique_messages")
RANGES = {
    "topsim": (-1, 1),
    "residual_entropy": (0, 1 + 1e-7),
    "npmi": (-1, 1),
    "ami": (-math.inf, 1),
    **dict.fromkeys(UNBOUNDED, (0, math.inf)),
}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in METRICS),
    ("topsim", {"message": "hamming"}),
    ("topsim", {"meaning": "euclidean", "correlation": "pearson", "normalise": "mean"}),
    ("topsim", {"pairs": "ordered", "padded": True, "normalise": "max"}),
    ("topsim", {"pairs": 20}),
    ("posdis", {"constant": "zero"}),
    ("bosdis", {"constant": "zero", "ignore": 0}),
    ("residual_entropy", {"search": "greedy"}),
    ("residual_entropy", {"search": "resnick"}),
    ("context_independence", {"alignment": "em"}),
    ("cbm", {"words": "positions", "repeats": "once"}),
    ("cbm", {"words": "positions:2", "unmatched": "assigned"}),
    ("cbm", {"concepts": "items"}),
    ("tre", {"composition": "permutation"}),
    ("factor_vae", {"variance": "ordinal"}),
    ("ami", {"average": "min"}),
    ("topsim", {"message": "jaccard"}),
    ("topsim", {"message": "cosine", "correlation": "pearson"}),
    ("dci", {"part": "completeness"}),
    ("dci", {"part": "informativeness"}),
    ("npmi", {"units": "messages"}),
    ("mutual_information", {"normalised": True}),
    ("unique_messages", {"share": True}),
]
# What tokens are as numbers, or how many there might be, is part of the definition of these.
BY_NUMBER = [("factor_vae", {"variance": "ordinal"}), ("bosdis", {"constant": "zero", "ignore": 0})]


def score(name: str, table: Rows | Table, **conventions: Any) -> Score | None:
    """The score of a metric; None if it refuses the table in a sentence."""
    own = {**FEW.get(name, {}), **conventions}
    return unless_refused(lambda: score_all(Table.of(table), name, {name: own})[name])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "conventions"), VARIANTS)
@given(table=tables())
def test_a_metric_is_within_its_range_or_says_why_not(name: str, conventions: dict[str, Any], table: Rows) -> None:
    found = score(name, table, **conventions)
    if found is not None and not found.why:
        least, most = RANGES.get(name, (0, 1))
        assert least - 1e-9 <= found.value <= most + 1e-9
        assert found.rows == len(table[0])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "conventions"), [one for one in VARIANTS if one not in BY_NUMBER])
@given(table=tables(), scale=st.sampled_from([1, 10**6, 2**50]), first=st.sampled_from([0, *HUGE]))
def test_how_large_symbols_are_changes_nothing(
    name: str, conventions: dict[str, Any], table: Rows, scale: int, first: int
) -> None:
    """Tokens and values keep their order and their equality, and grow; 0 stays, as conventions name it."""
    if conventions.get("meaning") == "euclidean":
        first, scale = 0, 1000  # in which distances stay in proportion

    def grown(rows: list[list[int]]) -> list[list[int]]:
        return [[one and one * scale + first for one in row] for row in rows]

    before, after = score(name, table, **conventions), score(name, (grown(table[0]), grown(table[1])), **conventions)
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert before.why == after.why
        assert after.value == pytest.approx(before.value, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METRICS if name not in ("factor_vae",)])  # which draws rows
@given(table=tables(), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(name: str, table: Rows, order: st.Random) -> None:
    rows = list(zip(*table, strict=True))
    order.shuffle(rows)
    before, after = score(name, table), score(name, ([m for m, _ in rows], [s for _, s in rows]))
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert before.why == after.why
        assert after.value == pytest.approx(before.value, rel=1e-6, abs=1e-9, nan_ok=True)


@pytest.mark.slow
@given(table=tables())
def test_all_metrics_at_once_are_each_by_itself(table: Rows) -> None:
    fast = [name for name in METRICS if name != "factor_vae"]
    row = evaluate(*table, metrics=fast)
    for name in fast:
        alone = score(name, table)
        together = row.attrs["scores"][name]
        assert bool(together.why) == (alone is None or bool(alone.why))
        assert alone is None or together == alone
