"""Published numbers of updates to a target accuracy: jobs that retrain the models, and comparison of the counts."""

from __future__ import annotations

import math

import pandas as pd

from icy.analysis.row_types import Facts, Row, Series

from .verdicts import USUAL_SIZE, judge_runs, verdict_of

SEEDS = 5  # the paper does not say how many runs it had
HIDDEN = 50  # hidden size for models without hidden units, as the job needs a number
CHECK_EVERY = 10  # updates between evaluations; the smallest printed number is 31
LEAST_CAP, SLACK, CAP_STEP = 15, 1.4, 5
FAR_ERRORS = 3  # icy's mean differs from a printed bound if it is this many standard errors below
LEFT_OUT = ("shuf",)  # a grammar for receivers: a sender can only memorize it


def step_parts(reference: pd.DataFrame, seeds: object = None) -> list[Facts]:
    """Return the arguments of `icy.probe` that retrain published models, a dict per space and model.

    Grammars other than concat are trained for at most `cap` times concat's updates. The cap is SLACK times the largest
    printed ratio of the model, and at least LEAST_CAP.

    Args:
        reference: cells of the published table, with the column `meanings`.
        seeds: seeds; by default SEEDS.

    Example:
        >>> from icy.analysis import published
        >>> part = step_parts(published("perkins21/table7").query("model == 'FC2L' and meanings == '3x10'"))[0]
        >>> part["model"], part["grammar"], part["target"], part["cap"]
        ('sender/FC2L', ['perm', 'rot', 'hol'], 0.9, 45)
    """
    parts = []
    for (meanings, model, target), rows in reference.groupby(["meanings", "model", "target"], sort=False):
        grammars = [str(g) for g in dict.fromkeys(rows["grammar"]) if g not in ("concat", *LEFT_OUT)]
        hidden = rows["hidden_size"].iloc[0]
        parts.append(
            {
                "model": f"sender/{model}",
                "grammar": grammars or ["concat"],
                "meanings": str(meanings),
                "protocol": "acquire",
                "target": float(str(target)),
                "cap": _cap(rows[~rows["grammar"].isin(LEFT_OUT)]),
                "hidden": HIDDEN if pd.isna(hidden) else int(hidden),
                "seeds": SEEDS if seeds is None else seeds,
                "settings": {"check_every": CHECK_EVERY},
            }
        )
    return parts


def _cap(rows: pd.DataFrame) -> int:
    steps = rows[rows["measure"] == "steps"]
    ratio = steps["mean"].max() / steps.loc[steps["grammar"] == "concat", "mean"].max()
    return LEAST_CAP if math.isnan(ratio) else max(LEAST_CAP, CAP_STEP * math.ceil(SLACK * ratio / CAP_STEP))


def judge_steps(long: pd.DataFrame, reference: pd.DataFrame) -> pd.DataFrame:
    """Compare results with published numbers of updates; see `icy.analysis.literature.verdicts.judge_cells`.

    The paper does not say how many runs it had, so each number counts as a single run. If it prints a lower bound, or
    icy's runs were cut, the verdict is "differs" only if the two are incompatible.

    Args:
        long: results of `icy.probe` in long form.
        reference: rows of `icy.analysis.published`.

    Returns:
        The table of `judge_cells` with the column `bound`; the column `representation` holds the space.
    """
    runs = [_runs(long, cell) for cell in reference.to_dict("records")]
    known = reference.fillna({"n": 1, "hidden_size": USUAL_SIZE}).astype({"n": int, "hidden_size": int})
    cells = judge_runs(known.assign(representation=reference["meanings"]), runs, _verdict)
    return cells.assign(bound=reference["bound"].to_list())


def _runs(long: pd.DataFrame, cell: Row) -> pd.DataFrame:
    """Return the steps of the results of a cell."""
    if not len(long) or cell["measure"] != "steps":
        return long[:0]
    of = long["model"].eq(f"sender/{cell['model']}") & long["meanings"].eq(cell["meanings"])
    of &= long["grammar"].eq(cell["grammar"]) & long["target"].astype(float).eq(cell["target"])
    return long.loc[of, ["steps", "failed", "censored"]].rename(columns={"steps": "value"})


def _verdict(cell: Series) -> str:
    """Return the verdict on a cell. The published or the measured number may be a lower bound."""
    bound = cell["bound"]
    if not cell["seeds"]:
        return verdict_of(cell)
    if pd.notna(bound):
        apart = cell["icy"] + FAR_ERRORS * cell["icy_error"] < bound
        return "cut in both" if cell["censored"] else "differs" if apart else "cut in one"
    if cell["censored"]:
        apart = cell["censored"] == cell["seeds"] and cell["icy"] > cell["published"]
        return "differs" if apart else "cut in one"
    return verdict_of(cell)
