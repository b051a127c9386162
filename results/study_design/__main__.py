"""How the order of cards limits a study: `python -m results.study_design`.

A composer knows that codes of concat are a word for the color and a word for the shape, remembers every code, and
makes no mistakes. If it is wrong on a held-out item of concat, no player could have known the code. Writes
study-design.md, study-design.csv and study-design.png.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from icy.analysis import style
from icy.core.text import markdown_table
from icy.study.game import StudyGame, StudyGameSettings, Trial, instance_of
from icy.study.game.game import card_order
from icy.study.players.player import play
from icy.study.players.simulated import Composer
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).with_name("study-design.md")
DATASETS, PRESETS = ("synth", "eng"), ("published", "clean")
SEEDS = 10_000  # number of card orders of the preset clean to check
TESTS = (29, 39, 49)


@dataclass(frozen=True)
class Case:
    """Settings of games and player.

    Attributes:
        dataset: dataset of the games.
        preset: preset of the games.
        adds: whether the player adds all cards at the start.
        corrected: whether the game shows the right code after an error in a held-out item.
    """

    dataset: str
    preset: str
    adds: bool
    corrected: bool

    @property
    def settings(self) -> StudyGameSettings:
        """The settings of the games."""
        feedback = "full" if self.corrected else "verdict"
        return StudyGameSettings.of(self.preset, dataset=self.dataset, held_out_feedback=feedback)


def held_out_items(case: Case, games: int) -> Iterator[tuple[Trial, ...]]:
    """Yield the held-out items of each game of a composer."""
    settings = case.settings
    for number in range(games):
        played = play(StudyGame(settings, instance_of(settings, number), number), Composer(case.adds), number)
        yield tuple(trial for trial in played.state.trials if trial.held_out is not None)


def measure_cases(games: int) -> pd.DataFrame:
    """Return one row per case and held-out item: number of other cards with its color and shape, and accuracy."""
    rows = []
    for dataset, preset, adds, corrected in product(DATASETS, PRESETS, (False, True), (True, False)):
        case = Case(dataset, preset, adds, corrected)
        of_games = list(held_out_items(case, games))
        for place, trials in enumerate(zip(*of_games, strict=True)):
            names = {" ".join(case.settings.content.named(trial.meaning)) for trial in trials}
            colours, shapes = zip(*(trial.among_cards for trial in trials), strict=True)
            rows.append(
                {
                    "dataset": dataset,
                    "preset": preset,
                    "cards": "all at once" if adds else "as they come",
                    "errors": "corrected" if corrected else "not corrected",
                    "test": TESTS[place],
                    "item": names.pop() if len(names) == 1 else "any",
                    "colour": float(np.mean(colours)),
                    "shape": float(np.mean(shapes)),
                    "right": float(np.mean([trial.correct for trial in trials])),
                }
            )
    return pd.DataFrame(rows)


def count_unseen(dataset: str) -> tuple[int, int]:
    """Count the held-out items of clean games with a color or shape in fewer than two other cards, and all items."""
    settings = StudyGameSettings(dataset=dataset)
    values, missing = settings.content.values, 0
    cards = [settings.start + test // settings.interval for test in settings.held_out_at]
    for seed in range(SEEDS):
        instance = instance_of(settings, seed)
        order = card_order(settings, instance, seed)
        for meaning, count in zip(instance.held_out, cards, strict=True):
            available = order[: min(count, settings.cap)]
            colour, shape = (
                sum(of(m) == of(meaning) for m in available) for of in (lambda m: m // values, lambda m: m % values)
            )
            missing += min(colour, shape) < 2
    return missing, SEEDS * len(cards)


def figure_rows(found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the figure: games in which cards come one by one."""
    rows = found[found["cards"] == "as they come"]
    corrected = rows[rows["errors"] == "corrected"].reset_index(drop=True)
    uncorrected = rows[rows["errors"] == "not corrected"].reset_index(drop=True)
    records = corrected.to_dict("records")
    items = [f"{row['test']}" + ("" if row["item"] == "any" else f": {row['item']}") for row in records]
    return corrected.assign(item=items, told=corrected["right"], untold=uncorrected["right"])


@style.own_settings()
def draw_design(design: pd.DataFrame) -> Figure:
    """Draw how much earlier cards reveal about each held-out item: a panel per dataset and preset, bars per item.

    The two bars of an item show how many earlier cards have its color, and how many have its shape. The marks show the
    accuracy of a perfect composer, with and without correction of errors in earlier held-out items.

    Args:
        design: one row per dataset, preset and held-out item: `item` (its name or number), `colour`, `shape`, `told`
            (errors are corrected) and `untold` (they are not).
    """
    keys = list(dict.fromkeys(zip(design["dataset"], design["preset"], strict=True)))
    names = [f"{dataset}, {preset}" for dataset, preset in keys]
    figure, axes = style.panels(names, (style.WIDTH, 2.4), len(names), sharey=True)
    seconds = [ax.twinx() for ax in axes]
    for ax, second, (dataset, preset) in zip(axes, seconds, keys, strict=True):
        part = design[(design["dataset"] == dataset) & (design["preset"] == preset)]
        _draw_items(ax, second, part)
        style.head(ax, f"{dataset}, {preset}", style.WIDTH / len(names))
    for second in seconds[:-1]:
        second.tick_params(labelright=False)
    seconds[-1].set_ylabel("composer right, %", fontsize=style.MEDIUM)
    axes[0].set_ylabel("other cards that showed it")
    bars = [Patch(color=style.COLORS[1], label="its color"), Patch(color=style.COLORS[0], label="its shape")]
    marks = {"composer, errors corrected": True, "composer, not corrected": False}
    looks = {name: style.Look("black", marker="D", hollow=hollow) for name, hollow in marks.items()}
    handles = [*bars, *(look.handle(name, 4.5, line=False) for name, look in looks.items())]
    style.legend(figure, axes, True, handles, loc="outside lower center", ncols=4)
    style.entitle(figure, axes, True, None, "Held-out items that the order of cards makes answerable")
    return figure


def _draw_items(ax: Axes, second: Axes, part: pd.DataFrame) -> None:
    places = np.arange(len(part))
    for offset, name, color in ((-0.19, "colour", style.COLORS[1]), (0.19, "shape", style.COLORS[0])):
        ax.bar(places + offset, part[name], 0.36, color=color)
    for name, face in (("told", "white"), ("untold", "black")):
        second.plot(places, 100 * part[name], "D", color="black", markerfacecolor=face, markersize=4.5, clip_on=False)
    ax.set_xticks(places, [text.replace(" ", "\n") for text in part["item"]])
    ax.set(ylim=(0, 3.2), yticks=range(4))
    second.set(ylim=(0, 160), yticks=[0, 50, 100])
    style.tidy(ax, "y")
    second.spines[["top"]].set_visible(False)
    second.tick_params(labelsize=style.SMALL, length=2.5, pad=2)


def page(found: pd.DataFrame, games: int) -> str:
    """Return the text of the page."""
    means = found.groupby(["dataset", "preset", "cards", "errors"], sort=False)["right"].mean().unstack()
    lines = [[*key, *(f"{100 * row[name]:.0f}" for name in means.columns)] for key, row in means.iterrows()]
    items = [
        [*(str(row[name]) for name in ("dataset", "preset", "cards", "test", "item")),
         f"{row['colour']:g}", f"{row['shape']:g}"]
        for row in found[found["errors"] == "corrected"].to_dict("records")
    ]  # fmt: skip
    missing = {name: count_unseen(name) for name in DATASETS}
    counts = "; ".join(f"{name}: {few} of {count:,}" for name, (few, count) in missing.items())
    return fill_template(
        PAGE,
        games=games,
        versions=describe_versions(),
        means=markdown_table(["dataset", "preset", "cards", *means.columns], lines, numbers=[3, 4]),
        counts=counts,
        seeds=f"{SEEDS:,}",
        items=markdown_table(
            ["dataset", "preset", "cards", "test", "item", "colour", "shape"], items, numbers=[3, 5, 6]
        ),
    )


def main() -> None:
    """Play the games, and write the page, its table and its figure."""
    games = read_options(__doc__, games=(200, "games per case")).games
    found = measure_cases(games)
    found.to_csv(PAGE.with_suffix(".csv"), index=False)
    draw_design(figure_rows(found)).savefig(PAGE.with_suffix(".png"), dpi=200)
    PAGE.write_text(page(found, games), encoding="utf-8")


if __name__ == "__main__":
    main()
