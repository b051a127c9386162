"""No table pools results of several settings into one row, whatever the kind of job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import IcyError
from icy.experiments.plan import make_plan
from icy.experiments.results import ProbeResult
from icy.records.kinds import job_kind
from icy.study.rows import rows_of_long

BASE: dict[str, dict[str, Any]] = {
    "probe": {"model": "sender/FC2L", "grammar": "perm", "meanings": "2x3", "seeds": 1},
    "e2e": {"sender": "FC2L", "receiver": "FC1L", "pretrain": "perm", "meanings": "2x3", "seeds": 1},
    "s2b": {"quick": True, "seeds": 1},
    "games": {"quick": True, "seeds": 1},
    "study": {"player": "FC1L", "dataset": "synth", "grammar": "perm", "instances": 1},
}
CHANGES: dict[str, dict[str, Any]] = {
    "probe": {
        "hidden": 64, "representation": "discr", "protocol": "budget", "target": 0.7, "cap": 5, "vocab_size": 5,
        "settings": {"learning_rate": 0.01}, "preset": "published",
    },
    "e2e": {
        "hidden": 64, "representation": "discr", "pretrain_representation": "gumb", "steps": 10, "most": 10,
        "report_every": 7, "settings": {"learning_rate": 0.01},
    },
    "s2b": {"shots": 2, "most": 4, "least": 3, "game": {"query": "tss"}, "updates": 7, "core": "joint", "deaf": True},
    "games": {
        "channel": "gs", "rule_length": 2, "distractors": 4, "message_length": 2, "sender_hidden": 32,
        "sender_sees": "both", "settings": {"learning_rate": 0.01}, "distractor_kind": "near", "preset": "published",
    },
    "study": {
        "hidden": 64, "representation": "discr", "list_seed": 1, "preset": "published", "protocol": "converged",
        "dataset": "eng", "settings": {"learning_rate": 0.01},
    },
}  # fmt: skip


def results(kind: str, changes: dict[str, Any], out: Path) -> ProbeResult:
    """Return results, made up, of a plan of a kind of job with and without a change."""
    found: dict[str, Any] = {}
    for change in ({}, changes):
        spec = job_kind(kind).load_spec().asked(**{**BASE[kind], **change, "out": out})
        for row in make_plan(spec).rows:
            for replicate in row.job.replicates:
                good = {"failed": False, "reason": "steps", "steps": 10, "value": 0.5, "accuracy": 0.5}
                record: Any = {**row.job.failure(replicate, IcyError()), **good}
                found[record["key"]] = record
    return ProbeResult(list(found.values()))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, changes in CHANGES.items() for name in changes])
def test_settings_have_rows_of_their_own(kind: str, name: str, tmp_path: Path) -> None:
    result = results(kind, {name: CHANGES[kind][name]}, tmp_path)
    table = result.whole_table()
    labels = [tuple(texts) for texts, _ in table.rows]
    assert len(set(labels)) == len(labels) >= 2
    assert all(cell.seeds <= 1 for _, cells in table.rows for cell in cells.values())
    if kind == "study":
        rows = rows_of_long(result.to_dataframe())
        exact = rows[(rows["metric"] == "exact") & (rows["split"] == "held-out")]
        assert len(exact) == 2
        assert not exact.duplicated(["agent", "protocol", "preset", "dataset", "grammar"]).any()
