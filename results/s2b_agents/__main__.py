"""Train agents of S2B: `python -m results.s2b_agents [--train SWEEP]... [--workers 2]`; SWEEP is a key of TITLES.

Run the sweeps of this folder into runs/, starting from the records in
records.parquet, which is committed; add all records to this file, and write s2b-agents.md
and .png. Run it again to continue, on any machine. Without --train, only pack and write.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from icy.analysis.literature.catalogue import published
from icy.analysis.style import SMALL, head, panels, tidy
from icy.core.text import markdown_table
from icy.experiments.results import ProbeResult
from icy.s2b import GameSettings, evaluate
from icy.s2b.agents.agent_run import FINAL_SEED
from icy.s2b.agents.kinds import FLOOR_EPISODES
from icy.s2b.evaluation import CONSTANT
from results.pages import RecordFolder, describe_packs, fill_template, run_sweeps

HERE = Path(__file__).parent
PAGE, RECORDS = HERE / "s2b-agents.md", RecordFolder(HERE)
TITLES = {
    "memory": "Listeners, by reward alone",
    "pair": "Pairs, by reward alone",
    "ablations": "Ablations",
    "papers": "The papers' cores and learners",
    "listener": "Attention memories in the published cells",
}
DRAWN = ("memory", "pair", "papers")
SPREAD = "sd"
PRINTED = (  # table, agent, samples, title
    ("metarg22/listener", "LSTM", 1, "LSTM+r2d2"),
    ("metarg24/marl", "LSTM", 4, "LSTM pair"),
)


def page(results: dict[str, ProbeResult]) -> str:
    """Return the text of the page."""
    parts = []
    for name, result in results.items():
        if result.records:
            minutes = [r["cpu_seconds"] / 60 for r in result.records if not r["failed"]]
            parts += ["", f"## {TITLES[name]}", "", result.table("markdown", SPREAD).strip(), ""]
            if name == "listener":
                parts += [published_cells(result), ""]
            parts += [f"{min(minutes):.1f} to {max(minutes):.1f} minutes of processor time an agent, one thread."]
    return fill_template(HERE / "s2b-agents.md", records=describe_packs(RECORDS.pack), sweeps="\n".join(parts))


def with_constants(result: ProbeResult) -> ProbeResult:
    """Add the floor of constant answers to records of earlier versions, which lack it. It needs no training."""
    for record in result.records:
        if not record["failed"] and record.get("constant_floor") is None:
            settings = record["config"]["settings"]
            game = tuple(sorted(settings["setup"]["game"].items()))
            record["constant_floor"] = _constant_floor(game, min(settings["episodes"], FLOOR_EPISODES))
    return result


@cache
def _constant_floor(game: tuple[tuple[str, Any], ...], episodes: int) -> float:
    """Return the accuracy of the best constant answer, in the episodes of the record's other floor."""
    settings = GameSettings(**dict(game))
    return max(
        float(evaluate("random", name, settings, episodes=episodes, seeds=[FINAL_SEED]).table()["zsct"].iloc[0])
        for name in CONSTANT
    )


def published_cells(result: ProbeResult) -> str:
    """Return a table of a sweep's results next to the cells of metarg22/listener with the same schedule."""
    printed = published("metarg22/listener").set_index(["shots", "samples"])
    rows, below, gaps = [], [], []
    for record in sorted(result.records, key=lambda r: (r["shots"], r["samples"])):
        cell = printed.loc[record["shots"], record["samples"]]
        floor = max(record["floor"], record["constant_floor"])
        rows.append(
            [
                str(record["shots"]),
                str(record["samples"]),
                f"{100 * record['accuracy']:.1f}",
                str(record["steps"]),
                f"{record['observations']:,}",
                f"{100 * floor:.1f}",
                cell["printed"],
                f"{cell['observations']:,}",
            ]
        )
        gaps.append(float(cell["mean"]) - 100 * floor)
        if record["accuracy"] <= floor:
            below.append(f"S = {record['shots']}, O = {record['samples']}")
    heads = ["S", "O", "query, %", "updates", "observations", "never listening, %", "LSTM, %", "LSTM's observations"]
    games = "; ".join(below)
    note = (
        f"Where never listening scores at least as much ({games}), the accuracy does not show that messages are read. "
    )
    above = [gap for gap in gaps if gap > 0]
    note = note if below else ""
    note += f"The published LSTMs are below never listening in {len(gaps) - len(above)} of {len(gaps)} cells"
    note += f", and at most {max(above):.1f} points above it in {len(above)}. " if above else ". "
    table = markdown_table(heads, rows, numbers=range(8))
    return fill_template(HERE / "published-cells.md", below=note, table=table).strip()


def draw(results: dict[str, ProbeResult]) -> None:
    """Draw accuracy in the query against observations: a panel per sweep, a line per agent and seed."""
    shown = {name: result for name, result in results.items() if name in DRAWN and result.records}
    figure, axes = panels(list(shown), (2.6 * len(shown), 2.6), across=len(shown))
    for axis, (name, result) in zip(axes, shown.items(), strict=True):
        colors: dict[str, str] = {}
        for record in result.records:
            setup = record["config"]["settings"]["setup"]
            as_published, loss = setup["game"].get("masks") == "near32", bool(setup["settings"].get("reconstruction"))
            label = f"{record['model']}, V {record['values']}{', their schedule' * as_published}{', loss' * loss}"
            _, query, _, observations, *_ = zip(*record["curve"], strict=True)
            new = label not in colors
            color = colors.setdefault(label, f"C{len(colors)}")
            xs, ys = [n / 1e6 for n in observations], [100 * y for y in query]
            style = "--" if as_published else "-"
            axis.plot(xs, ys, style, color=color, linewidth=0.7, alpha=0.7, label=label if new else None)
        if name == "papers":
            _printed(axis)
        head(axis, TITLES[name], 2.3)
        axis.set_xlabel("million observations")
        axis.set_ylim(40, 101)
        where, at = ("center left", (1, 0.5)) if name == "papers" else ("lower right", (1.05, 0.18))  # clear of lines
        axis.legend(fontsize=SMALL, frameon=False, handlelength=1, loc=where, bbox_to_anchor=at)
        tidy(axis, "y")
    axes[0].set_ylabel("query (ZSCT), %")
    figure.savefig(PAGE.with_suffix(".png"), dpi=160)


def _printed(axis: Axes) -> None:
    """Draw the published end points, S = 1."""
    for place, (table, agent, samples, title) in enumerate(PRINTED):
        cells = published(table)
        one = cells[(cells["agent"] == agent) & (cells["samples"] == samples) & (cells["shots"] == 1)]
        (cell,) = one[one["measure"] == "zsct"].to_dict("records")
        axis.errorbar(
            [cell["observations"] / 1e6], [cell["mean"]], yerr=[cell["error"]], fmt="Ds"[place], color="black",
            markersize=3, linewidth=0.8, capsize=2, label=f"{title}, V {cell['values']}, published",
        )  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    results = {name: with_constants(of) for name, of in run_sweeps(__doc__, words, RECORDS, TITLES).items()}
    PAGE.write_text(page(results))
    draw(results)


if __name__ == "__main__":
    main()
