"""Every table and plot that shows a metric names the convention of the metric."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import pkgutil
import re
from functools import cache
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import icy
from icy.analysis import plots, tables
from icy.analysis.emergence import Emergence, plot_emergence
from icy.analysis.plots.learning_curves import e2e
from icy.analysis.plots.metric_bars import plot_metrics
from icy.analysis.plots.translation import plot_translation
from icy.analysis.tables.by_setting import metrics_table, table_of_scores
from icy.analysis.tables.e2e import end_to_end_table
from icy.analysis.tables.games import SCORES, evaluation_table, games_table
from icy.analysis.tables.s2b import LEARNED, scores_table, training_table
from icy.core.conventions import OF_READING, Convention, conventions_json
from icy.core.registry import registry
from icy.experiments.e2e import pair_jobs
from icy.experiments.report import report_sections
from icy.experiments.trackers import parameters_of
from icy.games.comparison import GameOverrides, compare, one_player
from icy.games.evaluation import matching, similarity
from icy.games.settings import game_conventions
from icy.metrics import ami, evaluate
from icy.records.kinds import job_kind
from icy.records.long_table import to_long
from icy.records.record import Record
from icy.s2b import probe_language
from icy.s2b.agents.kinds import language_conventions
from icy.s2b.language_probe import disentanglement
from icy.training.job import Outcome
from icy.training.pair_settings import EndToEndRequest, pair_conventions
from tests.analysis.tables.test_by_setting import long as trained_agents
from tests.analysis.test_emergence import games, probes
from tests.games.helpers import jobs as game_jobs

NAMES = ["topsim", "posdis", "cbm", "ami", "context_independence"]
PAIRS: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "steps": 10}
PLAIN = ("unique_messages", "message_entropy")  # metrics without conventions by default
# These show no metric: ratios and accuracies, stimuli, worlds, and the scores of the study. Curves of chains do,
# and have a test of their own.
WITHOUT = {
    *(
        "in_context.side_by_side",
        "bias.bias_table",
        "bias.difference_table",
        "s2b.evaluation_table",
        "s2b.recall_table",
        "by_setting.frame_table",
    ),
    *("study.report_table", "study.simulated_table"),
    *("chain_plots.chain_curves", "chain_plots.chain_paths", "heat_map.pairings"),
    *("error_bars.bars", "heat_map.heat", "learning_curves.curves", "points.parameters"),
    *("error_bars.ratios", "points.tradeoff", "error_bars.differences", "games.plot_stimuli"),
    *("games.draw_study", "games.plot_turns_of_images", "games.plot_turns_of_values"),
}


# -- small results, for which nothing is trained -----------------------------------------------------------------------


def records(jobs: Any, names: list[str], curve: list[Any]) -> list[Record]:
    values = dict.fromkeys(names, 0.25)
    return [
        job.record(Outcome(r, "steps", 10, 0.5, curve, extra=values | getattr(job, "sizes", {})))
        for job in jobs
        for r in job.replicates
    ]


@cache
def pairs(**given: Any) -> list[Record]:
    points = [[step, 0.5, 0.3, 0.2, None, None] for step in (0, 10)]
    jobs = pair_jobs(EndToEndRequest.asked(sender="FC2L", receiver="RNN1L:GRU", **PAIRS, **given))
    return records(jobs, ["end_to_end_accuracy", "end_to_end_loss", "topsim"], points)


@cache
def in_games() -> list[Record]:
    scores = [name for name in SCORES if name != "accuracy"]
    return records(game_jobs(rule_length=1, seeds=1), [*scores, "best_step"], [[1, 0.5, 1, 0.1, 0.2, 3]])


def agents() -> pd.DataFrame:
    learned = dict.fromkeys(LEARNED, 0.25)
    return trained_agents(**learned, conventions=conventions_json(job_kind("s2b").conventions_of({})))


@cache
def scores() -> pd.DataFrame:
    found = [
        evaluate(icy.make_language(name, "2x3", 4, 2), metrics=NAMES).assign(name=name, seed=1)
        for name in ("rot", "hol")
    ]
    return pd.concat(found, ignore_index=True)


def emergence() -> Figure:
    ratios = {name: {"concat": 1.0, "shufdet": 1.0, "rot": n + 2.0} for n, name in enumerate("ABCD")}
    return plot_emergence(Emergence.of(probes(ratios), games({name: [n / 10] for n, name in enumerate("ABCD")})))


@cache
def languages() -> pd.DataFrame:
    return probe_language("posdis", metrics=["topsim", "ami"], episodes=1, permutations=3).assign(speaker="posdis")


TABLES = {  # every table of metrics
    "e2e.end_to_end_table": lambda: end_to_end_table(to_long([*pairs(), *pairs(preset="published")])),
    "games.games_table": lambda: games_table(in_games()),
    "games.evaluation_table": lambda: evaluation_table(compare("ideal", GameOverrides(count=10))),
    "s2b.training_table": lambda: training_table(agents()),
    "s2b.scores_table": lambda: scores_table(languages(), "speaker", ["topsim", "ami"]),
    "s2b.scores_table of stimuli": lambda: scores_table(
        disentanglement(episodes=1, rows=32, metrics="mig").assign(stimuli="32"), "stimuli", ["mig"]
    ),
    "by_setting.metrics_table": lambda: metrics_table(scores(), NAMES),
    "by_setting.table_of_scores": lambda: table_of_scores(scores(), {"name": "name"}, NAMES, "sd", "", "seeds"),
}
PLOTS = {  # every plot of metrics
    "learning_curves.e2e": lambda: e2e(to_long_curves(pairs())),
    "metric_bars.plot_metrics": lambda: plot_metrics(scores(), NAMES),
    "emergence.plot_emergence": emergence,
    "translation.plot_translation": lambda: plot_translation(icy.metrics.cbm([["a"], ["b"]], ["x", "y"])),
}


def to_long_curves(found: list[Record]) -> pd.DataFrame:
    return icy.EndToEndResult(found).curves()


# -- what is checked ---------------------------------------------------------------------------------------------------


def metric_named(text: str) -> str | None:
    """Return the metric that a heading, a label or a title begins with, unless it has no conventions."""
    first = text.strip().replace(" ", "_").lower()
    known = [entry.name for entry in registry.entries("metric") if entry.name not in PLAIN]
    return next((name for name in known if re.fullmatch(rf"{name}(_[(\d].*)?", first, re.DOTALL)), None)


def assert_named(label: str, others: str) -> None:
    """Assert that a label has a convention, or that another text has the conventions under its name."""
    names = (re.split(r" [(\d]", label)[0].strip(), metric_named(label))
    assert "(" in label or any(f"{name}: " in others for name in names), f"{label!r} names no convention"


def functions_of(package: ModuleType, *wanted: str) -> set[str]:
    """Return the functions of a package that return a table, a figure, or a picture to draw."""
    found = set()
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = function.__module__ == module.__name__ and not name.startswith("_")
            if own and function.__annotations__.get("return") in wanted:
                found.add(f"{info.name}.{name}")
    return found


def test_all_tables_and_plots_are_here() -> None:
    shown = {name.partition(" ")[0] for name in (*TABLES, *PLOTS)}
    found = functions_of(tables, "BiasTable") | functions_of(plots, "Figure", "Picture")
    assert found | {"emergence.plot_emergence"} == shown | WITHOUT


@pytest.mark.parametrize("name", TABLES)
def test_tables_name_conventions(name: str) -> None:
    table = TABLES[name]()
    columns = [(column, table.heading(column)) for column in table.grammars if metric_named(column)]
    places = [place for place, label in enumerate(table.labels) if label == "measure"]
    rows = [labels[place] for labels, _ in table.rows for place in places if metric_named(labels[place])]
    assert columns or rows
    below = "\n".join(table.remarks(""))
    for shown in (*(heading for _, heading in columns), *rows):
        assert_named(shown, below)
    for format_ in ("text", "markdown", "latex", "html"):
        printed = table.render(format_).replace("\\", "")
        assert all(heading in printed for _, heading in columns)
        assert "hamming" in printed or "levenshtein" in printed or "topsim" not in printed
    csv, records_ = pd.read_csv(io.StringIO(table.render("csv"))), json.loads(table.render("json"))
    for column, _ in columns:
        assert "=" in csv[f"{column}_convention"][0]
        assert records_[0][column]["convention"] == csv[f"{column}_convention"][0]


@pytest.mark.parametrize("name", PLOTS)
def test_plots_name_conventions(name: str) -> None:
    figure = PLOTS[name]()
    texts = [text.get_text() for text in figure.findobj(Text) if text.get_text()]
    labels = [text for text in texts if metric_named(text)]
    assert labels
    for label in labels:
        axes = [ax for ax in figure.axes if label in (ax.get_title(), ax.get_ylabel())]
        small = "\n".join(f"{metric_named(label)}: {ax.get_xlabel()}" for ax in axes if ax.get_xlabel())
        assert_named(label, "\n".join([*texts, small]))


def test_reports_name_conventions() -> None:
    sections = [one for results in ([*pairs(), *in_games()], agents()) for one in report_sections(results)]
    assert len(sections) == 3
    for section in sections:
        data, notes = section.data(), "\n".join(section.table.remarks(""))
        columns = {section.table.heading(name) for name in section.table.grammars}
        for label in (*columns, *data["points"], *section.axes):
            if metric_named(label):
                assert_named(label, notes.lower())
        heat = data["charts"].get("heat", {"values": []})
        assert {cell["column"] for cell in heat["values"]} <= columns


def test_rows_have_conventions_that_can_be_read() -> None:
    rows = {
        "e2e": to_long(pairs()),
        "games": to_long(in_games()),
        "s2b": agents(),
        "metrics": scores(),
        "language": languages(),
        "eval": compare("ideal", GameOverrides(count=10)),
    }
    for name, frame in rows.items():
        read = set(json.loads(frame["conventions"][0]))
        shown = {metric_named(column) for column in frame if frame[column].notna().any()} - {None}
        assert shown <= read, name
    assert json.loads(rows["e2e"]["conventions"][0])["topsim"]["message"] == "hamming"
    assert "message=hamming" in str(parameters_of(pairs()[0])["convention.topsim"])


def test_undefined_values_of_runs_have_their_reason() -> None:
    for long, make in ((to_long(pairs()), end_to_end_table), (to_long(in_games()), games_table)):
        both = pd.concat([long, long.assign(seed=2, topsim=float("nan"))], ignore_index=True)
        table = make(both)
        assert "topsim is undefined in 1 of 2 runs: all pairs of meanings" in table.render("text")
        assert "are equally far apart" in table.render("csv")
        assert "are equally far apart" in table.render("json")


def test_older_files_are_read_as_before() -> None:
    long = to_long(pairs()).drop(columns="conventions")
    assert "topsim (hamming)" in end_to_end_table(long).render("text")


# -- conventions of records are those of the metrics -------------------------------------------------------------------


def test_conventions_of_records_are_those_that_metrics_report() -> None:
    table = [[0, 0], [0, 1], [1, 0]], ["ac", "ad", "bc"]
    own = evaluate(*table, metrics=list(language_conventions({}))).attrs["scores"]
    _, said = one_player("ideal", GameOverrides(count=20)).evaluate()
    in_game = {"cbm": matching(said), "topsim": similarity(said), "ami": ami(said.rules[:, None], said.tokens)}
    pair = {"topsim": icy.metrics.topsim(*table, message="hamming")}
    for measured, said_of in ((own, language_conventions), (in_game, game_conventions), (pair, pair_conventions)):
        for name, values in said_of({}).items():
            used = Convention(name, measured[name].conventions).used
            assert {n: v for n, v in values.items() if n != "of"} == {
                n: v for n, v in used.items() if n not in OF_READING
            }
