"""The main job: the same numbers however it is run, and nothing done twice."""

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import TINY

import icy
from icy.config.specs import ProbeSpec
from icy.core.checks import hidden_list, seed_list
from icy.core.errors import IcyError, IncompatibleError, InvalidSettingError, PluginError, StoreError, UnknownNameError
from icy.core.registry import registry
from icy.experiments.probe import make_plan
from icy.experiments.watcher import Watcher, Watchers
from icy.training.job import Replicate
from icy.training.runners.base import deal


def curves(result: icy.ProbeResult) -> dict[tuple[str, int], Any]:
    return {(r["grammar"], r["seed"]): (r["steps"], r["accuracy"], r["curve"]) for r in result.records}


class Counter(Watcher):
    """Counts what is filed."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []
        self.readings = 0

    def filed(self, record: dict[str, Any]) -> None:
        self.keys.append(record["key"])

    def read(self, job: Any, readings: Any) -> None:
        self.readings += len(readings)


def test_a_row_has_the_baseline_and_every_grammar_and_seed(tiny: icy.ProbeResult) -> None:
    assert sorted(curves(tiny)) == [(g, s) for g in ("concat", "perm", "rot") for s in (123, 124)]
    assert not tiny.failures
    assert [p.name for p in tiny.paths] == ["results.csv", "results.parquet"]


def test_pool_equals_serial(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    """Two workers, baselines first, other stacks: the same readings to the last bit."""
    watcher = Counter()
    pooled = icy.probe("sender/FC2L", ["perm", "rot"], workers=2, out=tmp_path, watcher=watcher, **TINY)
    assert curves(pooled) == curves(tiny)
    assert len(watcher.keys) == 6
    assert watcher.readings > 0


@pytest.mark.parametrize("model", ["sender/FC2L", "sender/RNNAutoReg:LSTM", "sender/HierZero:GRU", "receiver/Hier:GRU"])
def test_a_seed_alone_equals_the_seed_among_others(model: str, tmp_path: Path) -> None:
    among = icy.probe(model, ["perm"], workers=1, out=tmp_path / "a", **{**TINY, "seeds": [1, 2, 3]})
    alone = icy.probe(model, ["perm"], workers=1, out=tmp_path / "b", **{**TINY, "seeds": [3]})
    for place, (steps, accuracy, curve) in curves(alone).items():
        assert curves(among)[place] == (steps, accuracy, curve)


def test_more_than_one_stack_in_one_process(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    """Twenty replicates in stacks of at most sixteen: the same numbers again."""
    many = icy.probe(
        "sender/FC2L", ["perm", "rot", "shufdet"], workers=1, out=tmp_path, **{**TINY, "seeds": [123, 124, 1, 2, 3]}
    )
    assert not many.failures
    assert {place: curves(many)[place] for place in curves(tiny)} == curves(tiny)


def test_nothing_is_trained_twice(tmp_path: Path) -> None:
    first = icy.probe("sender/FC2L", ["perm"], workers=1, out=tmp_path, **{**TINY, "seeds": [1]})
    again = Counter()
    assert curves(icy.probe("sender/FC2L", ["perm"], out=tmp_path, watcher=again, **{**TINY, "seeds": [1]})) == curves(
        first
    )
    assert not again.keys
    more = Counter()
    icy.probe("sender/FC2L", ["perm", "rot"], workers=1, out=tmp_path, watcher=more, **{**TINY, "seeds": [1, 2]})
    assert len(more.keys) == 4  # rot at both seeds, concat and perm at the new one
    assert not set(more.keys) & {r["key"] for r in first.records}


def test_added_seeds_equal_those_of_one_run(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    """Resumed = uninterrupted: the grammars of a seed whose baseline is on file stop where they would have."""
    icy.probe("sender/FC2L", ["concat"], workers=1, out=tmp_path, **TINY)
    resumed = icy.probe("sender/FC2L", ["perm", "rot"], workers=1, out=tmp_path, **TINY)
    assert curves(resumed) == curves(tiny)


def test_other_settings_are_other_results(tiny_folder: Path, tiny: object) -> None:
    changed = {**TINY, "settings": {"check_every": 20, "learning_rate": 0.002}}
    plan = make_plan(ProbeSpec("sender/FC2L", ["perm", "rot"], out=tiny_folder, **changed))
    assert plan.total == 6
    assert make_plan(ProbeSpec("sender/FC2L", ["perm", "rot"], out=tiny_folder, **TINY)).total == 0


def test_rerun_never_shows_what_is_on_file(tiny: icy.ProbeResult, tiny_folder: Path) -> None:
    shown = icy.probe("sender/FC2L", ["perm", "shufdet"], out=tiny_folder, rerun="never", **TINY)
    assert {r["grammar"] for r in shown.records} == {"concat", "perm"}


class Diary(Watcher):
    """Notes in what order it is told what; raises where it is told to."""

    def __init__(self, error: BaseException | None = None, where: str = "filed") -> None:
        super().__init__()
        self.told: list[str] = []
        self.error, self.where = error, where

    def _note(self, what: str) -> None:
        self.told.append(what)
        if self.error is not None and what == self.where:
            raise self.error

    def started(self, plan: Any) -> None:
        super().started(plan)
        self._note("started")

    def read(self, job: Any, readings: Any) -> None:
        self._note("read")

    def filed(self, record: dict[str, Any]) -> None:
        self._note("filed")

    def ended(self) -> None:
        self._note("ended")


def test_several_watchers_are_told_the_same(tmp_path: Path) -> None:
    one, other = Diary(), Diary()
    both = Watchers(one, other)
    icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=both, **TINY)
    assert one.told == other.told
    assert one.told[0] == "started"
    assert one.told[-1] == "ended"
    assert [one.told.count(what) for what in ("started", "filed", "ended")] == [1, 2, 1]
    assert "read" in one.told
    assert one.plan is other.plan is both.plan is not None


def test_watchers_are_told_where_nothing_is_to_be_trained(tiny: icy.ProbeResult, tiny_folder: Path) -> None:
    diary = Diary()
    icy.probe("sender/FC2L", "perm", out=tiny_folder, watcher=diary, **TINY)
    assert diary.told == ["started", "ended"]


@pytest.mark.parametrize("where", ["started", "read", "filed"])
def test_watchers_are_told_of_the_end_after_an_interruption_too(tmp_path: Path, where: str) -> None:
    stopped, other = Diary(KeyboardInterrupt(), where), Diary()
    with pytest.raises(KeyboardInterrupt):
        icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=Watchers(stopped, other), **TINY)
    assert stopped.told[-2:] == [where, "ended"]
    assert other.told[-1] == "ended"
    assert other.told.count("ended") == 1


def test_all_are_told_of_the_end_though_one_fails_at_it(tmp_path: Path) -> None:
    failing, other = Diary(OSError("no"), "ended"), Diary()
    with pytest.raises(OSError, match="no"):
        icy.probe("sender/FC1L", "concat", workers=1, out=tmp_path, watcher=Watchers(failing, other), **TINY)
    assert other.told[-1] == "ended"
    assert (tmp_path / "results.csv").exists()


HOLDING = {**TINY, "protocol": "generalise", "target": 0.9, "held_out": 0.3}


def test_generalise_reports_what_was_not_trained_on(tmp_path: Path) -> None:
    result = icy.probe("sender/Hashtable", ["perm"], workers=1, out=tmp_path, **HOLDING)
    assert not result.failures
    for record in result.records:
        assert (record["measure"], record["held_out"], record["split"]) == ("held_out", 0.3, "random")
        assert (record["config"]["held_out"], record["config"]["split"]) == (0.3, "random")
        assert record["train_accuracy"] > 0.9 > record["accuracy"]
    long = result.to_dataframe()
    assert (long["value"] == long["accuracy"]).all()
    assert long["train_accuracy"].min() > 0.9


def test_generalise_resumes_and_equals_itself_on_a_pool(tmp_path: Path) -> None:
    """Baselines on file, other stacks, two workers: the same numbers."""

    def held_out(result: icy.ProbeResult) -> Any:
        return curves(result), {(r["grammar"], r["seed"]): r["train_accuracy"] for r in result.records}

    whole = icy.probe("sender/FC2L", ["perm"], workers=1, out=tmp_path / "a", **HOLDING)
    icy.probe("sender/FC2L", ["concat"], workers=1, out=tmp_path / "b", **HOLDING)
    resumed = icy.probe("sender/FC2L", ["perm"], workers=2, out=tmp_path / "b", **HOLDING)
    assert held_out(resumed) == held_out(whole)
    assert make_plan(ProbeSpec("sender/FC2L", ["perm"], out=tmp_path / "b", **HOLDING)).total == 0


def test_results_under_different_splits_stay_apart(tmp_path: Path) -> None:
    given = {**HOLDING, "seeds": 1}
    results = [
        icy.probe("sender/FC2L", "concat", workers=1, out=tmp_path, **{**given, **other})
        for other in ({}, {"held_out": 0.2}, {"split": "combinations"})
    ]
    both = results[0] + results[1] + results[2]
    assert len({r["key"] for r in both.records}) == 3
    head, _, *rows = both.table().splitlines()[2:7]
    assert "held out" in head
    assert "split" in head
    assert len(rows) == 3
    assert len(icy.ProbeResult.load(tmp_path).records) == 3


def test_the_keys_of_other_protocols_are_what_they_were(tmp_path: Path) -> None:
    """Results on file from before there were splits are found."""
    for protocol in ("acquire", "budget"):
        plan = make_plan(ProbeSpec("sender/FC2L", "perm", out=tmp_path, protocol=protocol, **TINY))
        config = plan.rows[0].job.config(plan.rows[0].job.replicates[0])
        assert set(config) == {
            *("model", "options", "grammar", "seed", "meanings", "vocab_size", "word_length", "hidden_size"),
            *("representation", "protocol", "target", "cap", "settings"),
        }


def test_every_hidden_size_is_a_row(tiny: icy.ProbeResult, tmp_path: Path) -> None:
    watcher = Counter()
    given = {**TINY, "hidden": [4, 8]}
    result = icy.probe(["sender/FC2L", "sender/FC1L"], "perm", workers=1, out=tmp_path, watcher=watcher, **given)
    assert watcher.plan is not None
    shapes = [(row.name, row.job.task.hidden_size) for row in watcher.plan.rows]
    assert shapes == [(f"sender/{name}", size) for name in ("FC2L", "FC1L") for size in (4, 8)]
    assert len(watcher.keys) == len(set(watcher.keys)) == 16
    head, _, *rows = result.table().splitlines()[2:8]
    assert "hidden size" in head
    assert [row.split()[:3] for row in rows[:2]] == [["sender/FC2L", "128", "4"], ["sender/FC2L", "236", "8"]]
    of_eight = [r for r in result.records if (r["model"], r["hidden_size"]) == ("sender/FC2L", 8)]
    for place, found in curves(icy.ProbeResult(of_eight)).items():
        assert found == curves(tiny)[place]


PLUGIN = """
    from torch import nn
    import icy

    @icy.register_sender("{name}", source="a test")
    class Sender(nn.Module):
        "A stranger's sender."

        def __init__(self, space, message_length, vocab_size, hidden_size):
            super().__init__()
            self.values, self.shape = space.values, (message_length, vocab_size + 1)
            self.net = nn.Linear(space.attributes * space.values, message_length * (vocab_size + 1))

        def forward(self, meanings):
            {body}
            return self.net(nn.functional.one_hot(meanings, self.values).flatten(-2).float()).unflatten(-1, self.shape)
"""


def plugin_file(folder: Path, name: str, body: str = "pass") -> Path:
    file = folder / f"{name.lower()}_plugin.py"
    file.write_text(textwrap.dedent(PLUGIN).format(name=name, body=body))
    return file


@pytest.mark.usefixtures("forgetting")
def test_a_plugin_reaches_the_workers(tmp_path: Path) -> None:
    file = plugin_file(tmp_path, "Stranger")
    pooled = icy.probe("Stranger", "perm", plugin=file, workers=2, out=tmp_path / "pool", **TINY)
    serial = icy.probe("Stranger", "perm", plugin=file, workers=1, out=tmp_path / "one", **TINY)
    assert not pooled.failures
    assert curves(pooled) == curves(serial)


@pytest.mark.usefixtures("forgetting")
def test_a_model_that_raises_is_kept_with_its_error_and_retried_on_request(tmp_path: Path) -> None:
    file = plugin_file(tmp_path, "Faulty", "if self.training: raise ValueError('out of luck')")
    result = icy.probe("Faulty", "perm", plugin=file, workers=1, out=tmp_path / "r", **TINY)
    assert [r["error"] for r in result.failures] == ["ValueError: out of luck (line 15 of faulty_plugin.py)"] * 4
    assert "failed" in result.table()
    counter = Counter()
    icy.probe("Faulty", "perm", workers=1, out=tmp_path / "r", watcher=counter, **TINY)
    assert not counter.keys
    icy.probe("Faulty", "perm", workers=1, out=tmp_path / "r", watcher=counter, rerun="failed", **TINY)
    assert len(counter.keys) == 4


@pytest.mark.usefixtures("forgetting")
def test_an_edited_plugin_is_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers on file are those of the old source."""
    first = plugin_file(tmp_path, "Edited")
    icy.probe("Edited", "perm", plugin=first, workers=1, out=tmp_path / "r", **TINY)
    assert make_plan(ProbeSpec("Edited", "perm", plugin=first, out=tmp_path / "r", **TINY)).total == 0
    plugin_file(tmp_path, "Edited", "meanings = meanings.flip(-1)")
    monkeypatch.setattr(registry, "plugin_files", [])
    assert make_plan(ProbeSpec("Edited", "perm", plugin=first, out=tmp_path / "r", **TINY)).total == 4


@pytest.mark.usefixtures("forgetting")
def test_a_model_that_cannot_be_made_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "unmade.py"
    file.write_text(
        textwrap.dedent(PLUGIN).format(name="Unmade", body="pass").replace("self.values,", "1 / 0; self.values,")
    )
    with pytest.raises(PluginError, match=r"sender/Unmade cannot be made: ZeroDivisionError.*line \d+ of unmade\.py"):
        icy.probe("Unmade", "perm", plugin=file, out=tmp_path / "r", **TINY)


CELL = """
    import torch
    from torch import nn
    import icy
    from icy.models.cells import Cell

    @icy.register_cell("plaincell", source="a test")
    class PlainCell(Cell):
        "A cell of ordinary layers, which cannot be stacked by broadcasting."

        gate_blocks = 1

        def __init__(self, input_size, hidden_size, fed=True):
            super().__init__(input_size, hidden_size, fed)
            self.read, self.keep = nn.Linear(input_size, hidden_size), nn.Linear(hidden_size, hidden_size)

        def project(self, x):
            return self.read(x)

        def weigh(self, x):
            return nn.functional.linear(x, self.read.weight)

        def unfed(self):
            return self.read.bias.unsqueeze(0)

        def step(self, gates, state):
            return (torch.tanh(gates + self.keep(state[0])),)
"""


@pytest.mark.usefixtures("forgetting")
def test_a_cell_of_ordinary_layers_trains_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "cell.py"
    file.write_text(textwrap.dedent(CELL))
    result = icy.probe("RNNZero:plaincell", "perm", plugin=file, workers=1, out=tmp_path / "r", **TINY)
    assert not result.failures, result.failures[0]["error"]
    assert {r["engine"] for r in result.records} == {"vmap"}


@pytest.mark.usefixtures("forgetting")
def test_a_model_of_another_shape_is_told_so(tmp_path: Path) -> None:
    file = plugin_file(tmp_path, "Misshapen", "self.shape = (1, -1)")
    result = icy.probe("Misshapen", "perm", plugin=file, workers=1, out=tmp_path / "r", **TINY)
    assert "must put out (2, 4, 5)" in result.failures[0]["error"]


def test_a_model_from_a_script_without_a_main_guard(tmp_path: Path) -> None:
    """As in a notebook: the class lives in __main__, and nothing guards the call."""
    script = tmp_path / "script.py"
    call = f"r = icy.probe('Mine', 'perm', workers=2, out={str(tmp_path / 'r')!r}, **{TINY!r})"
    model = textwrap.dedent(PLUGIN).format(name="Mine", body="pass")
    script.write_text("\n".join([model, call, "print(len(r.failures), len(r.records))"]))
    root = str(Path(icy.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=240, env={"PYTHONPATH": root, "PATH": ""}
    )
    assert done.stdout.split() == ["0", "4"], done.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (2, [123, 124]),
        ("3", [123, 124, 125]),
        ("1,2", [1, 2]),
        ("7,", [7]),
        ("5-7,1", [5, 6, 7, 1]),
        ([4, 4, 2], [4, 2]),
    ],
)
def test_seeds(given: Any, expected: list[int]) -> None:
    assert seed_list(given) == expected


@pytest.mark.parametrize("given", [0, -1, [], "", "x", "5-3", [1.5], [-1], "0"])
def test_seeds_that_are_none(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match="Seeds are"):
        seed_list(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(64, [64]), ("128", [128]), ("64,128,64", [64, 128]), (" 8, ", [8]), ([64, 32], [64, 32]), (range(1, 3), [1, 2])],
)
def test_hidden_sizes(given: Any, expected: list[int]) -> None:
    assert hidden_list(given) == expected


@pytest.mark.parametrize("given", [0, -1, [], "", ",", "a", "64-128", "64;128", [1.5], 1.5, [0], None, "64,0", [[64]]])
def test_hidden_sizes_that_are_none(given: Any) -> None:
    with pytest.raises(InvalidSettingError, match="he hidden size"):
        hidden_list(given)


def test_quick_changes_only_what_was_not_given() -> None:
    spec = ProbeSpec.asked(model="x", quick=True, hidden=128)
    assert (spec.meanings, spec.word_length, spec.hidden) == ("3x4", 2, 128)
    assert ProbeSpec.asked(model="x").meanings == "5x10"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"model": "HierZreo:GRU"}, UnknownNameError, "HierZero:GRU"),
        ({"model": "FC2L"}, UnknownNameError, "sender/FC2L or receiver/FC2L"),
        ({"model": []}, InvalidSettingError, "No model"),
        ({"grammar": "shufdte"}, UnknownNameError, "shufdet"),
        ({"grammar": "shuf"}, IncompatibleError, "receiver"),
        ({"protocol": "budgets"}, UnknownNameError, "budget"),
        ({"preset": "publish"}, UnknownNameError, "published"),
        ({"meanings": "9x99"}, InvalidSettingError, "memory"),
        ({"meanings": "5by10"}, InvalidSettingError, "5x10"),
        ({"seeds": []}, InvalidSettingError, "Seeds are"),
        ({"target": 1.5}, InvalidSettingError, "target"),
        ({"protocol": "budget", "cap": 5}, InvalidSettingError, "cap"),
        ({"hidden": 0}, InvalidSettingError, "hidden size"),
        ({"hidden": "a"}, InvalidSettingError, "hidden size"),
        ({"hidden": []}, InvalidSettingError, "hidden size"),
        ({"protocol": "generalise", "held_out": 0}, InvalidSettingError, "above 0 and below 1"),
        ({"protocol": "generalise", "held_out": 1}, InvalidSettingError, "above 0 and below 1"),
        ({"protocol": "generalise", "split": "combination"}, UnknownNameError, "combinations"),
        ({"protocol": "generalise", "meanings": "1x10"}, InvalidSettingError, "one attribute"),
        ({"protocol": "generalise", "held_out": 0.9, "meanings": "2x3"}, InvalidSettingError, "smaller share"),
        ({"protocol": "generalise", "held_out": 0.01, "meanings": "2x3"}, InvalidSettingError, "larger share"),
        ({"held_out": 0.3}, InvalidSettingError, "holds out no meanings"),
        ({"protocol": "budget", "split": "combinations"}, InvalidSettingError, "holds out no meanings"),
        ({"vocab_size": 2, "word_length": 2, "meanings": "5x10"}, InvalidSettingError, "word"),
        ({"protocol": "acquire", "cap": float("inf")}, InvalidSettingError, "cap"),
        ({"seeds": "1-100000000"}, InvalidSettingError, "at most"),
        ({"settings": {"learning_rate": "abc"}}, InvalidSettingError, "a number"),
        ({"settings": {"batch_size": 1.5}}, InvalidSettingError, "a whole number"),
        ({"settings": {"fresh_reading": "maybe"}}, InvalidSettingError, "true or false"),
        ({"device": "tpu"}, InvalidSettingError, "device"),
        ({"engine": "steam"}, UnknownNameError, "engine"),
        ({"workers": 0}, InvalidSettingError, "workers"),
        ({"representation": "loud"}, UnknownNameError, "representation"),
        ({"rerun": "maybe"}, InvalidSettingError, "missing"),
        ({"settings": {"check_evry": 3}}, UnknownNameError, "check_every"),
        ({"settings": {"clip_norm": -1}}, InvalidSettingError, "clip_norm"),
        ({"options": {"depth": 3}}, InvalidSettingError, "no option 'depth'"),
        ({"plugin": "absent.py"}, PluginError, "does not exist"),
        ({"grammer": "rot"}, UnknownNameError, "grammar"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: dict[str, Any], error: type[IcyError], words: str, tmp_path: Path
) -> None:
    given = {"model": "sender/FC2L", "grammar": "perm", "out": tmp_path, **arguments}
    with pytest.raises(error, match=words) as caught:
        icy.probe(**given)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Choose another folder"):
        icy.probe("sender/FC2L", "perm", out=tmp_path / "file" / "out", **TINY)


def test_dealing_is_complete_and_even() -> None:
    replicates = [Replicate(g, s) for g in ("hol", "perm", "rot") for s in range(5)]
    stacks = deal(replicates, 2, 16)
    assert sorted(r for stack in stacks for r in stack) == sorted(replicates)
    for grammar in ("hol", "perm", "rot"):
        assert sorted(sum(r.grammar == grammar for r in stack) for stack in stacks) == [2, 3]
    assert max(map(len, deal(replicates, 2, 4))) <= 4
    assert deal([], 2, 4) == []
