"""Probes: rows, keys, plug-ins and bad input."""

from __future__ import annotations

import logging
import textwrap
from pathlib import Path

import pytest

import icy
from icy.config.specs import ProbeSpec
from icy.core.errors import PluginError, StoreError
from icy.core.registry import registry
from icy.experiments.plan import make_plan
from tests.experiments.helpers import HOLDING, PLUGIN, Counter, curves, plugin_file
from tests.helpers import TINY


def test_a_row_has_the_baseline_and_every_grammar_and_seed(tiny: icy.ProbeResult) -> None:
    assert sorted(curves(tiny)) == [(g, s) for g in ("concat", "perm", "rot") for s in (123, 124)]
    assert not tiny.failures
    assert [p.name for p in tiny.paths] == ["results.csv", "results.parquet"]


def test_other_settings_are_other_results(tiny_folder: Path, tiny: object) -> None:
    changed = {**TINY, "settings": {"check_every": 20, "learning_rate": 0.002}}
    plan = make_plan(ProbeSpec("sender/FC2L", ["perm", "rot"], out=tiny_folder, **changed))
    assert plan.total == 6
    assert make_plan(ProbeSpec("sender/FC2L", ["perm", "rot"], out=tiny_folder, **TINY)).total == 0


def test_generalise_reports_held_out_accuracy(tmp_path: Path) -> None:
    result = icy.probe("sender/Hashtable", ["perm"], workers=1, out=tmp_path, **HOLDING)
    assert not result.failures
    for record in result.records:
        assert (record["measure"], record["held_out"], record["split"]) == ("held_out", 0.3, "random")
        assert (record["config"]["held_out"], record["config"]["split"]) == (0.3, "random")
        assert record["train_accuracy"] > 0.9 > record["accuracy"]
    long = result.to_dataframe()
    assert (long["value"] == long["accuracy"]).all()
    assert long["train_accuracy"].min() > 0.9


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


def test_the_keys_of_other_protocols_are_unchanged(tmp_path: Path) -> None:
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
    head, _, *rows = result.table(log=False).splitlines()[2:8]
    assert "hidden size" in head
    assert [row.split()[:3] for row in rows[:2]] == [["sender/FC2L", "128", "4"], ["sender/FC2L", "236", "8"]]
    of_eight = [r for r in result.records if (r["model"], r["hidden_size"]) == ("sender/FC2L", 8)]
    for place, found in curves(icy.ProbeResult(of_eight)).items():
        assert found == curves(tiny)[place]


@pytest.mark.usefixtures("forgetting")
def test_an_edited_plugin_is_another_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers on file come from the old source."""
    first = plugin_file(tmp_path, "Edited")
    icy.probe("Edited", "perm", plugin=first, workers=1, out=tmp_path / "r", **TINY)
    assert make_plan(ProbeSpec("Edited", "perm", plugin=first, out=tmp_path / "r", **TINY)).total == 0
    plugin_file(tmp_path, "Edited", "meanings = meanings.flip(-1)")
    monkeypatch.setattr(registry, "plugin_files", [])
    assert make_plan(ProbeSpec("Edited", "perm", plugin=first, out=tmp_path / "r", **TINY)).total == 4


@pytest.mark.usefixtures("forgetting")
def test_a_model_that_cannot_be_made_raises_with_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "unmade.py"
    file.write_text(
        textwrap.dedent(PLUGIN).format(name="Unmade", body="pass").replace("self.values,", "1 / 0; self.values,")
    )
    with pytest.raises(PluginError, match=r"sender/Unmade cannot be made: ZeroDivisionError.*line \d+ of unmade\.py"):
        icy.probe("Unmade", "perm", plugin=file, out=tmp_path / "r", **TINY)


def test_an_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Choose another place"):
        icy.probe("sender/FC2L", "perm", out=tmp_path / "file" / "out", **TINY)


# -- which models work with which --------------------------------------------------------------------------------------


def test_wildcards_leave_sampling_senders_out_and_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def planned(representation: str) -> set[str]:
        spec = ProbeSpec("sender/RNN*:GRU", "perm", out=tmp_path, representation=representation)
        return {row.job.task.entry.name for row in make_plan(spec).rows}

    with caplog.at_level(logging.WARNING):
        under_soft = planned("soft")
    assert under_soft == {"RNNZero:GRU", "RNNZero2L:GRU", "RNNAutoReg:GRU", "RNNAutoReg2L:GRU"}
    (record,) = caplog.records
    assert record.getMessage() == (
        "Left out, since they do not work with 'soft': sender/RNNSampling2L:GRU, sender/RNNSampling:GRU."
    )
    caplog.clear()
    assert planned("discr") == under_soft | {"RNNSampling:GRU", "RNNSampling2L:GRU"}
    assert not caplog.records


def test_wildcards_leave_families_with_options_out(tmp_path: Path) -> None:
    def planned(models: str) -> list[str]:
        return [row.job.task.entry.qualified for row in make_plan(ProbeSpec(models, "perm", out=tmp_path)).rows]

    assert "sender/FC2L" in planned("sender/*")
    assert not [name for name in planned("sender/*") if "Composed" in name]
    assert planned("receiver/Comp*") == ["receiver/Composed"]
    assert planned("sender/composed[LAYERS=2,cell=rnn],sender/Composed[cell=RNN,layers=2,depth=3]") == [
        "sender/Composed[cell=RNN,layers=2]"
    ]
