"""Products of stacks of matrices, with results that do not depend on the other items of a stack.

On a CPU, the library behind `torch.bmm` chooses the order of additions by the address of each matrix. The same product
is then rounded differently at another index of a stack. If the length of an item is a multiple of LINE, all items begin
a line of the cache, and this does not happen. Small matrices, such as the weights of a few symbols, often have other
lengths. They are multiplied one by one, in memory of their own.

A stack of one item also uses another method than larger stacks: see GradientLearner, which never has a stack of one.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from icy.core.fused import Context, Fused, Gradients, apply

LINE = 16  # numbers in a line of the cache, in single precision

Left = Float[Tensor, "n rows inner"]
Right = Float[Tensor, "n inner columns"]
Found = Float[Tensor, "n rows columns"]
Addend = Float[Tensor, "#n #rows columns"]


def product(a: Left, b: Right, addend: Addend | None = None) -> Found:
    """Return `a @ b + addend`."""
    if _at_lines(a, b):
        return torch.bmm(a, b) if addend is None else torch.baddbmm(addend, a, b)
    found: Tensor = apply(_OneByOne, a, b, addend)
    return found


def add_product(to: Found, a: Left, b: Right) -> Found:
    """Add `a @ b` to `to` in place, without a gradient, and return `to`."""
    return to.baddbmm_(a, b) if _at_lines(a, b) else to.add_(_one_by_one(a, b))


def put_product(to: Found, a: Left, b: Right) -> None:
    """Write `a @ b` to `to`, without a gradient."""
    if _at_lines(a, b):
        torch.bmm(a, b, out=to)
    else:
        to.copy_(_one_by_one(a, b))


def _at_lines(a: Tensor, b: Tensor) -> bool:
    """Return whether the batched product gives each item the same result at every index of a stack."""
    if len(a) == 1 or not a.is_cpu:
        return True
    rows, inner, columns = *a.shape[1:], b.shape[2]
    return all(n % LINE == 0 for n in (rows * inner, inner * columns, rows * columns))


def _one_by_one(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack([torch.mm(_apart(x), _apart(y)) for x, y in zip(a, b, strict=True)])


def _apart(x: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """Return a copy in new memory, with contiguous columns if the columns of `x` are contiguous."""
    contiguous = torch.contiguous_format
    return x.clone(memory_format=contiguous) if x.stride(-1) == 1 else x.mT.clone(memory_format=contiguous).mT


class _OneByOne(Fused):
    """a @ b + addend, item by item, forward and back."""

    @staticmethod
    def forward(ctx: Context, a: Tensor, b: Tensor, addend: Tensor | None) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.addend = None if addend is None else addend.shape
        found = _one_by_one(a, b)
        return found if addend is None else found.add_(addend)

    @staticmethod
    def plain(a: Tensor, b: Tensor, addend: Tensor | None) -> Tensor:
        return torch.bmm(a, b) if addend is None else torch.baddbmm(addend, a, b)

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        a, b = ctx.saved_tensors
        to_a = _one_by_one(grad, b.mT) if ctx.needs_input_grad[0] else None
        to_b = _one_by_one(a.mT, grad) if ctx.needs_input_grad[1] else None
        return to_a, to_b, grad.sum_to_size(ctx.addend) if ctx.needs_input_grad[2] else None
