"""Measure the size and the loading time of reports: `python -m benchmarks.report_size`.

Writes reports of increasing numbers of runs from the committed records, and the explorer of the atlas. Opens each in
Chromium without a network, and measures the time until tables, pictures and buttons respond. Needs the extra `browser`.
Writes benchmarks/report-size.md.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import icy
from benchmarks.harness import fastest
from icy.analysis.report.explorer import explorer_page
from icy.core.machine import device_name
from icy.core.text import markdown_table
from icy.experiments.results import ProbeResult, read_results
from results.pages import describe_versions, fill_template
from tests.browsers import driven

HERE = Path(__file__).parent
PAGE = HERE / "report-size.md"
PACKS = [HERE.parent / "results" / name / "records.parquet" for name in ("atlas", "reproduced")]
RUNS, REPEATS = (100, 500, 2500), 3
MADE_UP, SEEDS = 3000, 2  # models of an artificial table with 4 grammars


def opening(path: Path) -> float:
    """Open a page in Chromium, and return the seconds until it responds."""
    found = []
    for _ in range(REPEATS):
        with driven(offline=True, viewport={"width": 1280, "height": 900}) as context:
            page = context.new_page()
            began = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("body[data-ready]")
            page.wait_for_function("[...document.querySelectorAll('.chart')].every((one) => one.textContent)")
            found.append(time.perf_counter() - began)
    return statistics.median(found)


def made_up() -> pd.DataFrame:
    """Return a long table of many models, without curves."""
    draw = np.random.default_rng(0)
    rows = [
        {"model": f"sender/M{model:04d}", "grammar": grammar, "seed": seed, "measure": "ratio", "protocol": "acquire",
         "value": 1.0 if grammar == "concat" else draw.uniform(0.8, 8), "steps": draw.integers(50, 5000)}
        for model in range(MADE_UP) for grammar in ("concat", "perm", "rot", "hol") for seed in range(SEEDS)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def main() -> None:
    whole = read_results(PACKS)
    assert isinstance(whole, ProbeResult)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        reports = [(f"report of {count:,} runs", ProbeResult(whole.records[:count])) for count in RUNS]
        table = made_up()
        reports.append((f"table of {len(table):,} runs of {MADE_UP:,} models", table))
        for number, (what, runs) in enumerate(reports):
            path = Path(scratch, f"{number}.html")
            rows.append((what, path, fastest(lambda: icy.report(runs, path))[1]))  # noqa: B023
        path = Path(scratch, "atlas.html")
        explorer = fastest(lambda: path.write_text(explorer_page(icy.atlas())))
        rows.append(("explorer of the atlas", path, explorer[1]))
        cells = [
            [what, f"{path.stat().st_size / 1e6:.1f} MB", f"{wrote:.1f} s", f"{opening(path):.1f} s"]
            for what, path, wrote in rows
        ]
    table = markdown_table(["file", "size", "written in", "answers after"], cells)
    PAGE.write_text(fill_template(PAGE, table=table, device=device_name("cpu"), versions=describe_versions()))


if __name__ == "__main__":
    main()
