"""`icy plot`."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import icy
from icy.analysis import plots
from icy.core.errors import InvalidSettingError
from icy.experiments.results import ProbeResult
from icy.records.load import select
from tests.analysis.plots.helpers import acquire, budget
from tests.cli.helpers import run as icy_run
from tests.helpers import readable

ROOT = Path(__file__).resolve().parents[3]

# -- the command -------------------------------------------------------------------------------------------------------


run = partial(icy_run, "plot")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with results in bias/, saved.json and results.csv."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bias" / "records").mkdir(parents=True)
    for r in map(readable, budget().records):
        (tmp_path / "bias" / "records" / f"{r['key']}.json").write_text(json.dumps(r))
    ProbeResult([*map(readable, budget(["sender/FC1L"]).records)]).save(tmp_path / "saved.json")
    acquire().to_dataframe().to_csv(tmp_path / "results.csv", index=False)
    for name, value in (("negative", -1.0), ("infinite", math.inf)):
        acquire().to_dataframe().assign(value=value).to_csv(tmp_path / f"{name}.csv", index=False)
    acquire().to_dataframe().to_parquet(tmp_path / "results.parquet", index=False)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_the_command_writes_each_format_the_same_each_time(folder: Path, name: str, start: bytes) -> None:
    result = run("heat", "bias", "--save", name)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"Drawn: {name}.\n"
    written = (folder / name).read_bytes()
    assert written.startswith(start)
    assert run("heat", "bias", "--save", name, "-q").stderr == ""
    assert (folder / name).read_bytes() == written


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["bars", "bias", "saved.json"],
        ["curves", "bias", "saved.json", "--model", "fc*"],
        ["ratios", "results.csv", "--spread", "ci95"],
        ["ratios", "results.parquet", "--grammar", "rot", "--width", "3.4"],
        ["tradeoff", "bias", "results.csv", "--title", "mine"],
        ["parameters", "bias", "--where", "seed=123"],
    ],
)
def test_the_command_draws_its_arguments(folder: Path, words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert (folder / f"{words[0]}.png").stat().st_size > 5000


@pytest.mark.slow
def test_the_style_of_papers_is_a_vector_figure_with_its_text_for_the_caption(folder: Path) -> None:
    result = run("heat", "results.csv", "--style", "paper")
    assert result.exit_code == 0, result.output
    assert b"/MediaBox [ 0 0 234 " in (folder / "heat.pdf").read_bytes()  # 3.25 inches
    drawn, caption = result.stderr.splitlines()
    assert drawn == "Drawn: heat.pdf."
    assert caption.startswith(
        "For the caption: How much longer than concat each model takes to learn a grammar. Acquire: "
    )
    assert "† cut at the cap of 20" in caption


def test_choices_that_fit_nothing_together(folder: Path) -> None:
    both = select(budget() + acquire(), where={"protocol": "ACQUIRE", "hidden_size": 32.0})
    assert {r["protocol"] for r in both.records} == {"acquire"}
    with pytest.raises(InvalidSettingError, match="no result matches all"):
        select(budget(["sender/A"]) + acquire(["sender/B"]), models=["A"], where={"protocol": "acquire"})


@pytest.mark.parametrize("words", [["plot", "--help"], ["plot", "--list"]])
def test_help_waits_for_no_matplotlib(words: list[str]) -> None:
    code = (
        f"import sys\nfrom icy.cli import main\ntry: main({words!r}, prog_name='icy')\nexcept SystemExit: pass\n"
        "sys.exit(str([m for m in ('torch', 'pandas', 'matplotlib') if m in sys.modules] or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.stderr.strip() == "", done.stderr


@pytest.mark.slow
def test_end_to_end_curves_from_the_command(folder: Path) -> None:
    sizes: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "workers": 1}
    icy.end_to_end("FC2L", "RNN1L:GRU", steps=20, report_every=10, out="pairs", **sizes)
    assert run("e2e", "pairs").stderr == "Drawn: e2e.png.\n"
    figure = plots.e2e(ProbeResult.load("pairs"))
    assert [ax.get_ylabel() for ax in figure.axes] == ["end-to-end\nloss", "end-to-end\naccuracy", "topsim (hamming)"]
    with pytest.raises(InvalidSettingError, match="3 panels"):
        plots.e2e(ProbeResult.load("pairs"), axes=Figure().subplots())
    icy.end_to_end("FC2L", "RNN1L:GRU", steps=20, report_every=10, out="pairs", preset="published", **sizes)
    with pytest.raises(InvalidSettingError, match="needs every evaluation of training"):
        plots.e2e(ProbeResult.load("pairs").to_dataframe())
    heat = plots.heat(ProbeResult.load("pairs").to_dataframe().assign(value=0.1, end_to_end_accuracy=0.9))
    assert {text.get_text() for text in heat.axes[0].texts} == {"0.90"}  # not how well the sender knows the language
    icy.end_to_end("FC2L", "RNN1L:GRU", pretrain="perm", target=0.3, steps=40, report_every=20, out="both", **sizes)
    icy.end_to_end("FC2L", "RNN1L:GRU", steps=20, report_every=10, out="both", **sizes)
    assert [row.get_suptitle() for row in plots.e2e(ProbeResult.load("both")).subfigs] == [
        "FC2L+RNN1L:GRU, soft"
    ]  # with and without pre-training, side by side
    records = ProbeResult.load("pairs").records
    for given in (records, records[::-1]):  # whichever finished first
        assert [row.get_suptitle() for row in plots.e2e(ProbeResult(given)).subfigs] == [
            "FC2L+RNN1L:GRU, soft, default",
            "FC2L+RNN1L:GRU, soft, published",
        ]
    assert all(isinstance(line, Line2D) for line in figure.axes[0].lines)


def test_other_commands_draw_in_a_style(tmp_path: Path) -> None:
    """The style ends with the command. The caption is printed where it is not drawn."""
    import matplotlib.image

    from icy.analysis import style

    usual = style.WIDTH
    widths = {}
    for name in ("paper", "slides"):
        drawn = tmp_path / f"{name}.png"
        words = ["perm", "--meanings", "3x3", "-m", "topsim", "--plot", str(drawn), "--style", name]
        shown = icy_run("metrics", *words)
        assert (name == "paper") == ("For the caption: " in shown.output)
        widths[name] = matplotlib.image.imread(drawn).shape[1]
        assert usual == style.WIDTH
    assert 1.5 < widths["slides"] / widths["paper"] < 2.5
