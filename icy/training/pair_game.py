"""The game: sender and receiver of several pairs, trained together as one batched program."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from icy.config.protocols import SCRATCH
from icy.config.settings import TrainingSettings
from icy.core.checks import LARGEST_NUMBER
from icy.core.errors import InvalidSettingError
from icy.core.noise import Noise
from icy.core.representations import Representation, cross_entropy
from icy.core.streams import stream_key
from icy.core.types import Choices, State
from icy.languages.frequencies import Frequencies
from icy.languages.language import Language
from icy.languages.meanings import IntArray, MeaningSpace
from icy.metrics import Table, topsim
from icy.records.record import Record, spoken_file
from icy.training.language_job import PairJob
from icy.training.pair_settings import GAME, EndToEndSettings
from icy.training.populations import length_measures, member_seed

from .batches import EQUALLY, Batches, MeaningPool, draw_meanings
from .gradient import GradientLearner
from .job import Outcome, Reading, Replicate
from .learners import examples_at_once, make_learner
from .lockstep import Course, Progress
from .population_learner import RECEIVER, PopulationLearner, agreement
from .task_models import Pair, make_pair
from .task_models import link_of as representation_of
from .weights import pack_weights

# The game uses the streams of pre-training from this batch on, so that it does not repeat the batches of pre-training.
FAR = 2**30
MEANINGS_COMPARED = 512  # most meanings in topsim; its cost grows with their square
Row = list[float | None]  # a point of a curve
LENGTH_CURVE = "length_curve"  # field of a record: points of (updates, mean length)
CURVE = "population_curve"  # field of a record: points of (updates, worst accuracy, agreement of the senders)


class _Tally:
    """Loss of a pair that also counts correct answers, because published accuracies are of training batches."""

    def __init__(self, link: Representation, players: int) -> None:
        self.link, self._players = link, players
        self.right: Tensor | None = None
        self.updates = 0  # counted by the game, which makes them

    def __call__(self, scores: tuple[Tensor, Tensor], meanings: Tensor, noise: Noise) -> Tensor:
        sent, answered = scores
        # Copies of a pair at the end of the stack are not counted.
        read, said, seen = (x.detach()[: self._players] for x in (answered, sent, meanings))
        read = read[:, : seen.shape[1]]  # an impatient receiver also read prefixes of the messages
        self.note((read.argmax(-1) == seen).to(answered.dtype).mean((-2, -1)), said, seen)
        return self.link.pair_loss(sent, answered, meanings, noise)

    def note(self, right: Tensor, sent: Tensor, meanings: Tensor) -> None:
        """Note the share of correct answers of each pair, summed over updates, and the scores of the last batch."""
        if self.right is None:
            self.right = torch.zeros_like(right)
        self.right.add_(right)  # in place, as a captured update always writes to the same memory
        self.messages = self.link.greedy_words(sent)
        self.meanings = meanings

    def accuracy(self) -> Tensor:
        """Return the mean accuracy since the last restart."""
        assert self.right is not None
        return self.right / self.updates

    def restart(self) -> None:
        """Reset the counts."""
        self.updates = 0
        if self.right is not None:
            self.right.zero_()

    def state(self, place: int) -> State:
        """Return the counts of a pair, for `resume`."""
        return {"updates": self.updates, "right": None if self.right is None else self.right[place].clone()}

    def resume(self, states: Sequence[State], device: torch.device) -> None:
        """Resume from the `state` of each pair."""
        self.updates, right = states[0]["updates"], [state["right"] for state in states]
        self.right = None if right[0] is None else torch.stack(right).to(device)

    def keep(self, which: list[int]) -> None:
        """Keep only these pairs."""
        self._players = len(which)
        if self.right is not None:
            self.right = self.right[which]


@dataclass(kw_only=True)
class Players(Progress):
    """The progress of one replicate of the game: a pair, or a population of pairs.

    Attributes:
        steps: number of updates in the game.
        models: the pair before the game; of a population, the k-th sender with the k-th receiver, for each k.
        before: results of pre-training and further results, for the record.
        baseline: supervised updates of concat at the seed, if the length of the game depends on them.
    """

    steps: int
    models: Sequence[Pair]
    before: Choices = field(default_factory=dict)
    baseline: int | None = None


def new_players(job: PairJob, replicate: Replicate) -> Players:
    """Return the agents of a replicate with their initial weights.

    After pre-training, these are replaced, and the length of the game may depend on concat.
    """
    own, taught = job.settings, replicate.condition != SCRATCH
    seeds = [member_seed(replicate.seed, number) for number in range(own.population.size)]
    models = [make_pair(own, seed, job.training, taught) for seed in seeds]
    return Players(replicate, steps=own.limit(0), models=models)


class PairGame(Course[Players]):
    """Joint training of several pairs or populations.

    A population has as many rows of the stack as its larger side has agents: row k has sender k and receiver k (see
    `icy.training.population_learner`). A pair is a population of one row.
    """

    saved = ("steps", "before", "curve", "seconds", "baseline")
    learner: PopulationLearner  # or a GradientLearner, for pairs
    mean_lengths: list[float]  # at the last evaluation, of messages that may end early

    def __init__(self, job: PairJob, players: list[Players]) -> None:
        super().__init__(job, players)
        self.settings, self.population = job.training, job.settings.population
        rows = self._rows()
        languages, seeds = [_language(job, row) for row in rows], [row.seed for row in rows]
        self.draws = Batches(languages, seeds, self.device, frequencies=job.frequencies)
        self.link = representation_of(job.settings, job.training)
        self.tally = _Tally(self.link, len(rows))

    def _rows(self) -> list[Replicate]:
        """Return a replicate per row: row k of a replicate has the seed of its k-th sender and its k-th receiver."""
        numbers = range(self.population.size)
        return [
            replace(r, seed=member_seed(r.seed, k)) for r in (one.replicate for one in self.active) for k in numbers
        ]

    def make_learner(self) -> GradientLearner:
        """Make the learner of the pairs."""
        sample, _ = self.draws.batches("check", FAR, 1, 2)
        models, seeds = [pair for one in self.active for pair in one.models], [row.seed for row in self._rows()]
        by = GradientLearner if self.population.is_pair else partial(PopulationLearner, population=self.population)
        how = self.settings, self.device, sample[0], self.job.engine
        return cast(GradientLearner, make_learner(models, seeds, self.tally, *how, by_gradient=by))

    def next_check(self) -> int | None:
        """Return the number of updates at the next check or the next end of a game; None if all games are over."""
        end, every = min(one.steps for one in self.active), self.job.settings.report_every
        if end <= self.updates:
            return None
        return min(end, (self.updates // every + 1) * every) if self.active[0].curve else 0

    def at_once(self) -> int:
        """Return the maximum number of updates in a call, at most until the next replacement of agents."""
        return self.population.until_replacement(self.updates) or super().at_once()

    def update(self, count: int) -> None:
        """Make some updates; in populations, replace agents before."""
        first = FAR + self.updates
        meanings, _ = self.draws.batches("training", first, count, self.settings.batch_size)
        partners = []
        if not self.population.is_pair:
            self._replace_agents()
            partners = [torch.stack([self._partners(self.updates + n) for n in range(count)])]
        self.learner.train(meanings, meanings, self.draws.noise(first, count), *partners)
        self.tally.updates += count

    def _partners(self, update: int) -> Tensor:
        """Return the rows of the sender and the receiver of each pairing of an update, [2, row]."""
        return self._in_rows([self.population.partners(one.replicate.seed, update) for one in self.active])

    def _in_rows(self, partners: Sequence[IntArray]) -> Tensor:
        """Return the rows of the sender and the receiver of each pairing, from their numbers in each population."""
        size = self.population.size
        rows = np.concatenate([numbers + place * size for place, numbers in enumerate(partners)], 1)
        return torch.from_numpy(rows).to(self.device)

    def _replace_agents(self) -> None:
        """Replace the agents that new agents replace before the next update."""
        for place, one in enumerate(self.active):
            for side, numbers in self.population.replaced(one.replicate.seed, self.updates).items():
                for number in numbers:
                    seed = member_seed(one.replicate.seed, number, self.updates)
                    new = make_pair(self.job.settings, seed, self.settings).state_dict()
                    weights = {n: w for n, w in new.items() if n.startswith(RECEIVER) == (side == "receiver")}
                    self.learner.renew(place * self.population.size + number, weights)

    # -- readings ------------------------------------------------------------------------------------------------------

    def _due(self) -> list[int]:
        """Return the places of the replicates that are evaluated now.

        A replicate that ends between two checks is evaluated alone; the curves of the others get no point.
        """
        on_grid = self.updates % self.job.settings.report_every == 0
        return [i for i, one in enumerate(self.active) if on_grid or one.steps <= self.updates]

    def read(self) -> list[Reading]:
        """Evaluate, and return the readings of the due replicates; none of the first points of the curves."""
        due = self._due()
        self._note(self._read("check"), due)
        if self.updates % self.job.settings.report_every == 0:
            self.tally.restart()
        ended = [(self.active[i].replicate, self.active[i].curve[-1][1] or 0.0) for i in due if self.updates]
        return [Reading(replicate, self.updates, accuracy, GAME) for replicate, accuracy in ended]

    def _note(self, readings: list[Row], due: Iterable[int]) -> None:
        """Append a point to the curves of some replicates."""
        for i in due:
            one = self.active[i]
            one.curve.append(readings[i])
            if self.job.settings.lengths.vary:
                one.before.setdefault(LENGTH_CURVE, []).append([self.updates, self.mean_lengths[i]])
            if not self.population.is_pair:
                point = [self.updates, *(self.measured[i][name] for name in ("worst_accuracy", "sender_agreement"))]
                one.before.setdefault(CURVE, []).append(point)

    def _read(self, purpose: str) -> list[Row]:
        """Evaluate all pairings of every replicate on the same meanings.

        Returns:
            A point of the curve of each replicate, in the order of `JobKind.curve`: means over pairings and senders.
        """
        meanings, messages = self._drawn(purpose)
        right, losses, words, read = self._all_pairings(meanings, messages)
        self._note_lengths(words)
        seen, said = meanings[:: self.population.size], words
        if self.settings.training_readings and self.tally.updates and self.population.is_pair:
            right, seen = self.tally.accuracy()[:, None, None], self.tally.meanings
            said = self.tally.messages[:, None]
        shown = zip(seen.cpu(), said.cpu(), strict=True)
        topsims = [[topsim_of(x, one, self.settings) for one in of_senders] for x, of_senders in shown]
        self.measured: list[Choices] = [
            {
                "pairings": right[i].tolist(),
                "worst_accuracy": float(right[i].min()),
                "sender_agreement": agreement(words[i]),
                "sender_topsims": topsims[i],
            }
            for i in range(len(self.active))
        ]
        on_language: dict[int, Row] = {i: [None, None] for i in range(len(self.active))}
        if read:
            targets = self.link.token_words(messages, self.job.settings.vocab_size).cpu()
            of_sender = (words[:, 0] == targets).double().mean((-2, -1)).tolist()
            of_receiver = (read[0].argmax(-1) == meanings).double().mean((-2, -1)).tolist()
            taught = [i for i, one in enumerate(self.active) if one.replicate.condition != SCRATCH]
            on_language |= {i: [of_sender[i], of_receiver[i]] for i in taught}
        return [
            [self.updates, float(right[i].mean()), float(losses[i].mean()), finite_mean(topsims[i]), *on_language[i]]
            for i in range(len(self.active))
        ]

    def _note_lengths(self, words: Tensor) -> None:
        """Note the mean length of messages that may end early, from words [replicate, ..., place]."""
        before_end = (words != self.job.settings.vocab_size).double().sum(-1)
        self.mean_lengths = before_end.flatten(1).mean(1).tolist()

    def _drawn(self, purpose: str) -> tuple[Tensor, Tensor]:
        """Return meanings of an evaluation, the same for all rows of a population, and the messages for them."""
        drawn = self.draws.batches(purpose, FAR + self.updates, 1, self.settings.evaluation_size)
        size = self.population.size
        meanings, messages = (one[0, ::size].repeat_interleave(size, 0) for one in drawn)
        return meanings, messages

    def _all_pairings(self, meanings: Tensor, messages: Tensor) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        """Let every sender meet every receiver.

        Args:
            meanings: meanings of each row, [row, batch, attribute].
            messages: messages of the language of each row for these meanings, [row, batch, place].

        Returns:
            Accuracies and losses, [replicate, sender, receiver]; greedy words, [replicate, sender, batch, place]; and
            the scores of pairs' receivers for the messages.
        """
        some, count = self.population, len(self.active)
        right = torch.zeros(count, some.senders, some.receivers, dtype=torch.float64, device="cpu")
        losses, words = torch.zeros_like(right), dict[int, Tensor]()
        for numbers in some.rounds():
            sent, answered, *read = self._scores(meanings, messages, numbers)
            senders, receivers = torch.from_numpy(numbers)
            accuracy = (answered.argmax(-1) == meanings).double().mean((-2, -1))
            # One by one, as the last bits of a mean may depend on the size of the stack.
            loss = torch.stack([cross_entropy(of_one, m).mean() for of_one, m in zip(answered, meanings, strict=True)])
            right[:, senders, receivers] = accuracy.view(count, -1).cpu()
            losses[:, senders, receivers] = loss.view(count, -1).double().cpu()
            said = self.link.greedy_words(sent).cpu().unflatten(0, (count, -1))
            for place, sender in enumerate(senders.tolist()):
                words[sender] = said[:, place]
        return right, losses, torch.stack([words[sender] for sender in range(some.senders)], 1), read

    def _scores(self, meanings: Tensor, messages: Tensor, numbers: IntArray | None = None) -> list[Tensor]:
        """Return scores of the senders, of the receivers on their messages, and of pairs' receivers on the language.

        Args:
            meanings, messages: a batch of each row.
            numbers: the pairings of every population, from `Population.rounds`.
        """
        run, inputs = self.learner.run, [meanings, messages]
        if numbers is not None and not self.population.is_pair:
            run, inputs = partial(self.learner.meet, self._in_rows([numbers] * len(self.active))), [meanings]
        step = examples_at_once(meanings)
        parts = [run(*some) for some in zip(*(one.split(step, 1) for one in inputs), strict=True)]
        return [torch.cat(of_one, 1) for of_one in zip(*parts, strict=True)]

    # -- results -------------------------------------------------------------------------------------------------------

    def ended(self) -> dict[int, str]:
        """Return the due replicates that have finished or diverged."""
        diverged = self.diverged() if self.updates else [False] * len(self.active)
        over = [diverged[i] or one.steps <= self.updates for i, one in enumerate(self.active)]
        return {i: "diverged" if diverged[i] else "steps" for i in self._due() if over[i]}

    def keep(self, staying: list[int]) -> None:
        """Keep only the batches and counts of these replicates."""
        rows = self.population.rows(staying)
        self.draws.keep(rows)
        self.tally.keep(rows)

    def outcomes(self, ended: Mapping[int, str]) -> Iterator[Outcome]:
        """Yield the outcomes of some replicates."""
        equally: list[float] | None = None
        if self.job.frequencies is not None:
            right = self._all_pairings(*self._drawn(EQUALLY))[0]
            equally = [float(of_one.mean()) for of_one in right]
        final = self._read("report") if self.settings.fresh_reading else [one.curve[-1] for one in self.active]
        spoken = self._languages(list(ended))
        for place, reason in ended.items():
            last = {} if equally is None else {"unweighted_accuracy": equally[place]}
            yield self._outcome(place, reason, final[place], spoken[place], last)

    def _outcome(self, place: int, reason: str, final: Row, languages: Sequence[Language], last: Choices) -> Outcome:
        one = self.active[place]
        _, accuracy, loss, rho, of_sender, of_receiver = final
        key = self.job.key(one.replicate)
        extra = {
            **one.before,
            "end_to_end_accuracy": accuracy,
            "end_to_end_loss": finite(loss),
            "topsim": finite(rho),
            "sender_accuracy": of_sender,
            "receiver_accuracy": of_receiver,
            "language": spoken_file(key),
            **last,
        }
        if self.job.settings.lengths.vary:
            extra |= length_measures(languages, self.job.frequencies, one.replicate.seed)
        if not self.population.is_pair:
            measured = self.measured[place]
            extra |= {**measured, "sender_topsims": [finite(value) for value in measured["sender_topsims"]]}
        files = {spoken_file(key, n): language.to_bytes() for n, language in enumerate(languages)}
        if self.job.keep_models and reason != "diverged":
            files[self.job.model_file(one.replicate)] = pack_weights(self.learner.weights(place))
        curve = [[finite(value) for value in row] for row in one.curve]
        reading = accuracy if of_sender is None else of_sender
        assert reading is not None
        return self.outcome(place, reason, reading, curve=curve, baseline_steps=one.baseline, extra=extra, files=files)

    def _languages(self, which: Sequence[int]) -> dict[int, list[Language]]:
        """Return the greedy messages of the senders of some replicates for every meaning."""
        some, count = self.population, self.link.word_count(self.job.settings.vocab_size)
        words = iter(self._greedy_words([i * some.size + k for i in which for k in range(some.senders)]))
        return {
            i: [emerged(self.job.settings, self.active[i].replicate, next(words), count) for _ in range(some.senders)]
            for i in which
        }

    def _greedy_words(self, rows: Sequence[int]) -> list[np.ndarray[Any, Any]]:
        """Return the greedy words of the senders in some rows of the stack, [meaning, place] for each row."""
        task = self.job.settings
        table = torch.from_numpy(task.space.meanings(np.arange(task.space.size))).to(self.device)
        count = self.link.word_count(task.vocab_size)
        small = torch.uint8 if count < 256 else torch.int32 if count < LARGEST_NUMBER else torch.int64
        greedy: list[Tensor] = []
        whole = table.expand(len(self._rows()), *table.shape)
        for some in whole.split(examples_at_once(whole), 1):
            sent = self.learner.run(some)[0]
            greedy.append(self.link.greedy_words(sent[list(rows)]).to(small).cpu())
        return list(torch.cat(greedy, 1).numpy())

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def own(self, place: int) -> State:
        """Return the state of a replicate for a checkpoint, in addition to the learner's state."""
        # The counts of training batches of populations are not reported.
        tally = self.tally.state(place) if self.population.is_pair else {"updates": 0, "right": None}
        return {**super().own(place), "tally": tally}

    def resume(self, owns: Sequence[State]) -> None:
        """Resume from these states."""
        super().resume(owns)
        self.tally.resume([own["tally"] for own in owns], self.device)


def _language(job: PairJob, replicate: Replicate) -> Language:
    """Return the language of pre-training; from scratch, an unused placeholder."""
    task = job.settings
    if replicate.condition == SCRATCH:
        nothing = np.zeros((task.space.size, task.message_length), dtype=np.uint8)
        return Language(task.space, nothing, task.vocab_size)
    return job.language(replicate)


def emerged(task: EndToEndSettings, replicate: Replicate, words: np.ndarray[Any, Any], count: int) -> Language:
    """Return the messages of a pair's sender as a language with `count` words."""
    origin = "from scratch" if replicate.condition == SCRATCH else f"after {replicate.condition}"
    name = f"{task.name} {task.representation} {origin}"
    return Language.spoken(task.space, words, count, name=name, seed=replicate.seed, ends=task.lengths.vary)


def topsim_of(meanings: Tensor, messages: Tensor, settings: TrainingSettings) -> float:
    """Return the topographic similarity of some messages; except in published readings, each meaning counts once."""
    if settings.training_readings:
        table = Table.of(meanings.numpy(), messages.numpy(), one_hot="no", argmax=False)
        rho = float(topsim(table, message="hamming", pairs="ordered", workers=1))
        return 0.0 if math.isnan(rho) else rho
    distinct, first = np.unique(meanings.numpy()[:MEANINGS_COMPARED], axis=0, return_index=True)
    table = Table.of(distinct, messages.numpy()[first], one_hot="no", argmax=False)
    return float(topsim(table, message="hamming", workers=1))


def reported_meanings(record: Record, frequencies: Frequencies | None = None) -> IntArray:
    """Return the numbers [N] of the meanings that the topsim in a pair's record compares, in order.

    Args:
        record: record of the pair.
        frequencies: which meanings exist in this run, and how often each was drawn; by default all, equally often.

    Raises:
        InvalidSettingError: the preset is `published`, where topsim uses messages of training that are not saved; or
            the topsim is a mean over several senders.
    """
    settings, space = TrainingSettings(**record["config"]["settings"]), MeaningSpace.of(record["meanings"])
    if settings.training_readings:
        raise InvalidSettingError(
            f"Under the preset published, the topsim of {record['model']} with seed {record['seed']} compares messages "
            "of the last training batch, which are not saved: leave out --as-reported."
        )
    if record.get("senders", 1) > 1:
        raise InvalidSettingError(
            f"The topsim of {record['model']} with seed {record['seed']} is a mean over {record['senders']} senders: "
            "leave out --as-reported."
        )
    key = stream_key(record["seed"], "meanings", "report" if settings.fresh_reading else "check")
    keys = torch.tensor([key], dtype=torch.int64, device="cpu")
    batch = keys, FAR + record["steps"], 1, settings.evaluation_size
    if frequencies is None:
        numbers = space.index(draw_meanings(space, *batch)[0, 0].numpy())
    else:
        known, weights = frequencies.of_seed(space, record["seed"])
        numbers = MeaningPool([known], keys.device, [weights]).draw(*batch)[0, 0].numpy()
    return np.unique(numbers[:MEANINGS_COMPARED])


def finite_mean(values: Iterable[float]) -> float:
    """Return the mean of the finite values; NaN if there are none."""
    known = [value for value in values if math.isfinite(value)]
    return fmean(known) if known else math.nan


def finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None
