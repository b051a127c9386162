"""Accuracy of fixed listeners in S2B, without and with messages: `python -m results.s2b_floors [--episodes 100]`.

Listeners that do not learn play with the posdis speaker under three schedules of the query: the default, by the
listener's stimuli; the papers' (`query_of="speaker"`); and the authors' program's (`compat="near32"`).
Writes results/s2b_floors/s2b-floors.md, .csv and .png.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from icy.analysis.literature.catalogue import published
from icy.analysis.style import legend, panels, tidy
from icy.core.text import markdown_table
from icy.s2b import evaluate
from icy.s2b.evaluation import NEVER_LISTENING
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).with_name("s2b-floors.md")
SEEDS = 5
SCHEDULES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "papers": {"query_of": "speaker"},
    "near32": {"compat": "near32"},
}
DEAF = (*NEVER_LISTENING, "always-yes")
HEARING = ("nearest", "binding")
SPACES: Mapping[str, Mapping[str, Any]] = {
    "2-3": {"most": 3},
    "2-5": {},
    "2-10": {"most": 10},
    "2-5, K = 3": {"distractors": 3},
}
SHOTS, SAMPLES = (1, 2, 4), (1, 4, 16)
FEW = 20  # episodes per seed if episodes are long


def cells() -> Iterator[tuple[str, int, int]]:
    """Return the settings: values, shots and samples."""
    for values in SPACES:
        whole = values in ("2-3", "2-5")
        for samples in SAMPLES if whole else (1, 4):
            for shots in SHOTS if whole else (1, 4):
                yield values, shots, samples


def measure(episodes: int) -> pd.DataFrame:
    """Return a row per schedule, setting and listener: mean and standard deviation over seeds, in percent."""
    rows = []
    for values, shots, samples in cells():
        count = min(episodes, FEW) if samples == 16 or values == "2-10" else episodes
        for schedule, changes in SCHEDULES.items():
            for listener in (*DEAF, *HEARING):
                settings = {**SPACES[values], "shots": shots, "samples": samples, **changes}
                table = evaluate("posdis", listener, episodes=count, seeds=SEEDS, **settings).table()
                query, support = table["zsct"] * 100, table["support"] * 100
                rows.append([
                    *(schedule, values, shots, samples, listener, count, query.mean(), query.std()),
                    *(support.mean(), support.std()),
                ])  # fmt: skip
        print(values, shots, samples, flush=True)
    names = ("schedule", "values", "shots", "samples", "listener", "episodes", "query", "query_sd", "support")
    return pd.DataFrame(rows, columns=[*names, "support_sd"]).assign(versions=describe_versions())


def page(scores: pd.DataFrame) -> str:
    """Return the text of the page."""
    tables = {}
    for schedule in SCHEDULES:
        of = scores[scores["schedule"] == schedule]
        wide = of.assign(text=[f"{q:.1f} ± {s:.1f}" for q, s in zip(of["query"], of["query_sd"], strict=True)])
        index = ["values", "shots", "samples"]
        table = wide.pivot(index=index, columns="listener", values="text")[[*DEAF, *HEARING]]
        table = table.reindex(pd.MultiIndex.from_tuples(list(cells()), names=index))
        rows = [[*key, *row] for key, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
        tables[schedule] = markdown_table(["values", "S", "O", *DEAF, *HEARING], rows, range(1, 9))
    return fill_template(
        PAGE,
        versions=scores["versions"].iloc[0],
        seeds=SEEDS,
        episodes=scores["episodes"].max(),
        fewer=scores["episodes"].min(),
        **tables,
    )


def plot(scores: pd.DataFrame) -> Any:
    """Draw the best listener that ignores all messages, and the published LSTM."""
    lstm = published("metarg22/listener")
    figure, axes = panels(["2 to 3 values", "2 to 5 values"], None, (7.5, 2.8), across=2, sharey=True)
    for ax, values in zip(axes, ("2-3", "2-5"), strict=True):
        best = scores[(scores["values"] == values) & scores["listener"].isin(DEAF)]
        for schedule, group in best.groupby("schedule", sort=False):
            top = group.groupby(["samples", "shots"])["query"].max()
            ax.plot(range(len(top)), top.to_numpy(), marker="o", label=f"never listens, {schedule}")
        ticks = [f"{s}\n{o}" for o, s in top.index]
        if values == "2-5":
            of = lstm.set_index(["samples", "shots"])["mean"]
            ax.plot(range(len(top)), [of.get(key) for key in top.index], "k--", marker="s", label="LSTM of MetaRG22")
        ax.set_xticks(range(len(top)), ticks)
        ax.set_ylim(40, 102)
        ax.set_title(f"{values.replace('-', ' to ')} values")
        tidy(ax, "y")
        ax.set_xlabel("shots S, above samples O")
    axes[0].set_ylabel("accuracy in the query, %")
    legend(figure, axes, True, axes[-1].get_legend_handles_labels()[0])
    return figure


def main() -> None:
    """Measure, and write the page, the table and the figure."""
    options = read_options(
        __doc__,
        episodes=(100, "episodes per seed"),
        plot=(False, "only draw and write the page again, from the saved table"),
    )
    table = PAGE.with_suffix(".csv")
    if not options.plot:
        measure(options.episodes).round(3).to_csv(table, index=False)
    found = pd.read_csv(table)
    PAGE.write_text(page(found))
    plot(found).savefig(PAGE.with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
