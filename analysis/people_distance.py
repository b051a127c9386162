"""Distance between the held-out accuracies of a network and of people, and of people from one another."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from icy.core.checks import boolean_column
from icy.core.errors import InvalidSettingError, quoted
from icy.core.streams import stream
from icy.core.text import listed

from .literature.people import published_draws, published_people
from .statistics import CONFIDENCE, Interval, Values

log = logging.getLogger(__name__)
RESAMPLES = 4000
HUMAN = "human"  # kind of agent in the rows of a study

Condition = tuple[str, str]  # a dataset and a grammar


@dataclass(frozen=True)
class PeopleAccuracies:
    """Accuracies of people on held-out items in several conditions.

    Attributes:
        conditions: dataset and grammar of each condition.
        means: mean accuracy [condition], 0 to 1.
        draws: resampled means of all people [resample, condition].
        halves: resampled means of two halves of the people, each [resample, condition].
    """

    conditions: tuple[Condition, ...]
    means: Values
    draws: Values
    halves: tuple[Values, Values]

    def part(self, dataset: str) -> PeopleAccuracies:
        """Return the conditions of one dataset.

        Raises:
            InvalidSettingError: no condition has this dataset.
        """
        own = [place for place, (name, _) in enumerate(self.conditions) if name == dataset]
        if not own:
            known = ", ".join(dict.fromkeys(name for name, _ in self.conditions))
            raise InvalidSettingError(f"The people have no results of the dataset '{dataset}'; they have: {known}.")
        halves = self.halves[0][:, own], self.halves[1][:, own]
        return PeopleAccuracies(tuple(self.conditions[i] for i in own), self.means[own], self.draws[:, own], halves)

    def ceiling(self) -> Interval:
        """Return the distance between two halves of the people: the median over splits, and the 95 % interval.

        The accuracies of a half vary more than the accuracies of all people. So a network with the true accuracies of
        people, measured without error, has about half of this distance.
        """
        far = rms(self.halves[0] - self.halves[1])
        low, middle, high = np.quantile(far, [(1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2])
        return Interval(float(middle), float(low), float(high))


def rms(differences: Values) -> Values:
    """Return the root mean square of differences over the last axis."""
    return np.asarray(np.sqrt((differences**2).mean(-1)))


def published_accuracies(resamples: int = RESAMPLES) -> PeopleAccuracies:
    """Return the people of Icy22: the middle of the counts that fit tables 21 and 22.

    Draws come from beta distributions with the printed mean and standard error. A half of the people has half of the
    weight of all people.

    Args:
        resamples: number of draws.
    """
    rows = published_people()
    rows = rows[rows["metric"] == "exact"]
    conditions = tuple((str(d), str(g)) for d, g in zip(rows["dataset"], rows["grammar"], strict=True))
    rng = stream(0, "people")
    draws, first, second = (published_draws(rows, resamples, rng, share) for share in (1.0, 0.5, 0.5))
    return PeopleAccuracies(conditions, rows["value"].to_numpy(float), draws, (first, second))


def study_accuracies(rows: pd.DataFrame) -> PeopleAccuracies:
    """Return the people of a study. Draws are a bootstrap over persons, and halves are random splits of persons.

    Args:
        rows: rows of the study table, as `icy study export` writes them.

    Raises:
        InvalidSettingError: a condition has fewer than two persons, the rows have no people, or a value is not an
            accuracy.
    """
    own = rows[(rows["agent_kind"] == HUMAN) & (rows["metric"] == "exact") & (rows["split"] == "held-out")]
    numbers = pd.to_numeric(own["value"], errors="coerce")
    if len(wrong := own["value"][~numbers.between(0, 1)]):
        raise InvalidSettingError(f"An accuracy of people is a number from 0 to 1, not {quoted(wrong.iloc[0])}.")
    agents = sorted(set(own["agent"].astype(str)))
    if len(agents) > 1 or ("pilot" in own and boolean_column("Column pilot", own["pilot"]).any()):
        log.warning("The people are %s: choose the games of one study, without its pilot.", listed(agents))
    # Sorted, so that the draws do not depend on the order of the rows.
    own = own.assign(value=numbers).sort_values("value")
    groups = {(str(d), str(g)): part["value"].to_numpy(float) for (d, g), part in own.groupby(["dataset", "grammar"])}
    if not groups:
        raise InvalidSettingError("These rows have no answers of people to held-out items.")
    for (dataset, grammar), values in groups.items():
        if len(values) < 2:
            raise InvalidSettingError(f"Only one person played {grammar} of {dataset}; a distance needs two or more.")
    rng = stream(0, "people")
    draws = [values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(1) for values in groups.values()]
    halves = [_halves(values, rng) for values in groups.values()]
    first, second = (np.stack([half[side] for half in halves], 1) for side in (0, 1))
    means = np.array([values.mean() for values in groups.values()])
    return PeopleAccuracies(tuple(groups), means, np.stack(draws, 1), (first, second))


def _halves(values: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    """Return the means of two halves of some values, for many random splits: each [resample]."""
    mixed = rng.permuted(np.tile(values, (RESAMPLES, 1)), axis=1)
    middle = len(values) // 2
    return mixed[:, :middle].mean(1), mixed[:, middle:].mean(1)


def people_distance(accuracies: Values, people: PeopleAccuracies) -> Interval:
    """Return the root mean square difference between the accuracies of a network and of people.

    The 95 % interval is a bootstrap of both: of the network's instances, and of people.

    Args:
        accuracies: accuracies of the network [instance, condition], 0 to 1, in the order of `people.conditions`.
        people: the people.
    """
    rng = stream(0, "network")
    chosen = accuracies[rng.integers(len(accuracies), size=(len(people.draws), len(accuracies)))].mean(1)
    low, high = np.quantile(rms(chosen - people.draws), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(float(rms(accuracies.mean(0) - people.means)), float(low), float(high))


def grammars_of(people: PeopleAccuracies) -> dict[str, Sequence[str]]:
    """Return the grammars of each dataset."""
    found: dict[str, list[str]] = {}
    for dataset, grammar in people.conditions:
        found.setdefault(dataset, []).append(grammar)
    return dict(found)
