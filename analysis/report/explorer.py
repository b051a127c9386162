"""The explorer of the atlas: an HTML page with models in bias space, their rows, neighbors and sources."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd

from icy.analysis import style
from icy.analysis.atlas.atlas import MODEL, SETTING, Atlas, model_label
from icy.analysis.atlas.placement import LISTED_NEIGHBORS, MIN_SHARED
from icy.analysis.order import COMPOSITIONAL, NOISE, Facts, SortKey, heading, in_order
from icy.analysis.table_cells import LEAST_RATIO, updates_text, updates_to_target
from icy.core.errors import UnknownNameError
from icy.core.registry import registry
from icy.training.probe_settings import ProbeSettings

from .page import field, ink, layer, specification, tooltip, whole_page

CHOICES = ("role", "protocol", "representation", "meanings")  # columns of SETTING that the reader chooses first
NAMES = {
    "representation": "Messages",
    "meanings": "Space",
    "settings": "Training settings",
}  # headings that are plainer than the names of columns
TITLE = "The atlas of compositional bias"


def explorer_page(atlas: Atlas) -> str:
    """Return the explorer of an atlas as one HTML file, which loads nothing from the network.

    Raises:
        IncompatibleError: the plotting library is not installed.
    """
    settings = explorer_settings(atlas)
    data = {
        "settings": settings,
        "choices": list(CHOICES),
        "names": list(SETTING),
        "least": LEAST_RATIO,
        "shared": MIN_SHARED,
        "listed": LISTED_NEIGHBORS,
        "colours": {family: ink(color) for family, color in _colors(settings).items()},
        "space": _space(),
    }
    choices = (*CHOICES, *further_choices(settings))
    ratios = atlas.table[atlas.table["measure"].eq("ratio")]
    return whole_page(
        "explorer",
        data,
        title=TITLE,
        settings=settings,
        choices=[(name, NAMES.get(name, heading(name).capitalize())) for name in choices],
        count=len({model["label"] for one in settings for model in one["models"]}),
        about=atlas.about,
        ratios=len(ratios),
        cut=ratios["censored"].any(),
    )


def _space() -> Facts:
    """Return the chart of bias space: rings around the chosen model and its neighbors, points, and the chosen name."""
    chosen, own = {"test": "datum.chosen"}, {"test": "datum.own"}
    told = {"label": "model", "family": "family", "x": "x", "y": "y"}
    return specification(
        "Models in bias space: near points learn the same grammars easily.",
        autosize={"type": "fit-x", "contains": "padding"}, width="container", height=420,
        encoding={axis: field(axis, scale={"zero": False, "padding": 40}) for axis in "xy"},
        layer=[
            layer("point", {
                "size": {"condition": {**chosen, "value": 320}, "value": 180},
                "strokeWidth": {"condition": {**chosen, "value": 2.2}, "value": 1.2},
                "opacity": {"condition": {"test": "datum.chosen || datum.near", "value": 1}, "value": 0},
            }, filled=False, shape="circle", tooltip=None),
            layer("point", {
                "color": {"condition": {**own, "value": "currentColor"}, **field("family", "nominal", title="family")},
                "shape": {"condition": {**own, "value": "diamond"}, "value": "circle"},
                "size": {"condition": {**own, "value": 240}, "value": 60},
                "tooltip": tooltip(told),
            }, filled=True, cursor="pointer", strokeWidth=2.5),
            layer("text", {"text": {"condition": {**chosen, "field": "label"}, "value": ""}},
                  dy=-15, fontSize=12, tooltip=None),
        ],
    )  # fmt: skip


def explorer_settings(atlas: Atlas) -> list[Facts]:
    """Return the data of the explorer for each setting: its models with their means, and two kinds of axes.

    Defaults of `icy probe` come first, then settings with most models.
    """
    good = atlas.table[~atlas.table["failed"].astype(bool)]
    found: list[Facts] = []
    for _, part in good.groupby(SETTING, dropna=False, sort=False):
        grammars, sizes = in_order(part["grammar"]), part["hidden_size"].nunique() > 1
        models = [
            _model([*map(str, key)], rows, grammars, sizes)  # type: ignore[call-overload]
            for key, rows in part.groupby(MODEL, dropna=False, sort=False)
        ]
        ratio = part["measure"].iloc[0] == "ratio"
        setting = {name: _plain(part.iloc[0][name]) for name in SETTING}
        compared = [g for g in grammars if g != "concat"]
        found.append(
            {
                "setting": setting,
                "ratio": bool(ratio),
                "grammars": grammars,
                "models": models,
                "axes": [axes for axes in (_published(compared, ratio), _principal(models, compared, ratio)) if axes],
            }
        )
    usual = {"protocol": ProbeSettings.protocol, "meanings": ProbeSettings.meanings}

    def place(one: Facts) -> tuple[int, int]:
        return sum(one["setting"][name] != value for name, value in usual.items()), -len(one["models"])

    return sorted(found, key=place)


def _colors(settings: list[Facts]) -> dict[str, str]:
    """Return the colors of families: the same on both sides, and distinct within a side if there are enough colors."""
    sides: dict[str, set[str]] = {}
    for one in settings:
        sides.setdefault(str(one["setting"]["role"]), set()).update(model["family"] for model in one["models"])
    found: dict[str, str] = {}
    for family in sorted(
        set().union(*sides.values()), key=lambda name: (-sum(name in of for of in sides.values()), name)
    ):
        used = {found[other] for of in sides.values() if family in of for other in of & set(found)}
        free = [color for color in style.COLORS if color not in used]
        found[family] = (free or style.COLORS)[0]
    return found


def further_choices(settings: list[Facts]) -> list[str]:
    """Return the columns in which settings with the same `CHOICES` differ."""
    alike: dict[SortKey, list[Facts]] = {}
    for one in settings:
        alike.setdefault(tuple(one["setting"][name] for name in CHOICES), []).append(one["setting"])
    differ = [{name for name in SETTING if len({one[name] for one in group}) > 1} for group in alike.values()]
    return [name for name in SETTING if name in set().union(*differ)]


def _updates(rows: pd.DataFrame) -> dict[str, str]:
    """Return the mean updates to the target by grammar, as text; empty unless the measure is a ratio."""
    ratios = rows[rows["measure"].eq("ratio")]
    found = (
        ratios.assign(updates=updates_to_target(ratios)).groupby("grammar").agg({"updates": "mean", "censored": "any"})
    )
    return {
        str(grammar): f"{'> ' * bool(cut)}{updates_text(updates)}"
        for grammar, updates, cut in found.dropna(subset="updates").itertuples()
    }


def _model(key: list[str], rows: pd.DataFrame, grammars: list[str], sizes: bool) -> Facts:
    """Return a model; its name includes the hidden size if it varies (`sizes`)."""
    label = model_label(key[0], key[1], key[2], sizes)
    values = {grammar: part["value"].dropna() for grammar, part in rows.groupby("grammar")}
    values = {grammar: values[grammar] for grammar in grammars if grammar in values and len(values[grammar])}
    return {
        "key": json.dumps(key, separators=(",", ":"), ensure_ascii=False),  # as JSON.stringify writes it
        "label": label,
        "family": style.family(label.partition(" (")[0]),
        "parameters": _plain(rows["parameters"].iloc[0]),
        "source": _source(str(rows["model"].iloc[0])),
        "means": {grammar: float(own.mean()) for grammar, own in values.items()},
        "updates": _updates(rows),
        "seeds": {grammar: len(own) for grammar, own in values.items()},
        "cut": [str(g) for g in rows[rows["censored"].astype(bool) & rows["measure"].eq("ratio")]["grammar"].unique()],
    }


def _source(model: str) -> str:
    """Return the source of an architecture; "" if it is not registered here."""
    side, _, name = model.partition("/")
    try:
        return registry.get(name, side).source
    except UnknownNameError:
        return ""


# -- axes --------------------------------------------------------------------------------------------------------------


def _published(grammars: list[str], ratio: bool) -> Facts | None:
    """Return the two axes of Perkins21's figures: mean over compositional grammars, and mean over noise."""
    easy = [g for g in COMPOSITIONAL if g in grammars]
    if not easy or not set(NOISE) <= set(grammars):
        return None
    measure = "log2 of the ratio" if ratio else "accuracy"
    return {
        "name": "compositional and noise",
        "titles": [f"{measure}, mean of {' and '.join(easy)}", f"{measure}, mean of {', '.join(NOISE)}"],
        "centre": [0.0] * len(grammars),
        "weights": [[1 / len(own) if g in own else 0.0 for g in grammars] for own in (easy, NOISE)],
        "grammars": grammars,
    }


def _principal(models: list[Facts], grammars: list[str], ratio: bool) -> Facts | None:
    """Return the first two principal components of models with all grammars, by a singular value decomposition."""
    rows = [m["means"] for m in models if all(g in m["means"] for g in grammars)]
    if len(rows) < 3 or len(grammars) < 2:
        return None
    table = np.array([[math.log2(max(row[g], LEAST_RATIO)) if ratio else row[g] for g in grammars] for row in rows])
    center = table.mean(0)
    _, sizes, directions = np.linalg.svd(table - center, full_matrices=False)
    shares = sizes**2 / max(float((sizes**2).sum()), 1e-12)
    weights = [(d * np.sign(d[np.abs(d).argmax()])).tolist() for d in directions[:2]]
    titles = []
    for n, (share, own) in enumerate(zip(shares, weights, strict=False)):
        largest = sorted(zip(own, grammars, strict=True), key=lambda one: -abs(one[0]))[:3]
        text = " ".join(f"{'+' if weight > 0 else '-'}{grammar}" for weight, grammar in largest)
        titles.append(f"component {n + 1} ({share:.0%}): {text}")
    about = {"name": "principal components", "titles": titles, "grammars": grammars}
    return {**about, "centre": center.tolist(), "weights": weights}


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value
