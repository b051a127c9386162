"""Shared by all tests: one thread, so that numbers repeat to the last bit, and a small probe to look at."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings
from threadpoolctl import threadpool_limits

import icy
from icy.core.processes import ENDING
from icy.core.registry import registry
from icy.experiments.plan import Plan, make_plan
from tests import shapes
from tests.collected import Messages
from tests.helpers import TINY

gc.disable()  # until all tests are collected: none of what is made then becomes garbage
shapes.check_shapes()  # before a test imports a module that is checked; tests.shapes says what is, and what is exempt

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before any test imports Triton, which reads it then

# How much is tried of what can be drawn: the same few cases in every run; by --hypothesis-profile=long, many new ones.
settings.register_profile("short", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("long", deadline=None, max_examples=2000)
settings.load_profile("short")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for a file of all messages."""
    parser.addoption("--messages", type=Path, help="append each error, warning and note of icy to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Collect messages, if a file for them is named."""
    if config.option.messages:
        config.pluginmanager.register(Messages(config.option.messages))


SEED = int(os.environ.get("TEST_SEED", "0"))  # another value finds tests whose tolerances are too tight


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Begin every test with the same random numbers, and with shapes that are checked."""
    random.seed(SEED)
    np.random.seed(SEED)
    shapes.calls.clear()
    torch.default_generator.manual_seed(SEED)  # torch.manual_seed takes 0.5 ms


def pytest_collection_finish() -> None:
    """Leave what was made so far out of all later collections of garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each reason for skipped tests once, with the number of tests."""
    skipped = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    for reason, count in Counter(skipped).most_common():
        terminalreporter.write_line(f"{count} skipped: {reason.removeprefix('Skipped: ')}")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)  # threads of a BLAS that wait for each other take as much time as they save


@pytest.fixture(autouse=True, scope="session")
def _no_wait_for_the_disk() -> None:
    """Skip what only a power cut makes necessary: it takes four milliseconds for each file or commit."""
    from icy.study.service import studies

    os.fsync = lambda file: None
    studies.SYNCHRONOUS = "OFF"


@pytest.fixture(autouse=True)
def _no_signal_is_lost() -> Iterator[None]:
    """A test that leaves a signal ignored would break others of its process, and the commands that they start."""
    before = [signal.getsignal(number) == signal.SIG_IGN for number in ENDING]
    yield
    assert [signal.getsignal(number) == signal.SIG_IGN for number in ENDING] == before


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one finished row."""
    return tmp_path_factory.mktemp("tiny") / "results"


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> icy.ProbeResult:
    """FC2L on perm and rot in a space of nine meanings, in this process."""
    return icy.probe("sender/FC2L", ["perm", "rot"], workers=1, out=tiny_folder, **TINY)


@pytest.fixture
def forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    registry.load_all()
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(registry, "plugin_files", list(registry.plugin_files))


@pytest.fixture(scope="session")
def memory(tmp_path_factory: pytest.TempPathFactory) -> tuple[icy.Reproduction, Path]:
    """The Hashtable row of Icy22 table 3, two seeds of one grammar: seconds even at 5x10."""
    folder = tmp_path_factory.mktemp("memory") / "results"
    return icy.reproduce("icy22/3", "Hashtable", grammar="perm", seeds=2, workers=1, out=folder), folder


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Two seeds of FC2L on concat and perm."""
    from icy.training.probe_settings import ProbeRequest

    sizes = {"meanings": "2x3", "word_length": 2, "hidden": 8, "seeds": 2}
    return make_plan(ProbeRequest("sender/FC2L", "perm", out=tmp_path / "results", **sizes))
