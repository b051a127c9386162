"""The learner of populations: in every update, senders and receivers play with random partners.

A population is a stack of pairs: row k has sender k and receiver k. In a pairing of sender i and receiver j, a row uses
the parameters of sender i (with its representation) and of receiver j, and gradients return to both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from icy.core.types import State
from icy.training.populations import Population

from .gradient import Adam, AgedAdam, GradientLearner, OfTorch
from .stack import Owners

RECEIVER, SENDER = "receiver.", ""  # beginnings of the names of parameters; a representation belongs to its sender


class PopulationLearner(GradientLearner):
    """The rows of several populations as one stack.

    Methods of a learner count populations, not rows.

    Args:
        *given: arguments of GradientLearner, with a pair per row.
        population: the agents of every population.
        **more: further arguments of GradientLearner.
    """

    parts = RECEIVER, SENDER

    def __init__(self, *given: Any, population: Population, **more: Any) -> None:
        self._population = population
        super().__init__(*given, **more)

    def _new_optimizer(self) -> Adam | OfTorch:
        if not self._population.replace_every:
            return super()._new_optimizer()
        return AgedAdam(self._stack.flat, self._stack.flat_grad, self._learning_rate)

    def _owners(self, partners: Tensor) -> Owners:
        """Return the rows that own the parameters, for pairings [2, row] and the copies of the last row."""
        own = torch.arange(self._count, self._count + self._copies, device=partners.device).expand(2, -1)
        senders, receivers = torch.cat([partners, own], 1)
        return {RECEIVER: receivers, SENDER: senders}

    def meet(self, partners: Tensor, meanings: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of senders and receivers in evaluation mode.

        Args:
            partners: rows of the sender and the receiver of each pairing, [2, row].
            meanings: meanings of each pairing, [row, batch, attribute].
        """
        senders, receivers = partners
        sent, answered = self._evaluate(meanings, owners={RECEIVER: receivers, SENDER: senders})
        return sent, answered

    def renew(self, row: int, weights: Mapping[str, Tensor]) -> None:
        """Replace the weights of these names in a row by new weights, with a new state of the optimizer."""
        self._stack.load(row, {**self._stack.state(row), **weights})
        for flat in self._optimizer.moments.values():
            for name, view in self._stack.views(flat).items():
                if name in weights:
                    view[row].zero_()

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return the weights of a population, as the state of a ModuleList of pairs (see `saved_pair`)."""
        population = self._population
        rows = population.rows([place])
        found: dict[str, Tensor] = {}
        for k in range(population.size):
            senders = super().weights(rows[k % population.senders])
            receivers = super().weights(rows[k % population.receivers])
            found |= {f"{k}.{n}": (receivers if n.startswith(RECEIVER) else senders)[n] for n in senders}
        return found

    def losses(self) -> Tensor | None:
        """Return the sum of the losses of the pairings of each population at the last update."""
        found = super().losses()
        return None if found is None else found.view(-1, self._population.size).sum(1)

    def state(self, place: int) -> State:
        """Return a copy of the training state of a population, for `resume`."""
        return {"rows": [super(PopulationLearner, self).state(row) for row in self._population.rows([place])]}

    def resume(self, states: Sequence[State]) -> None:
        """Resume from the `state` of each population; all states have the same number of updates."""
        super().resume([row for state in states for row in state["rows"]])

    def keep(self, which: list[int]) -> None:
        """Keep only these populations."""
        super().keep(self._population.rows(which))


def agreement(words: Tensor) -> float | None:
    """Return the agreement of senders: the mean share of equal tokens, over all pairs of senders and all meanings.

    Tokens are compared place by place, also within words of several tokens.

    Args:
        words: tokens of each sender for the same meanings, [sender, meaning, place].

    Returns:
        The share, from 0 to 1; None for a single sender.
    """
    shares = [float((one == other).double().mean()) for one, other in combinations(words, 2)]
    return fmean(shares) if shares else None
