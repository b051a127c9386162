"""PyTorch's recurrent layers and its dropout, run for a whole stack of models within `torch.vmap`.

`torch.vmap` has no rule for `nn.GRU`, `nn.LSTM`, `nn.RNN` and `nn.LSTMCell`, runs `nn.GRUCell` and `nn.RNNCell` one
model at a time, and refuses dropout. Within `StockLayers`, icy's cells compute the recurrent layers with stacked
weights, and each model draws its dropout masks from its own random generator, as it does when it runs alone. Icy's
cells also replace recurrent layers while a model is traced for a native program.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from icy.core.errors import IncompatibleError
from icy.core.fused import Context
from icy.core.types import AnyFunction

from .cells import Gates, GRUCell, LSTMCell, RNNCell, State
from .layers import as_symbol_weights, linear, rows_times

Sequences = Float[Tensor, "*stack step batch size"]
Mask = Callable[[Sequences], Sequences]
PACKED = (
    "it packs sequences (PackedSequence), and vmap cannot read their lengths; all messages in icy have the same "
    "length, so give the layer the padded tensor"
)


class ReluCell(RNNCell):
    """Elman RNN with a ReLU: h' = relu(W x + b + U h + c)."""

    def step(self, gates: Gates, state: State) -> State:
        return (torch.relu(rows_times(state[0], self.weight_hh.mT, gates)),)


CELLS = {"gru": GRUCell, "lstm": LSTMCell, "rnn_tanh": RNNCell, "rnn_relu": ReluCell}


def has_stock(model: nn.Module, *kinds: type[nn.Module]) -> bool:
    """Return whether a model has recurrent layers or cells of PyTorch, of these kinds, or of any kind."""
    return any(isinstance(module, kinds or (nn.RNNBase, nn.RNNCellBase)) for module in model.modules())


def needs_stock_layers(model: nn.Module) -> bool:
    """Return whether vmap alone runs a model slowly or wrongly, because of cells or some options of embeddings."""
    return has_stock(model, nn.RNNCellBase) or any(
        isinstance(module, nn.Embedding) and (module.padding_idx is not None or module.scale_grad_by_freq)
        for module in model.modules()
    )


class StockLayers(TorchFunctionMode):
    """Runs recurrent layers and dropout for a stack of models, in a `with` block around `torch.vmap`.

    Args:
        random_states: state of the random generator of each model, on the CPU.
    """

    def __init__(self, random_states: Sequence[UInt8[Tensor, " bytes"]]) -> None:
        super().__init__()
        self._states = list(random_states)
        self._generators: list[torch.Generator] = []

    @property
    def random_states(self) -> list[UInt8[Tensor, " bytes"]]:
        """The states of the random generators after all draws."""
        return [g.get_state() for g in self._generators] if self._generators else self._states

    def __torch_function__(
        self, function: AnyFunction, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function of PyTorch, or its replacement; PyTorch calls this method instead of the function."""
        replacement = REPLACEMENTS.get(function)
        if replacement is None:
            return function(*args, **(kwargs or {}))
        return replacement(self, *args, **(kwargs or {}))

    def masks(self, p: float, x: Float[Tensor, "stack ..."]) -> Float[Tensor, "stack ..."]:
        """Draw dropout's factors for `x`; each model uses its own generator.

        Raises:
            IncompatibleError: `x` is not on the CPU.
        """
        if not x.is_cpu:
            raise IncompatibleError("a stack can only draw dropout masks on the CPU; on a GPU leave dropout out (p=0)")
        if not self._generators:
            self._generators = [torch.Generator().set_state(state) for state in self._states]
        drawn = [
            torch.empty_like(one).bernoulli_(1 - p, generator=generator)
            for one, generator in zip(x, self._generators, strict=True)
        ]
        return torch.stack(drawn).div_(1 - p)


class _OfStack(Function):
    """Calls a function with tensors [stack, ...] instead of the tensors of one model, as vmap would.

    The function must return a tensor [stack, ...] or a tuple of them. Autograd records its operations.
    """

    @staticmethod
    def forward(function: AnyFunction, *tensors: Tensor) -> Any:
        raise IncompatibleError("it calls a recurrent layer with tensors that do not depend on the model")

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], function: AnyFunction, *tensors: Tensor) -> Any:
        stacked = [
            x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in zip(tensors, in_dims[1:], strict=True)
        ]
        found = function(*stacked)
        return found, (0,) * len(found) if isinstance(found, tuple) else 0


def run_layers(
    x: Sequences,
    states: Sequence[Float[Tensor, "*stack net batch _"]],
    weights: Sequence[Float[Tensor, "..."]],
    *,
    kind: str,
    biases: bool,
    layers: int,
    directions: int,
    drop: Mask | None = None,
) -> tuple[Float[Tensor, "..."], ...]:
    """Run one of PyTorch's recurrent nets for a stack of models, or for one model.

    Args:
        x: inputs.
        states: initial states: h, and c of an LSTM; a net is one direction of one layer.
        weights: weights of all nets, in PyTorch's order: input, state, their biases if any, and an LSTM's projection if
            any.
        kind: one of CELLS.
        biases: whether the nets have biases.
        layers: number of layers.
        directions: 2 if each layer also reads the sequence backwards.
        drop: function that applies dropout between layers.

    Returns:
        The outputs [*stack, step, batch, size] and the final states, shaped like the initial ones.
    """
    each = len(weights) // (layers * directions)
    finals: list[State] = []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            net = layer * directions + direction
            own = list(weights[net * each : (net + 1) * each])
            projection = own.pop() if each > 2 + 2 * biases else None
            cell = CELLS[kind].of(*own)
            gates = cell.project(x).unbind(-3)
            state: State = tuple(s.unbind(-3)[net] for s in states)
            steps = []
            for gate in reversed(gates) if direction else gates:
                state = cell.step(gate, state)
                if projection is not None:
                    state = linear(state[0], projection), *state[1:]
                steps.append(state[0])
            outputs.append(torch.stack(steps[::-1] if direction else steps, -3))
            finals.append(state)
        x = torch.cat(outputs, -1) if directions > 1 else outputs[0]
        if drop is not None and layer < layers - 1:
            x = drop(x)
    return x, *(torch.stack(of_all, -3) for of_all in zip(*finals, strict=True))


def _recurrent(
    kind: str, run: AnyFunction, masks: Callable[[float, Sequences], Sequences] | None, x: Tensor,
    states: Tensor | Sequence[Tensor], weights: object, biases: bool, layers: int, dropout: float, training: bool,
    bidirectional: bool, batch_first: bool = False,
) -> Any:  # fmt: skip
    """Replace `torch.gru` and similar functions.

    Args:
        kind: one of CELLS.
        run: function that calls its first argument with inputs, states and weights.
        masks: function that draws dropout masks; None if they cannot be drawn.
        x, states, weights, biases, layers, dropout, training, bidirectional, batch_first: as in PyTorch.
    """
    if not isinstance(weights, (list, tuple)):
        raise IncompatibleError(PACKED)
    drop: Mask | None = None
    if training and dropout and layers > 1:
        if masks is None:
            raise IncompatibleError("it draws its own random numbers")
        drop = torch.zeros_like if dropout == 1 else lambda y: y * masks(dropout, y)
    options: dict[str, Any] = {"kind": kind, "biases": biases, "layers": layers, "directions": 1 + bidirectional}
    y, *finals = run(
        partial(run_layers, **options, drop=drop), x.transpose(0, 1) if batch_first else x, _listed(states), weights
    )
    return (y.transpose(0, 1) if batch_first else y, *finals)


def _cell(kind: str, run: AnyFunction, x: Tensor, states: Tensor | Sequence[Tensor], *weights: Tensor | None) -> Any:
    """Replace `torch.gru_cell` and similar functions; `run` as in `_recurrent`, other arguments as in PyTorch."""
    found = run(partial(_step, kind), x, _listed(states), [w for w in weights if w is not None])
    return found if len(found) > 1 else found[0]


def _step(kind: str, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> State:
    cell = CELLS[kind].of(*weights)
    return cell.step(cell.project(x), tuple(states))


def _listed(states: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    return [states] if isinstance(states, Tensor) else states


def _of_stack(function: AnyFunction, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> Any:
    """Call a function with the tensors of a stack, within vmap."""

    def call(x: Tensor, *tensors: Tensor) -> Any:
        return function(x, tensors[: len(states)], tensors[len(states) :])

    return _OfStack.apply(call, x, *states, *weights)  # type: ignore[no-untyped-call]


def _dropout(mode: StockLayers, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Replace `torch.nn.functional.dropout`."""
    if not training or not 0 < p < 1:
        return F.dropout(x, p, training, inplace)
    mask: Tensor = _OfStack.apply(partial(mode.masks, p), x)  # type: ignore[no-untyped-call]
    return x.mul_(mask) if inplace else x * mask


def _attention(
    mode: StockLayers, q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, **others: Any,
) -> Tensor:  # fmt: skip
    """Replace `torch.nn.functional.scaled_dot_product_attention` with dropout of weights."""
    if not 0 < dropout_p < 1 or any(others.values()):
        return F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, **others)
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if attn_mask is not None:
        allowed = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -torch.inf) if allowed else scores + attn_mask
    return _dropout(mode, scores.softmax(-1), dropout_p) @ v


def _stacked_embedding(
    mode: StockLayers, x: Tensor, weight: Tensor, padding_idx: int | None = None, *others: Any, **named: Any
) -> Tensor:
    """Replace `torch.nn.functional.embedding`: vmap ignores that the row of `padding_idx` has no gradient."""
    if named.get("scale_grad_by_freq") or any(others[2:3]):
        raise IncompatibleError(
            "it has an embedding with scale_grad_by_freq, which vmap does not support; leave it out"
        )
    if padding_idx is not None:
        place = padding_idx % len(weight)
        weight = torch.cat([weight[:place], weight[place : place + 1].detach(), weight[place + 1 :]])
    return F.embedding(x, weight, None, *others, **named)


def _embedding(
    x: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    *others: bool, **named: bool,
) -> Tensor:  # fmt: skip
    """Replace `torch.nn.functional.embedding` by a product with one-hot vectors."""
    if padding_idx is not None or max_norm is not None or any(others) or any(named.values()):
        raise IncompatibleError("it has an embedding with options")
    if x.dim() == 1:  # one token per example
        return rows_times(as_symbol_weights(x.unsqueeze(-1), len(weight), weight.dtype).squeeze(-2), weight)
    return rows_times(as_symbol_weights(x, len(weight), weight.dtype), weight)


def _no_dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if training and p:
        raise IncompatibleError("it draws its own random numbers")
    return x


def _traced(function: AnyFunction, x: Tensor, states: Sequence[Tensor], weights: Sequence[Tensor]) -> Any:
    """Call a function while a model is traced; zeros that the model created are traced too."""

    def known(value: Tensor) -> Tensor:
        is_plain_zero = type(value) is Tensor and not value.any()
        return weights[0].new_zeros(value.shape) if is_plain_zero else value

    return function(known(x), [known(state) for state in states], weights)


# Replacements of PyTorch functions within StockLayers; the first argument is the StockLayers.
REPLACEMENTS: dict[object, AnyFunction] = {
    # On a GPU, recurrent layers compare the addresses of their weights. Equal addresses leave the weights unchanged.
    Tensor.data_ptr: lambda mode, x: 0,
    F.embedding: _stacked_embedding,
    F.dropout: _dropout,
    F.scaled_dot_product_attention: _attention,
    **{
        getattr(torch, kind): lambda mode, *args, kind=kind: _recurrent(kind, _of_stack, mode.masks, *args)
        for kind in CELLS
    },
    **{getattr(torch, f"{kind}_cell"): lambda mode, *args, kind=kind: _cell(kind, _of_stack, *args) for kind in CELLS},
}
# The same replacements in a trace (icy.models.native.lower), by functions that native programs know.
TRACED: dict[object, AnyFunction] = {
    F.dropout: _no_dropout,
    F.embedding: _embedding,
    **{getattr(torch, kind): partial(_recurrent, kind, _traced, None) for kind in CELLS},
    **{getattr(torch, f"{kind}_cell"): partial(_cell, kind, _traced) for kind in CELLS},
}
