"""Issue the updates of a stack: operation by operation, or as a captured CUDA graph.

The models are small: on a GPU, most of an update's time passes while Python launches a few hundred kernels of some
microseconds each. A captured update is launched as a whole. It fetches its batch from a block of batches on the device,
so the host only has to replay the graph.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from icy.core.errors import InvalidSettingError

log = logging.getLogger(__name__)
Step = Callable[..., Any]  # an update or evaluation of tensors on their device
Replay = Callable[[], None]

WARM_UP = 3  # updates before the capture, in which libraries allocate their workspaces
BLOCK = 64  # batches in the block of a captured update


def capture_cuda(operations: Callable[[], None]) -> Replay:
    """Capture the operations of a function on the GPU, without running them; return the replay.

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


def warm_up_cuda(operations: Callable[[], None]) -> None:
    """Run a function on a side stream, as required before its capture."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        operations()
    torch.cuda.current_stream().wait_stream(side)


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

    capture, warm_up = staticmethod(capture_cuda), staticmethod(warm_up_cuda)

    def __init__(self, step: Step, name: str) -> None:
        self._step, self._name = step, name
        self._made = 0
        self._replay: Replay | None = None
        self.failed = False

    def __call__(self, *blocks: Tensor) -> None:
        """Run one update per batch; batches are the first axis of every block."""
        warming = max(0, WARM_UP - self._made)
        for batch in zip(*(block[:warming] for block in blocks), strict=True):
            self.warm_up(partial(self._step, *batch))
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
            self._replay = self.capture(next_update)
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

    capture, warm_up = staticmethod(capture_cuda), staticmethod(warm_up_cuda)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._known: dict[Any, tuple[list[Tensor], list[Any], Replay] | None] = {}

    def __call__(self, *inputs: Tensor) -> Any:
        """Call the function. The result is a copy, because the next call overwrites the original."""
        shapes = tuple((x.shape, x.dtype) for x in inputs)
        if shapes not in self._known:
            found: list[Any] = []
            self.warm_up(lambda: found.append(self._function(*inputs)))
            self._known[shapes] = self._prepare(inputs)
            return found[0]
        ready = self._known[shapes]
        if ready is None:
            return self._function(*inputs)
        buffers, outputs, replay = ready
        for buffer, x in zip(buffers, inputs, strict=True):
            buffer.copy_(x)
        replay()
        return _copied(outputs[-1])

    def _prepare(self, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Any], Replay] | None:
        buffers, outputs = [x.clone() for x in inputs], list[Any]()
        try:
            return buffers, outputs, self.capture(lambda: outputs.append(self._function(*buffers)))
        except RuntimeError as error:
            log.info("An evaluation cannot be captured: %s", str(error).strip().partition("\n")[0])
            return None


def _copied(outputs: Any) -> Any:
    return tuple(x.clone() for x in outputs) if isinstance(outputs, tuple) else outputs.clone()


def choose_issue(requested: str | None, stacking: str, device: torch.device) -> tuple[str, str]:
    """Choose how to issue updates, with the reason.

    Args:
        requested: "plain" or "graph"; None for the best.
        stacking: how the replicates are stacked.
        device: where they train.

    Raises:
        InvalidSettingError: a graph without a GPU, or of replicates that are not stacked.
    """
    possible = device.type == "cuda" and stacking != "loop"
    if requested == "graph" and not possible:
        what = "a GPU" if device.type != "cuda" else "replicates that can be stacked"
        raise InvalidSettingError(f"Updates can be captured as a graph only with {what}; leave out '+graph'.")
    if requested is not None:
        return requested, "as requested"
    if possible:
        return "graph", "as launching the operations takes longer than running them"
    if device.type == "cuda":
        return "plain", "as a loop over modules cannot be captured"
    return "plain", "as on a CPU"
