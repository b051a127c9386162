"""Models of tasks: made from a seed, joined to pairs, restored from records, and compared by their behavior."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.checks import FIRST_SEED
from icy.core.code import short_hash
from icy.core.errors import IncompatibleError, StoreError
from icy.core.noise import current_noise
from icy.core.registry import SIDES
from icy.core.representations import (
    VOCABULARY,
    WITH_START,
    Representation,
    get_representation,
    with_ends,
    without_start,
)
from icy.core.streams import stream_key
from icy.core.types import Choices
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace
from icy.models.creation import create
from icy.models.native.calls import NativeModule
from icy.records.record import Record
from icy.training.pair_settings import EndToEndSettings
from icy.training.probe_settings import ProbeSettings

from .learners import warn_of_probabilities
from .weights import require_version, restore

# -- make the model of a task ------------------------------------------------------------------------------------------


def make_model(
    task: ProbeSettings, seed: int, settings: TrainingSettings, representation: Representation | None = None
) -> nn.Module:
    """Make the model of a task with the initial weights of a seed, independent of earlier random numbers.

    Args:
        task: the task.
        seed: seed of the weights.
        settings: training settings.
        representation: replaces the representation of the task.
    """
    published = task.entry.published if settings.published_models else {}
    representation = representation_of(task, settings) if representation is None else representation
    with torch.random.fork_rng(devices=[]):
        names = ("weights", task.side) if task.paired else ("weights",)
        torch.default_generator.manual_seed(stream_key(seed, *names))  # only the CPU's generator
        model = create(
            task.entry,
            task.space,
            task.message_length,
            task.vocab_size,
            task.hidden,
            **{"representation": representation, **published, **task.options},
        )
    if task.side == "sender" and getattr(representation, "symbols", WITH_START) == VOCABULARY:
        model.register_forward_hook(_without_start)
    return model


def _without_start(model: nn.Module, inputs: Any, scores: Tensor) -> Tensor:
    """Restrict the scores of a sender to the vocabulary."""
    return without_start(scores)


def representation_of(task: ProbeSettings, settings: TrainingSettings) -> Representation:
    """Return the representation of a task with these settings."""
    return get_representation(task.representation, **settings.under(task.representation))


# -- the behavior of user code for fixed inputs, which shows differences that the code does not show -------------------

# A model may depend on a file, on the environment, on compiled code, or on the version of another package. So its
# parameters and buffers, and its scores for a fixed input, are recorded with its results. They are compared before a
# result is used again, with a tolerance, since processors differ.


M = TypeVar("M", bound=nn.Module)
Behavior: TypeAlias = Mapping[str, Any]  # "tensors": hash of names and shapes; "numbers": sums over outputs
SEED = 1960
ROWS = 4  # inputs
SUMS = 3  # weighted sums of an output
TOLERANCE = 1e-3  # relative difference of a number that counts as equal


@contextlib.contextmanager
def fixed_randomness() -> Iterator[None]:
    """Within the block, the global generators of Python, NumPy and PyTorch start from a fixed seed."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            random.seed(SEED)
            np.random.seed(SEED)
            torch.default_generator.manual_seed(SEED)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def behavior_of(
    make: Callable[[], M], *inputs: Tensor, run: Callable[[M, Tensor], Any] = nn.Module.__call__
) -> Behavior:
    """Return the behavior of a module: its tensors, and sums of its outputs and gradients.

    Args:
        make: makes the module.
        *inputs: inputs to try in turn. The first that the module accepts is used, in training and in evaluation mode.
            A module that accepts none has no numbers.
        run: calls the module with an input.
    """
    with fixed_randomness():
        model = make()
        tensors = [*model.named_parameters(), *model.named_buffers()]
        shapes = "\n".join(
            f"{name} {value.dtype} {tuple(value.shape)} {value.requires_grad}" for name, value in tensors
        )
        found: dict[str, Any] = {"tensors": short_hash(shapes), "numbers": []}
        for given in inputs:
            with contextlib.suppress(Exception):  # the training will report the error
                trained = _first(run(model.train(), given))
                weights = [p for p in model.parameters() if p.requires_grad]
                gradients = torch.autograd.grad(trained.sum(), weights, allow_unused=True) if weights else ()
                with torch.no_grad():
                    evaluated = _first(run(model.eval(), given))
                nothing = torch.zeros((), dtype=torch.float64, device="cpu")  # of a model without gradients
                steepness = torch.stack([nothing, *(g.double().norm() for g in gradients if g is not None)])
                found["numbers"] = sums_of((trained, evaluated, steepness))
                break
    return found


def _first(output: Any) -> Tensor:
    while not isinstance(output, Tensor):
        output = next(iter(output.values() if isinstance(output, Mapping) else output))
    return output


def sums_of(outputs: Iterable[Tensor | np.ndarray[Any, Any]]) -> list[float | None]:
    """Return sums of outputs with fixed weights of about 1; None in place of a sum that is not finite."""
    found: list[float | None] = []
    for output in outputs:
        values = torch.as_tensor(output).detach().double().flatten()
        places = torch.arange(len(values), dtype=torch.float64, device="cpu")
        for number in range(SUMS):
            total = float((values * torch.cos(places * (1 + number) + number)).sum() / max(1, len(values)) ** 0.5)
            found.append(float(f"{total:.6g}") if math.isfinite(total) else None)
    return found


def same_behavior(one: Mapping[str, Behavior], other: Mapping[str, Behavior]) -> bool:
    """Return whether the behaviors of all parts are equal, with a tolerance for their numbers."""
    pairs = [(one[name], other[name]) for name in one.keys() & other.keys()]
    equal = (a["tensors"] == b["tensors"] and _close(a["numbers"], b["numbers"]) for a, b in pairs)
    return one.keys() == other.keys() and all(equal)


def _close(one: list[float | None], other: list[float | None]) -> bool:
    if len(one) != len(other):
        return False
    if len(one) > SUMS:  # outputs may be much smaller than gradients
        return all(_close(one[i : i + SUMS], other[i : i + SUMS]) for i in range(0, len(one), SUMS))
    scale = max([abs(x) for x in (*one, *other) if x is not None], default=0.0)
    return all(
        (a is None) == (b is None) and (a is None or b is None or abs(a - b) <= TOLERANCE * scale)
        for a, b in zip(one, other, strict=True)
    )


def behavior_name(behaviors: Mapping[str, Behavior]) -> str:
    """Return a short name of some behaviors. Equal behaviors may have two names, on two processors."""
    rounded = {
        name: [one["tensors"], *(x if x is None else f"{x:.3g}" for x in one["numbers"])]
        for name, one in sorted(behaviors.items())
    }
    return short_hash(str(rounded))


def model_behavior(task: ProbeSettings, settings: TrainingSettings) -> Behavior:
    """Return the behavior of the model of a task, with the initial weights of the first seed."""
    space = task.space
    if task.side == "sender":
        meanings = space.meanings(np.linspace(0, space.size - 1, ROWS).round().astype(int))
        inputs: tuple[Tensor, ...] = (torch.as_tensor(meanings, dtype=torch.int64, device="cpu"),)
    else:
        places = torch.arange(ROWS * task.message_length, device="cpu").view(ROWS, -1)
        tokens = places * places % task.vocab_size
        inputs = tokens, nn.functional.one_hot(tokens, task.vocab_size + 1).float()
    return behavior_of(lambda: make_model(task, FIRST_SEED, settings), *inputs)


def require_same_behavior(record: Record, tasks: Iterable[ProbeSettings], settings: TrainingSettings) -> None:
    """Check that the models of a record behave as they did when it was made, if they are code of users.

    Raises:
        StoreError: a model behaves differently.
    """
    for task in tasks:
        made_by = record.get("made_by", {}).get(task.entry.qualified, {})
        if "behavior" in made_by:
            now = model_behavior(task, settings)
            if not same_behavior({"": made_by["behavior"]}, {"": now}):
                raise StoreError(
                    f"{task.entry.qualified} behaves differently than the model that was trained: its tensors, or its "
                    "scores for a fixed input, differ. Load the model that was trained, or train this one."
                )


# -- pairs: a sender and a receiver in one module, joined by a representation ------------------------------------------


class Pair(nn.Module):
    """A sender and a receiver, joined by a representation.

    Args:
        sender: maps meanings to scores.
        receiver: maps a message to scores.
        link: representation of a pair, which converts the sender's scores to messages; see Representation.for_pair.
            Saved weights have this name.
    """

    def __init__(self, sender: nn.Module, receiver: nn.Module, link: Representation) -> None:
        super().__init__()
        self.sender, self.receiver, self.link = sender, receiver, link
        self.label = f"{type(sender).__name__}+{type(receiver).__name__}"
        self.broadcasts = all(getattr(model, "broadcasts", False) for model in (sender, receiver))

    def forward(self, meanings: Tensor, messages: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the scores of sender and receiver; with `messages`, also the receiver's scores for these messages.

        A representation that samples messages does so only in training; in evaluation messages are greedy.
        `Representation.as_sent` converts the sender's scores, for comparison with words of the representation.
        """
        sent = self.sender(meanings)
        noise = current_noise(sent.device) if self.training else None
        answered = self.receiver(self.link.message(sent, noise))
        sent = self.link.as_sent(sent)
        return (sent, answered) if messages is None else (sent, answered, self.receiver(messages))

    def with_native_cores(self, meanings: Tensor) -> Pair:
        """Return the pair with native cores for both sides.

        Raises:
            NotNativeError: native cores do not support a side.
        """
        sender = NativeModule(self.sender, [meanings])
        with torch.no_grad():
            sent = sender.eval()(meanings)
        receiver = NativeModule(self.receiver, [sent, sent.argmax(-1)])
        pair = Pair(sender, receiver, self.link)
        pair.label = self.label
        return pair


def make_pair(task: EndToEndSettings, seed: int, settings: TrainingSettings, taught: bool = False) -> Pair:
    """Make a pair with the initial weights of a seed.

    Args:
        task: the task.
        seed: seed of the weights.
        settings: training settings.
        taught: whether the weights of pre-training will be loaded; some representations depend on this.

    Raises:
        IncompatibleError: a side does not learn by gradient, or does not work with the representation.
    """
    link, feedback = make_link(task, seed, settings, taught), task.feedback(settings)
    # A sender that reads its own symbols reads them as the representation converts them, with its parameters.
    own = link if feedback == link.name else None
    sender = make_model(task.alone("sender", feedback), seed, settings, own)
    receiver = make_model(task.alone("receiver", task.representation), seed, settings)
    for model, entry in zip((sender, receiver), task.models, strict=True):
        if not getattr(model, "learns_by_gradient", True):
            raise IncompatibleError(
                f"{entry.qualified} stores examples and does not learn by gradient: it cannot play."
            )
    return Pair(sender, receiver, link)


def taught_pair(
    task: EndToEndSettings, seed: int, settings: TrainingSettings, weights: Mapping[str, Mapping[str, Tensor]]
) -> Pair:
    """Make a pair with the weights of both sides after pre-training, by side. Errors as for `make_pair`."""
    pair = make_pair(task, seed, settings, taught=True)
    for side, own in weights.items():
        # Not strict: tied parameters are saved under one name, and the weights include non-persistent buffers.
        getattr(pair, side).load_state_dict(own, strict=False)
    return pair


def make_link(task: EndToEndSettings, seed: int, settings: TrainingSettings, taught: bool) -> Representation:
    """Make the representation of a pair; if it has weights, with the initial weights of a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream_key(seed, "weights", "link"))
        return link_of(task, settings).for_pair(task.vocab_size, taught)


def link_of(task: EndToEndSettings, settings: TrainingSettings) -> Representation:
    """Return the representation of a pair with these settings, without parameters."""
    link = get_representation(task.representation, **settings.under(task.representation, "e2e"))
    return with_ends(link, *task.lengths.costs) if task.lengths.vary else link


def saved_pair(record: Record, weights: Mapping[str, Tensor]) -> nn.Module:
    """Return the trained pair of a record as a `Pair`. Errors as for `restore`.

    A population is a ModuleList of pairs: pair k has sender k and receiver k, and the smaller side repeats from its
    first agent.
    """
    config, sides = record["config"], record["model"].split("+")
    options: dict[str, Choices] = {side: {} for side in SIDES}
    for name, value in config["options"].items():
        side, _, option = name.partition(".")
        options[side][option] = value
    settings = TrainingSettings(**config["settings"])
    of_models: Choices = {f"{side}_options": own for side, own in options.items()}
    of_models |= dict(zip(SIDES, sides, strict=True))
    found = EndToEndSettings.given_in(config)
    found |= {name: config[name] for name in ("senders", "receivers") if name in config}
    task = EndToEndSettings(**{"word_length": 1, **found}, **of_models, training=settings)
    require_version(record, "model", task.model_version)
    require_same_behavior(record, task.learners, settings)
    pairs = [make_pair(task, record["seed"], settings) for _ in range(task.population.size)]
    return restore(pairs[0] if task.population.is_pair else nn.ModuleList(pairs), weights, record["model"])


def try_pair(task: EndToEndSettings) -> Pair:
    """Make a pair and send a message, to raise early if sender and receiver do not fit together.

    Raises:
        IncompatibleError: sender and receiver do not fit together.
        InvalidSettingError: the representation has too many words.
    """
    pair, (speaker, listener) = make_pair(task, 0, task.training), task.models
    pair.link.word_count(task.vocab_size)  # raises if the representation has too many words
    meanings = torch.zeros(2, task.space.attributes, dtype=torch.long, device="cpu")
    expected = {
        "sender": (2, task.message_length, task.vocab_size + 1),
        "receiver": (2, task.space.attributes, task.space.values),
    }
    try:
        with torch.no_grad():
            sent = pair.eval().sender(meanings)
            _require_shape(speaker.qualified, sent, expected["sender"])
            answered = pair.receiver(pair.link.message(sent, None))
    except RuntimeError as error:
        raise IncompatibleError(
            f"{listener.qualified} cannot read messages of {speaker.qualified}: "
            f"{str(error).strip().partition(chr(10))[0]}."
        ) from error
    _require_shape(listener.qualified, answered, expected["receiver"])
    warn_of_probabilities(speaker, pair.sender, sent)
    warn_of_probabilities(listener, pair.receiver, answered)
    return pair


def _require_shape(name: str, scores: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(scores.shape) != expected:
        raise IncompatibleError(f"{name} outputs scores of shape {tuple(scores.shape)}, not {expected}.")


# -- restore the models of probes from their records and saved weights -------------------------------------------------


AT_ONCE = 8192  # meanings per forward pass


def probe_model(record: Record, weights: Mapping[str, Tensor]) -> nn.Module:
    """Return the trained model of a probe's record. Errors as for `restore`."""
    config = record["config"]
    settings = TrainingSettings(**config["settings"])
    task = ProbeSettings(**ProbeSettings.given_in(config), training=settings)
    require_version(record, "model", task.model_version)
    require_same_behavior(record, [task], settings)
    model = make_model(task, record["seed"], settings)
    return restore(model, weights, record["model"])


@torch.no_grad()
def spoken(record: Record, sender: nn.Module) -> Language:
    """Return the language of a trained sender: its greedy message for every meaning.

    Args:
        record: record of the sender's replicate.
        sender: the sender, in evaluation mode.
    """
    config = record["config"]
    space = MeaningSpace.of(config["meanings"])
    meanings = torch.tensor(space.meanings(np.arange(space.size)), dtype=torch.int64, device="cpu")
    representation = get_representation(config["representation"], **config["settings"])
    words = [representation.greedy_words(sender(some)) for some in meanings.split(AT_ONCE)]
    count = representation.word_count(config["vocab_size"])
    name = f"{record['model']} {config['representation']} on {record['grammar']}"
    ends = "word_lengths" in config
    return Language.spoken(space, torch.cat(words).numpy(), count, name=name, seed=record["seed"], ends=ends)
