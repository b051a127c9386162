"""Optimizers of one vector of parameters: Adam with PyTorch's fused operation, others with `torch.optim`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from icy.config.settings import OPTIMIZERS
from icy.core.types import State

BETAS = 0.9, 0.999  # of the moving averages of the gradient and of its square
EPSILON = 1e-8


class Adam:
    """Adam (Kingma & Ba 2015), with exactly the numbers of `torch.optim.Adam(fused=True, capturable=True)`.

    Optimizers of `torch.optim` import PyTorch's compiler, which takes one to two seconds in every process; this class
    does not.

    Args:
        weights: the parameters, a vector; changed in place.
        gradient: gradient of the weights; read at every step.
        learning_rate: step size.

    Attributes:
        steps: number of steps, a tensor on the device of the weights, so that captured steps are counted.
        moments: moving averages of the gradient and of its square, by their names in PyTorch; vectors.
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
        """Update the weights by the gradient."""
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


class AgedAdam(Adam):
    """Adam for parameters with different numbers of steps: new parameters replace others during the training.

    Attributes:
        moments: also the number of steps of each parameter, "age".
    """

    def __init__(self, weights: Tensor, gradient: Tensor, learning_rate: float) -> None:
        super().__init__(weights, gradient, learning_rate)
        self.moments["age"] = torch.zeros_like(self._weights)

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights by the gradient."""
        self.steps += 1
        mean, square, age = self.moments.values()
        age += 1
        mean.lerp_(self._gradient, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(self._gradient, self._gradient, value=1 - BETAS[1])
        # 1 - beta ** age, exact also for the first steps
        of_mean, of_square = (-torch.expm1(age * math.log(beta)) for beta in BETAS)
        root = square.div(of_square).sqrt_().add_(EPSILON)
        self._weights.addcdiv_(mean / of_mean, root, value=-self._learning_rate)


class OfTorch:
    """An element-wise optimizer of `torch.optim`, with its default settings except the learning rate.

    Args:
        name: name of the optimizer in the setting `optimizer`.
        weights: the parameters, a vector; changed in place.
        gradient: gradient of the weights; read at every step.
        learning_rate: step size.
        frozen: mask of frozen parameters, a vector; None if all are trained.

    Attributes:
        steps: the other parts of the optimizer's state, such as the number of steps; empty before the first step.
        moments: the vectors in the optimizer's state, by their names in PyTorch; empty before the first step.
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
        """Update the weights by the gradient."""
        before = None if self._frozen is None else self._vector[self._frozen]
        self._optimizer.step()
        if before is not None:  # weight decay changes frozen parameters, so restore them
            self._vector[self._frozen] = before
