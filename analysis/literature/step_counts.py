"""Published numbers of updates to a target accuracy: jobs that retrain the models, and comparison of the counts."""

from __future__ import annotations

import math

import pandas as pd

from icy.analysis.row_types import Facts, Row, Series

from .agreement import EVALUATIONS
from .verdicts import USUAL_SIZE, judge_runs, verdict_of

SEEDS = 5  # the paper does not say how many runs it had
HIDDEN = 50  # hidden size for models without hidden units, as the job needs a number
READINGS = {**EVALUATIONS, "clock": True, "training_readings": True}
ONE_HOT = "Composed[{}embedding=onehot]"  # the early senders read the meaning by a linear layer
EARLY = {
    "RNNZero:GRU": ONE_HOT.format(""),
    "RNNZero:LSTM": ONE_HOT.format("cell=LSTM,"),
    "RNNAutoReg:GRU": ONE_HOT.format("feedback=true,"),
}
LEAST_CAP = {"sender": 5, "receiver": 15}
SLACK, CAP_STEP = 1.4, 5
LARGEST = 100  # ratios above this one are not reached: they cost more than the rest of the table
FAR_ERRORS = 3  # icy's mean differs from a printed bound if it is this many standard errors below


def step_parts(reference: pd.DataFrame, seeds: object = None) -> list[Facts]:
    """Return the arguments of `icy.probe` that retrain published models, a dict per space and model.

    Grammars other than concat are trained for at most `cap` times concat's updates. The cap is SLACK times the largest
    printed ratio of the model up to LARGEST, and at least LEAST_CAP. Senders are the early ones, without the start
    symbol.

    Args:
        reference: cells of the published table, with the column `meanings`.
        seeds: seeds; by default SEEDS.

    Example:
        >>> from icy.analysis import published
        >>> part = step_parts(published("perkins21/table7").query("model == 'FC2L' and meanings == '3x10'"))[0]
        >>> part["model"], part["grammar"], part["target"], part["cap"]
        ('sender/FC2L', ['perm', 'rot', 'shuf', 'hol'], 0.9, 45)
    """
    parts = []
    for (meanings, side, model, target), rows in reference.groupby(["meanings", "role", "model", "target"], sort=False):
        grammars = [str(g) for g in dict.fromkeys(rows["grammar"]) if g != "concat"]
        hidden = rows["hidden_size"].iloc[0]
        parts.append(
            {
                "model": f"{side}/{EARLY.get(str(model), model)}",
                "grammar": grammars or ["concat"],
                "meanings": str(meanings),
                "protocol": "acquire",
                "target": float(str(target)),
                "cap": _cap(rows, LEAST_CAP[str(side)]),
                "hidden": HIDDEN if pd.isna(hidden) else int(hidden),
                "seeds": SEEDS if seeds is None else seeds,
                "settings": READINGS | ({"symbols": "V"} if side == "sender" else {}),
            }
        )
    return parts


def _cap(rows: pd.DataFrame, least: int) -> int:
    steps = rows[rows["measure"] == "steps"]
    ratios = steps["mean"] / steps.loc[steps["grammar"] == "concat", "mean"].max()
    ratio = ratios[ratios <= LARGEST].max()
    return least if math.isnan(ratio) else max(least, CAP_STEP * math.ceil(SLACK * ratio / CAP_STEP))


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
    """Return the steps of the results of a cell, or the accuracies of runs that were cut."""
    if not len(long):
        return long
    model, of_steps = EARLY.get(cell["model"], cell["model"]), cell["measure"] == "steps"
    of = long["model"].eq(cell["role"] + "/" + model) & long["meanings"].eq(cell["meanings"])
    of &= long["grammar"].eq(cell["grammar"]) & long["target"].astype(float).eq(cell["target"])
    runs = long.loc[of, [cell["measure"], "failed", "censored"]].set_axis(["value", "failed", "censored"], axis=1)
    return runs if of_steps else runs[runs["censored"]].assign(censored=False)


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
