"""Adam on one vector of parameters, by PyTorch's fused operation."""

from __future__ import annotations

import torch
from torch import Tensor

BETAS = 0.9, 0.999  # of the moving averages of the gradient and of its square
EPSILON = 1e-8


class Adam:
    """Adam (Kingma & Ba 2015): the numbers of `torch.optim.Adam(fused=True, capturable=True)`, to the last bit.

    Not `torch.optim`, which imports PyTorch's compiler when an optimiser is made: one to two seconds of every process.

    Args:
        weights: what is trained, a vector; changed in place.
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
