"""Tables of several rows: groups, order, marks, and what stands beside a cell."""

from __future__ import annotations

import io
import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from pandas.testing import assert_frame_equal

import icy
from icy.analysis.tables.bias import bias_table, difference_table
from icy.cli import main
from icy.core.errors import IncompatibleError, InvalidSettingError, UnknownNameError
from icy.experiments.results import read_results
from icy.records.load import long_of, read_long
from icy.records.long_table import LONG
from icy.records.select import select

SETTING = {
    "representation": "soft", "meanings": "5x10", "vocab_size": 4, "word_length": 4, "hidden_size": 128,
    "protocol": "budget", "target": 0.99, "cap": 1.0, "preset": "default", "settings": "", "options": "",
    "measure": "accuracy", "cut": False, "failed": False, "parameters": 100, "parameters_published": 120, "steps": 500,
}  # fmt: skip


def long(values: dict[str, dict[str, Any]], **changes: Any) -> pd.DataFrame:
    """A long table of models, grammars, and values over seeds from 123 on."""
    rows = []
    for model, grammars in values.items():
        for grammar, numbers in grammars.items():
            for seed, value in enumerate(numbers if isinstance(numbers, list) else [numbers], start=123):
                about = {"model": f"sender/{model}", "side": "sender", "grammar": grammar, "seed": seed, "value": value}
                rows.append({**SETTING, **about, "key": f"{model}{grammar}{seed}{changes}", **changes})
    return pd.DataFrame(rows).reindex(columns=list(LONG))


THREE = {
    "A": {"concat": 1.0, "rot": [0.5, 0.7], "shufdet": 0.9, "perm": 1.0},
    "B": {"concat": 1.0, "rot": [0.8, 0.8], "shufdet": 0.95, "perm": 0.9},
    "C": {"concat": 1.0, "rot": [0.4, 0.4], "shufdet": 0.8, "perm": 0.8},
}


def marks(table: Any) -> dict[tuple[str, str], str]:
    return {(labels[0], g): c.mark for labels, cells in table.rows for g, c in cells.items() if c.mark}


def test_best_and_worst_are_those_of_a_bias_to_composition() -> None:
    table = bias_table(long(THREE))
    assert marks(table) == {
        ("sender/B", "rot"): "worst",
        ("sender/C", "rot"): "best",
        ("sender/B", "shufdet"): "best",
        ("sender/C", "shufdet"): "worst",
    }
    assert table.arrows == {"rot": "↓", "shufdet": "↑"}
    assert table.head()[-4:] == ["concat", "perm", "rot ↓", "shufdet ↑"]


def test_a_ratio_reads_the_other_way() -> None:
    table = bias_table(long(THREE, measure="ratio", protocol="acquire"))
    assert table.arrows == {"rot": "↑", "shufdet": "↓"}
    assert marks(table)["sender/B", "rot"] == "best"


def test_two_rows_or_equal_rows_have_no_best() -> None:
    assert not marks(bias_table(long({name: THREE[name] for name in "AB"})))
    assert not marks(bias_table(long({name: {"rot": 0.5} for name in "ABC"})))
    assert not marks(bias_table(long(THREE), mark=False))


def test_a_row_with_one_seed_takes_part_in_the_analysis_of_variance() -> None:
    alike = {"A": {"hol": [0.24, 0.25, 0.26]}, "B": {"hol": [0.25, 0.26, 0.24]}, "C": {"hol": 0.262}}
    assert not marks(bias_table(long(alike)))
    assert marks(bias_table(long({**alike, "C": {"hol": 0.9}}))) == {
        ("sender/A", "hol"): "best",
        ("sender/B", "hol"): "best",
        ("sender/C", "hol"): "worst",
    }


def test_rows_that_differ_no_more_than_their_seeds_have_no_best() -> None:
    noise = {"A": {"hol": [0.24, 0.26]}, "B": {"hol": [0.25, 0.26]}, "C": {"hol": [0.25, 0.24]}}
    assert not marks(bias_table(long(noise)))
    assert not marks(bias_table(long(noise), "ci95"))
    apart = {**noise, "C": {"hol": [0.45, 0.44]}}
    for spread in ("sd", "sem", "ci95"):
        assert marks(bias_table(long(apart), spread)) == {("sender/A", "hol"): "best", ("sender/C", "hol"): "worst"}


def test_models_that_learn_by_heart_are_not_marked() -> None:
    memory = long({"Hashtable": {"rot": 0.99, "shufdet": 0.99}}, parameters=0)
    table = bias_table(pd.concat([long(THREE), memory]))
    assert marks(table)["sender/B", "shufdet"] == "best"
    assert ("sender/Hashtable", "shufdet") not in marks(table)


def test_rows_of_other_representations_are_groups_with_marks_of_their_own() -> None:
    both = pd.concat([long(THREE, representation="discr", target=0.95), long(THREE)], ignore_index=True)
    table = bias_table(both)
    assert [(heading, len(rows)) for heading, rows in table.groups()] == [
        ("soft, target 0.99", 3),
        ("discr, target 0.95", 3),
    ]
    assert table.shown_labels == ["model", "parameters", "seeds", "concat steps"]
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
    with pytest.raises(UnknownNameError, match="representation"):
        bias_table(long(THREE), by="representations")
    with pytest.raises(UnknownNameError, match="No order of rows is called 'size'"):
        bias_table(long(THREE), sort="size")
    with pytest.raises(InvalidSettingError, match="no hol in these results"):
        bias_table(long(THREE), sort="hol")


def test_other_results_stand_beside_in_combined_standard_errors() -> None:
    other = long({"A": {"rot": [0.2, 0.4], "shufdet": 0.9}, "D": {"rot": 0.1}}, preset="published")
    table = bias_table(long(THREE), "sem", compare=other, compared="old")
    cells = {labels[0]: cells for labels, cells in table.rows}
    beside = cells["sender/A"]["rot"].beside
    assert beside is not None
    assert (beside.mean, beside.error) == pytest.approx((0.3, 0.1))
    assert beside.distance == pytest.approx(0.3 / math.hypot(0.1, 0.1))
    assert cells["sender/B"]["rot"].beside is None
    (first, *_) = table.groups()[0][1]
    assert first[-6:] == ["1.00", "1.00", "0.60±0.10", "0.30±0.10 (+2.1)", "0.90", "0.90"]
    assert table.head()[-4:] == ["rot ↓", "old", "shufdet ↑", "old"]
    assert table.to_dataframe()[("rot", "distance")].iloc[0] == pytest.approx(2.1213, abs=1e-3)
    assert {"other": pytest.approx(0.3)}.items() <= table.to_records()[0]["rot"].items()


def test_several_rows_may_have_the_same_partner() -> None:
    twice = pd.concat([long({"A": {"rot": 0.5}}), long({"A": {"rot": 0.6}}, settings="check_every=400")])
    table = bias_table(twice, compare=long({"A": {"rot": 0.4}}, preset="published"))
    assert [cells["rot"].beside.mean for _, cells in table.rows if cells["rot"].beside] == [0.4, 0.4]


def test_published_values_stand_beside() -> None:
    mine = long({"FC2L": {"rot": [0.48, 0.49, 0.50], "hol": [0.25, 0.25, 0.26]}}, preset="published")
    table = bias_table(mine, "sem", compare="published")
    cells = table.rows[0][1]
    beside = cells["rot"].beside
    assert beside is not None
    assert beside.mean == 0.49  # of the table with most of the row's cells, Perkins21's
    assert abs(beside.distance) < 1e-6
    twenty = bias_table(mine, "sem", compare="icy22/table20").rows[0][1]["rot"].beside
    assert twenty is not None
    assert twenty.mean == 0.481
    assert "in combined standard errors" in table.notes[-1]
    with pytest.raises(UnknownNameError, match="perkins21/table14"):
        bias_table(mine, compare="perkins21/table14b")


def test_published_values_stand_beside_their_own_sizes_only() -> None:
    both = pd.concat(
        [long({"FC2L": {"rot": [0.48, 0.49]}}, preset="published"), long({"FC2L": {"rot": 5.0}}, meanings="3x10")],
        ignore_index=True,
    )
    beside = [cells["rot"].beside for _, cells in bias_table(both, compare="published").rows]
    assert beside[0] is not None
    assert beside[1] is None


def test_a_cut_is_marked_on_whichever_side_of_a_difference() -> None:
    other = long({"A": {"rot": [20.0, 20.0]}}, cut=True)
    assert difference_table(long(THREE), other).rows[0][1]["rot"].cut == 2


def test_differences_are_taken_seed_by_seed() -> None:
    other = long({"A": {"rot": [0.4, 0.5]}}, settings="check_every=400")
    table = difference_table(long(THREE), other, "wide", "sem")
    ((labels, cells),) = table.rows
    assert labels[0] == "sender/A"
    assert cells["rot"].mean == pytest.approx(0.15)
    assert cells["rot"].spread == pytest.approx(0.05)  # of 0.1 and 0.2; apart they would have 0.11
    assert table.groups()[0][1][0][-1] == "+0.15±0.05"
    assert "from wide" in table.notes[0]
    assert table.notes[-1] == "the other results differ from these in settings"
    with pytest.raises(IncompatibleError, match="--compare"):
        difference_table(long(THREE), long({"D": {"rot": 0.1}}))


def test_rows_of_other_results_that_are_alike_cannot_be_told_apart() -> None:
    other = pd.concat([long({"A": {"rot": 0.1}}, settings=s, key=s) for s in ("x=1", "x=2")], ignore_index=True)
    with pytest.raises(InvalidSettingError, match="several rows of sender/A"):
        bias_table(long(THREE), compare=other)
    same = long({"A": {"rot": 0.3}})
    table = bias_table(long(THREE), compare=pd.concat([other, same], ignore_index=True))
    beside = table.rows[0][1]["rot"].beside
    assert beside is not None
    assert beside.mean == 0.3


def test_what_cannot_be_compared_is_said() -> None:
    nothing = bias_table(long(THREE), compare=long({"D": {"rot": 0.1}}))
    assert nothing.beside == set()
    assert nothing.notes[-1] == (
        "Nothing of the other results is of the same models, sizes, options and protocol as these rows."
    )
    cut = {"measure": "ratio", "protocol": "acquire", "cut": True, "cap": 20.0}
    both = bias_table(long({"A": {"hol": [20.0, 20.0]}}, **cut), compare=long({"A": {"hol": [20.0, 20.0]}}, **cut))
    beside = both.rows[0][1]["hol"].beside
    assert beside is not None
    assert beside.text(2) == "20.00±0.00†"  # that both were cut says nothing of their distance
    assert bias_table(long({"A": {"rot": [0.5, 0.7], "hol": 0.2}})).notes[-1] == (
        "1 cells rest on fewer seeds than their row"
    )
    with pytest.raises(InvalidSettingError, match="Results are a ProbeResult"):
        bias_table(long(THREE), compare=42)
    with pytest.raises(InvalidSettingError, match="decimals"):
        bias_table(long(THREE), decimals=-1)


def test_the_note_names_the_published_tables() -> None:
    rows = [long({"FC2L": {"rot": [0.48, 0.49]}}), long({"FC2L": {"rot": [20.0, 20.0]}}, protocol="acquire", target=0.8,
            measure="ratio", cap=20.0)]  # fmt: skip
    notes = [bias_table(part, compare="published").notes[-1] for part in rows]
    assert notes[0].startswith("beside: what was published in perkins21/table13, ± standard error")
    assert notes[1].startswith("beside: what was published in icy22/table3, ± standard error")


def test_models_with_other_options_are_other_models() -> None:
    deep = long({"RNNZero:GRU": {"rot": [0.5, 0.6]}}, options="layers=3")
    plain = long({"RNNZero:GRU": {"rot": [0.4, 0.5]}})
    assert bias_table(deep, compare=plain).beside == set()
    assert bias_table(plain, compare="published").beside == {"rot"}
    assert bias_table(deep, compare="published").beside == set()
    with pytest.raises(IncompatibleError):
        difference_table(deep, plain)


def test_only_of_ratios_does_a_cut_hide_the_distance() -> None:
    low, high = {"A": {"rot": [0.30, 0.32]}}, {"A": {"rot": [0.80, 0.82]}}
    held_out = {"protocol": "generalise", "measure": "held_out", "cut": True, "held_out": 0.2, "split": "random"}
    for one, other, sign in ((low, high, "-"), (high, low, "+")):
        beside = bias_table(long(one, **held_out), compare=long(other, **held_out)).rows[0][1]["rot"].beside
        assert beside is not None
        assert beside.text(2).endswith(f"({sign}35.4)")
    cap = {"protocol": "acquire", "measure": "ratio"}
    larger = long({"A": {"rot": [30.0, 32.0]}}, cap=40.0, **cap)
    at_20 = long({"A": {"rot": [20.0, 20.0]}}, cap=20.0, cut=True, **cap)
    beside = bias_table(larger, compare=at_20).rows[0][1]["rot"].beside
    assert beside is not None
    assert beside.text(2) == "20.00±0.00†"  # it may be 30 as well


def test_a_single_seed_borrows_the_error_of_the_other() -> None:
    beside = bias_table(long({"A": {"rot": 0.5}}), compare=long({"A": {"rot": [0.40, 0.42]}})).rows[0][1]["rot"].beside
    assert beside is not None
    assert beside.distance == pytest.approx(0.09 / math.hypot(0.01, 0.01 * math.sqrt(2)))


def test_rows_without_parameters_are_sorted_last_and_by_what_is_shown() -> None:
    table = long(THREE, preset="published")
    table["parameters_published"] = table["model"].map({"sender/A": 300, "sender/B": 250})
    assert [labels[1] for labels, _ in bias_table(table, sort="parameters").rows] == ["250", "300", "-"]
    assert [labels[1] for labels, _ in bias_table(table, sort="-parameters").rows] == ["300", "250", "-"]


def test_a_frame_keeps_what_was_cut_and_failed() -> None:
    both = [long({"A": {"rot": [20.0, 20.0]}}, cut=True), long({"A": {"rot": math.nan}}, seed=9, failed=True)]
    frame = bias_table(pd.concat(both, ignore_index=True)).to_dataframe()
    assert frame["rot"].iloc[0].to_dict() == {"mean": 20.0, "spread": 0.0, "seeds": 2, "cut": 2, "failed": 1}


def test_what_is_undefined_has_not_failed() -> None:
    (line,) = bias_table(long({"A": {"rot": [0.5, math.nan]}})).rows
    assert (line[1]["rot"].seeds, line[1]["rot"].failed) == (1, 0)


def test_a_table_shows_and_saves_itself(tmp_path: Path) -> None:
    table = bias_table(long(THREE))
    assert repr(table) == table.render("text")
    assert table._repr_html_() == table.render("html")
    for suffix, format in (".tex", "latex"), (".json", "json"), (".md", "markdown"):
        assert table.save(tmp_path / f"t{suffix}").read_text() == table.render(format) + "\n"
    (first, *_) = json.loads(table.render("json"))
    assert (first["parameters"], first["seeds"], first["rot"]["seeds"]) == (100, 2, 2)
    with pytest.raises(InvalidSettingError, match=r"not as 't\.doc'"):
        table.save(tmp_path / "t.doc")


def test_formats_mark_and_escape() -> None:
    table = bias_table(pd.concat([long(THREE), long(THREE, representation="gumb")]))
    markdown = table.render("markdown").splitlines()
    assert "| **gumb** |" in "\n".join(markdown)
    assert "| *0.80±0.00* |" in "\n".join(markdown)
    latex = table.render("latex")
    assert r"\toprule" in latex
    assert r"rot $\downarrow$" in latex
    assert r"\textbf{0.40$\pm$0.00}" in latex
    assert r"\multicolumn{8}{l}{\emph{gumb}} \\" in latex
    html = table.render("html")
    assert '<th colspan="8" style="text-align:left">soft</th>' in html
    assert "<b>0.95</b>" in html
    assert len(table.render("csv").splitlines()) == 7


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    table = bias_table(
        pd.concat([long(THREE), long(THREE, representation="gumb", options="a_b=50%")]), compare=long(THREE)
    )
    body = table.render("latex")
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


# -- reading and the command -------------------------------------------------------------------------------------------


def test_results_are_read_alike_from_everywhere(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    expected = tiny.to_dataframe().sort_values("key", ignore_index=True)
    saved = tiny.save(tmp_path / "saved.json")
    places = [tiny_folder, saved, tiny_folder / "results.csv", tiny_folder / "results.parquet"]
    for place in places:
        found = read_long(place).sort_values("key", ignore_index=True)
        assert_frame_equal(found, expected, check_dtype=False)
        assert bias_table(found).render("text").splitlines()[0] == tiny.table().splitlines()[0]
    both = read_results(places)
    assert isinstance(both, pd.DataFrame)
    assert len(both) == len(expected)
    assert isinstance(read_results([tiny_folder, saved]), icy.ProbeResult)


def test_lines_that_stand_twice_count_once() -> None:
    table = long({"A": {"rot": [0.4, 0.6]}})
    assert len(long_of(pd.concat([table, table]))) == 2
    without_keys = table.assign(key=None, value=table["value"] + 0.1)
    with pytest.raises(InvalidSettingError, match="two values of sender/A on rot with seed 123"):
        long_of(pd.concat([table, without_keys]))


def test_a_failure_does_not_stand_before_a_result(tmp_path: Path) -> None:
    table = long({"A": {"rot": [0.4, 0.6]}})
    failed = table.assign(value=math.nan, failed=True, key="again")
    assert long_of(pd.concat([table, failed]))["value"].tolist() == [0.4, 0.6]
    games = table.assign(side="pair", value=math.nan, end_to_end_accuracy=[0.2, 0.3])
    with pytest.raises(InvalidSettingError, match="two values"):
        long_of(pd.concat([games, games.assign(end_to_end_accuracy=[0.2, 0.9])]))
    places = [tmp_path / "good.csv", tmp_path / "failed.csv"]
    for place, one in zip(places, (table, failed), strict=True):
        one.to_csv(place, index=False)
    assert long_of(read_results(places))["value"].tolist() == [0.4, 0.6]
    assert len(select(pd.concat([table, table], ignore_index=True), ["A"])) == 2


def test_bare_names_are_told_apart_by_their_side() -> None:
    least = pd.DataFrame({"model": "FC1L", "side": ["sender", "receiver"], "grammar": "rot", "seed": 1, "value": 0.5})
    assert long_of(least)["model"].tolist() == ["sender/FC1L", "receiver/FC1L"]


@pytest.mark.parametrize("seed", [math.inf, 1.5])
def test_seeds_are_whole(seed: float) -> None:
    with pytest.raises(InvalidSettingError, match="no whole number"):
        long_of(long({"A": {"rot": [0.4, 0.6]}}).astype({"seed": float}).replace({"seed": {124: seed}}))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_several_tables_the_last_counts(order: tuple[int, int], tmp_path: Path) -> None:
    tables = [long({"A": {"rot": [0.4, 0.6]}}), long({"A": {"rot": [0.5, 0.7]}}).assign(key=None)]
    for place, table in enumerate(tables):
        table.to_csv(tmp_path / f"{place}.csv", index=False)
    found = read_results([tmp_path / f"{place}.csv" for place in order])
    assert isinstance(found, pd.DataFrame)
    assert found["value"].tolist() == tables[order[1]]["value"].tolist()


@pytest.mark.parametrize(
    ("column", "word", "sentence"),
    [("value", "n/k", "'n/k', not a number"), ("cap", "twenty", "a number"), ("failed", "perhaps", "yes or no")],
)
def test_words_in_the_place_of_numbers(column: str, word: str, sentence: str) -> None:
    table = long({"A": {"rot": [0.4, 0.6]}}).astype({column: object})
    table.loc[1, column] = word
    with pytest.raises(InvalidSettingError, match=sentence):
        long_of(table)


@pytest.mark.parametrize("word", ["yes", " TRUE", "1", True])
def test_a_failure_may_be_written_in_several_ways(word: Any) -> None:
    table = long({"A": {"rot": [0.4, 0.6]}}).astype({"failed": object})
    table.loc[0, "failed"] = word
    assert long_of(table)["failed"].tolist() == [True, False]


def test_selection() -> None:
    table = long(THREE)
    assert set(select(table, ["a", "sender/B"])["model"]) == {"sender/A", "sender/B"}
    assert set(select(table, grammars=["*rot*"])["grammar"]) == {"rot"}
    with pytest.raises(UnknownNameError, match="No grammar in these results is called 'hol'"):
        select(table, grammars=["hol"])


def run(*words: str) -> Any:
    return CliRunner().invoke(main, ["table", *words], standalone_mode=True)


def test_command(tiny: icy.ProbeResult, tiny_folder: Path, tmp_path: Path) -> None:
    shown = run(str(tiny_folder))
    assert shown.exit_code == 0
    assert shown.stdout.rstrip() == tiny.table()
    assert "rot_mean" in run(str(tiny_folder), "--format", "csv", "-g", "rot").stdout
    difference = run(str(tiny_folder), "--diff", str(tiny_folder / "results.csv"))
    assert "+0.00±0.00" in difference.stdout
    beside = run(str(tiny_folder), "--compare", str(tiny_folder))
    assert f"  {tiny_folder.name}  " in beside.stdout
    assert beside.stdout.count("(+0.0)") == 3  # concat, perm and rot
    for suffix, word in (
        (".md", "| model"),
        (".tex", "tabular"),
        (".html", "<table"),
        (".csv", "model"),
        (".txt", "---"),
    ):
        file = tmp_path / f"t{suffix}"
        assert run(str(tiny_folder), "--save", str(file)).exit_code == 0
        assert word in file.read_text()


def test_a_protocol_without_a_counterpart_is_left_out(tmp_path: Path) -> None:
    budget = long(THREE)
    pd.concat([budget, long(THREE, protocol="acquire", measure="ratio")]).to_csv(tmp_path / "both.csv", index=False)
    budget.to_csv(tmp_path / "budget.csv", index=False)
    shown = run(str(tmp_path / "both.csv"), "--diff", str(tmp_path / "budget.csv"))
    assert shown.exit_code == 0
    assert shown.stdout.count("+0.00") == 12
    assert "the protocol acquire" in shown.stderr


def test_several_protocols_are_one_json_and_one_csv(tmp_path: Path) -> None:
    both = pd.concat([long(THREE), long(THREE, protocol="acquire", measure="ratio")], ignore_index=True)
    both.to_parquet(tmp_path / "both.parquet")
    records = json.loads(run(str(tmp_path / "both.parquet"), "--format", "json").stdout)
    assert [(r["protocol"], r["model"]) for r in records][::3] == [("budget", "sender/A"), ("acquire", "sender/A")]
    frame = pd.read_csv(io.StringIO(run(str(tmp_path / "both.parquet"), "--format", "csv").stdout))
    assert frame["protocol"].tolist() == ["budget"] * 3 + ["acquire"] * 3
    least = both[["model", "grammar", "seed", "value"]].drop_duplicates(["model", "grammar", "seed"])
    least.to_csv(tmp_path / "least.csv", index=False)
    shown = run(str(tmp_path / "least.csv"), str(tmp_path / "least.csv")).stdout
    assert "sender/B" in shown
    assert shown.splitlines()[0] == "accuracy"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sort", "hol"], "There is no hol in these results"),
        (["--by", "models"], "No column to group by is called 'models'"),
        (["--compare", "perkins21/table99"], "No published table is called"),
        (["--diff", "nowhere"], "There is no file or folder nowhere"),
        (["--diff", "x", "--compare", "published"], "give one of the two"),
        (["--save", "t.doc"], "not as 't.doc'"),
        (["-m", "GRU"], "No model in these results is called 'GRU'"),
    ],
)
def test_mistakes(words: list[str], sentence: str, tiny: icy.ProbeResult, tiny_folder: Path) -> None:
    done = run(str(tiny_folder), *words)
    assert done.exit_code == (1 if "nowhere" in words else 2)
    assert sentence in done.stderr
    assert done.stdout == ""
