"""LSTM cores: stacked layers that process all steps between two resets in one call."""

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core import native
from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.core.fused import Context, Fused, usable
from icy.core.native import address

from .core import Device, Inputs, Resets, SequenceCore, State, Traced, beginnings, begun

# -- LSTM layers in compiled code, with resets between steps -----------------------------------------------------------


PACKAGE = "icy.models.native"
BLOCK = 32  # the number of units must be a multiple of it, as in products.h
PANELS = 6  # numbers that a step keeps for each unit: four gates, tanh of the cell, the cell before
POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64

Rows = Float[Tensor, "batch hidden"]


class _Recurrence(ctypes.Structure):
    """`struct Recurrence` of lstm.cpp."""

    _fields_ = [
        *((name, WHOLE) for name in ("steps", "rows", "hidden")),
        *((name, POINTER) for name in ("resets", "kept")),
        ("keeps", WHOLE),
    ]


@functools.cache
def _functions(library: native.Library) -> tuple[Callable[..., None], ...]:
    """Return the functions that pack weights, run forward, and run backward."""
    return (
        library.function("icy_lstm_pack", None, POINTER, WHOLE, POINTER, POINTER),
        library.function("icy_lstm", None, *[POINTER] * 8),
        library.function("icy_lstm_back", None, *[POINTER] * 7),
    )


def library_for(layers: nn.ModuleList, xs: Float[Tensor, "step batch width"]) -> native.Library | None:
    """Return the library if it can run the layers on these inputs: float32 on the CPU, of suitable widths.

    Within autocast, `torch.func` and compilation, PyTorch's layers run.
    """
    weights = (cast(nn.LSTM, layer).all_weights[0][1] for layer in layers)
    fits = xs.device.type == "cpu" and xs.dtype == torch.float32 and usable(_Steps)
    if not fits or any(weight.dtype != torch.float32 or weight.shape[1] % BLOCK for weight in weights):
        return None
    return native.load(PACKAGE)


class CompiledLayer:
    """Runs an LSTM layer in compiled code, and holds its weights in the order in which this code reads them."""

    def __init__(self) -> None:
        self._source: Tensor | None = None  # a copy of the weights that were packed
        self._packed: tuple[Tensor, Tensor] | None = None  # weights of the state for the forward and backward pass

    def run(
        self,
        library: native.Library,
        layer: nn.LSTM,
        xs: Float[Tensor, "step batch width"],
        state: tuple[Rows, Rows],
        resets: Bool[Tensor, "step batch"] | None,
    ) -> tuple[Float[Tensor, "step batch hidden"], Rows, Rows]:
        """Run the layer on all steps, like `layer(xs, state)`, but with resets.

        Args:
            library: the compiled code.
            layer: a layer of one direction.
            xs: inputs.
            state: h and c before the first step.
            resets: mask of steps before which h and c are set to zero.

        Returns:
            The outputs, and h and c after the last step.
        """
        of_inputs, weight, bias, other_bias = layer.all_weights[0]
        gates = F.linear(xs, of_inputs, bias + other_bias)
        packed = self._weights(library, weight)
        if torch.is_grad_enabled():
            found: tuple[Tensor, Tensor, Tensor] = _Steps.apply(gates, weight, *state, resets, packed, library)  # type: ignore[no-untyped-call]
            return found
        return _forward(library, gates, packed[0], state, resets, None)

    def _weights(self, library: native.Library, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the packed weights of the state; they are packed again when the weights have changed.

        Values are compared, because some writes, as of a fused Adam, do not change a tensor's version.
        """
        if self._packed is None or self._source is None or not torch.equal(self._source, weight):
            count = weight.numel()
            self._source = weight.detach().clone(memory_format=torch.contiguous_format)
            self._packed = weight.new_empty(count), weight.new_empty(count)
            places = [part.data_ptr() for part in self._packed]
            _functions(library)[0](address(self._source, "float32", count, "weights"), weight.shape[1], *places)
        return self._packed


def _forward(
    library: native.Library,
    gates: Tensor,
    packed: Tensor,
    state: tuple[Tensor, Tensor],
    resets: Tensor | None,
    keep: tuple[Tensor, Tensor] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run all steps; see `CompiledLayer.run`. `keep` gets values for the backward pass, and h before each step."""
    (rows, hidden), steps = state[0].shape, len(gates)
    size, (h, c) = rows * hidden, map(_copied, state)
    ys, scratch = gates.new_empty(steps, rows, hidden), gates.new_empty(2 * size)
    kept, earlier = (gates.new_empty(PANELS * size), None) if keep is None else keep
    # Names keep tensors alive during the call.
    gates, mask = gates.contiguous(), None if resets is None else resets.contiguous()
    _functions(library)[1](
        ctypes.byref(_described(steps, rows, hidden, mask, kept, keep is not None)),
        address(gates, "float32", 4 * steps * size, "gates"),
        packed.data_ptr(),
        address(h, "float32", size, "h"),
        address(c, "float32", size, "c"),
        ys.data_ptr(),
        None if earlier is None else earlier.data_ptr(),
        scratch.data_ptr(),
    )
    return ys, h, c


class _Steps(Fused):
    """All steps of a layer, from the gates of its inputs."""

    @staticmethod
    def forward(
        ctx: Context,
        gates: Tensor,
        weight: Tensor,
        h: Tensor,
        c: Tensor,
        resets: Tensor | None,
        packed: tuple[Tensor, Tensor],
        library: native.Library,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the outputs, and h and c after the last step."""
        steps, size = len(gates), h.numel()
        keep = gates.new_empty(steps * PANELS * size), gates.new_empty(steps, *h.shape)
        ctx.save_for_backward(*keep, packed[1], resets)
        ctx.library = library
        return _forward(library, gates, packed[0], (h, c), resets, keep)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Context, d_ys: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the gates, of the weights of the state, and of h and c before the first step."""
        kept, earlier, packed, resets = ctx.saved_tensors
        steps, rows, hidden = earlier.shape
        size, h, c = rows * hidden, _copied(d_h), _copied(d_c)
        d_gates, scratch = earlier.new_empty(steps, rows, 4 * hidden), earlier.new_empty(PANELS * size)
        d_ys, mask = d_ys.contiguous(), None if resets is None else resets.contiguous()
        _functions(ctx.library)[2](
            ctypes.byref(_described(steps, rows, hidden, mask, kept, True)),
            address(d_ys, "float32", steps * size, "gradients"),
            packed.data_ptr(),
            address(h, "float32", size, "h"),
            address(c, "float32", size, "c"),
            d_gates.data_ptr(),
            scratch.data_ptr(),
        )
        d_weight = d_gates.flatten(0, 1).mT @ earlier.flatten(0, 1) if ctx.needs_input_grad[1] else None
        return d_gates, d_weight, h, c, None, None, None


def _copied(state: Tensor) -> Tensor:
    return state.detach().clone(memory_format=torch.contiguous_format)


def _described(steps: int, rows: int, hidden: int, resets: Tensor | None, kept: Tensor, keeps: bool) -> Any:
    mask = None if resets is None else address(resets, "bool", steps * rows, "resets")
    return _Recurrence(steps, rows, hidden, mask, kept.data_ptr(), keeps)


class LSTMStack(nn.Module):
    """Stacked LSTM layers. The state has h and c of the first layer, then of the second, and so on.

    Args:
        width: width of an input.
        sizes: size of each layer.
        relu: whether a ReLU is applied to the output of each layer. It is not applied to the states.
    """

    def __init__(self, width: int, sizes: Sequence[int], relu: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.LSTM(a, b) for a, b in zip([width, *sizes], sizes, strict=False))
        self.sizes, self.relu = tuple(sizes), relu
        self._compiled = [CompiledLayer() for _ in sizes]

    def start(self, like: Float[Tensor, "batch _"]) -> State:
        """Return the state at the beginning of episodes; `like` is a batch of inputs, [B, D]."""
        return tuple(like.new_zeros(len(like), size) for size in self.sizes for _ in range(2))

    def forward(
        self, xs: Inputs, state: State, resets: Resets | None = None
    ) -> tuple[Float[Tensor, "step batch output"], Float[Tensor, "step batch hidden"], State]:
        """Read inputs [T, B, D]; return the outputs, the concatenated h of all layers, and the final state."""
        library = library_for(self.layers, xs)
        if library is not None:
            return self._read(xs, state, resets, library)
        begins = [t for t, some in enumerate(beginnings(resets, len(xs))) if some]
        cuts = sorted({0, *begins})
        ys, hs = [], []
        for first, end in zip(cuts, [*cuts[1:], len(xs)], strict=True):
            if resets is not None and first in begins:
                state = begun(state, self.start(xs[0]), resets[first])
            y, h, state = self._read(xs[first:end], state)
            ys.append(y)
            hs.append(h)
        return torch.cat(ys), torch.cat(hs), state

    def _read(
        self, xs: Tensor, state: State, resets: Resets | None = None, library: native.Library | None = None
    ) -> tuple[Tensor, Tensor, State]:
        """Read inputs, with resets in compiled code; PyTorch's layers have none."""
        hs, after = [], []
        for layer, compiled, h, c in zip(self.layers, self._compiled, state[::2], state[1::2], strict=True):
            if library is not None:
                ys, *last = compiled.run(library, cast(nn.LSTM, layer), xs, (h, c), resets)
            else:
                ys, (h_next, c_next) = layer(xs, (h[None].contiguous(), c[None].contiguous()))
                last = [h_next[0], c_next[0]]
            hs.append(ys)
            after += last
            xs = ys.relu() if self.relu else ys
        return xs, torch.cat(hs, -1), tuple(after)


class LSTM(SequenceCore):
    """LSTM of several layers; by default two, of 256 and 128, with ReLU (MetaRG22, table of R2D2).

    As in the authors' program, a ReLU follows every layer, including the last. It is not applied to the states.

    Args:
        width: width of an input.
        sizes: size of each layer.
        relu: whether a ReLU is applied to the output of each layer.
    """

    def __init__(self, width: int, sizes: Sequence[int] = (256, 128), relu: bool = True) -> None:
        sizes = [whole_number("size of a layer", size) for size in sizes]
        if not sizes:
            raise InvalidSettingError("An LSTM has at least one layer; give `sizes` as in (256, 128).")
        super().__init__(width, sizes[-1], sum(sizes))
        self.stack = LSTMStack(self.width, sizes, relu)

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the initial state, zeros."""
        return self.stack.start(self.zeros(episodes, 1, device=device))

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the hidden states of all layers."""
        return torch.cat(state[::2], -1)

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs, with one call of PyTorch's LSTM between two resets; see Core."""
        ys, latents, state = self.stack(xs, state, resets)
        return ys, latents, state


class LSTM512(LSTM):
    """LSTM of one layer of 512, as in the authors' later program."""

    def __init__(self, width: int, sizes: Sequence[int] = (512,), relu: bool = False) -> None:
        super().__init__(width, sizes, relu)
