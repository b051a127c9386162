"""Memory of a program: slabs of numbers, operations on slabs, and the offset of each slab."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

BLOCK = 32  # columns of one block of a panel
WIDTH = 28  # numbers of one operation
NOWHERE = -1

Code = IntEnum(
    "Code",
    "LINEAR OUTER PACK ADD_ROWS COPY_IN COPY_OUT EMBED EMBED_BACK GRU GRU_BACK LSTM LSTM_BACK HIGHWAY HIGHWAY_BACK SRU "
    "SRU_BACK SRU_STATE SRU_STATE_BACK MIX MIX_BACK STOP STOP_BACK SOFTMAX SOFTMAX_BACK SAMPLE APPLY APPLY_BACK GELU "
    "GELU_BACK COPY COPY_ROW NORM NORM_BACK ATTEND ATTEND_BACK POOL POOL_BACK INPUT INPUT_BACK FILL START PUT_ROW "
    "COPY_ROWS TURN SUM_TURNED COUNT DIGITS DIGITS_BACK "
    "FIND_CODE PUT_CODE PUT_CODE_BACK ATTRACT ATTRACT_BACK LINK LINK_BACK SPREAD SPREAD_BACK OF_FIRST OF_FIRST_BACK",
    start=0,
)  # in the order of the enumeration in program.cpp


# The last step of a product, in the order of the enumeration in products.h.
Finish = IntEnum("Finish", "NONE RELU RELU_BACK TIMES", start=0)
# What a link makes of scores, in the order of the enumeration in link.h.
LinkKind = IntEnum("LinkKind", "RELAXED ONE_HOT DRAWN ROUNDED NEAREST", start=0)


class Space(IntEnum):
    """Memories of a replicate. The program computes the content of the first two; the caller fills the others."""

    WEIGHTS = 0  # values that are computed once per update
    TAPE = 1  # values that are computed for each chunk of the batch
    PARAMETERS = 2
    GRADIENTS = 3
    CONSTANTS = 4


def padded(columns: int) -> int:
    """Return the number of columns, rounded up to whole blocks."""
    return -(-columns // BLOCK) * BLOCK


@dataclass(eq=False)
class Slab:
    """A contiguous range of numbers.

    Attributes:
        space: memory of the slab.
        size: number of numbers.
        offset: offset of the first number; by default set when the program is complete.
        used: the first and the last operation of a chunk that uses the slab.
    """

    space: Space
    size: int
    offset: int = NOWHERE
    used: tuple[int, int] | None = None

    def touch(self, time: int) -> None:
        """Record that an operation uses the slab."""
        self.used = (time, time) if self.used is None else (min(self.used[0], time), max(self.used[1], time))


@dataclass(frozen=True)
class At:
    """An address in a slab."""

    slab: Slab
    offset: int = 0

    def number(self) -> int:
        """Return the address as one number, as the C++ code reads it: the space above bit 48, the offset below."""
        return (int(self.slab.space) << 48) | (self.slab.offset + self.offset)


Field = int | float | bool | None | Slab | At


@dataclass(eq=False)
class Operation:
    """One operation on `rows` rows; None means the rows of a chunk."""

    code: Code
    rows: int | None
    fields: list[Field]
    lists: list[tuple[int, list[Field]]] = field(default_factory=list)  # lists of addresses, by their field

    def slabs(self) -> list[Slab]:
        """Return the slabs of the operation."""
        return _slabs([*self.fields, *(f for _, some in self.lists for f in some)])

    def written(self) -> list[Slab]:
        """Return the slabs that the operation may write."""
        if self.code == Code.LINEAR:
            return _slabs(self.fields[:1])
        only_read = READ.get(self.code, ())
        fields = [field for n, field in enumerate(self.fields) if n not in only_read]
        return _slabs([*fields, *(f for _, some in self.lists for f in some)])


# Fields that an operation only reads, for the most common operations of the backward pass.
READ: dict[Code, Sequence[int]] = {
    Code.OUTER: range(6, WIDTH), Code.ADD_ROWS: (0,), Code.COPY: (1,), Code.NORM_BACK: (1, 2, 3, 4, 8),
    Code.GELU_BACK: (1, 2), Code.APPLY_BACK: (2, 3),
}  # fmt: skip


def _slabs(fields: list[Field]) -> list[Slab]:
    return [f.slab if isinstance(f, At) else f for f in fields if isinstance(f, (At, Slab))]


def number(value: Field) -> int:
    """Return a field in the program's encoding: addresses and whole numbers unchanged, other numbers as bits."""
    if value is None:
        return NOWHERE
    if isinstance(value, Slab):
        value = At(value)
    if isinstance(value, At):
        return value.number()
    return int(value) if isinstance(value, int) else int(struct.unpack("<q", struct.pack("<d", value))[0])


def place(slabs: list[Slab]) -> int:
    """Assign offsets so that slabs in use at the same time never overlap; return the number of numbers needed."""
    alive: list[Slab] = []
    top = 0
    for slab in sorted((s for s in slabs if s.used), key=lambda s: (s.used or (0, 0))[0]):
        assert slab.used is not None
        alive = [s for s in alive if s.used is not None and s.used[1] >= slab.used[0]]
        offset = 0
        for other in sorted(alive, key=lambda s: s.offset):
            if offset + slab.size <= other.offset:
                break
            offset = max(offset, other.offset + other.size)
        slab.offset = offset
        alive.append(slab)
        top = max(top, offset + slab.size)
    return top


# -- values of a program: panels of rows, views of parameters, and combinations of them --------------------------------


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
