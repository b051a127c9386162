"""Compare a native program's results with PyTorch's.

A trace holds the computations of a model. It does not hold changes of the backward pass in a third-party model
(`no_grad`, a hook, or its own `autograd.Function`), or its behavior for a batch of another size. Models with only
modules of icy and PyTorch have no code like this, and icy's tests compare their gradients. For these models it is
enough to compare the scores of the traced batch, because a comparison takes as long as some updates.
"""

import copy
from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Float
from torch import Tensor, nn

from icy.core.noise import Noise, drawing_from

from .builder import NotNativeError
from .calls import Caller, ProgramPass
from .program import Program, first_line

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
