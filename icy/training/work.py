"""What one update of a model consists of; the time of rows that are not timed is inferred from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """Work of one update of one replicate, in units of its forward pass, to which the backward pass is proportional.

    Attributes:
        calls: operations, which cost some time whatever their size; a stack shares them.
        elements: numbers that they read or write, whichever are more.
        flops: floating-point operations of matrix products and convolutions.
        kept: bytes in memory: what the forward pass keeps for the backward pass, and all copies of the parameters.
        weight: how much longer one of these operations takes than of a product of matrices.
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

    def units(self, replicates: int) -> tuple[float, float, float]:
        """Return what the time of an update of a stack is a sum of: its calls, elements and operations of products."""
        return self.calls, self.elements * replicates, self.weight * self.flops * replicates

    def usual_seconds(self, replicates: int) -> float:
        """Return the seconds of an update of a stack on one core of a usual processor."""
        return sum(rate * number for rate, number in zip(USUAL_RATES, self.units(replicates), strict=True))


# Seconds per call, per element and per operation of products, forward and backward pass together: least squares of
# relative errors over 22 models of the zoo at 5x10 and 3x4, by native cores on one core of a server; they gave 0.6 to
# 1.4 times what was measured. A call costs next to nothing there; without native cores it is some 35 us.
USUAL_RATES = (1.5e-5, 2.3e-10, 4.2e-11)
