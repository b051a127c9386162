"""Train agents of multi-target games: `python -m results.games [--train thing|wide|shape|targets|...]...`.

Run the sweeps of this folder into runs/, starting from the records in
records.parquet, which is committed; add all records to this file, and write games.md and
its pictures. Run it again to continue, on any machine. Without --train, only pack and write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import icy
from icy.analysis.emergence import EMERGED, Emergence, plot_emergence, probed_senders
from icy.analysis.literature.retraining import WHICH, claims, games_of_results, references
from icy.analysis.style import COLORS, SMALL, head, panels, tidy
from icy.analysis.tables.games import with_settings
from icy.core.text import markdown_table
from icy.experiments.results import ProbeResult
from icy.records.kinds import job_kind
from icy.records.long_table import SYNONYMS
from results.pages import RecordFolder, describe_packs, fill_template, run_sweeps

HERE = Path(__file__).parent
PAGE, RECORDS = HERE / "games.md", RecordFolder(HERE)
TITLES = {
    "thing": "Thing: rules of one and of four concepts, two representations",
    "wide": "Thing: words of 64 bits",
    "shape": "Shape, on a small canvas",
    "targets": "One target against several",
    "channels": "Symbols, binary words and a codebook",
    "speakers": "The zoo's senders as speakers",
}
AS_PRINTED = ("thing", "wide", "shape")  # sweeps of rows of CBM24
POINTS = job_kind("games").curve
SPREAD = "sd"
SHOWN = {"accuracy": "accuracy", "cbm": "CBM"}  # of curves
PRINTED = ("cbm24/table1", "cbm24/table3")
Results = dict[str, ProbeResult]


def page(results: Results) -> str:
    """Return the text of the page."""
    parts = []
    for name, result in results.items():
        if not result.records:
            continue
        parts += ["", f"## {TITLES[name]}", ""]
        parts += [f"![{TITLES[name]}](games-{name}.png)", ""] if name in DRAWN else []
        parts += [result.table("markdown", SPREAD).strip(), "", *(FURTHER[name](result) if name in FURTHER else [])]
        parts += [_time(result)]
    sweeps = "\n".join([*parts, *_claims(results)])
    return fill_template(HERE / "games.md", records=describe_packs(RECORDS.pack), sweeps=sweeps)


def _time(result: ProbeResult) -> str:
    minutes = [r["seconds"] / 60 for r in result.records if not r["failed"]]
    where = sorted({r["device_name"] for r in result.records})
    return f"{min(minutes):.1f} to {max(minutes):.1f} minutes a replicate, of a stack's time, on {', '.join(where)}."


def _claims(results: Results) -> list[str]:
    """Return a section that tests CBM24's claims on the sweeps of the printed rows."""
    measured = [results[name] for name in AS_PRINTED if name in results and results[name].records]
    if not measured:
        return []
    games = [games_of_results(with_settings(near(result.to_dataframe()))) for result in measured]
    found = claims(pd.concat(games, ignore_index=True))
    rows = found[["said", "found", "verdict"]].to_numpy().tolist()
    return ["", "## Claims of the printed rows", "", markdown_table(["claim", "measured", "verdict"], rows)]


def _correlations(result: ProbeResult) -> list[str]:
    found = Emergence.of(probed_senders(icy.atlas().to_dataframe()), result)
    table = found.correlations()
    cells = [
        [row.bias, EMERGED[row.score], f"{row.spearman:+.2f}", f"{row.low:+.2f} to {row.high:+.2f}", f"{row.p:.3f}"]
        for row in table.itertuples()
    ]
    text = f"Spearman's correlations over {len(found.table)} senders of the bias in the atlas with the language:"
    return [text, "", markdown_table(["bias", "score", "correlation", "95 % interval", "p"], cells), ""]


FURTHER: dict[str, Callable[[ProbeResult], list[str]]] = {"speakers": _correlations}


def near(long: pd.DataFrame) -> pd.DataFrame:
    """Drop runs with uniform distractors and rules of several concepts, which the paper does not have."""
    return long[(long["rule_length"] == 1) | long["grammar"].ne("uniform")]


# -- pictures ----------------------------------------------------------------------------------------------------------


def curves(result: ProbeResult) -> Figure:
    """Draw accuracy and CBM while agents learn, a panel per world and rule length, with the printed values."""
    long = with_settings(result.to_dataframe())
    games = list(dict.fromkeys(zip(long["world"], long["rule_length"], strict=True)))
    names = [f"{world}, l={length:.0f}: {measure}" for world, length in games for measure in SHOWN]
    figure, axes = panels(names, (7, 2.3 * len(games)), len(SHOWN), sharex=True)
    printed = {row: found for table in PRINTED for row, found in references(table).items()}
    for place, (world, length) in enumerate(games):
        part = long[long["world"].eq(world) & long["rule_length"].eq(length)]
        own = {row: printed[row] for row in dict.fromkeys(_rows(part)) if row in printed}
        for ax, (measure, title) in zip(axes[place * len(SHOWN) :], SHOWN.items(), strict=False):
            _draw_curves(ax, result, part, measure)
            for row, found in own.items():
                ax.axhline(found[measure], color=_color(row[1]), linewidth=0.8, linestyle=":")
            head(ax, f"{world}, l={length:.0f}: {title}", 3.3)
            ax.set_xlabel("updates (dotted: printed)" if own else "updates")
            tidy(ax, "y")
        axes[place * len(SHOWN)].legend(fontsize=SMALL, frameon=False)
    return figure


def _rows(part: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return the key of each result in the published table."""
    names = [SYNONYMS.get(name, name) for name in WHICH]
    return list(part[names].itertuples(index=False, name=None))


def _draw_curves(ax: Axes, result: ProbeResult, part: pd.DataFrame, measure: str) -> None:
    place, labeled = POINTS.index(measure), set()
    kinds = list(dict.fromkeys(part["grammar"]))
    for record in [r for r in result.records if r["key"] in set(part["key"]) and not r["failed"]]:
        label = f"{record['representation']}, {record['grammar']}"
        style = "-" if record["grammar"] == kinds[0] else "--"
        xs, ys = zip(*[(point[0], point[place]) for point in record["curve"]], strict=True)
        shown = None if label in labeled else label
        ax.plot(xs, ys, style, color=_color(record["representation"]), linewidth=0.8, alpha=0.8, label=shown)
        labeled.add(label)


def _color(representation: str) -> str:
    return COLORS[("gs", "qt", "cb").index(representation)] if representation in ("gs", "qt", "cb") else COLORS[3]


def by_targets(result: ProbeResult) -> Figure:
    """Draw scores against the number of targets."""
    long = result.to_dataframe()
    shown = {"accuracy": "accuracy", "cbm": "CBM", "cbm_floor": "CBM by chance", "topsim": "topsim"}
    figure, (ax,) = panels(["targets"], (4.2, 2.8), 1)
    for place, (name, label) in enumerate(shown.items()):
        groups = long.groupby("targets")[name]
        style = "--" if name == "cbm_floor" else "o-"
        ax.errorbar(groups.mean().index, groups.mean(), yerr=groups.std(), fmt=style, markersize=3.5,
                    linewidth=0.9, color=COLORS[1 if "cbm" in name else place], label=label)  # fmt: skip
    ax.set_xticks(sorted(long["targets"].unique()))
    ax.set_xlabel("targets of a turn, and as many distractors")
    ax.legend(fontsize=SMALL, frameon=False)
    tidy(ax, "y")
    return figure


def speakers(result: ProbeResult) -> Figure:
    """Draw the bias of senders against the scores of their emergent languages."""
    return plot_emergence(Emergence.of(probed_senders(icy.atlas().to_dataframe()), result))


DRAWN: dict[str, Callable[[ProbeResult], Figure]] = {
    "thing": curves,
    "wide": curves,
    "shape": curves,
    "targets": by_targets,
    "channels": curves,
    "speakers": speakers,
}


def draw(results: Results) -> None:
    """Draw the pictures of all sweeps that have results."""
    for name, result in results.items():
        if result.records:
            DRAWN[name](result).savefig(PAGE.with_name(f"games-{name}.png"), dpi=160)


def main(words: Sequence[str] | None = None) -> None:
    results = run_sweeps(__doc__, words, RECORDS, TITLES, device=("auto", "cpu or cuda"))
    PAGE.write_text(page(results))
    draw(results)


if __name__ == "__main__":
    main()
