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
from icy.config.specs import ProbeSpec
from icy.core.errors import UnknownNameError
from icy.core.registry import registry
from icy.core.text import counted

from . import charts
from .page import escaped, save_buttons, whole_page

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
        "colours": _colors(settings),
        "charts": {"space": charts.space()},
    }
    return whole_page(TITLE, _body(atlas, settings), data, "explorer.js")


def explorer_settings(atlas: Atlas) -> list[Facts]:
    """Return the data of the explorer for each setting: its models with their means, and two kinds of axes.

    Defaults of `icy probe` come first, then settings with most models.
    """
    good = atlas.table[~atlas.table["failed"].astype(bool)]
    found: list[Facts] = []
    for _, part in good.groupby(SETTING, dropna=False, sort=False):
        grammars = in_order(part["grammar"])
        models = [_model(key, label, rows, grammars) for key, label, rows in _models(part)]
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
    return sorted(found, key=lambda one: (_unusual(one["setting"]), -len(one["models"])))


def _unusual(setting: Facts) -> int:
    """Return 0, 1 or 2: the number of protocol and space that differ from the defaults of `icy probe`."""
    usual = {"protocol": ProbeSpec.protocol, "meanings": ProbeSpec.meanings}
    return sum(setting[name] != value for name, value in usual.items())


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


def _models(part: pd.DataFrame) -> list[tuple[list[str], str, pd.DataFrame]]:
    """Return the key, the name and the rows of each model; names include the hidden size if it varies."""
    sizes = part["hidden_size"].nunique() > 1
    found = []
    for key, rows in part.groupby(MODEL, dropna=False, sort=False):
        model, hidden, options = map(str, key)  # type: ignore[call-overload]
        found.append(([model, hidden, options], model_label(model, hidden, options, sizes), rows))
    return found


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


def _model(key: list[str], label: str, rows: pd.DataFrame, grammars: list[str]) -> Facts:
    values = {grammar: part["value"].dropna() for grammar, part in rows.groupby("grammar")}
    return {
        "key": json.dumps(key, separators=(",", ":"), ensure_ascii=False),  # as JSON.stringify writes it
        "label": label,
        "family": style.family(label.partition(" (")[0]),
        "parameters": _plain(rows["parameters"].iloc[0]),
        "source": _source(str(rows["model"].iloc[0])),
        "means": {g: float(values[g].mean()) for g in grammars if g in values and len(values[g])},
        "updates": _updates(rows),
        "seeds": {g: len(values[g]) for g in grammars if g in values and len(values[g])},
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
        "weights": [_weights(easy, grammars), _weights(list(NOISE), grammars)],
        "grammars": grammars,
    }


def _weights(chosen: list[str], grammars: list[str]) -> list[float]:
    return [1 / len(chosen) if g in chosen else 0.0 for g in grammars]


def _principal(models: list[Facts], grammars: list[str], ratio: bool) -> Facts | None:
    """Return the first two principal components of models with all grammars, by a singular value decomposition."""
    rows = [m["means"] for m in models if all(g in m["means"] for g in grammars)]
    if len(rows) < 3 or len(grammars) < 2:
        return None
    table = np.array([[_coordinate(row[g], ratio) for g in grammars] for row in rows])
    center = table.mean(0)
    _, sizes, directions = np.linalg.svd(table - center, full_matrices=False)
    shares = sizes**2 / max(float((sizes**2).sum()), 1e-12)
    weights = [(d * np.sign(d[np.abs(d).argmax()])).tolist() for d in directions[:2]]
    titles = [
        f"component {n + 1} ({share:.0%}): {_largest(weights[n], grammars)}" for n, share in enumerate(shares[:2])
    ]
    about = {"name": "principal components", "titles": titles, "grammars": grammars}
    return {**about, "centre": center.tolist(), "weights": weights}


def _largest(weights: list[float], grammars: list[str]) -> str:
    """Return the three grammars with the largest weights in a component."""
    largest = sorted(range(len(grammars)), key=lambda at: -abs(weights[at]))[:3]
    return " ".join(f"{'+' if weights[at] > 0 else '-'}{grammars[at]}" for at in largest)


def _coordinate(value: float, ratio: bool) -> float:
    return math.log2(max(value, LEAST_RATIO)) if ratio else value


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


# -- page --------------------------------------------------------------------------------------------------------------


def _body(atlas: Atlas, settings: list[Facts]) -> str:
    about = atlas.about
    selects = "".join(
        f'<label>{NAMES.get(name, heading(name).capitalize())} <select data-choice="{name}"></select></label>'
        for name in (*CHOICES, *further_choices(settings))
    )
    made = f"{about['runs']:,} runs, {' to '.join(dict.fromkeys(about['made']))}; {'; '.join(about['versions'])}"
    count = len({model["label"] for one in settings for model in one["models"]})
    intro = (
        f"{count} senders and receivers under {counted(len(settings), 'setting')}. "
        "Models of one setting were measured in the same way. Each model is a point: "
        "near points learn the same grammars easily. "
        "Choose a setting, point at a model or choose it in the table, or place your own results."
    )
    ratio_rows = atlas.table[atlas.table["measure"].eq("ratio")]
    cut = "; the true ratio of a cut run (†) is larger" if ratio_rows["censored"].any() else ""
    ratios = f"Ratios are updates divided by concat's{cut}. The updates are below. " if len(ratio_rows) else ""
    return f"""
<header><h1>{TITLE}</h1><p>{intro}</p></header>
<section aria-labelledby="space-title"><h2 id="space-title">Bias space</h2>
<p class="tools">{selects}<label>Axes <select id="axes"></select></label></p>
<p class="note" id="setting" role="status"></p>
<div class="beside"><figure><figcaption>Models{save_buttons("space")}</figcaption>
<div class="scrolls" tabindex="0" role="region" aria-label="Models in bias space">
<div id="space" class="chart"></div></div><p class="note" id="rest"></p></figure>
<section aria-labelledby="model-title"><h2 id="model-title">Model</h2><div id="model"></div></section></div>
<div class="drop" id="drop"><label>Place your own: drop a results.csv here, or choose one
<input type="file" id="file" accept=".csv,text/csv"></label>
<p class="note">The file stays in this page and is not uploaded. Its rows of the setting chosen above are placed;
choose another setting to place its rows.</p>
<p id="told" role="status"></p></div></section>
<section aria-labelledby="all-title"><h2 id="all-title">All models of this setting</h2>
<p class="tools"><label>Filter rows <input type="search" id="filter"></label><span id="count" role="status"></span></p>
<div class="scrolls" tabindex="0" role="region" aria-label="All models"><div id="all"></div></div></section>
<section id="about" aria-labelledby="about-title"><h2 id="about-title">About</h2><p>{escaped(made)}.</p>
<p>{ratios}The distance of two
models is the root mean square, over the grammars that both have, of the difference in accuracy or in log2 of the
ratio.</p></section>"""
