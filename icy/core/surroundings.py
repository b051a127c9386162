"""Protect results from the program and the machine: from their state and from their failures.

The key of a record must determine its numbers. A program may have set another default dtype or device, inference mode,
autocast, and so on. `standard_state` sets the defaults of PyTorch for the duration of a call.
"""

from __future__ import annotations

import errno
import logging
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from .errors import SurroundingsError

AUTOCAST_DEVICES = ("cpu", "cuda")
OF_THE_MACHINE = {  # numbers of OSErrors that the code of a model cannot cause or avoid
    errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EROFS, errno.ESTALE,
}  # fmt: skip
NO_THREAD = "can't start new thread"
GPU_FAILS = "CUDA error"  # in PyTorch's error for a lost driver or a failed launch, after which the GPU cannot be used


@contextmanager
def standard_state() -> Iterator[None]:
    """Within the block, set PyTorch's standard state; restore the caller's state at its end.

    The standard state is: float32 and the CPU as defaults, gradients on, no inference mode, no autocast, no anomaly
    detection, no deterministic replacements of operations, full precision of matrix products, subnormal numbers on
    (except in updates, see `no_subnormals`), and NumPy's default handling of floating-point errors. The default dtype
    and the settings of operations are global to the process: they also change for other threads during the call.

    Also a decorator of functions. In a generator, use it as a block.

    Raises:
        SurroundingsError: the call is within a transformation of PyTorch, such as `torch.func.vmap` or a fake tensor
            mode, which cannot be suspended.
    """
    with ExitStack() as restored:
        restored.enter_context(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        if "torch" in sys.modules:  # otherwise PyTorch has no state yet
            _require_plain_tensors()
            _set_modes(restored)
            _set_operations(restored)
        yield


def _require_plain_tensors() -> None:
    """Raise an error if new tensors are not ordinary tensors."""
    import torch

    if torch._C._functorch.maybe_current_level() is not None:  # type: ignore[attr-defined]
        raise SurroundingsError(
            "icy cannot run within a transformation of torch.func (vmap, grad, ...); call it outside of the "
            "transformed function."
        )
    tensor = torch.empty(0, device="cpu", dtype=torch.float32)
    if type(tensor) is not torch.Tensor or tensor.device.type != "cpu":
        raise SurroundingsError(
            f"icy cannot run here: a mode of PyTorch makes every new tensor a {type(tensor).__name__} on "
            f"{tensor.device}; leave the mode before the call."
        )


def _set_modes(restored: ExitStack) -> None:
    import torch

    if torch.get_default_device().type != "cpu":
        restored.enter_context(torch.device("cpu"))
    if torch.is_inference_mode_enabled():
        restored.enter_context(torch.inference_mode(False))
    if not torch.is_grad_enabled():
        restored.enter_context(torch.enable_grad())
    for device in AUTOCAST_DEVICES:
        if torch.is_autocast_enabled(device):
            restored.enter_context(torch.autocast(device, enabled=False))
    if torch.is_anomaly_enabled():
        restored.enter_context(torch.autograd.set_detect_anomaly(False))


def _set_operations(restored: ExitStack) -> None:
    import torch

    if (dtype := torch.get_default_dtype()) != torch.float32:
        restored.callback(torch.set_default_dtype, dtype)
        torch.set_default_dtype(torch.float32)
    if torch.are_deterministic_algorithms_enabled():
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        restored.callback(torch.use_deterministic_algorithms, True, warn_only=warn_only)
        torch.use_deterministic_algorithms(False)
    if (precision := torch.get_float32_matmul_precision()) != "highest":
        restored.callback(torch.set_float32_matmul_precision, precision)
        torch.set_float32_matmul_precision("highest")
    smallest = torch.tensor(2.0**-149, dtype=torch.float32, device="cpu")
    if float(smallest * 1) == 0 and torch.set_flush_denormal(False):
        restored.callback(torch.set_flush_denormal, True)


@contextmanager
def no_subnormals() -> Iterator[None]:
    """Within the block, count subnormal numbers as 0 in PyTorch's operations on this thread. Also a decorator.

    An operation with a subnormal number takes over a hundred cycles on many processors, so a collapsed model with such
    gradients would train many times as slowly. Native code does the same by itself.
    """
    import torch

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def require_training_failed(error: Exception) -> None:
    """Raise an error if the program or the machine ended a training.

    Args:
        error: the exception that ended the training.

    Raises:
        SurroundingsError: a signal handler of the program, the operating system or the GPU raised `error`. Exhausted
            memory is not included, because the model may have caused it: see `icy.core.machine.out_of_memory`.
    """
    if (cause := _outside_cause(error)) is not None:
        raise SurroundingsError(
            f"Training ended because of {cause} ({type(error).__name__}: {error}); nothing was recorded. Run the "
            "same call again to continue."
        ) from error


def _outside_cause(error: Exception) -> str | None:
    if isinstance(error, OSError) and error.errno in OF_THE_MACHINE:
        return "the machine"
    if isinstance(error, RuntimeError) and NO_THREAD in str(error):
        return "the machine"
    if isinstance(error, RuntimeError) and GPU_FAILS in str(error):
        return "the GPU"
    handlers = {signal.getsignal(number) for number in signal.valid_signals()}
    codes = {getattr(getattr(handler, "__func__", handler), "__code__", None) for handler in handlers} - {None}
    if any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__)):
        return "a signal"
    return None


@contextmanager
def log_level(level: int, *names: str) -> Iterator[None]:
    """Set the level of loggers within a `with` block.

    Args:
        level: a level of `logging`, such as `logging.ERROR`.
        names: names of the loggers.
    """
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, level_before in zip(loggers, before, strict=True):
            logger.setLevel(level_before)
