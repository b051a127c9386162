"""What the order of cards lets a study measure: `python -m results.study_design`.

A composer knows how concat puts words together, remembers every code, and makes no mistakes. What it gets wrong of the
held-out items of concat nobody could have known. Writes study-design.md, study-design.csv and study-design.png.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from icy.analysis.plots.study import draw_design
from icy.core.text import markdown_table
from icy.study.game import Game, GameSettings, Trial, instance_of
from icy.study.game.course import card_order
from icy.study.players.composer import Composer
from icy.study.players.sitting import play
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).with_name("study-design.md")
DATASETS, PRESETS = ("synth", "eng"), ("published", "clean")
SEEDS = 10_000  # orders of cards of the preset clean that are looked at
TESTS = (29, 39, 49)


@dataclass(frozen=True)
class Case:
    """One way to play.

    Attributes:
        dataset: of the games.
        preset: of the game.
        adds: whether all cards are added at the start.
        told: whether the right code is shown after an error in a held-out item.
    """

    dataset: str
    preset: str
    adds: bool
    told: bool

    @property
    def settings(self) -> GameSettings:
        """The settings of its games."""
        feedback = "full" if self.told else "verdict"
        return GameSettings.of(self.preset, dataset=self.dataset, held_out_feedback=feedback)


def held_out_items(case: Case, games: int) -> Iterator[tuple[Trial, ...]]:
    """Yield the held-out items of some games of a composer."""
    settings = case.settings
    for number in range(games):
        played = play(Game(settings, instance_of(settings, number), number), Composer(case.adds), number)
        yield tuple(trial for trial in played.state.trials if trial.held_out is not None)


def measured(games: int) -> pd.DataFrame:
    """Return one row per case and held-out item: other cards that showed its values, and how often it was right."""
    rows = []
    for dataset, preset, adds, told in product(DATASETS, PRESETS, (False, True), (True, False)):
        case = Case(dataset, preset, adds, told)
        of_games = list(held_out_items(case, games))
        for place, trials in enumerate(zip(*of_games, strict=True)):
            names = {" ".join(case.settings.content.named(trial.meaning)) for trial in trials}
            colours, shapes = zip(*(trial.among_cards for trial in trials), strict=True)
            rows.append(
                {
                    "dataset": dataset,
                    "preset": preset,
                    "cards": "all at once" if adds else "as they come",
                    "errors": "corrected" if told else "not corrected",
                    "test": TESTS[place],
                    "item": names.pop() if len(names) == 1 else "any",
                    "colour": float(np.mean(colours)),
                    "shape": float(np.mean(shapes)),
                    "right": float(np.mean([trial.correct for trial in trials])),
                }
            )
    return pd.DataFrame(rows)


def unseen(dataset: str) -> tuple[int, int]:
    """Count held-out items of clean games of which a value is in fewer than two other cards by their test; and all."""
    settings = GameSettings(dataset=dataset)
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


def drawn(found: pd.DataFrame) -> pd.DataFrame:
    """Return what the figure shows: the courses that come by themselves."""
    shown = found[found["cards"] == "as they come"]
    told = shown[shown["errors"] == "corrected"].reset_index(drop=True)
    untold = shown[shown["errors"] == "not corrected"].reset_index(drop=True)
    items = [f"{row['test']}" + ("" if row["item"] == "any" else f": {row['item']}") for row in told.to_dict("records")]
    return told.assign(item=items, told=told["right"], untold=untold["right"])


def page(found: pd.DataFrame, games: int) -> str:
    """Return the page."""
    means = found.groupby(["dataset", "preset", "cards", "errors"], sort=False)["right"].mean().unstack()
    lines = [[*key, *(f"{100 * row[name]:.0f}" for name in means.columns)] for key, row in means.iterrows()]
    items = [
        [*(str(row[name]) for name in ("dataset", "preset", "cards", "test", "item")),
         f"{row['colour']:g}", f"{row['shape']:g}"]
        for row in found[found["errors"] == "corrected"].to_dict("records")
    ]  # fmt: skip
    missing = {name: unseen(name) for name in DATASETS}
    said = "; ".join(f"{name}: {few} of {count:,}" for name, (few, count) in missing.items())
    return fill_template(
        PAGE,
        games=games,
        versions=describe_versions(),
        means=markdown_table(["dataset", "preset", "cards", *means.columns], lines, numbers=[3, 4]),
        said=said,
        seeds=f"{SEEDS:,}",
        items=markdown_table(
            ["dataset", "preset", "cards", "test", "item", "colour", "shape"], items, numbers=[3, 5, 6]
        ),
    )


def main() -> None:
    """Play, and write the page, its table and its figure."""
    games = read_options(__doc__, games=(200, "games per case")).games
    found = measured(games)
    found.to_csv(PAGE.with_suffix(".csv"), index=False)
    draw_design(drawn(found)).savefig(PAGE.with_suffix(".png"), dpi=200)
    PAGE.write_text(page(found, games), encoding="utf-8")


if __name__ == "__main__":
    main()
