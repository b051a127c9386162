"""Programs: the traced and lowered operations of a model, in the layout that the compiled code reads."""

import ctypes
from dataclasses import dataclass
from itertools import accumulate

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from icy.core.errors import IncompatibleError

from . import lower_cells, lower_layers, lower_shapes  # noqa: F401  # these register the handlers of functions
from .builder import Builder, NotNativeError
from .lower import Lowering, ScorePlace, finish_products, gather_sums, join_products, trace
from .slabs import WIDTH, At, Code, Operation, Slab, number, place

CHUNK = 64  # rows of a batch that run forward and back together
# For models with more parameters than a cache holds; each chunk reads them from memory again.
LARGE, CHUNK_OF_LARGE = 1 << 20, 128
UNUSUAL = 37  # size of the traced batch; no axis of the model may have this size
LINE = 16  # numbers in a line of the cache; each parameter starts at a line
LANES = 64  # most numbers that the optimizer updates at once; replicates are padded to a multiple


class Phase(ctypes.Structure):
    """Operations that run one after another."""

    _fields_ = [("operations", ctypes.c_void_p), ("count", ctypes.c_int64)]


class NativeProgram(ctypes.Structure):
    """`struct Program` of program.cpp."""

    _fields_ = [
        *((name, Phase) for name in ("before", "forward", "backward", "after")),
        *((name, ctypes.c_void_p) for name in ("lists", "constants", "places")),
        *(
            (name, ctypes.c_int64)
            for name in (
                *("place_count", "choices", "sent_count", "sent_choices", "parameters", "weights", "first_gradient"),
                *("last_gradient", "tape", "chunk", "tokens", "weighted"),
            )
        ),
    ]


@dataclass
class Layout:
    """Layout of a replicate's parameters in one vector.

    Attributes:
        shapes: shape of each parameter, by name.
        offsets: offset of each parameter.
        size: number of numbers.
        padded: distance from one replicate to the next, in numbers.
        frozen: names of untrained parameters.
    """

    shapes: dict[str, torch.Size]
    offsets: dict[str, int]
    size: int
    padded: int
    frozen: set[str]

    @staticmethod
    def of(model: nn.Module) -> "Layout":
        """Return the layout of a model's parameters."""
        named = dict(model.named_parameters())
        sizes = [p.numel() for p in named.values()]
        ends = list(accumulate(-(-size // LINE) * LINE for size in sizes))
        offsets = dict(zip(named, [0, *ends], strict=False))
        frozen = {name for name, p in named.items() if not p.requires_grad}
        padded = -(-ends[-1] // LANES) * LANES
        return Layout({n: p.shape for n, p in named.items()}, offsets, sum(sizes), padded, frozen)

    def pack(self, values: dict[str, Shaped[Tensor, "..."]]) -> Float[Tensor, " padded"]:
        """Pack a replicate's parameters into one vector, each at its offset; gaps are 0."""
        flat = torch.zeros(self.padded, dtype=torch.float32, device="cpu")
        for name, value in values.items():
            flat[self.offsets[name] :][: value.numel()] = value.detach().float().flatten()
        return flat

    def views(self, flat: Float[Tensor, "*lead padded"]) -> dict[str, Float[Tensor, "..."]]:
        """Return views of packed vectors as parameters by name, the inverse of `pack`. Leading axes stay."""
        return {
            name: flat[..., self.offsets[name] : self.offsets[name] + shape.numel()].unflatten(-1, shape or (1,))
            for name, shape in self.shapes.items()
        }


class Program:
    """The program of a model.

    Args:
        model: one model of the stack.
        inputs: a few examples, tokens [batch, places] or weights over symbols [batch, places, choices].
        training: whether the model samples as in training.
        gradient: whether to include a backward pass.
        chunk: rows of a batch that run forward and back together; the default depends on the model's size.
        layout: layout that has the model's parameters, and maybe others; by default the layout of the model.
        whole: whether every batch fits in a chunk, so that a model may compute with all of its rows.

    Attributes:
        layout: layout of the parameters.
        native: the structure for the compiled code.
        choices: number of scores per place.
        places: number of places of the output.
        symbols: upper limit of tokens, exclusive; None without limit.
        initial: packed parameters of the model.
        examples, expected: a small batch, and the model's scores for this batch.

    Raises:
        NotNativeError: the model calls something that no operation implements.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Shaped[Tensor, "batch ..."],
        training: bool,
        gradient: bool,
        chunk: int | None = None,
        layout: Layout | None = None,
        whole: bool = False,
    ) -> None:
        self.layout = layout or Layout.of(model)
        self.initial = self.layout.pack(dict(model.named_parameters()))
        examples = _examples(model, inputs)
        try:
            # Single precision, as in training with every engine.
            parameters = {name: p.detach().float() for name, p in model.named_parameters()}
            traced = trace(model, parameters, examples, training)
        except Exception as error:  # a third-party module may raise anything for these tensors
            raise NotNativeError(first_line(error)) from error
        if traced.result.tensor.dim() != 3:
            raise NotNativeError("its scores have no axis of places")
        self.examples, self.expected = examples, traced.result.tensor
        self.places, self.choices = traced.result.tensor.shape[-2:]
        self.whole = whole
        builder = Builder(chunk or chunk_for(self.layout.size), gradient, whole)
        try:
            lowering = Lowering(traced, builder, self.layout.offsets, self.layout.frozen)
            answers = lowering.run()
        except NotNativeError:
            raise
        except Exception as error:  # a function is called in an unexpected way
            raise NotNativeError(f"its calls cannot be recorded ({first_line(error)})") from error
        if len(answers) != self.places:
            raise NotNativeError("it does not give one row of scores per place")
        scores = [*answers, *lowering.sent]  # the loss may read and write these
        if gradient:
            for score in scores:
                builder.gradient_target(score.panel)
            builder.emit_backward()
        gather_sums(builder)
        join_products(builder)
        finish_products(builder, {slab for s in scores for slab in (*s.panel.slabs, *(s.panel.grads or []))})
        self._complete(builder, scores, (len(lowering.sent), lowering.sent_choices), examples)

    def chunks(self, batch: int) -> int:
        """Return the number of chunks of a batch."""
        return int(-(-batch // self.native.chunk))

    def require_fits(self, batch: int) -> None:
        """Raise if a batch must be one chunk and is larger.

        Raises:
            IncompatibleError: it is.
        """
        if self.whole and batch > self.native.chunk:
            raise IncompatibleError(f"A batch has at most {self.native.chunk} examples here, not {batch}.")

    def _complete(self, builder: Builder, scores: list[ScorePlace], sent: tuple[int, int], inputs: Tensor) -> None:
        fixed = sum(s.size for s in builder.fixed)
        for slabs, start in ((builder.fixed, 0), (builder.gradients, fixed)):
            for slab, end in zip(slabs, accumulate(s.size for s in slabs), strict=True):
                slab.offset = start + end - slab.size
        chunk = [*builder.forward, *builder.backward]
        loss = len(builder.forward)
        for score in scores:
            for slab in (*score.panel.slabs, *(score.panel.grads or [])):
                slab.touch(loss)
        for time, operation in enumerate(chunk):
            for slab in operation.slabs():
                slab.touch(time if time < loss else time + 1)
        tape = place(builder.tape)
        lists: list[int] = []
        self._arrays = [
            _numbers(operations, lists)
            for operations in (builder.before, builder.forward, builder.backward, builder.after)
        ]
        places = [
            n
            for score in scores
            for n in (At(score.panel.slabs[0]).number(), number(_first(score.panel.grads)), score.first)
        ]
        self._lists, self._places = (torch.tensor(x or [0], dtype=torch.long, device="cpu") for x in (lists, places))
        self._constants = torch.tensor(builder.constants or [0.0], dtype=torch.float32, device="cpu")
        self.native = NativeProgram(
            *(Phase(a.data_ptr(), len(a) // WIDTH) for a in self._arrays),
            *(a.data_ptr() for a in (self._lists, self._constants, self._places)),
            *(self.places, self.choices, *sent),
            *(self.layout.size, fixed + sum(s.size for s in builder.gradients), fixed),
            *(fixed + sum(s.size for s in builder.gradients), tape, builder.chunk, inputs.shape[1]),
            inputs.shape[-1] if inputs.is_floating_point() else 0,
        )
        self.takes_weights = inputs.is_floating_point()
        self.symbols = _symbols([*builder.before, *builder.forward])
        self.operations = {name: [o.code.name for o in ops] for name, ops in vars(builder).items() if name in PHASES}


def chunk_for(parameters: int) -> int:
    """Return the best number of rows of a chunk for a model with this number of parameters."""
    return CHUNK_OF_LARGE if parameters > LARGE else CHUNK


PHASES = ("before", "forward", "backward", "after")


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its class."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _symbols(operations: list[Operation]) -> int | None:
    """Return the smallest number of rows of a table that tokens look up; None if no operation looks tokens up."""
    found: list[int] = []
    for operation in operations:
        if operation.code == Code.EMBED:  # table, rows of it, out, columns, bias, first token, places, values
            rows, places, values = (number(operation.fields[i]) for i in (1, 6, 7))
            found.append(rows - (places - 1) * values)
        elif operation.code == Code.COUNT:  # columns, ...
            found.append(number(operation.fields[0]))
    return min(found, default=None)


def _first(slabs: list[Slab] | None) -> Slab | None:
    return slabs[0] if slabs else None


def _numbers(operations: list[Operation], lists: list[int]) -> Tensor:
    rows: list[int] = []
    for operation in operations:
        fields = [number(f) for f in operation.fields]
        for where, addresses in operation.lists:
            fields[where] = len(lists)
            lists += [number(a) for a in addresses]
        row = [int(operation.code), -1 if operation.rows is None else operation.rows, *fields]
        assert len(row) <= WIDTH, (Code(operation.code), len(row))
        rows += [*row, *[0] * (WIDTH - len(row))]
    return torch.tensor(rows, dtype=torch.long, device="cpu")


def _examples(model: nn.Module, inputs: Tensor) -> Tensor:
    """Return a small batch like `inputs`, with a size that no other axis has."""
    sizes = {n for p in model.parameters() for n in p.shape} | set(inputs.shape[1:])
    sizes.add(getattr(model, "message_length", 0))
    batch = next(n for n in range(UNUSUAL, UNUSUAL + len(sizes) + 1) if n not in sizes)
    return inputs[torch.arange(batch, device="cpu") % len(inputs)].contiguous()
