"""Load results, and select parts of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icy.cli.options import Assignment
from icy.core.errors import InvalidSettingError, StoreError, UnknownNameError
from icy.experiments.results import ProbeResult, read_results
from icy.records.load import long_of, read_long, select
from icy.records.long_table import OLD_COLUMNS
from tests.helpers import THREE, long

# -- loading long tables: duplicates, failures, and text instead of numbers --------------------------------------------


def test_duplicate_rows_count_once() -> None:
    table = long({"A": {"rot": [0.4, 0.6]}})
    assert len(long_of(pd.concat([table, table]))) == 2
    without_keys = table.assign(key=None, value=table["value"] + 0.1)
    with pytest.raises(InvalidSettingError, match="two values of sender/A on rot with seed 123"):
        long_of(pd.concat([table, without_keys]))


def test_results_are_preferred_to_failures(tmp_path: Path) -> None:
    table = long({"A": {"rot": [0.4, 0.6]}})
    failed = table.assign(value=math.nan, failed=True, key="again")
    assert long_of(pd.concat([table, failed]))["value"].tolist() == [0.4, 0.6]
    games = table.assign(role="pair", value=math.nan, end_to_end_accuracy=[0.2, 0.3])
    with pytest.raises(InvalidSettingError, match="two values"):
        long_of(pd.concat([games, games.assign(end_to_end_accuracy=[0.2, 0.9])]))
    places = [tmp_path / "good.csv", tmp_path / "failed.csv"]
    for place, one in zip(places, (table, failed), strict=True):
        one.to_csv(place, index=False)
    assert long_of(read_results(places))["value"].tolist() == [0.4, 0.6]
    assert len(select(pd.concat([table, table], ignore_index=True), ["A"])) == 2


def test_bare_names_get_their_side() -> None:
    least = pd.DataFrame({"model": "FC1L", "role": ["sender", "receiver"], "grammar": "rot", "seed": 1, "value": 0.5})
    least["measure"] = "accuracy"
    assert long_of(least)["model"].tolist() == ["sender/FC1L", "receiver/FC1L"]


def test_a_table_without_measure_is_an_error(tmp_path: Path) -> None:
    least = pd.DataFrame({"model": ["A", "B"], "grammar": "rot", "seed": 1, "value": 0.5})
    with pytest.raises(InvalidSettingError, match="measure of this table is unknown: ratio, accuracy or held_out"):
        long_of(least)
    with pytest.raises(InvalidSettingError, match="measure of 1 of its 2 rows"):
        long_of(least.assign(measure=["ratio", None]))
    assert long_of(least.assign(protocol=["acquire", "budget"]))["measure"].tolist() == ["ratio", "accuracy"]
    least.assign(measure=["ratio", None]).to_csv(tmp_path / "least.csv", index=False)
    read = read_results([tmp_path / "least.csv"], measure="held_out")
    assert long_of(read)["measure"].tolist() == ["ratio", "held_out"]  # a known measure is not changed


@pytest.mark.parametrize("word", ["yes", " TRUE", "1", True, "T", "y", 1.0])
def test_a_failure_may_be_written_in_several_ways(word: Any) -> None:
    table = long({"A": {"rot": [0.4, 0.6]}}).astype({"failed": object})
    table.loc[0, "failed"] = word
    assert long_of(table)["failed"].tolist() == [True, False]


def test_a_file_that_is_no_table_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_text("no parquet")
    with pytest.raises(StoreError, match=r"broken\.parquet cannot be read as a table"):
        read_long(tmp_path / "broken.parquet")


@pytest.mark.parametrize("value", [math.inf, -math.inf, -3.0, 1e308, -1e-9])
def test_impossible_ratios_are_rejected(tmp_path: Path, value: float) -> None:
    table = long({"A": {"rot": [value, 2.0]}}, measure="ratio")
    for path in (tmp_path / "results.csv", tmp_path / "results.parquet"):
        table.to_csv(path, index=False) if path.suffix == ".csv" else table.to_parquet(path)
        with pytest.raises(
            InvalidSettingError,
            match=r"the value of sender/A on rot, seed 123, is .*, (infinite|a ratio (below 0|above 1e\+10));",
        ):
            read_long(path)


@pytest.mark.parametrize("seed", ["9223372036854775808", "18446744073709551615", "1" * 40, "1e300", "9.3e18"])
def test_seeds_beyond_64_bits_are_rejected(tmp_path: Path, seed: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"model,grammar,seed,value,measure\nsender/A,rot,{seed},1.5,ratio\nsender/A,rot,7,1.5,ratio\n")
    with pytest.raises(InvalidSettingError, match=r"column seed .* the largest whole number in a table is 9223372036"):
        read_long(path)


def test_the_largest_seed_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"model,grammar,seed,value,measure\nsender/A,rot,{2**63 - 1},1.5,ratio\nsender/A,rot,7,1,ratio\n")
    assert read_long(path)["seed"].tolist() == [2**63 - 1, 7]


def test_tables_with_the_old_names_of_columns_are_read_with_one_warning(
    tiny: ProbeResult, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    new = tiny.to_dataframe("long")
    new.rename(columns={new: old for old, new in OLD_COLUMNS.items()}).to_parquet(tmp_path / "old.parquet")
    pd.testing.assert_frame_equal(long_of(tmp_path / "old.parquet"), long_of(new))
    assert caplog.messages == [
        "This long table has old names of columns, which icy still reads: side is now role, kind is now job_kind and "
        "cut is now censored."
    ]
    assert len(select(new, where={"side": "sender"})) == len(new)


# -- selecting rows of results -----------------------------------------------------------------------------------------


def test_selection() -> None:
    table = long(THREE)
    assert set(select(table, ["a", "sender/B"])["model"]) == {"sender/A", "sender/B"}
    assert set(select(table, grammars=["*rot*"])["grammar"]) == {"rot"}
    with pytest.raises(UnknownNameError, match="No grammar in these results is called 'hol'"):
        select(table, grammars=["hol"])


def test_results_are_in_the_order_of_the_models_that_are_named() -> None:
    table = long(THREE)
    assert list(dict.fromkeys(select(table, ["C", "[AB]"])["model"])) == ["sender/C", "sender/A", "sender/B"]
    assert list(dict.fromkeys(select(table, ["b", "all"])["model"])) == ["sender/B", "sender/A", "sender/C"]
    assert select(table, grammars=["rot"]).index.is_monotonic_increasing


@pytest.mark.slow
@pytest.mark.parametrize("name", ["null", "NA", "None", "nan", "True", "1e5", "007", "inf"])
def test_names_that_look_like_something_else_are_selected(name: str) -> None:
    table = long({name: {name: 0.5}, "7": {"rot": 0.5}, "100000": {"100000": 0.5}})
    assert list(select(table, [name], [name])["grammar"]) == [name]
    assert list(select(table, where={"grammar": name})["model"]) == [f"sender/{name}"]
    assert list(
        select(table, where=dict([Assignment(plain=True).convert(f"grammar={name}", None, None)]))["grammar"]
    ) == [name]


def test_numbers_are_selected_by_their_value_and_missing_values_by_none() -> None:
    table = long({"A": {"rot": [0.5, 0.5]}}).assign(pretrain_representation=["soft", None])
    assert (
        list(select(table, where={"seed": "123.0"})["seed"])
        == list(select(table, where={"seed": 123})["seed"])
        == [123]
    )
    for nothing in (None, "None", "null", "nan", ""):
        assert list(select(table, where={"pretrain_representation": nothing})["seed"]) == [124]


def test_settings_in_the_column_of_options_are_selected_by_name() -> None:
    texts = ["frequencies=zipf:1, senders=3", "", "frequencies=equal, existing=pets@0704534bc80552ac"]
    table = pd.concat([long({"A": {"rot": 0.5}})] * 3).assign(options=texts, seed=[1, 2, 3])

    def seeds(**where: object) -> list[int]:
        return list(select(table, where=where)["seed"])

    assert seeds(senders=3) == seeds(frequencies="zipf:1") == [1]
    assert seeds(frequencies="zipf:1,equal") == [1, 3]
    assert seeds(senders="none") == [2, 3]
    assert seeds(existing="pets@0704534bc80552ac") == [3]
    with pytest.raises(UnknownNameError, match=r"senders in these results is called '4'; known: 3"):
        seeds(senders=4)
    with pytest.raises(UnknownNameError, match="column of results is called 'sender'"):
        seeds(sender=3)
