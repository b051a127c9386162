"""Which languages survive in chains of learners? `python -m results.iterated [--train first|senders|bottlenecks]...`.

Run the sweeps of this folder into runs/, starting from the records in
records.parquet, which is committed; add all records to this file, and write iterated.md and
its pictures. Run it again to continue, on any machine. Without --train, only pack and write.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from icy.experiments.results import ProbeResult
from results.pages import RecordFolder, describe_packs, fill_template, run_sweeps

HERE = Path(__file__).parent
PAGE, RECORDS = HERE / "iterated.md", RecordFolder(HERE)
STAGES = ("first", "senders", "bottlenecks")
NO_RECORDS = "chains; none has been trained yet"


def page(results: dict[str, ProbeResult]) -> str:
    """Return the page."""
    records = describe_packs(RECORDS.pack) if RECORDS.pack.exists() else NO_RECORDS
    return fill_template(PAGE, records=records, results="").rstrip() + "\n"


def main(words: Sequence[str] | None = None) -> None:
    PAGE.write_text(page(run_sweeps(__doc__, words, RECORDS, STAGES)), encoding="utf-8")


if __name__ == "__main__":
    main()
