"""Published tables measured again: what is planned, the verdicts, and the command."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import icy
from icy.analysis.literature.agreement import with_distance
from icy.analysis.literature.catalogue import find_table, published
from icy.analysis.literature.verdicts import COLUMNS, Verdict, judged
from icy.cli import main
from icy.config.specs import ReproduceSpec
from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.experiments.reproduce import Reproducing
from icy.records.long_table import LONG


def asked(table: str, **options: Any) -> Reproducing:
    return Reproducing.of(ReproduceSpec.asked(table=table, **options))


def rows_of(reproducing: Reproducing) -> dict[tuple[str, str, int], set[tuple[str, int]]]:
    return {
        (row.name, row.job.task.representation, row.job.task.hidden_size): {
            (r.grammar, r.seed) for r in row.job.replicates
        }
        for row in reproducing.plan().rows
    }


def test_the_plan_is_the_table() -> None:
    rows = rows_of(asked("icy22/table3"))
    assert {name for name, _, _ in rows} == {
        f"sender/{n}"
        for n in ("FC1L", "FC2L", "RNNAutoReg:LSTM", "RNNAutoReg2L:LSTM", "TransDecSoft", "TransDecSoft2L", "Hashtable")
    }
    grammars = {"concat", "perm", "proj", "rot", "shufdet", "hol"}
    assert rows["sender/FC2L", "soft", 128] == {(g, s) for g in grammars for s in range(123, 128)}
    job = asked("icy22/table3", only="FC2L").plan().rows[0].job
    assert (job.preset, job.protocol.name, job.protocol.target) == ("published", "acquire", 0.8)
    assert job.settings.round_ratio


def test_sizes_representations_and_targets_are_those_of_the_table() -> None:
    four = rows_of(asked("icy22/table4"))
    assert {hidden for _, _, hidden in four} == {128, 1280}
    thirteen = asked("perkins21/table13", only=["FC2L"], grammar="rot", seeds=[7])
    assert rows_of(thirteen) == {
        ("sender/FC2L", r, 128): {("concat", 7), ("rot", 7)} for r in ("soft", "gumb", "discr")
    }
    assert {row.job.protocol.target for row in thirteen.plan().rows} == {0.99, 0.95}
    assert {name for name, _, _ in rows_of(asked("perkins21/15", representation="gumb", only="RNN1L:*"))} == {
        f"receiver/RNN1L:{cell}" for cell in ("RNN", "GRU", "LSTM", "dgrecv")
    }


def test_pairs_are_planned_from_scratch_and_after_grammars() -> None:
    scratch = rows_of(asked("perkins21/table6", representation="discr", seeds=1))
    assert {grammar for found in scratch.values() for grammar, _ in found} == {"none"}
    assert len(scratch) == 3
    (drift,) = rows_of(asked("perkins21/17", only="FC1L+FC", representation="soft", seeds=1)).values()
    assert drift == {("concat", 123), ("perm", 123)}


def test_quick_is_one_seed_of_the_smallest_model() -> None:
    (((name, _, _), replicates),) = rows_of(asked("icy22/table20", quick=True)).items()
    assert name == "sender/FC1L"
    assert {seed for _, seed in replicates} == {123}
    drift = rows_of(asked("perkins21/table17", quick=True))
    assert {name for name, _, _ in drift} == {"RNNZero:RNN+RNN1L:RNN"}
    assert len(drift) == 1  # of one representation


def test_names_of_other_tables_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "icy"):
        found = asked("icy22/table3", only="FC2L,HierZero:dgsend")
    assert set(found.wanted["model"]) == {"FC2L"}
    assert "HierZero:dgsend is not in icy22/table3, but in perkins21/table13, icy22/table6" in caplog.text


@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"table": "icy22/table33"}, UnknownNameError, "icy22/table3"),
        ({"table": "icy22/table3", "only": "FC2"}, UnknownNameError, "did you mean FC2L"),
        ({"table": "icy22/table3", "only": "HierZero:dgsend"}, InvalidSettingError, "has no model HierZero:dgsend"),
        ({"table": "icy22/table3", "grammar": "shufdett"}, UnknownNameError, "shufdet"),
        ({"table": "icy22/table9"}, InvalidSettingError, "icy metrics"),
        ({"table": "metarg24/llm"}, InvalidSettingError, "cannot measure"),
        ({"table": "icy22/table3", "seed": 3}, UnknownNameError, "seeds"),
    ],
)
def test_mistakes(options: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        icy.reproduce(**options)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def long_of(values: dict[str, list[float]], measure: str = "accuracy", cut: tuple[str, ...] = ()) -> pd.DataFrame:
    rows = [
        {
            "model": "sender/FC2L", "side": "sender", "representation": "soft", "hidden_size": 128, "measure": measure,
            "grammar": grammar, "seed": seed, "value": value, "failed": math.isnan(value), "cut": grammar in cut,
        }
        for grammar, numbers in values.items()
        for seed, value in enumerate(numbers)
    ]  # fmt: skip
    return pd.DataFrame(rows).reindex(columns=list(LONG))


def test_cells_are_judged_by_combined_standard_errors() -> None:
    wanted = published("perkins21/table13").query("representation == 'soft' and model == 'FC2L'")
    theirs = wanted.set_index("grammar")
    near = float(theirs.loc["rot", "mean"]) + 2.5 * float(theirs.loc["rot", "standard_error"])
    cells = judged(
        long_of({"rot": [near] * 3, "proj": [0.5, 0.5, 0.5], "shufdet": [0.77, 0.76, 0.78], "hol": [math.nan]}),
        wanted,
    )
    assert list(cells.columns) == COLUMNS
    verdicts = cells.set_index("grammar")["verdict"].to_dict()
    assert verdicts == {
        "concat": "missing", "perm": "missing", "pairsum": "missing",
        "rot": "near", "proj": "differs", "shufdet": "agrees", "hol": "failed",
    }  # fmt: skip
    assert cells.set_index("grammar").loc["rot", "distance"] == pytest.approx(2.5)
    verdict = Verdict.of(cells)
    assert (verdict.cells, verdict.measured, verdict.failed, verdict.agree) == (7, 4, 1, 1)
    assert verdict.word == "too few cells to tell"
    assert "(1 failed, 3 of 7 not measured)" in str(verdict)
    assert Verdict.of(pd.concat([cells, cells])).word == "not reproduced"


def test_runs_without_an_error_are_taken_to_spread_as_the_others() -> None:
    columns = {"icy": [0.5, 0.5], "published": [0.6, 0.6], "rounding": [0.0, 0.0]}
    cells = with_distance(
        pd.DataFrame(
            {
                **columns,
                "icy_error": [math.nan, 0.02],
                "seeds": [1, 4],
                "published_error": [0.01, math.nan],
                "n": [4, 1],
            }
        )
    )
    assert cells["icy_error"].isna().tolist() == [True, False]  # what is borrowed is not shown as one's own
    assert cells["freedom"].tolist() == [3, 3]  # of the one that has an error
    assert cells["distance"].tolist() == pytest.approx([-0.1 / math.hypot(0.02, 0.01), -0.1 / math.hypot(0.02, 0.04)])


def test_degrees_of_freedom_are_welchs() -> None:
    errors = {"icy_error": [0.01, 0.01], "published_error": [0.01, 1e-9], "seeds": [3, 5], "n": [3, 3]}
    cells = with_distance(pd.DataFrame({"icy": 0.5, "published": 0.5, "rounding": 0.0, **errors}))
    assert cells["freedom"].tolist() == pytest.approx([4, 4])  # 2 + 2 of equal errors; 5 - 1 where one error is all


def test_rounding_takes_no_degrees_of_freedom() -> None:
    """An error of 0 printed with two digits: what is left is how it was rounded, which is known."""
    about = {"icy": 0.503, "icy_error": 0.0, "published": 0.50, "published_error": 0.0029, "seeds": 3, "n": 3}
    (cell,) = with_distance(pd.DataFrame([{**about, "rounding": 0.0029}])).to_dict("records")
    assert cell["distance"] == pytest.approx(0.003 / 0.0029)
    assert cell["freedom"] == math.inf


def test_chance_is_what_it_is_with_borrowed_errors() -> None:
    """Of two measurements of one thing, five runs here, five there without an error, 11.6 % lie two errors apart."""
    random = np.random.default_rng(1)
    ours, theirs = random.normal(size=(2, 4000, 5))
    cells = with_distance(
        pd.DataFrame(
            {
                "icy": ours.mean(axis=1), "icy_error": ours.std(axis=1, ddof=1) / 5**0.5, "seeds": 5,
                "published": theirs.mean(axis=1), "published_error": math.nan, "n": 5, "rounding": 0.0,
                "verdict": "agrees", "measure": "accuracy", "cut": 0,
            }
        )
    )  # fmt: skip
    outside = (cells["distance"].abs() > 2).mean()
    assert outside == pytest.approx(0.116, abs=0.015)
    assert 1 - Verdict.of(cells).expected / len(cells) == pytest.approx(outside, abs=0.015)


def test_both_cut_at_the_cap_agree() -> None:
    wanted = published("icy22/table3").query("model == 'RNNAutoReg:LSTM' and grammar == 'hol'").assign(model="FC2L")
    assert wanted["mean"].item() == 20.08
    (cell,) = judged(long_of({"hol": [20.0] * 5}, "ratio", cut=("hol",)), wanted).to_dict("records")
    assert cell["distance"] < -3
    assert cell["verdict"] == "agrees"
    (cell,) = judged(long_of({"hol": [19.0] * 5}, "ratio"), wanted).to_dict("records")
    assert cell["verdict"] == "differs"


def test_a_verdict_allows_for_chance() -> None:
    cells = pd.DataFrame(
        {
            "icy": 0.5, "published": 0.5, "icy_error": 0.01, "combined_error": math.hypot(0.01, 0.01), "seeds": 3,
            "n": 3, "freedom": 4.0, "measure": "ratio", "cut": 0, "distance": [0.0] * 17 + [2.5] * 3,
            "verdict": ["agrees"] * 17 + ["near"] * 3,
        }
    )  # fmt: skip
    verdict = Verdict.of(cells)
    assert verdict.expected == pytest.approx(20 * (1 - 0.1161), abs=0.01)  # t with 4 degrees of freedom
    assert verdict.word == "reproduced"
    assert Verdict.of(cells.assign(verdict="agrees")).word == "reproduced"
    assert Verdict.of(cells.assign(verdict=["agrees"] * 12 + ["differs"] * 8)).word == "reproduced in part"
    assert Verdict.of(cells.assign(verdict="missing")).word == "not measured"


def test_cells_cut_on_both_sides_leave_nothing_to_chance() -> None:
    about = {"combined_error": 0.1, "freedom": 4.0, "n": 3, "measure": "ratio", "icy_error": 0.0}
    cut = pd.DataFrame({**about, "icy": 20.0, "published": [20.0] * 15, "seeds": 3, "cut": 3, "distance": 0.0})
    free = pd.DataFrame({**about, "icy": 5.0, "published": [5.0] * 5, "seeds": 3, "cut": 0, "distance": 2.5})
    cells = pd.concat([cut.assign(verdict="agrees"), free.assign(verdict="near")], ignore_index=True)
    verdict = Verdict.of(cells)
    assert verdict.expected == pytest.approx(15 + 5 * (1 - 0.1161), abs=0.01)
    assert verdict.word == "reproduced in part"  # five of five outside; by chance two would be


def test_what_failed_is_not_reproduced() -> None:
    wanted = published("icy22/table3").query("model in ('FC1L', 'FC2L')")
    printed = wanted.query("model == 'FC2L'").set_index("grammar")["mean"]
    good = long_of({str(grammar): [mean - 0.1, mean + 0.1] for grammar, mean in printed.items()}, "ratio")
    failed = good.assign(model="sender/FC1L", value=math.nan, failed=True)
    verdict = Verdict.of(judged(pd.concat([good, failed]), wanted))
    assert (verdict.measured, verdict.failed, verdict.agree) == (10, 5, 5)
    assert verdict.word == "reproduced in part"
    assert "5 of 10 cells (5 failed) agree" in str(verdict)
    undecided = pd.DataFrame(
        {"verdict": ["undecided"] * 3 + ["failed"], "icy": [0.5] * 3 + [math.nan], "published": 0.5}
    )
    verdict = Verdict.of(undecided)
    assert (verdict.word, verdict.measured, verdict.failed) == ("undecided", 4, 1)
    alone = Verdict.of(judged(failed, wanted.query("model == 'FC1L'")))
    assert alone.word == "not reproduced"
    assert str(alone) == (
        "Not reproduced: 0 of 5 cells (5 failed) agree within 2 combined standard errors; none gave a result."
    )


# -- the whole way -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> tuple[icy.Reproduction, Path]:
    """The Hashtable row of Icy22 table 3, two seeds of one grammar: seconds even at 5x10."""
    folder = tmp_path_factory.mktemp("memory") / "results"
    return icy.reproduce("icy22/3", "Hashtable", grammar="perm", seeds=2, workers=1, out=folder), folder


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


def test_quick_and_checks_of_wide_models() -> None:
    rows = asked("icy22/table4", seeds=1).plan().rows
    checks = {(row.name, row.job.task.hidden_size): row.job.settings.check_every for row in rows}
    assert checks["sender/FC2L", 1280] == 1
    assert checks["sender/FC2L", 128] == 50
    ((_, _, hidden),) = rows_of(asked("icy22/table4", quick=True))
    assert hidden == 128


def test_other_names_of_models_and_grammars() -> None:
    assert set(asked("perkins21/15", only="RNN:GRU", grammar="comp", representation="soft").wanted["model"]) == {
        "RNN1L:GRU"
    }
    assert set(asked("perkins21/17", only="RNNZero:GRU+RNN:GRU").wanted["model"]) == {"RNNZero:GRU+RNN1L:GRU"}


def test_command(memory: tuple[icy.Reproduction, Path], tmp_path: Path) -> None:
    done, folder = memory
    words = ["reproduce", "icy22/table3", "--only", "Hashtable", "-g", "perm", "--seeds", "2", "-o", str(folder)]
    page, cells = tmp_path / "page.md", tmp_path / "cells.csv"
    shown = CliRunner().invoke(main, [*words, "--save", str(page)])
    assert shown.exit_code == 0, shown.output
    assert "agree within 2 combined standard errors" in shown.stdout
    assert "Nothing to train" in shown.stderr
    assert page.read_text() == done.page()
    assert CliRunner().invoke(main, [*words, "--save", str(cells)]).exit_code == 0
    assert pd.read_csv(cells)["verdict"].tolist() == ["agrees"]
    listed = CliRunner().invoke(main, ["reproduce", "--list"])
    assert "perkins21/table13" in listed.stdout
    assert CliRunner().invoke(main, ["reproduce"]).exit_code == 2
    missing = CliRunner().invoke(
        main, ["reproduce", "icy22/20", "--only", "FC1L", "--rerun", "never", "-o", str(tmp_path / "no")]
    )
    assert missing.stdout == "Not measured: none of 5 cells.\n"
