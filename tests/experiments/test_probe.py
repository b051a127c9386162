"""Probes: rows, keys, plug-ins and bad input."""

from __future__ import annotations

import logging
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import icy
from icy.core.errors import IncompatibleError, InvalidSettingError, PluginError, StoreError
from icy.core.registry import registry
from icy.experiments.e2e import pair_jobs
from icy.experiments.iterate import chain_jobs
from icy.experiments.plan import make_plan
from icy.experiments.probe import probe_jobs
from icy.grammars import make_language
from icy.languages.table import Table
from icy.training.chain_settings import ChainRequest
from icy.training.job import Replicate
from icy.training.pair_settings import EndToEndRequest
from icy.training.probe_settings import ProbeRequest
from tests.experiments.helpers import HOLDING, PLUGIN, Counter, curves, plugin_file
from tests.helpers import TINY


def test_a_row_has_the_baseline_and_every_grammar_and_seed(tiny: icy.ProbeResult) -> None:
    assert sorted(curves(tiny)) == [(g, s) for g in ("concat", "perm", "rot") for s in (123, 124)]
    assert not tiny.failures
    assert [p.name for p in tiny.paths] == ["results.csv", "results.parquet"]


def test_other_settings_are_other_results(tiny_folder: Path, tiny: object) -> None:
    changed = {**TINY, "settings": {"check_every": 20, "learning_rate": 0.002}}
    plan = make_plan(ProbeRequest("sender/FC2L", ["perm", "rot"], out=tiny_folder, **changed))
    assert plan.total == 6
    assert make_plan(ProbeRequest("sender/FC2L", ["perm", "rot"], out=tiny_folder, **TINY)).total == 0


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
        plan = make_plan(ProbeRequest("sender/FC2L", "perm", out=tmp_path, protocol=protocol, **TINY))
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
    shapes = [(row.name, row.job.settings.hidden) for row in watcher.plan.rows]
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
    assert make_plan(ProbeRequest("Edited", "perm", plugin=first, out=tmp_path / "r", **TINY)).total == 0
    plugin_file(tmp_path, "Edited", "meanings = meanings.flip(-1)")
    monkeypatch.setattr(registry, "plugin_files", [])
    assert make_plan(ProbeRequest("Edited", "perm", plugin=first, out=tmp_path / "r", **TINY)).total == 4


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
        spec = ProbeRequest("sender/RNN*:GRU", "perm", out=tmp_path, representation=representation)
        return {row.job.settings.short_name for row in make_plan(spec).rows}

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
        return [row.job.settings.model for row in make_plan(ProbeRequest(models, "perm", out=tmp_path)).rows]

    assert "sender/FC2L" in planned("sender/*")
    assert not [name for name in planned("sender/*") if "Composed" in name]
    assert planned("receiver/Comp*") == ["receiver/Composed"]
    assert planned("sender/composed[LAYERS=2,cell=rnn],sender/Composed[cell=RNN,layers=2,depth=3]") == [
        "sender/Composed[cell=RNN,layers=2]"
    ]


# -- `icy.train`: any registered kind of job ---------------------------------------------------------------------------


def test_a_probe_by_its_kind_is_the_probe(tmp_path: Path) -> None:
    given = {"model": "sender/FC1L", "grammar": "perm", "quick": True, "seeds": 1, "workers": 1, "progress": False}
    one = icy.train("probe", out=tmp_path, **given)
    other = icy.probe(out=tmp_path, rerun="never", **given)  # type: ignore[arg-type]
    assert [r["key"] for r in one.records] == [r["key"] for r in other.records]


# -- seeds of words that differ from the seeds of initial weights ------------------------------------------------------


SMALL: dict[str, Any] = {"grammar": ["rot"], "meanings": "2x3", "word_length": 2, "hidden": 8, "quick": False}


def probed(out: Path, **given: Any) -> Any:
    return icy.probe("sender/FC1L", **SMALL, out=out, **given)


def test_words_depend_on_the_seed_of_words() -> None:
    (job,) = probe_jobs(ProbeRequest("sender/FC1L", **SMALL, seeds=[1, 2], word_seeds=[7]))
    (plain,) = probe_jobs(ProbeRequest("sender/FC1L", **SMALL, seeds=[1, 7]))
    words = [job.language(Replicate("rot", seed)) for seed in (1, 2)]
    assert words[0] is words[1]
    assert words[0] is plain.language(Replicate("rot", 7))
    assert job.config(Replicate("rot", 1)) == {**plain.config(Replicate("rot", 1)), "word_seed": 7}


def test_keys_without_a_seed_of_words_are_unchanged() -> None:
    (job,) = probe_jobs(ProbeRequest("sender/FC1L", **SMALL, seeds=2))
    assert "word_seed" not in job.config(Replicate("rot", 123))
    assert "word seed" not in job.facts
    assert job.key(Replicate("concat", 123)) == "678d5b09d4b49ecf4cb6"


@pytest.mark.slow
def test_each_seed_of_words_is_a_row_and_more_of_them_resume(tmp_path: Path) -> None:
    first = probed(tmp_path, seeds=2, word_seeds="7,123").to_dataframe()
    assert first["options"].unique().tolist() == ["word_seed=7", "word_seed=123"]
    again = probed(tmp_path, seeds=2, word_seeds=[123, 7, 8]).to_dataframe()
    assert len(again) == 12
    assert set(first["finished"]) <= set(again["finished"])  # loaded, not trained again
    own = probed(tmp_path, seeds=[123]).to_dataframe().set_index("grammar")["value"]
    same = first.query("options == 'word_seed=123' and seed == 123").set_index("grammar")["value"]
    assert own.to_dict() == same.to_dict()
    shown = icy.ProbeResult.load(tmp_path).bias_table().render("text")
    assert all(f"word_seed={seed}" in shown for seed in (7, 8, 123))


# -- training on the authors' languages: keys, facts, and pairs and chains ---------------------------------------------


SMALL_DRAWN: dict[str, Any] = {"meanings": "2x3", "word_length": 2, "hidden": 8}
ROT = Replicate("rot", 123)


def jobs_of(kind: str, **given: Any) -> list[Any]:
    if kind == "probe":
        return list(probe_jobs(ProbeRequest("sender/FC1L", "rot", **SMALL_DRAWN, **given)))
    if kind == "e2e":
        return list(pair_jobs(EndToEndRequest("FC1L", "RNN1L:GRU", "rot", **SMALL_DRAWN, **given)))
    return list(chain_jobs(ChainRequest("FC1L", grammar="rot", **SMALL_DRAWN, **given)))


@pytest.mark.parametrize("kind", ["probe", "e2e", "chain"])
def test_the_draws_are_part_of_the_key_except_the_default(kind: str) -> None:
    plain, authors = jobs_of(kind, draws="all")
    assert authors.config(ROT) == {**plain.config(ROT), "draws": "authors"}
    assert "draws" not in plain.config(ROT)
    assert authors.facts == {**plain.facts, "draws": "authors"}
    assert authors.language(ROT) == icy.make_language("rot", "2x3", 4, 2, 123, draws="authors")
    assert plain.language(ROT) == icy.make_language("rot", "2x3", 4, 2, 123)
    assert jobs_of(kind)[0].key(ROT) == plain.key(ROT)


def test_draws_do_not_change_games_from_scratch() -> None:
    def scratch(draws: str) -> str:
        (job,) = pair_jobs(EndToEndRequest("FC1L", "RNN1L:GRU", draws=draws, **SMALL_DRAWN))  # type: ignore[arg-type]
        return str(job.key(Replicate("none", 123)))

    assert scratch("authors") == scratch("icy")


def test_languages_of_users_are_measured_against_the_concat_of_the_draws() -> None:
    language = icy.make_language("perm", "2x3", 4, 2, 7)
    plain, authors = probe_jobs(ProbeRequest("sender/FC1L", language, draws="all", hidden=8))
    keys = [{job.key(replicate) for replicate in job.replicates} for job in (plain, authors)]
    assert len(keys[0] | keys[1]) == 12
    assert {
        key
        for job in probe_jobs(ProbeRequest("sender/FC1L", language, hidden=8))
        for key in map(job.key, job.replicates)
    } == keys[0]


@pytest.mark.slow
def test_pairs_start_from_saved_models_of_the_same_draws(tmp_path: Path) -> None:
    about: dict[str, Any] = {"workers": 1, "draws": "authors", "quick": True}
    probed = icy.probe("sender/FC2L", "rot", keep_models=True, seeds=1, out=tmp_path / "p", **about)
    assert probed.to_dataframe()["options"].unique().tolist() == ["draws=authors"]
    icy.probe("receiver/FC2L", "rot", keep_models=True, seeds=1, out=tmp_path / "p", **about)
    pair = {"pretrain": "rot", "seeds": 1, "steps": 5, "pretrained": tmp_path / "p", "out": tmp_path / "e"}
    assert len(icy.e2e("FC2L", "FC2L", **pair, **about).records) == 1
    with pytest.raises(InvalidSettingError, match="has no saved model"):
        icy.e2e("FC2L", "FC2L", **pair, **{**about, "draws": "icy"})


# -- probes with words of different lengths ----------------------------------------------------------------------------


SMALL_WORDS: dict[str, Any] = {"grammar": ["perm"], "meanings": "2x3", "hidden": 8, "seeds": 2}


def only_job(model: str = "sender/FC1L", **given: Any) -> Any:
    (job,) = probe_jobs(ProbeRequest.asked(model=model, **{**SMALL_WORDS, **given}))
    return job


def test_equal_bounds_have_the_keys_of_before() -> None:
    replicate = Replicate("perm", 123)
    assert (
        only_job(word_length="2-2").key(replicate) == only_job(word_length=2).key(replicate) == "09c50f52e8fd74965f01"
    )
    several = only_job(word_length="1-2").config(replicate)
    assert several == {**only_job(word_length=2).config(replicate), "word_lengths": "1-2"}


def test_lengths_are_an_axis_of_sweeps() -> None:
    jobs = probe_jobs(ProbeRequest("sender/FC1L", **SMALL_WORDS, word_length=[2, "1-3", "3-3", "2"]))
    assert [(job.settings.word_length, job.settings.word_lengths) for job in jobs] == [(2, ""), (3, "1-3"), (3, "")]


def test_frequent_values_have_short_words_in_a_probe() -> None:
    zipf = only_job(word_length="1-3", frequencies="zipf:2").language(Replicate("concat", 1))
    assert zipf == make_language("concat", "2x3", 4, "1-3", 1, frequencies="zipf:2")


def test_a_saved_sender_ends_its_messages_and_rows_name_the_lengths(tmp_path: Path) -> None:
    how: dict[str, Any] = {"word_length": "1-2", "workers": 1, "progress": False, "keep_models": True}
    result = icy.probe("sender/FC2L", **SMALL_WORDS, **how, out=tmp_path / "out")
    assert set(result.to_dataframe("long")["options"]) == {"word_lengths=1-2"}
    languages = icy.ProbeResult.load(tmp_path / "out").languages()
    assert len(languages) == 4
    for _, make in languages:
        language = make()
        table = Table.of(language)
        assert (language.eos, table.vocab_size) == (4, 4)
        assert table.lengths.tolist() == language.lengths.tolist()


def test_a_language_with_an_end_token_takes_the_place_of_a_grammar() -> None:
    language = replace(make_language("rot", "2x3", 3, "1-2", seed=9), name="mine")
    job = only_job(grammar=[language])
    assert (job.settings.vocab_size, job.settings.word_lengths) == (3, "1-2")
    name = next(iter(job.languages))
    assert np.array_equal(job.language(Replicate(name, 1)).messages, language.messages)
    assert job.language(Replicate("concat", 1)).eos == 3
    larger = only_job(grammar=[language], vocab_size=5)
    assert larger.language(Replicate(name, 1)).lengths.tolist() == language.lengths.tolist()
    assert larger.language(Replicate(name, 1)).eos == 5
    with pytest.raises(InvalidSettingError, match="needs 1-2"):
        only_job(grammar=[language], word_length=2)


@pytest.mark.parametrize("given", [{"representation": "qt"}, {"symbols": "V"}])
def test_senders_that_cannot_end_are_refused_and_receivers_are_not(given: dict[str, str]) -> None:
    with pytest.raises(IncompatibleError, match="cannot end"):
        only_job(word_length="1-2", **given)
    if "symbols" not in given:
        assert only_job("receiver/FC1L", word_length="1-2", **given).settings.word_lengths == "1-2"


def test_a_model_may_declare_that_it_takes_no_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from icy.models.senders.fc import FC1L

    monkeypatch.setattr(FC1L, "takes_ends", False)
    with pytest.raises(IncompatibleError, match="does not take messages that end early"):
        only_job(word_length="1-2")
