"""Protocols: when a replicate ends, and what their numbers may be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from icy.config.protocols import EndToEndProtocol, decide, get_protocol
from icy.core.errors import InvalidSettingError
from icy.languages.meanings import MeaningSpace

GENERALISE, SMALL = get_protocol("generalise"), MeaningSpace(2, 3)


def test_the_target_of_generalise_depends_on_the_representation() -> None:
    assert (GENERALISE.target, get_protocol("generalise", representation="discr").target) == (0.99, 0.95)
    assert get_protocol("generalise", cap=5).cap == 5


BUDGET, ACQUIRE = get_protocol("budget"), get_protocol("acquire")


@pytest.mark.parametrize(
    ("protocol", "grammar", "reading", "steps", "baseline", "expected"),
    [
        (BUDGET, "concat", 0.98, 50, None, None),
        (BUDGET, "concat", 0.99, 50, None, "target"),
        (BUDGET, "concat", 0.99, 1000, None, "target"),
        (BUDGET, "concat", 0.98, 1000, None, "max_steps"),
        (BUDGET, "rot", 1.00, 50, None, None),
        (BUDGET, "rot", 1.00, 50, 100, None),
        (BUDGET, "rot", 0.10, 100, 100, "budget"),
        (BUDGET, "rot", 0.10, 150, 100, "budget"),
        (BUDGET, "rot", 1.00, 50, "max_steps", "no_baseline"),
        (BUDGET, "rot", 0.10, 2000, None, None),
        (ACQUIRE, "concat", 0.80, 50, None, "target"),
        (ACQUIRE, "rot", 0.80, 50, None, "target"),
        (ACQUIRE, "rot", 0.79, 1999, 100, None),
        (ACQUIRE, "rot", 0.79, 2000, 100, "cap"),
        (ACQUIRE, "rot", 0.80, 2000, 100, "target"),
        (ACQUIRE, "rot", 0.80, 50, "diverged", "no_baseline"),
        (replace(ACQUIRE, cap=1.5), "rot", 0.1, 75, 50, "cap"),
    ],
)
def test_decisions(
    protocol: Any, grammar: str, reading: float, steps: int, baseline: int | str | None, expected: str | None
) -> None:
    assert decide(protocol, grammar, reading, steps, baseline, max_steps=1000) == expected


@pytest.mark.parametrize(
    "protocol",
    [{"cap": math.inf}, {"cap": "3"}, {"steps": 2.5}, {"most": 9.5}, {"report_every": "x"}, {"target": "y"}],
)
def test_a_protocol_takes_numbers_only(protocol: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        EndToEndProtocol(**protocol)
