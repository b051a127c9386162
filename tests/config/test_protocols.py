"""Protocols: when a replicate ends, and what their numbers may be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from icy.config.protocols import decide, get_protocol, reached_at
from icy.core.errors import InvalidSettingError
from icy.training.pair_settings import EndToEndSettings

GENERALISE = get_protocol("generalise")


def test_the_target_of_generalise_depends_on_the_representation() -> None:
    assert (GENERALISE.target, get_protocol("generalise", representation="discr").target) == (0.99, 0.95)
    assert get_protocol("generalise", cap=5).cap == 5


BUDGET, ACQUIRE = get_protocol("budget"), get_protocol("acquire")


@pytest.mark.parametrize(
    ("protocol", "grammar", "reached", "steps", "baseline", "expected"),
    [
        (BUDGET, "concat", None, 50, None, None),
        (BUDGET, "concat", 47.5, 50, None, "target"),
        (BUDGET, "concat", 1000, 1000, None, "target"),
        (BUDGET, "concat", None, 1000, None, "max_steps"),
        (BUDGET, "rot", 50, 50, None, None),
        (BUDGET, "rot", 50, 50, 100, None),
        (BUDGET, "rot", None, 100, 100, "budget"),
        (BUDGET, "rot", None, 99, 98.5, "budget"),
        (BUDGET, "rot", None, 98, 98.5, None),
        (BUDGET, "rot", None, 150, 100, "budget"),
        (BUDGET, "rot", 50, 50, "max_steps", "no_baseline"),
        (BUDGET, "rot", None, 2000, None, None),
        (ACQUIRE, "concat", 50, 50, None, "target"),
        (ACQUIRE, "rot", 50, 50, None, "target"),
        (ACQUIRE, "rot", None, 1999, 100, None),
        (ACQUIRE, "rot", None, 2000, 100, "cap"),
        (ACQUIRE, "rot", 2000, 2000, 100, "target"),
        (ACQUIRE, "rot", 1999.5, 2050, 100, "target"),
        (ACQUIRE, "rot", 2000.0, 2050, 100, "target"),  # a ratio of exactly the cap is one
        (ACQUIRE, "rot", 2000.5, 2050, 100, "cap"),
        (ACQUIRE, "rot", 2000.5, 2050, None, "target"),
        (ACQUIRE, "rot", 50, 50, "diverged", "no_baseline"),
        (ACQUIRE, "rot", 2050, 2050, 100, "target"),  # on a fixed grid, as in the papers
        (replace(ACQUIRE, cap=1.1), "rot", None, 110, 100, "cap"),  # 1.1 * 100 is a little more than 110
        (replace(ACQUIRE, cap=1.5), "rot", None, 75, 50, "cap"),
    ],
)
def test_decisions(
    protocol: Any, grammar: str, reached: float | None, steps: int, baseline: float | str | None, expected: str | None
) -> None:
    assert decide(protocol, grammar, reached, steps, baseline, max_steps=1000) == expected
    if expected != "budget":  # a late end is only that of a budget
        assert decide(protocol, grammar, reached, steps, baseline, max_steps=1000, late=True) == expected


def test_a_late_budget_ends_after_the_limit() -> None:
    ends = [decide(BUDGET, "rot", None, steps, 100, max_steps=1000, late=True) for steps in (99, 100, 101)]
    assert ends == [None, None, "budget"]


@pytest.mark.parametrize(
    "protocol",
    [{"cap": math.inf}, {"cap": "3"}, {"updates": 2.5}, {"most": 9.5}, {"report_every": "x"}, {"target": "y"}],
)
def test_a_protocol_takes_numbers_only(protocol: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        EndToEndSettings(sender="FC2L", receiver="FC2L", **protocol)


def test_a_crossing_lies_on_the_line_between_two_checks() -> None:
    assert reached_at(0.8, (100, 0.7), (110, 0.9)) == 105
    assert reached_at(0.8, (100, 0.7), (110, 0.8)) == 110
    assert reached_at(0.8, (100, 0.79999), (110, 0.9)) == pytest.approx(100.001, abs=1e-3)
    assert reached_at(0.8, (100, 0.7), (110, 0.79)) is None
    assert reached_at(0.8, None, (1, 0.9)) == 1


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -3.0, 0.0, 1e308, "3"])
def test_impossible_caps_and_targets_are_refused(value: Any) -> None:
    for name in ("cap", "target"):
        with pytest.raises(InvalidSettingError, match=f"The {name} must be"):
            get_protocol("acquire", **{name: value})
        with pytest.raises(InvalidSettingError, match=f"The {name} must be"):
            EndToEndSettings(sender="FC2L", receiver="FC2L", **{name: value})
