"""Packs keep all results, are read like folders, and runs resume from them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import icy
from icy.cli import main
from icy.core.errors import StoreError
from icy.experiments.plan import make_plan
from icy.records.load import load_records, long_of
from icy.records.pack import Pack, add_to_pack, is_pack, merge_packs
from icy.records.store import Store
from icy.training.probe_settings import ProbeRequest
from tests.helpers import on_file

OLD = Path(__file__).parent / "version-0.1"
GIVEN: dict[str, Any] = {
    "model": "sender/FC1L",
    "grammar": "perm",
    "target": 0.5,
    "cap": 2,
    "seeds": 1,
    "meanings": "3x4",
    "word_length": 2,
    "hidden": 16,
    "workers": 1,
    "settings": {"check_every": 50},
}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A pack of results of version 0.1."""
    return Pack.read(OLD).write(tmp_path / "old.parquet")


def test_a_pack_keeps_records_and_files(pack: Path) -> None:
    assert is_pack(pack)
    found = Pack.read(pack)
    assert list(found.records) == Store(OLD).all_records()
    assert found.files == {f"languages/{path.name}": path.read_bytes() for path in (OLD / "languages").iterdir()}
    assert found.about["records"] == len(found.records) == 7


def test_a_pack_is_small(tmp_path: Path) -> None:
    many: Any = [{**record, "key": f"{record['key']}-{i}"} for record in load_records(OLD) for i in range(50)]
    size = Pack.of(many).write(tmp_path / "many.parquet").stat().st_size
    assert size < len(json.dumps(many)) / 10


@pytest.mark.slow
def test_a_pack_is_read_like_its_folder(pack: Path, tmp_path: Path) -> None:
    assert load_records(pack) == load_records(OLD)
    assert long_of(pack).equals(long_of(OLD))
    folder = shutil.copytree(OLD, tmp_path / "folder")
    shown = [CliRunner().invoke(main, ["table", str(place), "--format", "markdown"]).output for place in (pack, folder)]
    assert shown[0] == shown[1]
    assert "sender/FC1L" in shown[0]


def test_a_run_resumes_from_a_pack(pack: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"
    plan = make_plan(ProbeRequest.asked(**GIVEN, out=str(out), start=pack))
    assert plan.total == 0
    assert not out.exists()  # a plan writes no files
    result = icy.probe(**GIVEN, out=str(out), start=pack)
    assert result.records == [r for r in load_records(OLD) if r["model"] == "sender/FC1L"]
    assert {r["key"] for r in load_records(out)} == {r["key"] for r in load_records(OLD)}
    assert icy.EndToEndResult.load(out).language("perm").message_length == 6
    more = make_plan(ProbeRequest.asked(**{**GIVEN, "grammar": ["perm", "rot"]}, out=str(out), start=pack))
    assert [r.condition for row in more.rows for r in row.missing] == ["rot"]


def test_pack_delete_resume(pack: Path, tmp_path: Path) -> None:
    """With the command line, no replicate is trained twice, and no result is lost."""
    out, whole = tmp_path / "results", tmp_path / "whole.parquet"
    words = (
        "probe -m sender/FC1L -g rot --target 0.5 --cap 2 --seeds 1 --hidden 16 --meanings 3x4 --word-length 2 "
        f"--workers 1 --set check_every=50 -o {out} --from {pack}"
    ).split()
    assert CliRunner().invoke(main, words).exit_code == 0
    trained = {r["key"]: r["finished"] for r in load_records(out)}
    assert len(trained) == 8
    assert CliRunner().invoke(main, ["pack", str(pack), str(out), "-o", str(whole)]).exit_code == 0
    shutil.rmtree(out)
    again = CliRunner().invoke(main, [*words[:-1], str(whole)])
    assert "Nothing to train: 2 of 2 on file" in again.stderr
    assert {r["key"]: r["finished"] for r in load_records(out)} == trained


def test_adding_known_results_does_not_change_a_pack(pack: Path, tmp_path: Path) -> None:
    before = pack.read_bytes()
    add_to_pack(pack, OLD, tmp_path / "nowhere")
    assert pack.read_bytes() == before
    records = [on_file()]
    other = Pack.of(records).write(tmp_path / "other.parquet")
    assert len(add_to_pack(pack, other).records) == len(Pack.read(pack).records) == 8
    assert add_to_pack(tmp_path / "fresh.parquet", other).records == Pack.read(tmp_path / "fresh.parquet").records


def test_merging_drops_nothing_and_prefers_results() -> None:
    one_key, failed, twice = on_file(), on_file("perm", failed=True), on_file("hol", files=["x"])
    records: Any = [
        {**one_key, "failed": True, "filed": 2},
        {**one_key, "filed": 1},
        {**failed, "filed": 4},
        {**twice, "filed": 1},
        {**twice, "filed": 3},
    ]
    one = merge_packs([Pack.of(records[:2]), Pack.of(records[2:4], {"x": b"1"}), Pack.of(records[4:], {"x": b"2"})])
    assert [(r["grammar"], r["failed"], r["filed"]) for r in one.records] == [
        ("rot", False, 1),
        ("hol", False, 3),
        ("perm", True, 4),
    ]
    assert one.files == {"x": b"2"}


def test_unpacking_replaces_failures_only(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for record in (on_file(seed=0, failed=True, engine="here"), on_file(seed=1, engine="here")):
        store.put(record)
    packed = [on_file(seed=seed, engine="packed") for seed in range(3)]
    assert Pack.of(packed).unpack(store) == 2
    assert [store.get(r["key"])["engine"] for r in packed] == ["packed", "here", "packed"]  # type: ignore[index]
    assert packed == [store.get(r["key"]) for r in packed[:1]] + packed[1:]  # copied without a new number


def test_a_damaged_pack_is_rejected(tmp_path: Path) -> None:
    pack = Pack.read(OLD)
    changed = [dict(pack.records[0], steps=1), *pack.records[1:]]
    forged = Pack(changed, {}, pack.about).write(tmp_path / "forged.parquet")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="do not match its checksum"):
        Pack.read(forged)
    with pytest.raises(StoreError, match=r"is a \.parquet file"):
        pack.write(tmp_path / "pack.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="has no results"):
        Pack.read(tmp_path / "empty")
    (tmp_path / "text.parquet").write_text(json.dumps({}))
    with pytest.raises(StoreError, match="is not a pack"):
        Pack.read(tmp_path / "text.parquet")


def test_the_command_adds_to_an_existing_pack(pack: Path, tmp_path: Path) -> None:
    records = [on_file()]
    other = Pack.of(records).write(tmp_path / "other.parquet")
    done = CliRunner().invoke(main, ["pack", str(other), "-o", str(pack)])
    assert "8 replicates, including 7 that only this file had, " in done.stderr
    assert len(Pack.read(pack).records) == 8
    table = tmp_path / "results.csv"
    table.write_text("model\n")
    refused = CliRunner().invoke(main, ["pack", str(other), "-o", str(table)])
    assert (refused.exit_code, table.read_text()) == (1, "model\n")
    assert "exists and is not a pack" in refused.stderr


def test_a_damaged_pack_gives_an_error(pack: Path) -> None:
    content = bytearray(pack.read_bytes())
    content[len(content) // 8 : len(content) // 4] = bytes(len(content) // 4 - len(content) // 8)
    pack.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="is damaged"):
        Pack.read(pack)


def test_a_newer_record_without_a_model_does_not_replace_a_model() -> None:
    kept = on_file(files=["models/a.safetensors"], finished="2026-01-01")
    bare = on_file(finished="2026-01-02")
    whole = merge_packs([Pack.of([kept], {"models/a.safetensors": b"1"}), Pack.of([bare])])
    assert list(whole.records) == [kept]
    assert dict(whole.files) == {"models/a.safetensors": b"1"}


def test_files_belong_to_the_record_of_the_pack(tmp_path: Path) -> None:
    def made(day: str, content: bytes) -> Pack:
        record = on_file(files=["models/a.safetensors"], finished=f"{day}-01")
        return Pack.of([record], {"models/a.safetensors": content})

    for packs in (
        [made("2026-02", b"new"), made("2026-01", b"old")],
        [made("2026-01", b"old"), made("2026-02", b"new")],
    ):
        assert merge_packs(packs).files["models/a.safetensors"] == b"new"
    lacking = Pack.of(made("2026-02", b"").records).write(tmp_path / "pack.parquet")
    full = made("2026-02", b"new").write(tmp_path / "full.parquet")
    assert dict(add_to_pack(lacking, full).files) == dict(Pack.read(lacking).files) == {"models/a.safetensors": b"new"}


def test_a_run_copies_missing_models_from_a_pack(tmp_path: Path) -> None:
    words: Any = {**GIVEN, "settings": {}}
    icy.probe(**words, keep_models=True, out=tmp_path / "kept")
    pack = Pack.read(tmp_path / "kept").write(tmp_path / "kept.parquet")
    icy.probe(**words, out=tmp_path / "bare")
    plan = make_plan(ProbeRequest.asked(**words, keep_models=True, start=pack, out=tmp_path / "bare"))
    assert plan.total == 0
    result = icy.probe(**words, keep_models=True, start=pack, out=tmp_path / "bare")
    assert not result.model("perm").training
