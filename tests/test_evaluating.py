"""Several metrics at once, their conventions, errors over resampled rows, and `icy metrics`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import icy
from icy.analysis.plots.metric_bars import plot_metrics
from icy.analysis.tables.metrics import metrics_table
from icy.cli import main
from icy.core.errors import IcyError
from icy.core.registry import register_metric
from icy.metrics import Score, Table, evaluate, posdis, topsim

FAST = ["topsim", "posdis", "hce"]


@pytest.fixture(scope="module")
def language() -> icy.Language:
    return icy.make_language("shufdet", "2x4", 3, 3, 1)


def test_one_row_with_a_column_for_every_metric(language: icy.Language) -> None:
    row = evaluate(language, metrics=FAST)
    assert row.shape[0] == 1
    assert row["topsim"][0] == topsim(language).value
    assert row["posdis"][0] == posdis(language).value
    assert row[["name", "rows", "attributes", "length", "vocab_size"]].values.tolist() == [["shufdet", 16, 2, 6, 3]]
    assert list(row.attrs["scores"]) == FAST
    assert not [column for column in row if str(column).endswith("_error")]
    assert "name" in evaluate(language.space.all(), language.messages, metrics="*dis")


def test_conventions_reach_the_metric(language: icy.Language) -> None:
    row = evaluate(language, metrics=FAST, conventions={"topsim": {"message": "hamming", "pairs": 50}})
    assert row["topsim"][0] == topsim(language, message="hamming", pairs=50).value
    assert row["topsim_error"][0] == topsim(language, message="hamming", pairs=50).error


def test_what_a_metric_refuses_costs_no_other(language: icy.Language) -> None:
    meanings = language.space.all() + 0.5
    row = evaluate(meanings, language.messages, metrics=FAST, conventions={"topsim": {"meaning": "euclidean"}})
    assert math.isfinite(row["topsim"][0])
    assert math.isnan(row["posdis"][0])
    assert "discrete attributes" in row.attrs["scores"]["posdis"].why
    with pytest.raises(IcyError, match="discrete attributes"):
        evaluate(meanings, language.messages, metrics="posdis")


def test_bootstrap_errors(language: icy.Language) -> None:
    first, again = (evaluate(language, metrics=FAST, errors="bootstrap", resamples=20, seed=3) for _ in range(2))
    assert first.equals(again)
    draws = icy.metrics.table.Table.of(language)
    from icy.core.streams import stream

    random = stream(3, "bootstrap")
    values = [topsim(draws.rows(random.integers(16, size=16))).value for _ in range(20)]
    assert first["topsim_error"][0] == pytest.approx(np.std(values, ddof=1))
    assert first.attrs["scores"]["topsim"].error_of == "20 bootstrap samples of the rows"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"metrics": "topsin"}, "did you mean topsim"),
        ({"metrics": []}, "No metric was given"),
        ({"conventions": {"bosdis": {}}}, "No metric with conventions here is called 'bosdis'"),
        ({"conventions": {"topsim": {"mesage": "hamming"}}}, "No convention of topsim is called 'mesage'"),
        ({"conventions": {"topsim": {"message": "haming"}}}, "did you mean hamming"),
        ({"errors": "jackknife"}, "No way to an error"),
        ({"resamples": 1}, "at least 2"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(language: icy.Language, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(IcyError, match=sentence):
        evaluate(language, **{"metrics": FAST, **options})


def test_a_metric_of_ones_own(language: icy.Language, forgetting: None) -> None:
    @register_metric("mean_length", source="this test")
    def mean_length(meanings: Any, messages: Any = None, *, eos: int | None = None) -> Score:
        """Mean length of a message."""
        table = Table.of(meanings, messages, eos=eos)
        return Score("mean_length", float(table.lengths.mean()), len(table), {"eos": eos})

    assert "mean_length" in icy.list_metrics("mean*")
    assert evaluate(language, metrics=["mean_length", "hce"])["mean_length"][0] == 6


def test_the_plug_in_of_the_documentation(tmp_path: Path, forgetting: None) -> None:
    text = (Path(__file__).parent.parent / "docs" / "metrics.md").read_text()
    (block,) = [part.partition("\n")[2] for part in text.split("```") if part.startswith("python\n# mine.py")]
    (tmp_path / "mine.py").write_text(block)
    words = ["-m", "distinctness", "--plugin", str(tmp_path / "mine.py"), "--meanings", "2x3", "--seeds", "1"]
    result = run("concat", *words)
    assert result.exit_code == 0, result.output
    assert "1.000" in result.stdout


# -- icy metrics -------------------------------------------------------------------------------------------------------

SMALL = ("--meanings", "2x3", "--word-length", "2", "-m", "topsim", "-m", "posdis")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["metrics", *words])


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


def test_files_and_formats(tmp_path: Path) -> None:
    file = icy.make_language("rot", "2x3", 4, 2, 1).save(tmp_path / "mine.csv")
    records = json.loads(run(str(file), *SMALL, "--format", "json").stdout)
    assert records[0]["language"] == "rot"
    assert records[0]["posdis"]["seeds"] == 1
    assert run(str(file), *SMALL, "--format", "csv").stdout.startswith("language,rows,")
    assert r"\begin{tabular}" in run(str(file), *SMALL, "--format", "latex").stdout
    assert run(str(file), *SMALL, "--format", "markdown").stdout.count("|") > 20


def test_pairs_and_conventions_of_the_command(tmp_path: Path) -> None:
    result = run(
        "rot", "-m", "topsim", "--meanings", "2x3", "--seeds", "1", "--pairs", "40", "--set", "message=hamming"
    )
    expected = topsim(icy.make_language("rot", "2x3", 4, 4, 123), pairs=40, message="hamming")
    assert f"{expected.value:.3f}±{expected.error:.3f}" in result.stdout
    assert "message hamming, pairs 40" in result.stdout


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("rott", *SMALL), 2, "did you mean rot"),
        (("none.csv", *SMALL), 1, "none.csv"),
        (("no/such", *SMALL), 1, "no file that can be read, and no grammar"),
        (("rot", *SMALL, "--pairs", "many"), 2, "--pairs is auto, all"),
        (("rot", *SMALL, "--set", "message=hamming"), 2, "Say of which metric"),
        (("rot", *SMALL, "--set", "topsim.message=haming"), 2, "did you mean hamming"),
        (("rot", *SMALL, "--plot", "x.gif"), 2, "A plot is written as .png"),
        (("rot", *SMALL, "--out", "x.xlsx"), 2, "Rows are written as .csv or .parquet"),
        (("rot", "-m", "topsin"), 2, "did you mean topsim"),
        ((), 2, "Missing argument"),
    ],
)
def test_mistakes_at_the_command_line(words: tuple[str, ...], code: int, sentence: str) -> None:
    result = run(*words)
    assert result.exit_code == code
    assert sentence in result.output
    assert "Traceback" not in result.output


def test_list_metrics() -> None:
    result = CliRunner().invoke(main, ["list", "metrics", "*dis"])
    assert result.output.splitlines()[2:] == [] or "bosdis" in result.output
    assert "posdis" in result.output
    assert "topsim" not in result.output


def test_undefined_is_shown_and_explained(tmp_path: Path) -> None:
    (tmp_path / "same.csv").write_text("a,b,message\n0,0,x\n0,1,x\n1,0,x\n")
    result = run(str(tmp_path / "same.csv"), "-m", "topsim", "-m", "posdis")
    assert result.exit_code == 0
    assert "topsim of same is undefined: all pairs of meanings, or all pairs of messages" in result.stdout


def test_figure_and_table_of_scores() -> None:
    rows = pd.DataFrame(
        {"name": ["rot", "rot", "mine"], "seed": [1, 2, None], "rows": 9, "attributes": 2, "length": 4, "vocab_size": 4,
         "topsim": [0.25, 0.75, -0.5], "tre": [1.0, 3.0, math.nan], "topsim_error": [math.nan, math.nan, 0.125]}
    )  # fmt: skip
    table = metrics_table(rows, ["topsim", "tre"], "sem")
    assert [row[-2:] for row in table.texts()[1:]] == [["0.500±0.250", "2.000±1.000"], ["-0.500±0.125", "-"]]
    figure = plot_metrics(rows, ["topsim", "tre"])
    assert [ax.get_title() for ax in figure.axes] == ["topsim", "tre"]
    assert [bar.get_width() for bar in figure.axes[0].patches] == [0.5, -0.5]
