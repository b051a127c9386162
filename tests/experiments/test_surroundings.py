"""The program around icy: its global state changes no number, and its failures are not recorded as a model's."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import icy
from icy.core.errors import SurroundingsError
from icy.core.surroundings import standard_state
from tests.helpers import TINY, all_numbers, mark_others

SMALL: dict[str, Any] = {**TINY, "seeds": 1, "workers": 1}


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def default_device(name: str) -> Iterator[None]:
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def set_by(change: Callable[[Any], object], value: Any, before: Any) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(before)


SURROUNDINGS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "float64": lambda: default_dtype(torch.float64),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "float16": lambda: default_dtype(torch.float16),
    "meta by default": lambda: default_device("meta"),
    "meta in a block": lambda: torch.device("meta"),
    "inference mode": torch.inference_mode,
    "no_grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "deterministic": lambda: set_by(torch.use_deterministic_algorithms, True, False),
    "anomaly detection": torch.autograd.detect_anomaly,
    "lower precision": lambda: set_by(torch.set_float32_matmul_precision, "medium", "highest"),
    "flushed subnormals": lambda: set_by(torch.set_flush_denormal, True, False),
    "three threads": lambda: set_by(torch.set_num_threads, 3, torch.get_num_threads()),
    "errors of NumPy": lambda: np.errstate(all="raise"),
    "another random state": lambda: set_by(torch.manual_seed, 77, 0),
}


FEW = ("float64", "meta by default", "inference mode", "autocast", "three threads")  # in the default suite


def numbers_of(folder: Path, **given: Any) -> list[dict[str, Any]]:
    icy.probe("sender/FC2L", ["perm"], out=folder, **{**SMALL, **given})
    return all_numbers(folder)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return numbers_of(tmp_path_factory.mktemp("plain"))


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("name", mark_others("slow", SURROUNDINGS, lambda name: name in FEW))
def test_records_are_the_same_in_any_state_of_the_program(
    name: str, expected: list[dict[str, Any]], tmp_path: Path
) -> None:
    with SURROUNDINGS[name]():
        assert numbers_of(tmp_path) == expected


@pytest.mark.process
@pytest.mark.parametrize("name", FEW)
def test_a_pool_gives_the_same_records(name: str, expected: list[dict[str, Any]], tmp_path: Path) -> None:
    with SURROUNDINGS[name]():
        assert numbers_of(tmp_path, workers=2) == expected


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["loop", "broadcast", "vmap"])
def test_every_engine_trains_in_single_precision(engine: str, tmp_path: Path) -> None:
    plain = numbers_of(tmp_path / "plain", engine=engine)
    with default_dtype(torch.float64):
        assert numbers_of(tmp_path / "double", engine=engine) == plain


def test_the_state_of_the_caller_is_restored() -> None:
    with contextlib.ExitStack() as stack:
        for name in ("float64", "meta in a block", "inference mode", "autocast", "deterministic", "lower precision"):
            stack.enter_context(SURROUNDINGS[name]())
        stack.enter_context(SURROUNDINGS["flushed subnormals"]())
        with contextlib.suppress(ZeroDivisionError), standard_state():
            assert torch.ones(1, requires_grad=True).mul(2).requires_grad
            assert (torch.empty(1).dtype, torch.empty(1).device.type) == (torch.float32, "cpu")
            raise ZeroDivisionError
        assert (torch.empty(1).dtype, torch.empty(1).device.type) == (torch.float64, "meta")
        assert torch.is_inference_mode_enabled()
        assert torch.is_autocast_enabled("cpu")
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.get_float32_matmul_precision() == "medium"
        assert torch.tensor(2.0**-149, dtype=torch.float32, device="cpu").mul(1).item() == 0


@pytest.mark.slow
def test_games_metrics_and_pairs_are_the_same_too(tmp_path: Path) -> None:
    def all_of(folder: Path) -> list[Any]:
        pair: dict[str, Any] = {"pretrain": "none", "steps": 4, "report_every": 2, "seeds": 1, "workers": 1}
        icy.end_to_end("FC2L", "FC2L", out=folder / "pair", meanings="2x3", word_length=2, hidden=8, **pair)
        scores = icy.s2b.evaluate("posdis", "oracle", episodes=4, seeds=1).table()
        table = [[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 3], [1, 4], [2, 3], [2, 4]]
        tre = icy.metrics.tre(*table, composition="linear").value
        return [all_numbers(folder / "pair"), scores.to_dict(), tre, icy.metrics.topsim(*table).value]

    plain = all_of(tmp_path / "plain")
    with default_dtype(torch.float64), torch.device("meta"), torch.inference_mode():
        assert all_of(tmp_path / "other") == plain


def test_a_plug_in_that_sets_a_default_changes_no_number(expected: list[dict[str, Any]], tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text("import torch\ntorch.set_default_dtype(torch.float64)\n")
    with default_dtype(torch.float32):  # restores the state that the plug-in changed
        assert numbers_of(tmp_path / "out", plugin=[plugin]) == expected


@pytest.mark.parametrize(
    ("transform", "arguments"),
    [(torch.func.vmap, (torch.zeros(2),)), (torch.func.grad, (torch.zeros(()),))],
)
def test_within_a_transformation_nothing_is_recorded(transform: Any, arguments: Any, tmp_path: Path) -> None:
    def train(x: Any) -> Any:
        icy.probe("sender/FC2L", ["perm"], out=tmp_path / "out", **SMALL)
        return x.sum()

    with pytest.raises(SurroundingsError, match=r"torch\.func"):
        transform(train)(*arguments)
    assert not (tmp_path / "out").exists()


def test_among_fake_tensors_nothing_is_recorded(tmp_path: Path) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(SurroundingsError, match="FakeTensor"):
        icy.probe("sender/FC2L", ["perm"], out=tmp_path / "out", **SMALL)
    assert not (tmp_path / "out").exists()


# -- failures of the surroundings --------------------------------------------------------------------------------------


class Stopping(icy.Watcher):
    """A callback with a mistake of its own."""

    def read(self, *anything: Any) -> None:
        raise ZeroDivisionError("of the callback")


def test_an_error_of_a_callback_is_raised_and_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError, match="of the callback"):
        icy.probe("sender/FC2L", ["perm"], out=tmp_path, watcher=Stopping(), **SMALL)
    assert not any(tmp_path.rglob("records/*.json"))


def failing_job(monkeypatch: pytest.MonkeyPatch, error: Callable[[], object]) -> None:
    """Make every training end in an error before its first update."""
    from icy.training import language_job

    def train(job: Any, report: Any) -> Iterator[Any]:
        error()
        yield

    monkeypatch.setattr(language_job.LanguageJob, "train", lambda job, report=None: train(job, report))


def raising(error: BaseException) -> Callable[[], object]:
    def run() -> object:
        raise error

    return run


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("can't start new thread"),
        RuntimeError("CUDA error: unspecified launch failure"),
    ],
    ids=["files", "disk", "threads", "GPU"],
)
def test_errors_of_the_machine_are_not_recorded(
    error: Exception, expected: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        failing_job(patch, raising(error))
        with pytest.raises(SurroundingsError, match="nothing was recorded"):
            numbers_of(tmp_path)
    assert numbers_of(tmp_path) == expected


def test_a_timeout_of_the_program_is_not_recorded(
    expected: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def timeout(*_: object) -> None:
        raise TimeoutError("the program's own limit")

    with monkeypatch.context() as patch:
        failing_job(patch, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        before = signal.signal(signal.SIGUSR1, timeout)
        try:
            with pytest.raises(SurroundingsError, match="the program's own limit"):
                numbers_of(tmp_path)
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert numbers_of(tmp_path) == expected


@pytest.mark.slow
def test_replicates_that_did_not_fit_in_memory_are_tried_again(
    expected: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        failing_job(patch, raising(MemoryError("no room")))
        failed = numbers_of(tmp_path)
    assert {record["reason"] for record in failed} == {"interrupted"}
    assert numbers_of(tmp_path) == expected


def test_an_error_of_the_model_is_recorded_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with monkeypatch.context() as patch:
        failing_job(patch, raising(ValueError("of the model")))
        failed = numbers_of(tmp_path)
    assert {record["reason"] for record in failed} == {"error"}
    assert numbers_of(tmp_path) == failed
