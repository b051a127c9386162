"""Does the order of models and grammars depend on the settings? `python -m results.panel [--train [--seeds 5]]`.

With --train, trains the rows of panel.toml that are missing in records.parquet, and resumes
interrupted runs. Without it, packs all records, and writes panel.md and panel.png.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patches import Rectangle

from icy.analysis import style
from icy.analysis.statistics import holm
from icy.core.text import listed, markdown_table
from results.estimates import print_estimate
from results.pages import RecordFolder, describe_packs, fill_template, read_options
from results.panel.conclusions import CONCLUSIONS, HOLDS, Effect, effects, resolvable, verdict
from results.panel.orders import ALPHA, CUT, DEFAULT, ORDERS, SETTINGS, Panel, Tau, least_change, read, tau

HERE = Path(__file__).parent
PAGE, FIGURE, SWEEP, SCALED = (HERE / name for name in ("panel.md", "panel.png", "panel.toml", "scaled.py"))
RECORDS = RecordFolder(HERE)


def draw(panel: Panel, results: Mapping[str, Mapping[str, Effect]], taus: Mapping[str, Mapping[str, Tau]]) -> None:
    """Draw the factor of every conclusion under every setting, and the taus of the orders."""
    settings = list(panel.cubes)
    figure = style.figure(7.2, 8.2)
    grid = figure.add_gridspec(2, 1, height_ratios=[len(CONCLUSIONS), 6])
    top, below = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    _cells(top, settings, results)
    for place, (kind, row) in enumerate(taus.items()):
        at = [settings.index(name) + (place - 1) * 0.18 for name in row]
        values = [one.mean for one in row.values()]
        color = style.COLORS[place]
        below.vlines(at, [v[1] for v in values], [v[2] for v in values], color=color, linewidth=1.2)
        below.plot(at, [v[0] for v in values], style.MARKERS[place], color=color, markersize=4, label=kind)
        below.hlines([one.expected for one in row.values()], [x - 0.08 for x in at], [x + 0.08 for x in at],
                     color=color, linewidth=1)  # fmt: skip
    below.set(ylim=(-0.25, 1.05), xlim=(-0.5, len(settings) - 0.5), ylabel="Kendall's tau with the default")
    below.set_xticks(range(len(settings)), settings, rotation=style.TILT, ha="right", rotation_mode="anchor")
    below.axhline(0, color="black", linewidth=0.6)
    below.legend(fontsize=style.SMALL, frameon=False, loc="lower left", ncols=3)
    style.tidy(below, "y")
    figure.savefig(FIGURE, dpi=200, facecolor="white")


def _cells(ax: Axes, settings: Sequence[str], results: Mapping[str, Mapping[str, Effect]]) -> None:
    logs = [
        [math.log2(row[name].factor) if row[name].sign else math.nan for name in settings] for row in results.values()
    ]
    ax.imshow(np.array(logs), cmap="PuOr", norm=TwoSlopeNorm(0, -3, 3), aspect="auto")
    for y, row in enumerate(results.values()):
        base = row[DEFAULT].sign
        for x, name in enumerate(settings):
            one = row[name]
            shade = "white" if one.sign and abs(math.log2(one.factor)) > 1.6 else "black"
            text = f"{one.factor:.2g}" if one.factor < 10 else f"{one.factor:.0f}"
            text += "*" if one.p < ALPHA else ""
            ax.text(
                x, y, text if one.sign else f"({text})", ha="center", va="center", fontsize=style.SMALL, color=shade
            )
            if base and one.sign == -base:
                ax.add_patch(Rectangle((x - 0.46, y - 0.44), 0.92, 0.88, fill=False, linewidth=1.8))
    ax.set_yticks(range(len(results)), list(results))
    ax.set_xticks(range(len(settings)), settings, rotation=style.TILT, ha="left", rotation_mode="anchor")
    ax.tick_params(labelsize=style.SMALL, length=0, labeltop=True, labelbottom=False)
    ax.spines[:].set_visible(False)


def page(panel: Panel, results: Mapping[str, Mapping[str, Effect]], taus: Mapping[str, Mapping[str, Tau]]) -> str:
    """Return the text of the page."""
    shared = max(cube.shape[-1] for cube in panel.cubes.values())
    ends = [min, max]
    rows = [
        [
            text,
            print_estimate((row[DEFAULT].factor, row[DEFAULT].low, row[DEFAULT].high)),
            *(f"{effect.factor:.2f} ({name})" for name, effect in (end(row.items(), key=_size) for end in ends)),
            verdict(row),
        ]
        for text, row in results.items()
    ]
    orders = [
        [name, *(f"{print_estimate(taus[kind][name].mean)} [{taus[kind][name].expected:.2f}]" for kind in ORDERS)]
        for name in panel.cubes
        if name != DEFAULT
    ]
    return fill_template(
        PAGE,
        runs=f"{panel.runs:,}",
        made=describe_packs(RECORDS.pack),
        seeds=_seeds(panel, shared),
        cut=_cut(panel),
        hours=f"{panel.hours:.1f}",
        tests=len(CONCLUSIONS) * (len(panel.cubes) - 1),
        figure=FIGURE.name,
        summary=_summary(panel, results),
        conclusions=markdown_table(["conclusion", "default", "smallest", "largest", "verdict"], rows),
        orders=markdown_table(["setting", *ORDERS], orders),
        changed=_changed(taus),
        items="\n\n".join(_by_item(row, kind) for kind, row in taus.items()),
        power=_power(panel),
    )


def _seeds(panel: Panel, most: int) -> str:
    missing = [name for name in SETTINGS.values() if name not in panel.cubes]
    fewer = [f"{cube.shape[-1]} of {name}" for name, cube in panel.cubes.items() if cube.shape[-1] < most]
    text = f"There are {most} seeds of each setting{' except ' + listed(fewer) if fewer else ''}."
    return text + (f" Not measured yet: {listed(missing)}." if missing else "")


def _cut(panel: Panel) -> str:
    counts = {name: panel.cut[name].value_counts() for name in CUT}
    by = {name: listed([f"{count} {value}" for value, count in found.items()]) for name, found in counts.items()}
    if not len(panel.cut):
        return ""
    return (
        f"{len(panel.cut)} runs ended at the cap and count as the cap, so that factors with their models are bounds "
        f"(models: {by['model']}; grammars: {by['grammar']}; settings: {by['setting']})."
    )


def _summary(panel: Panel, results: Mapping[str, Mapping[str, Effect]]) -> str:
    shown = {text: row for text, row in results.items() if row[DEFAULT].sign}
    holds = [text for text, row in shown.items() if verdict(row) == HOLDS]
    turned = {
        text: [name for name, effect in row.items() if effect.sign == -row[DEFAULT].sign] for text, row in shown.items()
    }
    reversals = [f"{text} under {listed(names)}" for text, names in turned.items() if names]
    both = [text for text, row in results.items() if {1, -1} <= {effect.sign for effect in row.values()}]
    changed = [name for row in results.values() for name, effect in row.items() if effect.p < ALPHA]
    tests = holm([float(scipy.stats.ttest_1samp(one.of(panel.cubes[DEFAULT]), 0).pvalue) for one in CONCLUSIONS])
    sure = sum(p < ALPHA for p in tests)
    by = [f"{changed.count(name)} under {name}" for name in panel.cubes if name in changed]
    return " ".join(
        [
            f"For {len(shown)} of {len(results)} conclusions the default's interval excludes 1; {sure} of them are "
            f"shown after Holm's correction for {len(results)} tests. {len(holds)} of the {len(shown)} have "
            f"intervals on the same side of 1 under all of {len(panel.cubes)} settings.",
            f"Reversed: {'; '.join(reversals)}." if reversals else "None of them is reversed under any setting.",
            f"Above 1 under some setting and below 1 under another: {'; '.join(both) or 'none'}.",
            f"{len(changed)} of {len(results) * (len(panel.cubes) - 1)} factors differ significantly from the default's"
            + (f": {listed(by)}." if by else "."),
        ]
    )


def _changed(taus: Mapping[str, Mapping[str, Tau]]) -> str:
    places = [(kind, name) for kind, row in taus.items() for name in row]
    corrected = dict(zip(places, holm([taus[kind][name].p for kind, name in places]), strict=True))
    parts = []
    for kind, row in taus.items():
        lower = [name for name, one in row.items() if one.p < ALPHA]
        still = [name for name in lower if corrected[kind, name] < ALPHA]
        parts.append(
            f"Order of {kind}: p < 0.05 under {listed(lower) or 'no setting'}; after the correction, under "
            f"{listed(still) or 'no setting'}."
        )
    return " ".join(parts)


def _power(panel: Panel) -> str:
    count = panel.default.shape[-1]
    spreads = [resolvable(one.of(panel.default).std(ddof=1), count) for one in CONCLUSIONS]
    most = max((name for name in panel.cubes if name != DEFAULT), key=lambda name: panel.cubes[name].shape[-1])
    orders = [f"{least_change(panel, most, kind):.2f} ({kind})" for kind in ORDERS]
    return (
        f"With {count} seeds, a paired t-test at 5 % has a power of 80 % for a factor of {min(spreads):.2f} to "
        f"{max(spreads):.2f} (median {np.median(spreads):.2f}), depending on the conclusion; the spread over seeds is "
        f"that of the default. The test of orders at 5 %, with {panel.both(most)[0].shape[-1]} seeds, has a power of "
        f"80 % where the true mean tau is at most {listed(orders)}. Smaller changes of order would not be found."
    )


def _size(item: tuple[str, Effect]) -> float:
    return item[1].factor


def _by_item(row: Mapping[str, Tau], kind: str) -> str:
    names = list(next(iter(row.values())).items)
    cells = [[setting, *(print_estimate(one.items[name]) for name in names)] for setting, one in row.items()]
    return f"### Order of {kind}\n\n" + markdown_table(["setting", *names], cells)


def main() -> None:
    options = read_options(
        __doc__,
        train=(False, "train missing rows"),
        seeds=(int, "number of seeds, if fewer than the sweep has"),
    )
    if options.train:
        seeds = {} if options.seeds is None else {"seeds": options.seeds}
        RECORDS.sweep(SWEEP, plugin=str(SCALED), workers=1, **seeds)
        return
    RECORDS.update_pack()
    panel = read(RECORDS.long_table())
    found = effects(panel)
    taus = {kind: {name: tau(panel, name, kind) for name in panel.cubes if name != DEFAULT} for kind in ORDERS}
    draw(panel, found, taus)
    PAGE.write_text(page(panel, found, taus), encoding="utf-8")


if __name__ == "__main__":
    main()
