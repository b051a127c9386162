"""The work of one update of a model, from which the time of rows that are not timed is inferred."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Work:
    """Work of one update of one replicate. Only the forward pass is counted, as the backward pass is proportional.

    Attributes:
        calls: number of operations; each has a fixed cost, which is shared by all replicates of a stack.
        elements: numbers that the operations read or write, whichever are more.
        flops: floating-point operations of matrix products and convolutions.
        kept: bytes in memory: tensors that the forward pass keeps for the backward pass, and all copies of parameters.
        weight: time of one of these floating-point operations, relative to that of a matrix product.
    """

    calls: float
    elements: float
    flops: float
    kept: float
    weight: float = 1.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.calls + other.calls,
            self.elements + other.elements,
            self.flops + other.flops,
            self.kept + other.kept,
        )

    def times(self, models: int) -> Work:
        """Return the work of an update of several models that one stack runs, so that they share calls."""
        return replace(self, elements=self.elements * models, flops=self.flops * models, kept=self.kept * models)

    def units(self, replicates: int) -> tuple[float, float, float]:
        """Return the terms of the time of an update of a stack: its calls, elements and operations of products."""
        return self.calls, self.elements * replicates, self.weight * self.flops * replicates

    def usual_seconds(self, replicates: int) -> float:
        """Return the seconds of an update of a stack on one core of a typical processor."""
        return sum(rate * number for rate, number in zip(USUAL_RATES, self.units(replicates), strict=True))


# Seconds per call, per element and per operation of products, forward and backward pass together: least squares of
# relative errors over 22 models of the zoo at 5x10 and 3x4, by native cores on one core of a server. Predictions are
# 0.6 to 1.4 times the measured times. With native cores a call costs almost nothing; without, about 35 us.
USUAL_RATES = (1.5e-5, 2.3e-10, 4.2e-11)
