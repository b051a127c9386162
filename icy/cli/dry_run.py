"""`--dry-run`: the planned training and its estimated time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from icy.core.text import counted, duration
from icy.experiments.plan import Plan, Row
from icy.experiments.run import require_engine
from icy.training.same_networks import warn_of_same_networks

from .output import note, print_rows, stderr

if TYPE_CHECKING:
    from icy.experiments.estimate import Estimate

PLAN_HEADINGS = ["model", "parameters", "to train", "1000 updates", "in all"]
RAW_HEADINGS = [
    "model", "hidden_size", "meanings", "representation", "protocol", "preset", "settings", "parameters",
    "parameters_published", "to_train", "on_file", "grammars", "update_seconds", "least_seconds", "most_seconds",
    "timed",
]  # fmt: skip


def print_plan(plan: Plan, format_: str, quiet: bool) -> None:
    """Print the rows of a plan with their estimated costs, and the basis of the estimates."""
    warn_of_same_networks(row.job for row in plan.rows)
    require_engine(plan.rows)
    start = time.monotonic() - click.get_current_context().find_root().meta["icy.began"]
    from icy.experiments.estimate import estimate  # imports torch

    if not quiet and plan.total:
        note(f"Timing a few updates of {counted(len(plan.rows), 'row')} ...")
    with contextlib.nullcontext() if quiet else stderr().status("") as status:
        found = estimate(plan, report=status.update if status else lambda doing: None)
    estimates = {one.row.job.row: one for one in found}
    if format_ in ("csv", "json"):
        print_rows(RAW_HEADINGS, [_raw_cells(plan, row, estimates.get(row.job.row)) for row in plan.rows], format_)
    else:
        headings = [PLAN_HEADINGS[0], *plan.varying, *PLAN_HEADINGS[1:]]
        print_rows(headings, [_plan_cells(plan, row, estimates.get(row.job.row)) for row in plan.rows], format_)
    if not quiet:
        _explain_estimate(plan, found, start)


def _raw_cells(plan: Plan, row: Row, found: Estimate | None) -> list[Any]:
    from icy.experiments.estimate import on_workers

    parameters, grammars = row.job.parameters, " ".join(dict.fromkeys(r.condition for r in row.job.replicates))
    times = [found.update_seconds, *on_workers([found], plan.workers), found.timed] if found else [None] * 4
    counts = [parameters.get("true"), parameters.get("published"), len(row.missing), len(row.filed)]
    facts = [row.facts.get(name) for name in ("meanings", "representation", "protocol", "preset", "settings")]
    hidden = row.facts.get("hidden size")
    return [row.name, None if hidden is None else int(hidden), *facts, *counts, grammars, *times]


def _plan_cells(plan: Plan, row: Row, found: Estimate | None) -> list[str]:
    from icy.experiments.estimate import on_workers

    true, published = row.job.parameters.get("true", "-"), row.job.parameters.get("published", "-")
    count = f"{true}" if true == published else f"{true}/{published}"
    replicates = f"{len(row.missing)} of {len(row.job.replicates)}"
    times = [duration(1000 * found.update_seconds), _range(on_workers([found], plan.workers))] if found else ["-"] * 2
    return [row.name, *(row.facts.get(name, "-") for name in plan.varying), count, replicates, *times]


def _explain_estimate(plan: Plan, estimates: Sequence[Estimate], start: float) -> None:
    from icy.experiments.estimate import on_workers
    from icy.experiments.expected_updates import QUANTILES

    for text in {row.job.side: row.job.conditions_text() for row in plan.rows}.values():
        if text is not None:
            note(text)
    if any(row.job.parameters.get("true") != row.job.parameters.get("published") for row in plan.rows):
        note("Parameters are trained parameters; the published count is after the stroke.")
    if not plan.total:
        note(f"Nothing to train: {sum(len(row.filed) for row in plan.rows)} on file in {plan.store.folder}.")
        return
    what, workers = counted(plan.total, "replicate"), counted(max(1, plan.workers), "worker")
    where = "the Ray cluster" if plan.runner == "ray" else plan.device
    times = "the time cannot be estimated"
    if estimates:
        low, high = on_workers(estimates, plan.workers)
        times = _range((low + start if low else 0, high + start))
    note(f"{what} on {where} with {workers}: {times}. Nothing was trained or written.")
    if not estimates:
        return
    if left_out := sum(bool(row.missing) for row in plan.rows) - len(estimates):
        note(f"This does not include {counted(left_out, 'row')}, which cannot be estimated.")
    updates = [one for found in estimates for one in found.updates.values()]
    between = dict.fromkeys((round(min(one.low for one in updates)), round(max(one.high for one in updates))))
    records = ", the {:.0%} and {:.0%} quantiles of similar records".format(*QUANTILES)
    needed = records if any(one.low < one.high for one in updates) else ""
    note(f"The time of an update was measured; a replicate takes {' to '.join(map(str, between))} updates{needed}.")
    if capped := sum(one.capped for one in updates):
        note(f"No record is similar to {counted(capped, 'replicate')}: its upper end is the maximum number of updates.")
    if untimed := sum(not found.timed for found in estimates):
        note(
            f"{len(estimates) - untimed} of {len(estimates)} rows were timed; of the others, an update is assumed to "
            "take as long as in the timed row of the next larger size."
        )


def _range(seconds: tuple[float, float]) -> str:
    """Return a range of durations."""
    low, high = (duration(end) for end in seconds)
    return f"at most {high}" if not seconds[0] else f"about {low}" if low == high else f"about {low} to {high}"
