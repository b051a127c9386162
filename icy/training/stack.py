"""R modules of one architecture with stacked parameters, and three ways to run them."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F

from icy.core import gpu
from icy.core.errors import InvalidSettingError
from icy.core.fused import hand_written_only
from icy.core.noise import Noise, drawing_from
from icy.core.streams import stream_key
from icy.models.stock import StockLayers

# The optimizer uses other instructions for the last elements of a vector that do not fill a register. With padding,
# these elements are not parameters, so a model's numbers do not depend on its position in the vector. Each tensor is
# padded to start at a cache line, as matrix products require (icy.models.kernels.products).
PADDING = 64
Output = Any  # a tensor, or a tuple of tensors
# Indices of replicates, by the beginning of the names of parameters that they give; "" is for all other names.
Owners = Mapping[str, Tensor]


class Stack:
    """Stacked parameters of R equal modules: one vector, with a view [replicate, ...] per tensor.

    With one vector, clearing gradients and stepping the optimizer are one operation each for all tensors. Each tensor
    is a contiguous block of the vector, as batched matrix products require.

    Buffers of submodules with `stacks_buffers = True`, such as running averages, are stacked too. Other buffers are
    assumed equal in all modules, so those of the first module are used. For vmap all buffers are stacked.
    """

    def __init__(
        self, modules: list[nn.Module], device: torch.device, seeds: Sequence[int], all_buffers: bool = False
    ) -> None:
        self.modules = [module.to(device) for module in modules]
        self._all_buffers = all_buffers
        parameters = [dict(module.named_parameters()) for module in self.modules]
        self._trainable = {name: p.requires_grad for name, p in parameters[0].items()}
        self._attach({name: torch.stack([p[name].detach().float() for p in parameters]) for name in parameters[0]})
        self._stack_buffers()
        # Each module has its own random state (used for dropout, for example), so that its numbers do not depend on
        # the other replicates of the stack.
        self.random_states: list[gpu.RandomState] = []
        with gpu.keeping_random_states(device):
            for seed in seeds:
                torch.manual_seed(stream_key(seed, "noise"))  # seeds the CPU and every GPU
                self.random_states.append(gpu.random_state(device))

    def _attach(self, values: dict[str, Tensor]) -> None:
        self._shapes = {name: value.shape for name, value in values.items()}
        self.flat = self.pack(values)
        self.flat_grad = torch.zeros_like(self.flat)
        # The gradient of a frozen parameter stays zero, so Adam does not change it. Other optimizers use `frozen`.
        self.parameters = {n: view.requires_grad_(self._trainable[n]) for n, view in self.views(self.flat).items()}
        self.gradients = self.views(self.flat_grad)
        for name, parameter in self.parameters.items():
            parameter.grad = self.gradients[name]  # backward adds into it, in place

    def _stack_buffers(self) -> None:
        """Stack buffers as [replicate, ...], and make each module's buffers views of them."""
        names = _stacking_buffers(self.modules[0], self._all_buffers)
        self._buffers = {name: torch.stack([m.get_buffer(name) for m in self.modules]) for name in names}
        for name, stacked in self._buffers.items():
            for module, buffer in zip(self.modules, stacked, strict=True):
                for same in names[name]:
                    owner, _, own = same.rpartition(".")
                    setattr(module.get_submodule(owner), own, buffer)

    def pack(self, values: dict[str, Tensor]) -> Tensor:
        """Pack tensors into one vector, each zero-padded to a multiple of PADDING."""
        return torch.cat([F.pad(value.flatten(), (0, -value.numel() % PADDING)) for value in values.values()])

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the tensors of a packed vector as views, by name."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        parts = flat.split([-(-size // PADDING) * PADDING for size in sizes])
        named = zip(self._shapes.items(), sizes, parts, strict=True)
        return {name: part[:size].view(shape) for (name, shape), size, part in named}

    def frozen(self) -> Tensor | None:
        """Return a mask of the vector's frozen parameters; None if no parameter is frozen."""
        if all(self._trainable.values()):
            return None
        mask = torch.zeros_like(self.flat, dtype=torch.bool)
        for name, view in self.views(mask).items():
            view.fill_(not self._trainable[name])
        return mask

    def clip(self, limit: float, parts: Sequence[str] = ("",)) -> None:
        """Scale the gradient of each part of each replicate down to a norm of at most `limit`.

        Args:
            limit: the norm.
            parts: beginnings of the names of the parameters in each part; by default one part has all parameters.
        """
        for part in parts:
            rows = [gradient.flatten(1) for n, gradient in self.gradients.items() if _part_of(n, parts) == part]
            # A replicate's norms are a row. Sums along columns would round differently in stacks of different sizes.
            norms = torch.stack([torch.linalg.vector_norm(row, dim=1) for row in rows], 1)
            scale = (limit / (torch.linalg.vector_norm(norms, dim=1) + 1e-6)).clamp_(max=1)
            for row in rows:
                row.mul_(scale.unsqueeze(1))

    def state(self, place: int) -> dict[str, Tensor]:
        """Return a copy of the parameters and buffers of one module."""
        buffers = {name: value.clone() for name, value in self.modules[place].named_buffers()}
        return {name: p[place].detach().clone() for name, p in self.parameters.items()} | buffers

    @torch.no_grad()
    def load(self, place: int, state: dict[str, Tensor]) -> None:
        """Load a module's parameters and buffers from `state`."""
        for name, buffer in self.modules[place].named_buffers():
            buffer.copy_(state[name])
        for name, parameter in self.parameters.items():
            parameter[place].copy_(state[name])

    def keep(self, which: list[int]) -> None:
        """Keep only these replicates."""
        index = torch.tensor(which, device=self.flat.device, dtype=torch.int64)
        self._attach({name: value.detach()[index] for name, value in self.parameters.items()})
        # A module whose place is repeated is copied, so that each copy has its own buffers.
        before = self.modules
        self.modules = [copy.deepcopy(before[p]) if p in which[:i] else before[p] for i, p in enumerate(which)]
        self._stack_buffers()
        self.random_states = [self.random_states[i] for i in which]

    def forward(
        self,
        inputs: Sequence[Tensor],
        engine: str,
        keys: Tensor | None = None,
        which: Sequence[int] | None = None,
        owners: Owners | None = None,
    ) -> Output:
        """Run every replicate on its own inputs; return scores [replicate, batch, ...], or several tensors.

        Args:
            inputs: arguments of the modules, each [replicate, ...].
            engine: "broadcast", "vmap", "vmap+layers" (with `StockLayers`) or "loop".
            keys: noise key of each replicate [replicate] in training; None in evaluation.
            which: indices in the stack of the replicates of `inputs` and `keys`; by default all.
            owners: indices in the stack of the replicates that give each part of the parameters, one index for each
                replicate of `inputs`; by default each uses its own parameters.
        """
        if which is not None and list(which) == list(range(len(self.modules))):
            which = None
        for module in self.modules if engine == "loop" else self.modules[:1]:
            module.train(keys is not None)
        one = self.modules[0]
        if engine == "loop":
            return self._one_by_one(inputs, keys, range(len(self.modules)) if which is None else which, owners)
        values = self.parameters | self._buffers
        if which is not None:
            index = torch.tensor(which, device=self.flat.device, dtype=torch.int64)
            values = {name: value[index] for name, value in values.items()}
        if owners is not None:
            values = {n: value.index_select(0, owners[_part_of(n, owners)]) for n, value in values.items()}
        if engine == "broadcast":
            return _call(one, values, keys, *inputs)
        placed = (0, None if keys is None else 0, *[0] * len(inputs))
        with (
            hand_written_only(),
            _slow_in_silence(),
            self._stock_layers(which) if engine == "vmap+layers" else nullcontext(),
        ):
            outputs: Output = vmap(partial(_call, one), in_dims=placed)(values, keys, *inputs)
        return outputs

    @contextmanager
    def _stock_layers(self, which: Sequence[int] | None) -> Iterator[None]:
        """Run PyTorch's recurrent layers and dropout for the stack, with the random states of its modules."""
        places = range(len(self.modules)) if which is None else which
        with StockLayers([self.random_states[i][0] for i in places]) as layers:
            yield
        for i, state in zip(places, layers.random_states, strict=True):
            self.random_states[i] = (state, self.random_states[i][1])

    def _one_by_one(
        self, inputs: Sequence[Tensor], keys: Tensor | None, which: Sequence[int], owners: Owners | None
    ) -> Output:
        device = self.flat.device
        outputs = []
        with gpu.keeping_random_states(device):
            for at, i in enumerate(which):
                gpu.set_random_state(self.random_states[i], device)
                # Copies, as the last bits of a product may depend on the address of the weights.
                mine = {
                    name: p[i if owners is None else int(owners[_part_of(name, owners)][at])].clone()
                    for name, p in self.parameters.items()
                }
                key = None if keys is None else keys[at]
                outputs.append(_call(self.modules[i], mine, key, *(x[at] for x in inputs)))
                self.random_states[i] = gpu.random_state(device)
        if isinstance(outputs[0], tuple):
            return tuple(torch.stack(of_all) for of_all in zip(*outputs, strict=True))
        return torch.stack(outputs)


def _part_of(name: str, parts: Iterable[str]) -> str:
    """Return the first of some beginnings of names that a name has; "" if it has none."""
    return next((part for part in parts if part and name.startswith(part)), "")


@contextmanager
def _slow_in_silence() -> Iterator[None]:
    """Suppress PyTorch's warning that vmap runs an operation one replicate at a time."""
    enable = torch._C._functorch._set_vmap_fallback_warning_enabled  # type: ignore[attr-defined]
    enable(False)
    try:
        yield
    finally:
        enable(True)


def _stacking_buffers(module: nn.Module, all_of_them: bool) -> dict[str, list[str]]:
    """Return the buffers to stack: all names of each buffer, by the buffer's first name."""
    names: dict[int, list[str]] = {}
    for place, part in module.named_modules(remove_duplicate=False):
        if all_of_them or getattr(part, "stacks_buffers", False):
            for name, buffer in part.named_buffers(recurse=False, remove_duplicate=False):
                names.setdefault(id(buffer), []).append(f"{place}.{name}" if place else name)
    return {same[0]: same for same in names.values()}


def _call(module: nn.Module, parameters: dict[str, Tensor], keys: Tensor | None, *inputs: Tensor) -> Output:
    """Call a module with these parameters and the noise of `keys`."""
    with drawing_from(None if keys is None else Noise(keys)):
        found: Output = functional_call(module, parameters, inputs)
    return found


# -- issue the updates of a stack: operation by operation, or as a captured CUDA graph ---------------------------------

# The models are small: on a GPU, most of an update's time passes while Python launches a few hundred kernels of some
# microseconds each. A captured update is launched as a whole. It fetches its batch from a block of batches on the
# device, so the host only has to replay the graph.


log = logging.getLogger(__name__)
Step = Callable[..., Any]  # an update or evaluation of tensors on their device

WARM_UP = 3  # updates before the capture, in which libraries allocate their workspaces
BLOCK = 64  # batches in the block of a captured update


class PlainUpdates:
    """Issues every update operation by operation."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def __call__(self, *blocks: Tensor) -> None:
        """Run an update per batch; batches are the first axis of every block."""
        for batch in zip(*blocks, strict=True):
            self._step(*batch)


class CapturedUpdates:
    """Captures one update and replays it for every batch; a changed stack needs a new capture.

    The first few updates run operation by operation. If the capture then fails, all updates do, with a warning.

    Args:
        step: one update of a batch.
        name: name of the model, for the log.

    Attributes:
        failed: whether the capture failed.
    """

    def __init__(self, step: Step, name: str) -> None:
        self._step, self._name = step, name
        self._made = 0
        self._replay: gpu.Replay | None = None
        self.failed = False

    def __call__(self, *blocks: Tensor) -> None:
        """Run one update per batch; batches are the first axis of every block."""
        warming = max(0, WARM_UP - self._made)
        for batch in zip(*(block[:warming] for block in blocks), strict=True):
            gpu.warm_up(partial(self._step, *batch))
            self._made += 1
        rest = [block[warming:] for block in blocks]
        if not len(rest[0]):
            return
        if self._replay is None and not self.failed:
            self._prepare(rest)
        if self._replay is None:
            PlainUpdates(self._step)(*rest)
            return
        for some in zip(*(block.split(BLOCK) for block in rest), strict=True):
            self._run(some)

    def _prepare(self, blocks: Sequence[Tensor]) -> None:
        self._buffers = [block.new_zeros(BLOCK, *block.shape[1:]) for block in blocks]
        self._place = torch.zeros(1, dtype=torch.long, device=blocks[0].device)

        def next_update() -> None:
            self._step(*(buffer.index_select(0, self._place).squeeze(0) for buffer in self._buffers))
            self._place.add_(1)

        try:
            self._replay = gpu.capture(next_update)
        except RuntimeError as error:
            self.failed = True
            why = str(error).strip().partition("\n")[0]
            log.warning("%s: an update cannot be captured (%s); operations are launched one by one.", self._name, why)

    def _run(self, blocks: Sequence[Tensor]) -> None:
        assert self._replay is not None
        for buffer, block in zip(self._buffers, blocks, strict=True):
            buffer[: len(block)].copy_(block)
        self._place.zero_()
        for _ in range(len(blocks[0])):
            self._replay()


class CapturedCall:
    """Captures a pure function of tensors, once for every combination of shapes.

    Args:
        function: the function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._known: dict[Any, tuple[list[Tensor], list[Any], gpu.Replay] | None] = {}

    def __call__(self, *inputs: Tensor) -> Any:
        """Call the function. The result is a copy, because the next call overwrites the original."""
        shapes = tuple((x.shape, x.dtype) for x in inputs)
        if shapes not in self._known:
            found: list[Any] = []
            gpu.warm_up(lambda: found.append(self._function(*inputs)))
            self._known[shapes] = self._prepare(inputs)
            return found[0]
        ready = self._known[shapes]
        if ready is None:
            return self._function(*inputs)
        buffers, outputs, replay = ready
        for buffer, x in zip(buffers, inputs, strict=True):
            buffer.copy_(x)
        replay()
        result = outputs[-1]
        return tuple(x.clone() for x in result) if isinstance(result, tuple) else result.clone()

    def _prepare(self, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Any], gpu.Replay] | None:
        buffers, outputs = [x.clone() for x in inputs], list[Any]()
        try:
            return buffers, outputs, gpu.capture(lambda: outputs.append(self._function(*buffers)))
        except RuntimeError as error:
            log.info("An evaluation cannot be captured: %s", str(error).strip().partition("\n")[0])
            return None


def choose_issue(requested: str | None, stacking: str, device: torch.device) -> tuple[str, str]:
    """Choose how to issue updates, with the reason.

    Args:
        requested: "plain" or "graph"; None for the best.
        stacking: how the replicates are stacked.
        device: where they train.

    Raises:
        InvalidSettingError: a graph without a GPU, or of replicates that are not stacked.
    """
    possible = gpu.is_gpu(device) and stacking != "loop"
    if requested == "graph" and not possible:
        what = "a GPU" if not gpu.is_gpu(device) else "replicates that can be stacked"
        raise InvalidSettingError(f"Updates can be captured as a graph only with {what}; leave out '+graph'.")
    if requested is not None:
        return requested, "as requested"
    if possible:
        return "graph", "as launching the operations takes longer than running them"
    if gpu.is_gpu(device):
        return "plain", "as a loop over modules cannot be captured"
    return "plain", "as on a CPU"
