"""Messages that end early in end-to-end runs: keys, rows, sweeps, tables, languages, models and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import icy
from icy.analysis.plots.learning_curves import e2e as draw_curves
from icy.core.errors import IncompatibleError
from icy.experiments.results import EndToEndResult
from icy.models.senders.fc import FC2L
from icy.records.long_table import to_long
from icy.training.task_models import Pair
from tests.experiments.helpers import SMALL_PAIR, pair_jobs
from tests.helpers import all_numbers

SMALL = SMALL_PAIR
PAIR = ("RNNAutoReg:GRU", "RNN1L:GRU")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> EndToEndResult:
    out = tmp_path_factory.mktemp("lengths")
    given = {**SMALL, "max_length": 4, "length_cost": "0,lazimpa", "frequencies": "zipf:1", "keep_models": True}
    return icy.e2e(*PAIR, out=out, **given)


def jobs(**given: Any) -> Any:
    return pair_jobs(**{**SMALL, **given})


def test_messages_of_a_fixed_length_have_the_keys_that_they_had() -> None:
    (pair,), (also,) = jobs(), jobs(max_length=None, length_cost=0)
    replicate = pair.replicates[0]
    assert pair.key(replicate) == also.key(replicate)
    assert not {"max_length", "length_cost"} & set(pair.config(replicate))


def test_every_length_and_every_cost_is_a_row() -> None:
    rows = jobs(max_length="3,5", length_cost="0,0.1,lazy", representation="soft,gs")
    assert [job.config(job.replicates[0]).get("length_cost") for job in rows[:3]] == [None, 0.1, "lazy"]
    assert len(rows) == len({job.row for job in rows}) == len({job.key(job.replicates[0]) for job in rows}) == 6
    (without,), (zero,) = jobs(max_length=3), jobs(max_length=3, length_cost="0.0")
    assert without.key(without.replicates[0]) == zero.key(zero.replicates[0]) == rows[0].key(rows[0].replicates[0])
    assert "word_length" not in rows[0].config(rows[0].replicates[0])
    assert rows[1].facts["length_cost"] == "length cost 0.1"


def test_records_tables_curves_and_plots(result: EndToEndResult) -> None:
    for record in result.records:
        assert record["max_length"] == 4
        assert "word_length" not in record
        assert 0 <= record["mean_length"] <= 4
        assert [point[0] for point in record["length_curve"]] == [0, 10, 20]
    text = result.table()
    for label in ("mean length", "length_cost=lazimpa, max_length=4", "before the end token", "positive if frequent"):
        assert label in text
    assert "agents can say" not in text
    long, curves = to_long(result.records), result.curves()
    assert long["mean_length"].tolist() == [record["mean_length"] for record in result.records]
    assert curves["mean_length"].tolist() == [point[1] for record in result.records for point in record["length_curve"]]
    assert "mean length" in [ax.get_ylabel() for ax in draw_curves(result).axes]


def test_languages_have_ends_that_metrics_and_saved_models_agree_with(result: EndToEndResult) -> None:
    record = result.records[-1]
    language = result.language(seed=record["seed"], length_cost="lazimpa")
    assert language.eos == 4
    assert language.lengths.max() <= 4
    metric = icy.metrics.topsim(language, message="hamming")
    assert metric.conventions["message"] == "hamming"
    pair = result.model("none", seed=record["seed"], length_cost="lazimpa")
    assert isinstance(pair, Pair)
    with torch.no_grad():
        sent, _ = pair(torch.from_numpy(language.space.all()))
    assert np.array_equal(pair.link.greedy_words(sent).numpy(), language.messages)


def test_reported_topsims_are_those_of_the_languages(tmp_path: Path) -> None:
    result = icy.e2e(*PAIR, max_length=4, out=tmp_path, **{**SMALL, "seeds": 1, "settings": {}})
    assert float(icy.metrics.topsim(result.language(), message="hamming")) == pytest.approx(result.records[0]["topsim"])


def test_populations_have_mean_lengths_over_senders(tmp_path: Path) -> None:
    given = {**SMALL, "seeds": 1, "max_length": 4, "length_cost": "lazimpa"}
    result = icy.e2e(*PAIR, senders=2, receivers=2, out=tmp_path, **given)
    (record,) = result.records
    languages = [result.language(sender=number) for number in (1, 2)]
    assert [one.eos for one in languages] == [4, 4]
    assert record["mean_length"] == pytest.approx(np.mean([one.lengths.mean() for one in languages]))
    assert len(record["length_curve"]) == len(record["population_curve"]) == 3


@pytest.mark.slow
def test_a_sweep_and_shards_have_the_same_numbers(tmp_path: Path) -> None:
    part = {**SMALL, "kind": "e2e", "sender": PAIR[0], "receiver": PAIR[1], "max_length": [3], "length_cost": [0, 0.1]}
    del part["workers"]
    icy.sweep(parts=[part], out=str(tmp_path / "whole"), workers=1)
    for share in ("1/2", "2/2"):
        icy.sweep(parts=[part], out=str(tmp_path / "shards"), workers=1, shard=share)
    found = all_numbers(tmp_path / "whole")
    assert len(found) == 4
    assert json.dumps(found) == json.dumps(all_numbers(tmp_path / "shards"))


def test_models_that_do_not_take_ends_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FC2L, "takes_ends", False)
    with pytest.raises(IncompatibleError, match="sender/FC2L declares that it does not take messages that end early"):
        jobs(max_length=3)
