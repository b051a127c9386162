"""The script that measures published tables again: selection of tables and replicates, without training."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from icy.analysis.literature.verdicts import Verdict
from icy.records.pack import read_once
from results.reproduced import __main__ as reproduce
from results.reproduced import claims
from tests.pages import text


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path)


def test_an_unknown_page_is_an_error_that_lists_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["reproduced", "--train", "--table", "tabel13"])
    with pytest.raises(SystemExit, match=r"tabel13.*perkins21-table13"):
        reproduce.main()


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("icy22/table3", {"representation": ["gumb"]}),  # a table of SOFT alone
        ("perkins21/table13", {"only": ["RNN1L:LSTM"]}),  # a receiver, in a table of senders
    ],
)
def test_a_table_without_the_named_models_is_skipped(table: str, named: dict[str, list[str]]) -> None:
    assert reproduce.reproduce(reproduce.Page(table), **named) is None


@pytest.mark.slow
def test_without_filters_the_whole_table_is_read() -> None:
    done = reproduce.reproduce(reproduce.Page("perkins21/table15"))
    assert len(done.cells) == 432
    assert set(done.cells["representation"]) == {"soft", "gumb", "discr"}


@pytest.mark.slow
def test_filters_select_models_and_representations() -> None:
    done = reproduce.reproduce(reproduce.Page("perkins21/table15"), only=["kNN"], representation=["soft"])
    assert set(done.cells["model"]) == {"kNN"}
    assert set(done.cells["representation"]) == {"soft"}
    assert not (done.cells["verdict"] == "missing").any()


def test_the_documentation_compares_both_grids_on_the_same_cells() -> None:
    files = ("perkins21-table13-check_every-400", "perkins21-table13")
    wide, usual = (pd.read_csv(f"results/reproduced/{name}.csv").query("verdict != 'missing'") for name in files)
    which = ["representation", "model", "hidden_size", "grammar"]
    same = usual.merge(wide[which], on=which)
    found = [Verdict.of(cells) for cells in (wide, same)]
    assert [one.decided for one in found] == [40, 40]
    page = " ".join(text("docs/reproducing.md").split())
    assert f"{found[1].agree} agree instead of {found[0].agree}" in page
    assert f"{found[1].mean_difference:.3f} instead of {found[0].mean_difference:.3f}" in page
    assert f"below the printed accuracies, by {-Verdict.of(usual).mean_difference:.3f} on average" in page


def test_the_documentation_compares_the_clock_with_the_usual_grid() -> None:
    files = ("perkins21-table13-clock-True-check_growth-0.13", "perkins21-table13")
    clock, usual = (pd.read_csv(f"results/reproduced/{name}.csv").query("verdict != 'missing'") for name in files)
    both = clock.merge(usual, on=["representation", "model", "hidden_size", "grammar"], suffixes=("", "_usual"))
    both = both.query("grammar not in ('concat', 'hol')")
    gaps = [(both[icy] - both["published"]).mean() for icy in ("icy", "icy_usual")]
    words = f"differ by {gaps[0]:.3f} on average, and by {gaps[1]:.3f} with checks every 50 updates"
    assert f"{len(both)} cells of four senders {words}" in " ".join(text("docs/reproducing.md").split())


@pytest.mark.slow
def test_the_summary_has_the_verdicts_of_the_cells_on_file() -> None:
    lines = [line for line in text("results/reproduced/README.md").splitlines() if line.startswith("| [")]
    for line in lines:
        _, _, measured, *row = (one.strip() for one in line.strip("|").split("|"))
        name = line.partition("](")[2].partition(".md)")[0]
        cells = pd.read_csv(f"results/reproduced/{name}.csv", dtype={"equivalence": object})
        found = Verdict.of(cells)
        assert measured == f"{found.measured} of {found.cells}"
        counts = [found.decided, found.agree, found.phrase, found.equivalent, found.further]
        assert row == [str(one) for one in (*counts, found.shift, found.by_design)]


def test_the_remark_on_pre_training_has_the_numbers_of_its_records() -> None:
    records = [r for r in read_once(reproduce.RECORDS).records if r.get("pretrain_representation") == "gumb"]
    assert {(r["model"], r["representation"]) for r in records} == {("RNNZero:GRU+RNN1L:GRU", "gumb")}
    runs = pd.DataFrame([{name: r[name] for name in ("grammar", "sender_accuracy")} for r in records])
    under_gumb = runs.groupby("grammar")["sender_accuracy"].agg(["mean", "sem"])
    cells = pd.read_csv("results/reproduced/perkins21-table17.csv").query("representation == 'gumb'")
    cells = cells[cells["model"] == "RNNZero:GRU+RNN1L:GRU"].set_index("grammar")
    order = ["concat", "perm", "rot", "shufdet"]
    parts = [f"{mean:.2f}±{error:.2f}" for mean, error in under_gumb.loc[order].to_numpy()]
    parts += [f"{value:.2f}" for column in ("published", "icy") for value in cells.loc[order, column]]
    remark = reproduce.DRIFT_REMARK.partition("All rows here")[2]
    assert re.findall(r"0\.\d\d(?:±0\.\d\d)?", remark) == parts


# -- claims in words ---------------------------------------------------------------------------------------------------


def test_an_interval_of_an_effect_has_a_verdict() -> None:
    verdicts = [claims.verdict_of(*ends) for ends in ((0.1, 0.5), (-0.5, -0.1), (-0.1, 0.5), (0.0, 0.5))]
    assert verdicts == [claims.CONFIRMED, claims.CONTRADICTED, claims.UNKNOWN, claims.UNKNOWN]


def test_a_correlation_has_an_interval_by_fisher() -> None:
    assert [round(end, 3) for end in claims.fisher(0.5, 28)] == [0.5, 0.156, 0.736]


def test_printed_means_are_compared_by_welch() -> None:
    one, other = (pd.Series({"mean": mean, "standard_error": 1.0, "n": 3}) for mean in (12.0, 10.0))
    gap, p = claims.welch(one, other)  # t = sqrt(2) with 4 degrees of freedom
    assert gap == 2.0
    assert p == pytest.approx(0.230, abs=5e-4)


def test_a_model_with_a_hierarchy_is_compared_with_the_same_cell_without() -> None:
    names = ["sender/HierZero:GRU", "sender/HierAutoReg:RNN", "receiver/Hier:LSTM", "sender/FC2L"]
    flat = ["sender/RNNZero:GRU", "sender/RNNAutoReg:RNN", "receiver/RNN1L:LSTM", ""]
    assert [claims.flat_of(name) for name in names] == flat


def test_pairs_keep_their_languages_as_their_records_say(monkeypatch: pytest.MonkeyPatch) -> None:
    falls = {"concat": np.full(100, 0.5), "perm": np.full(100, 0.4), "shufdet": np.linspace(0.2, 0.9, 100)}
    kept = {"concat": 0.5, "perm": 0.75, "shufdet": 0.9}
    usual = {"kind": "e2e", "failed": False, "representation": "discr", "preset": "published"}
    records = [
        {**usual, "model": model, "grammar": grammar, "seed": seed, "sender_accuracy": kept[grammar] + less}
        | {"curve": [[0, 1.0, 1.0], *([100 * (n + 1), one, 0.0] for n, one in enumerate(falls[grammar]))]}
        for model, less in (("RNNZero:RNN+RNN1L:RNN", 0.0), ("RNNZero:GRU+RNN1L:GRU", -0.1))
        for grammar in kept
        for seed in (1, 2)
    ]
    records.append({**records[0], "failed": True, "sender_accuracy": 0.0})
    monkeypatch.setattr(claims, "read_once", lambda path: SimpleNamespace(records=records))
    keeps, falls_back = claims.drift()
    number = " ".join(keeps.number.split())
    assert "RNNZero:GRU+RNN1L:GRU +0.25; RNNZero:RNN+RNN1L:RNN +0.25 (above 0 in 2 of 2 pairs; mean 0.25" in number
    assert "largest `shufdet` is of RNNZero:RNN+RNN1L:RNN (0.90) and of RNNZero:GRU+RNN1L:GRU (0.80)" in number
    number = " ".join(falls_back.number.split())
    assert "below 0.3 in 4 of 12 runs (10 to 65 %)" in number  # Clopper-Pearson
    assert "before 10,000 in 0 of 4 seeds of a pair" in number  # shufdet passes perm and concat after 3,000 updates
    assert falls_back.verdict == claims.UNKNOWN


def test_every_claim_has_a_command_and_an_unknown_claim_says_what_would_decide() -> None:
    rows = [line for line in text("results/reproduced/claims.md").splitlines() if re.search(r"\| `(icy|python)", line)]
    verdicts = [re.findall(r"\*\*(\w+)\*\*: (.+) \|$", line)[0] for line in rows]
    assert f"checks {len(rows)} of these claims" in text("results/reproduced/claims.md")
    for verdict, reason in verdicts:
        assert verdict in (claims.CONFIRMED, claims.CONTRADICTED, claims.UNKNOWN)
        assert verdict != claims.UNKNOWN or re.search(r"would (decide|narrow)", reason), reason


@pytest.mark.slow
def test_the_page_of_claims_follows_from_the_records() -> None:
    assert claims.page() == text("results/reproduced/claims.md")
