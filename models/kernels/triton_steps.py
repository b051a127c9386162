"""The steps of cell_steps on a GPU, each one launch of a Triton kernel instead of several launches by PyTorch.

Tensors are [*stack, rows, ...] as in cell_steps, which calls these functions. Each returns None if PyTorch has to
compute the step: on a CPU, in double precision, within vmap, for gradients that are differentiated again, without
Triton, if Triton cannot compile a kernel (the log reports this once), and with the environment variable ICY_TRITON=off.
"""

import importlib
import logging
import os
from collections.abc import Callable
from functools import cache, wraps
from importlib.util import find_spec
from typing import Any, ParamSpec, Self, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch._C import _functorch

from icy.core.gpu import on_device_of

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")

Units = Float[Tensor, "*stack batch hidden"]
Gates = Float[Tensor, "*stack #batch gates"]  # per row, or one for all rows
AllGates = Float[Tensor, "*stack batch gates"]
Stops = Float[Tensor, "*stack batch 1"]
TwoGates = Float[Tensor, "*stack batch two_gates"]
Weight = Float[Tensor, "*stack 1 hidden"]
Bias = Float[Tensor, "*stack 1 1"]

SWITCH = "ICY_TRITON"
ELEMENTS = 1024  # elements of one tensor in a program: 8 for each thread of 4 warps
# Errors that PyTorch's operations would raise too. The second is new in PyTorch 2.8.
DEVICE_ERRORS = (torch.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.OutOfMemoryError))
failed: list[str] = []  # kernels that could not be compiled in this process; after the first failure no kernel is tried


class _CannotCompileError(Exception):
    """Triton cannot compile or load a kernel."""


@cache
def _kernels() -> Any:
    """Return the module of kernels; None without Triton."""
    if os.environ.get(SWITCH) == "off":
        return None
    try:
        return importlib.import_module(".triton_kernels", __package__)
    except ImportError as error:
        _say(error)
        return None


def in_use() -> str:
    """Return the library that computes the steps of cells on a GPU, and the reason if it is not Triton."""
    if os.environ.get(SWITCH) == "off":
        return f"PyTorch, Triton switched off by {SWITCH}=off"
    return "Triton" if find_spec("triton") else "PyTorch, Triton is not installed"


def _say(why: Exception) -> None:
    first = str(why).strip().partition("\n")[0]
    log.warning("PyTorch runs the steps of cells, in more launches, because Triton cannot be used (%s).", first)


def suits(*tensors: Float[Tensor, "..."]) -> bool:
    """Return whether kernels can run on these tensors."""
    if torch.is_grad_enabled() or not all(x.is_cuda and x.dtype == torch.float32 for x in tensors):
        return False
    return not failed and _functorch.maybe_current_level() is None and _kernels() is not None


def launch(kernel: str, programs: tuple[int, int], *arguments: Any, **constants: object) -> None:
    """Run a kernel of triton_kernels on the device of its first argument.

    Raises:
        _CannotCompileError: the kernel cannot run.
    """
    with on_device_of(arguments[0]):
        try:
            getattr(_kernels(), kernel)[programs](*arguments, **constants)
        except DEVICE_ERRORS:
            raise
        except Exception as error:  # one of Triton's many stages failed: compilers, assembler, driver
            raise _CannotCompileError(f"{kernel}: {error}") from error


def _where_possible(step: Callable[P, T]) -> Callable[P, T | None]:
    """Return None if the kernels do not suit the tensors among the arguments, or fail."""

    @wraps(step)
    def call(*args: P.args, **kwargs: P.kwargs) -> T | None:
        tensors = [x for x in args if isinstance(x, Tensor)]
        if not suits(*tensors) or any(x.shape[:-2] != tensors[0].shape[:-2] or not x.numel() for x in tensors):
            return None
        try:
            return step(*args, **kwargs)
        except _CannotCompileError as error:
            failed.append(step.__name__)
            _say(error)
            return None

    return call


class _Operands:
    """A collection of a kernel's arguments: tensors, sizes, strides, and constants.

    Args:
        like: a tensor [*stack, rows, E], for the sizes.
    """

    def __init__(self, like: Tensor) -> None:
        self._like, self._size, self._rows = like, like.shape[-1], like.shape[-2]
        width = 1 << (self._size - 1).bit_length()
        at_once = max(1, ELEMENTS // width)
        self._programs = like.numel() // (self._size * self._rows), -(-self._rows // at_once)
        self._block = {"ROWS": at_once, "WIDTH": width}
        self._pointers: list[Tensor] = []
        self._strides: list[int] = []

    def read(self, *tensors: Tensor) -> Self:
        """Add inputs, with their strides of the stack and of rows; the stride of a single row is 0."""
        for x in tensors:
            laid = x.unsqueeze(0) if x.dim() == 2 else x.flatten(0, -3)
            if laid.stride(-1) != 1:
                laid = laid.contiguous()
            self._pointers.append(laid)
            self._strides += [laid.stride(0), laid.stride(1) if laid.shape[1] > 1 else 0]
        return self

    def read_whole(self, *tensors: Tensor) -> Self:
        """Add inputs without gaps, such as outputs of a kernel."""
        self._pointers += [x.contiguous() for x in tensors]
        return self

    def write(self, *widths: int) -> list[Tensor]:
        """Add outputs [*stack, rows, width] and return them."""
        return self._write(self._rows, widths)

    def write_sums(self, *widths: int) -> list[Tensor]:
        """Add outputs [*stack, program, width] and return them."""
        return self._write(self._programs[1], widths)

    def _write(self, rows: int, widths: tuple[int, ...]) -> list[Tensor]:
        made = [self._like.new_empty(*self._like.shape[:-2], rows, width) for width in widths]
        self._pointers += made
        return made

    def launch(self, kernel: str, **constants: bool) -> None:
        """Run the kernel on the collected arguments."""
        sizes = (self._rows, self._size)
        launch(kernel, self._programs, *self._pointers, *sizes, *self._strides, **constants, **self._block)


def _activation(kind: str) -> dict[str, bool]:
    return {"TANH": kind == "tanh", "RELU": kind == "relu"}


@_where_possible
def gru_forward(from_input: Gates, from_state: AllGates, h: Units) -> tuple[Units, TwoGates, Units]:
    """Return the outputs of GRUStep.forward: h', [r | z] and n."""
    size = h.shape[-1]
    operands = _Operands(h).read(from_input, from_state, h)
    new, rz, n = operands.write(size, 2 * size, size)
    operands.launch("gru_forward")
    return new, rz, n


@_where_possible
def gru_backward(
    grad: Units, from_state: AllGates, h: Units, rz: TwoGates, n: Units, input_rows: int
) -> tuple[Gates, AllGates, Units]:
    """Return the gradients of from_input (with `rows` rows), from_state and h."""
    size, shared = h.shape[-1], input_rows != h.shape[-2]
    operands = _Operands(h).read(grad, from_state, h).read_whole(rz, n)
    (to_input,) = (operands.write_sums if shared else operands.write)(3 * size)
    to_state, to_h = operands.write(3 * size, size)
    operands.launch("gru_backward", SHARED=shared)
    return to_input.sum(-2, keepdim=True) if shared else to_input, to_state, to_h


@_where_possible
def lstm_forward(gates: AllGates, c: Units) -> tuple[Units, Units, AllGates, Units]:
    """Return the outputs of LSTMStep.forward: h', c', the activated gates and tanh(c')."""
    size = c.shape[-1]
    operands = _Operands(c).read(gates, c)
    new_h, new_c, activated, tanh_c = operands.write(size, size, 4 * size, size)
    operands.launch("lstm_forward")
    return new_h, new_c, activated, tanh_c


@_where_possible
def lstm_backward(
    grad_h: Units | None, grad_c: Units | None, c: Units, activated: AllGates, tanh_c: Units
) -> tuple[AllGates, Units]:
    """Return the gradients of the gates and of c; one of h' and c' may have no gradient."""
    size = c.shape[-1]
    of_h, of_c = (c if grad is None else grad for grad in (grad_h, grad_c))  # without a gradient, nothing is read
    operands = _Operands(c).read(of_h, of_c, c).read_whole(activated, tanh_c)
    to_gates, to_c = operands.write(4 * size, size)
    operands.launch("lstm_backward", HAS_H=grad_h is not None, HAS_C=grad_c is not None)
    return to_gates, to_c


@_where_possible
def highway_forward(gates: AllGates, s: Units, kind: str) -> tuple[Units, Units, Units]:
    """Return the outputs of HighwayStep.forward: the new node, the gate and the candidate."""
    size = s.shape[-1]
    operands = _Operands(s).read(gates, s)
    new, gate, candidate = operands.write(size, size, size)
    operands.launch("highway_forward", **_activation(kind))
    return new, gate, candidate


@_where_possible
def highway_backward(grad: Units, s: Units, gate: Units, candidate: Units, kind: str) -> tuple[AllGates, Units]:
    """Return the gradients of the gates and of s."""
    size = s.shape[-1]
    operands = _Operands(s).read(grad, s).read_whole(gate, candidate)
    to_gates, to_s = operands.write(2 * size, size)
    operands.launch("highway_backward", **_activation(kind))
    return to_gates, to_s


@_where_possible
def mix_backward(grad: Units, a: Units, b: Units, s: Stops) -> tuple[Units, Units, Stops]:
    """Return the gradients of a, b and s."""
    size = a.shape[-1]
    operands = _Operands(a).read(grad, a, b, s)
    to_a, to_b, to_s = operands.write(size, size, 1)
    operands.launch("mix_backward")
    return to_a, to_b, to_s


@_where_possible
def stop_forward(h: Units, weight: Weight, bias: Bias) -> Stops:
    """Return the output of StopGateStep.forward: s."""
    operands = _Operands(h).read(h, weight, bias)
    (s,) = operands.write(1)
    operands.launch("stop_forward")
    return s


@_where_possible
def stop_backward(grad: Stops, s: Stops, h: Units, weight: Weight) -> tuple[Units, Weight, Bias]:
    """Return the gradients of h, of the weight and of the bias."""
    size = h.shape[-1]
    operands = _Operands(h).read(grad, h, weight).read_whole(s)
    (to_h,), (to_both,) = operands.write(size), operands.write_sums(size + 1)
    operands.launch("stop_backward")
    both = to_both.sum(-2, keepdim=True)
    return to_h, both[..., :size], both[..., size:]
