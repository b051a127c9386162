"""Checks of senders and receivers. The first line of each check says what it proves."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import torch
from joblib.externals.loky.backend.reduction import dumps
from torch import Tensor, nn

from icy.core.errors import IcyError, IncompatibleError
from icy.core.representations import one_hot
from icy.core.streams import stream
from icy.languages.meanings import MeaningSpace
from icy.models.creation import create
from icy.training.learners import Learner, accuracy
from icy.training.probabilities import are_probabilities, sentence_on

from .cases import (
    EXAMPLES,
    Check,
    CheckFailure,
    ModelCase,
    NotApplicable,
    check_of,
    first_line,
    require,
    require_close,
    require_gradients,
    require_registered,
    require_same_training,
    run,
    same_random_state,
)
from .other_loops import OtherLoopCase, other_loop_checks

SEEDS = (11, 12, 13)  # of the three replicates that are trained together
UPDATES = {"soft": 10}  # on one batch
UPDATES_OTHERWISE = 60  # gradients from samples are noisy, and those past rounding are not of what is emitted

MODEL_CHECKS: dict[str, Check] = {}


@check_of(MODEL_CHECKS)
def check_made_by_name(case: ModelCase) -> None:
    """The registry knows the model by its name and its aliases, and makes it."""
    entry, task = case.task.entry, case.task
    require_registered(entry, case.registered)
    sizes = (task.message_length, task.vocab_size, task.hidden_size)
    model = create(entry, task.space, *sizes, representation=task.representation, **task.options)
    require(isinstance(model, nn.Module), f"The factory makes a {type(model).__name__}, not a torch.nn.Module.")


@check_of(MODEL_CHECKS)
def check_output_shape(case: ModelCase) -> None:
    """Scores are [batch, length, vocab + 1] for a sender, [batch, attribute, value] for a receiver."""
    case.check_shape(EXAMPLES)


@check_of(MODEL_CHECKS)
def check_batch_of_one(case: ModelCase) -> None:
    """A single example keeps its batch axis."""
    case.check_shape(1)


@check_of(MODEL_CHECKS)
def check_message_lengths(case: ModelCase) -> None:
    """Longer and shorter messages work, each in a model made for them."""
    for word_length in (1, case.task.word_length + 3):
        case.with_task(word_length=word_length).check_shape(3)


@check_of(MODEL_CHECKS)
def check_other_spaces(case: ModelCase) -> None:
    """Other meaning spaces, vocabularies and hidden sizes work; even one attribute."""
    for space, vocab_size, hidden_size in (((2, 5), 7, 8), ((4, 3), 3, 12), ((1, 3), 2, 8)):
        case.with_task(space=MeaningSpace(*space), vocab_size=vocab_size, hidden_size=hidden_size).check_shape(3)


@check_of(MODEL_CHECKS)
def check_soft_messages(case: ModelCase) -> None:
    """A receiver takes weights over symbols, or refuses them with an IcyError that says so."""
    inputs, model = _receiver_inputs(case)
    weights = torch.rand(*inputs.shape, case.task.vocab_size + 1, dtype=torch.float32, device="cpu").softmax(-1)
    scores = _read_weights(model, weights)
    require(tuple(scores.shape) == (len(inputs), *case.shape), f"The scores have shape {tuple(scores.shape)}.")
    require(scores.isfinite().all(), "The scores of a soft message are not finite.")


@check_of(MODEL_CHECKS)
def check_tokens_are_one_hot_weights(case: ModelCase) -> None:
    """A receiver gives the same scores for tokens and for their one-hot weights."""
    inputs, model = _receiver_inputs(case)
    weights = one_hot(inputs, case.task.vocab_size + 1)
    try:
        scores = _read_weights(model, weights)
    except CheckFailure as failure:
        raise NotApplicable("the model does not read weights, as the check 'soft_messages' says") from failure
    require_close(scores, run(model, inputs), "Scores of tokens and of one-hot weights")


def _receiver_inputs(case: ModelCase) -> tuple[Tensor, nn.Module]:
    if case.task.side != "receiver":
        raise NotApplicable("only receivers read messages")
    return case.examples(EXAMPLES)[0], case.ready()


def _read_weights(model: nn.Module, weights: Tensor) -> Tensor:
    try:
        return run(model, weights)
    except IcyError as refusal:
        raise NotApplicable(f"the model takes tokens only: {refusal}") from refusal
    except Exception as error:
        raise CheckFailure(
            "A message given as weights over symbols [batch, length, vocab + 1] ends in "
            f"{type(error).__name__}: {first_line(error)}. Multiply them with the embedding's weight, or raise "
            "icy.core.errors.IncompatibleError with a sentence that says that the model takes tokens only."
        ) from error


@check_of(MODEL_CHECKS)
def check_values_are_one_hot_weights(case: ModelCase) -> None:
    """A sender gives the same scores for values and for their one-hot weights, as agents of games are given them."""
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


@check_of(MODEL_CHECKS)
def check_finite_output(case: ModelCase) -> None:
    """No score is infinite or NaN, over all meanings."""
    require(run(case.ready(), case.examples()[0]).isfinite().all(), "Some scores are infinite or NaN.")


@check_of(MODEL_CHECKS)
def check_scores_not_probabilities(case: ModelCase) -> None:
    """The model puts out scores (logits): no softmax ends it, as the loss applies one."""
    scores = run(case.gradient_model().eval(), case.examples()[0])
    require(not are_probabilities(scores), sentence_on(f"The {case.task.side}"))


@check_of(MODEL_CHECKS)
def check_same_seed_same_weights(case: ModelCase) -> None:
    """A seed gives the same weights every time, whatever was drawn before."""
    first = case.make().state_dict()
    torch.rand(5, dtype=torch.float32, device="cpu")
    for name, value in case.make().state_dict().items():
        same = torch.equal(first[name], value) if isinstance(value, Tensor) else first[name] == value
        require(same, f"'{name}' differs between two models of one seed.")


@check_of(MODEL_CHECKS)
def check_different_seeds_differ(case: ModelCase) -> None:
    """Another seed gives other weights."""
    pairs = list(zip(case.make(1).parameters(), case.make(2).parameters(), strict=True))
    if not pairs:
        raise NotApplicable("the model has no parameters")
    require(any(not torch.equal(a, b) for a, b in pairs), "Two seeds give the same weights.")


@check_of(MODEL_CHECKS)
def check_random_state_untouched(case: ModelCase) -> None:
    """Making and running a model leaves the global random state of torch, NumPy and Python as it was."""
    with same_random_state("Making the model"):
        model = case.make()
    with same_random_state("Running the model in evaluation mode"):
        run(model, case.examples(2)[0])


@check_of(MODEL_CHECKS)
def check_deterministic(case: ModelCase) -> None:
    """In evaluation mode the same input gives the same output twice."""
    model, (inputs, _) = case.ready(), case.examples(EXAMPLES)
    require(torch.equal(run(model, inputs), run(model, inputs)), "The same input gives two outputs in evaluation mode.")


@check_of(MODEL_CHECKS)
def check_inputs_unchanged(case: ModelCase) -> None:
    """The model does not write into its input."""
    inputs, _ = case.examples(EXAMPLES)
    before = inputs.clone()
    run(case.ready(), inputs)
    require(torch.equal(inputs, before), "The forward pass changed its input in place.")


@check_of(MODEL_CHECKS)
def check_examples_independent(case: ModelCase) -> None:
    """In evaluation mode the output for an example does not depend on the others in its batch."""
    model, (inputs, _) = case.ready(), case.examples(EXAMPLES)
    together = run(model, inputs)
    require_close(run(model, inputs.flip(0)).flip(0), together, "Outputs of a batch and of the same batch backwards")
    alone = torch.cat([run(model, one) for one in inputs.unsqueeze(1)])
    require_close(alone, together, "Outputs of examples alone and in a batch")


@check_of(MODEL_CHECKS)
def check_gradients_reach_parameters(case: ModelCase) -> None:
    """Every trainable parameter gets a gradient that is finite and not all zero."""
    model, (inputs, _) = case.gradient_model(), case.examples()
    scores = model(inputs)
    direction = torch.from_numpy(stream(case.seed, "testing", "direction").normal(size=tuple(scores.shape)))
    (scores * direction.to(scores.dtype)).sum().backward()
    require(any(p.requires_grad for p in model.parameters()), "The model has no trainable parameters.")
    require_gradients(model)


@check_of(MODEL_CHECKS)
def check_pickles(case: ModelCase) -> None:
    """A copy pickled as for a worker process gives the same output."""
    model, (inputs, _) = case.ready(), case.examples(EXAMPLES)
    copied: nn.Module = pickle.loads(dumps(model))
    require(torch.equal(run(copied, inputs), run(model, inputs)), "A pickled copy gives another output.")


@check_of(MODEL_CHECKS)
def check_deepcopy(case: ModelCase) -> None:
    """A deep copy gives the same output and shares no weights."""
    model, (inputs, _) = case.ready(), case.examples(EXAMPLES)
    copied, expected = copy.deepcopy(model), run(model, inputs)
    require(torch.equal(run(copied, inputs), expected), "A deep copy gives another output.")
    with torch.no_grad():
        for p in copied.parameters():
            p.add_(1)
    require(torch.equal(run(model, inputs), expected), "Changing a deep copy changes the model.")


@check_of(MODEL_CHECKS)
def check_moves_to_device(case: ModelCase) -> str:
    """The model runs wherever it is moved: on the CPU, and on a GPU where there is one."""
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    expected, (inputs, _) = run(case.ready(), case.examples(EXAMPLES)[0]), case.examples(EXAMPLES)
    for device in devices:
        scores = run(case.ready().to(device), inputs.to(device))
        require(scores.device.type == device, f"On {device} the scores are on {scores.device}.")
        require_close(scores, expected, f"Outputs on {device} and on the CPU", 1e-3)
    return f"tried on {' and '.join(devices)}"


@check_of(MODEL_CHECKS)
def check_float64(case: ModelCase) -> None:
    """`model.double()` computes in double precision, to about the same output."""
    inputs, _ = case.examples(EXAMPLES)
    double = case.ready().double()
    scores = run(double, inputs)
    if any(True for _ in double.parameters()):
        require(scores.dtype == torch.float64, f"After model.double() the scores are {scores.dtype}.")
    require_close(scores, run(case.ready(), inputs), "Outputs in double and in single precision", 1e-4)


@check_of(MODEL_CHECKS)
def check_stacked_equals_separate(case: ModelCase) -> str:
    """Three replicates trained as one program equal the same three trained alone, as plain modules."""
    together = [case.learner(SEEDS)]
    if together[0].engine == "native":  # on a GPU, say, the same model is a stack of PyTorch's
        together.append(_stacked_by_pytorch(case))
    inputs, _ = case.batches(SEEDS, 99)
    before = together[-1].scores(inputs)
    for learner in together:
        case.train(learner, SEEDS, range(3))
    for i, seed in enumerate(SEEDS):
        alone = case.learner([seed], "loop")
        case.train(alone, [seed], range(3))
        found = alone.scores(inputs[i : i + 1])
        for learner in together:
            what = f"Replicate {i} in a stack ({learner.engine}) and alone"
            require_same_training(learner.scores(inputs)[i : i + 1], found, before[i : i + 1], what)
    return f"trains as: {' and '.join(learner.engine for learner in together)}"


def _stacked_by_pytorch(case: ModelCase) -> Learner:
    try:
        return case.learner(SEEDS, "broadcast")
    except IncompatibleError:
        return case.learner(SEEDS, "vmap")


@check_of(MODEL_CHECKS)
def check_keep(case: ModelCase) -> None:
    """Taking a finished replicate out of the stack changes nothing for the others."""
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
    require_same_training(found, expected, before, "Replicates after another was left out, and with it")


@check_of(MODEL_CHECKS)
def check_goes_on(case: ModelCase) -> None:
    """Training that goes on from a checkpoint ends as if it had never stopped, to the bit."""
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
        raise NotApplicable(f"{error}: it begins anew") from error
    case.train(rest, SEEDS, range(2, 4))
    require(
        torch.equal(rest.scores(inputs), whole.scores(inputs)),
        "It ends otherwise: the model keeps something that changes as it trains in neither parameters nor buffers.",
    )


@check_of(MODEL_CHECKS)
def check_parameter_count(case: ModelCase) -> None:
    """`parameter_count` counts the trainable parameters, and the published total is no smaller."""
    model: Any = case.make()
    if not hasattr(model, "parameter_count"):
        raise NotApplicable("the model has no parameter_count; the sum over its parameters is reported")
    true, there = model.parameter_count("true"), sum(p.numel() for p in model.parameters() if p.requires_grad)
    require(true == there, f"parameter_count gives {true}, and there are {there} trainable parameters.")
    published = model.parameter_count("published")
    require(published >= true, f"The published total {published} is below the true one {true}.")


@check_of(MODEL_CHECKS)
def check_learns(case: ModelCase) -> None:
    """Training on one batch makes its answers more likely; a model that stores examples gets more of them right."""
    learner = case.learner(SEEDS[:1])
    inputs, targets = case.batches(SEEDS[:1], 0)

    def likelihood() -> float:
        scores = learner.scores(inputs)
        return scores.softmax(-1).gather(-1, targets.long().unsqueeze(-1)).mean().item()

    before, right_before = likelihood(), accuracy(learner, inputs, targets).item()
    updates = UPDATES.get(case.task.representation, UPDATES_OTHERWISE)
    for update in range(updates):
        learner.update(inputs, targets, case.keys(SEEDS[:1], update))
    after, right = likelihood(), accuracy(learner, inputs, targets).item()
    if getattr(case.make(), "learns_by_gradient", True):
        require(
            after > before,
            f"{updates} updates on one batch took the probability of its answers from {before:.3g} to {after:.3g}.",
        )
    else:
        require(
            right > right_before, f"After storing a batch, {right:.0%} of it are right; before, {right_before:.0%}."
        )


def _in_another_loop(case: ModelCase, is_short: bool = False) -> OtherLoopCase:
    return OtherLoopCase(
        make=lambda seed: case.make(case.seed + seed),
        inputs=case.examples(EXAMPLES)[0],
        shape=case.shape,
        learns=getattr(case.make(), "learns_by_gradient", True),
        ready=case.ready,
        short=None if is_short else _in_another_loop(case.with_task(word_length=1), is_short=True),
    )


MODEL_CHECKS |= other_loop_checks(_in_another_loop)
