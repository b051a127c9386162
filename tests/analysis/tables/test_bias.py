"""The bias table: its rows, marks, pooled rows and formats."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icy.analysis.tables.bias import bias_table
from icy.core.errors import IcyError
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult
from icy.records.kinds import job_kind
from icy.study.rows import rows_of_long
from tests.analysis.tables.helpers import marks
from tests.helpers import APART, THREE, long

# -- bias tables: groups, order and frames -----------------------------------------------------------------------------


def test_rows_of_other_representations_are_groups_with_marks_of_their_own() -> None:
    both = pd.concat([long(APART, representation="discr", target=0.95), long(APART)], ignore_index=True)
    table = bias_table(both)
    assert [(heading, len(rows)) for heading, rows in table.groups()] == [
        ("soft, target 0.99", 3),
        ("discr, target 0.95", 3),
    ]
    assert table.shown_labels == ["model", "parameters", "seeds", "concat updates"]
    assert len(marks(table)) == 4
    assert sum(cell.mark != "" for _, cells in table.rows for cell in cells.values()) == 8
    text = table.render("text").splitlines()
    assert text[text.index("soft, target 0.99") + 1].startswith("sender/A")
    frame = table.to_dataframe()
    assert frame.index.names[:4] == ["model", "parameters", "representation", "target"]


def test_groups_and_order() -> None:
    table = bias_table(long(THREE), sort="-rot")
    assert [labels[0][-1] for labels, _ in table.rows] == ["B", "A", "C"]
    mixed = pd.concat([long(THREE), long(THREE, hidden_size=64)], ignore_index=True)
    assert [heading for heading, _ in bias_table(mixed, by="hidden-size").groups()] == [
        "hidden size 128",
        "hidden size 64",
    ]


def test_rows_without_parameters_are_sorted_last() -> None:
    table = long(THREE, preset="published")
    table["parameters_published"] = table["model"].map({"sender/A": 300, "sender/B": 250})
    assert [labels[1] for labels, _ in bias_table(table, sort="parameters").rows] == ["250", "300", "-"]
    assert [labels[1] for labels, _ in bias_table(table, sort="-parameters").rows] == ["300", "250", "-"]


def test_a_dataframe_has_counts_of_cut_and_failed_runs() -> None:
    both = [long({"A": {"rot": [20.0, 20.0]}}, censored=True), long({"A": {"rot": math.nan}}, seed=9, failed=True)]
    frame = bias_table(pd.concat(both, ignore_index=True)).to_dataframe()
    assert frame["rot"].iloc[0].to_dict() == {"mean": 20.0, "spread": 0.0, "seeds": 2, "censored": 2, "failed": 1}


def test_undefined_values_are_not_failures() -> None:
    (line,) = bias_table(long({"A": {"rot": [0.5, math.nan]}})).rows
    assert (line[1]["rot"].seeds, line[1]["rot"].failed) == (1, 0)


RATIO = {"protocol": "acquire", "measure": "ratio", "cap": 20.0, "target": 0.8}


def test_under_a_common_budget_cuts_name_it_and_unknown_ends_are_not_marked() -> None:
    values = {"A": {"rot": [12.0, 12.1]}, "B": {"rot": [15.0, 15.1]}, "C": {"rot": [3.0, 3.1]}}
    results = long(values, **RATIO | {"cap": None, "max_updates": 1000})
    results["censored"] = results["model"].eq("sender/A")  # it may have a larger ratio than B
    table = bias_table(results)
    assert "target 0.8, 1000 updates of each grammar" in table.title
    assert "† cut at the budget of 1000 updates in at least one seed: the true ratio is larger" in table.notes
    assert marks(table) == {("sender/C", "rot"): "worst"}
    results["censored"] = results["model"].eq("sender/B")
    assert marks(bias_table(results)) == {("sender/C", "rot"): "worst"}
    both = pd.concat([results, long(values, **RATIO).assign(censored=True)], ignore_index=True)
    assert any("cut at the cap of 20 or at the budget of 1000 updates" in note for note in bias_table(both).notes)


def test_a_ratio_of_a_stopped_run_is_not_called_the_best() -> None:
    ratio = {"measure": "ratio", "protocol": "acquire", "cap": 20.0}
    values = {"A": [2.0, 2.1], "B": [3.0, 3.1], "C": [4.0, 4.1]}
    rows = {name: {"concat": [1.0, 1.0], "shufdet": own} for name, own in values.items()}
    stopped = bias_table(long({**rows, "D": {"concat": [1.0, 1.0], "shufdet": [1.5]}}, **ratio))
    assert marks(stopped) == {("sender/A", "shufdet"): "best", ("sender/C", "shufdet"): "worst"}


def test_steps_of_concat_are_a_mean_over_seeds() -> None:
    """Where it is not in the table, each seed counts once, whatever its grammars; where it is, failures do not."""
    others = [long({"A": {"rot": [0.5, 0.5]}}), long({"A": {"perm": 0.5}})]
    results = pd.concat(others, ignore_index=True).assign(baseline_steps=[100, 400, 100])
    assert [labels[-1] for labels, _ in bias_table(results).rows] == ["250"]
    concat = long({"A": {"concat": [1.0, math.nan], "rot": [0.5, 0.5]}})
    results = concat.assign(steps=[100, 900, 100, 100], failed=[False, True, False, False])
    assert [labels[-1] for labels, _ in bias_table(results).rows] == ["100"]


# -- marks of the best and the worst, and when there are none ----------------------------------------------------------


def test_best_and_worst_are_those_of_a_bias_to_composition() -> None:
    table = bias_table(long(APART))
    assert marks(table) == {
        ("sender/B", "rot"): "worst",
        ("sender/C", "rot"): "best",
        ("sender/B", "shufdet"): "best",
        ("sender/C", "shufdet"): "worst",
    }
    assert table.arrows == {"rot": "↓", "shufdet": "↑"}
    assert table.head()[-4:] == ["concat", "perm", "rot ↓", "shufdet ↑"]


def test_a_ratio_reads_the_other_way() -> None:
    table = bias_table(long(APART, measure="ratio", protocol="acquire"))
    assert table.arrows == {"rot": "↑", "shufdet": "↓"}
    assert marks(table)["sender/B", "rot"] == "best"


def test_two_rows_equal_rows_or_one_seed_have_no_best() -> None:
    assert not marks(bias_table(long({name: APART[name] for name in "AB"})))
    assert not marks(bias_table(long({name: {"rot": [0.5, 0.5]} for name in "ABC"})))
    assert not marks(bias_table(long({name: {"rot": mean} for name, mean in {"A": 0.1, "B": 0.5, "C": 0.9}.items()})))
    assert not marks(bias_table(long(APART), mark=False))


def test_an_end_that_does_not_differ_from_the_next_cell_has_no_mark() -> None:
    alike = {"A": {"hol": [0.24, 0.25, 0.26]}, "B": {"hol": [0.25, 0.26, 0.24]}, "C": {"hol": 0.262}}
    assert not marks(bias_table(long(alike)))
    tie = bias_table(long({**alike, "C": {"hol": 0.9}}))  # A and B are equal, and both are the best
    assert marks(tie) == {("sender/C", "hol"): "worst"}
    noise = {"A": {"hol": [0.24, 0.26]}, "B": {"hol": [0.25, 0.26]}, "C": {"hol": [0.25, 0.24]}}
    assert not marks(bias_table(long(noise)))
    assert not marks(bias_table(long(noise), "ci95"))
    for spread in ("sd", "sem", "ci95"):
        apart = bias_table(long({**noise, "C": {"hol": [0.45, 0.44]}}), spread)
        assert marks(apart) == {("sender/C", "hol"): "worst"}


def test_cut_cells_are_not_marked_and_hide_the_largest_ratio() -> None:
    values = {"A": {"hol": [2.0, 2.1]}, "B": {"hol": [9.0, 9.1]}, "C": {"hol": [20.0, 20.0]}}
    rows = long(values, measure="ratio", protocol="acquire", cap=20.0)
    assert marks(bias_table(rows)) == {("sender/A", "hol"): "worst", ("sender/C", "hol"): "best"}
    assert marks(bias_table(rows.assign(censored=rows["value"].eq(20)))) == {("sender/A", "hol"): "worst"}
    assert marks(bias_table(rows.assign(censored=rows["value"].lt(20)))) == {}


def test_a_noisy_mean_is_not_the_best() -> None:
    """A model of which one seed never learns a grammar has the largest mean, but a mean of nothing in particular."""
    values = {"A": {"rot": [0.6, 1.0, 13.4]}, "B": {"rot": [2.0, 2.1, 2.2]}, "C": {"rot": [2.3, 2.2, 2.4]}}
    assert not marks(bias_table(long(values, measure="ratio", protocol="acquire", cap=20.0)))


def test_models_that_learn_by_heart_are_not_marked() -> None:
    memory = long({"Hashtable": {"rot": 0.99, "shufdet": 0.99}}, parameters=0)
    table = bias_table(pd.concat([long(APART), memory]))
    assert marks(table)["sender/B", "shufdet"] == "best"
    assert ("sender/Hashtable", "shufdet") not in marks(table)


def test_only_rows_with_the_same_frequencies_and_lengths_are_compared() -> None:
    drawn = {"frequencies=zipf:1": 0.5, "frequencies=zipf:2, layers=2": 0.7, "word_lengths=1-4": 0.8, "layers=2": 0.9}
    parts = [long({"A": {"rot": [value, value + 0.01]}}).assign(options=text) for text, value in drawn.items()]
    assert not marks(bias_table(pd.concat(parts)))
    assert marks(bias_table(pd.concat([part.assign(options=f"layers={n}") for n, part in enumerate(parts)])))


# -- no table pools results of several settings into one row, whatever the kind of job ---------------------------------


BASE: dict[str, dict[str, Any]] = {
    "probe": {"model": "sender/FC2L", "grammar": "perm", "meanings": "2x3", "seeds": 1},
    "e2e": {"sender": "FC2L", "receiver": "FC1L", "pretrain": "perm", "meanings": "2x3", "seeds": 1},
    "s2b": {"quick": True, "seeds": 1},
    "games": {"quick": True, "seeds": 1},
    "study": {"player": "FC1L", "dataset": "synth", "grammar": "perm", "instances": 1},
}
CHANGES: dict[str, dict[str, Any]] = {
    "probe": {
        "hidden": 64, "representation": "discr", "protocol": "budget", "target": 0.7, "cap": 5, "vocab_size": 5,
        "settings": {"learning_rate": 0.01}, "preset": "published",
    },
    "e2e": {
        "hidden": 64, "representation": "discr", "pretrain_representation": "gumb", "steps": 10, "most": 10,
        "report_every": 7, "settings": {"learning_rate": 0.01},
    },
    "s2b": {"shots": 2, "most": 4, "least": 3, "game": {"query": "tss"}, "updates": 7, "core": "joint", "deaf": True},
    "games": {
        "channel": "gs", "rule_length": 2, "distractors": 4, "message_length": 2, "sender_hidden": 32,
        "sender_sees": "both", "settings": {"learning_rate": 0.01}, "distractor_kind": "near", "preset": "published",
    },
    "study": {
        "hidden": 64, "representation": "discr", "list_seed": 1, "preset": "published", "protocol": "converged",
        "dataset": "eng", "settings": {"learning_rate": 0.01},
    },
}  # fmt: skip


def results(kind: str, changes: dict[str, Any], out: Path) -> ProbeResult:
    """Return results, made up, of a plan of a kind of job with and without a change."""
    found: dict[str, Any] = {}
    for change in ({}, changes):
        spec = job_kind(kind).request_class().asked(**{**BASE[kind], **change, "out": out})
        for row in make_plan(spec).rows:
            for replicate in row.job.replicates:
                good = {"failed": False, "reason": "steps", "steps": 10, "value": 0.5, "accuracy": 0.5}
                record: Any = {**row.job.failure(replicate, IcyError()), **good}
                found[record["key"]] = record
    return ProbeResult(list(found.values()))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, changes in CHANGES.items() for name in changes])
def test_settings_have_rows_of_their_own(kind: str, name: str, tmp_path: Path) -> None:
    result = results(kind, {name: CHANGES[kind][name]}, tmp_path)
    table = result.whole_table()
    labels = [tuple(texts) for texts, _ in table.rows]
    assert len(set(labels)) == len(labels) >= 2
    assert all(cell.seeds <= 1 for _, cells in table.rows for cell in cells.values())
    if kind == "study":
        rows = rows_of_long(result.to_dataframe())
        exact = rows[(rows["metric"] == "exact") & (rows["split"] == "held-out")]
        assert len(exact) == 2
        assert not exact.duplicated(["agent", "protocol", "preset", "dataset", "grammar"]).any()


# -- rendering tables --------------------------------------------------------------------------------------------------


def test_a_table_shows_and_saves_itself(tmp_path: Path) -> None:
    table = bias_table(long(THREE))
    assert repr(table) == table.render("text")
    assert table._repr_html_() == table.render("html")
    for suffix, format in (".tex", "latex"), (".json", "json"), (".md", "markdown"):
        assert table.save(tmp_path / f"t{suffix}").read_text() == table.render(format) + "\n"
    (first, *_) = json.loads(table.render("json"))
    assert (first["parameters"], first["seeds"], first["rot"]["seeds"]) == (100, 2, 2)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    table = bias_table(
        pd.concat([long(THREE), long(THREE, representation="gumb", options="a_b=50%")]), compare=long(THREE)
    )
    other = replace(table, caption="50% of A_B & \n\n C", label="tab:a_b", footnotes=False)
    third = replace(table, caption=r"Ratios on \texttt{rot}, $p < 0.05$")
    body = "\n".join(one.render("latex") for one in (table, other, third))
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\\begin{document}\n" + body + "\n\\end{document}\n"
    )
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "t.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-1500:]
