"""Comparison of people with networks at equal training accuracy: `python -m results.people [--train]`.

Reads the games in results/study_report/games.parquet, the published counts of Icy22, and the held-out accuracies in
results/findings/records.parquet and results/people/records.parquet. With --train, trains the missing rows of
results/people/people.toml. Without it, packs them, and writes results/people/people.md and people.png.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import scipy

from icy.analysis import style
from icy.analysis.people import PEOPLE, exact_interval, published_draws, published_people
from icy.core.text import listed, markdown_table
from icy.study.rows import rows_of_long
from results.estimates import Values, percentile_interval, print_estimate, student_interval
from results.pages import RecordFolder, describe_packs, fill_template, read_options

HERE = Path(__file__).parent
PAGE, FIGURE, SWEEP = HERE / "people.md", HERE / "people.png", HERE / "people.toml"
RECORDS, HELD_OUT = RecordFolder(HERE), RecordFolder(HERE.parent / "findings")
GAMES = RecordFolder(HERE.parent / "study_report", "games.parquet")
GRAMMARS = ("concat", "perm", "proj", "rot", "shufdet")  # grammars that people learned
DATASETS = ("synth", "eng")
LARGE_MODELS, LARGE_SEEDS = ("sender/FC2L", "sender/RNNZero:RNN"), 3  # models and seeds of the sweep
RESAMPLES = 4000
ALPHA = 0.05


# -- the game ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Agent:
    """Accuracies of an agent on the held-out meanings of one dataset.

    Attributes:
        name: name of the agent.
        kind: "people", "simulated" or "network".
        means: mean per grammar.
        draws: resampled means: [resample, grammar].
        instances: number of instances per grammar; 0 for people.
    """

    name: str
    kind: str
    means: Values
    draws: Values
    instances: int = 0

    def cell(self, place: int) -> tuple[float, float, float]:
        """Return the accuracy on the grammar with this index, and the ends of its interval."""
        mean = float(self.means[place])
        if np.ptp(self.draws[:, place]) == 0:
            exact = exact_interval(round(mean * self.instances), self.instances)
            return mean, exact.low, exact.high
        return mean, *percentile_interval(self.draws[:, place])


def people(dataset: str) -> Agent:
    """Return the published people, with draws from beta distributions of the printed mean and standard error."""
    rows = published_people()
    own = rows[(rows["dataset"] == dataset) & (rows["metric"] == "exact")].set_index("grammar").loc[list(GRAMMARS)]
    draws = published_draws(own, RESAMPLES, np.random.default_rng(0))
    return Agent(PEOPLE, "people", own["value"].to_numpy(float), draws)


def agents(rows: pd.DataFrame, dataset: str) -> list[Agent]:
    """Return people, and the simulated players and networks with perfect accuracy on items that they were shown."""
    found, rng = [people(dataset)], np.random.default_rng(1)
    own = rows[(rows["dataset"] == dataset) & rows["grammar"].isin(GRAMMARS) & (rows["metric"] == "exact")]
    for kind, protocol, name in (("simulated", "played", "simulated"), ("model", "converged", "network")):
        part = own[(own["agent_kind"] == kind) & (own["protocol"] == protocol)]
        for agent, games in part.groupby("agent", sort=False):
            if (games.loc[games["split"] == "trained", "value"] < 1).any():
                continue
            wide = games[games["split"] == "held-out"].pivot_table(index="instance", columns="grammar", values="value")
            values = wide[list(GRAMMARS)].to_numpy(float)
            chosen = rng.integers(len(values), size=(RESAMPLES, len(values)))
            found.append(Agent(str(agent).split()[0], name, values.mean(0), values[chosen].mean(1), len(values)))
    return found


def tau(first: Values, second: Values) -> float:
    """Return Kendall's tau-b; NaN if one side is constant."""
    return float(scipy.stats.kendalltau(first, second)[0])


def taus(first: Values, second: Values) -> Values:
    """Return Kendall's tau-b of each row: [resample]."""
    pairs = np.array(list(itertools.combinations(range(first.shape[-1]), 2))).T
    a, b = (np.sign(side[..., pairs[0]] - side[..., pairs[1]]) for side in (first, second))
    with np.errstate(invalid="ignore"):
        found: Values = (a * b).sum(-1) / np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
    return found


def share_as_high(agent: Values, of_people: Values) -> float:
    """Return the permutation p-value of tau: the share of orders of the agent's accuracies with at least this tau."""
    orders = np.array(list(itertools.permutations(agent)))
    return float((taus(orders, np.broadcast_to(of_people, orders.shape)) >= tau(agent, of_people) - 1e-9).mean())


def order_row(dataset: str, agent: Agent, reference: Agent) -> list[str]:
    """Return the row of an agent in the table of orders and distances."""
    distance = np.abs(agent.means - reference.means).mean()
    far = percentile_interval(np.abs(agent.draws - reference.draws).mean(1))
    if np.ptp(agent.means) == 0:
        return [dataset, agent.name, agent.kind, "all equal", "-", print_estimate((distance, *far))]
    order = (tau(agent.means, reference.means), *percentile_interval(taus(agent.draws, reference.draws)))
    p = share_as_high(agent.means, reference.means)
    return [dataset, agent.name, agent.kind, print_estimate(order), f"{p:.2f}", print_estimate((distance, *far))]


def order_text(by_dataset: Mapping[str, list[Agent]]) -> str:
    """Return a paragraph about the orders of networks that differ between grammars."""
    lines = []
    for dataset, (reference, *others) in by_dataset.items():
        networks = [one for one in others if one.kind == "network" and np.ptp(one.means) > 0]
        values = [tau(one.means, reference.means) for one in networks]
        above = [one.name for one in networks if percentile_interval(taus(one.draws, reference.draws))[0] > 0]
        far = [float(np.abs(one.means - reference.means).mean()) for one in networks]
        near = networks[int(np.argmin(far))]
        place = [GRAMMARS.index(name) for name in ("perm", "shufdet")]
        gaps = {one.name: one.draws[:, place[0]] - one.draws[:, place[1]] for one in networks}
        more, fewer = (
            [name for name, gap in gaps.items() if percentile_interval(sign * gap)[0] > 0] for sign in (1, -1)
        )
        silent = [float(reference.means.mean()) for one in others if not one.means.any()]
        gap = percentile_interval(reference.draws[:, place[1]] - reference.draws[:, place[0]])
        rare = [one.name for one in networks if share_as_high(one.means, reference.means) < ALPHA]
        lines.append(
            f"`{dataset}`: tau of the {len(networks)} networks that answer anything lies between {min(values):.2f} and "
            f"{max(values):.2f}. Its interval is above 0 for {listed(above) or 'none'}, and p is below 0.05 for "
            f"{listed(rare) or 'none'}, without correction. {near.name} is nearest to people, at a distance of "
            f"{min(far):.2f}{f'; an agent that answers nothing right is at {silent[0]:.2f}' if silent else ''}. "
            f"Accuracy on `perm` is above that on `shufdet` for {listed(more) or 'no network'}, and below it for "
            f"{listed(fewer) or 'no network'} (by the interval of the difference). People's accuracy on `shufdet` "
            f"minus that on `perm` has an interval of {gap[0]:+.2f} to {gap[1]:+.2f}."
        )
    return "\n\n".join(lines)


# -- held-out meanings of larger spaces --------------------------------------------------------------------------------


def accuracies(long: pd.DataFrame) -> pd.DataFrame:
    """Return mean accuracies over seeds, for models and grammars of which all seeds reached the target."""
    good = long[(long["protocol"] == "generalise") & long["grammar"].isin(GRAMMARS)]
    of = good.groupby(["role", "model", "grammar"])
    whole = of["seed"].transform("nunique").eq(good["seed"].nunique())
    reached = good["reason"].eq("target").groupby([good["role"], good["model"], good["grammar"]]).transform("all")
    return good[whole & reached].groupby(["role", "model", "grammar"])["accuracy"].mean().unstack()


def generalise_rows(table: pd.DataFrame, references: Mapping[str, Agent]) -> list[list[str]]:
    """Return a row per side: accuracies over models, and the order compared with people's."""
    rows, rng = [], np.random.default_rng(2)
    for side, own in table.groupby("role"):
        named = [name for name in GRAMMARS if own[name].notna().sum() >= 3]
        cells = [_over(own[name].dropna().to_numpy(float)) if name in named else "-" for name in GRAMMARS]
        whole = own[named].dropna().to_numpy(float)
        orders = []
        for reference in references.values():
            of_people = reference.means[[GRAMMARS.index(name) for name in named]]
            each = taus(whole, np.broadcast_to(of_people, whole.shape))
            draws = each[rng.integers(len(each), size=(RESAMPLES, len(each)))].mean(1)
            orders.append(print_estimate((float(each.mean()), *percentile_interval(draws))))
        rows.append([f"{side}s", f"{len(whole)} of {len(own)}", *cells, *orders])
    return rows


def _over(values: Values) -> str:
    return f"{values.mean():.2f}" if len(values) < 2 else print_estimate(student_interval(values))


def missing_text(long: pd.DataFrame, table: pd.DataFrame) -> str:
    """Return a sentence per side on the cells without an accuracy at equal training accuracy."""
    models = long[long["protocol"] == "generalise"].groupby("role")["model"].nunique()
    lines = []
    for side, own in table.groupby("role"):
        fewer = [f"{models[side] - own[name].notna().sum()} on `{name}`" for name in GRAMMARS
                 if own[name].notna().sum() < models[side]]  # fmt: skip
        lines.append(f"Left out of {models[side]} {side}s, because a seed is missing or did not reach the target: "
                     f"{listed(fewer) or 'none'}.")  # fmt: skip
    return " ".join(lines)


def large_rows(long: pd.DataFrame) -> list[list[str]]:
    """Return a row per model of the papers' space: accuracy on held-out and on trained meanings."""
    rows = []
    for model, own in long.groupby("model", sort=False):
        for column, label in (("accuracy", "held out"), ("train_accuracy", "trained")):
            cells = []
            for name in GRAMMARS:
                part = own[own["grammar"] == name]
                reached = len(part) and part["reason"].eq("target").all()
                cells.append(_over(part[column].to_numpy(float)) if reached else "-")
            rows.append([str(model), label, *cells])
    return rows


def large_text(long: pd.DataFrame) -> str:
    """Return a paragraph about the difference between accuracy on trained and on held-out meanings."""
    own = long[long["reason"].eq("target") & long["grammar"].isin(GRAMMARS)]
    gaps = own.assign(gap=own["train_accuracy"] - own["accuracy"]).groupby("grammar")["gap"].agg(["mean", "count"])
    each = [f"{gaps.loc[name, 'mean']:+.3f} on `{name}`" for name in GRAMMARS if name in gaps.index]
    return (
        f"Trained minus held-out accuracy, a mean over {len(own)} runs that reached 80 %: {listed(each)}. With 80,000 "
        "trained meanings, a network at this accuracy has not learned meanings by heart, so that held-out accuracy at "
        f"equal training accuracy hardly differs between grammars here. {_missing(long)}"
    )


def _missing(long: pd.DataFrame) -> str:
    expected = itertools.product(LARGE_MODELS, GRAMMARS)
    reached = long[long["reason"].eq("target")].groupby(["model", "grammar"])["seed"].nunique()
    cells = [f"{model} on `{name}`" for model, name in expected if reached.get((model, name), 0) < LARGE_SEEDS]
    return f"Not measured yet: {listed(cells)}." if cells else ""


# -- page --------------------------------------------------------------------------------------------------------------


def draw(by_dataset: Mapping[str, list[Agent]]) -> None:
    """Draw accuracies by grammar: a panel per dataset, a line of marks per agent."""
    figure, axes = style.panels(list(by_dataset), (7.0, 4.4), 2, sharey=True)
    names = [agent.name for agent in next(iter(by_dataset.values()))]
    for ax, (dataset, own) in zip(axes, by_dataset.items(), strict=True):
        for at, name in enumerate(names):
            agent = next(one for one in own if one.name == name)
            for place, (grammar, look) in enumerate(style.grammar_looks(GRAMMARS).items()):
                value, low, high = agent.cell(place)
                y = at + (place - 2) * 0.15
                ax.plot([low, high], [y, y], color=look.color, linewidth=1)
                ax.plot([value], [y], look.marker, color=look.color, markersize=3.5, label=grammar if not at else None)
        for at in range(1, len(names)):
            ax.axhline(at - 0.5, color="#dddddd", linewidth=0.6)
        ax.set(xlim=(-0.03, 1.03), ylim=(len(names) - 0.5, -0.5), xlabel="accuracy on held-out meanings")
        ax.set_yticks(range(len(names)), names)
        style.head(ax, dataset, 3)
        style.tidy(ax, "x")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=style.SMALL)
    figure.savefig(FIGURE, dpi=200, facecolor="white")


def page(rows: pd.DataFrame, small: pd.DataFrame, large: pd.DataFrame) -> str:
    """Return the text of the page, and draw its figure."""
    found = {dataset: agents(rows, dataset) for dataset in DATASETS}
    draw(found)
    references = {dataset: own[0] for dataset, own in found.items()}
    cells = [
        [dataset, agent.name, agent.kind, *(print_estimate(agent.cell(place)) for place in range(len(GRAMMARS)))]
        for dataset, own in found.items()
        for agent in own
    ]
    orders = [order_row(dataset, one, own[0]) for dataset, own in found.items() for one in own[1:]]
    possible = np.array([tau(np.arange(5.0), np.array(order)) for order in itertools.permutations(range(5))])
    table = accuracies(small)
    return fill_template(
        PAGE,
        games=describe_packs(GAMES.pack),
        held_out=describe_packs(HELD_OUT.pack),
        large=describe_packs(RECORDS.pack),
        figure=FIGURE.name,
        instances=int(rows.loc[rows["protocol"] == "converged", "instance"].nunique()),
        accuracies=markdown_table(["dataset", "agent", "kind", *GRAMMARS], cells),
        perfect=int((possible > 1 - 1e-9).sum()),
        high=int((possible > 0.6 - 1e-9).sum()),
        orders=markdown_table(["dataset", "agent", "kind", "order (tau)", "p", "distance"], orders),
        said=order_text(found),
        generalise=markdown_table(
            ["models", "with all", *GRAMMARS, *(f"tau with {name}" for name in DATASETS)],
            generalise_rows(table, references),
        ),
        left_out=missing_text(small, table),
        large_table=markdown_table(["model", "meanings", *GRAMMARS], large_rows(large)),
        large_said=large_text(large),
    )


def main() -> None:
    if read_options(__doc__, train=(False, "train missing rows at 5x10")).train:
        RECORDS.sweep(SWEEP, workers=1)
        return
    RECORDS.update_pack()
    rows = rows_of_long(GAMES.long_table())
    PAGE.write_text(page(rows, HELD_OUT.long_table(), RECORDS.long_table()), encoding="utf-8")


if __name__ == "__main__":
    main()
