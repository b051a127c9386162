"""Compile the Triton kernels for GPUs that need not be there: `python -m benchmarks.kernels`.

Every kernel, in each of its forms and at the widths of the zoo, is compiled for three generations of GPUs: sm_80
(A100), sm_90 (H100, H200) and sm_100 (B200). NVIDIA's `cuobjdump`, which Triton's package contains, reads how many
registers and how much shared memory a program needs, and whether registers spill to memory. Writes gpu-kernels.md.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icy.core.text import markdown_table
from results.pages import describe_versions, fill_template, read_options

ARCHITECTURES = (80, 90, 100)
SIZES = (33, 64, 128, 256, 512)  # hidden sizes; a program works on the next power of two
ALIGNED = 16  # Triton compiles another form if numbers and addresses are multiples of it
MOST_REGISTERS, MOST_UNALIGNED = 96, 168  # of a thread, so that at least 5 and 3 blocks of 4 warps fit in an SM
MOST_SHARED = 2048  # bytes of a block
USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")
FORMS: dict[str, tuple[dict[str, bool], ...]] = {  # the constants of kernels that have some
    "gru_backward": ({"SHARED": False}, {"SHARED": True}),
    "lstm_backward": ({"HAS_H": True, "HAS_C": True}, {"HAS_H": True, "HAS_C": False}, {"HAS_H": False, "HAS_C": True}),
    **{
        f"highway_{way}": tuple({"TANH": kind == 0, "RELU": kind == 1} for kind in range(3))
        for way in ("forward", "backward")
    },
}


class Compiled(NamedTuple):
    """A compiled kernel, with the needs of a thread and of a block.

    Attributes:
        kernel: its name, with its constants.
        architecture: 80, 90 or 100.
        size: the hidden size.
        registers: registers of a thread.
        shared: bytes of shared memory of a block.
        spilled: bytes of a thread's registers and arrays that are in memory.
    """

    kernel: str
    architecture: int
    size: int
    registers: int
    shared: int
    spilled: int

    @property
    def fits(self) -> bool:
        """Whether it keeps the limits."""
        most = MOST_UNALIGNED if self.size % ALIGNED else MOST_REGISTERS
        return self.registers <= most and self.shared <= MOST_SHARED and not self.spilled


def compiled(architectures: Sequence[int] = ARCHITECTURES, sizes: Sequence[int] = SIZES) -> Iterator[Compiled]:
    """Compile all kernels, in all forms."""
    import triton  # optional, and not to be imported under the interpreter

    from icy.models.kernels import triton_kernels

    kernels = {
        name: kernel
        for name, kernel in vars(triton_kernels).items()
        if isinstance(kernel, triton.runtime.JITFunction) and not name.startswith("_")
    }
    for (name, kernel), architecture, size in itertools.product(kernels.items(), architectures, sizes):
        for form in FORMS.get(name, ({},)):
            binary = _binary(kernel, form, architecture, size)
            registers, stack, shared, local = map(int, USAGE.search(_usage(binary)).groups())  # type: ignore[union-attr]
            label = " ".join([name, *(flag for flag, there in form.items() if there)])
            yield Compiled(label, architecture, size, registers, shared, stack + local)


def _binary(kernel: Any, form: dict[str, bool], architecture: int, size: int) -> bytes:
    """Return the machine code of a kernel."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from icy.models.kernels.triton_steps import ELEMENTS

    width = 1 << (size - 1).bit_length()
    constants = {**form, "ROWS": max(1, ELEMENTS // width), "WIDTH": width}
    types, hints = {}, {}
    for place, parameter in enumerate(kernel.params):
        number = parameter.name in ("rows", "size") or parameter.name.endswith(("_stack", "_row"))
        types[parameter.name] = "constexpr" if parameter.is_constexpr else "i32" if number else "*fp32"
        if not parameter.is_constexpr and (not number or size % ALIGNED == 0):
            hints[(place,)] = [["tt.divisibility", ALIGNED]]
    source = ASTSource(kernel, types, constants, hints)
    binary: bytes = triton.compile(source, target=GPUTarget("cuda", architecture, 32)).asm["cubin"]
    return binary


def _usage(binary: bytes) -> str:
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        return subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True).stdout


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parent / "gpu-kernels.md"


def table(found: Sequence[Compiled]) -> str:
    """Return a table with a row per kernel: registers at each size, the most of any architecture."""
    sizes = sorted({one.size for one in found})
    rows = []
    for kernel in dict.fromkeys(one.kernel for one in found):
        own = [one for one in found if one.kernel == kernel]
        most = [max(one.registers for one in own if one.size == size) for size in sizes]
        rows.append([kernel, *most, max(one.shared for one in own), max(one.spilled for one in own)])
    head = ["kernel", *(f"registers, E = {size}" for size in sizes), "shared memory, bytes", "spilled, bytes"]
    return markdown_table(head, rows, numbers=range(1, len(head)))


def main() -> None:
    """Compile, print the table, and write the page."""
    read_options(__doc__)
    os.environ["TRITON_INTERPRET"] = "0"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        found = list(compiled())
    print(table(found))
    PAGE.write_text(
        fill_template(
            PAGE,
            versions=describe_versions(),
            count=len(found),
            kernels=len({one.kernel for one in found}),
            registers=MOST_REGISTERS,
            unaligned=MOST_UNALIGNED,
            shared=MOST_SHARED,
            table=table(found),
        )
    )


if __name__ == "__main__":
    main()
