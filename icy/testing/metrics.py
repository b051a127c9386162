"""Checks of metrics. The first line of each docstring is the claim that the check tests."""

from __future__ import annotations

import copy
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icy.core.errors import IcyError
from icy.core.registry import Entry
from icy.core.streams import stream
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.table import Table
from icy.metrics.score import Score

from .cases import CheckFailure, NotApplicable, named, require, require_registered, same_random_state

Wholes = NDArray[np.int64]
Rows = tuple[Wholes | NDArray[np.float64], Wholes | list[list[int]]]  # meanings and messages

VALUES, ATTRIBUTES = 3, 2
TOKENS = 6  # number of different tokens in the messages of a case; all occur
ROWS = 40
CLOSE = 1e-6
ERRORS = 6  # largest difference of two sampled scores, in standard errors

NUMBER = r"(-?\d+(?:\.\d+)?)"
RANGE = re.compile(rf"in \[{NUMBER}, {NUMBER}\]|at least {NUMBER}|at most {NUMBER}")


@dataclass(frozen=True)
class MetricCase:
    """A metric under test, and its tables.

    Attributes:
        entry: the metric's registry entry.
        seed: seed of the tables.
        registered: whether the registry knows the metric.
        scores: scores of tables that several checks use, by name; see `score_of`.
    """

    entry: Entry
    seed: int = 0
    registered: bool = True
    scores: dict[str, Score | IcyError] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rows(self, draw: int = 0, count: int = ROWS) -> tuple[Wholes, Wholes]:
        """Draw meanings, and messages that are half composition and half noise; new arrays each time."""
        meanings = stream(self.seed, "testing", "metric", draw).integers(VALUES, size=(count, ATTRIBUTES))
        return meanings, self._messages(meanings, draw)

    def language(self) -> Language:
        """Make a language that has every meaning once, with messages that are drawn as in `rows`."""
        space = MeaningSpace(ATTRIBUTES, VALUES)
        return Language(space, self._messages(space.all()), vocab_size=TOKENS)

    def _messages(self, meanings: Wholes, draw: int = 0) -> Wholes:
        noise = stream(self.seed, "testing", "messages", draw).integers(TOKENS, size=(len(meanings), 2))
        composed = meanings + VALUES * np.arange(ATTRIBUTES)
        composed[:, 1] = np.where(noise[:, 1] < TOKENS // 2, composed[:, 1], noise[:, 1])
        messages = np.concatenate([composed, noise[:, :1]], 1)
        messages[:TOKENS, 2] = np.arange(min(TOKENS, len(messages)))
        return messages

    def score(self, *table: object, **conventions: object) -> Score:
        """Return the score of a table, given as one or two arguments.

        Raises:
            CheckFailure: the metric returns something else.
        """
        found = self.entry.load()(*table, **{**self.entry.defaults, **conventions})
        require(isinstance(found, Score), f"The metric returns a {type(found).__name__}, not an icy.metrics.Score.")
        score: Score = found
        return score

    def usual(self) -> Score:
        """Return the score of the usual table."""
        return self.score_of("the usual table", self.rows())

    def score_of(self, name: str, table: Rows) -> Score:
        """Return the score of a named table, measured once for all checks.

        Raises:
            IcyError: the metric refuses the table.
        """
        if name not in self.scores:
            try:
                self.scores[name] = self.score(*table)
            except IcyError as refusal:
                self.scores[name] = refusal
        found = self.scores[name]
        if isinstance(found, IcyError):
            raise found
        return found

    def parameters(self) -> dict[str, inspect.Parameter]:
        """Return the metric's arguments, by name."""
        return dict(inspect.signature(self.entry.load()).parameters)

    def conventions(self) -> dict[str, inspect.Parameter]:
        """Return the arguments after meanings and messages."""
        named = list(self.parameters().items())[2:]
        return {name: p for name, p in named if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}

    @property
    def takes_one(self) -> bool:
        """Whether the messages may be left out."""
        return [p.default for p in self.parameters().values()][1:2] == [None]


def agree(one: Score, other: Score) -> bool:
    """Return whether two scores are equal up to rounding; sampled scores may differ within their standard errors."""
    if math.isnan(one.value) or math.isnan(other.value):
        return math.isnan(one.value) and math.isnan(other.value)
    errors = sum(score.error or 0.0 for score in (one, other))
    return abs(one.value - other.value) <= CLOSE * max(1.0, abs(one.value)) + ERRORS * errors


def require_same_score(found: Score, expected: Score, what: str) -> None:
    """Fail the check unless two scores agree."""
    require(agree(found, expected), f"{what}: the values are {found.value:.6g} and {expected.value:.6g}.")


def require_score(score: Score, rows: int, where: str) -> None:
    """Fail the check if the value is infinite, the number of rows is wrong, or the error lacks a valid description."""
    require(
        not math.isinf(score.value),
        f"{where} the value is {score.value}; if it is undefined, return NaN and give the reason.",
    )
    require(score.rows == rows, f"{where} the score has rows = {score.rows}, but there are {rows}.")
    if score.error is not None:
        require(math.isfinite(score.error) and score.error >= 0, f"{where} the standard error is {score.error}.")
        require(score.error_of, f"{where} the score has an error but no `error_of`; name its source.")


def check_made_by_name(case: MetricCase) -> None:
    """The registry knows the metric by its name and its aliases, and its scores have that name."""
    found, name = case.usual().metric, case.entry.name
    require(found == name, f"The score has the name '{found}', but the metric is called '{name}'.")
    require_registered(case.entry, case.registered)


def check_arguments(case: MetricCase) -> None:
    """The arguments are meanings, messages=None, and conventions that all have a default."""
    first, *rest = case.parameters().values()
    require(first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD), "The first argument is the meanings.")
    require(rest and rest[0].default is None, "The second argument must be `messages=None`: a Language has both.")
    wanting = [p.name for p in case.conventions().values() if p.default is p.empty]
    require(
        set(wanting) <= set(case.entry.defaults),
        f"{' and '.join(wanting)} must have a default; `icy.metrics.evaluate` calls metrics without conventions.",
    )


def check_score(case: MetricCase) -> None:
    """The score of a common table is a finite number, and states its number of rows."""
    score = case.usual()
    require(not score.why, f"A common table of {ROWS} rows has no value: {score.why}.")
    require_score(score, ROWS, f"On a common table of {ROWS} rows")


def check_documented_range(case: MetricCase) -> str:
    """Values lie in the range that the docstring states, as in "A score in [0, 1]"."""
    least, most = _range(inspect.getdoc(case.entry.load()) or "")
    tables = {f"{count} rows": case.rows(draw=1, count=count) for count in (10, 5)}
    for what, table in {"the usual table": case.rows(), **tables, **_degenerate(case)}.items():
        try:
            value = case.score_of(what, table).value
        except IcyError:
            continue
        inside = math.isnan(value) or least - CLOSE <= value <= most + CLOSE
        require(inside, f"The value is {value:.6g} ({what}), but the docstring says from {least:g} to {most:g}.")
    return f"from {least:g} to {most:g}"


def _range(documentation: str) -> tuple[float, float]:
    """Return the least and the greatest value that a docstring allows."""
    returns = re.search(r"^Returns:\n(.*?)(?:^\S|\Z)", documentation, re.MULTILINE | re.DOTALL)
    stated = RANGE.search(" ".join((returns[1] if returns else documentation).split()))
    if stated is None:
        raise NotApplicable('the docstring states no range, as in "A score in [0, 1]" or "at least 0"')
    both, greatest, at_least, at_most = stated.groups()
    least = both or at_least
    most = greatest or at_most
    return -math.inf if least is None else float(least), math.inf if most is None else float(most)


def check_conventions_repeat_the_value(case: MetricCase) -> None:
    """Every convention of a score is an argument; with these arguments the metric gives the same value."""
    score = case.usual()
    given = {name: value for name, value in score.conventions.items() if value is not None}
    free = any(p.kind == p.VAR_KEYWORD for p in case.parameters().values())
    for name in given:
        require(free or name in case.conventions(), f"The convention '{name}' of the score is not an argument.")
    require_same_score(case.score(*case.rows(), **given), score, f"With the conventions stated, {given}, and without")


def check_choices_are_conventions(case: MetricCase) -> str:
    """An argument that changes the value is among the score's conventions."""
    score, tried = case.usual(), []
    for name, other in _others(case):
        try:
            moved = case.score(*case.rows(), **{name: other})
        except IcyError:  # the metric does not accept this value
            continue
        tried.append(f"{name}={other}")
        stated = dict(moved.conventions) != dict(score.conventions)
        require(
            stated or agree(moved, score),
            f"{name}={other} changes the value from {score.value:.6g} to {moved.value:.6g}, but is not among the "
            f"conventions of the score; add '{name}' to them.",
        )
    if not tried:
        raise NotApplicable("no argument could be tried with another value")
    return f"tried {', '.join(tried)}"


def _others(case: MetricCase) -> Iterator[tuple[str, float]]:
    """Yield arguments with a value that is not the default, for arguments with a value that can be guessed."""
    for name, parameter in case.conventions().items():
        default = case.entry.defaults.get(name, parameter.default)
        if isinstance(default, bool):
            yield name, not default
        elif isinstance(default, int):
            yield name, default + 1
        elif isinstance(default, float):
            yield name, default + 0.5
        elif name == "eos":
            yield name, 0


def check_same_however_given(case: MetricCase) -> None:
    """Arrays, lists, strings, a pair, a Table and a Language with the same rows have the same score."""
    language = case.language()
    meanings, messages = language.space.all(), language.messages.astype(np.int64)
    expected = case.score(meanings, messages)
    forms: dict[str, tuple[object, ...]] = {
        "lists": (meanings.tolist(), messages.tolist()),
        "strings of letters": (meanings, ["".join(chr(ord("a") + t) for t in row) for row in messages.tolist()]),
    }
    if case.takes_one:
        both = meanings.copy(), messages.copy()
        forms |= {"a pair": (both,), "a Table": (Table.of(*both),), "a Language": (language,)}
    for what, given in forms.items():
        require_same_score(case.score(*given), expected, f"With {what} and with two arrays")


def check_rows_in_any_order(case: MetricCase) -> None:
    """The order of the rows does not matter."""
    meanings, messages = case.rows()
    order = stream(case.seed, "testing", "order").permutation(ROWS)
    found = case.score(meanings[order], messages[order])
    require_same_score(found, case.usual(), "Rows in another order and in the original order")


def check_names_do_not_matter(case: MetricCase) -> None:
    """The names of tokens and of attribute values do not matter: a table numbers them in sorted order."""
    draws = stream(case.seed, "testing", "names")
    tokens, values = draws.permutation(TOKENS), [draws.permutation(VALUES) for _ in range(ATTRIBUTES)]
    meanings, messages = case.rows()
    renamed = np.stack([names[column] for names, column in zip(values, meanings.T, strict=True)], 1)
    for what, table in {"tokens": (meanings, tokens[messages]), "values": (renamed, messages)}.items():
        require_same_score(case.score(*copy.deepcopy(table)), case.usual(), f"With {what} renamed and as before")


def check_ragged_messages(case: MetricCase) -> str | None:
    """Messages of different lengths have a score, or are refused with an IcyError."""
    meanings, messages = case.rows()
    ragged = [row[: 1 + i % len(row)] for i, row in enumerate(messages.tolist())]
    return _scored_or_refused(case, (meanings, ragged), "With messages of different lengths")


def check_continuous_meanings(case: MetricCase) -> str | None:
    """Meanings that are real numbers have a score, or are refused with an IcyError."""
    _, messages = case.rows()
    meanings = stream(case.seed, "testing", "continuous").normal(size=(ROWS, ATTRIBUTES))
    return _scored_or_refused(case, (meanings, messages), "With meanings that are real numbers")


def check_undefined_says_why(case: MetricCase) -> str:
    """Degenerate tables (a single row, constant or empty messages, ...) have a finite value, or NaN and a reason."""
    undefined = []
    for what, table in _degenerate(case).items():
        try:
            score = case.score_of(what, table)
        except IcyError:
            undefined.append(what)
            continue
        require_score(score, len(table[0]), f"With {what}")
        undefined += [what] if score.why else []
    return f"undefined for {', '.join(undefined)}" if undefined else "always defined"


def _degenerate(case: MetricCase) -> dict[str, Rows]:
    """Return tables on which a metric may be undefined."""
    (meanings, messages), same = case.rows(), np.zeros((ROWS, 1), dtype=np.int64)
    return {
        "a single row": (meanings[:1], messages[:1]),
        "two equal rows": (meanings[[0, 0]], messages[[0, 0]]),
        "one attribute": (meanings[:, :1], messages),
        "meanings that are all the same": (np.repeat(same, ATTRIBUTES, axis=1), messages),
        "messages that are all the same": (meanings, np.repeat(same, 3, axis=1)),
        "everything the same": (np.repeat(same, ATTRIBUTES, axis=1), same.copy()),
        "messages of one token": (meanings, messages[:, :1]),
        "empty messages": (meanings, [[] for _ in range(ROWS)]),
        "messages that are all different": (meanings, np.arange(2 * ROWS).reshape(ROWS, 2)),
    }


def check_resampled_rows(case: MetricCase) -> None:
    """Some rows of a Table, and rows drawn with replacement, have a score: the bootstrap needs both."""
    if not case.takes_one:
        raise NotApplicable("the metric does not accept a single Table, as the check 'arguments' reports")
    table, draws = Table.of(*case.rows()), stream(case.seed, "testing", "bootstrap")
    for what, which in (("some rows", np.arange(0, ROWS, 2)), ("drawn rows", draws.integers(ROWS, size=ROWS))):
        require_score(case.score(table.rows(which)), len(which), f"With {what} of a Table")


def check_weights(case: MetricCase) -> None:
    """With `weighted=True`, rows with integer weights have the same score as rows that are repeated so many times."""
    if not case.entry.weighted:
        raise NotApplicable("the metric is not registered with weighted=True, so icy gives it repeated rows")
    weights = stream(case.seed, "testing", "weights").integers(1, 4, size=ROWS)
    meanings, messages = case.rows()
    found = case.score(Table.of(meanings, messages, weights=weights))
    require_score(found, ROWS, f"With weights of {ROWS} rows")
    repeated = case.score(meanings.repeat(weights, axis=0), messages.repeat(weights, axis=0))
    require_same_score(found, repeated, "With weights and with repeated rows")


def check_refuses_what_is_no_table(case: MetricCase) -> None:
    """More meanings than messages, or no rows at all, are refused with an IcyError."""
    meanings, messages = case.rows()
    wrong: dict[str, Rows] = {
        "more meanings than messages": (meanings, messages[:-1]),
        "no rows": (meanings[:0], messages[:0]),
    }
    for what, table in wrong.items():
        try:
            case.score(*table)
        except IcyError:
            continue
        except Exception as error:
            raise CheckFailure(
                f"A table with {what} raises {type(error).__name__}; icy.metrics.Table.of raises an IcyError."
            ) from error
        raise CheckFailure(f"A table with {what} is accepted; icy.metrics.Table.of raises an IcyError.")


def check_deterministic(case: MetricCase) -> None:
    """The same table has exactly the same score twice, even if other tables are measured in between."""
    first = case.score(*case.rows()).value
    case.score(*case.rows(draw=1, count=10))
    again = case.score(*case.rows()).value
    require(first == again or math.isnan(first + again), f"The same table has the values {first!r} and {again!r}.")


def check_random_state_untouched(case: MetricCase) -> None:
    """Measuring does not change the global random state of torch, NumPy and Python."""
    with same_random_state("The metric"):
        case.score(*case.rows())


def check_inputs_unchanged(case: MetricCase) -> None:
    """The metric does not change its meanings and messages."""
    meanings, messages = case.rows()
    forms: tuple[Callable[[Wholes], ArrayLike], ...] = (np.copy, np.ndarray.tolist)
    for form in forms:
        given = [form(meanings), form(messages)]
        before = copy.deepcopy(given)
        case.score(*given)
        for what, some, expected in zip(("meanings", "messages"), given, before, strict=True):
            require(np.array_equal(some, expected), f"The metric changed the {what} in place; work on a copy.")


def _scored_or_refused(case: MetricCase, table: Rows, where: str) -> str | None:
    try:
        score = case.score(*table)
    except IcyError as refusal:
        return f"refused: {refusal}"
    require_score(score, len(table[0]), where)
    return f"undefined: {score.why}" if score.why else None


METRIC_CHECKS = named(
    check_made_by_name,
    check_arguments,
    check_score,
    check_documented_range,
    check_conventions_repeat_the_value,
    check_choices_are_conventions,
    check_same_however_given,
    check_rows_in_any_order,
    check_names_do_not_matter,
    check_ragged_messages,
    check_continuous_meanings,
    check_undefined_says_why,
    check_resampled_rows,
    check_weights,
    check_refuses_what_is_no_table,
    check_deterministic,
    check_random_state_untouched,
    check_inputs_unchanged,
)
