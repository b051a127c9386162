"""How much of a ratio's variance is the language's? `python -m results.words_weights [--train small|middle|large]...`.

Run the sweeps of this folder into runs/, starting from the records in records.parquet, which is committed; add all
records to this file, and write words-weights.md and its picture. Run it again to continue, on any machine. Without
--train, only pack and write.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from icy.experiments.results import ProbeResult
from results.pages import RecordFolder, describe_packs, fill_template, run_sweeps

HERE = Path(__file__).parent
PAGE, RECORDS = HERE / "words-weights.md", RecordFolder(HERE)
STAGES = ("small", "middle", "large")


def page(results: dict[str, ProbeResult]) -> str:
    """Return the page."""
    records = f"records made with {describe_packs(RECORDS.pack)}" if RECORDS.pack.exists() else "no records yet"
    return fill_template(PAGE, records=records, results="")


def main(words: Sequence[str] | None = None) -> None:
    PAGE.write_text(page(run_sweeps(__doc__, words, RECORDS, STAGES)).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
