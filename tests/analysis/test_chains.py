"""Measures of the generations of chains."""

from __future__ import annotations

from pathlib import Path

import pytest

import icy
from icy.analysis.chains import chain_languages, generations
from icy.analysis.plots.chain_plots import chain_paths
from icy.core.errors import InvalidSettingError, StoreError
from icy.experiments.results import ProbeResult
from icy.grammars import make_language
from icy.languages.language import Language
from icy.metrics import evaluate
from icy.records.pack import Pack


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> ProbeResult:
    folder = tmp_path_factory.mktemp("chains")
    return icy.iterate("FC2L", ["perm", "hol"], quick=True, chains=1, updates=20, workers=1, out=folder)


def test_the_languages_of_a_chain_begin_with_the_first_language(chains: ProbeResult, tmp_path: Path) -> None:
    record = chains.records[0]
    languages = chain_languages(chains, record)
    assert len(languages) == 4
    assert languages[0] == make_language("perm", "3x4", 4, 2, record["seed"])
    assert chains.folder is not None
    Pack.read(chains.folder).write(tmp_path / "chains.parquet")
    assert chain_languages(ProbeResult.load(tmp_path / "chains.parquet"), record) == languages


def test_more_than_a_hundred_generations_are_in_order(chains: ProbeResult) -> None:
    record = chains.records[0]
    content = {place: chains.content(place) for place in record["files"]}

    class Many:
        records = chains.records

        def content(self, place: str) -> bytes:
            return content[names[place]]

    numbers = (0, 3, 99, 100)
    names = {f"languages/key-{n:02d}.npz": file for n, file in zip(numbers, record["files"], strict=True)}
    files = sorted(names)  # 100 is before 99 as text
    assert chain_languages(Many(), {**record, "files": files}) == chain_languages(chains, record)


def test_several_settings_are_refused(chains: ProbeResult, tmp_path: Path) -> None:
    other = icy.iterate("FC2L", ["perm", "hol"], quick=True, chains=1, updates=20, bottleneck=0.75, workers=1,
                        out=tmp_path / "other")  # fmt: skip
    both = ProbeResult([*chains.records, *other.records], folder=chains.folder)
    with pytest.raises(InvalidSettingError, match="several settings"):
        chain_paths(both)


def test_each_generation_has_its_metrics_and_their_values_by_chance(chains: ProbeResult) -> None:
    table = generations(chains, metrics=["posdis", "residual_entropy"], permutations=3, seed=5)
    assert len(table) == 8
    last = chain_languages(chains, chains.records[1])[-1]
    own = evaluate(last, metrics=["posdis", "residual_entropy"], permutations=3, seed=5,
                   conventions={"residual_entropy": {"search": "greedy"}})  # fmt: skip
    for name in ("posdis", "posdis_chance", "residual_entropy", "residual_entropy_chance"):
        assert table.iloc[-1][name] == own[name].item()
    assert table.loc[table["generation"].eq(0), "predicts_perm"].iloc[0] == 1


def test_without_metrics_it_only_compares_with_grammars(chains: ProbeResult) -> None:
    table = generations(chains, metrics=())
    assert "topsim_chance" not in table
    assert table.loc[table["generation"].eq(0), "nearest"].iloc[0] == "perm"


def test_results_without_chains_are_refused() -> None:
    with pytest.raises(InvalidSettingError, match="no chains"):
        generations(ProbeResult([]))


def test_damaged_bytes_are_refused() -> None:
    with pytest.raises(StoreError, match="not an icy language"):
        Language.from_bytes(b"PK")
