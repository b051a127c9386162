"""The published tables, against the papers; expected numbers and counts are from reference/*.md."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from icy.analysis import find_table, published, published_tables
from icy.analysis.literature.catalogue import (
    DATA,
    KEYS,
    NUMBERS,
    end_to_end,
    find_published,
    published_names,
    supervised,
    why_not_measured,
)
from icy.config.protocols import PROTOCOLS
from icy.core.errors import UnknownNameError
from icy.core.registry import SIDES, registry
from icy.languages.meanings import MeaningSpace

TABLES = published_tables()

# Numbers of each table, with the sums of means and errors. Counts are rows times columns of the papers' tables.
CHECKSUMS = pd.read_csv(Path(__file__).with_name("checksums.csv"), index_col="table")
# Which number, its mean, its error, and its text in the paper.
SPOTS = pd.read_csv(Path(__file__).with_name("spots.csv"), dtype={"printed": str})

# -- every table -------------------------------------------------------------------------------------------------------


def test_every_number_is_there_once(subtests: pytest.Subtests) -> None:
    for table in TABLES:
        with subtests.test(table.id):
            cells, expected = table.to_dataframe(), CHECKSUMS.loc[table.id]
            assert len(cells) == table.rows == expected["numbers"]
            sums = cells[["mean", "error"]].sum().tolist()
            assert sums == pytest.approx([expected["means"], expected["errors"]], abs=1e-9)
            which = [*cells.columns[: cells.columns.get_loc("measure")], "measure"]
            assert not cells.duplicated(which).any()


def test_every_file_is_in_the_catalogue() -> None:
    assert sorted(CHECKSUMS.index) == sorted(table.id for table in TABLES)
    assert set(SPOTS["table"]) == set(CHECKSUMS.index)
    assert sorted(DATA.rglob("*.csv")) == sorted(table.path for table in TABLES)


def test_numbers_are_those_of_the_papers(subtests: pytest.Subtests) -> None:
    for spot in SPOTS.to_dict("records"):
        with subtests.test(f"{spot['table']} {spot['printed']}"):
            cell = published(spot["table"]).query(spot["query"]).iloc[0]
            expected = [spot["mean"], spot["error"]]
            assert cell[["mean", "error"]].tolist() == pytest.approx(expected, abs=1e-12, nan_ok=True)
            assert cell["printed"] == spot["printed"]


def test_columns_and_kinds(subtests: pytest.Subtests) -> None:
    for table in TABLES:
        with subtests.test(table.id):
            cells = table.to_dataframe()
            assert list(cells.columns[:2]) == ["source", "table"]
            assert set(NUMBERS) <= set(cells.columns)
            assert cells["source"].eq(table.source).all()
            assert cells["table"].eq(table.label).all()
            assert set(cells["error_kind"]) <= {"sem", "ci95", "sd", "none"}
            assert cells["error"].notna().equals(cells["error_kind"] != "none")
            there = cells["printed"].ne("drawn") & cells["measure"].ne("message")  # without numbers
            assert (cells["mean"].isna() & there).equals(cells["bound"].notna())  # one or the other
            assert cells["printed"].ne("").all()
            assert table.runs is None or cells["n"].dropna().eq(table.runs).all()
            known = cells["error"].notna() & cells["n"].notna()
            assert cells["standard_error"].notna().equals(known)


def test_the_catalogue_is_complete(subtests: pytest.Subtests) -> None:
    for table in TABLES:
        with subtests.test(table.id):
            assert table.title
            assert table.measured
            assert table.citation
            assert table.reproduce in ("probe", "steps", "e2e", "s2b", "recall", "games", "metrics", "")
            assert bool(table.reproduce) != bool(table.shown_by)
            assert len(table.seeds) in (0, table.runs)
            if table.reproduce == "s2b":
                assert table.to_dataframe()["values"].str.fullmatch("2-[35]").all()
            elif table.reproduce == "recall":
                assert table.to_dataframe()["stimuli"].isin(["ohe", "scs"]).all()
            elif table.reproduce == "games":
                assert table.to_dataframe()["world"].isin(["thing", "shape"]).all()
            elif table.reproduce == "steps":
                assert table.to_dataframe()["meanings"].isin(["3x10", "5x10"]).all()
            elif table.reproduce:
                assert MeaningSpace.of(table.meanings).size >= 25
                assert table.vocab_size
                assert table.word_length
            if table.reproduce == "probe":
                protocol = PROTOCOLS[table.protocol]
                assert table.to_dataframe()["protocol"].eq(protocol.name).all()


@pytest.mark.parametrize("cells", [supervised(), end_to_end()], ids=["probe", "e2e"])
def test_names_are_those_of_the_registry(cells: pd.DataFrame) -> None:
    sides = cells["role"] if "role" in cells else pd.Series("pair", index=cells.index)
    for side, name in set(zip(sides, cells["model"], strict=True)):
        parts = zip(SIDES, name.split("+"), strict=True) if side == "pair" else [(side, name)]
        for kind, model in parts:
            (entry,) = registry.match(f"{kind}/{model}", *SIDES)
            assert entry.name == model
    for grammar in set(cells["grammar"]) - {"none"}:
        (entry,) = registry.match(grammar, "grammar")
        assert entry.name == grammar


def test_the_files_hold_the_digits_of_the_papers() -> None:
    """0.970 is not 0.97: it tells how far the number was rounded."""
    with (DATA / "perkins21" / "table13.csv").open(newline="") as file:
        digits = Counter(len(row["mean"].partition(".")[2]) for row in csv.DictReader(file))
    assert digits == {3: 317, 2: 203, 1: 5}
    cells = published("icy22/table3").set_index(["model", "grammar"])
    assert cells.loc[("FC2L", "perm"), "rounding"] == pytest.approx(0.001 / math.sqrt(12))
    assert cells.loc[("FC2L", "shufdet"), "rounding"] == pytest.approx(1 / math.sqrt(12))


# -- errors, bounds, roundings -----------------------------------------------------------------------------------------


def one(name: str, query: str) -> Any:
    (cell,) = published(name).query(query).to_dict("records")
    return cell


def test_standard_errors_are_from_sample_deviations() -> None:
    sem = one("perkins21/13", "representation == 'soft' and model == 'FC1L' and grammar == 'rot'")
    assert sem["standard_error"] == pytest.approx(math.hypot(0.01 * math.sqrt(3 / 2), 0.01 / math.sqrt(12)))
    interval = one("icy22/3", "model == 'FC2L' and grammar == 'shufdet'")
    assert interval["standard_error"] == pytest.approx(math.hypot(3 / 1.96 * math.sqrt(5 / 4), 1 / math.sqrt(12)))
    deviation = one("metarg24/llm", "agent == 'GPT-4o-mini' and samples == 1 and shots == 1")
    assert deviation["standard_error"] == pytest.approx(math.hypot(11.4 / 2, 0.1 / math.sqrt(12)))
    people = one("icy22/2", "dataset == 'eng' and grammar == 'rot'")  # from sample deviations as it stands
    assert people["standard_error"] == pytest.approx(math.hypot(0.03 / 1.96, 0.01 / math.sqrt(12)))
    assert math.isnan(one("metarg22/cores", "agent == 'LSTM'")["standard_error"])  # of how many runs?
    assert one("metarg24/cores", "agent == 'LSTM'")["n"] == 3


def test_a_run_that_was_stopped_has_a_bound_and_no_mean() -> None:
    cell = one("perkins21/table7", "meanings == '3x10' and model == 'RNNZero:LSTM' and grammar == 'hol'")
    assert (cell["bound"], cell["printed"]) == (280_000, ">280k")
    assert math.isnan(cell["mean"])
    assert math.isnan(cell["rounding"])
    stopped = published("perkins21/table7")["bound"].notna()
    assert stopped.sum() == 5 + 9  # at 3x10, at 5x10
    assert stopped.equals(published("perkins21/table7")["printed"].str.startswith(">"))


def test_the_last_printed_place_is_not_always_the_last_digit() -> None:
    steps = one("perkins21/table7", "meanings == '3x10' and model == 'FC2L' and grammar == 'rot'")
    score = one("icy22/22", "grammar == 'concat' and measure == 'score'")
    zero = one("cbm24/3", "experiment == 6 and measure == 'ami'")  # printed as 0, among numbers of three places
    for cell, place in ((steps, 100), (score, 100), (zero, 0.001)):
        assert cell["rounding"] == pytest.approx(place / math.sqrt(12))


def test_counts_of_people_give_the_printed_means() -> None:
    for name in ("icy22/table21", "icy22/table22"):
        cells = published(name).query("measure == 'acc_holdout'")
        assert cells["items"].eq(3 * cells["n"]).all()
        digits = cells["printed"].str.partition("±")[0].str.partition(".")[2].str.len()
        for column in ("correct_min", "correct_max"):
            shares = cells[column] / cells["items"]
            rounded = [round(share, places) for share, places in zip(shares, digits, strict=True)]
            assert rounded == cells["mean"].tolist()
    both = pd.concat([published("icy22/21"), published("icy22/22")]).query("measure == 'acc_holdout'")
    columns = ["dataset", "grammar", "mean", "error", "n", "correct_min", "correct_max"]
    assert both[columns].to_numpy().tolist() == published("icy22/2")[columns].to_numpy().tolist()


def test_counts_of_concept_best_matching_add_up() -> None:
    cells = published("cbm24/3").pivot(index=["experiment", "message_length"], columns="measure", values="mean")
    words = 1000 * cells.index.get_level_values("message_length")
    assert (cells[["good", "ambiguous", "paraphrase"]].sum(axis=1) == words).all()
    assert (cells["cbm"] - cells["good"] / cells["total"]).abs().max() < 0.00051
    assert (cells["paraphrase_rate"] - cells["paraphrase"] / cells["total"]).abs().max() < 0.0051


# -- by number ---------------------------------------------------------------------------------------------------------

LAST_OF = {"perkins21": (18, 2), "icy22": (22, 7), "cbm24": (4, 4), "metarg22": (3, 6), "metarg24": (5, 9)}
BY_NUMBER = {
    f"{paper}/{kind}{number}"
    for paper, last in LAST_OF.items()
    for kind, end in zip(("table", "figure"), last, strict=True)
    for number in range(1, end + 1)
}
# Names by number alone, since the notes on the papers do not describe them. A name leaves the list with its entry.
UNKNOWN = {
    *(f"perkins21/table{n}" for n in (1, 2, 4, 5, 12)),
    *(f"icy22/table{n}" for n in (7, 8, 11)),
    *(f"icy22/figure{n}" for n in (1, 2, 4, 5, 6)),
    *("metarg22/table2", "metarg22/figure1", "metarg22/figure2", "metarg22/figure5"),
    *(f"metarg24/figure{n}" for n in (1, 2, 3, 4, 7)),
}


def test_every_table_and_figure_is_listed_by_its_number() -> None:
    names = [one.name for one in published_names()]
    assert len(names) == len(set(names))
    numbered = {name for name in names if re.search(r"/(table|figure)\d+$", name) and name.split("/")[0] in LAST_OF}
    assert numbered == BY_NUMBER
    for paper, last in LAST_OF.items():
        for kind, end in zip(("table", "figure"), last, strict=True):
            known = f"icy knows its tables 1 to {last[0]} and figures 1 to {last[1]}"
            with pytest.raises(UnknownNameError, match=known):
                find_published(f"{paper}/{kind}{end + 1}")


def test_every_listed_name_is_answered() -> None:
    """A sentence never points to a table of another number, except for one that holds the same numbers."""
    for one in published_names():
        said = why_not_measured(one.name)
        assert find_published(one.name) == one
        assert bool(said) != one.is_measured
        assert ("do not describe it; of" in said) == (one.name in UNKNOWN)
        if said:
            assert one.name in said
            assert "`" in said


@pytest.mark.parametrize(
    "name", ["icy22/table33", "metarg24/figure12", "perkins21/figure30", "table99", "icy22/tabl16"]
)
def test_no_suggestion_has_another_number(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_published(name)
    suggested = str(caught.value).partition("did you mean ")[2].partition("?")[0]
    number = re.findall(r"[0-9]+$", name)
    assert all(re.findall(r"[0-9]+$", one) == number for one in suggested.split(" or ") if suggested)
    assert "`icy list published` shows all" in str(caught.value)


# -- tables together ---------------------------------------------------------------------------------------------------


def test_supervised_cells_are_each_there_once() -> None:
    cells = supervised()
    assert cells.groupby(["source", "table"]).size().to_dict() == {
        ("Icy22", "20"): 20, ("Icy22", "3/12"): 35, ("Icy22", "4/13"): 10, ("Icy22", "5/14"): 25,
        ("Icy22", "6/15/19"): 40, ("Perkins21", "13/14"): 525, ("Perkins21", "15/16"): 432,
    }  # fmt: skip
    assert not cells.duplicated([*KEYS, "source", "n"]).any()
    assert cells.query("representation == 'discr'")["target"].eq(0.95).all()
    assert cells[["mean", "error"]].sum().tolist() == pytest.approx([1468.871, 66.56])
    assert cells["standard_error"].sum() == pytest.approx(47.55114377574155)


def test_numbers_in_several_tables_are_equal() -> None:
    tables = pd.concat([published(f"icy22/{number}") for number in (3, 4, 5)])
    assert len(tables.drop_duplicates([*KEYS, "mean", "error"])) == len(tables.drop_duplicates(KEYS)) == 70


def test_end_to_end_cells() -> None:
    cells = end_to_end()
    assert cells.groupby(["source", "table"]).size().to_dict() == {("Perkins21", "17/18"): 194, ("Perkins21", "6"): 18}
    assert cells[["mean", "error"]].sum().tolist() == pytest.approx([116.947, 3.939])
    assert cells["standard_error"].sum() == pytest.approx(4.861636232395041)


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("perkins21/table13", "perkins21/table13"),
        ("perkins21/table 14", "perkins21/table13"),
        ("PERKINS21/13/14", "perkins21/table13"),
        ("icy22/19", "icy22/table6"),
        ("metarg24/eoa", "metarg24/marl"),
        ("metarg22/figure6", "metarg24/figure9"),
        ("metarg22/recall", "metarg24/figure8"),
        ("icy22/table16", "perkins21/table13"),  # a part of it
        ("Perkins21/10", "perkins21/table15"),
        ("metarg24/table5", "metarg22/table3"),
    ],
)
def test_a_table_is_found_by_all_its_names(name: str, found: str) -> None:
    assert find_published(name).of.id == found


def test_source_and_table_of_a_row_name_its_table() -> None:
    for table in TABLES:
        assert find_table(f"{table.source}/{table.label}") == table
    names = Counter(name for table in TABLES for name in table.names)
    assert set(names.values()) == {1}


def test_returned_tables_are_copies() -> None:
    taken = published("icy22/table3")
    taken["mean"] = 0.0
    assert published("icy22/table3")["mean"].min() > 0
