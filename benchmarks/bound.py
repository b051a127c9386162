"""The bound of the speed in speed.py: the operations that an update needs, and the highest rate of a core."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.courses import SPACE, is_probe, make_course
from benchmarks.harness import Where, rate
from icy.core import native
from icy.core.native import build

BATCH = 128
SOURCE = Path(__file__).parent / "micro_kernel.cpp"
CORES = SOURCE.parents[1] / "models/native"
MICRO_KERNEL = f"benchmarks/{SOURCE.name}"  # name on the page


def compiled(folder: Path) -> Path:
    """Compile the micro-kernel for this processor; return the library."""
    library = folder / "micro_kernel.so"
    flags = [
        *build.FLAGS,
        "-fvisibility=default",
        "-DICY_VARIANT=bound",
        *(f"-I{folder}" for folder in (CORES, build.COMMON)),
    ]
    flags += ["-mcpu=native" if platform.machine() in ("aarch64", "arm64") else "-march=native"]
    subprocess.run(["c++", *flags, "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    return library


def micro_kernel_rate(library: Path, seconds: float) -> float:
    """Return the billions of operations per second of one core, in matrix products of a recurrent step."""
    function = ctypes.CDLL(str(library)).micro_kernel_rate
    function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
    return float(function(seconds))


def large_product_rate(device: str, seconds: float, size: int = 16384) -> float:
    """Return the billions of operations per second of large products on a GPU, in single precision."""
    import torch

    one = torch.randn(size, size, device=device)
    return 2e-9 * size**3 * rate(lambda: (one @ one).sum().item(), seconds)


def operations(model: str) -> float:
    """Return the billions of operations of the matrix products that one update of one replicate needs.

    PyTorch counts the products of icy's own model, forward and backward. This model skips products with zeros,
    multiplies the embedding of symbols into the weights once per update instead of at every step, and computes each
    position of a decoder once. A plain implementation needs more operations.
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode, addmm_flop, baddbmm_flop

    aten = torch.ops.aten
    in_place = {aten.addmm_: addmm_flop, aten.baddbmm_: baddbmm_flop}  # PyTorch does not count these
    for formula in in_place.values():
        formula._get_raw = True  # type: ignore[attr-defined]  # takes tensors instead of shapes
    with _without_library_cells():
        count, replicates = _counted(model)
        with FlopCounterMode(display=False, custom_mapping=in_place) as counter:
            count()
    return float(counter.get_total_flops()) / 1e9 / replicates


@contextlib.contextmanager
def _without_library_cells() -> Iterator[None]:
    """Run recurrent layers as single products, because PyTorch does not count the products of compiled layers."""
    import torch

    library: Any = torch.backends.mkldnn
    library.enabled = False
    with mock.patch.dict(os.environ, {native.SETTING: native.OFF}):
        yield
    library.enabled = True


def _counted(model: str) -> tuple[Callable[[], object], int]:
    """Return a function with the products of an update, and the number of replicates that they are for."""
    import torch

    import icy

    if not is_probe(model):
        course = make_course(model, Where(engine="broadcast+plain"))
        course.update(1)
        return functools.partial(course.update, 1), course.replicates
    side, _, name = model.partition("/")
    made = (icy.create_sender if side == "sender" else icy.create_receiver)(name, SPACE)
    places = made.space.attributes if side == "sender" else made.message_length
    batch = torch.zeros(BATCH, places, dtype=torch.long)
    return lambda: made(batch).sum().backward(), 1
