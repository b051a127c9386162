"""Records: key, value, and description of the run."""

from __future__ import annotations

import json
import math
from pathlib import Path

from icy.records.record import record_key, value_of
from tests.helpers import record

FAILED = {"failed": True, "reason": "error", "error": "ValueError: no", "steps": None, "accuracy": None}


def test_values() -> None:
    assert value_of(record("rot", 1, 250)) == 2.5
    assert value_of(record("rot", 1, 267, config={"settings": {"round_ratio": True}, "options": {}})) == 2.7
    assert value_of(record("rot", 1, 250, measure="accuracy")) == 0.81
    assert math.isnan(value_of(record("rot", 1, 250, **FAILED)))
    assert math.isnan(value_of(record("rot", 1, 250, baseline=0)))


def test_key_depends_on_configuration_and_versions() -> None:
    key = record_key({"a": 1, "b": 2}, {"model": "1"})
    assert key == record_key({"b": 2, "a": 1}, {"model": "1"})
    assert key != record_key({"a": 1, "b": 3}, {"model": "1"})
    assert key != record_key({"a": 1, "b": 2}, {"model": "2"})
    assert key == record_key({"a": 1.0, "b": 2}, {"model": "1"})  # 20 and 20.0 are the same cap
    assert key != record_key({"a": 1.5, "b": 2}, {"model": "1"})


def test_a_record_describes_its_run(tiny: object, tiny_folder: Path) -> None:
    record = json.loads(next((tiny_folder / "records").glob("*.json")).read_text())
    assert record["config"]["settings"]["clip_norm"] == 5.0
    assert {"icy", "python", "torch", "numpy", "model", "grammar", "protocol"} <= set(record["versions"])
    assert record["device"] == "cpu"
    assert record["seconds"] > 0
    assert record["curve"][-1][0] == record["steps"]
    assert record["key"] == record_key(
        record["config"], {k: record["versions"][k] for k in ("model", "grammar", "protocol")}
    )


def test_only_names_of_files_are_shortened_in_a_key() -> None:
    """Before files of meanings there was the same rule for grammars, so old keys remain."""
    for name in ("grammar", "existing"):
        assert record_key({name: "mine@1a2b3c4d5e6f7081"}, {}) == record_key({name: "yours@1a2b3c4d5e6f7081"}, {})
        assert record_key({name: None}, {}) != record_key({name: "None"}, {})
