"""GPUs: all that icy asks of `torch.cuda`, in one place, so that a test can put a stand-in here.

PyTorch calls the GPUs of AMD (ROCm) "cuda" too, so they need nothing of their own. Other accelerators are refused, each
with its reason.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .errors import InvalidSettingError

NAME = "cuda"  # of GPUs in PyTorch, also of AMD's
REFUSED = {
    "mps": "icy does not train on Apple's GPUs, because they have no double precision, in which it computes accuracies",
    "xpu": "icy was never run on Intel's GPUs, so it does not train on them",
}
Replay = Callable[[], None]
RandomState = tuple[Tensor, Tensor | None]  # states of the random generators of the CPU and of the device


def is_gpu(device: str | torch.device) -> bool:
    """Return whether a device is a GPU."""
    return str(device).partition(":")[0] == NAME


def names() -> list[str]:
    """Return the names of the GPUs of this machine."""
    return [f"{NAME}:{i}" for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []


def description(device: str) -> str:
    """Return a GPU's product name and memory, and what PyTorch drives it with."""
    about = torch.cuda.get_device_properties(device)
    driven = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    return f"{about.name}, {about.total_memory / 2**30:.0f} GiB, {driven}"


def product_name(device: str) -> str | None:
    """Return a GPU's product name; None if there is no GPU, as on the machine that records failures of a cluster."""
    return torch.cuda.get_device_name(device) if torch.cuda.is_available() else None


def in_use() -> bool:
    """Return whether this process has used a GPU, after which it must not be copied."""
    return bool(torch.cuda.is_initialized())


def resolve(device: str) -> str:
    """Check that a device is available and return its name; "auto" is "cuda" if there is a GPU, else "cpu".

    Raises:
        InvalidSettingError: the device is not available, or icy does not train on devices of its kind.
    """
    there = names()
    if device == "auto":
        return NAME if there else "cpu"
    usable = f"use {', '.join(['auto', 'cpu', *there])}."
    if why := REFUSED.get(device.partition(":")[0]):
        raise InvalidSettingError(f"The device '{device}' is not supported: {why}; {usable}")
    if device not in ("cpu", *there, *([NAME] if there else [])):
        raise InvalidSettingError(f"The device '{device}' is not available; {usable}")
    try:
        torch.empty(0, device=device, dtype=torch.float32)
    except RuntimeError as error:  # such as a GPU that other processes keep to themselves
        raise InvalidSettingError(f"The device '{device}' cannot be used ({_first_line(error)}); {usable}") from error
    return device


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def make_current(device: str) -> None:
    """Make a GPU the current device, which streams, graphs and memory counts use; ignore other devices."""
    if is_gpu(device):
        torch.cuda.set_device(device)


def wait(device: str) -> None:
    """Wait until a GPU has done all that it was given; return at once for other devices."""
    if is_gpu(device):
        torch.cuda.synchronize(device)


def empty_cache(device: str) -> None:
    """Give a GPU's unused memory back."""
    if is_gpu(device):
        torch.cuda.empty_cache()


# -- random states -----------------------------------------------------------------------------------------------------


@contextmanager
def keeping_random_states(device: torch.device) -> Iterator[None]:
    """Restore the random states of the CPU and of the device at the end of the block."""
    with torch.random.fork_rng(devices=[device] if is_gpu(device) else []):
        yield


def random_state(device: torch.device) -> RandomState:
    """Return the random states of the CPU and of the device."""
    return torch.random.get_rng_state(), torch.cuda.get_rng_state(device) if is_gpu(device) else None


def set_random_state(state: RandomState, device: torch.device) -> None:
    """Set the random states of the CPU and of the device."""
    of_cpu, of_device = state
    torch.random.set_rng_state(of_cpu)
    if of_device is not None:
        torch.cuda.set_rng_state(of_device, device)


# -- precision of matrix products --------------------------------------------------------------------------------------


@contextmanager
def products_in(tf32: bool | None) -> Iterator[None]:
    """Set the precision of matrix products on a GPU within the block: TF32 or full; None without a GPU."""
    if tf32 is None:
        yield
        return
    places: tuple[Any, Any] = (
        torch.backends.cuda.matmul,
        torch.backends.cudnn,
    )  # of the second, PyTorch's default is TF32
    before = [place.allow_tf32 for place in places]
    for place in places:
        place.allow_tf32 = tf32
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            place.allow_tf32 = value


# -- captured operations -----------------------------------------------------------------------------------------------


def capture(operations: Callable[[], None]) -> Replay:
    """Capture the operations of a function as a graph, without running them; return the replay.

    Raises:
        RuntimeError: an operation cannot be captured, because it waits for the GPU or allocates other memory.
    """
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    # The outer block restores the stream of this thread if the inner block fails. Other threads of this process may
    # continue meanwhile.
    with (
        torch.cuda.stream(torch.cuda.current_stream()),
        torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"),
    ):
        operations()
    replay: Replay = graph.replay
    return replay


def warm_up(operations: Callable[[], None]) -> None:
    """Run a function on a side stream, as required before its capture."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        operations()
    torch.cuda.current_stream().wait_stream(side)


def on_device_of(x: Tensor) -> torch.cuda.device_of:
    """Return a block in which the device of a tensor is the current one."""
    return torch.cuda.device_of(x)
