"""Estimate the time of captured updates on a GPU, without a GPU: `python -m benchmarks.floors`.

The rows of the speed page train on a stand-in for a GPU (stand_in.py). Every operation that a GPU would run as a kernel
is counted, with its bytes read and written and its floating-point operations. Writes gpu-floors.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from benchmarks.courses import SEEDS, is_probe, make_course
from benchmarks.harness import Where, matching
from benchmarks.plain import make_training
from benchmarks.speed import GAMES, PAIRS, PROBES
from benchmarks.stand_in import gpu_of_meta
from icy.core.text import markdown_table
from icy.models.kernels import triton_steps
from icy.training.stack import WARM_UP
from results.pages import describe_versions, fill_template, read_options

MODELS = ("sender/HierZero:GRU", "sender/RNNAutoReg:LSTM", "receiver/Hier:GRU", "sender/FC2L", "sender/TransDecSoft")
ROWS = PROBES + PAIRS + GAMES  # agents of S2B train on the CPU
REPLICATES = 35  # of a probe: 7 grammars and 5 seeds

# NVIDIA's data sheet of the H200 SXM, without sparsity; the launch of a small kernel in a graph is an assumption.
BANDWIDTH, FP32, TF32 = 4.8e12, 67e12, 494e12
LAUNCH = 1e-6, 2e-6
START = 4e-6, 8e-6  # seconds in which Python starts an operation of an ordinary module, an assumption too
LARGEST_STACK, ENOUGH = 1 << 16, 0.9

NO_KERNEL = ("empty", "new_empty", "detach", "alias", "_unsafe_view", "resize_")  # in addition to views
UNREAD = ("zero_", "fill_", "copy_")  # operations that write in place without reading
PICKING = ("index_select", "gather", "index")  # operations that read as much as they return


@dataclass(frozen=True)
class Kernel:
    """A launch: the operation, the bytes that it reads and writes, and its floating-point operations."""

    name: str
    bytes: int
    operations: int

    @property
    def needs(self) -> dict[str, float]:
        """Seconds that its launch, its bytes and its operations need."""
        return {"launches": LAUNCH[0], "bytes": self.bytes / BANDWIDTH, "operations": self.operations / FP32}

    @property
    def seconds(self) -> float:
        """The shortest possible time of the kernel."""
        return max(self.needs.values())

    @property
    def limit(self) -> str:
        """What needs the most time: launches, bytes or operations."""
        return max(self.needs, key=self.needs.__getitem__)


@dataclass
class Counted:
    """Kernels and bytes of operations on a GPU.

    Attributes:
        kernels: launched kernels.
        kept: bytes that the forward pass saves for the backward pass, by storage.
        updated: bytes that the optimizer reads and writes.
    """

    kernels: list[Kernel] = field(default_factory=list)
    kept: dict[Any, int] = field(default_factory=dict)
    updated: int = 0

    @property
    def launches(self) -> int:
        """The number of kernels."""
        return len(self.kernels)

    @property
    def bytes(self) -> int:
        """Bytes that all operations read and write."""
        return sum(kernel.bytes for kernel in self.kernels)

    @property
    def needed(self) -> int:
        """Bytes that move however operations are fused: saved values are written and read, and weights are updated."""
        return 2 * sum(self.kept.values()) + self.updated

    @property
    def operations(self) -> int:
        """Number of floating-point operations; operations other than products count once per element."""
        return sum(kernel.operations for kernel in self.kernels)

    @property
    def floors(self) -> tuple[float, float]:
        """Seconds for moving the needed bytes, and for computing."""
        return self.needed / BANDWIDTH, self.operations / FP32

    @property
    def to_floor(self) -> tuple[float, float]:
        """The time of all launches relative to the larger floor, for a short and a long time per launch."""
        least, most = (seconds * self.launches / max(self.floors) for seconds in LAUNCH)
        return least, most

    @property
    def seconds(self) -> float:
        """The shortest possible time of all kernels, one after another."""
        return sum(kernel.seconds for kernel in self.kernels)

    def add(self, name: str, read: Sequence[Tensor], written: Sequence[Tensor], operations: int | None = None) -> None:
        """Count one kernel; without `operations`, it has one operation per element."""
        if operations is None:
            operations = max((x.numel() for x in (*read, *written)), default=0)
        self.kernels.append(Kernel(name, sum(map(_bytes, (*read, *written))), operations))

    def keep(self, x: Tensor) -> Tensor:
        """Record a tensor that is saved for the backward pass."""
        storage = x.untyped_storage()
        self.kept[storage] = storage.nbytes()  # holds the storage itself, so that its address is not used again
        return x


def _bytes(x: Tensor) -> int:
    """Return the bytes of a tensor; an expanded tensor has fewer bytes than its elements suggest."""
    elements = 1
    for size, stride in zip(x.shape, x.stride(), strict=True):
        elements *= size if stride else min(size, 1)
    return elements * x.element_size()


class Counting(TorchDispatchMode):
    """Count the operations within a `with` block, and optionally Triton kernels, as if there were a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Counted()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if not func.is_view and not name.startswith(NO_KERNEL):
            self._count(func, name, args, kwargs, out)
        return out

    def _count(self, func: Any, name: str, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        written = [x for x in tree_leaves(out) if isinstance(x, Tensor)]
        read = [
            x for x in tree_leaves((args, {k: v for k, v in kwargs.items() if k != "out"})) if isinstance(x, Tensor)
        ]
        if name == "_fused_adam_":  # it returns nothing; everything except gradients and steps is also written
            written = [x for part in (args[0], *args[2:4]) for x in part]
            self.found.updated += sum(map(_bytes, (*read, *written)))
        if name in UNREAD:
            read = read[1:]
        if name in PICKING:
            read = [*written, *read[1:]]
        if name in ("addmm", "baddbmm"):  # the addend is copied first, and the product added to it
            self.found.add("copy_", read[:1], written, 0)
            read = [*written, *read[1:]]
        products = flop_registry.get(func.overloadpacket)
        self.found.add(name, read, written, products(*args, **kwargs, out_val=out) if products else None)

    def launch(self, kernel: str, programs: tuple[int, int], *arguments: Any, **constants: Any) -> None:
        """Count a Triton kernel, which reads or writes each of its tensors once."""
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        self.found.add(f"Triton: {kernel}", tensors, [], sum(x.numel() for x in tensors))


@contextmanager
def counting(triton: bool) -> Iterator[Counted]:
    """Count the operations in a `with` block, with or without Triton kernels."""
    mode = Counting()
    with (
        mode,
        torch.autograd.graph.saved_tensors_hooks(mode.found.keep, lambda x: x),
        mock.patch.object(triton_steps, "suits", return_value=triton),
        mock.patch.object(triton_steps, "launch", mode.launch),
    ):
        yield mode.found


def captured_update(row: str, replicates: int = REPLICATES, triton: bool = False) -> Counted:
    """Count the operations in the CUDA graph of one update of a row of the speed page."""
    found: list[Counted] = []

    @contextmanager
    def around() -> Iterator[None]:
        with counting(triton) as counted:
            yield
        found.append(counted)

    with gpu_of_meta(around):
        make_course(row, Where("meta", "auto", replicates), seeds=replicates).update(WARM_UP + 1)
    return found[0]


def plain_operations(row: str) -> int:
    """Return the number of operations that Python starts in one update of the row's ordinary module."""
    training = make_training(row, 0)
    training.update()  # the optimizer makes its moments
    with counting(triton=False) as found:
        training.update()
    return found.launches


@dataclass(frozen=True)
class Estimate:
    """The shortest possible times of a row's updates, by replicates.

    The number of kernels does not depend on the replicates; bytes and operations of each grow by the same for each.

    Attributes:
        two, three: counts with two and with three replicates, with Triton.
        plain: operations that Python starts in an update of an ordinary module.
        usual: replicates of the usual stack.
    """

    two: Counted
    three: Counted
    plain: int
    usual: int

    def kernels(self, replicates: int) -> Iterator[Kernel]:
        """Yield the kernels of an update of a stack."""
        more = replicates - 2
        for a, b in zip(self.two.kernels, self.three.kernels, strict=True):
            yield Kernel(
                a.name, a.bytes + more * (b.bytes - a.bytes), a.operations + more * (b.operations - a.operations)
            )

    def seconds(self, replicates: int) -> float:
        """Return the shortest possible time of an update of a stack."""
        return sum(kernel.seconds for kernel in self.kernels(replicates))

    @property
    def stops_growing(self) -> int:
        """The smallest stack, a power of two, with at least 90 % of the most updates per second."""
        best = LARGEST_STACK / self.seconds(LARGEST_STACK)
        stack = 1
        while stack / self.seconds(stack) < ENOUGH * best:
            stack *= 2
        return stack

    @property
    def limit(self) -> str:
        """What takes most of the time of an update of the usual stack: launches, bytes or operations."""
        shares = Counter[str]()
        for kernel in self.kernels(self.usual):
            shares[kernel.limit] += kernel.seconds
        name, seconds = shares.most_common(1)[0]
        return f"{name} ({seconds / shares.total():.0%})"

    @property
    def to_plain(self) -> tuple[float, float]:
        """Updates per second relative to ordinary modules, for quick and slow starts of operations by Python."""
        least, most = (self.usual * self.plain * start / self.seconds(self.usual) for start in START)
        return least, most


def estimate(row: str) -> Estimate:
    """Count kernels and operations for the estimate of a row."""
    two, three = (captured_update(row, replicates, triton=True) for replicates in (2, 3))
    return Estimate(two, three, plain_operations(row), REPLICATES if is_probe(row) else SEEDS)


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parent / "gpu-floors.md"
TABLE = PAGE.with_suffix(".csv")  # the estimates that gpu.py compares with measurements
Both = tuple[Counted, Counted]  # by PyTorch alone, and with Triton


def table(results: dict[str, Both]) -> str:
    """Return a table of the kernels, bytes and operations of an update, by model."""
    head = ["model", "steps of cells by", "kernels", "launches, ms", "memory, ms", "fp32, ms", "launches to floor"]
    head += ["GB moved", "GB needed", "GFLOP", "all kernels, ms"]
    rows = []
    for model, both in results.items():
        for way, found in zip(("PyTorch", "Triton"), both, strict=True):
            launches = " to ".join(f"{1e3 * seconds * found.launches:.2f}" for seconds in LAUNCH)
            floors = [f"{1e3 * seconds:.2f}" for seconds in found.floors]
            ratio = " to ".join(f"{ratio:.1f}" for ratio in found.to_floor)
            amounts = [f"{amount / 1e9:.3g}" for amount in (found.bytes, found.needed, found.operations)]
            seconds = f"{1e3 * found.seconds:.2f}"
            rows.append([model, way, f"{found.launches:,}", launches, *floors, ratio, *amounts, seconds])
    return markdown_table(head, rows, numbers=range(2, len(head)))


def estimates(found: dict[str, Estimate]) -> str:
    """Return a table of the estimates, by row."""
    head = ["row", "kernels", "replicates", "least ms", "most updates/s", "limit", "stops growing at"]
    head += ["operations of an ordinary module", "to ordinary modules"]
    rows = []
    for row, one in found.items():
        seconds = one.seconds(one.usual)
        ratio = " to ".join(f"{ratio:.0f}" for ratio in one.to_plain)
        rate, stack = f"{one.usual / seconds:,.0f}", f"{one.stops_growing:,}"
        rows.append([row, f"{one.two.launches:,}", one.usual, f"{1e3 * seconds:.2f}", rate, one.limit, stack])
        rows[-1] += [f"{one.plain:,}", ratio]
    return markdown_table(head, rows, numbers=(1, 2, 3, 4, 6, 7, 8))


def kinds(both: Both, at_least: int = 10) -> str:
    """Return a table of launches by kernel; kernels with fewer than `at_least` launches are summed."""
    before, after = (Counter(kernel.name for kernel in found.kernels) for found in both)
    names = sorted(before | after, key=lambda name: (-before[name], -after[name], name))
    shown = [name for name in names if max(before[name], after[name]) >= at_least]
    rows = [[name, before[name], after[name]] for name in shown]
    rows.append(["others", *(sum(counts[name] for name in names if name not in shown) for counts in (before, after))])
    return markdown_table(["operation", "PyTorch", "Triton"], rows, numbers=(1, 2))


def page(results: dict[str, Both], found: dict[str, Estimate]) -> str:
    """Return the text of the page."""
    model = next(iter(results))
    return fill_template(
        PAGE,
        versions=describe_versions(),
        replicates=REPLICATES,
        bandwidth=BANDWIDTH / 1e12,
        fp32=FP32 / 1e12,
        tf32=TF32 / 1e12,
        least=LAUNCH[0] * 1e6,
        most=LAUNCH[1] * 1e6,
        estimates=estimates(found),
        quick=START[0] * 1e6,
        slow=START[1] * 1e6,
        seeds=SEEDS,
        table=table(results),
        model=model,
        kinds=kinds(results[model]),
    )


def main() -> None:
    """Count, print the tables, and write the page."""
    given = read_options(__doc__, rows=("*", "rows of the speed page or patterns, separated by commas; all by default"))
    rows = matching(ROWS, given.rows)
    found = {row: estimate(row) for row in rows}
    print(estimates(found))
    results = {row: (captured_update(row), captured_update(row, triton=True)) for row in rows if row in MODELS}
    print(table(results))
    if rows == list(ROWS):
        PAGE.write_text(page(results, found))
        lines = [f"{row},{one.usual},{one.usual / one.seconds(one.usual):.6g}" for row, one in found.items()]
        TABLE.write_text("\n".join(["row,replicates,most_updates_per_second", *lines, ""]))


if __name__ == "__main__":
    main()
