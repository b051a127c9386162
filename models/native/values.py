"""Values of a program: panels of rows, views of parameters, and what stands for more than one of them."""

from dataclasses import dataclass, field

from .slabs import At, Slab, Space


@dataclass(eq=False)
class RowPanel:
    """Rows of numbers, in parts that each stand in blocks of their own.

    Attributes:
        rows: how many; None for the examples of a chunk.
        slabs: one per part.
        columns: of each part.
        trained: whether a gradient goes back through it.
        users: how many operations read it.
        kept: whether its numbers are needed on the way back, so that none may be written over.
        grads: one slab per part, once something has a gradient for it.
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
        """Columns of all parts."""
        return sum(self.columns)

    @property
    def spare(self) -> bool:
        """Whether it may be written over by the only operation that reads it."""
        return self.users == 1 and self.rows is None and not self.kept


@dataclass(frozen=True)
class MatrixView:
    """A matrix in the parameters or the constants: element (i, j) is `by_row` i + `by_column` j after the first."""

    space: Space
    offset: int
    rows: int
    columns: int
    by_row: int
    by_column: int
    trained: bool

    @property
    def turned(self) -> "MatrixView":
        """The transpose."""
        return MatrixView(self.space, self.offset, self.columns, self.rows, self.by_column, self.by_row, self.trained)

    def at(self, row: int, column: int, space: Space | None = None) -> At:
        """Return the address of an element, or of the same element of another space."""
        offset = self.offset + row * self.by_row + column * self.by_column
        return At(Slab(self.space if space is None else space, 0, 0), offset)


@dataclass(frozen=True, eq=False)
class Turned:
    """The transpose of a panel that is computed once an update."""

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
    """The one-hot vectors of `places` tokens of the input, from `first` on, side by side."""

    first: int
    places: int
    values: int


@dataclass(frozen=True)
class Weights:
    """The weights over `values` symbols of one place of an input that comes so."""

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
