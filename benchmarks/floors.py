"""Count the launches of one captured update on a GPU, without a GPU: `python -m benchmarks.floors`.

The update runs on PyTorch's device "meta", where tensors have shapes but no numbers. Every operation that a GPU
would run as a kernel is counted, with its bytes read and written and its floating-point operations: once with
the steps of cells as single operations of PyTorch, and once as Triton kernels. Writes gpu-floors.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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

from benchmarks.harness import matching
from icy.config.settings import settings_for
from icy.core.representations import get_representation
from icy.core.text import markdown_table
from icy.languages.meanings import MeaningSpace
from icy.models.kernels import triton_steps
from icy.training.gradient import GradientLearner
from icy.training.learners import supervised_loss
from icy.training.probe_settings import ProbeSettings
from icy.training.stack import WARM_UP, CapturedUpdates
from icy.training.task_models import make_model
from results.pages import describe_versions, fill_template, read_options

MODELS = ("sender/HierZero:GRU", "sender/RNNAutoReg:LSTM", "receiver/Hier:GRU", "sender/FC2L", "sender/TransDecSoft")
SPACE, VOCABULARY, WORD, HIDDEN, BATCH, REPLICATES = MeaningSpace(5, 10), 4, 4, 128, 128, 35
LENGTH = SPACE.attributes * WORD
META = torch.device("meta")

# NVIDIA's data sheet of the H200 SXM, without sparsity; the launch of a small kernel in a graph is an assumption.
BANDWIDTH, FP32, TF32 = 4.8e12, 67e12, 494e12
LAUNCH = 1.5e-6, 2.5e-6

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
    def seconds(self) -> float:
        """The shortest possible time of the kernel."""
        return max(LAUNCH[0], self.bytes / BANDWIDTH, self.operations / FP32)


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


def captured_update(model: str, replicates: int = REPLICATES, triton: bool = False) -> Counted:
    """Count the operations in the CUDA graph of one update of a stack of replicates."""
    task = ProbeSettings.of_model(model, SPACE, VOCABULARY, WORD, HIDDEN, "soft")
    settings, loss = settings_for("default"), supervised_loss(get_representation("soft"), task.side)
    stack = [make_model(task, 1, settings)] * replicates
    learner = GradientLearner(stack, range(len(stack)), loss, settings, META, "broadcast")
    updates, found = CapturedUpdates(learner.update, model), list[Counted]()

    def capture(operations: Callable[[], None]) -> Callable[[], None]:
        with counting(triton) as counted:
            operations()
        found.append(counted)
        return lambda: None

    sizes = {"meaning": SPACE.attributes, "message": LENGTH}
    source, target = ("meaning", "message") if task.side == "sender" else ("message", "meaning")
    batches = [
        torch.zeros(WARM_UP + 1, replicates, BATCH, sizes[kind], dtype=torch.long, device=META)
        for kind in (source, target)
    ]
    keys = torch.zeros(WARM_UP + 1, replicates, dtype=torch.long, device=META)
    with mock.patch.multiple(updates, capture=capture, warm_up=lambda operations: None):
        updates(*batches, keys)
    return found[0]


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parent / "gpu-floors.md"
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


def kinds(both: Both, at_least: int = 10) -> str:
    """Return a table of launches by kernel; kernels with fewer than `at_least` launches are summed."""
    before, after = (Counter(kernel.name for kernel in found.kernels) for found in both)
    names = sorted(before | after, key=lambda name: (-before[name], -after[name], name))
    shown = [name for name in names if max(before[name], after[name]) >= at_least]
    rows = [[name, before[name], after[name]] for name in shown]
    rows.append(["others", *(sum(counts[name] for name in names if name not in shown) for counts in (before, after))])
    return markdown_table(["operation", "PyTorch", "Triton"], rows, numbers=(1, 2))


def page(results: dict[str, Both]) -> str:
    """Return the text of the page."""
    model = next(iter(results))
    return fill_template(
        PAGE,
        versions=describe_versions(),
        replicates=REPLICATES,
        space=SPACE,
        length=LENGTH,
        vocabulary=VOCABULARY,
        hidden=HIDDEN,
        batch=BATCH,
        bandwidth=BANDWIDTH / 1e12,
        fp32=FP32 / 1e12,
        tf32=TF32 / 1e12,
        least=LAUNCH[0] * 1e6,
        most=LAUNCH[1] * 1e6,
        table=table(results),
        model=model,
        kinds=kinds(results[model]),
    )


def main() -> None:
    """Count, print the table, and write the page if all models were counted."""
    given = read_options(__doc__, rows=("*", "models or patterns, separated by commas; all by default"))
    models = matching(MODELS, given.rows)
    results = {model: (captured_update(model), captured_update(model, triton=True)) for model in models}
    print(table(results))
    if models == list(MODELS):
        PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
