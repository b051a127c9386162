"""Which settings matter: an analysis of variance of results over all settings in which they differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy

from icy.analysis.order import Facts, text_of, without_repeats
from icy.analysis.statistics import CONFIDENCE, Mask, Values, holm, log_summary, student
from icy.config.protocols import BASELINE
from icy.core.choices import typed_text
from icy.core.errors import IncompatibleError
from icy.core.text import counted, listed
from icy.records.load import Results, long_of
from icy.records.long_table import ROW, option_columns, usual_settings

INTERACTIONS, SEEDS, CUT = "interactions", "seeds", "cut"  # the rows of `factors` after the factors
FAMILY = ["role", "job_kind", "protocol", "measure"]  # runs that differ in these are analyzed separately
MOST_JOINED = 3  # names of a factor of several columns
MOST_NAMED = 2  # combinations in the row of cut runs
MOST_FITS = 100  # until it is known which bounds count
SAME = 1e-9  # a smaller difference from a bound is a rounding error
NEGLIGIBLE = 1e-12  # a smaller fraction of the sum of squares is a rounding error
COLUMNS = [*FAMILY, "factor", "levels", "freedom", "share", "p", "p_holm", "larger", "smaller", "effect", "low", "high"]


def factors(results: Results) -> pd.DataFrame:
    """Return how much of the variance of results each setting explains, with its largest contrast and a test.

    A factor is a column or an option in which the runs differ: the architecture and the cell of models that all have a
    cell (else the model), sizes, representation, settings of training, and the grammar. The logarithms of ratios, or
    the accuracies, are explained by effects that add up: a weighted least-squares fit to the mean of each combination
    of levels. A factor explains a sum of squares after all other factors (type II), so a factor is not
    credited with another one if some combinations were not run. Seeds are replicates: they give the error of the tests.
    With one seed per combination, the interactions of the factors take its place.

    Runs that repeat others count once (`icy.analysis.mixed_effects`), and concat is left out if its ratio is 1 by
    definition. Cut runs count as larger ratios (`icy.analysis.statistics.log_summary`). If only a bound of the mean of
    a combination is known, the fit is penalized only if it is below the bound.

    Args:
        results: a ProbeResult, a long table, or the path of results.

    Returns:
        A row per factor of each side, kind of job, protocol and measure, by decreasing share, then the rows
        "interactions" (the rest of the variance between combinations) and "seeds", and a row "cut" if only a bound
        is known for some combinations: `levels` is their number, and `larger` names them. `levels` of factors: number
        of levels. `freedom`: degrees of freedom; 0 if other factors cannot be separated. `share`: fraction of the
        sum of squares of all runs; shares sum to 1 if all combinations were run equally often. `p`, and `p_holm`,
        corrected by Holm's method over the rows. `larger`, `smaller`: the two levels that differ most (of interactions:
        the two factors that interact most). `effect`: their quotient of ratios, or their difference of accuracies,
        with the ends `low` and `high` of its 95 % interval (Student's t; for all pairs of levels together, by
        Bonferroni's method). `high` is infinite if `effect` is a lower bound because of cut runs, and `low` is 0 (of
        accuracies: minus infinity) if it is an upper bound.

    Raises:
        IncompatibleError: all runs have the same settings, or the mean of less than half of the combinations is known.

    Example:
        >>> import pandas as pd
        >>> from icy.analysis import factors
        >>> rows = [(size, seed, 2.0 * size / 64 * 1.1 ** seed) for size in (64, 128) for seed in (-1, 1)]
        >>> long = pd.DataFrame(rows, columns=["hidden_size", "seed", "value"]).assign(model="sender/A", grammar="rot")
        >>> factors(long.assign(measure="ratio"))[["factor", "share", "effect"]].round(2).values.tolist()
        [['hidden_size', 0.93, 2.0], ['seeds', 0.07, nan]]
    """
    long = long_of(results)
    long = without_repeats(long[~long["failed"].astype(bool) & long["value"].notna()])
    long = long[long["measure"].ne("ratio") | long["grammar"].ne(BASELINE)].reset_index(drop=True)
    tables = [_analyzed(dict(zip(FAMILY, key, strict=True)), part) for key, part in long.groupby(FAMILY, dropna=False)]
    rows = [row for table in tables for row in table]
    if not rows:
        raise IncompatibleError(
            "These runs differ only in their seeds: add results with another setting, such as another hidden size."
        )
    return pd.DataFrame(rows, columns=COLUMNS)


# -- factors and combinations ------------------------------------------------------------------------------------------


def _analyzed(about: Facts, long: pd.DataFrame) -> list[Facts]:
    """Return the rows of one kind, protocol and measure; none if its runs differ only in their seeds."""
    levels = _levels(long)
    if not levels:
        return []
    ratio, names = about["measure"] == "ratio", list(levels)
    runs = long[["value", "censored"]].astype({"value": float, "censored": bool}).assign(**levels)
    found = [(*_mean(part, ratio), *part[names].iloc[0]) for _, part in runs.groupby(names, sort=False)]
    cells = pd.DataFrame(found, columns=["y", "seeds", "squares", "bound", *names])
    bounds = cells.loc[cells["bound"], names]
    if 2 * len(bounds) > len(cells):
        raise IncompatibleError(
            f"Runs of {len(bounds)} of {counted(len(cells), 'combination')} of settings were cut, so that only a bound "
            "of their mean is known: select grammars and models that reached the target, or train with "
            "--protocol budget."
        )
    rows = [{**about, **row, **_ends(row, ratio)} for row in _Fit(cells, names).rows()]
    if len(bounds):
        texts = [" ".join(map(str, row)) for row in bounds.to_numpy()]
        rows.append({**about, "factor": CUT, "levels": len(bounds), "larger": listed(texts, most=MOST_NAMED)})
    return rows


def _mean(runs: pd.DataFrame, ratio: bool) -> tuple[float, int, float, bool]:
    """Return the mean (of logarithms of ratios), the runs that it counts for, their squares, and if it is a bound."""
    values = runs["value"].to_numpy()
    if not ratio:
        return float(values.mean()), len(values), float(((values - values.mean()) ** 2).sum()), False
    found = log_summary(values, runs["censored"].to_numpy())
    squares = 0.0 if math.isnan(found.deviation) else found.freedom * found.deviation**2
    runs_of_mean = len(values) if found.bound else found.freedom + 1
    return math.log(found.center), runs_of_mean, squares, bool(found.bound)


def _levels(long: pd.DataFrame) -> dict[str, list[str]]:
    """Return the level of each run by factor, as text; settings that always change together are one factor."""
    alike: dict[bytes, dict[str, list[str]]] = {}
    for name, values in _settings(long):
        texts = [text_of(value) for value in values]
        codes, known = pd.factorize(np.array(texts, object))
        if len(known) > 1:
            alike.setdefault(codes.tobytes(), {})[name] = texts
    found = {}
    for columns in alike.values():
        shown, more = list(columns)[:MOST_JOINED], ", ..." * (len(columns) > MOST_JOINED)
        found[", ".join(shown) + more] = [", ".join(row) for row in zip(*(columns[n] for n in shown), strict=True)]
    return found


def _settings(long: pd.DataFrame) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield each setting with its value in every run."""
    names = long["model"].astype(str)
    if names.str.fullmatch(r"[^:+]+:[^:+]+").all():
        for name, values in names.str.extract("(?:.*/)?(?P<architecture>.*):(?P<cell>.*)").items():
            yield str(name), values.tolist()
    else:
        yield "model", names.tolist()
    for name in ROW:
        if name not in ("model", "settings", "options"):
            yield name, long[name].tolist()
    for column in ("settings", "options"):
        usual: list[Mapping[str, object]] = [{}] * len(long)
        if column == "settings":
            usual = [usual_settings(*row) for row in zip(long["preset"], long["job_kind"], strict=True)]
        for name, given in option_columns(long, column).items():
            pairs = zip(given, usual, strict=True)
            yield str(name), [typed_text(old.get(str(name), "")) if own is None else own for own, old in pairs]
    yield "grammar", long["grammar"].tolist()


# -- the fit -----------------------------------------------------------------------------------------------------------


class _Solution(NamedTuple):
    """A fitted design.

    Attributes:
        left: sum of squares that the design leaves.
        effects: coefficients.
        root: root of their covariance, a row per dimension of the design and a column per coefficient; in units of
            the error.
        held: for each combination, whether its mean is a bound that the fit without it would not reach.
    """

    left: float
    effects: Values
    root: Values
    held: Mask


@dataclass(frozen=True)
class _Fit:
    """Effects of factors that add up to the means of combinations of their levels.

    Attributes:
        cells: a row per combination: its mean `y`, whether this is only a lower `bound`, its number of `seeds`, the sum
            of `squares` of its runs around the mean, and its levels.
        names: the factors.
    """

    cells: pd.DataFrame
    names: list[str]

    def _dummies(self, names: Sequence[str], *crossed: str) -> pd.DataFrame:
        """Return the design matrix: a column of ones, a column per level of each factor, and per pair of `crossed`."""
        keys = {name: self.cells[name] for name in names}
        if crossed:
            keys["\0"] = self.cells[list(crossed)].agg("\0".join, axis=1)
        levels = [pd.get_dummies(key, name, "\0", dtype=float) for name, key in keys.items()]
        return pd.concat([pd.Series(1.0, self.cells.index, name="all"), *levels], axis=1)

    def _solved(self, design: pd.DataFrame) -> _Solution:
        """Fit a design by least squares, in which a combination with a bound counts only if its fit is not larger."""
        x, y, bounds = (one.to_numpy() for one in (design, self.cells["y"], self.cells["bound"]))
        used = np.ones(len(y), bool)
        for _ in range(MOST_FITS):
            weights = used * np.sqrt(self.cells["seeds"].to_numpy(float))
            u, sizes, v = np.linalg.svd(x * weights[:, None], full_matrices=False)
            kept = sizes > sizes.max() * max(x.shape) * np.finfo(float).eps
            root = v[kept] / sizes[kept, None]
            effects = root.T @ (u[:, kept].T @ (y * weights))
            gaps = y - x @ effects
            before, used = used, ~bounds | (gaps > -SAME)
            if (used == before).all():
                break
        return _Solution(float(((gaps * weights) ** 2).sum()), effects, root, used & bounds)

    @cached_property
    def _whole(self) -> _Solution:
        return self._solved(self._dummies(self.names))

    @cached_property
    def _error(self) -> tuple[float, int]:
        """The variance of a run around the mean of its combination, and its degrees of freedom."""
        known = self.cells[~self.cells["bound"]]
        freedom = int(known["seeds"].sum()) - len(known)
        if freedom:
            return float(known["squares"].sum()) / freedom, freedom
        freedom = len(known) - len(self._whole.root)
        return (self._whole.left / freedom, freedom) if freedom > 0 else (math.nan, 0)

    def rows(self) -> list[Facts]:
        """Return the factors by decreasing share, then interactions and seeds."""
        known, whole = self.cells[~self.cells["bound"]], self._whole
        within = float(self.cells["squares"].sum())
        total = within + self._solved(self._dummies([])).left
        if not total:
            raise IncompatibleError("All values are equal, so no setting matters.")
        found = []
        for name in self.names:
            other = self._solved(self._dummies([one for one in self.names if one != name]))
            row = self._row(name, other.left - whole.left, len(whole.root) - len(other.root), total)
            found.append({**row, "levels": self.cells[name].nunique(), **self._contrast(name)})
        found.sort(key=lambda row: -row["share"])
        between = len(known) - len(whole.root)
        if between > 0 and len(self.names) > 1:
            pairs = list(combinations([row["factor"] for row in found], 2))
            left = {pair: self._solved(self._dummies(self.names, *pair)).left for pair in pairs}
            first, second = min(left, key=lambda pair: left[pair])
            row = self._row(INTERACTIONS, whole.left, between, total)
            found.append({**row, **({"larger": first, "smaller": second} if row["share"] else {})})
        corrected = holm([row["p"] for row in found])
        found = [{**row, "p_holm": p} for row, p in zip(found, corrected, strict=True)]
        freedom = int(known["seeds"].sum()) - len(known)
        return [*found, *([{"factor": SEEDS, "freedom": freedom, "share": within / total}] if freedom else [])]

    def _row(self, name: str, squares: float, freedom: int, total: float) -> Facts:
        """Return the share and the test of a factor or of interactions."""
        squares = squares if squares > NEGLIGIBLE * total else 0.0
        error, of_error = self._error
        p = math.nan
        if freedom and of_error and (name != INTERACTIONS or self.cells["squares"].any()):
            tiny = error * of_error <= NEGLIGIBLE * total
            f = (math.inf if squares else 0.0) if tiny else squares / freedom / error
            p = float(scipy.special.fdtrc(freedom, of_error, f)) if math.isfinite(f) else 0.0
        return {"factor": name, "freedom": freedom, "share": squares / total, "p": p}

    def _contrast(self, name: str) -> Facts:
        """Return the two levels with the largest difference, the difference, and half the width of its interval.

        The difference is a lower `bound` if a larger mean of a held combination would increase it, and an upper one
        (`below`) if it would decrease it.
        """
        _, effects, root, held = self._whole
        design = self._dummies(self.names)
        columns = list(map(str, design))
        own = [place for place, column in enumerate(columns) if column.startswith(f"{name}\0")]
        own.sort(key=lambda place: -effects[place])  # so that the first of a pair is the larger
        projector = np.linalg.pinv(root) @ root
        units = np.eye(len(columns))
        pairs = sorted(combinations(own, 2), key=lambda pair: effects[pair[1]] - effects[pair[0]])
        for high, low in pairs:
            weights = units[high] - units[low]
            if np.allclose(projector @ weights, weights, atol=1e-8):  # not two levels that other factors separate
                break
        else:
            return {}
        error, freedom = self._error
        spread = math.sqrt(error) * float(np.linalg.norm(root @ weights))
        width = student(freedom, 1 - (1 - CONFIDENCE) / len(pairs)) * spread
        larger, smaller = (columns[place].partition("\0")[2] for place in (high, low))
        slopes = (weights @ root.T @ root @ design.to_numpy().T)[held]  # by the means of held combinations
        found = {"larger": larger, "smaller": smaller, "effect": float(effects @ weights)}
        return {**found, "width": width, "bound": bool((slopes > SAME).any()), "below": bool((slopes < -SAME).any())}


def _ends(row: Facts, ratio: bool) -> Facts:
    """Return the effect of a contrast with the ends of its interval; for ratios, as quotients."""
    if "effect" not in row:
        return {}
    down, up = (math.inf if row[name] else row["width"] for name in ("below", "bound"))
    ends = row["effect"] + np.array([0.0, -down, up])
    return dict(zip(("effect", "low", "high"), (np.exp(ends) if ratio else ends).tolist(), strict=True))
