"""Call the compiled code on stacks of replicates, and run a model by it inside PyTorch."""

import copy
import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core import native
from icy.core.errors import IncompatibleError
from icy.core.fused import Context, Gradients
from icy.core.native import address
from icy.core.noise import Noise, current_noise, drawing_from

from .builder import NotNativeError
from .program import Program, first_line

PACKAGE = "icy.models.native"
POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64

CROSS_ENTROPY, STRAIGHT_THROUGH, LEAST_SQUARES, REINFORCE = range(4)  # `enum LossKind` of losses.h
OPTIMIZERS = {"adam": 0, "rmsprop": 1}  # as in program.cpp


class Loss(ctypes.Structure):
    """`struct Loss` of losses.h."""

    _fields_ = [
        *((n, WHOLE) for n in ("kind", "places", "choices", "end")),
        *((n, ctypes.c_double) for n in ("scale", "temperature", "reward", "entropy")),
    ]


class Optimizer(ctypes.Structure):
    """`struct Optimizer` of program.cpp."""

    _fields_ = [("rate", ctypes.c_double), ("clip", ctypes.c_double), ("step", WHOLE), ("kind", WHOLE)]


class Training(ctypes.Structure):
    """`struct Training` of program.cpp."""

    _fields_ = [
        *((n, POINTER) for n in ("program", "talk", "judge")),
        ("loss", Loss),
        ("optimizer", Optimizer),
        *((n, WHOLE) for n in ("replicates", "updates", "batch", "padded", "targets", "candidates", "shown")),
        *((n, POINTER) for n in ("parameters", "first_moments", "second_moments", "trained")),
        *((n, POINTER) for n in ("inputs", "answers", "keys", "losses", "draws")),
        ("of_meanings", WHOLE),
        *((n, POINTER) for n in ("right", "sent")),
    ]


class Pass(ctypes.Structure):
    """`struct Pass` of program.cpp."""

    _fields_ = [
        *((n, WHOLE) for n in ("batch", "padded")),
        *((n, POINTER) for n in ("parameters", "gradients", "tokens", "input", "to_input", "keys", "scores")),
        *((n, POINTER) for n in ("targets", "right", "tapes", "draws")),
        ("of_meanings", WHOLE),
    ]


class Draws(ctypes.Structure):
    """`struct Draws` of program.cpp."""

    _fields_ = [
        *((n, WHOLE) for n in ("batches", "replicates", "batch", "attributes", "length", "first")),
        *((n, POINTER) for n in ("sizes", "keys", "rows", "tables", "meanings", "messages")),
    ]


class TurnDraws(ctypes.Structure):
    """`struct TurnDraws` of turns.cpp."""

    _fields_ = [
        *((n, WHOLE) for n in ("turns", "objects", "attributes", "stream", "borders")),
        *((n, POINTER) for n in ("keys", "rules", "table", "groupings", "shares", "sizes", "values", "looks")),
    ]


def available() -> bool:
    """Return whether there is compiled code."""
    return native.load(PACKAGE) is not None


class Drawing(NamedTuple):
    """Batches of meanings and their messages, for compiled code to draw.

    Attributes:
        keys: key of each replicate's stream.
        rows: first row of each replicate's table.
        tables: messages, 8-bit.
        symbols: upper limit of the symbols in the tables, exclusive.
        first: number of the first batch in the stream.
        batches, batch: number of batches, and number of meanings in each.
        sizes: number of values of each attribute.
    """

    keys: Int[Tensor, " replicate"]
    rows: Int[Tensor, " replicate"]
    tables: UInt8[Tensor, "row length"]
    symbols: int
    first: int
    batches: int
    batch: int
    sizes: Int[Tensor, " attr"]

    def draws(self) -> Draws:
        """Return the description for the compiled code, which is valid as long as these tensors.

        Raises:
            IncompatibleError: a tensor has a wrong dtype, device or size, or a table lacks rows.
        """
        replicates, attributes, (height, length) = len(self.keys), len(self.sizes), self.tables.shape
        if int(self.rows.min()) < 0 or int(self.rows.max()) + math.prod(self.sizes.tolist()) > height:
            raise IncompatibleError(f"A table of messages has {height} rows; it needs one row per meaning.")
        return Draws(
            self.batches, replicates, self.batch, attributes, length, self.first,
            address(self.sizes, "int64", attributes, "sizes"), address(self.keys, "int64", replicates, "keys"),
            address(self.rows, "int64", replicates, "rows"), address(self.tables, "uint8", height * length, "tables"),
        )  # fmt: skip

    def checked(self, program: Program, replicates: int, of_meanings: bool) -> Draws:
        """Return the description for a stack of a model; its inputs are the meanings, or the messages.

        Raises:
            IncompatibleError: as `draws`, or the model does not take these inputs and targets.
        """
        draws = self.draws()
        sides = [(draws.attributes, int(self.sizes.max())), (draws.length, self.symbols)]
        (inputs, symbols), (targets, _) = sides if of_meanings else sides[::-1]
        if program.takes_weights or (inputs, targets) != (program.native.tokens, program.places):
            raise IncompatibleError(f"The model does not take {inputs} tokens for {targets} targets.")
        if program.symbols is not None and symbols > program.symbols:
            raise IncompatibleError(f"Tokens must be 0 to {program.symbols - 1} here, not up to {symbols - 1}.")
        if draws.replicates != replicates:
            raise IncompatibleError(f"The batches are of {draws.replicates} replicates, not of {replicates}.")
        return draws


class Caller:
    """Calls the compiled code for each replicate of a stack, with as many threads as PyTorch would use.

    Work memory is reused between calls.
    """

    def __init__(self) -> None:
        library = native.load(PACKAGE)
        assert library is not None
        self._train = library.function("icy_train", WHOLE, POINTER, WHOLE, POINTER)
        self._pass = library.function("icy_pass", WHOLE, POINTER, POINTER, WHOLE, WHOLE, POINTER)
        self._spaces: list[Tensor] = []
        self._free: list[Tensor] = []

    def train(self, training: Training) -> None:
        """Update every replicate."""
        address = ctypes.addressof(training)
        self._share(lambda i, space: self._train(address, i, space), training.replicates)

    def run(self, program: Program, one: Pass, replicates: int, back: bool) -> None:
        """Compute scores, or gradients."""
        addresses = ctypes.addressof(program.native), ctypes.addressof(one)
        self._share(lambda i, space: self._pass(*addresses, i, int(back), space), replicates)

    def borrow(self, size: int) -> Float[Tensor, " size"]:
        """Return memory for `size` numbers, reused from a pass that has finished its backward pass if possible."""
        for i, space in enumerate(self._free):
            if len(space) == size:
                return self._free.pop(i)
        self._free.clear()  # memory for another size of stack or batch
        return torch.zeros(size, dtype=torch.float32, device="cpu")

    def release(self, space: Float[Tensor, " size"]) -> None:
        """Give borrowed memory back, for use in the next pass."""
        self._free.append(space)

    def _share(self, function: Callable[[int, int | None], int], replicates: int) -> None:
        """Call a function with each replicate and work memory; without memory, it returns how many bytes it needs."""
        size = function(0, None)
        threads = max(1, min(torch.get_num_threads(), replicates))
        while len(self._spaces) < threads or any(len(s) < size for s in self._spaces[:threads]):
            self._spaces = [torch.zeros(size, dtype=torch.uint8, device="cpu") for _ in range(threads)]
        places = [s.data_ptr() for s in self._spaces]

        def run(thread: int) -> None:
            for replicate in range(thread, replicates, threads):
                function(replicate, places[thread])

        if threads == 1:
            run(0)
            return
        with ThreadPoolExecutor(threads) as pool:  # ctypes releases the lock during calls
            list(pool.map(run, range(threads)))

    def scores(
        self,
        program: Program,
        parameters: Float[Tensor, "replicate padded"],
        inputs: Shaped[Tensor, "replicate batch ..."],
        keys: Int[Tensor, " replicate"] | None = None,
    ) -> Float[Tensor, "replicate batch place choice"]:
        """Return the scores of replicates."""
        found, one, _ = _described(program, parameters, inputs, keys)
        self.run(program, one, len(inputs), False)
        return found

    def right(
        self,
        program: Program,
        parameters: Float[Tensor, "replicate padded"],
        inputs: Shaped[Tensor, "replicate batch ..."],
        targets: Int[Tensor, "replicate batch place"],
    ) -> Int[Tensor, " replicate"]:
        """Return the number of places of each replicate with the largest score at the target."""
        _, one, held = _described(program, parameters, inputs, None)
        replicates, batch = inputs.shape[:2]
        targets, found = targets.long().contiguous(), torch.zeros(replicates, dtype=torch.long, device="cpu")
        one.targets = address(targets, "int64", replicates * batch * program.places, "targets")
        one.right = found.data_ptr()
        self.run(program, one, len(held[1]), False)
        return found

    def right_of_draws(
        self, program: Program, parameters: Float[Tensor, "replicate padded"], drawing: Drawing, of_meanings: bool
    ) -> Int[Tensor, " replicate"]:
        """Return the same for a batch that compiled code draws; its meanings are the inputs, or the targets.

        Raises:
            IncompatibleError: the model does not take these batches.
        """
        draws, padded = drawing.checked(program, len(parameters), of_meanings), program.layout.padded
        found = torch.zeros(draws.replicates, dtype=torch.long, device="cpu")
        one = Pass(
            batch=drawing.batch,
            padded=padded,
            parameters=address(parameters, "float32", draws.replicates * padded, "parameters"),
            right=found.data_ptr(),
            draws=ctypes.addressof(draws),
            of_meanings=of_meanings,
        )
        self.run(program, one, draws.replicates, False)
        return found


def draw(
    drawing: Drawing,
) -> tuple[Int[Tensor, "batches replicate batch attr"], Int[Tensor, "batches replicate batch length"]]:
    """Draw meanings, and look up their messages.

    Returns:
        Meanings [batches, replicate, batch, attr] and messages [batches, replicate, batch, length].

    Raises:
        IncompatibleError: as `Drawing.draws`.
    """
    library = native.load(PACKAGE)
    assert library is not None
    function = library.function("icy_draw", None, POINTER, WHOLE)
    draws = drawing.draws()
    shape = drawing.batches, draws.replicates, drawing.batch
    meanings = torch.empty(*shape, draws.attributes, dtype=torch.long, device="cpu")
    messages = torch.empty(*shape, draws.length, dtype=torch.long, device="cpu")
    draws.meanings, draws.messages = meanings.data_ptr(), messages.data_ptr()
    for replicate in range(draws.replicates):
        function(ctypes.addressof(draws), replicate)
    return meanings, messages


def address_of_inputs(program: Program, inputs: Shaped[Tensor, "..."], examples: int) -> int:
    """Return the address of checked inputs of `examples` examples: tokens, or weights over symbols.

    Raises:
        IncompatibleError: the inputs have a wrong dtype, device or size, or a token is not a symbol of the model.
    """
    native_program = program.native
    if program.takes_weights:
        return address(inputs, "float32", examples * native_program.tokens * native_program.weighted, "inputs")
    place = address(inputs, "int64", examples * native_program.tokens, "inputs")
    if inputs.numel() and program.symbols is not None:
        least, most = (int(n) for n in inputs.aminmax())
        if least < 0 or most >= program.symbols:
            raise IncompatibleError(f"Tokens must be 0 to {program.symbols - 1} here, not {least} to {most}.")
    return place


def _described(
    program: Program, parameters: Tensor, inputs: Tensor, keys: Tensor | None
) -> tuple[Tensor, Pass, tuple[Tensor, Tensor, Tensor | None]]:
    """Return the scores' memory, the description of a pass, and objects that must stay alive with it."""
    weights = program.takes_weights
    inputs = (inputs.float() if weights else inputs.long()).contiguous()
    replicates, batch = inputs.shape[:2]
    program.require_fits(batch)
    read = address_of_inputs(program, inputs, replicates * batch)
    one = Pass(
        batch=batch,
        padded=program.layout.padded,
        parameters=address(parameters, "float32", replicates * program.layout.padded, "parameters"),
        tokens=None if weights else read,
        input=read if weights else None,
        keys=None if keys is None else address(keys, "int64", replicates, "keys"),
    )
    found = parameters.new_empty(replicates, batch, program.places, program.choices)
    one.scores = found.data_ptr()
    return found, one, (parameters, inputs, keys)


class ProgramPass(torch.autograd.Function):
    """A pass of a stack as one node of autograd."""

    @staticmethod
    def forward(
        ctx: Context, caller: Caller, program: Program, parameters: Tensor, inputs: Tensor, keys: Tensor
    ) -> Tensor:
        """Return the scores [replicate, batch, place, choice], and save the data of the backward pass."""
        found, one, held = _described(program, parameters.detach(), inputs.detach(), keys)
        size = program.native.weights + program.chunks(inputs.shape[1]) * program.native.tape
        tapes = caller.borrow(len(inputs) * size)
        one.tapes = tapes.data_ptr()
        ctx.caller, ctx.program, ctx.one, ctx.held = caller, program, one, (*held, tapes)
        caller.run(program, one, len(inputs), False)
        return found

    @staticmethod
    def backward(ctx: Context, grad: Tensor) -> Gradients:
        """Return the gradients of the parameters, and of inputs that are weights."""
        parameters, inputs, *_ = ctx.held
        grad, one = grad.contiguous(), ctx.one
        replicates, batch = inputs.shape[:2]
        size = replicates * batch * ctx.program.places * ctx.program.choices
        of_parameters = torch.zeros_like(parameters)
        of_inputs = torch.zeros_like(inputs) if ctx.program.takes_weights else None
        one.gradients, one.scores = of_parameters.data_ptr(), address(grad, "float32", size, "gradient of the scores")
        one.to_input = None if of_inputs is None else of_inputs.data_ptr()
        ctx.caller.run(ctx.program, one, len(inputs), True)
        ctx.caller.release(ctx.held[-1])
        ctx.held = None
        return None, None, of_parameters, of_inputs, None


# -- compare a native program's results with PyTorch's -----------------------------------------------------------------

# A trace holds the computations of a model. It does not hold changes of the backward pass in a third-party model
# (`no_grad`, a hook, or its own `autograd.Function`), or its behavior for a batch of another size. Models with only
# modules of icy and PyTorch have no code like this, and icy's tests compare their gradients. For these models it is
# enough to compare the scores of the traced batch, because a comparison takes as long as some updates.


SCORES = 1e-3  # between scores; about 1e-6 if all is well
GRADIENTS = 1e-2  # relative to the norm of a parameter's gradient; about 1e-6 if all is well
# A gradient with a smaller share of the norm of all gradients is only rounding, such as the gradient of a bias of keys.
NOTHING = 1e-4
INPUT = "its input"

Results = tuple[Float[Tensor, "batch place choice"], dict[str, Tensor]]  # scores, and gradients by name


def require_same(caller: Caller, program: Program, model: nn.Module, training: bool) -> None:
    """Raise unless a program computes the same scores as its model, and in training the same gradients.

    Args:
        caller: caller of the compiled code.
        program: program of the model.
        model: one model of the stack; it is not changed.
        training: whether the program samples as in training, and has a backward pass.

    Raises:
        NotNativeError: the results differ.
    """
    if is_known(model):
        require_same_scores(caller, program)
        return
    own = copy.deepcopy(model).float()  # in which every engine trains
    native = NativeModule(own, [])
    native._programs = {(training, program.takes_weights): program}
    try:
        scores, gradients = _results(own, program, training)
    except Exception as error:  # a third-party module may raise anything for a batch of another size
        raise NotNativeError(first_line(error)) from error
    found, of_found = _results(native, program, training)
    _require_close(found, scores)
    whole = sum(float(g.norm()) ** 2 for g in gradients.values()) ** 0.5
    for name, gradient in gradients.items():
        if (of_found[name] - gradient).norm() > GRADIENTS * gradient.norm() + NOTHING * whole:
            raise NotNativeError(f"its traced program gives another gradient of {name}")


def is_known(model: nn.Module) -> bool:
    """Return whether a model has only modules of icy and PyTorch."""
    return all(type(module).__module__.partition(".")[0] in ("icy", "torch") for module in model.modules())


def require_same_scores(caller: Caller, program: Program) -> None:
    """Raise unless a program computes the scores of the traced batch; see `require_same`."""
    keys = torch.zeros(1, dtype=torch.long, device="cpu")
    found = caller.scores(program, program.initial[None], program.examples[None], keys)
    _require_close(found[0], program.expected)


def _require_close(found: Tensor, scores: Tensor) -> None:
    if not torch.allclose(found, scores, rtol=SCORES, atol=SCORES):
        raise NotNativeError("its traced program gives other scores")


def _results(model: nn.Module, program: Program, training: bool) -> Results:
    """Return a model's scores of two chunks of the traced examples, and in training the gradients of a sum of them.

    The sum has distinct weights of both signs.
    """
    count = program.native.chunk + (0 if program.whole else len(program.examples))
    inputs = program.examples[torch.arange(count, device="cpu") % len(program.examples)]
    model.train(training)
    if not training:
        with torch.no_grad():
            return model(inputs), {}
    given = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if program.takes_weights:
        given[INPUT] = inputs.requires_grad_()  # type: ignore[assignment]
    with torch.enable_grad(), drawing_from(Noise(torch.zeros((), dtype=torch.long, device="cpu"))):
        scores: Tensor = model(inputs)
        loss = (scores * torch.arange(scores.numel(), device="cpu").mul(0.7).cos().view(scores.shape)).sum()
    gradients = torch.autograd.grad(loss, list(given.values()), allow_unused=True, materialize_grads=True)
    return scores.detach(), dict(zip(given, gradients, strict=True))


# -- a model run by compiled code inside PyTorch -----------------------------------------------------------------------


class NativeModule(nn.Module):
    """A module that shares the parameters of another module and computes its scores by native programs.

    Parameters and inputs may have a leading axis, for a stack.

    Args:
        model: the model, without leading axes.
        samples: a small batch of each kind of input to support: tokens [batch, places], or weights over symbols
            [batch, places, choices].

    Raises:
        NotNativeError: the model calls something that no operation implements.
    """

    broadcasts = True

    def __init__(self, model: nn.Module, samples: Sequence[Shaped[Tensor, "batch ..."]]) -> None:
        super().__init__()
        # The same parameter objects, so names and values stay the same as the model's.
        self._parameters, self._modules = model._parameters, model._modules
        self._caller = Caller()
        self._programs = {
            (training, sample.is_floating_point()): Program(model, sample, training, gradient=training)
            for sample in samples
            for training in (True, False)
        }
        for (training, _), program in self._programs.items():
            require_same(self._caller, program, model, training)

    def __deepcopy__(self, memo: dict[int, object]) -> "NativeModule":
        """Copy the parameters; programs do not change."""
        found = self.__class__.__new__(self.__class__)
        memo[id(self)] = found
        nn.Module.__init__(found)
        found._parameters, found._modules = copy.deepcopy(self._parameters, memo), copy.deepcopy(self._modules, memo)
        found._caller, found._programs = Caller(), self._programs
        return found.train(self.training)

    def forward(self, inputs: Shaped[Tensor, "..."]) -> Float[Tensor, "*stack batch place choice"]:
        """Return the scores, with a leading axis if the parameters have one.

        Raises:
            IncompatibleError: inputs of a kind without a sample, or parameters that are not float32.
        """
        weights = inputs.is_floating_point()
        program = self._programs.get((self.training, weights))
        if program is None:
            kind = "weights over symbols" if weights else "tokens"
            raise IncompatibleError(f"This module does not accept {kind}: create it with a sample of {kind}.")
        named, shapes = dict(self.named_parameters()), program.layout.shapes
        stacked = any(parameter.dim() > len(shapes[name]) for name, parameter in named.items())
        parameters = self._packed(program, named, stacked)
        inputs = inputs if stacked else inputs.unsqueeze(0)
        inputs = inputs.expand(len(parameters), *inputs.shape[1:])
        if self.training:
            keys = current_noise(inputs.device).keys.expand(len(parameters)).contiguous()
            found: Tensor = ProgramPass.apply(self._caller, program, parameters, inputs, keys)  # type: ignore[no-untyped-call]
        else:
            found = self._caller.scores(program, parameters.detach(), inputs)
        return found if stacked else found.squeeze(0)

    def _packed(self, program: Program, named: Mapping[str, Tensor], stacked: bool) -> Tensor:
        """Return the parameters [replicate, padded] in the program's layout."""
        layout = program.layout
        parts, end = [], 0
        for name in [name for name in layout.shapes if name in named]:
            value = named[name] if stacked else named[name].unsqueeze(0)
            parts.append(F.pad(value.flatten(1), (layout.offsets[name] - end, 0)))
            end = layout.offsets[name] + layout.shapes[name].numel()
        return torch.cat([*parts[:-1], F.pad(parts[-1], (0, layout.padded - end))], 1)
