"""Progress of long work: when it is shown, where, and in which words."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from icy.core import progress as module
from icy.core.progress import progress, progress_to, silence, track
from icy.metrics import evaluate, nearest_grammar, permutation_test, topsim, tre


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.delenv("ICY_PROGRESS", raising=False)
    monkeypatch.setattr(module, "time", clock)
    return clock


def work(clock: Clock, steps: int, seconds: float) -> None:
    for _ in track(range(steps), "steps"):
        clock.now += seconds


def test_work_of_less_than_ten_seconds_is_silent(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    work(clock, 9, 1.0)
    assert capsys.readouterr().err == ""


def test_long_work_prints_a_line_after_ten_seconds_and_then_one_a_minute(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    work(clock, 100, 1.0)
    assert capsys.readouterr().err.splitlines() == [
        "Steps: 10 of 100, about 1 min 30 s left.",
        "Steps: 70 of 100, about 30 s left.",
    ]


def test_a_terminal_has_one_line_that_is_removed(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr(shown, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    work(clock, 12, 1.0)
    assert shown.getvalue() == "".join(
        ("\r\x1b[2Ksteps: 10 of 12, about 2 s left", "\r\x1b[2Ksteps: 11 of 12, about 1 s left", "\r\x1b[2K")
    )


@pytest.mark.parametrize("off", ["0", "no", "FALSE"])
def test_it_can_be_turned_off(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], off: str
) -> None:
    with silence():
        work(clock, 100, 1.0)
        with silence(False):  # does not turn it on again
            work(clock, 100, 1.0)
    with progress_to(False, "steps") as report:
        clock.now += 20
        report(1, 2)
    monkeypatch.setenv("ICY_PROGRESS", off)
    work(clock, 100, 1.0)
    assert capsys.readouterr().err == ""


def test_a_function_gets_every_step_and_a_closed_stream_does_not_end_the_work(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, int]] = []
    with progress_to(lambda *step: calls.append(step), "steps") as report:
        report(1, 2)
        report(2, 2)
    assert calls == [(1, 2), (2, 2)]
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    with progress("steps") as report:
        clock.now += 20
        report(1, 2)


MEANINGS = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3)
MESSAGES = np.random.default_rng(0).integers(0, 4, (27, 6))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("permutations of topsim", lambda: permutation_test(MEANINGS, MESSAGES, permutations=20_000)),
        ("updates of tre", lambda: tre(MEANINGS, MESSAGES, distance="l1", composition="linear")),
        ("bootstrap samples of hce", lambda: evaluate(MEANINGS, MESSAGES, metrics="hce", errors="bootstrap")),
        ("metrics", lambda: evaluate(MEANINGS, MESSAGES, metrics=["hce", "posdis"])),
        ("pairs of topsim", lambda: topsim(np.tile(MEANINGS, (60, 1)), np.tile(MESSAGES, (60, 1)))),
        ("steps of the nearest grammar", lambda: nearest_grammar(language())),
    ],
)
def test_long_measurements_show_their_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str, call: object
) -> None:
    monkeypatch.delenv("ICY_PROGRESS", raising=False)
    monkeypatch.setattr(module, "WAIT", 0.0)
    assert callable(call)
    call()
    assert f"\n{what.capitalize()}: " in "\n" + capsys.readouterr().err
    monkeypatch.setenv("ICY_PROGRESS", "0")
    call()
    assert capsys.readouterr().err == ""


def language() -> object:
    from icy.grammars import make_language

    return make_language("perm", "3x4", word_length=2, seed=1)
