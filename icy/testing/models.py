"""Checks of senders and receivers. The first line of each docstring is the claim that the check tests."""

from __future__ import annotations

import copy
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.ends import UNCOUNTED, counted
from icy.core.errors import IcyError, IncompatibleError
from icy.core.registry import Entry
from icy.core.representations import one_hot
from icy.core.streams import stream
from icy.languages.meanings import MeaningSpace
from icy.models.creation import create
from icy.training.engine import make_model, representation_of
from icy.training.gradient import Loss
from icy.training.learners import Learner, accuracy, supervised_loss
from icy.training.probabilities import are_probabilities, sentence_on
from icy.training.tasks import Task

from . import modules
from .cases import (
    SETTINGS,
    CheckFailure,
    NotApplicable,
    first_line,
    named,
    require,
    require_close,
    require_registered,
    run,
)
from .modules import SEEDS, TrainedCase, keys, require_gradients, require_same_training
from .other_loops import OtherLoopCase, other_loop_checks

EXAMPLES = 16  # in a batch
UPDATES = {"soft": 10}  # on one batch
UPDATES_OTHERWISE = 60  # gradients from samples are noisy, and gradients through rounding are biased
LEAST_PROBABILITY = 1e-6  # of end tokens after these updates; before training it is some 1 / (V + 1)


@dataclass(frozen=True)
class ModelCase(TrainedCase[nn.Module]):
    """A model under test, and its small sizes in the tests.

    Attributes:
        task: the model and its sizes.
        seed: seed of weights and examples.
        registered: whether the registry knows the model.
        ends: whether the messages of its examples have different lengths.
    """

    noun = "model"
    task: Task
    seed: int = 0
    registered: bool = True
    ends: bool = False

    def make(self, seed: int | None = None) -> nn.Module:
        """Make the model with the weights of a seed, in evaluation mode."""
        return make_model(self.task, self.seed if seed is None else seed, TrainingSettings()).eval()

    def ready(self) -> nn.Module:
        """Create the model; a model that stores examples gets some."""
        model: Any = self.make()
        if not learns_by_gradient(model):
            model.observe(*self.examples(EXAMPLES, draw=1))
        return model  # type: ignore[no-any-return]

    def forms(self) -> dict[str, nn.Module]:
        """Make the model, ready to run."""
        return {"": self.ready()}

    def with_task(self, **changes: Any) -> ModelCase:
        """Return the same model with another task."""
        return replace(self, task=replace(self.task, **changes))

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

    def check_shape(self, count: int) -> Tensor:
        """Return the scores of `count` examples; fail unless they have the agreed shape."""
        inputs, _ = self.examples(count)
        scores = run(self.ready(), inputs)
        where = f"{self.task.space}, {self.task.message_length} tokens, vocabulary {self.task.vocab_size}"
        expected = (count, *self.shape)
        require(isinstance(scores, Tensor), f"The output is a {type(scores).__name__}, not a tensor.")
        require(
            tuple(scores.shape) == expected, f"The scores have shape {tuple(scores.shape)}, not {expected} ({where})."
        )
        require(scores.is_floating_point(), f"The scores are {scores.dtype}, not floating point.")
        return scores

    def gradient_model(self) -> nn.Module:
        """Create the model, if it learns by gradient.

        Raises:
            NotApplicable: the model does not learn by gradient.
        """
        model = self.make()
        if not learns_by_gradient(model):
            raise NotApplicable("the model stores examples and does not learn by gradient")
        return model

    def draw_inputs(self, model: nn.Module) -> tuple[Tensor, ...]:
        """Return inputs of random examples."""
        return self.examples(EXAMPLES)[:1]

    def outputs(self, model: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return the scores."""
        return (run(model, *given),)

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


def learns_by_gradient(model: nn.Module) -> bool:
    """Return whether a model learns by gradient; other models store examples."""
    return bool(getattr(model, "learns_by_gradient", True))


def first_representation(entry: Entry) -> str:
    """Return the default representation of a model's checks: the first that the model supports."""
    return entry.representations[0] if entry.representations else "soft"


def check_made_by_name(case: ModelCase) -> None:
    """The registry knows the model by its name and its aliases, and creates it."""
    entry, task = case.task.entry, case.task
    require_registered(entry, case.registered)
    sizes = (task.message_length, task.vocab_size, task.hidden_size)
    model = create(entry, task.space, *sizes, representation=task.representation, **task.options)
    require(isinstance(model, nn.Module), f"The factory made a {type(model).__name__}, not a torch.nn.Module.")


def check_output_shape(case: ModelCase) -> None:
    """Scores are [batch, length, vocab + 1] for a sender, [batch, attribute, value] for a receiver."""
    case.check_shape(EXAMPLES)


def check_batch_of_one(case: ModelCase) -> None:
    """A single example keeps its batch axis."""
    case.check_shape(1)


def check_message_lengths(case: ModelCase) -> None:
    """Longer and shorter messages work, each in a model created for it."""
    for word_length in (1, case.task.word_length + 3):
        case.with_task(word_length=word_length).check_shape(3)


def check_other_spaces(case: ModelCase) -> None:
    """Other meaning spaces, vocabularies and hidden sizes work: one attribute, attributes of several sizes."""
    for space, vocab_size, hidden_size in (("2x5", 7, 8), ("4x3", 3, 12), ("1x3", 2, 8), ("5,2,3", 4, 8)):
        case.with_task(space=MeaningSpace.parse(space), vocab_size=vocab_size, hidden_size=hidden_size).check_shape(3)


def check_soft_messages(case: ModelCase) -> None:
    """A receiver takes weights over symbols, or refuses them with an IcyError."""
    inputs, model = _receiver_inputs(case)
    weights = torch.rand(*inputs.shape, case.task.vocab_size + 1, dtype=torch.float32, device="cpu").softmax(-1)
    scores = _read_weights(model, weights)
    require(tuple(scores.shape) == (len(inputs), *case.shape), f"The scores have shape {tuple(scores.shape)}.")
    require(scores.isfinite().all(), "The scores of a soft message are not finite.")


def check_tokens_are_one_hot_weights(case: ModelCase) -> None:
    """A receiver gives the same scores for tokens and for their one-hot weights."""
    inputs, model = _receiver_inputs(case)
    weights = one_hot(inputs, case.task.vocab_size + 1)
    try:
        scores = _read_weights(model, weights)
    except CheckFailure as failure:
        raise NotApplicable("the model does not read weights, as the check 'soft_messages' reports") from failure
    require_close(scores, run(model, inputs), "Scores of tokens and of one-hot weights")


def _receiver_inputs(case: ModelCase) -> tuple[Tensor, nn.Module]:
    if case.task.side != "receiver":
        raise NotApplicable("only receivers read messages")
    return case.examples(EXAMPLES)[0], case.ready()


def _read_weights(model: nn.Module, weights: Tensor) -> Tensor:
    try:
        return run(model, weights)
    except IcyError as refusal:
        raise NotApplicable(f"the model only takes tokens: {refusal}") from refusal
    except Exception as error:
        raise CheckFailure(
            "A message of weights over symbols [batch, length, vocab + 1] raises "
            f"{type(error).__name__}: {first_line(error)}. Multiply them with the embedding's weight, or raise "
            "icy.core.errors.IncompatibleError with a sentence that the model only takes tokens."
        ) from error


def check_values_are_one_hot_weights(case: ModelCase) -> None:
    """A sender gives the same scores for values and for their one-hot weights, as in games."""
    if case.task.side != "sender":
        raise NotApplicable("only senders read meanings")
    (values, _), model = case.examples(EXAMPLES), case.ready()
    try:
        scores = run(model, one_hot(values, case.task.space.values))
    except Exception as error:
        raise NotApplicable(
            "the sender takes values alone; to play in games, it must take weights over them as well, "
            "[batch, attribute, value]"
        ) from error
    require_close(scores, run(model, values), "Scores of values and of their one-hot weights")


def check_finite_output(case: ModelCase) -> None:
    """No score is infinite or NaN, over all meanings."""
    require(run(case.ready(), case.examples()[0]).isfinite().all(), "Some scores are infinite or NaN.")


def check_scores_not_probabilities(case: ModelCase) -> None:
    """The model outputs scores (logits), without a softmax at its end, because the loss applies softmax."""
    scores = run(case.gradient_model().eval(), case.examples()[0])
    require(not are_probabilities(scores), sentence_on(f"The {case.task.side}"))


def check_gradients_reach_parameters(case: ModelCase) -> None:
    """Every trainable parameter gets a finite gradient that is not all zero."""
    model, (inputs, _) = case.gradient_model(), case.examples()
    require(any(p.requires_grad for p in model.parameters()), "The model has no trainable parameters.")
    require_gradients(model, model(inputs), case.seed)


def check_deepcopy(case: ModelCase) -> None:
    """A deep copy gives the same output and shares no weights."""
    model, (inputs, _) = case.ready(), case.examples(EXAMPLES)
    copied, expected = copy.deepcopy(model), run(model, inputs)
    require(torch.equal(run(copied, inputs), expected), "A deep copy gives another output.")
    with torch.no_grad():
        for p in copied.parameters():
            p.add_(1)
    require(torch.equal(run(model, inputs), expected), "A change to a deep copy changes the model.")


def check_moves_to_device(case: ModelCase) -> str:
    """The model runs on any device: on the CPU, and on a GPU if there is one."""
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    expected, (inputs, _) = run(case.ready(), case.examples(EXAMPLES)[0]), case.examples(EXAMPLES)
    for device in devices:
        scores = run(case.ready().to(device), inputs.to(device))
        require(scores.device.type == device, f"On {device} the scores are on {scores.device}.")
        require_close(scores, expected, f"Outputs on {device} and on the CPU", 1e-3)
    return f"tried on {' and '.join(devices)}"


def check_keep(case: ModelCase) -> None:
    """Removing a finished replicate from the stack does not change the others."""
    whole, part, staying = case.learner(SEEDS), case.learner(SEEDS), [0, 2]
    seeds = [SEEDS[i] for i in staying]
    inputs, _ = case.batches(SEEDS, 99)
    before = whole.scores(inputs)[staying]
    for learner in (whole, part):
        case.train(learner, SEEDS, range(2))
    part.keep(staying)
    case.train(whole, SEEDS, range(2, 4))
    case.train(part, seeds, range(2, 4))
    found, expected = part.scores(inputs[staying]), whole.scores(inputs)[staying]
    require_same_training(found, expected, before, "Replicates in a stack without a finished one, and with it")


def check_goes_on(case: ModelCase) -> None:
    """Training that resumes from a checkpoint ends exactly as without the interruption."""
    whole, first, rest = (case.learner(SEEDS) for _ in range(3))
    inputs, _ = case.batches(SEEDS, 99)
    case.train(whole, SEEDS, range(4))
    case.train(first, SEEDS, range(2))
    held = io.BytesIO()
    torch.save([first.state(place) for place in range(len(SEEDS))], held)
    held.seek(0)
    try:
        rest.resume(torch.load(held, weights_only=True))
    except IncompatibleError as error:
        raise NotApplicable(f"{error}: it starts again") from error
    case.train(rest, SEEDS, range(2, 4))
    require(
        torch.equal(rest.scores(inputs), whole.scores(inputs)),
        "It ends differently: some state that training changes is not a parameter or a buffer of the model.",
    )


def check_parameter_count(case: ModelCase) -> None:
    """`parameter_count` counts the trainable parameters, and the published total is not smaller."""
    model: Any = case.make()
    if not hasattr(model, "parameter_count"):
        raise NotApplicable("the model has no parameter_count; the sum over its parameters is reported")
    true, there = model.parameter_count("true"), sum(p.numel() for p in model.parameters() if p.requires_grad)
    require(true == there, f"parameter_count gives {true}, but there are {there} trainable parameters.")
    published = model.parameter_count("published")
    require(published >= true, f"The published total {published} is below the true count {true}.")


def check_messages_that_end(case: ModelCase) -> None:
    """A sender learns messages of different lengths, and a receiver reads them, unless `takes_ends` is False."""
    if not getattr(case.make(), "takes_ends", True):
        raise NotApplicable("the model declares `takes_ends = False`")
    ended = replace(case, ends=True)
    if case.task.side == "receiver":
        require(ended.check_shape(EXAMPLES).isfinite().all(), "The scores of messages that end early are not finite.")
        return
    try:
        ended.loss()
    except IncompatibleError as refusal:
        raise NotApplicable(str(refusal)) from refusal
    check_learns(ended)


def check_learns(case: ModelCase) -> None:
    """Training on one batch makes its answers more likely; a model that stores examples gets more answers right."""
    learner = case.learner(SEEDS[:1])
    inputs, targets = case.batches(SEEDS[:1], 0)
    counts = counted(targets, case.task.vocab_size) if case.ends and case.task.side == "sender" else targets >= 0
    answers = targets.masked_fill(~counts, UNCOUNTED)

    def likelihood() -> Tensor:
        return learner.scores(inputs).softmax(-1).gather(-1, targets.long().unsqueeze(-1)).squeeze(-1)

    before, right_before = likelihood(), accuracy(learner, inputs, answers).item()
    updates = UPDATES.get(case.task.representation, UPDATES_OTHERWISE)
    for update in range(updates):
        learner.update(inputs, targets, keys(SEEDS[:1], update))
    after, right = likelihood(), accuracy(learner, inputs, answers).item()
    if not learns_by_gradient(case.make()):
        require(
            right > right_before, f"After storing a batch, {right:.0%} of it are right; before, {right_before:.0%}."
        )
        return
    low, high = (p[counts].mean().item() for p in (before, after))
    require(
        high > low,
        f"{updates} updates on one batch changed the probability of its answers from {low:.3g} to {high:.3g}.",
    )
    ends = after[counts & (targets == case.task.vocab_size)]
    require(
        not len(ends) or ends.mean().item() > LEAST_PROBABILITY,
        f"After {updates} updates on one batch, its end tokens have a probability of {ends.mean().item():.3g}: a "
        "sender that cannot end messages declares `takes_ends = False`.",
    )


def _in_another_loop(case: ModelCase, is_short: bool = False) -> OtherLoopCase:
    return OtherLoopCase(
        make=lambda seed: case.make(case.seed + seed),
        inputs=case.examples(EXAMPLES)[0],
        shape=case.shape,
        learns=learns_by_gradient(case.make()),
        ready=case.ready,
        short=None if is_short else _in_another_loop(case.with_task(word_length=1), is_short=True),
    )


MODEL_CHECKS = named(
    check_made_by_name,
    check_output_shape,
    check_batch_of_one,
    check_message_lengths,
    check_other_spaces,
    check_soft_messages,
    check_tokens_are_one_hot_weights,
    check_values_are_one_hot_weights,
    check_finite_output,
    check_scores_not_probabilities,
    modules.check_same_seed_same_weights,
    modules.check_different_seeds_differ,
    modules.check_random_state_untouched,
    modules.check_deterministic,
    modules.check_inputs_unchanged,
    modules.check_examples_independent,
    check_gradients_reach_parameters,
    modules.check_pickles,
    check_deepcopy,
    check_moves_to_device,
    modules.check_float64,
    modules.check_stacked_equals_separate,
    check_keep,
    check_goes_on,
    check_parameter_count,
    check_learns,
    check_messages_that_end,
)
MODEL_CHECKS |= other_loop_checks(_in_another_loop)
