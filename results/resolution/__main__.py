"""Measure the resolution of ratios, and the cost of evaluations: `python -m results.resolution [--cost]`.

Each row is trained under the protocol `acquire` twice from the same words, weights and batches: with the default
grid of evaluations, and with an evaluation after every update. The latter has so many meanings that its step of
the target is taken as the true step. Training does not depend on evaluations, so the ratios differ only by them.

`early` simulates evaluations of runs of the atlas around their target, many times each, and compares the first
crossing with the true crossing. With `--cost`, the share of evaluations in a row's processor time is measured again
and saved in checks.csv. Writes results/resolution/resolution.md; after an interruption it resumes from
results/resolution/runs.
"""

from __future__ import annotations

import csv
import math
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import icy
from icy.config.protocols import reached_at
from icy.core.machine import device_name
from icy.core.text import markdown_table
from icy.records.load import load_records
from icy.records.long_table import answers_of
from icy.records.record import Record, checks_of
from icy.training.engine import Probes
from results.pages import describe_versions, fill_template, read_options

HERE = Path(__file__).parent
PAGE, COSTS = HERE / "resolution.md", HERE / "checks.csv"
ROWS = {"receiver/CNN": "5x10", "receiver/FC": "5x10", "receiver/FC2L": "5x10", "sender/FC1L": "5x10",
        "sender/FC2L": "5x10", "receiver/RNN1L:GRU": "3x4", "sender/HierZero:GRU": "3x4"}  # fmt: skip
# Ratios of longer training are resolved equally well. Fast rows have more seeds, and only grammars without cut runs.
USUAL: dict[str, Any] = {"grammar": ("perm", "rot", "proj"), "seeds": 3, "cap": 4}
FAST: dict[str, dict[str, Any]] = {
    **{name: {"grammar": ("perm", "shufdet"), "seeds": 10, "cap": 20} for name in ("receiver/FC", "receiver/FC2L")},
    "sender/FC2L": {"grammar": ("perm", "proj"), "seeds": 10, "cap": 4},
}
GRIDS: dict[str, dict[str, Any]] = {
    "default": {}, "every update": {"check_every": 1, "evaluation_size": 4096},
}  # fmt: skip
DRAWS = 400  # simulated curves of a run
WINDOW = 8  # evaluations up to the crossing, for the fit of a line: the last half of the updates
AROUND = 6  # simulated curves start and end this many standard deviations of an evaluation from the target


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Yield a dict that receives the processor time of evaluations and of the whole block."""
    spent, originals = {"checks": 0.0, "all": 0.0}, (Probes.read, Probes._measure)

    def clocked(original: Any) -> Any:
        def call(*args: Any) -> Any:
            began = time.process_time()
            try:
                return original(*args)
            finally:
                spent["checks"] += time.process_time() - began

        return call

    began = time.process_time()
    Probes.read, Probes._measure = map(clocked, originals)  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        Probes.read, Probes._measure = originals  # type: ignore[method-assign]
        spent["all"] = time.process_time() - began


def measure(model: str, space: str, grid: str) -> list[Record]:
    """Return the records of a row that is trained with a grid of evaluations."""
    sizes = {"meanings": space, **({"word_length": 2, "hidden": 32} if space == "3x4" else {})}
    where = {"out": HERE / "runs", "workers": 1, "device": "cpu", "progress": False}
    return list(icy.probe(model, settings=GRIDS[grid], **FAST.get(model, USUAL), **sizes, **where).records)


def share(model: str, space: str) -> float:
    """Return the share of evaluations in the processor time of a row with all grammars and the default cap."""
    sizes = {"meanings": space, **({"word_length": 2, "hidden": 32} if space == "3x4" else {})}
    with tempfile.TemporaryDirectory() as out, timed() as spent:
        icy.probe(model, seeds=1, out=out, workers=1, device="cpu", progress=False, **sizes)
    return spent["checks"] / spent["all"]


def measure_costs(models: list[str]) -> None:
    """Measure the share of evaluations of some rows, and replace their lines of COSTS."""
    found = costs() | {model: (share(model, ROWS[model]), describe_versions()) for model in models}
    with COSTS.open("w", newline="") as file:
        lines = [(model, f"{value:.4f}", versions) for model, (value, versions) in found.items()]
        csv.writer(file, lineterminator="\n").writerows([("model", "share", "versions"), *lines])


def costs() -> dict[str, tuple[float, str]]:
    """Return the measured share of evaluations, and the versions of the measurement, by model."""
    with COSTS.open(newline="") as file:
        return {row["model"]: (float(row["share"]), row["versions"]) for row in csv.DictReader(file)}


def crossing(record: Record) -> float:
    """Return the interpolated step at which a record with an evaluation after every update reached the target."""
    points = [(int(steps), float(reading)) for steps, reading in record["curve"]]
    for before, now in zip([None, *points], points, strict=False):
        if (found := reached_at(record["target"], before, now)) is not None:
            return found
    return math.nan


def steps_of(records: list[Record], dense: bool) -> dict[tuple[str, int], float]:
    """Return the step at which each grammar and seed reached the target, if it did."""
    return {
        (r["grammar"], r["seed"]): crossing(r) if dense else r["crossing"] for r in records if r["reason"] == "target"
    }


def lines(model: str, space: str) -> list[list[str]]:
    """Return the table lines of a row: a single line, or for fast rows a line per grammar."""
    found = {grid: measure(model, space, grid) for grid in GRIDS}
    own, true = (steps_of(found[grid], dense) for grid, dense in (("default", False), ("every update", True)))
    long = icy.ProbeResult(found["default"]).to_dataframe().set_index(["grammar", "seed"])["resolution"]
    both = [place for place in own if place in true and place[0] != "concat"]
    error = {
        (grammar, seed): math.log(own[grammar, seed] / own["concat", seed])
        - math.log(true[grammar, seed] / true["concat", seed])
        for grammar, seed in both
    }
    concat = statistics.fmean(steps for (grammar, _), steps in own.items() if grammar == "concat")
    grammars = list(dict.fromkeys(grammar for grammar, _ in both))
    shown = []
    for group in [[grammar] for grammar in grammars] if model in FAST else [grammars]:
        errors = [value for (grammar, _), value in error.items() if grammar in group]
        claimed, real = root_mean_square([long[p] for p in both if p[0] in group]), root_mean_square(errors)
        numbers = [f"{claimed:.1%}", f"{real:.1%}", f"{claimed / real:.2f}", f"{statistics.fmean(errors):+.1%}"]
        shown.append([model, space, ", ".join(group), f"{concat:.1f}", str(len(errors)), *numbers])
    return shown


def root_mean_square(values: list[float]) -> float:
    """Return the root mean square of values."""
    return math.sqrt(statistics.fmean(value**2 for value in values))


# -- the first crossing of a noisy curve -------------------------------------------------------------------------------


def early(record: Record, draws: np.random.Generator) -> float | None:
    """Return the mean relative error of a run's first crossing of the target; None if the curve does not rise."""
    settings, at = checks_of(record), record.get("crossing")
    points = np.array(record["curve"], float)[-WINDOW:]
    if settings is None or not at or len(points) < 3:
        return None
    slope = float(np.polyfit(np.log(points[:, 0]), points[:, 1], 1)[0])
    if slope <= 0:
        return None
    target, checks = record["target"], [1]
    spread = math.sqrt(target * (1 - target) / answers_of(record))
    while slope * math.log(checks[-1] / at) < AROUND * spread / math.sqrt(settings.check_size(checks[-1])):
        checks.append(settings.next_check(checks[-1]))
    noise = spread / np.sqrt([settings.check_size(check) for check in checks])
    steps = np.array(checks, float)
    keep = slope * np.log(steps / at) > -AROUND * noise
    steps, noise = steps[keep], noise[keep]
    if len(steps) < 2:
        return None
    readings = target + slope * np.log(steps / at) + noise * draws.standard_normal((DRAWS, len(steps)))
    first = np.argmax(readings >= target, axis=1)
    rows, before = np.arange(DRAWS), np.maximum(first - 1, 0)
    low, high = readings[rows, before], readings[rows, first]
    part = np.where(first > 0, (target - low) / np.where(first > 0, high - low, 1), 1)
    return float(np.mean((steps[before] + part * (steps[first] - steps[before])) / at - 1))


def early_lines() -> list[list[str]]:
    """Return a line per side and grammar with the error of the first crossing of the atlas's runs at 5x10."""
    draws, found = np.random.default_rng(1), {}
    for record in load_records(HERE.parent / "atlas" / "records.parquet"):
        setting = (record["protocol"], record["meanings"], record["representation"], record["reason"])
        if setting != ("acquire", "5x10", "soft", "target"):
            continue
        if (error := early(record, draws)) is not None:
            found.setdefault((record["side"], record["grammar"]), []).append(error)
    lines = []
    for (side, grammar), errors in sorted(found.items()):
        lines.append([side, grammar, str(len(errors)), *(f"{np.quantile(errors, q):+.1%}" for q in (0.5, 0.1))])
    return lines


def page(models: list[str]) -> str:
    """Return the text of the page."""
    headings = ["model", "meanings", "grammars", "concat", "ratios", "claimed", "real", "claimed / real", "mean error"]
    of_checks = [[model, ROWS[model], f"{costs()[model][0]:.1%}", costs()[model][1]] for model in ROWS]
    missing = [model for model in ROWS if model not in models]
    return fill_template(
        PAGE,
        left=", ".join(missing) or "none",
        rows=markdown_table(headings, [found for model in models for found in lines(model, ROWS[model])]),
        device=device_name("cpu"),
        versions=describe_versions(),
        draws=DRAWS,
        window=WINDOW,
        early=markdown_table(["side", "grammar", "runs", "median", "10th percentile"], early_lines()),
        costs=markdown_table(["model", "meanings", "share", "measured with"], of_checks),
    )


def main() -> None:
    options = read_options(
        __doc__,
        models=({"nargs": "*", "default": list(ROWS)}, "rows to measure (default: all)"),
        cost=(False, "measure the share of evaluations of these rows again"),
    )
    if options.cost:
        measure_costs(options.models)
    text = page(options.models)
    PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
