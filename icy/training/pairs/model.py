"""Pairs: a sender and a receiver in one module, joined by a representation."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from icy.config.settings import TrainingSettings
from icy.core.errors import IncompatibleError
from icy.core.noise import current_noise
from icy.core.registry import SIDES, registry
from icy.core.representations import Representation, get_representation, with_ends
from icy.core.streams import stream_key
from icy.core.types import Choices, Fields
from icy.languages.meanings import MeaningSpace
from icy.models.native.module import NativeModule
from icy.records.record import Record
from icy.training.behavior import require_same_behavior
from icy.training.engine import make_model
from icy.training.learners import warn_of_probabilities
from icy.training.populations import Lengths, Population
from icy.training.tasks import PairEntry, PairTask
from icy.training.weights import require_version, restore


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


def make_pair(task: PairTask, seed: int, settings: TrainingSettings, taught: bool = False) -> Pair:
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
    for model, entry in ((sender, task.entry.sender), (receiver, task.entry.receiver)):
        if not getattr(model, "learns_by_gradient", True):
            raise IncompatibleError(
                f"{entry.qualified} stores examples and does not learn by gradient: it cannot play."
            )
    return Pair(sender, receiver, link)


def taught_pair(
    task: PairTask, seed: int, settings: TrainingSettings, weights: Mapping[str, Mapping[str, Tensor]]
) -> Pair:
    """Make a pair with the weights of both sides after pre-training, by side. Errors as for `make_pair`."""
    pair = make_pair(task, seed, settings, taught=True)
    for side, own in weights.items():
        # Not strict: tied parameters are saved under one name, and the weights include non-persistent buffers.
        getattr(pair, side).load_state_dict(own, strict=False)
    return pair


def make_link(task: PairTask, seed: int, settings: TrainingSettings, taught: bool) -> Representation:
    """Make the representation of a pair; if it has weights, with the initial weights of a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream_key(seed, "weights", "link"))
        return representation_of(task, settings).for_pair(task.vocab_size, taught)


def representation_of(task: PairTask, settings: TrainingSettings) -> Representation:
    """Return the representation of a pair with these settings, without parameters."""
    link = get_representation(task.representation, **settings.under(task.representation, "e2e"))
    return with_ends(link, *task.lengths.costs) if task.lengths.vary else link


def saved_pair(record: Record, weights: Mapping[str, Tensor]) -> nn.Module:
    """Return the trained pair of a record as a `Pair`. Errors as for `restore`.

    A population is a ModuleList of pairs: pair k has sender k and receiver k, and the smaller side repeats from its
    first agent.
    """
    config, sides = record["config"], record["model"].split("+")
    options = {side: _options_of(config["options"], side) for side in SIDES}
    task = PairTask(
        PairEntry(*(registry.get(name, side) for name, side in zip(sides, SIDES, strict=True))),
        MeaningSpace.of(config["meanings"]),
        config["vocab_size"],
        config.get("word_length", 1),
        config["hidden_size"],
        config["representation"],
        sender_options=options["sender"],
        receiver_options=options["receiver"],
        population=Population.of(config),
        lengths=Lengths.of(config),
    )
    require_version(record, "model", task.entry.full_version)
    settings = TrainingSettings(**config["settings"])
    require_same_behavior(record, [task.alone(side, task.representation) for side in SIDES], settings)
    pairs = [make_pair(task, record["seed"], settings) for _ in range(task.population.size)]
    return restore(pairs[0] if task.population.is_pair else nn.ModuleList(pairs), weights, record["model"])


def _options_of(options: Fields, side: str) -> Choices:
    """Return the options of one side of a pair."""
    return {name.partition(".")[2]: value for name, value in options.items() if name.startswith(f"{side}.")}


def try_pair(task: PairTask, settings: TrainingSettings) -> Pair:
    """Make a pair and send a message, to raise early if sender and receiver do not fit together.

    Raises:
        IncompatibleError: sender and receiver do not fit together.
        InvalidSettingError: the representation has too many words.
    """
    pair = make_pair(task, 0, settings)
    pair.link.word_count(task.vocab_size)  # raises if the representation has too many words
    meanings = torch.zeros(2, task.space.attributes, dtype=torch.long, device="cpu")
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
            f"{task.entry.receiver.qualified} cannot read messages of {task.entry.sender.qualified}: "
            f"{str(error).strip().partition(chr(10))[0]}."
        ) from error
    _require_shape(task.entry.receiver.qualified, answered, expected["receiver"])
    warn_of_probabilities(task.entry.sender, pair.sender, sent)
    warn_of_probabilities(task.entry.receiver, pair.receiver, answered)
    return pair


def _require_shape(name: str, scores: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(scores.shape) != expected:
        raise IncompatibleError(f"{name} outputs scores of shape {tuple(scores.shape)}, not {expected}.")
