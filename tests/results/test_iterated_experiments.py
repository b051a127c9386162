"""The verdicts of results/iterated/experiments.md, on tables with known answers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from results.iterated import experiments
from results.iterated.__main__ import MIDDLE

CELLS = ("RNN", "GRU", "LSTM", "SRU", "minGRU")


def table(values: object, cells: tuple[str, ...] = CELLS) -> pd.DataFrame:
    return pd.DataFrame(values, list(cells), list(MIDDLE))


def test_an_opposite_interaction_has_the_smallest_p_of_all_assignments() -> None:
    own = table(np.random.default_rng(0).normal(size=(5, 5)))
    shifted = -own.add([1, 2, 3, 4, 5], axis=0) + np.arange(5)  # margins do not count
    r, below, above, count = experiments.assignments(own, shifted)
    assert (r, below, above, count) == (pytest.approx(-1), 1 / 120, 1, 120)
    r, below, above, _ = experiments.assignments(own, -shifted)
    assert (r, below, above) == (pytest.approx(1), 1, 1 / 120)


def test_equal_seeds_are_reliable_and_opposite_halves_are_not() -> None:
    own = table(np.random.default_rng(1).normal(size=(5, 5)), tuple(f"RNNZero:{cell}" for cell in CELLS))
    assert experiments.halves({1: own, 2: own, 3: own, 4: own}) == pytest.approx(1)
    noise = [table(np.random.default_rng(seed).normal(size=(5, 5)), tuple(own.index)) for seed in range(40)]
    assert abs(experiments.halves(dict(enumerate(noise)))) < 0.6


def results(values: dict[tuple[str, str], float], seeds: range) -> SimpleNamespace:
    """Return stand-ins of results, which `by_seed` reads; values vary by seed."""
    noise = np.random.default_rng(5)
    rows = [(model, grammar, seed, value + noise.normal(0, 0.001), False, False)
            for (model, grammar), value in values.items() for seed in seeds]  # fmt: skip
    long = pd.DataFrame(rows, columns=["model", "grammar", "seed", "value", "failed", "censored"])
    return SimpleNamespace(records=long)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "long_of", lambda records: records)


@pytest.mark.parametrize(("gain", "verdict"), [(0.1, "**Shown.**"), (-0.1, "**Opposed.**"), (0.0, "**Unknown.**")])
def test_the_intervention_follows_its_rule(gain: float, verdict: str) -> None:
    after = {"FC2L": 0.0, "FC2L-after-concat": 0.0, "FC2L-after-rot": gain}
    survival = {
        (f"sender/{m}", g): 0.8 - 0.2 * (g == "rot") * (1 - own) for m, own in after.items() for g in ("concat", "rot")
    }
    ratios = {(f"sender/{m}", "rot"): 3.0 if "rot" in m else 11.0 for m in after}
    text = experiments.intervention_text(results(survival, range(10)), results(ratios, range(10)))
    assert verdict in text
    assert "The order does not flip" in text


@pytest.mark.parametrize(
    ("senders", "receivers", "log", "verdict"),
    [
        (-0.1, 0.1, 0.5, "**Shown.**"),
        (0.1, -0.1, 0.5, "**Opposed.**"),
        (-0.1, 0.1, -0.5, "**Unknown.**"),  # the probed order is not reversed
        (-0.1, -0.1, 0.5, "**Unknown.**"),
    ],
)
def test_the_dissociation_follows_its_rule(senders: float, receivers: float, log: float, verdict: str) -> None:
    grammars = ("proj", "rot")
    gaps = {f"sender/RNNZero:{cell}": senders for cell in CELLS} | {f"receiver/RNN1L:{c}": receivers for c in CELLS}
    gaps |= {"sender/FC2L": 0.0, "receiver/FC2L": 0.0}
    survival = {(m, g): 0.7 + gap * (g == "rot") for m, gap in gaps.items() for g in grammars}
    ratios = {
        (m, g): float(np.exp((log if "sender" in m else -0.5) * (g == "rot"))) * 2 for m in gaps for g in grammars
    }
    text = experiments.dissociation_text(results(survival, range(10)), results(ratios, range(5)))
    assert verdict in text
