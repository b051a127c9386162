"""Accuracy without listening in S2B: `python -m results.s2b_floors [--train] [--workers 2]`.

Listeners that do not learn play under three schedules of the query: the default, by the listener's stimuli; the papers'
(`query_of="speaker"`); and the authors' program's (`compat="near32"`). Agents without messages learn in the published
cells: `--train` trains those of deaf.toml that are not in records.parquet, which is committed.
Writes results/s2b_floors/s2b-floors.md, .csv and .png.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from icy.analysis.literature.agreement import NAMES, with_distance
from icy.analysis.literature.catalogue import published
from icy.analysis.order import Row
from icy.analysis.statistics import CONFIDENCE, Paired, holm, paired, student, tost
from icy.analysis.style import legend, panels, tidy
from icy.analysis.table_cells import p_text
from icy.core.text import counted, listed, markdown_table
from icy.experiments.sweep import make_sweep, sweep_request
from icy.experiments.sweep_file import read_sweep
from icy.records.load import long_of
from icy.records.long_table import option_columns
from icy.s2b import evaluate
from icy.s2b.evaluation import CONSTANT, NEVER_LISTENING
from results.estimates import print_estimate
from results.pages import RecordFolder, describe_packs, describe_versions, fill_template, read_options

HERE = Path(__file__).parent
PAGE, RECORDS, FILE = HERE / "s2b-floors.md", RecordFolder(HERE), HERE / "deaf.toml"
SEEDS = 6
SELECTION_SEEDS = range(200, 203)  # of the episodes in which the best listener without messages is selected
SCHEDULES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "papers": {"query_of": "speaker"},
    "near32": {"compat": "near32"},
}
DEAF = (*NEVER_LISTENING, *CONSTANT)
HEARING = ("nearest", "binding")
SPACES: Mapping[str, Mapping[str, Any]] = {
    "2-3": {"most": 3},
    "2-5": {},
    "2-10": {"most": 10},
    "2-5, K = 3": {"distractors": 3},
}
SHOTS, SAMPLES = (1, 2, 4), (1, 4, 16)
FEW, MANY = 20, 500  # episodes per seed if episodes are long, and in the published cells
CELL = ["values", "shots", "samples"]  # columns that identify a game
KEY = ["source", "agent", *CELL]  # columns that identify a published accuracy
LENGTH, LONGER = "trained on", 500_000  # column of observations of an agent, and the value of the cells added later
# metarg24/listener has the runs of metarg22/listener, and only MetaRG24 prints the number of runs of all cores.
LISTENERS = ("metarg22/listener", "metarg24/cores")
TABLES = (*LISTENERS, "metarg24/marl", "metarg24/llm")
DRAWN = ("2-5, K = 3", 2, 1)  # the game of metarg24/figure9, which has no printed accuracy
MARGIN = 5.0  # largest difference of accuracies that does not matter, in points
LEAST_SEEDS = 3  # for a test
HEARS, R2D2, TAUGHT = "LSTM+r2d2", "LSTM+r2d2 (deaf)", "LSTM+supervised (deaf)"  # models of deaf.toml
EPISODES = {HEARS: 500, R2D2: 500, TAUGHT: 1000}  # of the final evaluation of an agent
VERDICTS = BELOW, WITHIN, ABOVE, UNKNOWN, UNTESTED = ("below", "within 5 points", "above", "unknown", "not tested")


# -- floors ------------------------------------------------------------------------------------------------------------


def cells() -> Iterator[tuple[str, int, int]]:
    """Return the settings: values, shots and samples."""
    for values in SPACES:
        for samples in SAMPLES if values in ("2-3", "2-5") else (1, 4):
            for shots in SHOTS if values != "2-10" else (1, 4):
                yield values, shots, samples


def measure(episodes: int) -> pd.DataFrame:
    """Return a row per schedule, setting and listener, in percent.

    `query` and `support` are means over seeds, and `query_sd` and `support_sd` standard deviations over seeds.
    `episode_sd` is the standard deviation over episodes, and `selection` the query accuracy in the episodes in which
    the best listener is selected.
    """
    compared = {DRAWN, *printed()[CELL].itertuples(index=False, name=None)}
    rows = []
    for cell in cells():
        values, shots, samples = cell
        for schedule, changes in SCHEDULES.items():
            usual = min(episodes, FEW) if samples == 16 or values == "2-10" else episodes
            whole = schedule == "near32" and cell in compared
            settings = {**SPACES[values], "shots": shots, "samples": samples, **changes}
            for listener in (*DEAF, *HEARING):
                count = MANY if whole and listener in DEAF else usual
                found = evaluate("posdis", listener, episodes=count, seeds=SEEDS, **settings)
                query, support = (found.table()[name] * 100 for name in ("zsct", "support"))
                if whole and listener in DEAF:
                    other = evaluate("posdis", listener, episodes=usual, seeds=SELECTION_SEEDS, **settings).table()
                selection = 100 * other["zsct"].mean() if whole and listener in DEAF else np.nan
                rows.append([
                    *(schedule, *cell, listener, count, query.mean(), query.std(), support.mean(), support.std()),
                    *(100 * np.nanstd(found.scores.zsct, ddof=1), selection),
                ])  # fmt: skip
        print(*cell, flush=True)
    names = ("schedule", *CELL, "listener", "episodes", "query", "query_sd", "support", "support_sd", "episode_sd")
    return pd.DataFrame(rows, columns=[*names, "selection"]).assign(versions=describe_versions())


def printed(tables: Sequence[str] = TABLES) -> pd.DataFrame:
    """Return the published accuracies in the query, in percent: a row per agent and cell."""
    found = pd.concat([published(name).assign(source=name) for name in tables], ignore_index=True)
    found = found[found["measure"].eq("zsct")].fillna({"values": "2-5"})
    return found.astype({"shots": int, "samples": int, "n": float}).rename(columns=NAMES).reset_index(drop=True)


def floors(scores: pd.DataFrame, schedule: str = "near32") -> pd.DataFrame:
    """Return the best listener without messages of each game, with mean (`icy`) and error (`icy_error`).

    With the schedule of the authors' program, the games are the published cells, and the best is selected in other
    episodes; with other schedules, it is selected in the same. The standard error of its mean is the error over seeds,
    or over episodes if that is larger.
    """
    own = scores[scores["schedule"].eq(schedule) & scores["listener"].isin(DEAF)]
    own = own[own["selection"].notna()] if schedule == "near32" else own.assign(selection=own["query"])
    best = own.loc[own.groupby(CELL, sort=False)["selection"].idxmax()]
    by_seed, by_episode = best["query_sd"] / SEEDS**0.5, best["episode_sd"] / (SEEDS * best["episodes"]) ** 0.5
    found = best.assign(icy=best["query"], icy_error=np.maximum(by_seed, by_episode), seeds=SEEDS)
    return found[[*CELL, "listener", "icy", "icy_error", "seeds", "episode_sd"]].reset_index(drop=True)


# -- verdicts ----------------------------------------------------------------------------------------------------------


def judge(cells: pd.DataFrame) -> pd.DataFrame:
    """Compare published accuracies with accuracies without messages; see "Questions and rules" of the page.

    Args:
        cells: cells of one question, with the columns that `with_distance` needs.

    Returns:
        The cells of `with_distance` with `gap`, the published minus the other accuracy; `p_holm` and `p_within`, the
        corrected p-values of a difference and of a difference below the margin; and `verdict`, one of VERDICTS.
    """
    cells = with_distance(cells)
    gap, error, freedom = (
        one.to_numpy(float) for one in (cells["published"] - cells["icy"], cells["combined_error"], cells["freedom"])
    )
    few, level = (cells["seeds"] < LEAST_SEEDS).to_numpy(bool), 1 - CONFIDENCE
    differ, near = (
        np.array(holm(np.where(few, np.nan, p).tolist()), float)
        for p in (cells["p"].to_numpy(float), tost(gap, error, freedom, MARGIN))
    )
    cases = [few, (differ < level) & (gap < 0), differ < level, near < level]
    places = np.select(cases, range(len(cases)), len(cases))
    verdicts = [(UNTESTED, BELOW, ABOVE, WITHIN, UNKNOWN)[i] for i in places]
    return cells.assign(gap=gap, p_holm=differ, p_within=near, verdict=verdicts)


def trained(long: pd.DataFrame, model: str, best: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of a model's agents by cell and length: mean (`icy`) and error over seeds, in percent.

    All agents of a cell were evaluated in the same episodes, so the error of this evaluation is added.

    Args:
        long: the agents.
        model: name of the model.
        best: `floors`, with the spread over episodes of a score in each cell.
    """
    own = long[long["model"].eq(model)].assign(value=100 * long["value"])
    found = own.groupby([*CELL, LENGTH])["value"].agg(["mean", "sem", "count"]).reset_index()
    found = found.merge(best[[*CELL, "episode_sd"]])
    error = np.hypot(found["sem"], found["episode_sd"] / EPISODES[model] ** 0.5)
    return found.assign(icy_error=error).rename(columns={"mean": "icy", "count": "seeds"})


def twins(long: pd.DataFrame) -> pd.DataFrame:
    """Return the R2D2 agents in percent: a row per seed that has both, with the columns of HEARS and R2D2."""
    table = long.pivot_table(index="seed", columns="model", values="value")
    return 100 * table.reindex(columns=[HEARS, R2D2]).dropna()


def help_of_messages(pairs: pd.DataFrame) -> tuple[Paired, float, str]:
    """Return the comparison of hearing and deaf twins, the p-value of TOST, and the verdict."""
    none = [False] * len(pairs)
    found = paired(pairs[HEARS].to_numpy(), pairs[R2D2].to_numpy(), none, none, log=False)
    within = tost(found.effect, found.spread / len(pairs) ** 0.5, len(pairs) - 1, MARGIN)
    level = 1 - CONFIDENCE
    other = f"messages {'help' if found.effect > 0 else 'harm'}" if found.p < level else UNKNOWN
    if found.pairs < LEAST_SEEDS:
        return found, within, UNTESTED
    return found, within, "no difference within 5 points" if within < level else other


# -- the page ----------------------------------------------------------------------------------------------------------


def schedules(scores: pd.DataFrame) -> dict[str, str]:
    """Return a table per schedule: the accuracy of each listener."""
    tables = {}
    for schedule in SCHEDULES:
        of = scores[scores["schedule"] == schedule]
        wide = of.assign(text=[f"{q:.1f} ± {s:.1f}" for q, s in zip(of["query"], of["query_sd"], strict=True)])
        table = wide.pivot(index=CELL, columns="listener", values="text")[[*DEAF, *HEARING]]
        table = table.reindex(pd.MultiIndex.from_tuples(list(cells()), names=CELL))
        rows = [[*key, *row] for key, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
        tables[schedule] = markdown_table(["values", "S", "O", *DEAF, *HEARING], rows, range(1, 10))
    return tables


def interval(mean: float, error: float, freedom: float) -> str:
    """Return a mean with its 95 % interval, as text; only the mean if fewer runs than LEAST_SEEDS have it."""
    half = student(freedom) * error
    return print_estimate((mean, mean - half, mean + half), 1) if freedom + 1 >= LEAST_SEEDS else f"{mean:.1f}"


def own_interval(cell: Row) -> str:
    """Return the accuracy without messages of a cell with its interval, as text."""
    return interval(cell["icy"], cell["icy_error"], cell["seeds"] - 1)


def their_interval(cell: Row) -> str:
    """Return the published accuracy of a cell with its interval, as text."""
    return interval(cell["published"], cell["published_error"], cell["n"] - 1)


def comparison(cells: pd.DataFrame, *about: str) -> str:
    """Return a table of judged cells. `about` are columns that describe the listener without messages."""
    rows = []
    for cell in cells.to_dict("records"):
        tested = cell["verdict"] != UNTESTED
        gap = interval(cell["gap"], cell["combined_error"], cell["freedom"] if tested else 0)
        rows.append(
            [
                *(cell["source"], cell["agent"], cell["values"], f"{cell['shots']}", f"{cell['samples']}"),
                their_interval(cell),
                *(f"{cell[name]:,}" if name == LENGTH else f"{cell[name]}" for name in about),
                *(own_interval(cell), gap, p_text(cell["p_holm"]) if tested else "-", cell["verdict"]),
            ]
        )
    heads = ["table", "agent", "values", "S", "O", "published", *about, "without messages", "difference", "p (Holm)"]
    return markdown_table([*heads, "verdict"], rows, range(3, len(heads)))


def counts(cells: pd.DataFrame) -> str:
    """Return how many cells have each verdict, as text."""
    found = cells["verdict"].value_counts()
    return listed([f"{found[name]} {name}" for name in VERDICTS if name in found])


def names(cells: pd.DataFrame) -> str:
    """Return agents and games of cells, as text."""
    return listed([f"{c['agent']} with S = {c['shots']} and O = {c['samples']}" for c in cells.to_dict("records")])


def span(values: pd.Series[float]) -> str:
    """Return the range of numbers, as text."""
    return f"{values.min():.1f} to {values.max():.1f}"


def shown(*judged: pd.DataFrame) -> set[tuple[object, ...]]:
    """Return the agents and games of which a comparison shows that the published accuracy does not need messages."""
    found = pd.concat(judged)
    return set(found.loc[found["verdict"].isin([BELOW, WITHIN]), KEY].itertuples(index=False, name=None))


def page(scores: pd.DataFrame, long: pd.DataFrame) -> str:
    """Return the text of the page."""
    best = floors(scores)
    fixed = judge(printed().merge(best, on=CELL, how="left"))
    theirs, own = printed(LISTENERS), trained(long, TAUGHT, best)
    longer = own[LENGTH] >= LONGER
    learned, later = (judge(theirs.merge(part, on=CELL)) for part in (own[~longer], own[longer]))
    reach = judge(theirs.merge(trained(long, R2D2, best), on=CELL))
    described = judge(theirs.merge(floors(scores, "papers"), on=CELL))
    drawn = best.set_index(CELL).loc[[DRAWN]].iloc[0]
    return fill_template(
        PAGE,
        versions=scores["versions"].iloc[0],
        records=describe_packs(RECORDS.pack),
        seeds=SEEDS,
        episodes=MANY,
        usual=scores.loc[scores["selection"].isna(), "episodes"].max(),
        fewer=scores["episodes"].min(),
        short=in_short(fixed, learned, later, described, twins(long)),
        described=comparison(described, "listener"),
        missing=missing(long),
        floors=comparison(fixed, "listener"),
        floor_counts=counts(fixed),
        drawn=f"`{drawn['listener']}` has {interval(drawn['icy'], drawn['icy_error'], SEEDS - 1)} %",
        learned=comparison(learned, LENGTH, "seeds"),
        learned_counts=counts(learned),
        later=comparison(later, LENGTH, "seeds"),
        later_counts=counts(later),
        r2d2=of_r2d2(twins(long), reach),
        **schedules(scores),
    )


def in_short(
    fixed: pd.DataFrame, learned: pd.DataFrame, later: pd.DataFrame, described: pd.DataFrame, pairs: pd.DataFrame
) -> str:
    """Return the finding, as paragraphs."""
    listener, cores = (fixed[fixed["source"].eq(name)] for name in LISTENERS)
    both = pd.concat([listener, cores])
    done = shown(both, learned, later)
    rest = both[[key not in done for key in both[KEY].itertuples(index=False, name=None)]]
    verdict = help_of_messages(pairs)[2]
    paragraphs = [
        f"With the schedule of the authors' program, the best of {len(DEAF)} fixed listeners that ignore all messages "
        f"answers {span(listener['icy'])} % of the queries correctly in the {len(listener)} cells of `{LISTENERS[0]}` "
        f"(2 to 5 values), and {cores['icy'].iloc[0]:.1f} % in the cell of `{LISTENERS[1]}` (2 or 3 values). Chance is "
        f"50 %. Compared with this floor, the verdicts on the {len(both)} published accuracies of listeners are "
        f"{counts(both)}. On the {len(fixed) - len(both)} accuracies of pairs that both learn and of text models, they "
        f"are {counts(fixed[~fixed['source'].isin(LISTENERS)])}.",
        *(
            f"With S = {cell['shots']} and O = {cell['samples']}, {cell['seeds']} LSTMs that learned without messages, "
            f"from a tenth of the papers' observations, have {own_interval(cell)} %, and the published LSTMs "
            f"{their_interval(cell)} %: the verdict on the published accuracy is *{cell['verdict']}*."
            for cell in later[later["verdict"].ne(UNTESTED)].to_dict("records")
        ),
        f"For the papers' agent (R2D2) with S = 4 and O = 1 after 200,000 observations, the verdict on messages is "
        f"*{verdict}* ({counted(len(pairs), 'pair')} of agents).",
        f"Together, {len(both) - len(rest)} of the {len(both)} published accuracies of listeners are shown not to need "
        f"messages" + (f"; this is unknown for {names(rest)}." if len(rest) else "."),
        f"With the schedule that the papers describe, the floor is {span(described['icy'])} %, and the "
        f"verdicts are {counts(described)}. So the finding holds for the games of the authors' program. "
        "That the published agents played these games is an inference, because the papers describe others.",
    ]
    return "\n\n".join(paragraphs)


def reached(cell: Row) -> str:
    """Return the verdict on a cell whose deaf agents had few observations: if they did not reach it, it is unknown."""
    return UNKNOWN if cell["verdict"] == ABOVE else str(cell["verdict"])


def of_r2d2(pairs: pd.DataFrame, reach: pd.DataFrame) -> str:
    """Return the answer to question 3: the twins by seed, and their difference."""
    found, within, verdict = help_of_messages(pairs)
    rows = [[str(seed), f"{row[HEARS]:.1f}", f"{row[R2D2]:.1f}"] for seed, row in pairs.iterrows()]
    (cell,) = reach.to_dict("records")
    text = (
        f"With messages minus without: {print_estimate((found.effect, *found.interval), 1)} points (mean and 95 % "
        f"interval over {found.pairs} pairs of agents; t-test p = {p_text(found.p)}, TOST p = {p_text(within)}). "
        f"**Verdict: {verdict}.** The deaf agents have {own_interval(cell)} %, and the published accuracy is "
        f"{their_interval(cell)} % (verdict: {reached(cell)})."
    )
    return markdown_table(["seed", "with messages, %", "deaf, %"], rows, range(3)) + "\n\n" + text


def missing(long: pd.DataFrame) -> str:
    """Return the agents of deaf.toml that have not been trained, as a sentence."""
    have = long.groupby(["model", *CELL, LENGTH])["seed"].nunique()
    few = []
    for row in make_sweep(sweep_request(**read_sweep(FILE), out=str(RECORDS.runs))).rows:
        config = row.job.config(row.job.replicates[0])
        key = *(config[name] for name in ("model", *CELL)), int(config["options"]["observations"])
        if (done := int(have.get(key, 0))) < SEEDS:
            model, values, shots, samples, length = key
            few.append(f"`{model}` at {values} values, S = {shots}, O = {samples}, {length:,} observations: {done}")
    return f"Seeds so far, of {SEEDS}: {'; '.join(few)}." if few else f"All agents of deaf.toml have {SEEDS} seeds."


def plot(scores: pd.DataFrame, long: pd.DataFrame) -> Any:
    """Draw the best listener that ignores all messages by schedule, deaf agents, and the published accuracies."""
    theirs, agents = printed(LISTENERS), trained(long, TAUGHT, floors(scores))
    agents = agents[agents["seeds"] >= LEAST_SEEDS].groupby(CELL).tail(1)  # the longest training
    figure, axes = panels(["2 to 3 values", "2 to 5 values"], (7.5, 2.8), across=2, sharey=True)
    for ax, values in zip(axes, ("2-3", "2-5"), strict=True):
        best = scores[(scores["values"] == values) & scores["listener"].isin(DEAF)]
        for schedule, group in best.groupby("schedule", sort=False):
            top = group.groupby(["samples", "shots"])["query"].max()
            ax.plot(range(len(top)), top.to_numpy(), marker="o", label=f"never listens, {schedule}")
        places = {key: at for at, key in enumerate(top.index)}
        marks = {"deaf LSTM, trained": ("D", agents, "icy", "icy_error", "seeds")}
        marks |= {f"{agent}, published": ("sv^"[i], part, "published", "published_error", "n")
                  for i, (agent, part) in enumerate(theirs.groupby("agent", sort=False))}  # fmt: skip
        for i, (label, (mark, cells, mean, error, count)) in enumerate(marks.items()):
            own = cells[cells["values"].eq(values)]
            at = [places[key] + 0.12 * i for key in zip(own["samples"], own["shots"], strict=True)]
            half = student((own[count] - 1).to_numpy(float)) * own[error]
            ax.errorbar(at, own[mean], half, fmt=mark, color="black" if i else "C3", markersize=3.5, label=label,
                        linewidth=0.8, capsize=2)  # fmt: skip
        ax.set_xticks(range(len(top)), [f"{s}\n{o}" for o, s in top.index])
        ax.set_ylim(40, 102)
        ax.set_title(f"{values.replace('-', ' to ')} values")
        tidy(ax, "y")
        ax.set_xlabel("shots S, above samples O")
    axes[0].set_ylabel("accuracy in the query, %")
    legend(figure, axes, True, axes[0].get_legend_handles_labels()[0])
    return figure


def agents(train: bool, workers: int | None) -> pd.DataFrame:
    """Train missing agents of deaf.toml if asked, update the pack, and return all agents in long form."""
    if train:
        RECORDS.sweep(FILE, workers=workers)
    RECORDS.update_pack()
    long = long_of(RECORDS.sweep(FILE, rerun="never").records)
    own = option_columns(long)[["values", "observations"]].rename(columns={"observations": LENGTH})
    return long.assign(**own).astype({"shots": int, "samples": int, LENGTH: int})


def main() -> None:
    """Train and measure, and write the page, the table and the figure."""
    options = read_options(
        __doc__,
        episodes=(100, "episodes per seed, except in the published cells"),
        plot=(False, "only draw and write the page again, from the saved table"),
        train=(False, "train missing agents"),
        workers=(int, "processes at once"),
    )
    table = PAGE.with_suffix(".csv")
    if not options.plot:
        measure(options.episodes).round(3).to_csv(table, index=False)
    scores, long = pd.read_csv(table), agents(options.train, options.workers)
    PAGE.write_text(page(scores, long))
    plot(scores, long).savefig(PAGE.with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
