"""Records: key, value, and description of the run."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import icy
from icy.core.errors import StoreError, UnknownNameError
from icy.records.record import record_key, value_of
from icy.records.saved_models import records_with_models, require_one
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


# -- records with saved models, chosen by their facts ------------------------------------------------------------------


QUICK = {"quick": True, "workers": 1, "progress": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a probe with saved models, and of a probe without."""
    found = tmp_path_factory.mktemp("kept")
    icy.probe("sender/FC1L", "perm", seeds=2, target=0.3, keep_models=True, out=found, **QUICK)  # type: ignore[misc]
    icy.probe("sender/FC1L", "rot", seeds=1, target=0.3, out=found, **QUICK)  # type: ignore[misc]
    return found


def test_records_with_models_are_found(folder: Path) -> None:
    where, found = records_with_models(folder, "probe", "model", grammar="perm")
    assert where == folder
    assert sorted(record["seed"] for record in found) == [123, 124]
    assert len(records_with_models(folder, "probe", "model", hidden_size=32, seed=124)[1]) == 2  # concat too


def test_unmatched_choices_give_an_error(folder: Path) -> None:
    with pytest.raises(StoreError, match=r"has no model with grammar=rot"):
        records_with_models(folder, "probe", "model", grammar="rot")
    with pytest.raises(UnknownNameError, match=r"No field of the saved model is called 'sed'; did you mean seed"):
        records_with_models(folder, "probe", "model", sed=1)
    with pytest.raises(StoreError, match="with saved weights"):
        records_with_models(folder, "s2b", "agent")


def test_ambiguous_choices_name_their_differences(folder: Path) -> None:
    _, found = records_with_models(folder, "probe", "model")
    with pytest.raises(
        StoreError, match=r"4 saved models that match, .* grammar \(.*\) and seed \(123, 124\); choose one, as in gram"
    ):
        require_one(folder, found)
    _, alone = records_with_models(folder, "probe", "model", grammar="perm", seed=124)
    require_one(folder, alone)
    with pytest.raises(StoreError, match=r"with seed=9; available: seed \(123, 124\)\.$"):
        records_with_models(folder, "probe", "model", seed=9)
    assert records_with_models(folder, "probe", "model", channel="soft")[1] == found  # the name of this field in games
