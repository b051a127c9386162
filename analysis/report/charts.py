"""Charts of a report, as Vega-Lite specifications; the page's script adds the data."""

from __future__ import annotations

from typing import Any

from icy.analysis.row_types import Facts
from icy.analysis.style import COLORS

Spec = Facts
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # only identifies the language; never fetched
ROW, COLUMN = 19, 52  # size of a cell of a heat map, in pixels
BAR = 26  # height of a bar with its gap, in pixels
TOOLTIPS = {"label": "row", "column": "column", "text": "mean and spread", "n": "runs", "seeds": "seeds"}


def heat(log: bool = False, title: str = "mean") -> Spec:
    """Heat map: a row per model, a column per grammar or score; the color is the mean."""
    scale: Spec = {"scheme": "cividis"} | (
        {"type": "log", "reverse": True} if log else {}
    )  # dark: slow, or low accuracy
    return _chart(
        f"Heat map: a row per model, a column per grammar or score; color is the {title}.",
        mark={"type": "rect", "cursor": "pointer"},
        width={"step": COLUMN},
        height={"step": ROW},
        view={"fill": "#88888840", "stroke": None},  # color of missing values
        encoding={
            "x": {"field": "column", "type": "nominal", "sort": None, "title": None,
                  "axis": {"orient": "top", "labelAngle": -35}},
            "y": {"field": "label", "type": "nominal", "sort": None, "title": None},
            "color": {"field": "shade", "type": "quantitative", "scale": scale, "title": title,
                      "legend": {"format": ".3~g"}},
            "tooltip": _tips(**TOOLTIPS),
        },
    )  # fmt: skip


def bars(log: bool = False) -> Spec:
    """Bar chart: a bar per column of a table with a single row."""
    scale: Spec = {"type": "log", "nice": False} if log else {"zero": True}
    column = {"field": "column", "type": "nominal", "sort": None, "title": None}
    mean = {"field": "shade", "type": "quantitative", "scale": scale, "title": "ratio to concat" if log else "mean"}
    return _chart(
        "A bar per grammar; its length is the mean.",
        width="container",
        height=BAR,  # per bar; the page's script multiplies it by their number
        encoding={"y": column, "x": mean, "tooltip": _tips(**TOOLTIPS)},
        layer=[
            {"mark": {"type": "bar", "color": COLORS[0], "height": {"band": 0.7}}}
            | ({"encoding": {"x2": {"datum": 1}}} if log else {}),
            {"mark": {"type": "text", "align": "left", "dx": 5}, "encoding": {"text": {"field": "text"}}},
        ],
    )


def tradeoff(log: bool) -> Spec:
    """Trade-off: a dot per row (x: mean on noise, y: mean on compositional grammars), as in `icy plot tradeoff`."""
    log_scale = {"type": "log", "reverse": True, "nice": False, "padding": 14}  # from the least to the largest
    scale: Spec = log_scale if log else {"zero": False}  # `zero` is not an option of logarithmic scales
    measure = "ratio on" if log else "accuracy on"
    return _chart(
        "Trade-off: a dot per row, by its mean on noise and on compositional grammars; better is up and to the left.",
        mark={"type": "point", "filled": True, "size": 60, "cursor": "pointer"},
        width="container",
        height=300,
        encoding={
            "x": {"field": "hard", "type": "quantitative", "scale": scale, "title": f"{measure} rot, pairsum, proj"},
            "y": {"field": "easy", "type": "quantitative", "scale": scale, "title": f"{measure} "},
            "color": {"field": "side", "type": "nominal", "scale": {"range": list(COLORS)}, "title": None},
            "tooltip": _tips(label="row", easy="compositional", hard="noise", n="runs", seeds="seeds"),
        },
    )


def curves() -> Spec:
    """Learning curves: a line per run of a row, colored by grammar."""
    return _chart(
        "Learning curves of one row: a line per run, colored by grammar.",
        mark={"type": "line", "strokeWidth": 1.4},
        width="container",
        height=280,
        encoding={
            "x": {"field": "x", "type": "quantitative", "title": "updates"},
            "y": {"field": "y", "type": "quantitative", "scale": {"zero": False}, "title": None},
            "color": {"field": "grammar", "type": "nominal", "scale": {"range": list(COLORS)}, "title": None},
            "detail": {"field": "seed"},
            "tooltip": _tips(grammar="grammar", seed="seed", x="updates", y="value"),
        },
    )


def space() -> Spec:
    """Bias space: a point per model; the chosen model has a label, and its neighbors have rings."""
    scale = {"zero": False, "padding": 40}  # room for the label of the chosen model
    where = {name: {"field": name, "type": "quantitative", "scale": scale} for name in ("x", "y")}
    points: Spec = {
        "mark": {"type": "point", "filled": True, "cursor": "pointer", "strokeWidth": 2.5},
        "encoding": {
            "color": {
                "condition": {"test": "datum.own", "value": "currentColor"},
                "field": "family",
                "type": "nominal",
                "title": "family",
            },
            "shape": _if_own("diamond", "circle"),
            "size": _if_own(240, 60),
            "tooltip": _tips(label="model", family="family", x="x", y="y"),
        },
    }
    marked = "datum.chosen || datum.near"  # hides other rings by opacity, since Vega warns of filters without points
    rings = {
        "mark": {"type": "point", "filled": False, "shape": "circle", "tooltip": None},
        "encoding": {
            "size": {"condition": {"test": "datum.chosen", "value": 320}, "value": 180},
            "strokeWidth": {"condition": {"test": "datum.chosen", "value": 2.2}, "value": 1.2},
            "opacity": {"condition": {"test": marked, "value": 1}, "value": 0},
        },
    }
    name = {
        "mark": {"type": "text", "dy": -15, "fontSize": 12, "tooltip": None},
        "encoding": {"text": {"condition": {"test": "datum.chosen", "field": "label"}, "value": ""}},
    }
    return _chart(
        "Models in bias space: near points learn the same grammars easily.",
        width="container",
        height=420,
        encoding=where,
        layer=[rings, points, name],
    )


def _if_own(own: float | str, other: float | str) -> Spec:
    """Return an encoding with the value `own` for the reader's models and `other` for models of the atlas."""
    return {"condition": {"test": "datum.own", "value": own}, "value": other}


def _chart(description: str, **parts: Any) -> Spec:
    return {
        "$schema": SCHEMA,
        "description": description,
        "data": {"name": "shown"},
        "autosize": {"type": "fit-x", "contains": "padding"} if parts["width"] == "container" else "pad",
        **parts,
    }


def _tips(**titles: str) -> list[Spec]:
    return [{"field": name, "title": title} | _format(name) for name, title in titles.items()]


def _format(name: str) -> Spec:
    return {"format": ".3f", "type": "quantitative"} if name in ("x", "y", "easy", "hard") else {"type": "nominal"}
