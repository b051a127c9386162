"""What a report shows, as data."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pandas as pd
import pytest

from icy.analysis.order import ORDER
from icy.analysis.report import page
from icy.analysis.report.page import MOST_POINTS, Section, ink, thinned
from icy.analysis.style import grammar_looks
from icy.analysis.tables.bias import bias_table
from icy.analysis.tables.references import numbered
from tests.helpers import THREE, long


def section(table: pd.DataFrame, **more: object) -> Section:
    return Section("acquire", "models", bias_table(table), numbered(table), **more)  # type: ignore[arg-type]


def values(found: Section, name: str) -> list[dict[str, Any]]:
    """Values of a chart of a section."""
    return next((chart.values for chart in found.charts if chart.name == name), [])  # type: ignore[return-value]


def specs(found: Section) -> dict[str, Any]:
    """Specifications of the charts of a section."""
    return {chart.name: chart.spec for chart in found.charts}


def test_cells_are_those_of_the_table() -> None:
    found = section(long(THREE))
    table = bias_table(long(THREE))
    expected = [
        (labels[0].removeprefix("sender/"), name, cell.mean, cell.text(2))
        for labels, cells in table.rows
        for name, cell in cells.items()
    ]
    assert sorted((c["label"], c["column"], c["mean"], c["text"]) for c in values(found, "heat")) == sorted(expected)


def test_every_line_of_the_table_knows_its_row() -> None:
    tables = [long(THREE, representation=name) for name in ("soft", "gumb")]
    found = section(pd.concat(tables, ignore_index=True))
    for place, label in found.lines:
        row = found.rows[place]
        assert str(row["model"]) in label
        assert str(row["representation"]) in label
    assert len({place for place, _ in found.lines}) == len(found.rows) == 6


def test_runs_have_values_and_curves() -> None:
    table = long({"A": {"rot": [0.5, 0.7]}}).assign(key=["a", "b"])
    records = [{"key": "a", "curve": [[0, 0.25], [50, 0.5], [100, None]]}, {"key": "b", "curve": []}]
    found = section(table, records=records)
    at = {name: place for place, name in enumerate(found.data()["run_names"])}
    assert [(run[at["value"]], run[at["seed"]]) for run in found.data()["runs"]] == [(0.5, 123), (0.7, 124)]
    curve = {"row": 0, "grammar": "rot", "seed": "123", "points": [[0, 50], [0.25, 0.5]]}
    assert values(found, "curves")[0] == curve
    assert not any("points" in one for one in values(found, "curves")[1:])


def test_many_curves_share_the_points_of_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    table = long({str(model): {"rot": [0.5, 0.7]} for model in range(5)})
    records = [{"key": key, "curve": [[step, step / 100] for step in range(101)]} for key in table["key"]]
    monkeypatch.setattr(page, "ALL_POINTS", 150)
    curves = [one["points"] for one in values(section(table, records=records), "curves") if "points" in one]
    assert len(curves) == 10
    assert {len(xs) for xs, _ in curves} == {15}
    assert all((xs[-1], ys[-1]) == (100, 1.0) for xs, ys in curves)


@pytest.mark.slow
@pytest.mark.parametrize("varying", ["model", "options"])
def test_a_report_grows_with_its_rows_and_not_with_their_square(varying: str) -> None:
    """3,000 models on 4 grammars are some 5 MB, in a few thousand calls of Python each."""
    calls, sizes = [], []
    for count in (10, 30):
        values = {f"M{at:04d}": {name: [1.5, 2.5] for name in ("concat", "perm", "rot", "hol")} for at in range(count)}
        table = long(values, measure="ratio")
        if varying == "options":
            table = table.assign(options="a=" + table["model"].str[-4:], model="sender/FC2L")
        heard = [0]

        def hear(frame: object, event: str, argument: object, heard: list[int] = heard) -> None:
            heard[0] += event in ("call", "c_call")

        sys.setprofile(hear)
        try:
            data = section(table).data()
        finally:
            sys.setprofile(None)
        assert [row for row, _ in section(table).lines] == list(range(count))
        calls.append(heard[0])
        sizes.append(len(json.dumps(data)))
    assert calls[1] < 3.2 * calls[0]
    assert sizes[1] / 30 * 3000 < 6e6


def test_curves_are_thinned_and_keep_their_end() -> None:
    xs, ys = thinned([[step, step / 1000] for step in range(1000)], 2)
    assert len(xs) == len(ys) <= MOST_POINTS
    assert (xs[-1], ys[-1]) == (999, 0.999)
    assert thinned([[0, 0.5]], 3) == [[0], [0.5], [None]]  # of an older version, which measured less
    assert thinned([], 2) == thinned([[0]], 2) == thinned([[0, math.nan]], 2) == []


NOISE_OF_A = {"rot": 2.0, "pairsum": 4.0, "proj": 8.0}


def test_tradeoffs_are_geometric_means_of_ratios() -> None:
    table = long({"A": {"shufdet": 1.5} | NOISE_OF_A}, protocol="acquire", measure="ratio")
    (dot,) = values(section(table), "tradeoff")
    assert (dot["y"], dot["x"], dot["front"], dot["name"]) == (pytest.approx(1.5), pytest.approx(4.0), True, "1 A")
    assert values(section(long(THREE)), "tradeoff") == []


def test_both_sides_have_panels_and_the_grammars_that_theirs_can_use() -> None:
    noise = {"rot": 0.5, "pairsum": 0.5, "proj": 0.5}
    of_receiver = {"shuf": 0.5, "shufdet": 1.0}
    rows = ("sender", "S", {"shufdet": 0.75}), ("receiver", "R", of_receiver), ("receiver", "Few", {"shuf": 1.0})
    parts = [long({name: noise | own}).assign(model=f"{side}/{name}", role=side) for side, name, own in rows]
    found = section(pd.concat(parts, ignore_index=True))
    dots = {(dot["panel"], str(found.rows[dot["row"]]["model"])): dot["y"] for dot in values(found, "tradeoff")}
    assert dots == {("senders", "sender/S"): 0.75, ("receivers", "receiver/R"): 0.75}
    assert list(dict.fromkeys(cell["panel"] for cell in values(found, "heat"))) == ["senders", "receivers"]


def test_curves_have_the_colors_of_the_plots_and_lines_at_target_and_chance() -> None:
    table = long(THREE).assign(vocab_size=4, kind="probe", target=0.8)
    records = [{"key": key, "curve": [[0, 0.5]]} for key in table["key"]]
    found = section(table, records=records)
    scale = specs(found)["curves"]["layer"][1]["encoding"]["color"]["scale"]
    assert scale["domain"] == [name for name in ORDER if name in set(table["grammar"])]
    assert scale["range"] == [ink(look.color) for look in grammar_looks(scale["domain"]).values()]
    levels = [(one["row"], one["name"], one["level"]) for one in values(found, "curves") if "name" in one]
    assert levels == [(row, *level) for row in range(3) for level in (("target", 0.8), ("chance", 0.25))]


RATIO = {"protocol": "acquire", "measure": "ratio"}


@pytest.mark.parametrize(
    ("table", "ends"),
    [(long(THREE), (0.0, 1.0)), (long({"A": {"rot": 1.1}}, **RATIO), (1.0, 2.0)),
     (long({"A": {"rot": 0.5, "hol": 20.0}}, **RATIO), (0.5, 20.0))],
)  # fmt: skip
def test_colours_have_the_ends_of_icy_plot_heat(table: pd.DataFrame, ends: tuple[float, float]) -> None:
    scale = specs(section(table))["heat"]["layer"][0]["encoding"]["color"]["scale"]
    assert (scale["domain"], "log" in scale.values()) == (ends, ends[1] > 1)


def test_settings_that_a_kind_lacks_are_left_out() -> None:
    assert "held_out" not in dict(section(long(THREE).assign(held_out=pd.NA)).settings())


def test_failed_runs_are_listed_with_their_reason() -> None:
    table = long({"A": {"rot": [0.5, math.nan]}}).assign(failed=[False, True], error=[None, "out of memory"])
    found = section(table)
    assert found.failures() == [["sender/A", "rot", "124", "out of memory"]]
    assert [(cell["n"], cell["seeds"]) for cell in values(found, "heat")] == [(1, "123")]


def test_scores_are_coloured_within_their_column() -> None:
    table = long({"A": {"rot": [0.5]}, "B": {"rot": [0.7]}})
    made = bias_table(table)
    renamed = type(made)(
        "t", made.labels, ["words"], [(labels, {"words": cells["rot"]}) for labels, cells in made.rows]
    )
    found = Section("games", "agents", renamed, numbered(table))
    assert [cell["shade"] for cell in values(found, "heat")] == [0.0, 1.0]
    assert specs(found)["heat"]["layer"][0]["encoding"]["color"]["title"] == "within its column"


@pytest.mark.parametrize(
    ("kind", "first", "counted"),
    [("probe", "steps", "updates"), ("study", "steps", "trials"), ("unknown", "steps", "updates"),
     ("probe", "rounds", "rounds")],
)  # fmt: skip
def test_the_unit_of_curves_depends_on_the_kind_of_job(kind: str, first: str, counted: str) -> None:
    found = section(long(THREE).assign(job_kind=kind), points=(first, "accuracy"))
    assert found.data()["counted"] == counted


@pytest.mark.parametrize("log", [True, False])
def test_a_logarithmic_scale_has_no_zero_to_leave_out(log: bool) -> None:
    table = long({"A": {"shufdet": 1.5} | NOISE_OF_A}, **(RATIO if log else {}))
    encoding = specs(section(table))["tradeoff"]["encoding"]
    scales = [encoding[axis]["scale"] for axis in "xy"]
    expected = (False, "log") if log else (True, None)  # Vega warns of both
    assert [("zero" in scale, scale.get("type")) for scale in scales] == [expected] * 2


def test_there_are_curves_if_any_run_has_one() -> None:
    table = long({"A": {"rot": [0.5, 0.7]}}).assign(key=["a", "b"])
    curves = {"a": [[0, 0.25], [50, 0.5]], "b": []}
    records = [{"key": key, "curve": curve} for key, curve in curves.items()]
    shown = [bool(values(section(table, records=some), "curves")) for some in (records, records[1:], ())]
    assert shown == [True, False, False]
