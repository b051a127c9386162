"""Charts of a report, as Vega-Lite specifications; the page's script adds the data."""

from __future__ import annotations

from typing import Any

from icy.analysis.order import Facts
from icy.analysis.style import GRAY

Spec = Facts
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # only identifies the language; never fetched
ROW, COLUMN = 30, 52  # size of a cell of a heat map, in pixels
TOOLTIPS = {"label": "row", "column": "column", "text": "mean and spread", "n": "runs", "seeds": "seeds"}
NAMED: Spec = {"type": "text", "align": "left", "dx": 7, "fontSize": 11}  # text to the right of a mark


def heat(log: bool = False, title: str = "") -> Spec:
    """Heat map: a panel per side, a row per model, a column per grammar or score, with center and spread."""
    scale: Spec = {"scheme": "viridis"} | ({"type": "log", "reverse": True} if log else {})  # as in `icy plot heat`
    title = title or ("ratio to concat" if log else "mean")
    color = {"field": "shade", "type": "quantitative", "scale": scale, "title": title, "legend": {"format": ".3~g"}}
    dark = "luminance(scale('color', datum.shade)) < 0.18"
    return _chart(
        f"Heat map: a row per model, a column per grammar or score; color is the {title}.",
        width={"step": COLUMN},
        height={"step": ROW},
        view={"fill": "#88888840", "stroke": None},  # color of missing values
        encoding={
            "x": {**_column("column"), "axis": {"orient": "top", "labelAngle": -35}},
            "y": _column("label"),
            "tooltip": _tips(**TOOLTIPS),
        },
        layer=[
            {"mark": {"type": "rect", "cursor": "pointer"}, "encoding": {"color": color}},
            {
                "mark": {"type": "text", "lineBreak": "\n", "dy": {"expr": "indexof(datum.shown, '\\n') < 0 ? 0 : -6"}},
                "encoding": {
                    "text": {"field": "shown"},
                    "color": {"condition": {"test": dark, "value": "white"}, "value": "black"},
                },
            },
        ],
    )


def tradeoff(log: bool = False) -> Spec:
    """Trade-off: a panel per side, a point with intervals per row, and the front, as in `icy plot tradeoff`."""
    scale: Spec = {"type": "log", "nice": False} if log else {"zero": False, "nice": False}
    measure = "ratio to concat" if log else "accuracy"
    x, y = (
        {"field": name, "type": "quantitative", "scale": scale, "title": f"{measure} on {grammars}"}
        for name, grammars in (("x", "noise grammars"), ("y", "compositional grammars"))
    )
    own = {"field": "color", "type": "nominal", "scale": None, "legend": None}
    front = {"type": "line", "color": GRAY, "strokeDash": [4, 3], "interpolate": "step-before" if log else "step-after"}
    return _chart(
        "Trade-off: a point per row, by its mean on noise and on compositional grammars.",
        width=300,
        height=300,
        encoding={"x": x, "y": y, "tooltip": _tips(label="row", y="compositional", x="noise", n="runs", seeds="seeds")},
        layer=[
            {"mark": {"type": "rule", "opacity": 0.3}, "encoding": {"x": {"field": "left"}, "x2": {"field": "right"}}},
            {"mark": {"type": "rule", "opacity": 0.3}, "encoding": {"y": {"field": "low"}, "y2": {"field": "high"}}},
            {"mark": front, "transform": [{"filter": "datum.front"}], "encoding": {"order": {"field": "x"}}},
            {"mark": {"type": "point", "filled": True, "size": 60, "cursor": "pointer"}, "encoding": {"color": own}},
            {"mark": NAMED, "encoding": {"text": {"field": "name"}}},
        ],
    )


def curves() -> Spec:
    """Learning curves of a row: mean and band over seeds, as in `icy plot curves`, and lines at target and chance.

    Grammars with one seed, and seeds that the reader asks for, are thin lines.
    """
    key = {"symbolType": "stroke", "symbolOpacity": 1, "symbolStrokeWidth": 2}
    grammar = {"field": "grammar", "type": "nominal", "title": None, "legend": key}
    level = {"field": "y", "type": "quantitative"}
    return _chart(
        "Learning curves of one row: mean and band over seeds, colored by grammar.",
        width="container",
        height=280,
        layer=[
            {
                "mark": {"type": "area", "opacity": 0.2, "tooltip": None},
                "encoding": {
                    "x": {"field": "x", "type": "quantitative"},
                    "y": {"field": "low", "type": "quantitative"},
                    "y2": {"field": "high"},
                    "color": grammar,
                },
            },
            {
                "mark": {"type": "line", "point": {"opacity": 0, "size": 80}},  # points are what tooltips are of
                "encoding": {
                    "x": {"field": "x", "type": "quantitative", "title": "updates"},
                    "y": {"field": "y", "type": "quantitative", "scale": {"zero": False}, "title": None},
                    "color": {**grammar, "scale": {}},
                    "strokeDash": {**grammar, "scale": {}},
                    "detail": {"field": "seed"},
                    "strokeWidth": {"condition": {"test": "datum.seed === 'mean'", "value": 2}, "value": 0.9},
                    "tooltip": _tips(grammar="grammar", seed="seed", x="updates", y="value"),
                },
            },
            {"data": {"name": "levels"}, "mark": {"type": "rule", "strokeDash": [2, 2]}, "encoding": {"y": level}},
            {
                "data": {"name": "levels"},
                "mark": {**NAMED, "dy": -6},
                "encoding": {"y": level, "text": {"field": "name"}, "x": {"value": 0}},
            },
        ],
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


def _column(name: str) -> Spec:
    """Return the encoding of a column of names, in the order of the data."""
    return {"field": name, "type": "nominal", "sort": None, "title": None}


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
