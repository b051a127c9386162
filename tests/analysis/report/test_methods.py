"""The methods of results in sentences."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import icy
from icy.analysis import methods
from icy.core.errors import StoreError
from icy.records.load import load_records
from icy.version import __version__
from tests.helpers import long, on_file

RESULTS = Path(__file__).parents[3] / "results"
ICY = f"The icy developers: icy {__version__}, Python package icy-toolkit."


def test_probes_have_one_paragraph_and_their_versions() -> None:
    runs = [on_file(grammar, seed, protocol="acquire") for grammar in ("concat", "rot") for seed in (123, 124, 125)]
    runs += [on_file("hol", seed, reason="cap", steps=2000) for seed in (123, 124)]
    failure = {"failed": True, "reason": "error", "error": "ValueError: no", "steps": None}
    runs.append(on_file("hol", 125, **failure))
    runs = [{**run, "git": "0123456789abcdef", "device_name": "a CPU", "versions": run["versions"] | {"torch": "2.9"}}
            for run in runs]  # fmt: skip
    first, second = methods(runs).split("\n\n")
    assert first == (
        "We trained the sender FC2L on the grammars concat, rot and hol under the protocol acquire, with 3 seeds "
        "(123 to 125). Settings: meanings 5x10, vocabulary size V 4, tokens per word w 4, hidden size E 128, "
        "representation soft (probability vectors, cross-entropy). Training settings are those of icy's preset default "
        "(optimizer adam, learning rate 0.001, batches of 128 meanings), except check_every 50. "
        "The value of a run is the number of updates to an accuracy of "
        "0.8, divided by that of concat with the same model and seed; training was cut at 20 times the updates of "
        "concat. 1 of 9 runs failed and is left out (ValueError: no). 2 of 9 runs were cut before the target: the true "
        "ratio is larger."
    )
    assert second.startswith(
        "The runs were made with icy 0.2, torch 2.9 (commit 0123456789) on a CPU, 2026-01-01. Tables have means"
    )
    assert "corrected by Holm's method (1979). References: H. Perkins" in second
    assert second.endswith(ICY)
    assert methods(runs) == methods(runs[::-1])


def test_a_long_table_knows_no_versions() -> None:
    values = {"A": {"rot": [0.5, 0.6]}, "B": {"rot": [0.5]}}
    rows = pd.concat([long(values), long(values, hidden_size=64, settings="learning_rate=0.01", options="layers=2")])
    first, second = methods(rows).split("\n\n")
    assert "the senders A and B on the grammar rot under the protocol budget, with 1 to 2 seeds (123 and 124)." in first
    assert "E 64 and 128" in first
    assert "128 meanings), except learning_rate 0.01 in some runs. Options: layers 2 in some runs." in first
    assert "Plug-ins: A (not loaded: --plugin FILE adds its source); B (not loaded" in first
    assert (
        "its accuracy at the end of training, from 0 to 1, after as many updates as concat took to an accuracy of"
        in first
    )
    assert second.startswith("Tables have means over seeds")


@pytest.mark.parametrize(
    ("file", "kind", "sentences"),
    [
        ("reproduced", "e2e", ["We trained the pairs HierZero:RNN+Hier:RNN, ",
         "end to end, from scratch and after both sides had learned the grammars concat, perm, rot and shufdet, with",
         "topsim: correlation", "Sources of metrics: topsim: Brighton and Kirby 2006;", "2 of 16 runs"]),
        ("iterated", "chain", ["under the protocol iterated", "bottleneck 0.5", "The value of a run is its survival."]),
        ("s2b_agents", "s2b", ["the models ", "posdis: constant skip", "References: K. Denamganai"]),
        ("games", "games", ["cbm: words tokens", "References: B. Carmeli"]),
    ],
)  # fmt: skip
def test_every_kind_of_job_has_sentences(file: str, kind: str, sentences: list[str]) -> None:
    records = [r for r in load_records(RESULTS / file / "records.parquet") if r.get("kind") == kind]
    text = methods(records)
    assert text.endswith(ICY)
    for sentence in sentences:
        assert sentence in text
    assert "nan" not in text.replace("nance", "")
    assert "<NA>" not in text


@pytest.mark.usefixtures("forgetting")
def test_the_source_of_a_plug_in_is_named() -> None:
    icy.register_sender("Mine", source="A. Author 2026")(type("Mine", (), {"__doc__": "A sender."}))
    assert "Plug-ins: Mine (A. Author 2026)." in methods(long({"Mine": {"rot": [0.5]}}))


def test_an_unknown_path_is_one_sentence() -> None:
    with pytest.raises(StoreError, match="does not exist"):
        methods("nowhere")
