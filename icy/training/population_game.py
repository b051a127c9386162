"""The game of populations: in every update, senders and receivers play with random partners.

A population is a stack of pairs: row k has sender k and receiver k. In a pairing of sender i and receiver j, a row uses
the parameters of sender i (with its representation) and of receiver j, and gradients return to both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from icy.core.representations import cross_entropy
from icy.core.types import State
from icy.languages.language import Language
from icy.languages.meanings import IntArray
from icy.records.record import spoken_file
from icy.training.populations import Population, member_seed

from .batches import EQUALLY
from .gradient import Adam, AgedAdam, GradientLearner, OfTorch
from .job import Outcome, Replicate
from .learners import examples_at_once
from .pair_game import FAR, PairStack, PlayingPair, Row, emerged, finite, finite_mean, topsim_of
from .stack import Owners
from .task_models import Pair, make_pair

RECEIVER, SENDER = "receiver.", ""  # beginnings of the names of parameters; a representation belongs to its sender
CURVE = "population_curve"  # field of a record: points of (updates, worst accuracy, agreement of the senders)


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

    def rows_of(self, which: Iterable[int]) -> list[int]:
        """Return the rows of some populations."""
        size = self._population.size
        return [place * size + k for place in which for k in range(size)]

    def weights(self, place: int) -> dict[str, Tensor]:
        """Return the weights of a population, as the state of a ModuleList of pairs (see `saved_pair`)."""
        rows, population = self.rows_of([place]), self._population
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
        return {"rows": [super(PopulationLearner, self).state(row) for row in self.rows_of([place])]}

    def resume(self, states: Sequence[State]) -> None:
        """Resume from the `state` of each population; all states have the same number of updates."""
        super().resume([row for state in states for row in state["rows"]])

    def keep(self, which: list[int]) -> None:
        """Keep only these populations."""
        super().keep(self.rows_of(which))


class PopulationStack(PairStack):
    """Joint training of several populations, all from scratch."""

    learner: PopulationLearner

    @property
    def population(self) -> Population:
        """The agents of every population."""
        population: Population = self.job.settings.population
        return population

    def _rows(self) -> list[Replicate]:
        """Return a replicate per row: row k has the seed of the k-th sender and the k-th receiver."""
        numbers = range(self.population.size)
        replicates = [player.replicate for player in self.players]
        return [replace(r, seed=member_seed(r.seed, k)) for r in replicates for k in numbers]

    def _models(self) -> list[Pair]:
        return [make_pair(self.job.settings, row.seed, self.settings) for row in self._rows()]

    def _by_gradient(self) -> Callable[..., GradientLearner]:
        return partial(PopulationLearner, population=self.population)

    # -- updates -------------------------------------------------------------------------------------------------------

    def _update(self, count: int) -> None:
        while count:
            self._replace_agents()
            some = min(count, self.population.until_replacement(self.updates) or count)
            first = FAR + self.updates
            meanings, _ = self.draws.batches("training", first, some, self.settings.batch_size)
            seeds = [player.replicate.seed for player in self.players]
            drawn = ([self.population.partners(seed, self.updates + n) for seed in seeds] for n in range(some))
            partners = torch.stack([self._in_rows(of_update) for of_update in drawn])
            self.learner.train(meanings, meanings, self.draws.noise(first, some), partners)
            self.tally.updates += some
            self.updates += some
            count -= some

    def _in_rows(self, partners: Sequence[IntArray]) -> Tensor:
        """Return the rows of the sender and the receiver of each pairing, from their numbers in each population."""
        size = self.population.size
        rows = np.concatenate([numbers + place * size for place, numbers in enumerate(partners)], 1)
        return torch.from_numpy(rows).to(self.job.device)

    def _replace_agents(self) -> None:
        """Replace the agents that new agents replace before the next update."""
        for place, player in enumerate(self.players):
            seed = player.replicate.seed
            for side, numbers in self.population.replaced(seed, self.updates).items():
                for number in numbers:
                    new = make_pair(self.job.settings, member_seed(seed, number, self.updates), self.settings)
                    hears = side == "receiver"
                    weights = {n: w for n, w in new.state_dict().items() if n.startswith(RECEIVER) == hears}
                    self.learner.renew(place * self.population.size + number, weights)

    # -- readings ------------------------------------------------------------------------------------------------------

    def _read(self, purpose: str) -> list[Row]:
        """Evaluate all pairings of every population on the same meanings.

        Returns:
            A point of the curve of each population, in the order of `JobKind.curve`: means over pairings and senders.
        """
        size = self.population.size
        drawn, _ = self.draws.batches(purpose, FAR + self.updates, 1, self.settings.evaluation_size)
        meanings = drawn[0, ::size].repeat_interleave(size, 0)
        right, losses, words = self._all_pairings(meanings)
        self._note_lengths(words)
        seen = drawn[0, ::size].cpu()
        self.measured: list[dict[str, Any]] = [
            {
                "pairings": right[i].tolist(),
                "worst_accuracy": float(right[i].min()),
                "sender_agreement": agreement(words[i]),
                "sender_topsims": [topsim_of(seen[i], said, self.settings) for said in words[i]],
            }
            for i in range(len(self.players))
        ]
        means = [(float(of_one.mean()), float(loss.mean())) for of_one, loss in zip(right, losses, strict=True)]
        return [
            [self.updates, accuracy, loss, finite_mean(measured["sender_topsims"]), None, None]
            for (accuracy, loss), measured in zip(means, self.measured, strict=True)
        ]

    def _all_pairings(self, meanings: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Let every sender meet every receiver.

        Args:
            meanings: meanings of each row, [row, batch, attribute].

        Returns:
            Accuracies and losses, [population, sender, receiver]; and greedy words of the senders, [population, sender,
            batch, place].
        """
        some = self.population
        count = len(self.players)
        right = torch.zeros(count, some.senders, some.receivers, dtype=torch.float64, device="cpu")
        losses = torch.zeros_like(right)
        words: dict[int, Tensor] = {}
        for numbers in some.rounds():
            partners, step = self._in_rows([numbers] * count), examples_at_once(meanings)
            parts = [self.learner.meet(partners, some) for some in meanings.split(step, 1)]
            sent, answered = (torch.cat(of_one, 1) for of_one in zip(*parts, strict=True))
            senders, receivers = torch.from_numpy(numbers)
            accuracy = (answered.argmax(-1) == meanings).double().mean((-2, -1))
            # One by one, as the last bits of a mean may depend on the size of the stack.
            loss = torch.stack([cross_entropy(of_one, m).mean() for of_one, m in zip(answered, meanings, strict=True)])
            right[:, senders, receivers] = accuracy.view(count, -1).cpu()
            losses[:, senders, receivers] = loss.view(count, -1).double().cpu()
            said = self.link.greedy_words(sent).cpu().unflatten(0, (count, -1))
            for place, sender in enumerate(senders.tolist()):
                words[sender] = said[:, place]
        return right, losses, torch.stack([words[sender] for sender in range(some.senders)], 1)

    def _note(self, readings: list[Row], due: Iterable[int]) -> None:
        due = list(due)
        super()._note(readings, due)
        for i in due:
            point = [self.updates, *(self.measured[i][name] for name in ("worst_accuracy", "sender_agreement"))]
            self.players[i].before.setdefault(CURVE, []).append(point)

    # -- results -------------------------------------------------------------------------------------------------------

    def _languages(self, which: Sequence[int]) -> dict[int, Language]:
        """Return the greedy messages of the first sender of some populations; `spoken` has all senders."""
        task, count = self.job.settings, self.link.word_count(self.job.settings.vocab_size)
        rows = [i * self.population.size + k for i in which for k in range(self.population.senders)]
        words = iter(self._greedy_words(rows))
        self.spoken = {
            i: [emerged(task, self.players[i].replicate, next(words), count) for _ in range(self.population.senders)]
            for i in which
        }
        return {i: languages[0] for i, languages in self.spoken.items()}

    def _read_equally(self) -> list[float]:
        size = self.population.size
        drawn, _ = self.draws.batches(EQUALLY, FAR + self.updates, 1, self.settings.evaluation_size)
        right = self._all_pairings(drawn[0, ::size].repeat_interleave(size, 0))[0]
        return [float(of_one.mean()) for of_one in right]

    def _outcome(
        self, player: PlayingPair, final: Row, diverged: bool, language: Language, equally: float | None
    ) -> Outcome:
        outcome, place = super()._outcome(player, final, diverged, language, equally), self.players.index(player)
        measured = self.measured[place]
        topsims = [finite(value) for value in measured["sender_topsims"]]
        key, languages = self.job.key(player.replicate), self.spoken[place]
        files = {spoken_file(key, n): one.to_bytes() for n, one in enumerate(languages[1:], 1)}
        lengths = self._length_measures(player, languages)
        extra = {**outcome.extra, **measured, "sender_topsims": topsims, **lengths}
        return replace(outcome, extra=extra, files={**outcome.files, **files})

    def _keep(self, staying: list[int]) -> None:
        rows = self.learner.rows_of(staying)
        self.learner.keep(staying)
        self.draws.keep(rows)
        self.tally.keep(rows)

    def _own(self) -> dict[Replicate, State]:
        nothing = {"updates": 0, "right": None}  # the counts of training batches are not reported
        return {replicate: {**state, "tally": nothing} for replicate, state in super()._own().items()}


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
