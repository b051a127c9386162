"""End to end: runs resume, languages emerge, and mistakes are found before anything is trained."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import icy
from icy.analysis.plots.learning_curves import e2e
from icy.core.errors import IncompatibleError, StoreError
from icy.experiments.plan import make_plan
from icy.experiments.results import EndToEndResult
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.metrics import topsim
from icy.records.kinds import job_kind
from icy.records.store import Store
from icy.training.pair_settings import EndToEndRequest, EndToEndSettings
from tests.helpers import mark_others

SPACE = MeaningSpace(2, 3)
CURVE = job_kind("e2e").curve
REPRESENTATIONS = ("soft", "gumb", "discr")
SMALL: dict[str, Any] = {
    "meanings": "2x3",
    "word_length": 2,
    "hidden": 8,
    "seeds": 2,
    "workers": 1,
    "report_every": 10,
    "settings": {"check_every": 20, "batch_size": 16, "evaluation_size": 64, "learning_rate": 0.02, "max_steps": 500},
}

# -- the same numbers, however it is run -------------------------------------------------------------------------------


@pytest.mark.parametrize("representation", mark_others("slow", REPRESENTATIONS, lambda name: name == "gumb"))
def test_resumed_equals_uninterrupted(tmp_path: Path, representation: str) -> None:
    arguments = {**SMALL, "representation": representation, "steps": 20}
    whole = icy.end_to_end("FC2L", "RNN1L:RNN", ["concat", "perm"], out=tmp_path / "whole", **arguments)

    class Stop(icy.Watcher):
        def filed(self, record: Any) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        icy.end_to_end("FC2L", "RNN1L:RNN", ["concat", "perm"], out=tmp_path / "part", watcher=Stop(), **arguments)
    kept = len(Store(tmp_path / "part").records())
    assert 0 < kept < 4
    resumed = icy.end_to_end("FC2L", "RNN1L:RNN", ["concat", "perm"], out=tmp_path / "part", **arguments)
    measured = [column for column in CURVE if column != "steps"]
    for a, b in zip(whole.records, resumed.records, strict=True):
        assert (a["grammar"], a["seed"], a["key"]) == (b["grammar"], b["seed"], b["key"])
        found, expected = np.array(b["curve"], float), np.array(a["curve"], float)
        np.testing.assert_allclose(found, expected, atol=2e-3, equal_nan=True)
    assert len(measured) == 5


# -- measurements ------------------------------------------------------------------------------------------------------


def test_a_pair_from_scratch_learns_to_talk(tmp_path: Path) -> None:
    result = icy.end_to_end("FC2L", "RNN1L:GRU", steps=300, out=tmp_path, **SMALL)
    for record in result.records:
        assert record["end_to_end_accuracy"] > 0.95
        assert record["accuracy"] == record["end_to_end_accuracy"]
        assert record["sender_accuracy"] is None
        assert record["steps"] == 300
    curve = result.curves()
    assert curve["steps"].tolist() == [*range(0, 301, 10)] * 2
    assert curve["loss"].iloc[0] > curve["loss"].iloc[-1]


@pytest.mark.slow
def test_the_game_starts_from_the_weights_of_pre_training(tmp_path: Path) -> None:
    result = icy.end_to_end("FC2L", "RNN1L:GRU", "perm", out=tmp_path, target=0.95, cap=0.5, **SMALL)
    assert [r["grammar"] for r in result.records] == ["concat", "concat", "perm", "perm"]
    for record in result.records:
        start = dict(zip(CURVE, record["curve"][0], strict=True))
        assert start["steps"] == 0
        assert min(start["sender_accuracy"], start["receiver_accuracy"], start["accuracy"]) > 0.85
        assert record["accuracy"] == record["sender_accuracy"]
    of_concat = {r["seed"]: max(r["sender_steps"], r["receiver_steps"]) for r in result.records[:2]}
    for record in result.records:
        assert record["baseline_steps"] == of_concat[record["seed"]]
        assert record["steps"] == of_concat[record["seed"]] // 2


def test_the_length_of_a_game() -> None:
    limits = [({}, 300), ({}, 900), ({"most": None}, 900), ({"updates": 7}, 900)]
    of = [EndToEndSettings(sender="FC2L", receiver="FC2L", **own).limit(steps) for own, steps in limits]
    assert of == [6_000, 10_000, 18_000, 7]
    assert make_plan(EndToEndRequest("FC2L", "CNN")).rows[0].job.settings.updates == 50_000  # type: ignore[attr-defined]


def test_the_language_that_emerged(tmp_path: Path) -> None:
    result = icy.end_to_end("FC2L", "RNN1L:GRU", steps=100, out=tmp_path, **SMALL)
    language = result.language(seed=124)
    assert (language.space, language.message_length, language.seed) == (SPACE, 4, 124)
    assert language.name == "FC2L+RNN1L:GRU soft from scratch"
    space = SPACE.meanings(np.arange(SPACE.size))
    (record,) = [r for r in result.records if r["seed"] == 124]
    found = topsim(space, language.messages, message="hamming").value
    assert found == pytest.approx(record["topsim"], abs=1e-6)  # 64 draws hold all 9 meanings
    assert Language.load(language.save(tmp_path / "mine.parquet")) == language
    assert EndToEndResult.load(tmp_path).language(seed=124) == language
    with pytest.raises(StoreError, match="no language of 'rot'"):
        result.language("rot")


@pytest.mark.slow
def test_table_and_figure(tmp_path: Path) -> None:
    result = icy.end_to_end("FC2L", "RNN1L:GRU", ["concat", "perm"], out=tmp_path, steps=20, **SMALL)
    text = result.table()
    for label in ("sender accuracy", "receiver accuracy", "end-to-end accuracy", "topsim", "concat", "perm"):
        assert label in text
    assert "after 20 updates" in text
    axes = result.plot().axes
    assert [ax.get_ylabel() for ax in axes] == [
        "sender accuracy\non the language",
        "receiver accuracy\non the language",
        "end-to-end\nloss",
        "end-to-end\naccuracy",
        "topsim (hamming)",
    ]
    assert [len(ax.lines) for ax in axes] == [3, 3, 2, 3, 3]  # with the line by chance
    before = [r["curve"][0][3] for r in result.records]
    assert result.to_dataframe("long")["topsim_before"].tolist() == before
    assert "topsim before (hamming)" in text
    steps, mean = axes[0].lines[0].get_data()
    concat = result.curves().query("grammar == 'concat'").groupby("steps")["sender_accuracy"].mean()
    np.testing.assert_allclose(mean, concat.loc[steps])
    scratch = result.curves().assign(grammar="none", sender_accuracy=math.nan, receiver_accuracy=math.nan)
    assert len(e2e(scratch).axes) == 3


@pytest.mark.slow
def test_results_of_both_kinds_live_in_one_folder(tmp_path: Path) -> None:
    icy.end_to_end("FC2L", "RNN1L:GRU", out=tmp_path, steps=20, **SMALL)
    sizes = {name: SMALL[name] for name in ("meanings", "word_length", "hidden", "seeds", "workers", "settings")}
    icy.probe("sender/FC2L", "perm", out=tmp_path, target=0.6, **sizes)
    assert {r["protocol"] for r in icy.ProbeResult.load(tmp_path).records} == {"e2e", "acquire"}
    assert {r["protocol"] for r in EndToEndResult.load(tmp_path).records} == {"e2e"}
    assert icy.ProbeResult.load(tmp_path).table()


# -- errors ------------------------------------------------------------------------------------------------------------


def test_pre_training_that_never_reaches_its_target_is_a_result(tmp_path: Path) -> None:
    arguments = {**SMALL, "settings": {**SMALL["settings"], "max_steps": 40}}
    result = icy.end_to_end("FC2L", "RNN1L:GRU", ["perm", "hol"], out=tmp_path, target=0.999, steps=10, **arguments)
    failed = {(r["grammar"], r["seed"]): r for r in result.failures}
    assert failed
    for record in failed.values():
        assert record["reason"] == "not_learnt"
        assert "did not reach 0.999 within 40 updates" in record["error"]
        assert record["accuracy"] is None
    assert "failed" in result.table()
    again = icy.end_to_end("FC2L", "RNN1L:GRU", ["perm", "hol"], out=tmp_path, target=0.999, steps=10, **arguments)
    assert [r["finished"] for r in again.records] == [r["finished"] for r in result.records]  # kept, not repeated


@pytest.mark.usefixtures("forgetting")
def test_models_that_do_not_fit_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    class TooShort(nn.Module):
        def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(message_length - 1, vocab_size + 1))

        def forward(self, meanings: torch.Tensor) -> torch.Tensor:
            return self.weight.expand(len(meanings), *self.weight.shape)

    class TokensOnly(nn.Module):
        def __init__(self, space: MeaningSpace, message_length: int, vocab_size: int, hidden_size: int) -> None:
            super().__init__()
            self.rows = nn.Embedding(vocab_size + 1, space.attributes * space.values)
            self.shape = (space.attributes, space.values)

        def forward(self, message: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.rows(message).mean(-2).unflatten(-1, self.shape)
            return found

    icy.register_sender("TooShort")(TooShort)
    icy.register_receiver("TokensOnly")(TokensOnly)
    with pytest.raises(IncompatibleError, match=r"TooShort outputs scores of shape \(2, 3, 5\), not \(2, 4, 5\)"):
        icy.end_to_end("TooShort", "CNN", out=tmp_path, **SMALL)
    with pytest.raises(IncompatibleError, match="receiver/TokensOnly cannot read messages of sender/FC2L"):
        icy.end_to_end("FC2L", "TokensOnly", out=tmp_path, **SMALL)


def test_one_sender_with_several_receivers(tmp_path: Path) -> None:
    plan = make_plan(EndToEndRequest("FC2L", ["CNN", "RNN1L:GRU"], out=tmp_path, meanings="2x3", word_length=2))
    assert [row.name for row in plan.rows] == ["FC2L+CNN", "FC2L+RNN1L:GRU"]
    counts = [icy.create_sender("FC2L", "2x3", 4), icy.create_receiver("CNN", "2x3", 4)]
    assert plan.rows[0].job.parameters["true"] == sum(m.parameter_count() for m in counts)


# -- former faults -----------------------------------------------------------------------------------------------------


def test_models_are_paired_by_place_repeats_and_all(tmp_path: Path) -> None:
    spec = EndToEndRequest(["FC1L", "FC2L", "FC1L"], ["FC2L", "CNN", "CNN"], meanings="2x3", out=tmp_path)
    assert [row.name for row in make_plan(spec).rows] == ["FC1L+FC2L", "FC2L+CNN", "FC1L+CNN"]


@pytest.mark.slow
def test_runs_of_other_lengths_are_rows_of_their_own(tmp_path: Path) -> None:
    short = icy.end_to_end("FC2L", "RNN1L:GRU", steps=10, out=tmp_path, **SMALL)
    long = icy.end_to_end("FC2L", "RNN1L:GRU", steps=20, out=tmp_path, **SMALL)
    table = EndToEndResult.load(tmp_path).table()
    assert "game steps" in table
    assert table.count("end-to-end accuracy") == 2
    both = short + long
    assert isinstance(both, EndToEndResult)
    assert len(both.curves()["steps"].unique()) == 3
    with pytest.raises(StoreError, match=r"has 4 saved models that match, which differ in steps \(10, 20\)"):
        both.language()
    assert both.language(steps=20).seed == 123


@pytest.mark.slow
def test_settings_that_tell_the_same_rows_apart_have_one_column_and_a_note(tmp_path: Path) -> None:
    icy.end_to_end("FC2L", "CNN", out=tmp_path, **(SMALL | {"steps": 10, "report_every": 5}))
    icy.end_to_end("FC2L", "CNN", out=tmp_path, **(SMALL | {"steps": 20, "report_every": 10}))
    lines = EndToEndResult.load(tmp_path).table().splitlines()
    assert "game steps" in lines[2]
    assert "report every" not in lines[2]
    assert lines[-2:] == ["game steps 10: report every 5", "game steps 20: report every 10"]


def test_sampling_senders_start_from_scratch_in_any_representation_of_pre_training(tmp_path: Path) -> None:
    spec = EndToEndRequest("RNNSampling:GRU", "CNN", ("none",), representation="discr", meanings="2x3", out=tmp_path)
    assert make_plan(spec).rows[0].name == "RNNSampling:GRU+CNN"


def test_nothing_on_file_is_an_empty_table(tmp_path: Path) -> None:
    result = icy.end_to_end("FC2L", "CNN", out=tmp_path, rerun="never", **SMALL)
    assert result.table().startswith("No results.")
