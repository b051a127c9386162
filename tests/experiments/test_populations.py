"""Populations in end-to-end runs: keys, rows, sweeps, tables, languages, models and estimates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import icy
from icy.core.errors import StoreError
from icy.experiments.plan import make_plan
from icy.experiments.results import EndToEndResult
from icy.records.long_table import to_long
from icy.records.store import Store
from icy.training.pair_settings import EndToEndRequest
from tests.experiments.helpers import SMALL_PAIR, pair_jobs
from tests.helpers import all_numbers

SMALL: dict[str, Any] = {**SMALL_PAIR, "word_length": 2}
PAIR = ("FC2L", "RNN1L:GRU")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> EndToEndResult:
    out = tmp_path_factory.mktemp("populations")
    return icy.e2e(*PAIR, senders="1,2", receivers=2, keep_models=True, out=out, **SMALL)


def jobs(**given: Any) -> Any:
    return pair_jobs(**{**SMALL, **given})


def test_a_pair_has_the_key_that_it_had() -> None:
    (pair,), (also,) = jobs(), jobs(senders=1, receivers=1, replace_every=0, replacement="random")
    replicate = pair.replicates[0]
    assert pair.key(replicate) == also.key(replicate)
    assert not {"senders", "receivers", "replace_every", "replacement"} & set(pair.config(replicate))


def test_every_number_of_agents_and_every_schedule_is_a_row() -> None:
    rows = jobs(senders="1,3", receivers=2, replace_every="0,10", replacement="gradual,random")
    assert len(rows) == 6  # without a replacement, its kind has no effect
    assert len({job.row for job in rows}) == 6
    assert len({job.key(job.replicates[0]) for job in rows}) == 6
    assert rows[-1].facts["senders"] == "3 senders"


def test_costs_grow_with_the_number_of_agents() -> None:
    (pair,), (population,) = jobs(), jobs(senders=3, receivers=2)
    (senders,) = jobs(senders=2)
    alone, of_sender = (job.parameters["true"] for job in (pair, senders))
    assert population.parameters["true"] == 2 * alone + (of_sender - alone)
    assert population.update_cost > pair.update_cost


def test_records_tables_and_languages_of_populations(result: EndToEndResult) -> None:
    assert [(r["senders"], r["receivers"]) for r in result.records] == [(1, 2), (1, 2), (2, 2), (2, 2)]
    for record in result.records:
        pairings = np.array(record["pairings"])
        assert pairings.shape == (record["senders"], record["receivers"])
        assert record["end_to_end_accuracy"] == pytest.approx(pairings.mean())
        assert record["worst_accuracy"] == pairings.min()
        assert (record["sender_agreement"] is None) is (record["senders"] == 1)
        assert len(record["sender_topsims"]) == record["senders"]
        assert [point[0] for point in record["population_curve"]] == [0, 10, 20]
    text = result.table()
    for label in (
        "share of equal tokens",
        "worst pairing",
        "sender agreement",
        "receivers=2, senders=1",
        "receivers=2, senders=2",
    ):
        assert label in text
    assert "mean over all pairings" in text
    long = to_long(result.records)
    assert long["worst_accuracy"].tolist() == [record["worst_accuracy"] for record in result.records]
    first, second = (result.language(seed=123, senders=2, sender=number) for number in (1, 2))
    assert first.messages.shape == second.messages.shape
    assert (first.messages != second.messages).any()
    for sender in (0, 3):
        with pytest.raises(StoreError, match=f"Sender {sender} does not exist: this run has 2 senders"):
            result.language(seed=123, senders=2, sender=sender)


def test_a_saved_population_is_a_list_of_pairs(result: EndToEndResult) -> None:
    model = result.model("none", seed=123, senders=1)
    assert isinstance(model, nn.ModuleList)
    assert len(model) == 2
    one, other = ({name: value.tolist() for name, value in pair.state_dict().items()} for pair in model)
    assert {name for name in one if one[name] == other[name]} == {name for name in one if name.startswith("sender.")}


def test_a_single_pair_has_no_rows_of_populations(tmp_path: Path) -> None:
    text = icy.e2e(*PAIR, out=tmp_path, **SMALL).table()
    assert "worst pairing" not in text
    assert "icy metrics FOLDER -m topsim --as-reported" in text


@pytest.mark.slow
def test_a_sweep_a_pool_and_shards_have_the_same_numbers(tmp_path: Path) -> None:
    part = {**SMALL, "kind": "e2e", "sender": "FC2L", "receiver": "RNN1L:GRU", "senders": [1, 2], "replace_every": 8}
    del part["workers"]
    icy.sweep(parts=[part], out=str(tmp_path / "whole"), workers=1)
    for share in ("1/2", "2/2"):
        icy.sweep(parts=[part], out=str(tmp_path / "shards"), workers=1, shard=share)
    found = all_numbers(tmp_path / "whole")
    assert len(found) == 4
    assert json.dumps(found) == json.dumps(all_numbers(tmp_path / "shards"))


@pytest.mark.slow
def test_a_call_with_more_seeds_trains_only_these(tmp_path: Path) -> None:
    icy.e2e(*PAIR, senders=2, receivers=2, out=tmp_path, **{**SMALL, "seeds": 1})
    (before,) = Store(tmp_path).records()
    icy.e2e(*PAIR, senders=2, receivers=2, out=tmp_path, **SMALL)
    again = {record["seed"]: record for record in Store(tmp_path).records()}
    assert again[123]["finished"] == before["finished"]
    assert set(again) == {123, 124}


def test_a_kind_of_replacement_without_a_schedule_is_idle(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_plan(
        EndToEndRequest.asked(sender="FC2L", receiver="CNN", senders=2, replacement="random", out=tmp_path, **SMALL)
    )
    assert "replacement does nothing without replace_every" in caplog.text


@pytest.mark.slow
def test_attributes_with_different_numbers_of_values(tmp_path: Path) -> None:
    given = {**SMALL, "meanings": "4,2", "steps": 200}
    result = icy.e2e(*PAIR, senders=2, receivers=2, out=tmp_path, **given)
    assert all(record["worst_accuracy"] > 0.8 for record in result.records)
