"""A model run by a native program inside PyTorch, for losses that compiled code does not implement."""

import copy
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import IncompatibleError
from icy.core.noise import current_noise

from .calls import Caller, ProgramPass
from .program import Program
from .verify import require_same


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
