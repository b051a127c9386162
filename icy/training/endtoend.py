"""Training sender and receiver together: pre-training of both on a language, then the game, as batched programs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from icy.errors import IncompatibleError
from icy.grammars import make_language
from icy.language import Language
from icy.metrics import topsim
from icy.noise import Noise, current_noise
from icy.representations import Representation, cross_entropy, get_representation

from .data import Draws
from .engine import DRAWN_AT_ONCE, Run, make_model
from .job import Job, Outcome, Reading, Replicate
from .learners import PAPERS_BATCH, ROWS_AT_ONCE, GradientLearner, make_learner
from .pairs import GAME, NOT_LEARNT, SCRATCH, PairJob, PairTask
from .protocols import BASELINE, Protocol
from .settings import TrainingSettings

# The game draws from the streams of pre-training too, this many batches further on: the same ones would repeat it.
FAR = 2**30
LANGUAGES = "languages"  # the folder, beside the records, of the languages that emerged
Report = Callable[[list[Reading]], None]
SIDES = ("receiver", "sender")  # in the order they are pre-trained


class Pair(nn.Module):
    """A sender and a receiver, with the link between them.

    Args:
        sender: meanings to scores.
        receiver: a message to scores.
        link: makes messages of the sender's scores.
    """

    def __init__(self, sender: nn.Module, receiver: nn.Module, link: Representation) -> None:
        super().__init__()
        self.sender, self.receiver, self.link = sender, receiver, link
        self.broadcasts = all(getattr(model, "broadcasts", False) for model in (sender, receiver))

    def forward(self, meanings: Tensor, messages: Tensor | None = None) -> tuple[Tensor, ...]:
        """The scores of both; with `messages`, also what the receiver makes of those.

        Messages are sampled in training and greedy in evaluation, where the link samples at all.
        """
        sent = self.sender(meanings)
        noise = current_noise(sent.device) if self.training else None
        answered = self.receiver(self.link.message(sent, noise))
        return (sent, answered) if messages is None else (sent, answered, self.receiver(messages))


def make_pair(task: PairTask, seed: int, settings: TrainingSettings) -> Pair:
    """A pair with the initial weights of a seed.

    Raises:
        IncompatibleError: a side does not learn by gradient, or cannot work with the link.
    """
    sender = make_model(task.alone("sender", task.feedback(settings)), seed, settings)
    receiver = make_model(task.alone("receiver", task.representation), seed, settings)
    for model, entry in ((sender, task.entry.sender), (receiver, task.entry.receiver)):
        if not getattr(model, "learns_by_gradient", True):
            raise IncompatibleError(f"{entry.qualified} stores examples and learns by no gradient: it cannot play.")
    return Pair(sender, receiver, _link(task, settings))


def _link(task: PairTask, settings: TrainingSettings) -> Representation:
    return get_representation(task.representation, **settings.under(task.representation, "e2e"))


def try_pair(task: PairTask, settings: TrainingSettings) -> Pair:
    """Make a pair and send one message, so that what does not fit together is said before hours are spent.

    Raises:
        IncompatibleError: sender and receiver do not fit.
    """
    pair = make_pair(task, 0, settings)
    meanings = torch.zeros(2, task.space.attributes, dtype=torch.long)
    expected = {
        "sender": (2, task.message_length, task.vocab_size + 1),
        "receiver": (2, task.space.attributes, task.space.values),
    }
    try:
        with torch.no_grad():
            sent = pair.eval().sender(meanings)
            _require_shape(task.entry.sender.qualified, sent, expected["sender"])
            answered = pair.receiver(pair.link.message(sent, None))
    except RuntimeError as error:
        raise IncompatibleError(
            f"{task.entry.receiver.qualified} cannot read what {task.entry.sender.qualified} sends: "
            f"{str(error).strip().partition(chr(10))[0]}."
        ) from error
    _require_shape(task.entry.receiver.qualified, answered, expected["receiver"])
    return pair


def _require_shape(name: str, scores: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(scores.shape) != expected:
        raise IncompatibleError(f"{name} puts out scores of shape {tuple(scores.shape)}, not {expected}.")


# -- pre-training ------------------------------------------------------------------------------------------------------

PRETRAINING = Protocol("pretraining", "", "", target=0.99, cap=math.inf, stops_at_target=True, measure="accuracy")


@dataclass
class Learnt:
    """What pre-training made of one side.

    Attributes:
        steps: updates until the target, or until it was given up.
        accuracy: the last reading.
        weights: of the model; None if it did not reach the target.
        seconds: this replicate's share of the time.
    """

    steps: int
    accuracy: float
    weights: dict[str, Tensor] | None
    seconds: float


class _Pretraining(Run):
    """Supervised training of one side, each replicate until it reads the target."""

    needs_baseline = False

    def go(self, report: Report | None) -> Iterator[Outcome]:
        """As for any run; `learnt` fills as replicates end."""
        self.learnt: dict[Replicate, Learnt] = {}
        yield from super().go(report)

    def _verdict(self, reading: Reading) -> str | None:
        if reading.accuracy >= self.protocol.target:
            return "target"
        return "max_steps" if reading.steps >= self.settings.max_steps else None

    def _outcome(self, replicate: Replicate, reason: str, steps: int, accuracy: float, **extra: float) -> Outcome:
        place, seconds = self.active.index(replicate), self.seconds[replicate]
        assert isinstance(self.learner, GradientLearner)
        weights = self.learner.weights(place) if reason == "target" else None
        outcome = super()._outcome(replicate, reason, steps, accuracy, **extra)
        self.learnt[replicate] = Learnt(steps, outcome.curve[-1][1], weights, seconds)
        return outcome

    def _compared(self, ended: list[Outcome]) -> Iterator[Outcome]:
        yield from ended


def _pretrain(
    job: PairJob, side: str, replicates: Sequence[Replicate], report: Report | None
) -> dict[Replicate, Learnt]:
    """One side of several pairs, each on its language."""
    settings, task = job.settings, job.task.alone(side, job.task.pretrain_representation)
    protocol = replace(PRETRAINING, target=job.protocol.target)
    alone = Job(task, protocol, settings, tuple(replicates), device=job.device, engine=job.engine)
    run = _Pretraining(alone)

    def pass_on(readings: list[Reading]) -> None:
        if report is not None:
            report([replace(reading, phase=side) for reading in readings])

    for _ in run.go(pass_on):
        pass
    return run.learnt


# -- the game ----------------------------------------------------------------------------------------------------------


class _Tally:
    """The loss of the link, which counts right answers in passing: the published readings are of training batches."""

    def __init__(self, link: Representation) -> None:
        self._link = link
        self.right: Tensor | None = None
        self.updates = 0

    def __call__(self, scores: tuple[Tensor, Tensor], meanings: Tensor, noise: Noise) -> Tensor:
        sent, answered = scores
        right = (answered.detach().argmax(-1) == meanings).to(answered.dtype).mean((-2, -1))
        self.right = right if self.right is None else self.right + right
        self.updates += 1
        self.messages = sent.detach().argmax(-1)
        self.meanings = meanings
        return self._link.link_loss(sent, answered, meanings, noise)

    def accuracy(self) -> Tensor:
        """The mean accuracy since the last restart."""
        assert self.right is not None
        return self.right / self.updates

    def restart(self) -> None:
        """Count anew; the stack may be another one from now on."""
        self.right, self.updates = None, 0


@dataclass
class _Player:
    """One pair in the game.

    Attributes:
        replicate: which.
        steps: updates it plays.
        pair: its models, as they were before.
        before: what is reported of its pre-training.
        curve: a row of readings, in the order of CURVE, per check.
        seconds: its share of the time.
    """

    replicate: Replicate
    steps: int
    pair: Pair
    before: dict[str, Any] = field(default_factory=dict)
    curve: list[list[float | None]] = field(default_factory=list)
    seconds: float = 0.0
    baseline: int | None = None


def train_pairs(job: PairJob, report: Report | None = None) -> Iterator[Outcome]:
    """Pre-train and play a job's pairs in lockstep; each is yielded when it ends.

    Args:
        job: what to train, and how. Unless the protocol fixes the updates of the game, concat of each seed must be
            among its replicates or its baselines.
        report: called with the readings of every check.
    """
    scratch = [r for r in job.replicates if r.grammar == SCRATCH]
    taught = [r for r in job.replicates if r.grammar != SCRATCH]
    players = [_Player(r, job.protocol.limit(0), make_pair(job.task, r.seed, job.settings)) for r in scratch]
    if taught:
        learnt = {side: _pretrain(job, side, taught, report) for side in SIDES}
        baselines = {**_measured_baselines(learnt), **job.baselines}
        for replicate in taught:
            ready = _ready_player(job, replicate, {side: learnt[side][replicate] for side in SIDES}, baselines)
            if isinstance(ready, Outcome):
                yield ready
            else:
                players.append(ready)
    if players:
        yield from _Game(job, players).play(report)


def _measured_baselines(learnt: dict[str, dict[Replicate, Learnt]]) -> dict[int, int | str]:
    """Concat's supervised steps by seed, the slower side's, as far as it was trained here."""
    found: dict[int, int | str] = {}
    for replicate in learnt["sender"]:
        if replicate.grammar == BASELINE:
            sides = [learnt[side][replicate] for side in SIDES]
            done = all(side.weights is not None for side in sides)
            found[replicate.seed] = max(side.steps for side in sides) if done else NOT_LEARNT
    return found


def _ready_player(
    job: PairJob, replicate: Replicate, sides: dict[str, Learnt], baselines: dict[int, int | str]
) -> _Player | Outcome:
    """A pair after pre-training; or how it ended, if that failed."""
    before: dict[str, Any] = {f"{side}_steps": found.steps for side, found in sides.items()}
    seconds, baseline = sum(found.seconds for found in sides.values()), baselines.get(replicate.seed)
    readings = {f"{side}_accuracy": found.accuracy for side, found in sides.items()}
    if any(found.weights is None for found in sides.values()):
        return _failure(replicate, NOT_LEARNT, max(s.steps for s in sides.values()), seconds, {**before, **readings})
    if job.protocol.steps is None and not isinstance(baseline, int):
        return _failure(replicate, "no_baseline", max(s.steps for s in sides.values()), seconds, {**before, **readings})
    known = baseline if isinstance(baseline, int) else None
    pair = make_pair(job.task, replicate.seed, job.settings)
    for side, found in sides.items():
        assert found.weights is not None
        getattr(pair, side).load_state_dict(found.weights)
    return _Player(replicate, job.protocol.limit(known or 0), pair, before, seconds=seconds, baseline=known)


def _failure(replicate: Replicate, reason: str, steps: int, seconds: float, extra: dict[str, Any]) -> Outcome:
    return Outcome(replicate, reason, steps, math.nan, [], "", seconds, extra=extra)


class _Game:
    """The joint training of several pairs."""

    def __init__(self, job: PairJob, players: list[_Player]) -> None:
        self.job, self.players, self.settings = job, players, job.settings
        device = torch.device(job.device)
        seeds = [p.replicate.seed for p in players]
        self.draws = Draws([_language(job.task, p.replicate) for p in players], seeds, device)
        self.tally = _Tally(_link(job.task, job.settings))
        sample, _ = self.draws.batches("check", FAR, 1, 2)
        self.learner: GradientLearner = make_learner(
            [p.pair for p in players], seeds, self.tally, job.settings, device, sample[0], job.engine
        )  # type: ignore[assignment]
        self.updates = 0

    def play(self, report: Report | None) -> Iterator[Outcome]:
        """Blocks of updates with a reading between, until every pair has played its updates."""
        every = self.job.protocol.report_every
        self._check()  # where it starts from
        while self.players:
            started = time.perf_counter()
            ends = min(p.steps for p in self.players)
            self._update(min(ends, (self.updates // every + 1) * every))
            self._check()
            self.tally.restart()
            share = (time.perf_counter() - started) / len(self.players)
            for player in self.players:
                player.seconds += share
            if report is not None:
                report([Reading(p.replicate, self.updates, p.curve[-1][1] or 0.0, GAME) for p in self.players])
            yield from self._retire()

    def _update(self, until: int) -> None:
        while self.updates < until:
            few, first = min(DRAWN_AT_ONCE, until - self.updates), FAR + self.updates
            meanings, _ = self.draws.batches("training", first, few, self.settings.batch_size)
            for x, keys in zip(meanings, self.draws.noise(first, few), strict=True):
                self.learner.update(x, x, keys)
            self.updates += few

    def _check(self) -> None:
        """Add a row to every pair's curve."""
        for player, row in zip(self.players, self._read("check"), strict=True):
            player.curve.append(row)

    def _read(self, purpose: str) -> list[list[float | None]]:
        """A row of readings per pair, in the order of CURVE."""
        meanings, messages = self.draws.batches(purpose, FAR + self.updates, 1, self.settings.evaluation_size)
        sent, answered, told = self._scores(meanings[0], messages[0])
        right = (answered.argmax(-1) == meanings[0]).double().mean((-2, -1))
        loss = cross_entropy(answered, meanings[0]).mean((-2, -1))
        of_sender = (sent.argmax(-1) == messages[0]).double().mean((-2, -1))
        of_receiver = (told.argmax(-1) == meanings[0]).double().mean((-2, -1))
        seen, said = meanings[0], sent.argmax(-1)
        if self.settings.training_readings and self.tally.updates:
            right, seen, said = self.tally.accuracy(), self.tally.meanings, self.tally.messages
        alike = [_topsim(x, y, self.settings) for x, y in zip(seen.cpu(), said.cpu(), strict=True)]
        rows = zip(right.tolist(), loss.tolist(), alike, of_sender.tolist(), of_receiver.tolist(), strict=True)
        taught = [p.replicate.grammar != SCRATCH for p in self.players]
        return [
            [self.updates, accuracy, cost, rho, *((sender, receiver) if knows else (None, None))]
            for knows, (accuracy, cost, rho, sender, receiver) in zip(taught, rows, strict=True)
        ]

    def _scores(self, meanings: Tensor, messages: Tensor) -> list[Tensor]:
        """Scores of sender, of receiver over the link, and of receiver for the language, in evaluation mode."""
        step = max(PAPERS_BATCH, ROWS_AT_ONCE // len(meanings))
        parts = [self.learner.run(x, y) for x, y in zip(meanings.split(step, 1), messages.split(step, 1), strict=True)]
        return [torch.cat(of_one, 1) for of_one in zip(*parts, strict=True)]

    def _retire(self) -> Iterator[Outcome]:
        ended = [i for i, p in enumerate(self.players) if p.steps <= self.updates]
        diverged = (~torch.isfinite(self.learner.losses())).tolist()  # type: ignore[arg-type]
        ended = sorted({*ended, *(i for i, lost in enumerate(diverged) if lost)})
        if not ended:
            return
        final = self._read("report") if self.settings.fresh_reading else [p.curve[-1] for p in self.players]
        languages = self._languages(ended)
        outcomes = [self._outcome(self.players[i], final[i], diverged[i], languages[i]) for i in ended]
        staying = [i for i in range(len(self.players)) if i not in ended]
        self.players = [self.players[i] for i in staying]
        if staying:
            self.learner.keep(staying)
            self.draws.keep(staying)
        yield from outcomes

    def _outcome(self, player: _Player, final: list[float | None], diverged: bool, language: Language) -> Outcome:
        _, accuracy, loss, rho, of_sender, of_receiver = final
        extra = {
            **player.before,
            "end_to_end_accuracy": accuracy,
            "end_to_end_loss": _finite(loss),
            "topsim": _finite(rho),
            "sender_accuracy": of_sender,
            "receiver_accuracy": of_receiver,
            "language": self._save(player.replicate, language),
        }
        curve: Any = [[_finite(value) for value in row] for row in player.curve]
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
        )

    def _languages(self, which: Sequence[int]) -> dict[int, Language]:
        """What the senders of some pairs say of every meaning, greedily."""
        space, device = self.job.task.space, torch.device(self.job.device)
        table = torch.from_numpy(space.meanings(np.arange(space.size))).to(device)
        step = max(PAPERS_BATCH, ROWS_AT_ONCE // len(self.players))
        said: list[Tensor] = []
        for some in table.split(step):
            sent = self.learner.run(some.expand(len(self.players), *some.shape))[0]
            said.append(sent.argmax(-1).to(torch.int32).cpu())
        tokens = torch.cat(said, 1).numpy()
        return {i: _emerged(self.job.task, self.players[i].replicate, tokens[i]) for i in which}

    def _save(self, replicate: Replicate, language: Language) -> str:
        """File a language beside the records; returns its path from there."""
        place = Path(LANGUAGES) / f"{self.job.key(replicate)}.npz"
        (Path(self.job.folder) / LANGUAGES).mkdir(parents=True, exist_ok=True)
        language.save(Path(self.job.folder) / place)
        return str(place)


def _language(task: PairTask, replicate: Replicate) -> Language:
    """The language of pre-training; from scratch, one that nothing is compared with."""
    if replicate.grammar == SCRATCH:
        nothing = np.zeros((task.space.size, task.message_length), dtype=np.uint8)
        return Language(task.space, nothing, task.vocab_size)
    return make_language(replicate.grammar, task.space, task.vocab_size, task.word_length, replicate.seed)


def _emerged(task: PairTask, replicate: Replicate, tokens: np.ndarray[Any, Any]) -> Language:
    """Messages as a language. No one keeps a sender from saying the start symbol, which then counts as one more."""
    vocabulary = max(task.vocab_size, int(tokens.max()) + 1)
    origin = "from scratch" if replicate.grammar == SCRATCH else f"after {replicate.grammar}"
    return Language(
        task.space, tokens, vocabulary, name=f"{task.entry.name} {task.representation} {origin}", seed=replicate.seed
    )


def _topsim(meanings: Tensor, messages: Tensor, settings: TrainingSettings) -> float:
    """Topographic similarity of some messages; each meaning once, unless as published."""
    if settings.training_readings:
        rho = topsim(meanings.numpy(), messages.numpy(), "ordered")
        return 0.0 if math.isnan(rho) else rho
    table, first = np.unique(meanings.numpy(), axis=0, return_index=True)
    return topsim(table, messages.numpy()[first])


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None
