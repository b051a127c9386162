"""Objectives of a search, and their values in the records of a trial.

An objective is a measure, or the difference of two measures that have a value per seed:

=================== ====================================================================================
`ratio:GRAMMAR`     updates to the target, divided by concat's (protocol acquire); geometric mean
`accuracy:GRAMMAR`  accuracy at the end (budget), or on held-out meanings (generalise)
`updates:GRAMMAR`   updates to the target; without a grammar, the sum over all grammars of the trial
`seconds:GRAMMAR`   time of training in seconds; without a grammar, the sum
`parameters`        number of trained parameters
`people`            distance to the held-out accuracies of people; `people:DATASET` for one dataset
=================== ====================================================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icy.analysis.people import PeopleAccuracies, people_distance
from icy.analysis.statistics import Interval, log_summary, student
from icy.core.errors import InvalidSettingError, require_known
from icy.core.text import listed, words
from icy.experiments.requests import SearchRequest
from icy.grammars import canonical_name
from icy.records.kinds import kind_of
from icy.records.record import Record, value_of

RATIO, ACCURACY, PEOPLE = "ratio", "accuracy", "people"
COSTS = ("updates", "seconds")  # sums over the grammars of a trial
MEASURES = (RATIO, ACCURACY, *COSTS, "parameters", PEOPLE)
DIFFERENCE = " - "
MINUS = re.compile(rf"\s+-\s+|-(?=(?:{'|'.join(MEASURES)})\s*:)")  # the name of a grammar may have a hyphen
CUT = "cap"  # reason of a training that did not reach the target
# The bound of a measure, or of a difference, by which of its trainings were cut.
BOUNDS = {(True,): ">", (True, False): ">", (False, True): "<", (True, True): "?"}

BySeed = dict[int, tuple[float, bool]]  # value of each seed, and whether its training was cut


@dataclass(frozen=True)
class Value(Interval):
    """The value of an objective with its 95 % interval; NaN if a replicate has no result.

    Attributes:
        bound: ">" or "<" if trainings were cut, so that the true value is larger or smaller; "?" if it may be either.
            A ratio with three or more trainings that were not cut is an estimate, as in tables, without a bound.
    """

    bound: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return math.isfinite(self.value)

    def text(self, interval: bool = False) -> str:
        """Return the value as text, with its bound, and with its interval if it is known."""
        if not self.known:
            return "failed"
        shown = f"{self.bound} {short(self.value)}".strip()
        if not interval or not self.low < self.high:
            return shown
        return f"{shown} ({short(self.low)} to {short(self.high)})"


def short(value: float) -> str:
    """Return a number with two decimals; from 100, whole numbers as such, and from 1000 all numbers.

    Example:
        >>> short(1.266), short(12345.6), short(310.0)
        ('1.27', '12346', '310')
    """
    return f"{value:.0f}" if abs(value) >= 1000 or (value.is_integer() and abs(value) >= 100) else f"{value:.2f}"


@dataclass(frozen=True)
class Term:
    """A measure, with its grammar or dataset if it has one."""

    measure: str
    of: str = ""

    def by_seed(self, records: Sequence[Record]) -> BySeed:
        """Return the value of each seed in the records of a trial's probe; NaN where a replicate failed."""
        found: BySeed = {}
        for record in (one for one in records if self.of in ("", one["grammar"])):
            value = math.nan if record["failed"] else NUMBERS[self.measure](record)
            cut = self.measure in (RATIO, "updates") and record["reason"] == CUT
            earlier, any_cut = found.get(record["seed"], (0.0, False))
            found[record["seed"]] = earlier + value if self.measure in COSTS else value, cut or any_cut
        return found


NUMBERS: Mapping[str, Callable[[Record], float]] = {
    RATIO: value_of,
    ACCURACY: lambda record: float(record["accuracy"] or 0.0),
    "updates": lambda record: float(record.get("crossing", record["steps"])),
    "seconds": lambda record: float(record["seconds"]),
    "parameters": lambda record: float(record["parameters"]["true"]),
}


@dataclass(frozen=True)
class Objective:
    """An objective.

    Attributes:
        text: the objective in the words of the user.
        terms: one measure, or two; then the difference of both counts.
        maximize: whether large values are better.
    """

    text: str
    terms: tuple[Term, ...]
    maximize: bool = False

    @property
    def label(self) -> str:
        """Its name in tables and plots, with the better direction."""
        of = f" on {self.terms[0].of}" if self.terms[0].of else ""
        shown = f"distance to people{of}" if self.of_people else self.text
        return f"{shown} ({'max' if self.maximize else 'min'})"

    @property
    def of_people(self) -> bool:
        """Whether this is the distance to people."""
        return self.terms[0].measure == PEOPLE

    def people_in(self, people: PeopleAccuracies) -> PeopleAccuracies:
        """Return the people in its conditions.

        Raises:
            InvalidSettingError: as for `PeopleAccuracies.part`.
        """
        return people.part(self.terms[0].of) if self.terms[0].of else people

    def value(self, records: Sequence[Record], people: PeopleAccuracies | None) -> Value:
        """Return the value in the records of a trial."""
        if self.of_people:
            assert people is not None
            return distance_of(records, self.people_in(people))
        probes = [record for record in records if kind_of(record).name == "probe"]
        parts = [term.by_seed(probes or records) for term in self.terms]
        seeds = sorted(set.intersection(*map(set, parts)))
        cuts = [np.array([part[seed][1] for seed in seeds], bool) for part in parts]
        values = [np.array([part[seed][0] for seed in seeds], float) for part in parts]
        if not seeds or any(np.isnan(one).any() for one in values):
            return Value(math.nan)
        if self.terms[0].measure == RATIO and len(parts) == 1:
            summary = log_summary(values[0], cuts[0])
            low, high = (math.nan, math.nan) if summary.bound else summary.interval
            return Value(summary.center, low, high, summary.bound)
        whole, count = values[0] if len(parts) == 1 else values[0] - values[1], len(seeds)
        mean = float(whole.mean())
        half = student(count - 1) * float(whole.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan
        return Value(mean, mean - half, mean + half, BOUNDS.get(tuple(bool(cut.any()) for cut in cuts), ""))


def distance_of(records: Iterable[Record], people: PeopleAccuracies) -> Value:
    """Return the distance of a network to people, from the records of its games (kind of job "study")."""
    games = [record for record in records if kind_of(record).name == "study"]
    cells = {
        (r["config"]["dataset"], r["grammar"], r["seed"]): math.nan if r["failed"] else r["accuracy"] for r in games
    }
    instances = sorted({record["seed"] for record in games})
    of_each = [[cells.get((*condition, number), math.nan) for condition in people.conditions] for number in instances]
    accuracies = np.array(of_each, float)
    if not instances or np.isnan(accuracies).any():
        return Value(math.nan)
    found = people_distance(accuracies, people)
    return Value(found.value, found.low, found.high)


# -- from text ---------------------------------------------------------------------------------------------------------


def objectives_of(request: SearchRequest) -> list[Objective]:
    """Return the objectives of a search: first those to minimize.

    Raises:
        InvalidSettingError: no objective, the same one twice, or one that the protocol does not measure.
        UnknownNameError: an unknown measure or grammar.
    """
    found = [parse(text) for text in words(request.minimize)]
    found += [parse(text, maximize=True) for text in words(request.maximize)]
    if not found:
        raise InvalidSettingError('A search needs an objective, as in minimize="ratio:shufdet" (--minimize).')
    texts = [one.text for one in found]
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise InvalidSettingError(f"The objective '{twice[0]}' is given twice.")
    wrong = {"acquire": ACCURACY, "budget": RATIO, "generalise": RATIO}.get(str(request.protocol))
    for one in found:
        if wrong in [term.measure for term in one.terms] and not (
            wrong == ACCURACY and request.max_updates is not None
        ):
            right = "acquire" if wrong == RATIO else "budget or generalise"
            raise InvalidSettingError(f"The objective '{one.text}' needs the protocol {right}, not {request.protocol}.")
    return found


def parse(text: str, maximize: bool = False) -> Objective:
    """Return the objective of a text.

    Raises:
        InvalidSettingError: the text is not an objective.
        UnknownNameError: an unknown measure or grammar.

    Example:
        >>> [(term.measure, term.of) for term in parse("ratio:hol - ratio:comp").terms]
        [('ratio', 'hol'), ('ratio', 'concat')]
    """
    terms = tuple(map(_term, MINUS.split(text)))
    if len(terms) > 2:
        raise InvalidSettingError(f"An objective is one measure or the difference of two, not '{text}'.")
    if len(terms) == 2 and PEOPLE in (term.measure for term in terms):
        raise InvalidSettingError(f"'{text}' cannot be an objective: people have no value per seed to subtract.")
    shown = DIFFERENCE.join(f"{term.measure}:{term.of}" if term.of else term.measure for term in terms)
    return Objective(shown, terms, maximize)


def _term(text: str) -> Term:
    found = re.fullmatch(r"\s*(\w+)(?:\s*:\s*(\S+))?\s*", text)
    if found is None:
        raise InvalidSettingError(
            f"'{text}' is not an objective; an objective is {listed(MEASURES, 'or')}, most of them of a grammar, as in "
            "ratio:shufdet, or a difference, as in ratio:hol - ratio:shufdet."
        )
    measure, of = found[1], found[2] or ""
    require_known("objective", measure, MEASURES)
    if measure in (RATIO, ACCURACY) and not of:
        raise InvalidSettingError(f"The objective '{measure}' needs a grammar, as in {measure}:shufdet.")
    if measure == "parameters" and of:
        raise InvalidSettingError("The objective 'parameters' has no grammar.")
    return Term(measure, of if measure == PEOPLE or not of else canonical_name(of))
