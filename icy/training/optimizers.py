"""Optimizers of one vector of parameters: Adam by PyTorch's fused operation, others by `torch.optim`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from icy.config.settings import OPTIMIZERS
from icy.core.types import State

BETAS = 0.9, 0.999  # of the moving averages of the gradient and of its square
EPSILON = 1e-8


class Adam:
    """Adam (Kingma & Ba 2015): the numbers of `torch.optim.Adam(fused=True, capturable=True)`, to the last bit.

    Not `torch.optim`, which imports PyTorch's compiler when an optimizer is made: one to two seconds of every process.

    Args:
        weights: the parameters, a vector; changed in place.
        gradient: of the weights; read at every step.
        learning_rate: step size.

    Attributes:
        steps: steps made, a tensor on the device of the weights, so that a captured step counts too.
        moments: moving averages of the gradient and of its square, by the names that PyTorch gives them; vectors.
    """

    def __init__(self, weights: Tensor, gradient: Tensor, learning_rate: float) -> None:
        self._weights, self._gradient, self._learning_rate = weights.detach(), gradient, learning_rate
        self.steps = torch.zeros((), device=weights.device)
        self.moments = {name: torch.zeros_like(self._weights) for name in ("exp_avg", "exp_avg_sq")}

    def load(self, moments: Mapping[str, Tensor], steps: Any) -> None:
        """Continue from the moments and steps of another optimizer of this kind."""
        for name, moment in self.moments.items():
            moment.copy_(moments[name])
        self.steps.copy_(steps)

    @torch.no_grad()
    def step(self) -> None:
        """Change the weights by the gradient."""
        self.steps += 1
        torch._fused_adam_(
            *([self._weights], [self._gradient], *([moment] for moment in self.moments.values()), [], [self.steps]),
            lr=self._learning_rate,
            beta1=BETAS[0],
            beta2=BETAS[1],
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )


class OfTorch:
    """An optimizer of `torch.optim` that works number by number, with its default settings except the learning rate.

    Args:
        name: as in the setting `optimizer`.
        weights: the parameters, a vector; changed in place.
        gradient: of the weights; read at every step.
        learning_rate: step size.
        frozen: which numbers stay as they are, a vector; None if all are trained.

    Attributes:
        steps: the other parts of its state, such as the number of steps; empty before the first step.
        moments: the parts of its state that are vectors, by the names that PyTorch gives them; likewise.
    """

    def __init__(
        self, name: str, weights: Tensor, gradient: Tensor, learning_rate: float, frozen: Tensor | None = None
    ) -> None:
        self._vector = nn.Parameter(weights.detach())
        self._vector.grad = gradient
        self._frozen = frozen
        self._optimizer: torch.optim.Optimizer = getattr(torch.optim, OPTIMIZERS[name])(
            [self._vector], lr=learning_rate
        )

    @property
    def moments(self) -> dict[str, Tensor]:
        return {name: part for name, part in self._state.items() if self._is_vector(part)}

    @property
    def steps(self) -> State:
        return {name: part for name, part in self._state.items() if not self._is_vector(part)}

    @property
    def _state(self) -> State:
        return dict(self._optimizer.state.get(self._vector, {}))

    def _is_vector(self, part: Any) -> bool:
        return isinstance(part, Tensor) and part.ndim > 0

    def load(self, moments: Mapping[str, Tensor], steps: Any) -> None:
        """Continue from the moments and steps of another optimizer of this kind."""
        if moments or steps:
            self._optimizer.state[self._vector] = {**moments, **steps}

    @torch.no_grad()
    def step(self) -> None:
        """Change the weights by the gradient."""
        before = None if self._frozen is None else self._vector[self._frozen]
        self._optimizer.step()
        if before is not None:  # by weight decay
            self._vector[self._frozen] = before
