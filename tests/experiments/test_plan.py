"""Plans: what is refused or warned of before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icy.config.specs import EndToEndSpec, ProbeSpec
from icy.experiments.plan import make_plan

PROBE: dict[str, Any] = {"model": "sender/FC1L", "grammar": "perm", "quick": True}
GAME: dict[str, Any] = {"sender": "FC1L", "receiver": "FC2L", "quick": True}


@pytest.mark.parametrize(
    ("spec", "given", "sentence"),
    [
        (ProbeSpec, {**PROBE, "settings": {"temperature": 2.0}}, "'temperature' does nothing in a probe under 'soft'"),
        (ProbeSpec, {**PROBE, "settings": {"soft_feedback": True}}, "'soft_feedback' does nothing in a probe"),
        (EndToEndSpec, {**GAME, "settings": {"entropy_weight": 0.1}}, "'entropy_weight' does nothing in an end-to-end"),
        (EndToEndSpec, {**GAME, "steps": 100, "cap": 3}, "cap and most do nothing"),
    ],
    ids=["temperature", "soft_feedback", "entropy", "cap"],
)
def test_what_would_do_nothing_is_said(
    spec: Any, given: dict[str, Any], sentence: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_plan(spec.asked(**given, out=str(tmp_path)))
    assert sentence in caplog.text


@pytest.mark.parametrize(
    ("spec", "given"),
    [
        (ProbeSpec, {**PROBE, "settings": {"temperature": 2.0}, "representation": "gumb"}),
        (ProbeSpec, {**PROBE, "settings": {"tf32": False, "learning_rate": 0.01}}),
        (EndToEndSpec, {**GAME, "settings": {"soft_feedback": True}}),
        (EndToEndSpec, {**GAME, "steps": 100}),
    ],
    ids=["gumb", "tf32", "feedback", "steps"],
)
def test_what_does_something_is_not(
    spec: Any, given: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_plan(spec.asked(**given, out=str(tmp_path)))
    assert "nothing" not in caplog.text
