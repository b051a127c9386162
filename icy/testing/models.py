"""Checks of senders and receivers."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from icy.core.errors import IcyError, IncompatibleError
from icy.core.representations import one_hot
from icy.core.representations.samples import UNCOUNTED, counted
from icy.core.streams import stream
from icy.languages.meanings import MeaningSpace
from icy.training.gradient import Loss
from icy.training.learners import Learner, accuracy, are_probabilities, sentence_on, supervised_loss
from icy.training.probe_settings import ProbeSettings
from icy.training.task_models import make_model, representation_of

from .cases import CheckFailure, NotApplicable, first_line, require, require_close
from .modules import (
    SEEDS,
    SETTINGS,
    Tensors,
    TrainedCase,
    keys,
    learns_by_gradient,
    require_gradient_learning,
)

EXAMPLES = 16  # in a batch
UPDATES = {"soft": 10}  # on one batch
UPDATES_OTHERWISE = 60  # gradients from samples are noisy, and gradients through rounding are biased
LEAST_PROBABILITY = 1e-6  # of end tokens after these updates; before training it is some 1 / (V + 1)


@dataclass(frozen=True)
class ModelCase(TrainedCase[nn.Module]):
    """A model under test, and its small sizes in the tests.

    Attributes:
        space: the meanings.
        vocab_size: V.
        word_length: w; messages have A * w tokens.
        hidden_size: E.
        representation: the representation; by default the first that the model supports.
        options: further arguments of the factory.
        ends: whether the messages of its examples have different lengths.
    """

    space: MeaningSpace | str | tuple[int, int] = "3x4"
    vocab_size: int = 4
    word_length: int = 2
    hidden_size: int = 16
    representation: str | None = None
    options: Mapping[str, object] | None = None
    ends: bool = False

    @cached_property
    def task(self) -> ProbeSettings:
        """The model and its sizes."""
        used = self.representation or (*self.entry.representations, "soft")[0]
        sizes = self.vocab_size, self.word_length, self.hidden_size
        return ProbeSettings.of_model(self.entry, self.space, *sizes, used, dict(self.options or {}))

    def create(self, seed: int, **options: Any) -> object:
        """Make the model with the weights of a seed."""
        return make_model(self.task, seed, SETTINGS)

    def ready(self) -> nn.Module:
        """Create the model; a model that stores examples gets some."""
        model: Any = self.make()
        if not learns_by_gradient(model):
            model.observe(*self.examples(EXAMPLES, draw=1))
        return model  # type: ignore[no-any-return]

    def forms(self) -> dict[str, nn.Module]:
        """Make the model, ready to run."""
        return {"": self.ready()}

    def examples(self, count: int | None = None, draw: int = 0) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of a random language: `count` at random, or one for every meaning."""
        task, space = self.task, self.task.space
        table = stream(self.seed, "testing", "table").integers(task.vocab_size, size=(space.size, task.message_length))
        if self.ends:
            lengths = stream(self.seed, "testing", "lengths").integers(1, task.message_length + 1, size=(space.size, 1))
            table = np.where(np.arange(task.message_length) < lengths, table, task.vocab_size)
        rows = np.arange(space.size)
        if count is not None:
            rows = stream(self.seed, "testing", "rows", draw).integers(space.size, size=count)
        meanings, messages = torch.from_numpy(space.meanings(rows)), torch.from_numpy(table[rows])
        return (meanings, messages) if task.side == "sender" else (messages, meanings)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores of one example."""
        task = self.task
        if task.side == "sender":
            return task.message_length, task.vocab_size + 1
        return task.space.attributes, task.space.values

    def scores(self, model: nn.Module, inputs: Tensor) -> Tensor:
        """Return the scores of a model, without gradients."""
        return self.run(model, (inputs,))[0]

    def checked_scores(self, count: int) -> Tensor:
        """Return the scores of `count` examples; fail unless they have the agreed shape."""
        scores, expected = self.scores(self.ready(), self.examples(count)[0]), (count, *self.shape)
        where = f"{self.task.space}, {self.task.message_length} tokens, vocabulary {self.vocab_size}"
        require(isinstance(scores, Tensor), f"The output is a {type(scores).__name__}, not a tensor.")
        found = tuple(scores.shape)
        require(found == expected, f"The scores have shape {found}, not {expected} ({where}).")
        require(scores.is_floating_point(), f"The scores are {scores.dtype}, not floating point.")
        return scores

    def draw_inputs(self, model: nn.Module) -> Tensors:
        """Return inputs of random examples."""
        return self.examples(EXAMPLES)[:1]

    def extreme_inputs(self, model: nn.Module) -> Tensors:
        """Return an input for every meaning."""
        return self.examples()[:1]

    def outputs(self, model: nn.Module, given: Tensors) -> Tensors:
        """Return the scores."""
        return (model(*given),)

    def loss(self) -> Loss:
        """Return the loss of supervised training."""
        return supervised_loss(representation_of(self.task, SETTINGS), self.task.side, self.ends)

    def batches(self, seeds: Sequence[int], update: int) -> tuple[Tensor, Tensor]:
        """Return a batch for each replicate, [replicate, batch, ...], which depends only on the replicate's seed."""
        drawn = [self.examples(EXAMPLES, draw=1000 * seed + update) for seed in seeds]
        return torch.stack([x for x, _ in drawn]), torch.stack([y for _, y in drawn])

    def stacks(self, seeds: Sequence[int]) -> list[Learner]:
        """Return the replicates as one program; with native cores, also in PyTorch, as on a GPU."""
        found = [self.learner(seeds)]
        if found[0].engine == "native":
            try:
                found.append(self.learner(seeds, "broadcast"))
            except IncompatibleError:
                found.append(self.learner(seeds, "vmap"))
        return found

    def check_output_shape(self) -> None:
        """Scores are [batch, length, vocab + 1] for a sender, [batch, attribute, value] for a receiver."""
        self.checked_scores(EXAMPLES)

    def check_batch_of_one(self) -> None:
        """A single example keeps its batch axis."""
        self.checked_scores(1)

    def check_message_lengths(self) -> None:
        """Longer and shorter messages work, each in a model created for it."""
        for word_length in (1, self.word_length + 3):
            replace(self, word_length=word_length).checked_scores(3)

    def check_other_spaces(self) -> None:
        """Other meaning spaces, vocabularies and hidden sizes work: one attribute, attributes of several sizes."""
        for space, vocab_size, hidden_size in (("2x5", 7, 8), ("4x3", 3, 12), ("1x3", 2, 8), ("5,2,3", 4, 8)):
            replace(self, space=space, vocab_size=vocab_size, hidden_size=hidden_size).checked_scores(3)

    def check_soft_messages(self) -> None:
        """A receiver takes weights over symbols, with one-hot weights as the token; or an IcyError refuses them."""
        if self.task.side != "receiver":
            raise NotApplicable("only receivers read messages")
        model, inputs = self.ready(), self.examples(EXAMPLES)[0]
        weights = one_hot(inputs, self.vocab_size + 1)
        try:
            scores, soft = self.scores(model, weights), self.scores(model, weights / 2 + weights.flip(-1) / 2)
        except IcyError as refusal:
            raise NotApplicable(f"the model only takes tokens: {refusal}") from refusal
        except Exception as error:
            raise CheckFailure(
                "A message of weights over symbols [batch, length, vocab + 1] raises "
                f"{type(error).__name__}: {first_line(error)}. Multiply them with the embedding's weight, or raise "
                "icy.core.errors.IncompatibleError with a sentence that the model only takes tokens."
            ) from error
        require_close(scores, self.scores(model, inputs), "Scores of tokens and of one-hot weights")
        require(soft.isfinite().all(), "The scores of a soft message are not finite.")

    def check_values_are_one_hot_weights(self) -> None:
        """A sender gives the same scores for values and for their one-hot weights, as in games."""
        if self.task.side != "sender":
            raise NotApplicable("only senders read meanings")
        model, values = self.ready(), self.examples(EXAMPLES)[0]
        try:
            scores = self.scores(model, one_hot(values, self.task.space.values))
        except Exception as error:
            raise NotApplicable(
                "the sender takes values alone; to play in games, it must take weights over them as well, "
                "[batch, attribute, value]"
            ) from error
        require_close(scores, self.scores(model, values), "Scores of values and of their one-hot weights")

    def check_scores_not_probabilities(self) -> None:
        """The model outputs scores (logits), without a softmax at its end, because the loss applies softmax."""
        model = self.make()
        require_gradient_learning(model)
        require(not are_probabilities(self.scores(model, self.examples()[0])), sentence_on(f"The {self.noun}"))

    def check_deepcopy(self) -> None:
        """A deep copy gives the same output and shares no weights."""
        model = self.ready()
        copied, (expected,) = copy.deepcopy(model), self.run(model)
        require(torch.equal(self.run(copied)[0], expected), "A deep copy gives another output.")
        with torch.no_grad():
            for p in copied.parameters():
                p.add_(1)
        require(torch.equal(self.run(model)[0], expected), "A change to a deep copy changes the model.")

    def check_goes_on(self) -> None:
        """Training that resumes from a checkpoint ends exactly as without the interruption."""
        whole, first, rest = (self.learner(SEEDS) for _ in range(3))
        inputs, _ = self.batches(SEEDS, 99)
        self.train(whole, SEEDS, range(4))
        self.train(first, SEEDS, range(2))
        held = io.BytesIO()
        torch.save([first.state(place) for place in range(len(SEEDS))], held)
        held.seek(0)
        try:
            rest.resume(torch.load(held, weights_only=True))
        except IncompatibleError as error:
            raise NotApplicable(f"{error}: it starts again") from error
        self.train(rest, SEEDS, range(2, 4))
        require(
            torch.equal(rest.scores(inputs), whole.scores(inputs)),
            "It ends differently: some state that training changes is not a parameter or a buffer of the model.",
        )

    def check_parameter_count(self) -> None:
        """`parameter_count` counts the trainable parameters, and the published total is not smaller."""
        model: Any = self.make()
        if not hasattr(model, "parameter_count"):
            raise NotApplicable("the model has no parameter_count; the sum over its parameters is reported")
        true, there = model.parameter_count("true"), sum(p.numel() for p in model.parameters() if p.requires_grad)
        require(true == there, f"parameter_count gives {true}, but there are {there} trainable parameters.")
        published = model.parameter_count("published")
        require(published >= true, f"The published total {published} is below the true count {true}.")

    def check_learns(self) -> None:
        """Training on one batch makes its answers more likely; a model that stores examples gets more answers right."""
        learner = self.learner(SEEDS[:1])
        inputs, targets = self.batches(SEEDS[:1], 0)
        counts = counted(targets, self.vocab_size) if self.ends and self.task.side == "sender" else targets >= 0
        answers = targets.masked_fill(~counts, UNCOUNTED)

        def likelihood() -> Tensor:
            return learner.scores(inputs).softmax(-1).gather(-1, targets.long().unsqueeze(-1)).squeeze(-1)

        before, right_before = likelihood(), accuracy(learner, inputs, answers).item()
        updates = UPDATES.get(self.task.representation, UPDATES_OTHERWISE)
        for update in range(updates):
            learner.update(inputs, targets, keys(SEEDS[:1], update))
        after, right = likelihood(), accuracy(learner, inputs, answers).item()
        if not learns_by_gradient(self.make()):
            sentence = f"After storing a batch, {right:.0%} of it are right; before, {right_before:.0%}."
            require(right > right_before, sentence)
            return
        low, high = (p[counts].mean().item() for p in (before, after))
        change = f"changed the probability of its answers from {low:.3g} to {high:.3g}"
        require(high > low, f"{updates} updates on one batch {change}.")
        ends = after[counts & (targets == self.vocab_size)]
        require(
            not len(ends) or ends.mean().item() > LEAST_PROBABILITY,
            f"After {updates} updates on one batch, its end tokens have a probability of {ends.mean().item():.3g}: a "
            "sender that cannot end messages declares `takes_ends = False`.",
        )

    def check_messages_that_end(self) -> None:
        """A sender learns messages of different lengths, and a receiver reads them, unless `takes_ends` is False."""
        if not getattr(self.make(), "takes_ends", True):
            raise NotApplicable("the model declares `takes_ends = False`")
        ended = replace(self, ends=True)
        if self.task.side == "receiver":
            finite = ended.checked_scores(EXAMPLES).isfinite().all()
            require(finite, "The scores of messages that end early are not finite.")
            return
        try:
            ended.loss()
        except IncompatibleError as refusal:
            raise NotApplicable(str(refusal)) from refusal
        ended.check_learns()
