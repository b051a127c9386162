"""Which settings matter: an analysis of variance of results over all settings in which they differ."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
import scipy

from icy.analysis.repeats import without_repeats
from icy.analysis.row_types import Facts
from icy.analysis.statistics import CONFIDENCE, Values, holm, log_summary, student
from icy.analysis.wording import text_of
from icy.config.protocols import BASELINE
from icy.core.choices import typed_text
from icy.core.errors import IncompatibleError
from icy.core.text import counted, listed
from icy.records.load import Results, long_of
from icy.records.long_table import ROW, options_of, usual_settings

log = logging.getLogger(__name__)
INTERACTIONS, SEEDS = "interactions", "seeds"  # the rows of `factors` after the factors
FAMILY = [
    "role",
    "job_kind",
    "protocol",
    "measure",
]  # runs with different values in these columns are analyzed separately
MOST_JOINED = 3  # names of a factor of several columns
MOST_NAMED = 6  # levels in a warning
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
    definition. Cut runs count as larger ratios (`icy.analysis.statistics.log_summary`). Where only a bound is known for
    a combination, its grammar or model is left out altogether, with a warning.

    Args:
        results: a ProbeResult, a long table, or the path of results.

    Returns:
        A row per factor of each side, kind of job, protocol and measure, by decreasing share, then the rows
        "interactions" (the rest of the variance between combinations) and "seeds". `levels`: number of levels.
        `freedom`: degrees of freedom; 0 if the effect cannot be separated from other factors. `share`: fraction of the
        sum of squares of all runs; shares sum to 1 if all combinations were run equally often. `p`, and `p_holm`,
        corrected by Holm's method over the rows. `larger`, `smaller`: the two levels that differ most. `effect`: their
        quotient of ratios, or their difference of accuracies, with the ends `low` and `high` of its 95 % interval
        (Student's t; for all pairs of levels together, by Bonferroni's method).

    Raises:
        IncompatibleError: all runs have the same settings, or too many were cut, so that less than half of the
            combinations would remain.

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
    cells = _known(pd.DataFrame(found, columns=["y", "seeds", "squares", *names]), names)
    fit = _Fit(cells, [name for name in names if cells[name].nunique() > 1])
    return [{**about, **row, **_ends(row, ratio)} for row in fit.rows()]


def _known(cells: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return combinations of levels with a known mean, without the levels that are most often cut, with a warning.

    If only the cut combinations were left out, a slow model would be judged by the grammars that it learns.

    Raises:
        IncompatibleError: less than half of the combinations remain, or a single one.
    """
    kept, left_out = cells, []
    while kept["y"].isna().any():
        shares = {
            (name, level): share
            for name in names
            for level, share in kept["y"].isna().groupby(kept[name]).mean().items()
        }
        name, level = max(shares, key=lambda one: shares[one])
        left_out.append(f"{name} {level}")
        kept = kept[kept[name] != level]
    if left_out:
        cut = (
            f"Runs of {cells['y'].isna().sum()} of {counted(len(cells), 'combination')} of settings were cut, so that "
        )
        cut += "only a bound of their mean is known"
        if len(kept) < len(cells) / 2 or not any(kept[name].nunique() > 1 for name in names):
            raise IncompatibleError(
                f"{cut}: select grammars and models that reached the target, or train with --protocol budget."
            )
        log.warning("%s. Left out: %s.", cut, listed(left_out, most=MOST_NAMED))
    return kept


def _mean(runs: pd.DataFrame, ratio: bool) -> tuple[float, int, float]:
    """Return the mean (of logarithms of ratios; NaN for a bound), the runs that were not cut, and their squares."""
    values = runs["value"].to_numpy()
    if not ratio:
        return float(values.mean()), len(values), float(((values - values.mean()) ** 2).sum())
    found = log_summary(values, runs["censored"].to_numpy())
    squares = 0.0 if math.isnan(found.deviation) else found.freedom * found.deviation**2
    return math.nan if found.bound else math.log(found.center), found.freedom + 1, squares


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
        given = [options_of(text) for text in long[column]]
        usual: list[Mapping[str, object]] = [{}] * len(long)
        if column == "settings":
            usual = [usual_settings(*row) for row in zip(long["preset"], long["job_kind"], strict=True)]
        for name in dict.fromkeys(name for one in given for name in one):
            yield name, [one.get(name, typed_text(old.get(name, ""))) for one, old in zip(given, usual, strict=True)]
    yield "grammar", long["grammar"].tolist()


# -- the fit -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fit:
    """Effects of factors that add up to the means of combinations of their levels.

    Attributes:
        cells: a row per combination: its mean `y`, its number of `seeds`, the sum of `squares` of its runs around the
            mean, and its levels.
        names: the factors.
    """

    cells: pd.DataFrame
    names: list[str]

    def _dummies(self, without: str = "") -> pd.DataFrame:
        """Return the design matrix: a column of ones, and a column per level of each factor."""
        names = [name for name in self.names if name != without]
        levels = [pd.get_dummies(self.cells[name], name, "\0", dtype=float) for name in names]
        return pd.concat([pd.Series(1.0, self.cells.index, name="all"), *levels], axis=1)

    def _solved(self, design: pd.DataFrame) -> tuple[float, Values, Values]:
        """Return the sum of squares that a design leaves, its coefficients, and a root of their covariance.

        The root has a row per dimension of the design and a column per coefficient; it is in units of the error.
        """
        weights = np.sqrt(self.cells["seeds"].to_numpy(float))
        x, y = design.to_numpy() * weights[:, None], self.cells["y"].to_numpy() * weights
        u, sizes, v = np.linalg.svd(x, full_matrices=False)
        kept = sizes > sizes.max() * max(x.shape) * np.finfo(float).eps
        u, root = u[:, kept], v[kept] / sizes[kept, None]
        return float(((y - u @ (u.T @ y)) ** 2).sum()), root.T @ (u.T @ y), root

    @cached_property
    def _whole(self) -> tuple[float, Values, Values]:
        return self._solved(self._dummies())

    @cached_property
    def _error(self) -> tuple[float, int]:
        """The variance of a run around the mean of its combination, and its degrees of freedom."""
        freedom = int(self.cells["seeds"].sum()) - len(self.cells)
        if freedom:
            return float(self.cells["squares"].sum()) / freedom, freedom
        freedom = len(self.cells) - len(self._whole[2])
        return (self._whole[0] / freedom, freedom) if freedom else (math.nan, 0)

    def rows(self) -> list[Facts]:
        """Return the factors by decreasing share, then interactions and seeds."""
        seeds, (left, _, root) = self.cells["seeds"], self._whole
        within = float(self.cells["squares"].sum())
        total = within + float((seeds * (self.cells["y"] - np.average(self.cells["y"], weights=seeds)) ** 2).sum())
        found = []
        for name in self.names:
            other, _, smaller = self._solved(self._dummies(name))
            found.append(self._row(name, other - left, len(root) - len(smaller), total))
        found.sort(key=lambda row: -row["share"])
        between = len(self.cells) - len(root)
        if between and len(self.names) > 1:
            found.append(self._row(INTERACTIONS, left, between, total))
        corrected = holm([row["p"] for row in found])
        found = [{**row, "p_holm": p} for row, p in zip(found, corrected, strict=True)]
        freedom = int(seeds.sum()) - len(self.cells)
        return [*found, *([{"factor": SEEDS, "freedom": freedom, "share": within / total}] if freedom else [])]

    def _row(self, name: str, squares: float, freedom: int, total: float) -> Facts:
        """Return the share and the test of a factor, and its largest contrast with the error and the factor's width."""
        squares = squares if squares > NEGLIGIBLE * total else 0.0
        error, of_error = self._error
        own = name != INTERACTIONS or of_error == int(self.cells["seeds"].sum()) - len(self.cells)
        p = math.nan
        if freedom and of_error and own:
            tiny = error * of_error <= NEGLIGIBLE * total
            f = (math.inf if squares else 0.0) if tiny else squares / freedom / error
            p = float(scipy.special.fdtrc(freedom, of_error, f)) if math.isfinite(f) else 0.0
        levels = {"levels": self.cells[name].nunique(), **self._contrast(name)} if name in self.names else {}
        return {"factor": name, "freedom": freedom, "share": squares / total, "p": p, **levels}

    def _contrast(self, name: str) -> Facts:
        """Return the two levels with the largest difference, the difference, and half the width of its interval."""
        _, effects, root = self._whole
        columns = [str(name) for name in self._dummies()]
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
        return {"larger": larger, "smaller": smaller, "effect": float(effects @ weights), "width": width}


def _ends(row: Facts, ratio: bool) -> Facts:
    """Return the effect of a contrast with the ends of its interval; for ratios, as quotients."""
    if "effect" not in row:
        return {}
    ends = row["effect"] + np.array([0.0, -row["width"], row["width"]])
    return dict(zip(("effect", "low", "high"), (np.exp(ends) if ratio else ends).tolist(), strict=True))
