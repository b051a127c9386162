"""Values of a program: panels of rows, views of parameters, and combinations of them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from .slabs import At, Slab, Space


@dataclass(eq=False)
class RowPanel:
    """Rows of numbers, in parts that each have blocks of their own.

    Attributes:
        rows: number of rows; None for the examples of a chunk.
        slabs: one slab per part.
        columns: number of columns of each part.
        trained: whether the panel needs a gradient.
        users: number of operations that read the panel.
        kept: whether the backward pass needs the numbers, so they must not be overwritten.
        grads: gradient slabs, one per part, after the first gradient.
    """

    rows: int | None
    slabs: list[Slab]
    columns: list[int]
    trained: bool
    users: int = 1
    grads: list[Slab] | None = None
    kept: bool = False

    @property
    def width(self) -> int:
        """Number of columns of all parts."""
        return sum(self.columns)

    @property
    def spare(self) -> bool:
        """Whether the only operation that reads the panel may overwrite it."""
        return self.users == 1 and self.rows is None and not self.kept


@dataclass(frozen=True)
class MatrixView:
    """A matrix in the parameters or constants: element (i, j) is `by_row` i + `by_column` j after the first number."""

    space: Space
    offset: int
    rows: int
    columns: int
    by_row: int
    by_column: int
    trained: bool

    @property
    def transposed(self) -> "MatrixView":
        """The transpose."""
        return MatrixView(self.space, self.offset, self.columns, self.rows, self.by_column, self.by_row, self.trained)

    def at(self, row: int, column: int, space: Space | None = None) -> At:
        """Return the address of an element, or of the same element of another space."""
        offset = self.offset + row * self.by_row + column * self.by_column
        return At(Slab(self.space if space is None else space, 0, 0), offset)


@dataclass(frozen=True, eq=False)
class Turned:
    """The transpose of a panel that is computed once per update."""

    panel: RowPanel


@dataclass(frozen=True)
class Zero:
    """Zeros."""

    rows: int | None
    columns: int


@dataclass(eq=False)
class Stops:
    """One number per example."""

    slab: Slab
    trained: bool
    users: int = 1
    grad: Slab | None = None


@dataclass(frozen=True)
class Tokens:
    """The one-hot vectors of `places` tokens of the input, starting at `first`, side by side."""

    first: int
    places: int
    values: int


@dataclass(frozen=True)
class Weights:
    """The weights over `values` symbols at one place of an input of weights."""

    place: int
    values: int


@dataclass(frozen=True, eq=False)
class Steps:
    """One value per position."""

    steps: list["Value"]


@dataclass(frozen=True, eq=False)
class Kernel:
    """The matrices of a convolution, one per position of its window."""

    matrices: list["Value"] = field(default_factory=list)


Value = RowPanel | MatrixView | Turned | Zero | Stops | Tokens | Weights | Steps | Kernel


@dataclass(eq=False)
class Head:
    """One head of an attention. Its slabs hold turned rows or lines of numbers per query and key; see attention.h.

    Attributes:
        parts: parts of the panels with its queries, keys and values.
        queries, keys, values: one turned slab per position.
        weights: weights of the means.
        of_scores: gradients of the scores.
        of_means: turned gradients of the means, one slab per query; empty without a gradient.
    """

    parts: tuple[int, int, int]
    queries: list[Slab]
    keys: list[Slab]
    values: list[Slab]
    weights: Slab
    of_scores: Slab | None = None
    of_means: list[Slab] = field(default_factory=list)


class Reading(NamedTuple):
    """A head that reads a panel as its key and value number `place`."""

    head: Head
    place: int
