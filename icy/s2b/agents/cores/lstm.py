"""LSTM cores: stacked layers that process all steps between two resets in one call."""

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.checks import whole_number
from icy.core.errors import InvalidSettingError
from icy.core.native import Library

from .core import Device, Inputs, Resets, SequenceCore, State, Traced, beginnings, begun
from .recurrence import CompiledLayer, library_for


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
            return self._read_compiled(library, xs, state, resets)
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

    def _read_compiled(
        self, library: Library, xs: Tensor, state: State, resets: Resets | None
    ) -> tuple[Tensor, Tensor, State]:
        hs, after = [], []
        for layer, compiled, h, c in zip(self.layers, self._compiled, state[::2], state[1::2], strict=True):
            ys, *last = compiled.run(library, cast(nn.LSTM, layer), xs, (h, c), resets)
            hs.append(ys)
            after += last
            xs = ys.relu() if self.relu else ys
        return xs, torch.cat(hs, -1), tuple(after)

    def _read(self, xs: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        hs, after = [], []
        for layer, h, c in zip(self.layers, state[::2], state[1::2], strict=True):
            ys, (h_next, c_next) = layer(xs, (h[None].contiguous(), c[None].contiguous()))
            hs.append(ys)
            after += [h_next[0], c_next[0]]
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
