"""Which composed senders have the biases of people? `python -m results.search [--train ratio|people]... [--workers N]`.

Run the searches of this folder into runs/, starting from their packed records (ratio.parquet, people.parquet), which
are committed; add all records to these files, and write a page per search, with its pictures. Run it again to continue,
on any machine. Without --train, repeat both searches from the records, without training.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import icy
from icy.analysis.people import PeopleAccuracies, published_accuracies, rms
from icy.analysis.statistics import CONFIDENCE, log_summary, student
from icy.core.streams import stream
from icy.core.text import listed, markdown_table
from icy.experiments.search.objectives import Objective
from icy.experiments.search.report import FIGURE, parts_table
from icy.experiments.search.result import Finalist, Measured, SearchResult
from icy.records.load import load_records
from icy.records.record import Record
from results.estimates import Values, percentile_interval, print_estimate, student_interval
from results.pages import RecordFolder, describe_packs, describe_version, fill_template, read_options

Measurements = list[Sequence[Record]]  # of each finalist, then of each baseline

HERE = Path(__file__).parent
RATIO, PEOPLE = "ratio", "people"
RECORDS = {name: RecordFolder(HERE, f"{name}.parquet", f"runs/{name}") for name in (RATIO, PEOPLE)}
HU_RNN = "HierZero:dgsend hidden=128"  # as in Icy22
GOAL, LEAST_HOL = 1.27, 10  # the ratio on shufdet of HU-RNN in Icy22, table 6; the least ratio on hol
SHOWN = 12  # trials in the table of the page
DRAWS = 40_000  # of people, for differences between networks; with 4,000, ends of intervals differ by 0.005


def run(name: str, **options: object) -> SearchResult:
    """Run a search, from its packed records if there are any."""
    own = RECORDS[name]
    start = [own.pack] if own.pack.exists() else []
    return icy.search(file=HERE / f"{name}.toml", out=own.runs, initial_results=start, **options)  # type: ignore[arg-type]


def last_of(one: Finalist) -> Measured:
    """Return the last measurement of a finalist or a baseline."""
    return one.larger or one.again


# -- differences from HU-RNN -------------------------------------------------------------------------------------------


def factor(own: Sequence[Record], other: Sequence[Record], result: SearchResult, place: int) -> str:
    """Return the geometric mean over seeds of the quotient of two models' ratios, with its 95 % interval."""
    term = result.objectives[place].terms[0]
    values, others = term.by_seed(own), term.by_seed(other)
    seeds = sorted(values.keys() & others.keys())
    if any(values[seed][1] or others[seed][1] for seed in seeds):
        return "-"
    logs = np.array([math.log(values[seed][0] / others[seed][0]) for seed in seeds])
    return print_estimate([math.exp(value) for value in student_interval(logs)])


def nearer(
    own: Sequence[Record],
    other: Sequence[Record],
    people: PeopleAccuracies,
    confidence: float = CONFIDENCE,
    places: Sequence[int] | None = None,
) -> tuple[float, float, float]:
    """Return how much smaller the distance of one network to people is than that of another, with its interval.

    Both networks played the same games. The interval is a bootstrap of the games and of people. `places` are the
    conditions that count; None for all.
    """
    both = [accuracies_of(records, people) for records in (own, other)]
    which = list(range(len(people.conditions)) if places is None else places)
    games = len(both[0])
    times = stream(0, "networks").multinomial(games, [1 / games] * games, size=len(people.draws))
    distances = [rms((times @ one / games - people.draws)[:, which]) for one in both]
    first, second = (rms((one.mean(0) - people.means)[which]) for one in both)
    middle = second - first
    low, high = np.quantile(distances[1] - distances[0], [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(middle), float(low), float(high)


def nearer_to_the_other_half(
    result: SearchResult, records: Measurements, chosen_for: Values
) -> tuple[float, float, float]:
    """Return how much nearer than HU-RNN to one half of the people the trial is that is best for the other half.

    The two halves differ from the mean of all people by opposite errors, as in every split. This is the mean over
    simulated splits, with the interval that has 95 % of them. Only trials that reached the last rung are compared.

    Args:
        result: result of the search.
        records: records of the finalists and baselines.
        chosen_for: accuracies of the first half: [split, condition].
    """
    people, reference = result.setup.people, records[len(result.finalists) + place_of_hu_rnn(result)]
    assert people is not None
    ended = [trial.rungs[-1] for trial in result.trials if len(trial.rungs) == len(result.setup.rungs)]
    trials = np.stack([accuracies_of(one.records, people).mean(0) for one in ended if one.known])
    compared_with = 2 * people.means - chosen_for
    best = trials[rms(trials - chosen_for[:, None]).argmin(1)]
    found = rms(accuracies_of(reference, people).mean(0) - compared_with) - rms(best - compared_with)
    return float(found.mean()), *percentile_interval(found)


def place_of_hu_rnn(result: SearchResult) -> int:
    """Return the place of HU-RNN among the baselines."""
    return names_of(result.baselines).index(HU_RNN)


def accuracies_of(records: Sequence[Record], people: PeopleAccuracies) -> Values:
    """Return the held-out accuracies [instance, condition] of a network in its games."""
    cells = {(r["config"]["dataset"], r["grammar"], r["seed"]): float(r["accuracy"] or 0) for r in records}
    instances = sorted({seed for *_, seed in cells})
    return np.array([[cells[*condition, number] for condition in people.conditions] for number in instances])


@cache
def people_of_icy22() -> PeopleAccuracies:
    """Return the people of the search, with more draws."""
    return published_accuracies(DRAWS)


# -- texts -------------------------------------------------------------------------------------------------------------


def finalists_text(result: SearchResult, records: Measurements) -> str:
    """Return the table of finalists and baselines in the last measurement, with differences from HU-RNN."""
    measured = [*result.finalists, *result.baselines]
    reference = records[len(result.finalists) + place_of_hu_rnn(result)]
    people = result.setup.people
    rows = []
    for one, own in zip(measured, records, strict=True):
        values = last_of(one).values
        more = (
            print_estimate(nearer(own, reference, people_of_icy22())) if people else factor(own, reference, result, 0)
        )
        shown = [value.text(interval=True) for value in values]
        rows.append([one.name, *shown, "-" if own is reference else more])
    against = "nearer than HU-RNN by" if people else "shufdet, factor to HU-RNN"
    return markdown_table(["model", *(one.text for one in result.objectives), against], rows)


def accuracies_text(result: SearchResult, records: Measurements) -> str:
    """Return the table of held-out accuracies of people and of each finalist and baseline, by dataset and grammar."""
    people = result.setup.people
    assert people is not None
    measured = zip([*result.finalists, *result.baselines], records, strict=True)
    means = {"people": people.means, **{one.name: accuracies_of(own, people).mean(0) for one, own in measured}}
    headings = ["", *(f"{dataset} {grammar}" for dataset, grammar in people.conditions)]
    return markdown_table(headings, [[name, *(f"{value:.2f}" for value in own)] for name, own in means.items()])


@dataclass(frozen=True)
class Scrutiny:
    """Reasons to doubt that the finalists of the search for people are nearer to people than HU-RNN.

    Attributes:
        cell: the condition with the largest part of the gain in squared distance.
        shares: this part, for each finalist.
        without: how much nearer each finalist is without this condition, with intervals that hold together.
        synth: how much nearer each finalist is on the items of `synth`, likewise.
        constant: the distance of a player with one accuracy on `synth` and one on `eng`, the means of people.
        levels: these two accuracies.
        median: the median distance of the trials at the first rung.
        hu_rnn: the distance of HU-RNN in the last games.
        trials: number of trials at the first rung, and of those with a smaller distance than HU-RNN.
    """

    cell: str
    shares: list[float]
    without: list[tuple[float, float, float]]
    synth: list[tuple[float, float, float]]
    constant: float
    levels: tuple[float, float]
    median: float
    hu_rnn: float
    trials: tuple[int, int]

    @classmethod
    def of(cls, result: SearchResult, records: Measurements) -> Scrutiny:
        """Compute them from the records."""
        people, count = people_of_icy22(), len(result.finalists)
        reference = records[count + place_of_hu_rnn(result)]
        far = [accuracies_of(own, people).mean(0) - people.means for own in (*records[:count], reference)]
        gains = [far[-1] ** 2 - own**2 for own in far[:-1]]
        place = int(np.sum(gains, axis=0).argmax())
        synth = np.array([dataset == "synth" for dataset, _ in people.conditions])
        parts = [[i for i in range(len(synth)) if i != place], [i for i, is_synth in enumerate(synth) if is_synth]]
        without, of_synth = (
            [nearer(own, reference, people, joint_confidence(result), part) for own in records[:count]]
            for part in parts
        )
        levels = people.means[synth].mean(), people.means[~synth].mean()
        first = [trial.rungs[0] for trial in result.trials]
        tried = [accuracies_of(one.records, people) for one in first if one.known]
        distances = np.array([rms(one.mean(0) - people.means) for one in tried])
        hu_rnn = float(rms(far[-1]))
        return cls(
            cell=" ".join(people.conditions[place]),
            shares=[float(gain[place] / gain.sum()) for gain in gains],
            without=without,
            synth=of_synth,
            constant=float(rms(np.where(synth, *levels) - people.means)),
            levels=levels,
            median=float(np.median(distances)),
            hu_rnn=hu_rnn,
            trials=(len(distances), int((distances < hu_rnn).sum())),
        )

    @property
    def shown(self) -> bool:
        """Whether every finalist is nearer without the condition, and on `synth`, by intervals above 0."""
        return all(low > 0 for _, low, _ in (*self.without, *self.synth))

    @property
    def text(self) -> str:
        """The reasons as sentences.

        Raises:
            AssertionError: the records do not support a sentence.
        """
        assert not self.shown, "The finalists are nearer without one condition and on synth: change the sentences."
        assert all(middle < 0 < high for middle, _, high in self.synth), "On synth a finalist is not further away."
        assert max(self.constant, self.median) < self.hu_rnn, "HU-RNN is nearer than a constant or the median trial."
        shares = listed([f"{100 * share:.0f} %" for share in self.shares])
        return (
            f"One condition, `{self.cell}`, has {shares} of the gain in squared distance. Without it they are nearer "
            f"by {listed([print_estimate(one) for one in self.without])}: unknown. On `synth` they are not nearer: "
            f"{listed([print_estimate(one, 3) for one in self.synth])}. HU-RNN is a weak reference: its distance is "
            f"{self.hu_rnn:.3f}, that of a constant player ({self.levels[0]:.2f} on all items of `synth`, "
            f"{self.levels[1]:.2f} on all of `eng`) {self.constant:.3f}, and that of the median trial "
            f"{self.median:.3f}; {self.trials[1]} of {self.trials[0]} trials are nearer at the first rung. So most "
            "searched senders, and a constant, are nearer than HU-RNN, because they answer more items of `eng`; this "
            "is not so on `synth`."
        )


def halves_text(result: SearchResult, records: Measurements) -> str:
    """Return how near the best trial for one half is to the other, for two variances of the halves."""
    people = result.setup.people
    assert people is not None
    split, new = (
        print_estimate(nearer_to_the_other_half(result, records, one)) for one in (people.draws, people.halves[0])
    )
    return (
        f"{split} in halves of the same people, and by {new} if a half varies as much as half as many new people "
        "(twice the published variance)"
    )


def people_text(result: SearchResult, records: Measurements) -> dict[str, str]:
    """Return the texts that only the page of people has."""
    return {
        "accuracies": accuracies_text(result, records),
        "half": halves_text(result, records),
        "scrutiny": Scrutiny.of(result, records).text,
    }


def goal_text(result: SearchResult, records: Measurements) -> str:
    """Return which finalists meet the goal of the search, a low ratio on shufdet and a high ratio on hol.

    The intervals of all finalists hold together, as in `nearer_than_hu_rnn`.
    """
    confidence = joint_confidence(result)
    met: list[str] = []
    open_: list[str] = []
    missed: list[str] = []
    for one, own in zip(result.finalists, records, strict=False):  # baselines follow
        (low, high), (least, most) = (interval(own, objective, confidence) for objective in result.objectives)
        sure, possible = high < GOAL and least > LEAST_HOL, low < GOAL and most > LEAST_HOL
        shown = f"`{one.name}` ({low:.2f} to {high:.2f})"
        (met if sure else open_ if possible else missed).append(shown)
    said = [
        f"{start}: {listed(names)}."
        for start, names in (
            (f"Ratio on shufdet below {GOAL} and on hol above {LEAST_HOL} (whole intervals)", met),
            (f"An interval contains {GOAL} or {LEAST_HOL}", open_),
            ("Not met", missed),
        )
        if names
    ]
    return " ".join([f"**{'Yes' if met else 'Not decided' if open_ else 'No'}.**", *said, with_confidence(confidence)])


def interval(own: Sequence[Record], objective: Objective, confidence: float) -> tuple[float, float]:
    """Return the interval of a ratio by Student's t on the log scale; without an end if only a bound is known."""
    found = log_summary(*np.array(list(objective.terms[0].by_seed(own).values())).T)
    if found.bound:
        return found.center, math.inf
    wide = math.exp(student(found.freedom, confidence) * found.error)
    return found.center / wide, found.center * wide


def joint_confidence(result: SearchResult) -> float:
    """Return the confidence of each finalist's interval with which all of them hold with 95 % (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / len(result.finalists)


def with_confidence(confidence: float) -> str:
    """Say what intervals with this confidence mean."""
    return f"Each of these intervals has a confidence of {100 * confidence:.1f} %, so that all of them hold with 95 %."


def nearer_than_hu_rnn(result: SearchResult, records: Measurements) -> tuple[float, list[tuple[float, float, float]]]:
    """Return how much nearer to people each finalist is than HU-RNN, with intervals that hold together, as in `nearer`.

    Returns:
        The confidence of each interval (Bonferroni), and the difference and its interval for each finalist.
    """
    count = len(result.finalists)
    reference = records[count + place_of_hu_rnn(result)]
    confidence = joint_confidence(result)
    return confidence, [nearer(own, reference, people_of_icy22(), confidence) for own in records[:count]]


def names_of(measured: Sequence[Finalist]) -> list[str]:
    """Return the names of finalists or baselines, with their hidden sizes."""
    return [one.name for one in measured]


def nearer_text(result: SearchResult, records: Measurements) -> str:
    """Return the answer to the question whether a network is nearer to people than HU-RNN."""
    confidence, found = nearer_than_hu_rnn(result, records)
    lows, highs = [low for _, low, _ in found], [high for *_, high in found]
    above = max(lows) > 0 and Scrutiny.of(result, records).shown
    verdict = "Yes" if above else "No" if max(highs) < 0 else "Not shown"
    names = names_of(result.finalists)
    shown = [f"`{name}` is nearer by {print_estimate(one)}" for name, one in zip(names, found, strict=True)]
    assert result.setup.people is not None
    halves = result.setup.people.ceiling()
    return (
        f"**{verdict}.** Compared with HU-RNN, {listed(shown)}. {with_confidence(confidence)} The distance between two "
        f"halves of the people is {print_estimate((halves.value, halves.low, halves.high))}."
    )


def about(result: SearchResult) -> dict[str, str]:
    """Return facts about the size of a search."""
    seconds = sum(float(record["seconds"]) for record in load_records(result.folder or HERE))
    later = sum(len(trial.rungs) > 1 for trial in result.trials)
    return {
        "trials": f"{len(result.trials)}",
        "later": f"{later}",
        "space": f"{result.setup.space.size:,}",
        "hours": f"{seconds / 3600:.1f}",
    }


def page(name: str, result: SearchResult) -> str:
    """Return the page of a search."""
    shutil.copy((result.folder or HERE) / FIGURE, HERE / f"search-{name}-trials.png")
    records = [last_of(one).records for one in (*result.finalists, *result.baselines)]
    best = result.finalists[0].again.point
    return fill_template(
        page_of(name),
        version=describe_version(),
        records=describe_packs(RECORDS[name].pack),
        finalists=finalists_text(result, records),
        importances=markdown_table(*result.importance_table()),
        best=markdown_table(*result.trial_table(SHOWN)),
        winner=f"`{best.name}`",
        parts=parts_table(result.setup, best),
        answer=nearer_text(result, records) if result.setup.people else goal_text(result, records),
        **(people_text(result, records) if result.setup.people else {}),
        **about(result),
    )


def page_of(name: str) -> Path:
    """Return the place of the page of a search."""
    return HERE / f"search-{name}.md"


def main(words: Sequence[str] | None = None) -> None:
    train = ({"choices": tuple(RECORDS), "action": "append", "default": []}, "which searches to run")
    options = read_options(__doc__, words, train=train, workers=(int, "processes at once"))
    for name in options.train:
        run(name, workers=options.workers)
        RECORDS[name].update_pack()
    for name in options.train or RECORDS:
        text = page(name, run(name, rerun="never", progress=False))
        page_of(name).write_text(text.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
