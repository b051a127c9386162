"""Plots of chains of learners."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib.text import Text

import icy
from icy.analysis.chains import generations
from icy.analysis.plots.chain_plots import chain_curves, chain_paths
from icy.cli import main
from icy.core.errors import InvalidSettingError, UnknownNameError
from icy.experiments.report import report_sections
from icy.experiments.results import ProbeResult
from icy.training.chain_settings import chain_conventions
from tests.analysis.plots.helpers import budget


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> ProbeResult:
    folder = tmp_path_factory.mktemp("chains")
    options = {"quick": True, "chains": 2, "generations": 2, "updates": 20, "workers": 1, "out": folder}
    return icy.iterate(["FC2L", "FC1L"], ["concat", "hol"], **options)  # type: ignore[arg-type]


def test_there_is_a_row_per_measure_and_a_column_per_model(chains: ProbeResult) -> None:
    figure = chain_curves(chains, measures=["accuracy", "posdis"])
    assert [ax.get_title() for ax in figure.axes] == ["FC1L", "FC2L", "", ""]
    line = figure.axes[3].lines[0]  # posdis of FC2L from concat
    own = [r for r in chains.records if (r["model"], r["grammar"]) == ("sender/FC2L", "concat")]
    place = own[0]["points"].index("posdis")
    assert line.get_ydata() == pytest.approx(np.mean([[p[place] for p in r["curve"]] for r in own], 0))
    figure.draw_without_rendering()


@pytest.mark.slow
def test_a_table_of_generations_has_values_by_chance(chains: ProbeResult) -> None:
    table = generations(chains, metrics=["posdis", "residual_entropy"], permutations=2)
    figure = chain_curves(table, measures=["posdis", "residual_entropy", "accuracy"])
    ax = figure.axes[2]  # residual entropy of FC2L
    own = (
        table[table["model"].eq("sender/FC2L") & table["grammar"].eq("concat")]
        .groupby("generation")
        .mean(numeric_only=True)
    )
    for line, name in zip(ax.lines, ("residual_entropy", "residual_entropy_chance"), strict=False):
        assert line.get_ydata() == pytest.approx(own[name])
    assert len(figure.axes[4].lines) == 2  # survival has no value by chance here
    assert "by chance" in figure.get_supxlabel()
    guess, zero = (chain_curves(chains, measures=["accuracy", "topsim"]).axes[place].lines[-1] for place in (0, 2))
    assert (set(guess.get_ydata()), set(zero.get_ydata())) == ({1 / 4}, {0})
    assert "by chance" not in chain_curves(chains, measures=["distinct"]).get_supxlabel()
    with pytest.raises(InvalidSettingError, match="several settings"):
        chain_curves(pd.concat([table, table]))


def test_the_conventions_of_topsim_are_named(chains: ProbeResult) -> None:
    used = icy.metrics.topsim([[0], [1], [2]], [[0], [1], [2]]).conventions
    assert chain_conventions({})["topsim"].items() <= used.items()
    figure = chain_curves(chains)
    assert figure.axes[-2].get_ylabel() == "topsim (levenshtein)"
    assert any("message levenshtein" in text.get_text() for text in figure.findobj(Text))


def test_paths_begin_at_the_languages_of_known_origin(chains: ProbeResult) -> None:
    figure = chain_paths(chains)
    ax = figure.axes[0]
    names = {text.get_text(): text.xy for text in ax.texts}  # type: ignore[attr-defined]
    starts = [line.get_xydata()[0] for line in ax.lines[2::5]]
    assert len(ax.lines) == 10  # two chains, their mean and its two ends for each first language
    for start, name in zip(starts, ("concat", "hol"), strict=True):
        assert start == pytest.approx(names[name], abs=0.25)
    figure.draw_without_rendering()


def test_unknown_measures_are_refused(chains: ProbeResult) -> None:
    with pytest.raises(UnknownNameError, match="No measure of these chains is called 'loss'; did you mean posdis"):
        chain_curves(chains, measures=["loss"])
    with pytest.raises(UnknownNameError, match="called 'communication'"):  # senders have none
        chain_curves(chains, measures=["communication"])


@pytest.mark.parametrize(
    "words", [["chain_curves", "--measures", "agreement,posdis,updates"], ["chain_paths", "--title", ""]]
)
def test_the_command_draws_chains(
    words: list[str], chains: ProbeResult, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["plot", words[0], str(chains.folder), "--model", "FC2L", *words[1:]])
    assert (result.exit_code, result.stderr) == (0, f"Drawn: {words[0]}.png.\n")
    assert (tmp_path / f"{words[0]}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_chains_of_several_settings_have_a_column_each_and_no_paths(chains: ProbeResult, tmp_path: Path) -> None:
    folder, other = str(chains.folder), str(tmp_path / "other")
    options = {"quick": True, "generations": 2, "updates": 20, "workers": 1}
    icy.iterate("FC2L", ["concat", "hol"], chains=2, bottleneck=0.75, out=other, **options)  # type: ignore[arg-type]
    refused = CliRunner().invoke(main, ["plot", "chain_paths", folder, other])
    chosen = re.search("several settings.*--where '(.+)'", refused.stderr)
    assert chosen is not None
    out = str(tmp_path / "chosen.png")
    words = ["plot", "chain_curves", folder, other, "--where", chosen[1], "-o", out]
    assert CliRunner().invoke(main, words).exit_code == 0
    for draw, what in ((chain_curves, "needs results of `icy iterate`"), (chain_paths, "needs the languages")):
        with pytest.raises(InvalidSettingError, match="a table does not have them: use the results folder"):
            draw(chains.to_dataframe())
        with pytest.raises(InvalidSettingError, match=what):
            draw(list(budget().records))
    both = chain_curves(ProbeResult([*chains.records, *ProbeResult.load(other).records]), measures=["accuracy"])
    names = [" ".join(ax.get_title().split()) for ax in both.axes]
    assert [re.findall(r"^FC.L|bottleneck=[\d.]+", name) for name in names] == [
        ["FC1L", "bottleneck=0.5"],
        ["FC2L", "bottleneck=0.5"],
        ["FC2L", "bottleneck=0.75"],
    ]
    assert len(chain_curves(list(chains.records)).axes) == 6


def test_reports_have_a_section_with_the_curves_of_every_measure(chains: ProbeResult) -> None:
    assert "concat updates" not in chains.table("text")
    (section,) = report_sections(chains)
    assert (section.name, section.noun, section.counted) == ("iterated", "chains", "generation")
    expected = {"accuracy", "agreement", "distinct", "unseen_accuracy", "topsim (levenshtein)", "posdis", "bosdis"}
    assert expected <= set(section.axes)
    curve = section.data()["charts"]["curves"]["values"][0]["points"]
    assert curve[0] == [0, 1, 2]
    own = [point[section.points.index("distinct")] for point in chains.records[0]["curve"]]
    assert curve[section.points.index("distinct")] == pytest.approx(own, abs=1e-3)
