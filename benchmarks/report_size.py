"""Measure reports: `python -m benchmarks.report_size`, into benchmarks/report-size.md.

Write reports of more and more runs of the committed records, and the explorer of the atlas; open each in a Chromium
without a network, and take the time until tables, pictures and buttons answer. Needs the extra `browser`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import icy
from icy.analysis.report.explorer import explorer_page
from icy.core.provenance import device_name
from icy.core.text import markdown_table
from icy.experiments.results import ProbeResult, read_results
from results.pages import describe_versions
from tests.browsers import driven

HERE = Path(__file__).parent
PAGE = HERE / "report-size.md"
PACKS = [HERE.parent / "results" / name / "records.parquet" for name in ("atlas", "reproduced")]
RUNS, REPEATS = (100, 500, 2500), 3
MADE_UP, SEEDS = 3000, 2  # models of a made-up table with 4 grammars


def opening(path: Path) -> float:
    """Return the seconds until a page answers."""
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
        for count in RUNS:
            path, began = Path(scratch, f"{count}.html"), time.perf_counter()
            icy.report(ProbeResult(whole.records[:count]), path)
            rows.append([f"report of {count:,} runs", path, time.perf_counter() - began])
        table, path, began = made_up(), Path(scratch, "made-up.html"), time.perf_counter()
        icy.report(table, path)
        rows.append([f"table of {len(table):,} runs of {MADE_UP:,} models", path, time.perf_counter() - began])
        path, began = Path(scratch, "atlas.html"), time.perf_counter()
        path.write_text(explorer_page(icy.atlas()))
        rows.append(["explorer of the atlas", path, time.perf_counter() - began])
        cells = [
            [what, f"{path.stat().st_size / 1e6:.1f} MB", f"{wrote:.1f} s", f"{opening(path):.1f} s"]
            for what, path, wrote in rows
        ]
    text = [
        "# Reports: size and time",
        "",
        "Made by `python -m benchmarks.report_size`. Vega takes 0.9 MB of each file. Answering: from "
        "opening the file "
        "until its tables sort and all pictures are drawn, in Chromium without a network, the median of three.",
        "",
        markdown_table(["file", "size", "written in", "answers after"], cells),
        "",
        f"On {device_name('cpu')}; {describe_versions()}.",
    ]
    PAGE.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
