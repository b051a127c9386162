"""Helpers of plot tests: results to draw, and values of the drawn artists."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from icy.experiments.results import ProbeResult
from icy.records.load import long_of

GRAMMARS = ("concat", "perm", "proj", "pairsum", "rot", "shufdet", "hol")
EASE = dict(zip(GRAMMARS, (0.99, 0.98, 0.8, 0.6, 0.7, 0.9, 0.25), strict=True))
MODELS = ("sender/FC2L", "sender/HierZero:GRU")


def record(model: str, grammar: str, seed: int, **more: Any) -> dict[str, Any]:
    """A record as the store keeps it, of the protocol `budget` unless something else is said."""
    usual = {
        "model": model,
        "grammar": grammar,
        "seed": seed,
        "side": model.partition("/")[0],
        "meanings": "3x4",
        "vocab_size": 4,
        "word_length": 2,
        "hidden_size": 32,
        "representation": "soft",
        "protocol": "budget",
        "measure": "accuracy",
        "target": 0.99,
        "cap": 1,
        "preset": "default",
        "reason": "budget",
        "accuracy": 0.5,
        "steps": 200,
        "baseline_steps": 200,
        "failed": False,
        "error": None,
        "parameters": {"true": 1000, "published": 1200},
        "curve": [[0, 0.25], [50, 0.4], [100, 0.5]],
        "config": {"settings": {"round_ratio": False}, "options": {}},
        "finished": "2026-01-01T00:00:00+00:00",
    }
    merged = {**usual, **more}
    about = [merged[name] for name in ("model", "grammar", "seed", "hidden_size", "representation", "protocol")]
    key = "-".join(map(str, about))
    return {**merged, "key": key, "config": {**merged["config"], "key": key}}


def budget(models: Sequence[str] = MODELS, seeds: int = 2, **more: Any) -> ProbeResult:
    """Accuracies that differ by model, grammar and seed."""
    return ProbeResult([
        record(model, grammar, 123 + seed, accuracy=ease - 0.03 * place + 0.02 * (seed - seeds), **more)
        for (place, model), (grammar, ease), seed in itertools.product(enumerate(models), EASE.items(), range(seeds))
    ])  # fmt: skip


def acquire(models: Sequence[str] = MODELS, seeds: int = 2) -> ProbeResult:
    """Ratios; hol is cut for all seeds, and rot for one."""
    found = []
    for (place, model), (number, grammar), seed in itertools.product(
        enumerate(models), enumerate(GRAMMARS), range(seeds)
    ):
        cut = grammar == "hol" or (grammar == "rot" and seed == 0)
        steps = 2000 if cut else 100 + 60 * number * (place + 1) + 10 * seed * (grammar != "concat")
        more = {"reason": "cap" if cut else "target", "steps": steps, "baseline_steps": 100, "target": 0.8, "cap": 20}
        found.append(record(model, grammar, 123 + seed, protocol="acquire", measure="ratio", accuracy=0.8, **more))
    return ProbeResult(found)


def means(result: ProbeResult | pd.DataFrame, model: str, spread: str = "std") -> pd.DataFrame:
    """Mean and spread by grammar of one model, by pandas alone."""
    long = long_of(result)
    return long[long["model"] == model].groupby("grammar")["value"].agg(["mean", spread])


def geometric(result: ProbeResult, model: str) -> pd.Series[float]:
    """Geometric mean by grammar of one model."""
    long = long_of(result)
    logs = np.log(long[long["model"] == model].set_index("grammar")["value"].astype(float))
    return np.exp(logs.groupby("grammar").mean())  # type: ignore[no-any-return]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def arrows(ax: Axes) -> list[Annotation]:
    return [text for text in ax.texts if isinstance(text, Annotation) and text.arrow_patch is not None]


def all_text(figure: Figure) -> str:
    """Title and notes of a figure."""
    return " ".join(f"{figure.get_suptitle()} {figure.get_supxlabel()}".split())


def written(figure: Figure) -> list[Text]:
    """All texts that are seen: titles, labels, names of ticks, legends, notes."""
    figure.draw_without_rendering()
    found = [text for part in (figure, *figure.subfigs) for text in part.texts]
    legends = [*figure.legends]
    for ax in figure.axes:
        found += [*ax.texts, *(child for child in ax.get_children() if isinstance(child, Text))]
        legends += [ax.get_legend()] if ax.get_legend() else []
        for axis in (ax.xaxis, ax.yaxis):
            ticks = axis._update_ticks()  # type: ignore[attr-defined]  # those within the limits
            found += [axis.label, *(label for tick in ticks for label in (tick.label1, tick.label2))]
    found += [text for legend in legends for text in legend.get_texts()]
    return [text for text in dict.fromkeys(found) if text.get_visible() and text.get_text().strip()]


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other, and texts that leave the figure."""
    boxes = [(text.get_text(), Text.get_window_extent(text).shrunk(0.97, 0.85)) for text in written(figure)]
    pairs = [(one, other) for (one, a), (other, b) in itertools.combinations(boxes, 2) if a.overlaps(b)]
    left, bottom, right, top = figure.bbox.extents
    return pairs + [(text, "the edge") for text, box in boxes
                    if box.x0 < left or box.x1 > right or box.y0 < bottom or box.y1 > top]  # fmt: skip


# -- parameters --------------------------------------------------------------------------------------------------------


def sized() -> ProbeResult:
    """Two models at three hidden sizes."""
    found = []
    for (place, model), size in itertools.product(enumerate(MODELS), (8, 16, 32)):
        count = {"true": size * size * (place + 1), "published": 1}
        accuracy = 0.5 + size / 100 + place / 20
        found += [record(model, g, 1, hidden_size=size, accuracy=accuracy, parameters=count) for g in ("perm", "rot")]
    return ProbeResult(found)
