"""The bound of the speed in speed.py: the operations that an update needs, and the highest rate of a core."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path

from benchmarks.harness import rate
from icy.core.native import build

BATCH, SPACE = 128, "5x10"
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

    import icy

    side, _, name = model.partition("/")
    made = (icy.create_sender if side == "sender" else icy.create_receiver)(name, SPACE)
    places = made.space.attributes if side == "sender" else made.message_length
    aten = torch.ops.aten
    in_place = {aten.addmm_: addmm_flop, aten.baddbmm_: baddbmm_flop}  # PyTorch does not count these
    for formula in in_place.values():
        formula._get_raw = True  # type: ignore[attr-defined]  # takes tensors instead of shapes
    with FlopCounterMode(display=False, custom_mapping=in_place) as counter:
        made(torch.zeros(BATCH, places, dtype=torch.long)).sum().backward()
    return float(counter.get_total_flops()) / 1e9
