"""Element-wise steps of recurrent cells, each one autograd node with its own backward pass.

A recurrent update is some hundred small element-wise operations around a few matrix products. The overhead of these
operations on a CPU, and their launches on a GPU, cost as much as the products. As single nodes the steps need about a
third as many operations; on a GPU with Triton, one or two (triton_steps). All work on the last axis (hidden) and
broadcast over the others. Each also has a plain form, for autocast and PyTorch's transforms (`icy.core.fused`).

The values that a step keeps for its backward pass are outputs of the step, and have gradients of their own for second
derivatives. So a step keeps nothing extra for them.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from icy.core.fused import Context, Fused, Gradients, apply, differentiated, of_one_type, traceable

from . import triton_steps
from .triton_steps import AllGates, Bias, Gates, Stops, Units, Weight

Grad = Tensor | None  # gradient of an output; None if the output has none


def _tanh(x: Tensor) -> Tensor:
    """Return tanh, without a gradient. On a CPU, use the sigmoid: a third of the time, errors up to 1.2e-7."""
    if not x.is_cpu or x.dtype != torch.float32:
        return torch.tanh(x)
    return (x * 2).sigmoid_().mul_(2).sub_(1)


def plain_tanh(x: Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
    """Return tanh, with a gradient."""
    return (x * 2).sigmoid() * 2 - 1 if x.is_cpu and x.dtype == torch.float32 else torch.tanh(x)


# Each returns a new tensor, because an output of a Function must not share memory with its input.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"identity": torch.clone, "tanh": _tanh, "relu": torch.relu}
PLAIN = {**ACTIVATIONS, "tanh": plain_tanh}


def _slope(kind: str, y: Tensor) -> Tensor:
    """Return the derivative of an activation as a function of its value y."""
    if kind == "tanh":
        return 1 - y * y
    return (y > 0).to(y.dtype) if kind == "relu" else torch.ones_like(y)


def _total(*parts: Grad) -> Tensor:
    """Return the sum of the gradients that are not None; there is at least one."""
    there = [part for part in parts if part is not None]
    return sum(there[1:], there[0])


def _reduced(gradient: Tensor, like: tuple[int, ...]) -> Tensor:
    """Sum a gradient over the axes along which the input was broadcast."""
    return gradient if gradient.shape == like else gradient.sum_to_size(like)


class Tanh(Fused):
    """tanh(x)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return _tanh(x)

    @staticmethod
    def plain(x: Tensor) -> Tensor:
        return plain_tanh(x)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        (y,) = ctx.saved_tensors
        return torch.addcmul(grad, grad * y, y, value=-1)


class Mix(Fused):
    """(1 - s) a + s b, with one s per row: `a`, `b` [..., rows, hidden], `s` [..., rows, 1]."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor, s: Tensor) -> Tensor:
        return torch.lerp(a, b, s)

    @staticmethod
    def plain(a: Tensor, b: Tensor, s: Tensor) -> Tensor:
        return torch.lerp(a, b, s)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        a, b, s = ctx.saved_tensors
        if (fused := triton_steps.mix_backward(grad, a, b, s)) is not None:
            return fused
        to_b = grad * s
        return grad - to_b, to_b, _reduced((b - a).mul_(grad), s.shape)


class GRUStep(Fused):
    """The step of a GRU. `from_input` [..., rows or 1, 3E] is W x + b, `from_state` [..., rows, 3E] is U h + c.

    r, z = sigmoid(sum of their two parts); n = tanh(n_x + r n_h); h' = (1 - z) n + z h.
    """

    @staticmethod
    def forward(from_input: Tensor, from_state: Tensor, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if (fused := triton_steps.gru_forward(from_input, from_state, h)) is not None:
            return fused
        size = h.shape[-1]
        rz = (from_input[..., : 2 * size] + from_state[..., : 2 * size]).sigmoid_()
        r, z = rz[..., :size], rz[..., size:]
        n = _tanh(torch.addcmul(from_input[..., 2 * size :], r, from_state[..., 2 * size :]))
        return torch.lerp(n, h, z), rz, n

    @staticmethod
    def plain(from_input: Tensor, from_state: Tensor, h: Tensor) -> tuple[Tensor]:
        size = h.shape[-1]
        r, z = torch.sigmoid(from_input[..., : 2 * size] + from_state[..., : 2 * size]).chunk(2, -1)
        n = plain_tanh(torch.addcmul(from_input[..., 2 * size :], r, from_state[..., 2 * size :]))
        return (torch.lerp(n, h, z),)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        from_input, from_state, h = inputs
        _, rz, n = output
        ctx.set_materialize_grads(False)
        ctx.input_shape = from_input.shape
        ctx.save_for_backward(from_state, h, rz, n)

    @staticmethod
    def backward(ctx: Context, grad: Grad, of_rz: Grad, of_n: Grad) -> Gradients:
        from_state, h, rz, n = ctx.saved_tensors
        if grad is None or of_rz is not None or of_n is not None or differentiated():
            grad = torch.zeros_like(h) if grad is None else grad
            return _gru_gradients(grad, of_rz, of_n, from_state, h, rz, n, ctx.input_shape)
        if (fused := triton_steps.gru_backward(grad, from_state, h, rz, n, ctx.input_shape[-2])) is not None:
            return fused
        size = h.shape[-1]
        r, z = rz[..., :size], rz[..., size:]
        to_state = torch.empty_like(from_state)
        to_r, to_z, to_n = to_state[..., :size], to_state[..., size : 2 * size], to_state[..., 2 * size :]
        to_h = grad * z
        before_tanh = grad - to_h
        before_tanh.addcmul_(before_tanh * n, n, value=-1)
        torch.mul(before_tanh, r, out=to_n)
        torch.mul(before_tanh, from_state[..., 2 * size :], out=to_r)
        torch.sub(h, n, out=to_z).mul_(grad)
        to_state[..., : 2 * size].mul_(torch.addcmul(rz, rz, rz, value=-1))
        return _to_input(to_state[..., : 2 * size], before_tanh, ctx.input_shape), to_state, to_h


def _to_input(to_rz: Tensor, to_n: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the gradient of a GRU's `from_input`, which may have a single row."""
    return torch.cat([_reduced(part, (*shape[:-1], part.shape[-1])) for part in (to_rz, to_n)], -1)


def _gru_gradients(
    grad: Tensor, of_rz: Grad, of_n: Grad, from_state: Tensor, h: Tensor, rz: Tensor, n: Tensor, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of GRUStep, in operations that PyTorch can differentiate, for gradients of any outputs."""
    size = h.shape[-1]
    r, z = rz.chunk(2, -1)
    before_tanh = _total(grad - grad * z, of_n) * (1 - n * n)
    to_rz = _total(torch.cat([before_tanh * from_state[..., 2 * size :], grad * (h - n)], -1), of_rz) * (rz - rz * rz)
    return _to_input(to_rz, before_tanh, shape), torch.cat([to_rz, before_tanh * r], -1), grad * z


class LSTMStep(Fused):
    """The step of an LSTM, to the new (h, c); `gates` [..., rows, 4E] holds i, f, g and o, in this order."""

    @staticmethod
    def forward(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if (fused := triton_steps.lstm_forward(gates, c)) is not None:
            return fused
        size = c.shape[-1]
        activated = torch.sigmoid(gates)
        activated[..., 2 * size : 3 * size] = _tanh(gates[..., 2 * size : 3 * size])
        i, f, g, o = activated.split(size, -1)
        new_c = torch.addcmul(f * c, i, g)
        tanh_c = _tanh(new_c)
        return o * tanh_c, new_c, activated, tanh_c

    @staticmethod
    def plain(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        i, f, g, o = gates.chunk(4, -1)
        new_c = torch.addcmul(f.sigmoid() * c, i.sigmoid(), plain_tanh(g))
        return o.sigmoid() * plain_tanh(new_c), new_c

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        _, c = inputs
        _, _, activated, tanh_c = output
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(c, activated, tanh_c)

    @staticmethod
    def backward(ctx: Context, grad_h: Grad, grad_c: Grad, of_activated: Grad, of_tanh_c: Grad) -> Gradients:
        c, activated, tanh_c = ctx.saved_tensors
        if of_activated is not None or of_tanh_c is not None or differentiated():
            return _lstm_gradients(grad_h, grad_c, of_activated, of_tanh_c, c, activated, tanh_c)
        if (fused := triton_steps.lstm_backward(grad_h, grad_c, c, activated, tanh_c)) is not None:
            return fused
        size = c.shape[-1]
        i, f, g, o = activated.split(size, -1)
        to_gates = torch.addcmul(activated, activated, activated, value=-1)
        torch.addcmul(
            torch.ones((), dtype=g.dtype, device=g.device), g, g, value=-1, out=to_gates[..., 2 * size : 3 * size]
        )
        total = torch.zeros_like(c) if grad_c is None else grad_c
        if grad_h is not None:
            through = grad_h * o
            total = total + through.addcmul_(through * tanh_c, tanh_c, value=-1)
            to_gates[..., 3 * size :].mul_(grad_h).mul_(tanh_c)
        else:
            to_gates[..., 3 * size :].zero_()
        to_gates[..., :size].mul_(total).mul_(g)
        to_gates[..., size : 2 * size].mul_(total).mul_(c)
        to_gates[..., 2 * size : 3 * size].mul_(total).mul_(i)
        return to_gates, total * f


def _lstm_gradients(
    grad_h: Grad, grad_c: Grad, of_activated: Grad, of_tanh_c: Grad, c: Tensor, activated: Tensor, tanh_c: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of LSTMStep, in operations that PyTorch can differentiate, for gradients of any outputs."""
    i, f, g, o = activated.chunk(4, -1)
    grad_h = torch.zeros_like(c) if grad_h is None else grad_h
    total = _total(_total(grad_h * o, of_tanh_c) * (1 - tanh_c * tanh_c), grad_c)
    to_activated = _total(torch.cat([total * g, total * c, total * i, grad_h * tanh_c], -1), of_activated)
    slope = torch.cat([i - i * i, f - f * f, 1 - g * g, o - o * o], -1)
    return to_activated * slope, total * f


class HighwayStep(Fused):
    """s + sigmoid(c) (f(g) - s), with [c | g] in `gates` [..., rows, 2E]; `kind` names f: identity, tanh or relu."""

    @staticmethod
    def forward(gates: Tensor, s: Tensor, kind: str) -> tuple[Tensor, Tensor, Tensor]:
        if (fused := triton_steps.highway_forward(gates, s, kind)) is not None:
            return fused
        size = s.shape[-1]
        gate, candidate = torch.sigmoid(gates[..., :size]), gates[..., size:]
        candidate = ACTIVATIONS[kind](candidate)
        return torch.lerp(s, candidate, gate), gate, candidate

    @staticmethod
    def plain(gates: Tensor, s: Tensor, kind: str) -> tuple[Tensor]:
        gate, candidate = gates.chunk(2, -1)
        return (torch.lerp(s, PLAIN[kind](candidate), gate.sigmoid()),)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        _, s, ctx.kind = inputs
        _, gate, candidate = output
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(s, gate, candidate)

    @staticmethod
    def backward(ctx: Context, grad: Grad, of_gate: Grad, of_candidate: Grad) -> Gradients:
        s, gate, candidate = ctx.saved_tensors
        if grad is None or of_gate is not None or of_candidate is not None or differentiated():
            grad = torch.zeros_like(s) if grad is None else grad
            to_gate = _total(grad * (candidate - s), of_gate) * (gate - gate * gate)
            to_candidate = _total(grad * gate, of_candidate) * _slope(ctx.kind, candidate)
            return torch.cat([to_gate, to_candidate], -1), grad - grad * gate, None
        if (fused := triton_steps.highway_backward(grad, s, gate, candidate, ctx.kind)) is not None:
            return *fused, None
        size = s.shape[-1]
        to_gates = torch.empty(*grad.shape[:-1], 2 * size, dtype=grad.dtype, device=grad.device)
        to_candidate = torch.mul(grad, gate, out=to_gates[..., size:])
        to_s = grad - to_candidate
        torch.sub(candidate, s, out=to_gates[..., :size]).mul_(to_s).mul_(gate)
        if ctx.kind == "tanh":
            to_candidate.addcmul_(to_candidate * candidate, candidate, value=-1)
        elif ctx.kind == "relu":
            to_candidate.mul_(candidate > 0)
        return to_gates, to_s, None


class SRUStep(Fused):
    """The step of an SRU, to the new (h, c). `gates` [..., rows or 1, 4E] holds x~, f and r (without c), and x.

    `weight` [..., 2, E] holds the weights of c in f and r; `kind` names g: identity or tanh.
    """

    @staticmethod
    def forward(gates: Tensor, weight: Tensor, c: Tensor, kind: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        size = c.shape[-1]
        candidate, x = gates[..., :size], gates[..., 3 * size :]
        f = torch.addcmul(gates[..., size : 2 * size], weight[..., :1, :], c).sigmoid_()
        r = torch.addcmul(gates[..., 2 * size : 3 * size], weight[..., 1:, :], c).sigmoid_()
        new_c = torch.lerp(candidate, c, f)
        return torch.lerp(x, ACTIVATIONS[kind](new_c), r), new_c, f, r

    @staticmethod
    def plain(gates: Tensor, weight: Tensor, c: Tensor, kind: str) -> tuple[Tensor, Tensor]:
        candidate, f, r, x = gates.chunk(4, -1)
        f = torch.addcmul(f, weight[..., :1, :], c).sigmoid()
        r = torch.addcmul(r, weight[..., 1:, :], c).sigmoid()
        new_c = torch.lerp(candidate, c, f)
        return torch.lerp(x, PLAIN[kind](new_c), r), new_c

    @staticmethod
    def inputs(ctx: Context) -> Sequence[object]:
        return *ctx.saved_tensors[:3], ctx.kind

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        gates, weight, c, ctx.kind = inputs
        _, new_c, f, r = output
        ctx.mark_non_differentiable(f, r)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(gates, weight, c, new_c, f, r)

    @staticmethod
    def backward(ctx: Context, grad_h: Grad, grad_c: Grad, *_: object) -> Gradients:
        gates, weight, c, new_c, f, r = ctx.saved_tensors
        size = c.shape[-1]
        to_gates = torch.zeros(*c.shape[:-1], 4 * size, dtype=c.dtype, device=c.device)
        to_candidate, to_f, to_r, to_x = to_gates.split(size, -1)
        total = torch.zeros_like(c) if grad_c is None else grad_c
        to_c = torch.zeros_like(c)
        if grad_h is not None:
            shown = ACTIVATIONS[ctx.kind](new_c)
            through = grad_h * r
            torch.sub(grad_h, through, out=to_x)
            torch.mul(shown - gates[..., 3 * size :], through, out=to_r)
            to_r.addcmul_(to_r, r, value=-1)
            if ctx.kind == "tanh":
                through.addcmul_(through * shown, shown, value=-1)
            total = total + through
            to_c.addcmul_(to_r, weight[..., 1:, :])
        kept = total * f
        torch.sub(total, kept, out=to_candidate)
        torch.mul(c - gates[..., :size], kept, out=to_f)
        to_f.addcmul_(to_f, f, value=-1)
        to_c.add_(kept).addcmul_(to_f, weight[..., :1, :])
        to_weight = torch.stack([(to_f * c).sum(-2), (to_r * c).sum(-2)], -2)
        return _reduced(to_gates, gates.shape), to_weight, to_c, None


class StopGateStep(Fused):
    """sigmoid(h . weight + bias), one number per row: `h` [..., rows, E], `weight` [..., 1, E], `bias` [..., 1, 1]."""

    generate_vmap_rule = True

    @staticmethod
    def forward(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        if (fused := triton_steps.stop_forward(h, weight, bias)) is not None:
            return fused
        # Not a matrix product: with one column, a stack would sum in another order than a single model.
        return torch.sigmoid((h * weight).sum(-1, keepdim=True) + bias)

    @staticmethod
    def plain(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.sigmoid((h * weight).sum(-1, keepdim=True) + bias)

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        h, weight, bias = inputs
        ctx.bias_shape = bias.shape
        ctx.save_for_backward(h, weight, output)

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        h, weight, s = ctx.saved_tensors
        if (fused := triton_steps.stop_backward(grad, s, h, weight)) is not None:
            return fused
        to_score = torch.ops.aten.sigmoid_backward(grad, s)
        return to_score * weight, _reduced(to_score * h, weight.shape), _reduced(to_score, ctx.bias_shape)


@traceable
def tanh(x: Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
    """Return tanh(x); see Tanh."""
    y: Tensor = apply(Tanh, x)
    return y


@traceable
def mix(a: Units, b: Units, s: Stops) -> Units:
    """Return (1 - s) a + s b; see Mix."""
    mixed: Tensor = apply(Mix, a, b, s)
    return mixed


@traceable
def gru_step(from_input: Gates, from_state: AllGates, h: Units) -> Units:
    """Return the next state of a GRU; see GRUStep."""
    new: Tensor = apply(GRUStep, from_input, from_state, h)[0]
    return new


@traceable
def lstm_step(gates: Gates, c: Units) -> tuple[Units, Units]:
    """Return the next h and c of an LSTM; see LSTMStep."""
    h, new_c = apply(LSTMStep, gates, c)[:2]
    return h, new_c


@traceable
def highway_step(gates: Gates, s: Units, activation: str) -> Units:
    """Return the next node of a DARTS cell; see HighwayStep."""
    new: Tensor = apply(HighwayStep, gates, s, activation)[0]
    return new


@traceable
def sru_step(gates: Gates, weight: Float[Tensor, "*stack 2 hidden"], c: Units, activation: str) -> tuple[Units, Units]:
    """Return the next h and c of an SRU; see SRUStep."""
    h, new_c = apply(SRUStep, gates, weight, c, activation)[:2]
    return h, new_c


@traceable
def sru_state_step(gates: Gates, weight: Float[Tensor, "*stack 1 hidden"], c: Units) -> Units:
    """Return the next c of an SRU without its output; `gates` [..., rows or 1, 2E] holds x~ and f (without c)."""
    gates, weight, c = of_one_type((gates, weight, c))
    candidate, f = gates.chunk(2, -1)
    return torch.lerp(candidate, c, torch.sigmoid(torch.addcmul(f, weight, c)))


@traceable
def damp(x: Units, s: Stops) -> Units:
    """Return (1 - s) x."""
    return x - x * s


@traceable
def of_first(s: Stops) -> Stops:
    """Return the number of the first row for every row."""
    return s[..., :1, :].expand_as(s)


@traceable
def stop_gate(h: Units, weight: Weight, bias: Bias) -> Stops:
    """Return sigmoid(h . weight + bias), one number per row; see StopGateStep."""
    s: Tensor = apply(StopGateStep, h, weight, bias)
    return s
