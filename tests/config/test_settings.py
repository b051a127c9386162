"""Settings, specs and their types."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icy.config import settings
from icy.config.protocols import PROTOCOLS
from icy.config.settings import PRESETS, TrainingSettings, settings_for
from icy.core.errors import IcyError, InvalidSettingError
from icy.core.registry import SIDES
from icy.core.representations import REPRESENTATIONS
from icy.core.representations.codes import NORMALISATIONS
from icy.experiments.trackers import TRACKERS
from icy.languages.splits import SPLITS
from icy.records.store import RERUN
from icy.s2b.settings import COMPATS, Compat
from icy.training.probe_settings import ProbeRequest
from tests import stubs

# -- training settings: the grid of checks and what may be set ---------------------------------------------------------


DEFAULT, PUBLISHED = settings_for("default"), settings_for("published")


def checks(settings: TrainingSettings, count: int) -> list[int]:
    found = [0]
    for _ in range(count):
        found.append(settings.next_check(found[-1]))
    return found[1:]


def test_the_grid_is_geometric() -> None:
    assert checks(DEFAULT, 25) == [*range(1, 21), 22, 24, 26, 28, 30]
    later = checks(DEFAULT, 120)[45:]
    assert all(0.09 < (after - before) / before <= 0.1 for before, after in pairwise(later) if after < 50_000)
    assert checks(replace(DEFAULT, check_growth=0.5), 8) == [1, 2, 3, 4, 6, 9, 13, 19]


def test_the_limit_of_a_baseline_is_a_check() -> None:
    settings = replace(DEFAULT, max_steps=101, check_growth=0.05)
    assert [n for n in checks(settings, 70) if 95 < n < 110] == [97, 101, 106]


def test_published_keeps_its_grid() -> None:
    assert checks(PUBLISHED, 4) == [1, 51, 101, 151]  # which are called steps 0, 50, 100, 150
    assert [PUBLISHED.steps(updates) for updates in checks(PUBLISHED, 4)] == [0, 50, 100, 150]
    assert [DEFAULT.steps(updates) for updates in (1, 51)] == [1, 51]
    assert not PUBLISHED.interpolates
    assert "check_growth" not in PUBLISHED.under("soft")
    assert PUBLISHED.under("soft")["check_every"] == 50
    assert "check_every" not in DEFAULT.under("soft")


def test_the_grid_of_a_clock_is_even_and_then_geometric() -> None:
    clock = replace(PUBLISHED, clock=True, check_every=10, check_growth=0.2)
    assert checks(clock, 11) == [1, 11, 21, 31, 41, 51, 61, 73, 87, 104, 124]
    assert [clock.checks_around(steps) for steps in (0.5, 45, 80)] == [(0, 10), (40, 50), (72, 86)]
    assert not clock.interpolates
    assert PUBLISHED.under("soft") == {
        n: v for n, v in clock.under("soft").items() if n not in ("clock", "check_growth")
    } | {"check_every": 50}
    assert "training_readings" in PUBLISHED.under("soft", "e2e")
    assert "training_readings" not in PUBLISHED.under("soft")


@pytest.mark.slow
@given(st.floats(0.5, 40_000))
def test_a_step_lies_between_the_checks_around_it(steps: float) -> None:
    before, after = DEFAULT.checks_around(steps)
    assert before < steps <= after == DEFAULT.next_check(before)
    before, after = PUBLISHED.checks_around(steps)
    assert before < steps <= after == before + 50


def test_close_checks_read_fewer_meanings() -> None:
    sizes = {n: DEFAULT.check_size(n) for n in checks(DEFAULT, 90)}
    assert {sizes[n] for n in (1, 42, 79)} == {128}
    assert sorted(set(sizes.values())) == [128, 256, 512, 1024]
    for updates, size in sizes.items():  # an eighth of what was trained on since the last check
        assert size == 128 or size <= 16 * max(1, int(0.1 * updates))
    assert list(sizes.values()) == sorted(sizes.values())
    assert {PUBLISHED.check_size(n) for n in (1, 51)} == {128}
    assert replace(DEFAULT, check_every=50).check_size(50) == 1024


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"check_growth": 0}, "check_growth must be a number above 0 and at most 1, not 0"),
        ({"check_growth": 1.5}, "check_growth must be a number above 0"),
        ({"check_every": 0}, "check_every must be a whole number, at least 1"),
        ({"check_every": 2.5}, "check_every must be a whole number, at least 1, not 2.5"),
        ({"steps_from_zero": True}, "steps_from_zero needs the number of updates between"),
        ({"clock": True}, "clock needs the number of updates between"),
    ],
)
def test_grids_that_cannot_be(given: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidSettingError, match=said):
        settings_for("default", **given)


class Counting(TrainingSettings):
    """Counts how often it is asked for the next check."""

    asked = 0

    def next_check(self, updates: int) -> int:
        Counting.asked += 1
        return super().next_check(updates)


def one_by_one(settings: TrainingSettings, steps: float) -> tuple[int, int]:
    before, after = 0, settings.next_check(0)
    while after < steps:
        before, after = after, settings.next_check(after)
    return before, after


@pytest.mark.slow
@given(
    st.floats(1e-6, 1) | st.sampled_from([1e-320, 0.1, 1 / 3, 1.0]),
    st.integers(1, 20_000),
    st.integers(0, 20_000) | st.floats(0, 20_000),
)
def test_checks_that_are_skipped_are_those_of_the_grid(growth: float, most: int, steps: float) -> None:
    settings = TrainingSettings(check_growth=growth, max_steps=most)
    assert settings.checks_around(steps) == one_by_one(settings, steps)


@pytest.mark.slow
@pytest.mark.parametrize("growth", [1e-300, 1.0000001e-10, 1e-7, 1e-5, 1e-4, 1.0])
@pytest.mark.parametrize("most", [1, 2**31])
def test_the_checks_of_a_tiny_growth_are_not_gone_through_one_by_one(growth: float, most: int) -> None:
    Counting.asked = 0
    before, after = Counting(check_growth=growth, max_steps=most).checks_around(10**10)
    assert before < 10**10 <= after
    assert Counting.asked < 250_000


OF_ALL = {
    "batch_size", "learning_rate", "clip_norm", "check_growth", "evaluation_size", "steps_from_zero", "fresh_reading",
    "round_ratio", "max_steps", "published_models",
}  # fmt: skip


@pytest.mark.parametrize(
    ("representation", "own", "linked"),
    [
        ("soft", set(), set()),
        ("gumb", {"temperature", "least_squares"}, set()),
        ("discr", {"reward_weight", "entropy_weight"}, set()),
        ("gs", {"tau", "straight_through"}, set()),
        ("qt", {"levels", "normalise"}, set()),
        ("cb", set(), {"codes", "commitment"}),
    ],
)
def test_a_configuration_has_the_settings_of_its_own_representation(
    representation: str, own: set[str], linked: set[str]
) -> None:
    """What other representations can be set to must not move the keys of these results."""
    assert set(DEFAULT.under(representation)) == OF_ALL | own
    assert set(DEFAULT.under(representation, "e2e")) == OF_ALL | own | linked | {"soft_feedback", "training_readings"}


def test_settings_of_channels() -> None:
    chosen = settings_for("default", tau=0.5, straight_through=True, levels=3, normalise="batch", codes=8, commitment=1)
    assert chosen.under("qt")["normalise"] == "batch"
    assert settings_for("default", codes=None).codes is None
    for name, value, said in (
        ("tau", 0, "tau must be a number above 0 and at most .*, not 0"),
        ("levels", 1, "levels must be a whole number, at least 2, not 1"),
        ("codes", 1, "codes must be a whole number, at least 2, not 1"),
        ("commitment", -1, "commitment must be a number, at least 0 and at most .*, not -1"),
        ("normalise", 3, "No normalisation is called '3'"),
        ("normalise", "batsh", "No normalisation is called 'batsh'; did you mean batch"),
    ):
        with pytest.raises(IcyError, match=said):
            settings_for("default", **{name: value})


@pytest.mark.parametrize(
    "name", ["learning_rate", "clip_norm", "temperature", "tau", "reward_weight", "entropy_weight", "commitment"]
)
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -3.0, 1e308])
def test_impossible_numbers_are_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidSettingError, match=f"{name} must be a number"):
        TrainingSettings(**{name: value})


# -- specifications: what `quick` changes ------------------------------------------------------------------------------


def test_quick_only_changes_options_that_are_not_given() -> None:
    spec = ProbeRequest.asked(model="x", quick=True, hidden=128)
    assert (spec.meanings, spec.word_length, spec.hidden) == ("3x4", 2, 128)
    assert ProbeRequest.asked(model="x").meanings == "5x10"


# -- names in the types of specs are those of icy's tables, and the stub files are current -----------------------------


LITERALS: list[tuple[Any, Iterable[str]]] = [
    (settings.ProtocolName, PROTOCOLS),
    (settings.RepresentationName, REPRESENTATIONS),
    (settings.PresetName, PRESETS),
    (settings.SplitName, SPLITS),
    (settings.SideName, SIDES),
    (settings.Rerun, RERUN),
    (settings.TrackerName, TRACKERS),
    (settings.NormalisationName, NORMALISATIONS),
    (Compat, COMPATS),
]


def test_literals_have_the_names_of_their_tables(subtests: pytest.Subtests) -> None:
    for literal, table in LITERALS:
        with subtests.test(str(literal)):
            assert sorted(get_args(literal)) == sorted(table)


@pytest.mark.parametrize(("path", "source"), stubs.stubs().items(), ids=lambda value: Path(value).stem[:20])
def test_stubs_are_current(path: Path, source: str) -> None:
    assert path.read_text() == stubs.formatted(source), "run `python -m tests.stubs`"
