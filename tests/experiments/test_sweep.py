"""Sweeps: their rows, their files, and shards of them."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import icy
from icy.config.requests import RunRequest, names
from icy.core.errors import IcyError, InvalidSettingError
from icy.experiments.plan import make_plan
from icy.experiments.requests import SweepRequest
from icy.experiments.sweep import cost, expand, make_sweep, over, sweep_request
from icy.experiments.sweep_file import InFile, _types_of, read_sweep
from icy.records.kinds import row_of
from icy.records.store import Store
from icy.training.chain_settings import ChainRequest
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest
from tests.helpers import numbers


def spec(out: Path | str = "unused", **given: Any) -> SweepRequest:
    return sweep_request(**{"grammar": "perm", "quick": True, "workers": 1, "out": str(out), **given})


# -- rows of a sweep ---------------------------------------------------------------------------------------------------


def test_all_combinations_are_rows() -> None:
    plan = make_sweep(spec(model=["*/FC1L", "sender/FC2L"], representation="soft,gumb", protocol=["acquire", "budget"]))
    assert len(plan.rows) == 3 * 2 * 2
    assert len({row.job.row for row in plan.rows}) == 12
    assert plan.varying == ["representation", "protocol"]
    sizes = make_sweep(spec(model="sender/FC1L", hidden="16,32", vocab_size=[4, 5], meanings="2x3,3x4"))
    assert len(sizes.rows) == 2 * 2 * 2
    assert sizes.varying == ["hidden size", "meanings", "V"]


def test_a_sweep_of_one_row_is_a_probe(tmp_path: Path) -> None:
    """The same keys, so that each finds the other's results on file."""
    swept = make_sweep(spec(tmp_path, model="sender/FC1L"))
    probed = make_plan(
        ProbeRequest.asked(model="sender/FC1L", grammar="perm", quick=True, workers=1, out=str(tmp_path))
    )
    (one,), (other,) = swept.rows, probed.rows
    assert [one.job.key(r) for r in one.job.replicates] == [other.job.key(r) for r in other.job.replicates]


def test_one_side_may_be_left_out() -> None:
    assert {row.name for row in make_sweep(spec(model="FC1L", side="receiver")).rows} == {"receiver/FC1L"}
    assert {row.job.settings.side for row in make_sweep(spec(model="FC*", side="sender")).rows} == {"sender"}


def test_models_that_do_not_work_somewhere_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    plan = make_sweep(spec(model=["sender/RNNSampling:RNN", "sender/FC1L"], representation=["soft", "discr"]))
    found = {(row.name, row.job.settings.representation) for row in plan.rows}
    assert found == {
        ("sender/FC1L", "soft"),
        ("sender/FC1L", "discr"),
        ("sender/RNNSampling:RNN", "discr"),
    }
    assert "Left out" in caplog.text
    with pytest.raises(IcyError, match="RNNSampling"):
        make_sweep(spec(model="sender/RNNSampling:RNN", representation="soft"))


def test_parts_inherit_arguments_of_the_whole_sweep() -> None:
    parts = ({"model": "sender/FC1L", "hidden": [16, 32]}, {"model": "receiver/FC1L", "grammar": ["perm", "rot"]})
    plan = make_sweep(spec(parts=parts, seeds=3))
    found = {(row.name, row.job.settings.hidden) for row in plan.rows}
    assert found == {("receiver/FC1L", 32), ("sender/FC1L", 16), ("sender/FC1L", 32)}
    grammars = {row.name: {r.condition for r in row.job.replicates} for row in plan.rows}
    assert grammars == {"sender/FC1L": {"concat", "perm"}, "receiver/FC1L": {"concat", "perm", "rot"}}
    assert all(len({r.seed for r in row.job.replicates}) == 3 for row in plan.rows)


def test_arguments_override_the_file_and_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "zoo.toml"
    file.write_text('hidden = 8\nseeds = 2\n[[sweep]]\nmodel = "sender/FC1L"\nhidden = [16, 32]\n')
    given: dict[str, Any] = {"grammar": "perm", "quick": True, "workers": 1, "out": str(tmp_path / "o")}
    assert {r["hidden_size"] for r in icy.sweep(file=file, target=0.3, **given).records} == {16, 32}
    assert {r["hidden_size"] for r in icy.sweep(file=file, target=0.3, hidden=8, **given).records} == {8}


def test_help_shows_every_option() -> None:
    parameters = inspect.signature(icy.sweep).parameters
    assert next(iter(parameters)) == "model"
    assert {f.name for f in dataclasses.fields(SweepRequest)} | {"file", "watcher", "progress"} == set(parameters)
    assert all(p.kind is p.KEYWORD_ONLY for name, p in parameters.items() if name != "model")


def test_a_pair_of_numbers_is_one_space() -> None:
    (row,) = make_sweep(spec(model="sender/FC1L", meanings=(2, 3))).rows
    assert row.job.settings.meanings == "2x3"
    sizes = make_sweep(spec(model="sender/FC1L", vocab_size=(4, 5))).rows
    assert {row.job.settings.vocab_size for row in sizes} == {4, 5}


def test_a_row_that_two_parts_name_is_one_row() -> None:
    parts = ({"grammar": "perm"}, {"grammar": "rot", "seeds": [1, 2]})
    (row,) = make_sweep(spec(model="sender/FC1L", parts=parts, seeds=[1])).rows
    found = {(r.condition, r.seed) for r in row.job.replicates}
    assert found == {("concat", 1), ("perm", 1), ("concat", 2), ("rot", 1), ("rot", 2)}


def test_a_sweep_is_read_from_toml_and_yaml(tmp_path: Path) -> None:
    toml, yaml = tmp_path / "zoo.toml", tmp_path / "zoo.yaml"
    toml.write_text('seeds = 5\nword-length = 2\n[[sweep]]\nmodel = "sender/*"\nrepresentation = ["soft", "gumb"]\n')
    yaml.write_text("seeds: 5\nword-length: 2\nsweep:\n  - model: sender/*\n    representation: [soft, gumb]\n")
    expected = {"seeds": 5, "word_length": 2, "parts": ({"model": "sender/*", "representation": ["soft", "gumb"]},)}
    assert read_sweep(toml) == expected
    pytest.importorskip("yaml")
    assert read_sweep(yaml) == expected


def test_the_longest_come_first() -> None:
    plan = make_sweep(spec(model=["sender/FC1L", "sender/FC2L", "sender/HierZero:GRU"], hidden=64))
    assert plan.rows[0].name == "sender/HierZero:GRU"
    assert [cost(row) for row in plan.rows] == sorted((cost(row) for row in plan.rows), reverse=True)
    given = make_sweep(spec(model=["sender/FC1L", "sender/HierZero:GRU"], order="given"))
    assert [row.name for row in given.rows] == ["sender/FC1L", "sender/HierZero:GRU"]


# -- shares ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_shares_are_all_of_it_and_do_not_overlap(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": "*/FC*", "representation": "soft,gumb", "hidden": "8,16"}
    every = {row.job.row for row in make_sweep(spec(tmp_path, **given)).rows}
    shares = [{row.job.row for row in make_sweep(spec(tmp_path, **given, shard=f"{i}/3")).rows} for i in (1, 2, 3)]
    assert set.union(*shares) == every
    assert sum(map(len, shares)) == len(every)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.slow
def test_shards_together_write_the_results_of_one_machine(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": "*/FC1L", "quick": True, "grammar": "perm", "seeds": 1, "workers": 1}
    whole = icy.sweep(**given, out=str(tmp_path / "whole"))
    for i in (1, 2):
        icy.sweep(**given, out=str(tmp_path / "shared"), shard=f"{i}/2")
    assert numbers(Store(tmp_path / "shared").records()) == numbers(whole.records)


# -- running -----------------------------------------------------------------------------------------------------------


def test_rows_of_records_are_those_of_the_plan(tmp_path: Path) -> None:
    result = icy.sweep(
        "sender/FC1L", grammar="perm", quick=True, protocol="acquire,budget", workers=1, out=str(tmp_path)
    )
    plan = make_sweep(spec(tmp_path, model="sender/FC1L", protocol="acquire,budget"))
    assert plan.total == 0
    assert {row_of(record) for record in result.records} == {row.job.row for row in plan.rows}


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [1, -1])
def test_parts_keep_their_own_target_of_pretraining_with_pairs_from_scratch(turned: int) -> None:
    pair = {"kind": "e2e", "sender": "FC1L", "receiver": "FC1L", "steps": 10}
    parts = [{**pair, "pretrain": "none"}, {**pair, "pretrain": "perm", "target": 0.5}]
    plan = make_sweep(sweep_request(parts=parts[::turned], quick=True))
    replicates = [(row.job, replicate) for row in plan.rows for replicate in row.job.replicates]
    assert {r.condition: job.config(r).get("target") for job, r in replicates} == {"none": None, "perm": 0.5}


def test_parts_are_the_arguments_of_a_probe() -> None:
    (one,) = expand(spec(model="sender/FC1L"))
    assert isinstance(one, ProbeRequest)
    assert not isinstance(one, SweepRequest)


def test_a_file_with_plug_ins_gives_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before it runs: also where the plug-in is not there."""
    file = tmp_path / "sweep.toml"
    for said, written in (("mine.py", '"mine.py"'), ("mine.py and other.py", '["mine.py", "other.py"]')):
        file.write_text(f'model = "sender/FC1L"\nplugin = {written}\n')
        with pytest.raises(IcyError, match=r"'mine\.py' does not exist"):
            icy.sweep(file=file, out=tmp_path)
        assert f"The sweep {file} runs the code of plug-ins: {said}." in caplog.messages
    caplog.clear()
    file.write_text('model = "sender/FC1L"\n')
    read_sweep(file)
    assert not caplog.messages


@pytest.mark.parametrize("kind", ["probe", "games", "chain"])
def test_a_sweep_of_any_kind_accepts_the_older_name_of_its_initial_results(kind: str, tmp_path: Path) -> None:
    assert list(sweep_request(kind=kind, start=[tmp_path]).initial_results) == [tmp_path]


def test_old_names_are_those_of_each_part() -> None:
    """The old name of an option of pairs is not an option of chains."""
    parts = [{"kind": "e2e", "sender": "FC1L", "receiver": "FC1L"}, {"kind": "chain", "model": "sender/FC1L"}]
    pair, chain = expand(sweep_request(parts=parts, steps=77))
    assert (pair.updates, chain.updates) == (77, ChainRequest.updates)
    file = {"parts": ({"kind": "e2e", "steps": 5},)}
    assert over(file, {"updates": 50}) == {"parts": ({"kind": "e2e"},), "updates": 50}


# -- files of sweeps: the types of their values, and the line of a wrong value -----------------------------------------


TOML = """\
# a comment
seeds = 5
word-length = 2

[set]
check_every = 20

[[sweep]]
model = "sender/*"
hidden = [64, 128]

[[sweep]]
kind = "e2e"
"hidden" = 8
sender = "FC1L"
"""


def write(folder: Path, text: str | bytes, suffix: str = ".toml") -> Path:
    file = folder / f"zoo{suffix}"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seeds = 5", "seeds = true", "line 2: seeds must be a whole number, text or a list of whole numbers, not"),
        ("word-length = 2", "word-length = 2.5", "line 3: word-length must be a whole number, text or a list of whole"),
        ("[set]\ncheck_every = 20", "set = 20", "line 5: set must be a table, as in set = {learning_rate = [0.001"),
        ('model = "sender/*"', "model = {a = 1}", "line 9: model must be text or a list of texts, not {'a': 1}."),
        ('model = "sender/*"', 'model = ["a", 1]', "line 9: model must be text or a list of texts, not ['a', 1]."),
        ("hidden = [64, 128]", "hidden = [64, true]", "line 10: hidden must be a whole number, text or a list of"),
        ('"hidden" = 8', '"hidden" = false', "line 14: hidden must be a whole number, text or a list of whole numbers"),
        ('sender = "FC1L"', "steps = 1.5", "line 15: steps must be a whole number, not 1.5."),
        ('sender = "FC1L"', 'most = "few"', "line 15: most must be a whole number, not 'few'."),
        ("seeds = 5", "seeds = 5\nquick = 'yes please'", "line 3: quick must be true or false, not 'yes please'."),
        ("seeds = 5", "seeds = 5\nretries = 'x'", "line 3: retries must be a whole number, not 'x'."),
        ("seeds = 5", "seeds = 5\ntarget = 'high'", "line 3: target must be a number, not 'high'."),
        ("seeds = 5", "seeds = 5\nplugin = [5]", "line 3: plugin must be text or a list of texts, not [5]."),
        ("word-length = 2", "word-length = 2\nword_length = 3", "line 4: word_length and word-length are the same"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_raises_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TOML
    read_sweep(write(tmp_path, TOML))
    with pytest.raises(InvalidSettingError) as told:
        read_sweep(write(tmp_path, TOML.replace(old, new)))
    assert str(told.value).startswith(f"{tmp_path / 'zoo.toml'}, {said}")


def test_lines_of_yaml(tmp_path: Path) -> None:
    text = "seeds: 5\n\nsweep:\n  - model: a\n  - {model: b,\n     hidden: yes}\n"
    with pytest.raises(InvalidSettingError, match=r"zoo.yaml, line 6: hidden must be a whole number, .*, not True"):
        read_sweep(write(tmp_path, text, ".yaml"))
    with pytest.raises(InvalidSettingError, match=r"is not valid (TOML|YAML): .* in line 3\.$"):
        read_sweep(write(tmp_path, "seeds: 5\nmodel: [a\n", ".yaml"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "suffix", "said"),
    [
        (b'model = "\xff"', ".toml", "is not text in UTF-8: byte 9 is invalid"),
        (f"model = {'[' * 50_000}", ".toml", "is not valid"),
        (f"model: {'[' * 50_000}", ".yaml", "is not valid"),
        (f"seeds = {'9' * 5000}", ".toml", "is not valid"),
        ("- a\n- b\n", ".yaml", "must hold names and values of options"),
        ("5: a\n", ".yaml", "must hold names and values of options"),
        ("", ".yaml", "must hold names and values of options"),
        ("sweep: [5]\n", ".yaml", "each under"),
        ("parts: 5\n", ".yaml", "each under"),
        ("a: &a [1, 2]\nseeds: {b: *a}\n", ".yaml", "line 2: seeds must be"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str | bytes, suffix: str, said: str) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        read_sweep(write(tmp_path, text, suffix))


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """Some editors write the mark at the start of a file in UTF-8."""
    assert read_sweep(write(tmp_path, b'\xef\xbb\xbfmodel = "a"\n')) == {"model": "a"}


def test_a_file_of_another_kind_is_not_even_opened() -> None:
    with pytest.raises(InvalidSettingError, match=r"A sweep is a \.toml, \.yaml or \.yml file"):
        read_sweep("/dev/zero")


def test_every_option_has_a_type_in_a_file() -> None:
    """Options of whole sweeps, and of end-to-end runs as parts, also by their old names."""
    assert set(_types_of(SweepRequest)) == {*names(SweepRequest), "start"} - {"parts"}
    assert set(_types_of(EndToEndRequest)) == {*names(EndToEndRequest), "start", "steps"}


def test_values_of_a_sweep_in_python_have_the_type_that_files_have(tmp_path: Path) -> None:
    whole = {
        "model": ["sender/FC1L"], "grammar": "perm", "protocol": ["acquire", "budget"], "meanings": "2x3,3x4",
        "vocab_size": [4, 5], "word_length": "2,3", "seeds": "1-3", "target": 1, "cap": 2.5, "held_out": 0.2,
        "hidden": 8, "workers": 2, "out": "o", "track": ["mlflow"], "shard": "1/2", "settings": {}, "quick": True,
    }  # fmt: skip
    types = _types_of(SweepRequest)
    assert [name for name, value in whole.items() if not types[name].accepts(value)] == []


@dataclass(frozen=True)
class OwnSpec(RunRequest):
    """Options of a kind of job that a plug-in registers."""

    axes = ("rate",)

    rate: float = 0.5
    names: list[str] | None = None
    whatever: Any = None
    odd: list[dict[str, int]] = ()  # type: ignore[assignment]


def test_types_of_a_plugin() -> None:
    types = _types_of(OwnSpec)
    assert str(types["rate"]) == "a number, text or a list of numbers"
    assert types["rate"].accepts([0.1, 1])
    assert not types["rate"].accepts([True])
    assert types["names"] == InFile(frozenset({type(None)}), frozenset({str}))
    assert "whatever" not in types
    assert "odd" not in types
