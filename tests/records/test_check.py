"""Checks of records: fields, types, keys and numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import icy
from icy.analysis import bias_table
from icy.core.entry import Entry
from icy.core.errors import InvalidSettingError, StoreError
from icy.core.registry import registry
from icy.experiments.results import ProbeResult
from icy.experiments.trackers import curve_of, metrics_of, parameters_of
from icy.records.check import checked, config_fault
from icy.records.load import load_records
from icy.records.long_table import to_long
from icy.records.pack import Pack
from icy.records.record import Record, record_key
from icy.records.store import Store
from tests.helpers import on_file

ROOT = Path(__file__).parents[2]
REKEYED = ("model", "grammar", "protocol")


def rekeyed(record: Any) -> Any:
    """A handwritten record, with the key of its configuration."""
    versions = {name: record["versions"][name] for name in REKEYED}
    return {**record, "key": record_key(record["config"], versions)}


def without(*names: str) -> Any:
    return {name: value for name, value in on_file().items() if name not in names}


def configured(**changes: Any) -> Any:
    record: Any = on_file()
    return rekeyed({**record, "config": {**record["config"], **changes}})


def test_valid_records_are_not_changed() -> None:
    for record in (on_file(), on_file(failed=True, reason="error", error="no"), {**on_file(), "new": {"field": [1]}}):
        assert checked(record) is record
        assert checked(json.dumps(record)) == checked(json.dumps(record).encode(), record["key"]) == record  # type: ignore[index]
    failure: Any = {n: v for n, v in on_file(failed=True).items() if n not in ("steps", "accuracy", "curve")}
    assert checked(failure) is failure


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["tests/records/version-0.1", "results/reproduced/records.parquet", "results/atlas/records.parquet"]
)  # fmt: skip
def test_records_of_icy_are_valid(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """All records in the repository are valid, whatever version wrote them."""
    found = Pack.read(ROOT / path)
    assert found.left_out == 0
    assert found.records
    assert not caplog.messages


def folder(path: Path, records: list[Any]) -> Path:
    (path / "records").mkdir(parents=True)
    for number, record in enumerate(records):
        name = record["key"] if isinstance(record, dict) and str(record.get("key")).isalnum() else number
        (path / "records" / f"{name}.json").write_text(json.dumps(record))
    return path


def saved(path: Path, records: list[Any]) -> Path:
    path.with_suffix(".json").write_text(json.dumps({"icy result": 1, "records": records}))
    return path.with_suffix(".json")


def packed(path: Path, records: list[Any]) -> Path:
    import hashlib

    texts = [json.dumps(record, sort_keys=True) for record in records]
    parts = sorted(hashlib.sha256(text.encode()).hexdigest() for text in texts)
    about = {"sha256": hashlib.sha256("".join(parts).encode()).hexdigest()}
    import pyarrow
    import pyarrow.parquet

    columns = {"key": [str(n) for n in range(len(texts))], "record": texts, "files": [[] for _ in texts]}
    schema = pyarrow.schema(
        {
            "key": pyarrow.string(),
            "record": pyarrow.string(),
            "files": pyarrow.map_(pyarrow.string(), pyarrow.large_binary()),
        },
        metadata={b"icy pack": json.dumps(about).encode()},
    )
    pyarrow.parquet.write_table(pyarrow.table(columns, schema), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


WRITERS: list[Callable[[Path, list[Any]], Path]] = [folder, saved, packed]


@pytest.mark.parametrize("write", WRITERS)
def test_an_unreadable_record_does_not_affect_others(
    write: Callable[[Path, list[Any]], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = [on_file(), on_file("perm")]
    wrong = [without("steps"), {**on_file("hol"), "steps": "many"}, without("versions")]
    odd = [{**one, "key": f"{number:020}"} for number, one in enumerate(wrong)]
    place = write(tmp_path / "results", [odd[0], good[0], odd[1], good[1], odd[2]])
    found = ProbeResult.load(place)
    assert sorted(r["key"] for r in found.records) == sorted(r["key"] for r in good)
    assert "rot" in found.table("markdown")
    named = [message for message in caplog.messages if "is not a readable result and is left out" in message]
    assert len(named) == 3
    assert all(str(place) in message for message in named)
    assert len(Pack.read(place).records) == 2


@pytest.mark.parametrize("write", WRITERS)
def test_only_unreadable_records_are_an_error(write: Callable[[Path, list[Any]], Path], tmp_path: Path) -> None:
    place = write(tmp_path / "results", [without("steps")])
    if write is packed:  # an empty pack is a pack
        assert load_records(place) == []
        return
    with pytest.raises(StoreError, match="has no results"):
        load_records(place)


def test_a_copy_of_a_pack_with_unreadable_records_is_kept(tmp_path: Path) -> None:
    from icy.records.pack import add_to_pack

    place = packed(tmp_path / "pack", [without("steps"), on_file()])
    before = place.read_bytes()
    add_to_pack(place, folder(tmp_path / "same", [on_file()]))
    assert place.read_bytes() == before  # no new records
    add_to_pack(place, folder(tmp_path / "more", [on_file("perm")]))
    assert Pack.read(place).left_out == 0
    assert len(Pack.read(place).records) == 2
    assert (tmp_path / "pack.parquet.odd").read_bytes() == before


def assert_shows(record: Record) -> None:
    """All valid records can be shown in tables and plots, and tracked."""
    table = to_long([record])
    bias_table(table, mark=False).render("text")
    assert len(table) == 1
    assert parameters_of(record)
    assert metrics_of(record) is not None
    assert curve_of(record) is not None


values = st.integers() | st.floats() | st.sampled_from([
    *(None, True, "", "x", "ratio", "\0", [], [1], ["x"], [[]], [[1]], [[1, None, 3]], [[None]], [["x"]], {}),
    *({"true": 1}, {"settings": 1}, {"true": None}, {"": ""}, 10**30, -(10**400), "2026-01-01", "0001-01-01T00:00"),
])  # fmt: skip
places = st.sampled_from(sorted([*Record.__annotations__, "nothing"]))


@settings(deadline=None)
@given(st.dictionaries(places, values, max_size=3), st.booleans())
def test_valid_records_can_be_shown(changes: dict[str, Any], own_key: bool) -> None:
    """A record with changed fields is either left out, or can be read everywhere."""
    record: Any = {**on_file(), **changes}
    if own_key and isinstance(record["config"], dict):
        repeated = {name: record[name] for name in record["config"] if name in changes}
        record["config"] = {**record["config"], **repeated}
        record["versions"] = on_file()["versions"]
        try:
            record = rekeyed(record)
        except (ValueError, OverflowError):
            return
    try:
        found = checked(record)
    except ValueError:
        return
    assert_shows(found)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"target": "high"}, 'target is "high" (expected `float`, got `str`)'),
        ({"cap": math.inf}, "it has a value that JSON cannot store"),
        ({"options": {"a": math.nan}}, "it has a value that JSON cannot store"),
        ({"options": {"a": {1, 2}}}, "it has a value that JSON cannot store"),
        ({"options": {"a": {True: 1}}}, "it has a value that JSON cannot store"),
        ({"options": {"a": (1, 2)}, "cap": 20}, None),
    ],
)
def test_a_configuration_that_cannot_be_stored_is_rejected(config: dict[str, Any], said: str | None) -> None:
    fault = config_fault(config)
    assert fault is None if said is None else str(fault).startswith(said)


def test_an_invalid_configuration_is_rejected_before_training(tmp_path: Path) -> None:
    def mine(space: Any, message_length: int, vocab_size: int, hidden_size: int, *, a: float = 1.0) -> Any:
        return icy.create_sender("FC1L", space, message_length, vocab_size, hidden_size)

    with (
        registry.holding(Entry("sender", "Mine", mine, "", "")),
        pytest.raises(InvalidSettingError, match="of kind 'probe' cannot be stored: it has a value that JSON"),
    ):
        icy.probe("sender/Mine", "perm", options={"a": math.nan}, quick=True, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_resumed_run_trains_unreadable_records_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    words: Any = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 1, "target": 0.5, "workers": 1}
    first = icy.probe("sender/FC1L", "perm", **words, out=tmp_path)
    path = Store(tmp_path).path(first.records[1]["key"])
    path.write_text(odd := json.dumps({n: v for n, v in first.records[1].items() if n != "steps"}))
    again = icy.probe("sender/FC1L", "perm", **words, out=tmp_path)
    assert [r["steps"] for r in again.records] == [r["steps"] for r in first.records]
    assert again.records[0] == first.records[0]
    assert again.records[1]["finished"] > first.records[1]["finished"]
    assert path.with_name(f"{path.name}.odd").read_text() == odd
    assert json.loads(path.read_text()) == again.records[1]
    assert sum(str(path) in message for message in caplog.messages) == 2  # left out, and its file is kept


@pytest.mark.parametrize("changes", [{"steps": 10**13}, {"baseline_crossing": 1e-200, "crossing": 5.0}])
def test_a_record_of_an_impossible_ratio_is_left_out(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"its ratio is .*, not from 0 to 1e\+10"):
        checked(on_file(**changes))
