"""The methods of results in sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

import icy
from icy.analysis import methods
from icy.records.load import load_records
from icy.version import __version__
from tests.helpers import long

RESULTS = Path(__file__).parents[3] / "results"
ICY = f"The icy developers: icy {__version__}, Python package icy-toolkit."


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
    if file == "reproduced":  # this pack grows with every measured row, so the test takes the pairs of icy 0.1.0
        records = [r for r in records if r["versions"]["icy"] == "0.1.0"]
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
