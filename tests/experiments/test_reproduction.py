"""Reproductions: measurement, verdicts and output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.analysis.literature.catalogue import find_table, published

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_row_is_measured_and_judged(memory: tuple[icy.Reproduction, Path]) -> None:
    done, folder = memory
    (cell,) = done.cells.to_dict("records")
    assert (cell["model"], cell["grammar"], cell["seeds"], cell["published"]) == ("Hashtable", "perm", 2, 1.0)
    assert cell["verdict"] == "agrees"
    assert done.verdict.measured == 1
    page = done.page()
    assert page.startswith("# icy22/table3, measured again")
    assert "| Hashtable | perm |" in page
    partly = replace(done, wanted=published("icy22/3").query("model in ('Hashtable', 'FC2L')")).page()
    assert "Not measured: FC2L, Hashtable (proj, rot, shufdet, hol)." in partly
    assert str(done.verdict) in repr(done)
    assert "<td>Hashtable</td>" in done._repr_html_()
    again = icy.reproduce("icy22/3", "Hashtable", grammar="perm", seeds=2, rerun="never", out=folder)
    pd.testing.assert_frame_equal(again.cells, done.cells)


def test_pairs_are_judged_and_shown() -> None:
    """Three games after learning perm, as the store has them."""
    about = {
        "model": "RNNZero:GRU+RNN1L:GRU", "side": "pair", "grammar": "perm", "representation": "soft", "failed": False,
        "meanings": "5x10", "vocab_size": 4, "word_length": 4, "hidden_size": 128, "protocol": "e2e", "target": 0.99,
        "cap": 20, "most": 10_000, "pretrain_representation": "soft", "report_every": 100, "preset": "published",
        "measure": "accuracy", "reason": "steps", "steps": 10_000, "accuracy": 1.0, "end_to_end_accuracy": 1.0,
        "parameters": {}, "config": {"settings": {"check_every": 50}, "options": {}}, "versions": {},
        "finished": "2026-01-01", "curve": [],
    }  # fmt: skip
    records = [{**about, "seed": s, "key": str(s), "sender_accuracy": 0.87 + 0.01 * s, "topsim": 0.5} for s in range(3)]
    source = find_table("perkins21/table17")
    wanted = published(source.id).query("model == @about['model'] and grammar == 'perm' and representation == 'soft'")
    done = icy.Reproduction(source, icy.EndToEndResult(records), wanted)
    (cell,) = done.cells.to_dict("records")
    assert (cell["icy"], cell["published"], cell["verdict"]) == (pytest.approx(0.88), 0.88, "agrees")
    assert "0.880±0.006" in done.table().render("text")
    assert "(+0.0)" in done.table().render("text")
    assert "| RNNZero:GRU+RNN1L:GRU | perm | 0.880±0.006 | 3 |" in done.page()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "settings", "title"),
    [
        ("icy22/table4", {}, "icy22/table4"),  # rows of 1280 units are checked at every update, others not
        ("perkins21/table13", {"check_every": 400}, "perkins21/table13, check_every=400"),
    ],
)
def test_only_settings_of_all_rows_are_in_the_title(
    table: str, settings: dict[str, int], title: str, tmp_path: Path
) -> None:
    pack = ROOT / "results" / "reproduced" / "records.parquet"
    done = icy.reproduce(table, "FC2L", settings=settings, rerun="never", initial_results=pack, out=tmp_path)
    assert len(done.result.records) > 20
    assert done.page().startswith(f"# {title}, measured again")
