"""A stand-in for a GPU: PyTorch's device "meta", where tensors have shapes but no numbers.

Within `gpu_of_meta`, icy takes "meta" for a GPU. Like a GPU, it refuses an operation on tensors of the GPU and of the
CPU; and in a captured update also reading a number, copies from and to the CPU, and results with shapes that depend on
numbers. Outside of captures, numbers that are read are zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from icy.core import gpu

META = "meta"
COPIES = ("_to_copy", "copy_", "_copy_from", "_copy_from_and_resize")
SHAPED_BY_DATA = {torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output}
ZEROS = {torch.bool: False, torch.float32: 0.0, torch.float64: 0.0}  # 0 for other types


CONSTANTS = (torch.tensor, torch.as_tensor, Tensor.new_tensor)
INDEXING = (Tensor.__getitem__, Tensor.__setitem__)


class MixedDevicesError(RuntimeError):
    """An operation on tensors of the GPU and of the CPU."""


class StandIn(TorchDispatchMode):
    """Watches operations, as a GPU would.

    Attributes:
        events: number of waits, copies and captures, by name.
        capturing: whether operations are being captured.
        around: makes a block around the operations of a capture, to count them.
    """

    def __init__(self, around: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
        super().__init__()
        self.events: Counter[str] = Counter()
        self.capturing, self.around = False, around

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, func.overloadpacket.__name__
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        places = {x.device.type for x in tensors if x.dim() or x.device.type == META}
        if name == "_local_scalar_dense" and META in places:
            self._wait("a number is read (item)")
            return ZEROS.get(tensors[0].dtype, 0)
        if name in COPIES:
            to = torch.device(kwargs.get("device") or tensors[0].device).type
            if to == META and "cpu" in {x.device.type for x in tensors}:
                self._wait("a copy from the CPU")
            elif to == "cpu" and META in places:
                self._wait("a copy to the CPU")
                source = tensors[-1]
                kind = kwargs.get("dtype") or source.dtype
                made = torch.zeros(source.shape, dtype=kind, device="cpu")
                if kind == torch.bool and made.dim() > 1:
                    made.fill_(True)  # tables of what exists must not be empty
                return tensors[0].copy_(made) if name == "copy_" else made
            return func(*args, **kwargs)
        if len(places) > 1:
            raise MixedDevicesError(f"{name} of tensors on {' and '.join(sorted(places))}")
        indices = [x for x in tensors[1:] if x.dtype == torch.bool] if name.startswith("index") else tensors
        if META in places and indices and SHAPED_BY_DATA & set(func.tags):
            self._wait(f"a result of {name}, with a shape that depends on numbers,")
            if name in ("allclose", "equal", "is_nonzero"):
                return False
            if name == "nonzero":  # as if no number were zero
                return torch.zeros(tensors[0].numel(), tensors[0].dim(), dtype=torch.long, device=META)
        return func(*args, **kwargs)

    def _wait(self, what: str) -> None:
        if self.capturing:
            raise RuntimeError(f"{what} cannot be captured")
        self.events[what] += 1

    def note_call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note a call that copies numbers of Python to the GPU, which operations on "meta" do not show."""
        if function in CONSTANTS:
            on = kwargs.get("device") or (args[0].device if isinstance(args[0], Tensor) else "cpu")
            copies = torch.device(on).type == META
        else:
            places = args[1] if function in INDEXING and isinstance(args[1], tuple) else args[1:2]
            copies = function in INDEXING and args[0].device.type == META and any(isinstance(p, list) for p in places)
        if copies:
            self._wait("a copy from the CPU")

    # -- in place of icy.core.gpu --------------------------------------------------------------------------------------

    def capture(self, operations: Callable[[], None]) -> Callable[[], None]:
        """Run operations once, with everything refused that a capture refuses."""
        self.events["captured"] += 1
        self.capturing = True
        try:
            with self.around():
                operations()
        finally:
            self.capturing = False

        def replay() -> None:
            self.events["replayed"] += 1

        return replay

    def warm_up(self, operations: Callable[[], None]) -> None:
        """Run operations."""
        operations()


class Calls(TorchFunctionMode):
    """Tells a stand-in of calls."""

    def __init__(self, standing: StandIn) -> None:
        super().__init__()
        self.standing = standing

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.standing.note_call(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


@contextmanager
def gpu_of_meta(around: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Iterator[StandIn]:
    """Within the block, take "meta" for the only GPU of this machine; `around` as of StandIn."""
    standing = StandIn(around)
    replaced: dict[str, Any] = {
        "NAME": META,
        "names": lambda: [META],
        "product_name": lambda device: "stand-in",
        "make_current": lambda device: None,
        "wait": lambda device: standing.events.update(["waited"]),
        "empty_cache": lambda device: None,
        "keeping_random_states": lambda device: torch.random.fork_rng(devices=[]),
        "random_state": lambda device: (torch.random.get_rng_state(), None),
        "products_in": lambda tf32: nullcontext(),
        "capture": standing.capture,
        "warm_up": standing.warm_up,
    }
    with mock.patch.multiple(gpu, **replaced), Calls(standing), standing:
        yield standing
