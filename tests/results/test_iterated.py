"""The analysis of the study of iterated learning, on small chains."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import icy
from icy.analysis.correlations import without_margins
from icy.experiments.results import ProbeResult
from icy.grammars import make_language
from icy.records.load import long_of
from results.iterated import __main__ as iterated


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory) -> ProbeResult:
    folder = tmp_path_factory.mktemp("chains")
    options = {"quick": True, "generations": 1, "updates": 20, "workers": 1, "out": folder}
    return icy.iterate(["FC2L", "FC1L"], list(iterated.GRAMMARS), **options)  # type: ignore[arg-type]


def test_only_senders_with_all_chains_count(chains: ProbeResult) -> None:
    (share, done), *others = iterated.whole_senders(chains, 2).items()
    assert (share, len(done.records), others) == ("0.5", 28, [])
    partial = ProbeResult(list(chains.records)[:-1], folder=chains.folder)
    (left,) = iterated.whole_senders(partial, 2).values()
    assert {record["model"] for record in left.records} == {"sender/FC2L"}
    assert iterated.whole_senders(ProbeResult([]), 2) == {}


@pytest.mark.slow
def test_a_stage_has_every_analysis_and_says_that_it_is_partial(
    chains: ProbeResult, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "first.toml").write_text('model = ["FC2L", "FC1L", "RNNZero:RNN"]')
    monkeypatch.setattr(iterated, "HERE", tmp_path)
    ((share, done),) = iterated.whole_senders(chains, 2).items()
    text = iterated.stage_text("first", share, done)
    assert "28 chains of 2 of 3 senders; the other senders are not finished." in text
    assert text.count("\n### ") == 5
    assert "Fewer than 4 cells have all chains" in text
    assert sorted(path.name for path in tmp_path.glob("*.png")) == [
        "iterated-first-0.5-curves.png",
        "iterated-first-0.5-paths.png",
    ]


def test_learners_that_missed_the_target_are_named(chains: ProbeResult) -> None:
    long = iterated.with_settings(long_of(chains.records))
    text, good = iterated.reached_text(long)
    assert text.startswith("Fewer than 90 % of the learners of FC1L (0%) and FC2L (0%)")
    assert good == set()


def test_a_verdict_follows_from_the_interval() -> None:
    assert iterated.verdict(-0.9, -0.1) == "Supported"
    assert iterated.verdict(0.1, 0.9) == "Opposed"
    assert iterated.verdict(0.1, 0.9, expected=1) == "Supported"
    assert iterated.verdict(-0.1, 0.9) == "Open"
    assert iterated.verdict(float("nan"), float("nan")) == "Open: there is no interval"


def test_survival_that_falls_with_the_ratio_has_a_negative_correlation() -> None:
    ratios = iterated.means_of(iterated.ratios(), "value")[list(iterated.MIDDLE)]
    text = iterated.within_text(-ratios.rank(axis=1), "survival")
    assert "**Supported.**" in text
    assert pd.Series(text.splitlines()).str.contains(r"\| -1\.00 \|").sum() > 30


def test_systematic_errors_change_tokens_that_a_rule_names() -> None:
    language = make_language("concat", *iterated.SIZES, 1000)
    one = iterated.with_rules(language, 1, 1, 0)
    changed = one.messages != language.messages
    assert changed.any(0).sum() == 1  # one token
    assert changed.sum() == 125  # in all meanings with one of five values
    meanings = language.meanings[changed.any(1)]
    assert sum(len(set(column)) == 1 for column in meanings.T.tolist()) == 1
    assert (iterated.with_rules(language, 1, 2, 0).messages != language.messages).sum() == 25


def test_systematic_errors_change_positions() -> None:
    language = make_language("concat", *iterated.SIZES, 1000)
    constant = iterated.with_errors(language, "constant", 2, 0).messages
    changed = np.flatnonzero((constant != language.messages).any(0))
    assert len(changed) == 2
    assert (constant[:, changed] == constant[0, changed]).all()
    copied = iterated.with_errors(language, "copied", 3, 0).messages
    assert (copied[:, [3, 6, 9]] == copied[:, [2, 5, 8]]).all()
    assert (np.delete(copied, [3, 6, 9], axis=1) == np.delete(language.messages, [3, 6, 9], axis=1)).all()
    assert iterated.with_errors(language, "none", 0, 0) == language


def test_a_calibration_counts_the_origins_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterated, "ERRORS", {iterated.SMALL: {"none": (0,), "single values": (1,)}})
    monkeypatch.setattr(iterated, "NOISES", (0.0, 0.1))
    monkeypatch.setattr(iterated, "KNOWN_SEEDS", (range(2000, 2001), range(2001, 2002)))
    table = iterated.calibration(iterated.SMALL, (2000, 2001))
    assert len(table) == 2 * 7 * 2 * 2
    exact = table[table["kind"].eq("none") & table["noise"].eq(0)]
    assert exact["found"].eq(exact["origin"]).all()
    assert exact["changed"].eq(0).all()
    assert exact["errors"].isin(["none", "random"]).all()
    text = iterated.calibration_text(table)
    assert "Languages, of 4, that" in text
    assert "| single values | 1 | 4.2 % | 4 |" in text
    assert "of 28 for seeds 2000 to 2000" in text
    assert "| 0 | concat | 2 |  |  |  |  |  |  | 1.00 |" in iterated.known_origin(table)


def test_ends_of_chains_are_counted_by_their_nearest_grammar() -> None:
    ends = [("concat", "concat", "systematic"), ("perm", "shufdet", "random"), ("rot", "concat", "random")]
    rows = [
        {"model": "sender/FC2L", "grammar": first, "generation": 3, "nearest": nearest, "errors": errors}
        | {f"predicts_{name}": 0.75 if name != "proj" else 0.875 for name in iterated.GRAMMARS}
        | {f"floor_{name}": 0.875 for name in iterated.GRAMMARS}
        for first, nearest, errors in [*ends, ("hol", "proj", "none")]
    ]
    text = iterated.nearest_text(pd.DataFrame(rows))
    assert "| concat | 1 |  |  |  |  |  |  | 1 | 1.00 | 1.00 |" in text
    assert "1 of 3 chains that do not begin with hol end as versions of their first grammar (FC2L 1 of 3), 1 of" in text
    assert "1 of 2 chains that begin with another grammar end as concat or perm" in text
    assert "1 of 1 end as proj" in text
    assert "| concat | 0.25 (0.12) |" in text
    assert "proj has the smaller distance for 1 of the 1 languages" in text


def test_a_bias_of_a_sender_is_an_interaction() -> None:
    names, grammars = ["a", "b", "c"], list(iterated.MIDDLE)
    same = pd.DataFrame([[0.9, 0.8, 0.7, 0.6, 0.5]] * 3, names, grammars) + np.array([[0.0], [0.1], [-0.1]])
    ratios = 1 / same
    own = same + np.array([[0.1, 0, 0, 0, -0.1], [0, 0, 0, 0, 0], [-0.1, 0, 0, 0, 0.1]])
    assert without_margins(same.to_numpy()) == pytest.approx(np.zeros((3, 5)))
    assert iterated.interaction_of(own, -own) == pytest.approx(-1)
    record = {"model": "sender/a", "grammar": "perm", "points": ["generation", "unseen_accuracy"]}
    done = SimpleNamespace(
        records=[
            {**record, "model": f"sender/{name}", "grammar": grammar, "curve": [[0, None], [1, own.loc[name, grammar]]]}
            for name in names
            for grammar in grammars
        ]
    )
    found = iterated.Specificity.of(done, own, ratios)  # type: ignore[arg-type]
    assert found.held_out == pytest.approx([1, 1, 1])
    assert found.pairs == 6
    assert found.foreign < -0.9
    assert 0 < found.share < 1
