"""A model run by a native program inside PyTorch, for losses that compiled code does not implement."""

import copy
import ctypes
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core import native
from icy.core.errors import IncompatibleError
from icy.core.noise import Noise, current_noise, drawing_from

from .builder import NotNativeError
from .calls import ALIGNMENT, PACKAGE, PLACE_BYTES, POINTER, WHOLE, Caller, Loss, Optimizer, ProgramPass, bytes_of
from .program import Program, first_line

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

Pass = tuple[Float[Tensor, "batch place choice"], dict[str, Tensor]]  # scores, and gradients by name


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
    if not _stranger(model):
        keys, _ = _keys(training)
        parameters = program.layout.pack(dict(model.named_parameters()))[None]
        _require_close(caller.scores(program, parameters, program.examples[None], keys)[0], program.expected)
        return
    try:
        scores, gradients = _by_pytorch(program, model, training)
    except Exception as error:  # a third-party module may raise anything for a batch of another size
        raise NotNativeError(first_line(error)) from error
    found, of_found = _by_program(caller, program, model, training)
    _require_close(found, scores)
    whole = sum(float(g.norm()) ** 2 for g in gradients.values()) ** 0.5
    for name, gradient in gradients.items():
        if (of_found[name] - gradient).norm() > GRADIENTS * gradient.norm() + NOTHING * whole:
            raise NotNativeError(f"its traced program gives another gradient of {name}")


def _require_close(found: Tensor, scores: Tensor) -> None:
    if not torch.allclose(found, scores, rtol=SCORES, atol=SCORES):
        raise NotNativeError("its traced program gives other scores")


def _stranger(model: nn.Module) -> bool:
    """Return whether a model has a module that is not part of icy or PyTorch."""
    return any(type(module).__module__.partition(".")[0] not in ("icy", "torch") for module in model.modules())


def _examples(program: Program) -> Tensor:
    """Return more examples than in the trace, in two chunks."""
    count = program.native.chunk + len(program.examples)
    return program.examples[torch.arange(count, device="cpu") % len(program.examples)]


def _keys(training: bool) -> tuple[Tensor, AbstractContextManager[None]]:
    """Return the key of an update's noise for the compiled code, and a context in which a model draws from it."""
    key = torch.zeros(1, dtype=torch.long, device="cpu")
    return key, drawing_from(Noise(key[0])) if training else nullcontext()


def _weights(scores: Float[Tensor, "batch place choice"]) -> Float[Tensor, "batch place choice"]:
    """Return distinct weights of both signs. The gradients of the weighted sum of scores are compared."""
    return torch.arange(scores.numel(), device="cpu").mul(0.7).cos().view(scores.shape)


def _by_program(caller: Caller, program: Program, model: nn.Module, training: bool) -> Pass:
    layout, inputs = program.layout, _examples(program)[None]
    parameters = layout.pack(dict(model.named_parameters()))[None]
    keys, _ = _keys(training)
    if not training:
        return caller.scores(program, parameters, inputs)[0], {}
    given = _asking([parameters.requires_grad_()], inputs)
    scores: Tensor = ProgramPass.apply(caller, program, parameters, inputs, keys)  # type: ignore[no-untyped-call]
    gradients = torch.autograd.grad((scores[0] * _weights(scores[0])).sum(), given)
    views = layout.views(gradients[0][0])
    of_parameters = {name: views[name].reshape(shape) for name, shape in layout.shapes.items()}
    return scores[0].detach(), of_parameters | dict(zip([INPUT], (g[0] for g in gradients[1:]), strict=False))


def _by_pytorch(program: Program, model: nn.Module, training: bool) -> Pass:
    model, inputs = copy.deepcopy(model).float().train(training), _examples(program)  # in which every engine trains
    _, drawing = _keys(training)
    if not training:
        with torch.no_grad():
            return model(inputs), {}
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    given = _asking(list(trained.values()), inputs)
    with torch.enable_grad(), drawing:
        scores: Tensor = model(inputs)
        loss = (scores * _weights(scores)).sum()
    gradients = torch.autograd.grad(loss, given, allow_unused=True, materialize_grads=True)
    return scores.detach(), dict(zip([*trained, INPUT], gradients, strict=False))


def _asking(parameters: list[Tensor], inputs: Tensor) -> list[Tensor]:
    """Return the tensors that need gradients: parameters, and inputs that are weights."""
    return [*parameters, inputs.requires_grad_()] if inputs.is_floating_point() else parameters


# -- call the compiled code that trains pairs: a sender, a representation and a receiver -------------------------------


RELAXED, ONE_HOT, DRAWN, ROUNDED, NEAREST = range(5)  # `enum LinkKind` of pair.h


class Link(ctypes.Structure):
    """`struct Link` of pair.h."""

    _fields_ = [
        *((n, WHOLE) for n in ("kind", "places", "choices", "emitted", "noisy")),
        *((n, ctypes.c_double) for n in ("temperature", "levels", "commitment")),
        ("codes", WHOLE),
    ]


class PairTraining(ctypes.Structure):
    """`struct PairTraining` of pair.h."""

    _fields_ = [
        ("link", Link),
        ("loss", Loss),
        ("optimizer", Optimizer),
        *((n, WHOLE) for n in ("replicates", "updates", "batch", "padded", "receiver", "codes")),
        *((n, POINTER) for n in ("parameters", "first_moments", "second_moments", "trained")),
        *((n, POINTER) for n in ("meanings", "keys", "losses", "right", "sent")),
    ]


class PairCaller(Caller):
    """Calls the compiled code for each pair of a stack."""

    def __init__(self) -> None:
        super().__init__()
        library = native.load(PACKAGE)
        assert library is not None
        self._train_pair = library.function("icy_train_pair", None, POINTER, POINTER, POINTER, WHOLE, POINTER)

    def train_pairs(self, sender: Program, receiver: Program, training: PairTraining) -> None:
        """Update every pair.

        Raises:
            NotNativeError: the chunks of the programs differ, or the receiver cannot read the sender's messages.
        """
        one, other, link, batch = sender.native, receiver.native, training.link, training.batch
        fitting = (sender.places, sender.choices, other.chunk) == (other.tokens, other.weighted, one.chunk)
        if not fitting or (link.places, link.choices) != (sender.places, sender.choices):
            raise NotNativeError("its receiver cannot read the messages of its sender")
        chunks = sender.chunks(batch) if link.kind == DRAWN else 1
        parts = [
            n
            for program in (one, other)
            for n in (PLACE_BYTES * program.place_count, 4 * program.tape * chunks, 4 * program.weights)
        ]
        messages = [4 * one.chunk * link.places * link.choices] * 3
        answers = 4 * batch * receiver.places
        size = bytes_of(
            4 * training.padded, *parts, *messages, 4 * batch * link.places, answers, answers, 4 * batch, ALIGNMENT
        )
        programs, of_training = [ctypes.addressof(p) for p in (one, other)], ctypes.addressof(training)
        self._share(lambda i, space: self._train_pair(*programs, of_training, i, space), training.replicates, size)


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
        named = dict(self.named_parameters())
        shapes = program.layout.shapes
        stacked = any(named[name].dim() > len(shape) for name, shape in shapes.items())
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
        for name, shape in layout.shapes.items():
            value = named[name] if stacked else named[name].unsqueeze(0)
            parts.append(F.pad(value.flatten(1), (layout.offsets[name] - end, 0)))
            end = layout.offsets[name] + shape.numel()
        return torch.cat([*parts[:-1], F.pad(parts[-1], (0, layout.padded - end))], 1)
