"""`icy metrics`."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import icy
from icy.metrics import permutation_test, topsim
from tests.cli.helpers import run as icy_run


def test_the_plug_in_of_the_documentation(tmp_path: Path, forgetting: None) -> None:
    text = (Path(__file__).parents[3] / "docs" / "plug-ins.md").read_text()
    (block,) = [part.partition("\n")[2] for part in text.split("```") if part.startswith("python\n# my_metric.py")]
    (tmp_path / "mine.py").write_text(block)
    words = ["-m", "distinctness", "--plugin", str(tmp_path / "mine.py"), "--meanings", "2x3", "--seeds", "1"]
    result = run("concat", *words)
    assert result.exit_code == 0, result.output
    assert "1.000" in result.stdout


# -- icy metrics -------------------------------------------------------------------------------------------------------

SMALL = ("--meanings", "2x3", "--word-length", "2", "-m", "topsim", "-m", "posdis")
run = partial(icy_run, "metrics")


def test_grammars_over_seeds(tmp_path: Path) -> None:
    out, plot = tmp_path / "rows.csv", tmp_path / "bars.png"
    result = run("concat", "hol", *SMALL, "--seeds", "3", "--out", str(out), "--plot", str(plot))
    assert result.exit_code == 0, result.output
    rows = pd.read_csv(out)
    assert rows[["name", "seed"]].values.tolist() == [[g, s] for g in ("concat", "hol") for s in (123, 124, 125)]
    expected = [topsim(icy.make_language("hol", "2x3", 4, 2, s)).value for s in (123, 124, 125)]
    assert rows.query("name == 'hol'")["topsim"].tolist() == pytest.approx(expected)
    assert f"{np.mean(expected):.3f}±{np.std(expected, ddof=1):.3f}" in result.stdout
    assert "topsim: correlation spearman, meaning hamming, message levenshtein, pairs all" in result.stdout
    assert plot.stat().st_size > 5000


def test_pairs_and_conventions_of_the_command(tmp_path: Path) -> None:
    result = run(
        "rot", "-m", "topsim", "--meanings", "2x3", "--seeds", "1", "--pairs", "40", "--set", "message=hamming"
    )
    expected = topsim(icy.make_language("rot", "2x3", 4, 4, 123), pairs=40, message="hamming")
    assert f"{expected.value:.3f}±{expected.error:.3f}" in result.stdout
    assert "message hamming, pairs 40" in result.stdout


def test_files_say_why_a_value_is_undefined(tmp_path: Path) -> None:
    (tmp_path / "same.csv").write_text("a,b,message\n0,0,x\n0,1,x\n1,0,x\n")
    (tmp_path / "good.csv").write_text("a,b,message\n0,0,xu\n0,1,xv\n1,0,yu\n")
    words = [str(tmp_path / "good.csv"), str(tmp_path / "same.csv"), "-m", "topsim", "-m", "tre", "-q"]
    reasons = {
        "topsim_why": "all pairs of meanings, or all pairs of messages, are equally far apart",
        "tre_why": "all messages are alike, which any composition reconstructs",
    }
    records = json.loads(run(*words, "--format", "json").stdout)
    assert [record[name]["why"] for record in records for name in ("topsim", "tre")] == ["", "", *reasons.values()]
    printed = pd.read_csv(io.StringIO(run(*words, "--format", "csv").stdout), keep_default_na=False)
    for suffix in ("csv", "parquet"):
        run(*words, "--out", str(tmp_path / f"rows.{suffix}"))
    written = pd.read_csv(tmp_path / "rows.csv", keep_default_na=False), pd.read_parquet(tmp_path / "rows.parquet")
    for rows in (printed, *written):
        assert rows[list(reasons)].values.tolist() == [["", ""], list(reasons.values())]


def test_tables_of_one_name_in_several_places_have_rows_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, seed in (("a", 1), ("b", 2)):
        Path(folder).mkdir()
        icy.make_language("rot", "2x3", 4, 2, seed).save(f"{folder}/rot.csv")
    result = run("rot", "a/rot.csv", "b/rot.csv", *SMALL, "--seeds", "1", "--format", "csv")
    names = [line.partition(",")[0] for line in result.stdout.splitlines()[1:]]
    assert sorted(names) == ["a/rot.csv", "b/rot.csv", "rot"]


@pytest.mark.slow
def test_saved_senders_and_pairs_are_measured(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 16, "seeds": 1, "workers": 1}
    icy.probe("sender/FC1L", "perm", target=0.9, keep_models=True, out=tmp_path, **sizes)
    icy.end_to_end("FC1L", "FC1L", steps=10, report_every=10, out=tmp_path, **sizes)
    result = run(str(tmp_path), "-m", "topsim", "--format", "csv")
    assert [line.partition(",")[0] for line in result.stdout.splitlines()[1:]] == [
        "FC1L concat", "FC1L perm", "FC1L+FC1L none",
    ]  # fmt: skip
    icy.probe("sender/FC1L", "perm", keep_models=True, out=tmp_path / "wide", **{**sizes, "hidden": [8, 16]})
    wide = run(str(tmp_path / "wide"), "-m", "topsim", "--format", "csv")
    named = sorted(line.partition(",")[0] for line in wide.stdout.splitlines()[1:])
    assert named == [f"FC1L {grammar} E={size}" for grammar in ("concat", "perm") for size in (16, 8)]
    icy.probe("sender/FC1L", "perm", out=tmp_path / "plain", **sizes)
    refused = run(str(tmp_path / "plain"))
    assert refused.exit_code != 0
    assert "has no languages. Senders have them after --keep-models" in refused.stderr


def test_permutations_show_the_value_by_chance_and_p(tmp_path: Path) -> None:
    file, out = icy.make_language("rot", "2x3", 4, 2, 1).save(tmp_path / "mine.csv"), tmp_path / "rows.csv"
    words = (str(file), *SMALL, "--permutations", "60")
    test = permutation_test(icy.make_language("rot", "2x3", 4, 2, 1), permutations=60)
    text = run(*words, "--out", str(out)).stdout
    head, _, row, below = text.splitlines()[2:6]
    assert head.split()[-5:] == ["topsim", "(levenshtein)", "topsim_chance", "posdis", "posdis_chance"]
    assert row.split()[-4:-2] == [f"{test.value:.3f}", f"{test.mean:.3f}±{test.sd:.3f}"]
    assert below.split()[:2] == ["p", f"{test.p:.2g}"]
    assert "p of topsim: 60 random permutations, one-sided: greater" in text
    (record,) = json.loads(run(*words, "--format", "json").stdout)
    assert (record["topsim"]["mean"], record["topsim"]["p"]) == (test.value, test.p)
    assert (record["topsim_chance"]["mean"], record["topsim_chance"]["spread"]) == (test.mean, test.sd)
    csv = pd.read_csv(io.StringIO(run(*words, "--format", "csv").stdout), float_precision="round_trip")
    assert csv[["topsim_p", "topsim_chance_mean"]].values.tolist() == [[test.p, test.mean]]
    rows = pd.read_csv(out, float_precision="round_trip")[["topsim_chance_low", "topsim_chance_high", "topsim_p"]]
    assert rows.values.tolist() == [[test.low, test.high, test.p]]


def test_the_largest_p_of_several_seeds() -> None:
    (record,) = json.loads(run("hol", *SMALL, "--seeds", "1,2", "--permutations", "40", "--format", "json").stdout)
    tests = [permutation_test(icy.make_language("hol", "2x3", 4, 2, seed), permutations=40) for seed in (1, 2)]
    assert record["topsim"]["p"] == max(test.p for test in tests)
    assert record["topsim_chance"]["mean"] == pytest.approx(np.mean([test.mean for test in tests]))


def test_the_value_in_the_table_of_an_end_to_end_run(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"meanings": "4x5", "word_length": 1, "hidden": 8, "workers": 1, "progress": False}
    result = icy.end_to_end("FC2L", "RNN1L:GRU", steps=5, seeds=2, out=tmp_path, **sizes)
    shown = pd.read_csv(io.StringIO(run(str(tmp_path), "-m", "topsim", "--as-reported", "--format", "csv").stdout))
    reported = [record["topsim"] for record in result.records]
    assert shown["topsim_mean"][0] == pytest.approx(np.mean(reported), abs=1e-12)
    assert shown["rows"][0] < "625"  # and not all meanings
    refused = run(str(tmp_path), "-m", "ami", "--as-reported")
    assert refused.exit_code == 2
    assert "give their results folder and only `-m topsim`" in refused.output


def test_only_the_meanings_that_exist_are_measured(tmp_path: Path) -> None:
    """Also in a pack, by permutation, and with the topsim of the table of a run."""
    pets = tmp_path / "pets.csv"
    pets.write_text("kind,color,weight\ncat,black,5\ncat,white,1\ndog,brown,3\nfish,brown,1\nbird,white,1\n")
    how: dict[str, Any] = {"meanings": str(pets), "hidden": 8, "word_length": 2, "seeds": 1, "workers": 1}
    out = tmp_path / "out"
    icy.probe("sender/FC1L", "perm", **how, quick=True, keep_models=True, out=out, progress=False)
    icy.e2e("FC1L", "FC1L", **how, steps=5, frequencies="zipf:1", out=out, progress=False)
    pack = str(tmp_path / "results.parquet")
    assert icy_run("pack", str(out), "-o", pack).exit_code == 0
    for place in (str(out), pack):
        shown = run(place, "-m", "topsim,ami", "--format", "csv")
        assert "only the meanings that exist are measured, those in pets" in shown.stderr
        assert (pd.read_csv(io.StringIO(shown.stdout))["rows"].astype(int) == 5).all()
    (_, make), *_ = icy.ProbeResult.load(out).languages()
    assert make().meanings.tolist() == [[0, 2], [1, 0], [1, 2], [2, 1], [3, 1]]
    result = icy.e2e("FC1L", "FC1L", **how, steps=5, frequencies="zipf:1", out=tmp_path / "pairs", progress=False)
    shown = run(str(tmp_path / "pairs"), "-m", "topsim", "--as-reported", "--format", "csv")
    value = pd.read_csv(io.StringIO(shown.stdout))["topsim_mean"][0]
    assert value == pytest.approx(result.records[0]["topsim"], abs=1e-12)


def test_the_start_symbol_is_explained(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8, "workers": 1, "progress": False}
    for symbols, said in (("V", False), ("V+1", True)):
        out = tmp_path / symbols
        icy.end_to_end("FC2L", "RNN1L:GRU", vocab_size=1, symbols=symbols, steps=2, seeds=1, out=out, **sizes)
        assert ("V includes the start symbol" in run(str(out), "-m", "message_entropy").stdout) is said


# -- by sample size ----------------------------------------------------------------------------------------------------


def test_concept_best_matching_by_sample_size(tmp_path: Path) -> None:
    """CBM24 figure 4: the command prints what the function returns, per segment and accumulated."""
    words = ["metrics", "hol", "--meanings", "3x4", "--seeds", "1", "--by-sample-size", "--set", "cbm.segment=20"]
    done = icy_run(*words, "--format", "csv", "-o", str(tmp_path / "rows.csv"), "-q")
    assert done.exit_code == 0, done.output
    expected = icy.metrics.cbm_by_sample_size(icy.make_language("hol", "3x4", seed=123), segment=20)
    shown = pd.read_csv(io.StringIO(done.stdout))
    assert shown["drawn"].tolist() == expected["drawn"].tolist() == [20, 20, 40, 40, 60, 60]
    assert shown["cbm"].to_numpy() == pytest.approx(expected["cbm"].to_numpy(), abs=6e-4)
    written = pd.read_csv(tmp_path / "rows.csv")
    assert written["cbm"].to_numpy() == pytest.approx(expected["cbm"].to_numpy())
    assert set(written["language"]) == {"hol"}


def test_a_plot_shows_values_by_chance_and_marks_what_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icy.analysis.plots import metric_bars
    from icy.cli.commands import metrics

    figures: list[Any] = []
    monkeypatch.setattr(metrics, "save_figure", lambda figure, *more: figures.append(figure))
    words = ["--meanings", "3x3", "-m", "ami", "-m", "hce", "--permutations", "20", "--plot", str(tmp_path / "a.png")]
    for names in (["perm"], ["perm", "rot"]):
        run(*names, *words)
        figure = figures.pop()
        shown = [text.get_text() for text in figure.findobj(lambda part: hasattr(part, "get_text"))]
        assert any("‡" in text for text in shown)
        assert any("1 by convention" in text.replace("\n", " ") for text in shown)
        assert any(metric_bars.CHANCE in text.replace("\n", " ") for text in shown)


@pytest.mark.slow
@pytest.mark.parametrize("names", [("perm",), ("perm", "rot")])
def test_values_by_chance_are_inside_the_picture(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tre of shuffled messages is far above that of the language, which is 0, and above 1."""
    from icy.cli.commands import metrics

    figures: list[Any] = []
    monkeypatch.setattr(metrics, "save_figure", lambda figure, *more: figures.append(figure))
    words = ["--meanings", "3x3", "--seeds", "1", "-m", "tre", "-m", "topsim", "--permutations", "20"]
    run(*names, *words, "--plot", str(tmp_path / "a.png"))
    ends = []
    for ax in figures[0].axes:
        low, high = ax.get_xlim()
        for line in ax.lines:
            assert low <= min(line.get_xdata()) <= max(line.get_xdata()) <= high
            ends.append(max(line.get_xdata()))
    assert max(ends) > 1


def test_topsim_of_one_long_row_ends_at_once() -> None:
    from icy.metrics import topsim

    rows = np.arange(1_000_000)[None] % 7
    score = topsim([[0, 1]], rows)
    assert (score.why, score.details["pairs"]) == ("no attribute ever changes", 0)


def test_permutations_print_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ICY_PROGRESS", raising=False)
    monkeypatch.setattr("icy.core.progress.WAIT", 0.0)
    monkeypatch.setattr("icy.core.progress.BETWEEN", 0.0)
    shown = run("perm", "--meanings", "3x3", "--seeds", "1", "-m", "ami", "-m", "hce", "--permutations", "3").stderr
    assert "Permutations of ami: 1 of 3, about " in shown
    assert "Permutations of hce: 2 of 3, about " in shown
    assert "3 of 3" not in shown
    quiet = run("perm", "--meanings", "3x3", "--seeds", "1", "-m", "ami", "--permutations", "3", "--quiet")
    assert quiet.stderr == ""
