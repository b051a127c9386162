"""The game: sender and receiver of several pairs, trained together as one batched program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from icy.config.protocols import SCRATCH
from icy.config.settings import TrainingSettings
from icy.core import gpu
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
from icy.training.populations import length_measures

from .batches import EQUALLY, Batches, MeaningPool, draw_meanings
from .gradient import GradientLearner
from .job import Outcome, Reading, Replicate, Report
from .learners import examples_at_once, make_learner
from .lockstep import Checkpoints, Lockstep
from .task_models import Pair, make_pair
from .task_models import link_of as representation_of
from .weights import pack_weights

# The game uses the streams of pre-training from this batch on, so that it does not repeat the batches of pre-training.
FAR = 2**30
MEANINGS_COMPARED = 512  # most meanings in topsim; its cost grows with their square
RESUMED = ("steps", "before", "curve", "seconds", "baseline")  # attributes of `PlayingPair` saved in a checkpoint
Row = list[float | None]  # a point of a curve
LENGTH_CURVE = "length_curve"  # field of a record: points of (updates, mean length)


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


@dataclass
class PlayingPair:
    """One pair in the game.

    Attributes:
        replicate: the replicate.
        steps: number of updates in the game.
        pair: the models before the game.
        before: results of pre-training, for the record.
        curve: a row of readings per check, in the order of CURVE.
        seconds: the pair's share of the time.
        baseline: supervised updates of concat at the pair's seed, if the length of the game depends on them.
    """

    replicate: Replicate
    steps: int
    pair: Pair
    before: State = field(default_factory=dict)
    curve: list[Row] = field(default_factory=list)
    seconds: float = 0.0
    baseline: int | None = None


class PairStack(Lockstep):
    """Joint training of several pairs."""

    learner: GradientLearner
    mean_lengths: list[float]  # at the last evaluation, of messages that may end early

    def __init__(self, job: PairJob, players: list[PlayingPair], checkpoints: Checkpoints | None = None) -> None:
        super().__init__(checkpoints)
        self.job, self.players, self.settings = job, players, job.training
        gpu.make_current(job.device)
        device = torch.device(job.device)
        rows = self._rows()
        languages, seeds = [_language(job, row) for row in rows], [row.seed for row in rows]
        self.draws = Batches(languages, seeds, device, frequencies=job.frequencies)
        self.link = representation_of(job.settings, job.training)
        self.tally = _Tally(self.link, len(rows))
        self._resume()

    @classmethod
    def from_checkpoints(cls, job: PairJob, checkpoints: Checkpoints) -> PairStack | None:
        """Return the game of a job's pairs from their checkpoints; None if there are none."""
        if not checkpoints.updates(job.replicates[0]):
            return None
        taught = [replicate.condition != SCRATCH for replicate in job.replicates]
        pairs = [make_pair(job.settings, r.seed, job.training, t) for r, t in zip(job.replicates, taught, strict=True)]
        game = cls(job, [PlayingPair(r, 0, pair) for r, pair in zip(job.replicates, pairs, strict=True)], checkpoints)
        return game if game.updates else None

    def _rows(self) -> list[Replicate]:
        """Return the replicate of each row of the stack."""
        return [player.replicate for player in self.players]

    def _models(self) -> list[Pair]:
        """Return the pair of each row before the game."""
        return [player.pair for player in self.players]

    def _make_learner(self) -> GradientLearner:
        sample, _ = self.draws.batches("check", FAR, 1, 2)
        models, seeds = self._models(), [row.seed for row in self._rows()]
        how = self.settings, torch.device(self.job.device), sample[0], self.job.engine
        return cast(GradientLearner, make_learner(models, seeds, self.tally, *how, by_gradient=self._by_gradient()))

    def _by_gradient(self) -> Callable[..., GradientLearner]:
        """Return the class of the learner if PyTorch trains."""
        return GradientLearner

    def play(self, report: Report | None) -> Iterator[Outcome]:
        """Train blocks of updates with an evaluation after each, until every pair has made its updates."""
        every = self.job.settings.report_every
        if not self.updates:
            self._note(self._read("check"), range(len(self.players)))  # the first point of the curves
        while self.players:
            # A pair that ends between two checks is evaluated alone; the curves of the others get no point.
            self.advance(min(*(p.steps for p in self.players), (self.updates // every + 1) * every))
            with self.timed():
                due, readings = self._check()
            if report is not None:
                report([Reading(self.players[i].replicate, self.updates, readings[i][1] or 0.0, GAME) for i in due])
            yield from self._retire(due, readings)
            if self.players:
                self.save_if_due()

    def _check(self) -> tuple[list[int], list[Row]]:
        """Evaluate; return the places of the due pairs, and the readings of all pairs."""
        on_grid = self.updates % self.job.settings.report_every == 0
        due = [i for i, p in enumerate(self.players) if on_grid or p.steps <= self.updates]
        readings = self._read("check")
        self._note(readings, due)
        if on_grid:
            self.tally.restart()
        return due, readings

    def _update(self, count: int) -> None:
        first = FAR + self.updates
        meanings, _ = self.draws.batches("training", first, count, self.settings.batch_size)
        self.learner.train(meanings, meanings, self.draws.noise(first, count))
        self.tally.updates += count
        self.updates += count

    def _share(self, seconds: float) -> None:
        for player in self.players:
            player.seconds += seconds / len(self.players)

    def _note(self, readings: list[Row], due: Iterable[int]) -> None:
        """Append a point to the curves of some pairs."""
        for i in due:
            player = self.players[i]
            player.curve.append(readings[i])
            if self.job.settings.lengths.vary:
                player.before.setdefault(LENGTH_CURVE, []).append([self.updates, self.mean_lengths[i]])

    def _read(self, purpose: str) -> list[Row]:
        """Evaluate every pair; return a point of its curve, in the order of `JobKind.curve`."""
        meanings, messages = self.draws.batches(purpose, FAR + self.updates, 1, self.settings.evaluation_size)
        sent, answered, on_language = self._scores(meanings[0], messages[0])
        right = (answered.argmax(-1) == meanings[0]).double().mean((-2, -1))
        # One by one, as the last bits of a mean may depend on the size of the stack.
        loss = torch.stack([cross_entropy(of_one, m).mean() for of_one, m in zip(answered, meanings[0], strict=True)])
        words, targets = self.link.greedy_words(sent), self.link.token_words(messages[0], self.job.settings.vocab_size)
        of_sender = (words == targets).double().mean((-2, -1))
        of_receiver = (on_language.argmax(-1) == meanings[0]).double().mean((-2, -1))
        seen, said = meanings[0], words
        if self.settings.training_readings and self.tally.updates:
            right, seen, said = self.tally.accuracy(), self.tally.meanings, self.tally.messages
        self._note_lengths(words)
        similarities = [topsim_of(x, y, self.settings) for x, y in zip(seen.cpu(), said.cpu(), strict=True)]
        rows = zip(right.tolist(), loss.tolist(), similarities, of_sender.tolist(), of_receiver.tolist(), strict=True)
        taught = [p.replicate.condition != SCRATCH for p in self.players]
        return [
            [self.updates, accuracy, cost, rho, *((sender, receiver) if knows else (None, None))]
            for knows, (accuracy, cost, rho, sender, receiver) in zip(taught, rows, strict=True)
        ]

    def _note_lengths(self, words: Tensor) -> None:
        """Note the mean length of messages that may end early, from words [pair, ..., place]."""
        before_end = (words != self.job.settings.vocab_size).double().sum(-1)
        self.mean_lengths = before_end.flatten(1).mean(1).tolist()

    def _scores(self, meanings: Tensor, messages: Tensor) -> list[Tensor]:
        """Return scores of the sender, of the receiver on its messages, and of the receiver on the language."""
        step = examples_at_once(meanings)
        parts = [self.learner.run(x, y) for x, y in zip(meanings.split(step, 1), messages.split(step, 1), strict=True)]
        return [torch.cat(of_one, 1) for of_one in zip(*parts, strict=True)]

    def _retire(self, due: Sequence[int], readings: list[Row]) -> Iterator[Outcome]:
        """Yield outcomes of the due pairs that have finished or diverged."""
        diverged = (~torch.isfinite(self.learner.losses())).tolist()  # type: ignore[arg-type]
        ended = [i for i in due if self.players[i].steps <= self.updates or diverged[i]]
        if not ended:
            return
        equally: Sequence[float | None] = [None] * len(readings)
        if self.job.frequencies is not None:
            equally = self._read_equally()
        final = self._read("report") if self.settings.fresh_reading else readings
        languages = self._languages(ended)
        outcomes = [self._outcome(self.players[i], final[i], diverged[i], languages[i], equally[i]) for i in ended]
        staying = [i for i in range(len(self.players)) if i not in ended]
        self.players = [self.players[i] for i in staying]
        if staying:
            self._keep(staying)
        yield from outcomes

    def _keep(self, staying: list[int]) -> None:
        """Keep only these pairs in the stack."""
        self.learner.keep(staying)
        self.draws.keep(staying)
        self.tally.keep(staying)

    def _read_equally(self) -> list[float]:
        """Return the accuracy of each pair on meanings with equal weights."""
        meanings, messages = self.draws.batches(EQUALLY, FAR + self.updates, 1, self.settings.evaluation_size)
        answered = self._scores(meanings[0], messages[0])[1]
        found: list[float] = (answered.argmax(-1) == meanings[0]).double().mean((-2, -1)).tolist()
        return found

    def _outcome(
        self, player: PlayingPair, final: Row, diverged: bool, language: Language, equally: float | None
    ) -> Outcome:
        _, accuracy, loss, rho, of_sender, of_receiver = final
        place = spoken_file(self.job.key(player.replicate))
        extra = {
            **player.before,
            "end_to_end_accuracy": accuracy,
            "end_to_end_loss": finite(loss),
            "topsim": finite(rho),
            "sender_accuracy": of_sender,
            "receiver_accuracy": of_receiver,
            "language": place,
            **self._length_measures(player, [language]),
            **({} if equally is None else {"unweighted_accuracy": equally}),
        }
        files = {place: language.to_bytes()}
        if self.job.keep_models and not diverged:
            weights = self.learner.weights(self.players.index(player))
            files[self.job.model_file(player.replicate)] = pack_weights(weights)
        curve: Any = [[finite(value) for value in row] for row in player.curve]
        reading = accuracy if of_sender is None else of_sender
        assert reading is not None
        return Outcome(
            player.replicate,
            "diverged" if diverged else "steps",
            self.updates,
            math.nan if diverged else reading,
            curve,
            self.learner.engine,
            player.seconds,
            player.baseline,
            extra,
            files=files,
        )

    def _length_measures(self, player: PlayingPair, languages: Sequence[Language]) -> Choices:
        """Return measures of the lengths of messages that may end early; empty for a fixed length."""
        if not self.job.settings.lengths.vary:
            return {}
        return length_measures(languages, self.job.frequencies, player.replicate.seed)

    def _languages(self, which: Sequence[int]) -> dict[int, Language]:
        """Return the greedy messages of some pairs' senders for every meaning."""
        words, rows = self._greedy_words(which), self._rows()
        count = self.link.word_count(self.job.settings.vocab_size)
        return {i: emerged(self.job.settings, rows[i], words[n], count) for n, i in enumerate(which)}

    def _greedy_words(self, rows: Sequence[int]) -> list[np.ndarray[Any, Any]]:
        """Return the greedy words of the senders in some rows of the stack, [meaning, place] for each row."""
        task, device = self.job.settings, torch.device(self.job.device)
        table = torch.from_numpy(task.space.meanings(np.arange(task.space.size))).to(device)
        count = self.link.word_count(task.vocab_size)
        small = torch.uint8 if count < 256 else torch.int32 if count < LARGEST_NUMBER else torch.int64
        greedy: list[Tensor] = []
        whole = table.expand(len(self._rows()), *table.shape)
        for some in whole.split(examples_at_once(whole), 1):
            sent = self.learner.run(some)[0]
            greedy.append(self.link.greedy_words(sent[list(rows)]).to(small).cpu())
        return list(torch.cat(greedy, 1).numpy())

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def _own(self) -> dict[Replicate, State]:
        return {
            player.replicate: {"tally": self.tally.state(place), **{name: getattr(player, name) for name in RESUMED}}
            for place, player in enumerate(self.players)
        }

    def _resume(self) -> None:
        """Make the learner, and resume from checkpoints if there are any."""
        replicates = [p.replicate for p in self.players]
        names = "tally", *RESUMED
        self.learner, self.updates, owns = self.checkpoints.resumed(replicates, self._make_learner, names)
        if owns:
            self.players = [
                replace(p, **{n: own[n] for n in RESUMED}) for p, own in zip(self.players, owns, strict=True)
            ]
            self.tally.resume([own["tally"] for own in owns], torch.device(self.job.device))


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
