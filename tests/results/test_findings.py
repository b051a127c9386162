"""Findings: statistics, and agreement of the page with the records."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icy.analysis.correlations import MeanCorrelation, MeanInterval
from icy.grammars import make_language
from results.findings import __main__ as bench
from results.findings.data import (
    FAMILIES,
    FEW,
    Table,
    across,
    correlation_text,
    family_of,
    mean_of,
    over_cells,
    probes,
    quotient_of,
)
from results.findings.finding import UnsupportedError, components, concordance, supported
from results.findings.held_out import accuracy_range, best_accuracy, cells_needed, p_absent, verdict_of_absence


def table(ratios: dict[str, dict[str, float]], cut: Sequence[tuple[str, str]] = ()) -> Any:
    """A table of findings, of ratios by model and grammar, the same for two seeds; some of them cut."""
    rows = [
        {"model": model, "grammar": grammar, "seed": seed, "log": math.log(value), "censored": (model, grammar) in cut}
        for model, of in ratios.items()
        for grammar, value in of.items()
        for seed in (1, 2)
    ]
    return Table.of(pd.DataFrame(rows), "log", list(next(iter(ratios.values()))))


def test_models_that_agree_have_a_concordance_of_one() -> None:
    alike = pd.DataFrame([[1.0, 2, 3], [10, 20, 30], [0, 5, 6]])
    assert concordance(alike) == pytest.approx(1)
    turned = pd.DataFrame([[1.0, 2, 3], [2, 3, 1], [3, 1, 2]])
    assert concordance(turned) == pytest.approx(0)
    tied = pd.DataFrame([[1.0, 20, 20], [2, 20, 20]])  # they agree in all that they tell
    assert concordance(tied) == pytest.approx(1)


def test_variance_components_are_estimated() -> None:
    noise = 1e-9 * np.random.default_rng(0).normal(size=(3, 4, 2))
    shares, p = components(noise + np.arange(3.0)[:, None, None])
    assert shares == pytest.approx({"architecture": 1, "cell": 0, "both together": 0, "seed": 0, "rest": 0}, abs=1e-6)
    assert p == pytest.approx(1)
    assert components(noise + np.array([0.0, 1]))[0]["seed"] == pytest.approx(1)  # crossed with models
    rng = np.random.default_rng(0)
    many = 2 * rng.normal(size=(60, 1, 1)) + rng.normal(size=(1, 60, 1)) + rng.normal(size=(60, 60, 3))
    found, _ = components(many)  # variances of 4, 1 and 1
    assert sum(found.values()) == pytest.approx(1)
    assert found["architecture"] == pytest.approx(4 / 6, abs=0.1)
    assert found["both together"] < 0.01
    assert found["seed"] < 0.01


def test_intervals_count_models_of_a_cell_once() -> None:
    one, two = {"sender/RNNZero:GRU": 0.0, "sender/RNNZero:RNN": 1.0}, {"sender/HierZero:GRU": 0.0}
    expected = (0.5, 0.5 - 6.3531, 0.5 + 6.3531)  # 12.706 standard errors of a half
    assert over_cells(pd.Series(one)) == pytest.approx(expected, abs=1e-4)
    assert over_cells(pd.Series(one | two)) == pytest.approx(expected, abs=1e-4)


def test_means_with_cut_runs_are_bounds() -> None:
    names = [f"sender/RNNZero:{cell}" for cell in ("GRU", "LSTM", "RNN", "SRU")]
    same = table({name: {"rot": 2.0} for name in names})
    assert str(mean_of(same, "rot")) == "2.00 (2.00 to 2.00)"
    capped = table({name: {"rot": 20.0} for name in names}, [(name, "rot") for name in names])
    assert str(mean_of(capped, "rot")) == "> 20.0"
    three = table({name: {"rot": 5.0} for name in names[:3]}, [(names[0], "rot")])
    assert str(mean_of(three, "rot")) == "5.00†, 5.00 and 5.00"  # no interval of three models
    values = dict(zip(names, (2.0, 3.0, 20.0, 20.0), strict=True))
    low = mean_of(table({name: {"rot": value} for name, value in values.items()}), "rot").low
    some = mean_of(table({name: {"rot": value} for name, value in values.items()}, [(names[3], "rot")]), "rot")
    assert (some.low, some.high) == (low, math.inf)  # the interval's end, as if runs ended where they were cut


def test_quotients_leave_out_pairs_that_were_both_cut() -> None:
    a, b, c, d, e = (f"sender/RNNZero:{cell}" for cell in "ABCDE")
    ratios = {a: {"rot": 20.0}, b: {"rot": 4.4}, c: {"rot": 8.0}, d: {"rot": 4 / 1.1}, e: {"rot": 4.0}}
    one = table(ratios, [(a, "rot")])
    other = table({a: {"rot": 20.0}, b: {"rot": 2.0}, c: {"rot": 4.0}, d: {"rot": 2.0}, e: {"rot": 2.0}}, [(a, "rot")])
    assert str(quotient_of(one, other, "rot")) == "2.00 (1.77 to 2.26), 4 of 5"  # Student's t of the others' logarithms
    low = table({name: {"rot": 2.0} for name in ratios})
    assert str(quotient_of(one, low, "rot")).startswith("> ")
    assert str(quotient_of(low, one, "rot")).startswith("< ")
    assert str(quotient_of(one.only([a]), other, "rot")) == "-"


def test_orders_of_models_that_were_mostly_cut_are_unknown() -> None:
    values = {f"sender/RNNZero:{n}": {"perm": 1.0 + n, "rot": 2.0 + n} for n in range(FEW)}
    alike = across(table(values), table(values), "perm", "rot")
    assert alike is not None
    assert alike.correlation.value == pytest.approx(1)
    capped = table(values, [(name, "rot") for name in list(values)[:3]])
    assert correlation_text(across(capped, capped, "perm", "rot")) == "-"
    few = table({name: values[name] for name in list(values)[1:]})
    assert across(few, few, "perm", "rot") is None


def test_a_sentence_that_the_records_do_not_support_is_an_error() -> None:
    assert supported(True, "  All \n hold. ") == "All hold."
    with pytest.raises(UnsupportedError, match=r"do not support this sentence: All hold\."):
        supported(False, "All hold.")


def claims() -> list[list[str]]:
    """Return the cells of each row of the page of claims."""
    return [line.strip("| ").split(" | ") for line in bench.CLAIMS.read_text().splitlines() if line.startswith("| ")][
        2:
    ]


def test_every_claim_has_a_verdict_and_a_command() -> None:
    assert len(claims()) > 20
    assert len({row[0] for row in claims()}) == len(claims())
    for row in claims():
        assert len(row) == 9
        assert re.match(r"`(icy|python -m) .+`$", row[8])
        assert re.match(r"\*\*(shown|not shown|unknown)\*\*", row[1])


def test_claims_of_the_findings_link_their_sections() -> None:
    heads = re.findall(r"^## (.+)$", bench.FULL.read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w-]", "", head.lower().replace(" ", "-")) for head in heads}
    places = [match[1] for row in claims() if (match := re.match(r"\[.+\]\(\S+/findings-in-full\.md#(\S+)\)$", row[0]))]
    assert len(places) == len(claims()) - 11
    assert set(places) == anchors


def test_claims_of_other_pages_have_their_numbers() -> None:
    """The last eleven rows are not made of the findings."""
    zipf, *others, nearest = claims()[-11:]
    page = " ".join(Path("docs/meanings.md").read_text().split())
    for number in ("0.70 times", "at most 0.31 times", "0.67 to 0.74", "0.22 to 0.44"):
        assert number in " ".join(zipf)
        assert number in page
    updates, capped, base = (float(x) for x in ("6.60", "9189", "431"))
    assert "6.60×/1.35" in page
    assert "9,189" in page
    assert updates / (capped / base) == pytest.approx(0.31, abs=0.005)  # of geometric and arithmetic means
    numbers = {  # of the pages that the rows name
        "s2b_floors/s2b-floors.md": (("9 below", "-24.8"), ("5 above",), ("84.0", "74.9"), ("-3.5 to", "7.9")),
        "words_weights/words-weights.md": (("19 to 65 %",), ("31 to 63 of 100 draws", "1.8 to 4.4")),
        "iterated/experiments.md": (("-0.28", "-0.47 to +0.24"), ("-0.02 to", "-0.14 to"), ("-0.08", "-0.10 to -0.07")),
    }
    for place, rows in numbers.items():
        page = " ".join(Path("results", place).read_text().split()).replace("\N{MINUS SIGN}", "-")
        for of_row in rows:
            row = " ".join(others.pop(0))
            assert [number for number in of_row if number not in row] == []
            assert [number for number in of_row if number not in page] == []
    assert not others
    iterated = Path("results/iterated/iterated.md").read_text()
    for found, share in ((4589 + 4592, "99.4 %"), (4146 + 4110, "89.4 %")):
        assert f"{100 * found / 9240:.1f} %" == share
        assert share in nearest[4]
    for number in ("4,589 of 4,620", "4,592 of 4,620", "0.994 (0.991 to 0.996)", "0.894 (0.882 to 0.905)"):
        assert number in iterated
    assert nearest[5] == "99.1 to 99.6 % (3x4: 88.2 to 90.5 %)"


def test_nothing_is_called_preregistered_that_was_measured_before() -> None:
    assert "preregistered" not in bench.PAGE.read_text()
    for page in ("findings/findings-in-full.md", "iterated/iterated.md"):
        text = " ".join(Path("results", page).read_text().split())
        assert "preregistered" not in text.replace("not a preregistered test", "")
        assert "were committed before" not in text
        assert "two earlier measurements with the same languages" in text


def test_a_receiver_of_ambiguous_messages_has_a_best_accuracy() -> None:
    language = make_language("concat", "2x3", 8, 1, 0)
    assert best_accuracy(language) == 1
    same = replace(language, messages=np.zeros_like(language.messages))  # one message: a third of each attribute
    assert best_accuracy(same) == pytest.approx(1 / 3)


def test_chance_is_the_best_constant_answer() -> None:
    assert accuracy_range("receiver", "concat", "2x4", 4, 2, 0) == (0.25, 1)
    tokens = make_language("concat", "2x4", 4, 2, 0).messages
    most = [np.bincount(of).max() / len(of) for of in tokens.T]
    assert accuracy_range("sender", "concat", "2x4", 4, 2, 0) == (pytest.approx(np.mean(most)), 1)


def mean_correlation(value: float, error: float, true: float = math.nan) -> MeanCorrelation:
    """A mean correlation over nine cells with an exact interval."""
    half = stats.t.ppf(0.975, 8) * error
    ends = [MeanInterval(of, of - half, of + half, error, 8) for of in (value, value if math.isnan(true) else true)]
    return MeanCorrelation(*ends, reliability_x=1, reliability_y=1)


def test_an_absence_needs_intervals_within_the_margin() -> None:
    narrow, wide = mean_correlation(0.05, 0.1), mean_correlation(0.05, 0.2)
    assert p_absent(narrow) < 0.05 < p_absent(wide)
    assert p_absent(mean_correlation(0.05, 0.1, true=0.25)) > 0.05  # corrected for noise, it may be larger
    assert [verdict_of_absence(of, p_absent(of)) for of in (narrow, wide)] == ["shown", "unknown"]
    apart = mean_correlation(0.5, 0.2)
    assert verdict_of_absence(apart, p_absent(apart)) == "not shown"


def test_the_number_of_cells_that_decides_has_the_power() -> None:
    mean = mean_correlation(0, 0.2).plain
    cells = cells_needed(mean)
    errors = [0.6 / math.sqrt(of) for of in (cells - 1, cells)]  # 0.6 is the spread of nine cells
    needed = [stats.t.ppf(0.95, of - 1) + stats.t.ppf(0.9, of - 1) for of in (cells - 1, cells)]
    assert needed[0] * errors[0] > 0.3 >= needed[1] * errors[1]


def test_every_model_of_the_atlas_has_a_family() -> None:
    assert set(probes()["model"].map(family_of)) == set(FAMILIES)


def test_models_with_failed_seeds_are_left_out() -> None:
    for protocol in ("acquire", "budget"):
        long = probes(protocol=protocol)
        assert long.groupby("model")["seed"].nunique().eq(3).all()


def test_the_page_is_short_and_every_finding_has_a_sentence_a_picture_and_numbers() -> None:
    text = bench.PAGE.read_text()
    assert len(text.split()) <= 2500
    assert all(line.count("|") <= 6 for line in text.splitlines() if line.startswith("|"))  # fits on a phone
    found = re.findall(
        r"^### .+\n\n\*\*([^*]+)\*\*\n\n!\[([^]]+)\]\((findings-\w+\.png)\)\n\n((?:.+\n+)+?)(?=^##)", text, re.MULTILINE
    )
    assert len(found) == text.count("\n### ") == len(list(bench.HERE.glob("findings-*.png")))
    for sentence, alt, picture, numbers in found:
        assert len(sentence.split()) <= 35
        assert len(alt.split()) >= 8
        assert bench.PAGE.with_name(picture).is_file()
        assert re.search(r"\d", numbers)


@pytest.mark.slow
def test_the_pages_say_what_the_records_show(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for records in bench.SWEEPS.values():
        monkeypatch.setattr(records, "runs", tmp_path)
    found = bench.findings()
    for page, text in bench.pages(found).items():
        assert page.read_text() == text
    drawn = {f"findings-{name}.png" for name, one in found.items() if one.figure is not None}
    assert drawn == set(re.findall(r"\]\(([\w-]+\.png)\)", bench.PAGE.read_text()))
