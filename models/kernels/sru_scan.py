"""The SRU over a whole sequence, as one autograd node.

No matrix multiplies the state of an SRU, so only f and c need a loop over steps, and in the backward pass only the
gradient of c. Everything else is computed for a slab of steps at once: on a GPU, where launches are expensive, for all
steps; on a CPU, where memory access is expensive, for as many steps as fit in the cache.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import torch
from jaxtyping import Float
from torch import Tensor

from icy.core.fused import Context, Fused, Gradients, apply

from .cell_steps import plain_tanh
from .products import add_product, put_product

# Elements of a slab of one model on a CPU: a step of the papers' size, and eight of them fit in the cache. Slabs have
# the same length in a stack of any size, because sums are added slab by slab: a model's results do not depend on its
# stack.
IN_CACHE = 2**14
Part = Tensor | None  # None if an SRU does not have this part


def sru_scan(
    x: Float[Tensor, "*#stack step={steps} batch inputs"] | None,
    matrix: Float[Tensor, "*stack inputs blocks"] | None,
    bias: Float[Tensor, "*stack gates hidden"],
    weight: Float[Tensor, "*stack gates hidden"],
    c: Float[Tensor, "*stack batch hidden"],
    steps: int,
    activation: str,
) -> Float[Tensor, "*stack step={steps} batch hidden"] | Float[Tensor, "*stack batch hidden"]:
    """Return the outputs h of an SRU [*stack, step, batch, E]; without the gate r, its last c [*stack, batch, E].

    Args:
        x: inputs [*stack, step, batch, inputs], or None for zero inputs.
        matrix: weights of the inputs [*stack, inputs, blocks * E], one block for each of x~, f, r and the highway.
            Without the last block, the highway passes x on. None if there is no x.
        bias: biases of f and r [*stack, 2, E], or only of f [*stack, 1, E].
        weight: weights of c in f and r, of the same shape.
        c: the first state [*stack, batch, E].
        steps: number of steps.
        activation: g, "identity" or "tanh".
    """
    alone = weight.dim() == 2
    if alone:
        x, matrix = (part if part is None else part.unsqueeze(0) for part in (x, matrix))
        bias, weight, c = bias.unsqueeze(0), weight.unsqueeze(0), c.unsqueeze(0)
    elif x is not None and x.dim() == 3:  # all models share x
        x = x.expand(len(weight), *x.shape)
    found: Tensor = apply(_SRUScan, x, matrix, bias, weight, c, steps, activation)
    return found.squeeze(0) if alone else found


class _Run(NamedTuple):
    """Tensors kept for the backward pass, each [replicate, step, batch, E]; None for missing parts."""

    f: Tensor
    before: Tensor  # c before a step
    after: Tensor  # c after the step
    r: Part
    passed: Part  # input of the highway
    shown: Part  # g(c), if g is not the identity
    h: Part

    def at(self, slab: slice) -> Self:
        """Return the tensors of a slab of steps."""
        return type(self)(*(None if part is None else part[:, slab] for part in self))  # type: ignore[arg-type]


class _SRUScan(Fused):
    """Autograd node of sru_scan; here every tensor has a replicate axis."""

    @staticmethod
    def forward(
        ctx: Context, x: Part, matrix: Part, bias: Tensor, weight: Tensor, c: Tensor, steps: int, activation: str
    ) -> Tensor:
        blocks = _blocks(matrix, c)
        run = _places(x, c, steps, activation, has_r=bias.shape[1] == 2, passes_product=len(blocks) == 4)
        slabs = _slabs(run)
        room = None if x is None else torch.empty_like(run.f[:, slabs[0]])
        for slab in slabs:
            part = run.at(slab)
            candidate = None
            if x is not None and room is not None:
                candidate = room[:, : part.f.shape[1]]
                for block, place in zip(blocks, [candidate, part.f, part.r, part.passed], strict=False):
                    assert place is not None
                    put_product(_rows(place), _rows(x[:, slab]), block)
            _run_states(part, candidate, bias, weight)
            if part.r is not None and part.h is not None:
                _open(part.r, bias[:, 1:, None], weight[:, 1:, None], part.before, fed=part.passed is not None)
                shown = part.after if part.shown is None else _tanh(part.after, part.shown)
                if part.passed is None:
                    torch.mul(part.r, shown, out=part.h)
                else:
                    torch.lerp(part.passed, shown, part.r, out=part.h)
        ctx.save_for_backward(x, matrix, bias, weight, c, *run)
        ctx.settings = steps, activation
        return run.after[:, -1].clone() if run.h is None else run.h

    @staticmethod
    def plain(x: Part, matrix: Part, bias: Tensor, weight: Tensor, c: Tensor, steps: int, activation: str) -> Tensor:
        has_r = bias.shape[1] == 2
        products = None if x is None or matrix is None else (x @ matrix.unsqueeze(1)).to(c.dtype)
        blocks: tuple[Tensor, ...] = () if products is None else products.split(c.shape[-1], -1)
        passed = x if len(blocks) == 3 else blocks[3] if len(blocks) == 4 else None
        outputs = []
        for t in range(steps):
            before = c
            f = torch.sigmoid((blocks[1][:, t] if blocks else 0) + bias[:, :1] + weight[:, :1] * before)
            c = torch.lerp(blocks[0][:, t], before, f) if blocks else f * before
            if has_r:
                r = torch.sigmoid((blocks[2][:, t] if blocks else 0) + bias[:, 1:] + weight[:, 1:] * before)
                shown = plain_tanh(c) if activation == "tanh" else c
                outputs.append(r * shown if passed is None else torch.lerp(passed[:, t], shown, r))
        return torch.stack(outputs, 1) if has_r else c

    @staticmethod
    def inputs(ctx: Context) -> Sequence[object]:
        return *ctx.saved_tensors[:5], *ctx.settings

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        x, matrix, _, weight, _, *kept = ctx.saved_tensors
        back = _Backward(_Run(*kept), weight, grad, x, _blocks(matrix, weight), ctx.needs_input_grad[0])
        for slab in reversed(_slabs(back.run)):
            back.through(slab)
        to_matrix = None if matrix is None else torch.cat(back.to_blocks, -1)
        to_bias, to_weight = (torch.stack([s.sum((1, 2)) for s in sums], 1) for sums in (back.to_bias, back.to_weight))
        return back.to_x, to_matrix, to_bias, to_weight, back.to_c, None, None


def _places(x: Part, c: Tensor, steps: int, activation: str, has_r: bool, passes_product: bool) -> _Run:
    """Allocate the tensors of a run, and write the first state, and x if the highway passes it on."""
    count, batch, size = c.shape
    states = c.new_empty(count, steps + 1, batch, size)
    states[:, 0] = c
    before, after = states[:, :-1], states[:, 1:]
    f = torch.empty_like(after)
    if not has_r:
        return _Run(f, before, after, None, None, None, None)
    passed = torch.empty_like(after) if passes_product else x
    shown = torch.empty_like(after) if activation == "tanh" else None
    return _Run(f, before, after, torch.empty_like(after), passed, shown, torch.empty_like(after))


def _slabs(run: _Run) -> list[slice]:
    """Divide the steps into slabs."""
    steps, step = run.f.shape[1], run.f[:, 0]
    length = steps if not step.is_cpu else min(steps, max(1, IN_CACHE // max(1, step[0].numel())))
    return [slice(first, min(first + length, steps)) for first in range(0, steps, length)]


def _blocks(matrix: Part, like: Tensor) -> tuple[Tensor, ...]:
    """Split the matrix into the blocks of x~, f, r and the highway; the last ones may be missing."""
    return () if matrix is None else matrix.split(like.shape[-1], -1)


def _rows(part: Tensor) -> Tensor:
    """Return a view with steps and examples as one axis."""
    return part.view(len(part), -1, part.shape[-1])


def _run_states(run: _Run, candidate: Part, bias: Tensor, weight: Tensor) -> None:
    """Compute f and c, step by step."""
    for t in range(run.f.shape[1]):
        f, c, new_c = run.f[:, t], run.before[:, t], run.after[:, t]
        _open(f, bias[:, :1], weight[:, :1], c, fed=candidate is not None)
        if candidate is None:
            torch.mul(f, c, out=new_c)
        else:
            torch.lerp(candidate[:, t], c, f, out=new_c)


def _open(gate: Tensor, bias: Tensor, weight: Tensor, c: Tensor, fed: bool) -> None:
    """Compute a gate in place; with an input, `gate` already holds the input's part."""
    if fed:
        gate.add_(bias).addcmul_(weight, c)
    else:
        torch.addcmul(bias, weight, c, out=gate)
    gate.sigmoid_()


def _tanh(x: Tensor, out: Tensor) -> Tensor:
    """Compute tanh as in `icy.models.kernels.cell_steps`, into `out`."""
    if not x.is_cpu or x.dtype != torch.float32:
        return torch.tanh(x, out=out)
    return torch.mul(x, 2, out=out).sigmoid_().mul_(2).sub_(1)


class _Backward:
    """The backward pass: one slab at a time from the last to the first, with the gradient of c between them.

    With w = f (c_{t-1} - c_t), dc_t the whole gradient of c_t, and df and dr the gradients before the sigmoid:
    dx~ = (1 - f) dc_t;  df = w dc_t;  dr = (1 - r) dh (h - x);
    dc_{t-1} = (f + v_f w) dc_t + v_r dr + r_{t-1} g'(c_{t-1}) dh_{t-1}.

    Attributes:
        to_c: gradient of the state before the finished steps.
        to_x: gradient of the inputs; None if it is not needed.
        to_blocks: gradients of the blocks of the matrix.
        to_bias, to_weight: gradients for each gate, summed over slabs, but not yet over steps and examples.
    """

    def __init__(
        self, run: _Run, weight: Tensor, grad: Tensor, x: Part, blocks: Sequence[Tensor], needs_x_gradient: bool
    ) -> None:
        self.run, self.x, self.blocks = run, x, blocks
        self.v: tuple[Tensor, ...] = weight.unsqueeze(2).split(1, 1)  # v_f and v_r, [replicate, 1, 1, E]
        self.to_h = grad  # unused without h
        self.to_c = grad if run.h is None else torch.zeros_like(grad[:, 0])
        self.to_x = torch.empty_like(x) if x is not None and needs_x_gradient else None
        self.to_blocks = [torch.zeros_like(block, memory_format=torch.contiguous_format) for block in blocks]
        slab = run.f[:, _slabs(run)[0]]
        self.room = [torch.empty_like(slab) for _ in range(6)]
        self.to_bias = [torch.zeros_like(slab) for _ in self.v]
        self.to_weight = [torch.zeros_like(slab) for _ in self.v]

    def through(self, slab: slice) -> None:
        """Run the backward pass of one slab."""
        run = self.run.at(slab)
        to_after, spare, *to_products = (part[:, : run.f.shape[1]] for part in self.room)
        to_candidate, to_f, to_r, to_passed = to_products
        if run.h is None or run.r is None:
            to_after.zero_()
            to_before = torch.zeros_like(self.to_c)
        else:
            to_h = self.to_h[:, slab]
            torch.addcmul(to_h, to_h, run.r, value=-1, out=to_passed)
            if run.passed is None:
                torch.mul(run.h, to_passed, out=to_r)
            else:
                torch.sub(run.h, run.passed, out=to_r).mul_(to_passed)
            torch.sub(to_h, to_passed, out=to_after)
            if run.shown is not None:
                torch.mul(to_after, run.shown, out=spare)
                to_after.addcmul_(spare, run.shown, value=-1)
            to_after[:, :-1].addcmul_(to_r[:, 1:], self.v[1])
            to_before = torch.mul(to_r[:, 0], self.v[1][:, 0])
            self._count(1, to_r, run.before)
        self._through_states(run, to_before, to_after, to_f, spare)
        self._count(0, to_f, run.before)
        if self.x is not None:
            torch.addcmul(to_after, to_after, run.f, value=-1, out=to_candidate)
            self._through_products(slab, self.x[:, slab], to_products)

    def _through_states(self, run: _Run, to_before: Tensor, to_after: Tensor, to_f: Tensor, factor: Tensor) -> None:
        """Complete the gradients of the states, from the last step to the first.

        `to_before` starts with the gradient that reaches the state before the first step through the gate r.
        """
        torch.sub(run.before, run.after, out=to_f).mul_(run.f)
        torch.addcmul(run.f, to_f, self.v[0], out=factor)
        to_after[:, -1].add_(self.to_c)
        for t in reversed(range(1, to_after.shape[1])):
            to_after[:, t - 1].addcmul_(factor[:, t], to_after[:, t])
        self.to_c = to_before.addcmul_(factor[:, 0], to_after[:, 0])
        to_f.mul_(to_after)

    def _through_products(self, slab: slice, x: Tensor, to_products: Sequence[Tensor]) -> None:
        for part, to_block in zip(to_products, self.to_blocks, strict=False):
            add_product(to_block, _rows(x).mT, _rows(part))
        if self.to_x is None:
            return
        to_x = self.to_x[:, slab]
        if len(self.blocks) == 3:  # the highway passes x on
            to_x.copy_(to_products[3])
        else:
            to_x.zero_()
        for part, block in zip(to_products, self.blocks, strict=False):
            add_product(_rows(to_x), _rows(part), block.mT)

    def _count(self, gate: int, to_gate: Tensor, c: Tensor) -> None:
        steps = to_gate.shape[1]
        self.to_bias[gate][:, :steps].add_(to_gate)
        self.to_weight[gate][:, :steps].addcmul_(to_gate, c)
