"""Checks of metrics."""

from __future__ import annotations

import copy
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icy.core.errors import IcyError
from icy.core.streams import stream
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.languages.table import Table
from icy.metrics.score import Score

from .cases import Case, NotApplicable, require

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
class MetricCase(Case):
    """A metric under test, and its tables.

    Attributes:
        seed: seed of the tables.
    """

    seed: int = field(default=0, kw_only=True)

    def make(self) -> Callable[..., Score]:
        """Return the metric; fail if its scores have another name."""
        found, name = self.usual.metric, self.entry.name
        require(found == name, f"The score has the name '{found}', but the metric is called '{name}'.")
        metric: Callable[..., Score] = self.entry.load()
        return metric

    def use(self) -> None:
        """Measure the usual table."""
        self.score(*self.rows())

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

    @cached_property
    def usual(self) -> Score:
        """The score of the usual table."""
        return self.score(*self.rows())

    def scored(self, table: Rows) -> Score | IcyError:
        """Return the score of a table, or the error with which the metric refuses it."""
        try:
            return self.score(*table)
        except IcyError as refusal:
            return refusal

    @cached_property
    def degenerate(self) -> dict[str, tuple[int, Score | IcyError]]:
        """The rows and scores of tables on which a metric may be undefined, by name."""
        (meanings, messages), same = self.rows(), np.zeros((ROWS, 1), dtype=np.int64)
        one_meaning, one_message = np.repeat(same, ATTRIBUTES, axis=1), np.repeat(same, 3, axis=1)
        tables: dict[str, Rows] = {
            "a single row": (meanings[:1], messages[:1]),
            "two equal rows": (meanings[[0, 0]], messages[[0, 0]]),
            "one attribute": (meanings[:, :1], messages),
            "meanings that are all the same": (one_meaning, messages),
            "messages that are all the same": (meanings, one_message),
            "everything the same": (one_meaning, same),
            "messages of one token": (meanings, messages[:, :1]),
            "empty messages": (meanings, [[] for _ in range(ROWS)]),
            "messages that are all different": (meanings, np.arange(2 * ROWS).reshape(ROWS, 2)),
        }
        return {what: (len(table[0]), self.scored(copy.deepcopy(table))) for what, table in tables.items()}

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The metric's arguments, by name."""
        return dict(inspect.signature(self.entry.load()).parameters)

    @property
    def conventions(self) -> dict[str, inspect.Parameter]:
        """The arguments after meanings and messages."""
        named = list(self.parameters.items())[2:]
        return {name: p for name, p in named if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}

    @property
    def takes_one(self) -> bool:
        """Whether the messages may be left out."""
        return [p.default for p in self.parameters.values()][1:2] == [None]

    def check_arguments(self) -> None:
        """The arguments are meanings, messages=None, and conventions that all have a default."""
        first, *rest = self.parameters.values()
        positional = first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD)
        require(positional, "The first argument is the meanings.")
        require(rest and rest[0].default is None, "The second argument must be `messages=None`: a Language has both.")
        wanting = [p.name for p in self.conventions.values() if p.default is p.empty]
        require(
            set(wanting) <= set(self.entry.defaults),
            f"{' and '.join(wanting)} must have a default; `icy.metrics.evaluate` calls metrics without conventions.",
        )

    def check_score(self) -> None:
        """The score of a common table is a finite number, and states its number of rows."""
        score = self.usual
        require(not score.why, f"A common table of {ROWS} rows has no value: {score.why}.")
        require_score(score, ROWS, f"On a common table of {ROWS} rows")

    def check_documented_range(self) -> str:
        """Values lie in the range that the docstring states, as in "A score in [0, 1]"."""
        least, most = _range(inspect.getdoc(self.entry.load()) or "")
        scores = {"the usual table": self.usual, **{what: score for what, (_, score) in self.degenerate.items()}}
        scores |= {f"{count} rows": self.scored(self.rows(draw=1, count=count)) for count in (10, 5)}
        for what, score in scores.items():
            if isinstance(score, Score) and not math.isnan(score.value):
                inside = least - CLOSE <= score.value <= most + CLOSE
                stated = f"the docstring says from {least:g} to {most:g}"
                require(inside, f"The value is {score.value:.6g} ({what}), but {stated}.")
        return f"from {least:g} to {most:g}"

    def check_conventions_repeat_the_value(self) -> None:
        """Every convention of a score is an argument; with these arguments the metric gives the same value."""
        score = self.usual
        given = {name: value for name, value in score.conventions.items() if value is not None}
        free = any(p.kind == p.VAR_KEYWORD for p in self.parameters.values())
        for name in given:
            require(free or name in self.conventions, f"The convention '{name}' of the score is not an argument.")
        again = self.score(*self.rows(), **given)
        require_same_score(again, score, f"With the conventions stated, {given}, and without")

    def check_choices_are_conventions(self) -> str:
        """An argument that changes the value is among the score's conventions."""
        score, tried = self.usual, []
        for name, other in self._others():
            try:
                moved = self.score(*self.rows(), **{name: other})
            except IcyError:  # the metric does not accept this value
                continue
            tried.append(f"{name}={other}")
            stated = dict(moved.conventions) != dict(score.conventions)
            change = f"{name}={other} changes the value from {score.value:.6g} to {moved.value:.6g}"
            sentence = f"{change}, but is not among the conventions of the score; add '{name}' to them."
            require(stated or agree(moved, score), sentence)
        if not tried:
            raise NotApplicable("no argument could be tried with another value")
        return f"tried {', '.join(tried)}"

    def _others(self) -> Iterator[tuple[str, float]]:
        """Yield arguments with a value that is not the default, for arguments with a value that can be guessed."""
        for name, parameter in self.conventions.items():
            default = self.entry.defaults.get(name, parameter.default)
            if isinstance(default, bool):
                yield name, not default
            elif isinstance(default, int):
                yield name, default + 1
            elif isinstance(default, float):
                yield name, default + 0.5
            elif name == "eos":
                yield name, 0

    def check_same_however_given(self) -> None:
        """Arrays, lists, strings, a pair, a Table and a Language with the same rows have the same score."""
        language = self.language()
        meanings, messages = language.space.all(), language.messages.astype(np.int64)
        expected = self.score(meanings, messages)
        forms: dict[str, tuple[object, ...]] = {
            "lists": (meanings.tolist(), messages.tolist()),
            "strings of letters": (meanings, ["".join(chr(ord("a") + t) for t in row) for row in messages.tolist()]),
        }
        if self.takes_one:
            both = meanings.copy(), messages.copy()
            forms |= {"a pair": (both,), "a Table": (Table.of(*both),), "a Language": (language,)}
        for what, given in forms.items():
            require_same_score(self.score(*given), expected, f"With {what} and with two arrays")

    def check_rows_in_any_order(self) -> None:
        """The order of the rows does not matter."""
        meanings, messages = self.rows()
        order = stream(self.seed, "testing", "order").permutation(ROWS)
        found = self.score(meanings[order], messages[order])
        require_same_score(found, self.usual, "Rows in another order and in the original order")

    def check_names_do_not_matter(self) -> None:
        """The names of tokens and of attribute values do not matter: a table numbers them in sorted order."""
        draws = stream(self.seed, "testing", "names")
        tokens, values = draws.permutation(TOKENS), [draws.permutation(VALUES) for _ in range(ATTRIBUTES)]
        meanings, messages = self.rows()
        renamed = np.stack([names[column] for names, column in zip(values, meanings.T, strict=True)], 1)
        for what, table in {"tokens": (meanings, tokens[messages]), "values": (renamed, messages)}.items():
            require_same_score(self.score(*copy.deepcopy(table)), self.usual, f"With {what} renamed and as before")

    def _scored_or_refused(self, table: Rows, where: str) -> str | None:
        score = self.scored(table)
        if not isinstance(score, Score):
            return f"refused: {score}"
        require_score(score, len(table[0]), where)
        return f"undefined: {score.why}" if score.why else None

    def check_ragged_messages(self) -> str | None:
        """Messages of different lengths have a score, or are refused with an IcyError."""
        meanings, messages = self.rows()
        ragged = [row[: 1 + i % len(row)] for i, row in enumerate(messages.tolist())]
        return self._scored_or_refused((meanings, ragged), "With messages of different lengths")

    def check_continuous_meanings(self) -> str | None:
        """Meanings that are real numbers have a score, or are refused with an IcyError."""
        _, messages = self.rows()
        meanings = stream(self.seed, "testing", "continuous").normal(size=(ROWS, ATTRIBUTES))
        return self._scored_or_refused((meanings, messages), "With meanings that are real numbers")

    def check_undefined_says_why(self) -> str:
        """Degenerate tables (one row, constant or empty messages, ...) have a finite value, or NaN and a reason."""
        undefined = []
        for what, (rows, score) in self.degenerate.items():
            if isinstance(score, Score):
                require_score(score, rows, f"With {what}")
            if not isinstance(score, Score) or score.why:
                undefined.append(what)
        return f"undefined for {', '.join(undefined)}" if undefined else "always defined"

    def check_resampled_rows(self) -> None:
        """Some rows of a Table, and rows drawn with replacement, have a score: the bootstrap needs both."""
        if not self.takes_one:
            raise NotApplicable("the metric does not accept a single Table, as the check 'arguments' reports")
        table, draws = Table.of(*self.rows()), stream(self.seed, "testing", "bootstrap")
        for what, which in (("some rows", np.arange(0, ROWS, 2)), ("drawn rows", draws.integers(ROWS, size=ROWS))):
            require_score(self.score(table.rows(which)), len(which), f"With {what} of a Table")

    def check_weights(self) -> None:
        """With `weighted=True`, rows with integer weights have the same score as rows repeated so many times."""
        if not self.entry.weighted:
            raise NotApplicable("the metric is not registered with weighted=True, so icy gives it repeated rows")
        weights = stream(self.seed, "testing", "weights").integers(1, 4, size=ROWS)
        meanings, messages = self.rows()
        found = self.score(Table.of(meanings, messages, weights=weights))
        require_score(found, ROWS, f"With weights of {ROWS} rows")
        repeated = self.score(meanings.repeat(weights, axis=0), messages.repeat(weights, axis=0))
        require_same_score(found, repeated, "With weights and with repeated rows")

    def check_refuses_what_is_no_table(self) -> None:
        """More meanings than messages, or no rows at all, are refused with an IcyError."""
        meanings, messages = self.rows()
        wrong = {"more meanings than messages": (meanings, messages[:-1]), "no rows": (meanings[:0], messages[:0])}
        for what, table in wrong.items():
            try:
                done = "is accepted" if isinstance(self.scored(table), Score) else ""
            except Exception as error:
                done = f"raises {type(error).__name__}"
            require(not done, f"A table with {what} {done}; icy.metrics.Table.of raises an IcyError.")

    def check_deterministic(self) -> None:
        """The same table has exactly the same score twice, even if other tables are measured in between."""
        first = self.score(*self.rows()).value
        self.score(*self.rows(draw=1, count=10))
        again = self.score(*self.rows()).value
        require(first == again or math.isnan(first + again), f"The same table has the values {first!r} and {again!r}.")

    def check_inputs_unchanged(self) -> None:
        """The metric does not change its meanings and messages."""
        meanings, messages = self.rows()
        forms: tuple[Callable[[Wholes], ArrayLike], ...] = (np.copy, np.ndarray.tolist)
        for form in forms:
            given = [form(meanings), form(messages)]
            before = copy.deepcopy(given)
            self.score(*given)
            for what, some, expected in zip(("meanings", "messages"), given, before, strict=True):
                require(np.array_equal(some, expected), f"The metric changed the {what} in place; work on a copy.")


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
    advice = "if it is undefined, return NaN and give the reason"
    require(not math.isinf(score.value), f"{where} the value is {score.value}; {advice}.")
    require(score.rows == rows, f"{where} the score has rows = {score.rows}, but there are {rows}.")
    if score.error is not None:
        require(math.isfinite(score.error) and score.error >= 0, f"{where} the standard error is {score.error}.")
        require(score.error_of, f"{where} the score has an error but no `error_of`; name its source.")


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
