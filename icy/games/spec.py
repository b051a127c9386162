"""Options of the kind of job "games": agents to train in multi-target games."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from icy.config.settings import Numbers
from icy.config.specs import RunSpec

OLD_NAMES = {"channel": "representation", "channel_options": "representation_options"}  # of tasks too


@dataclass(frozen=True)
class GamesSpec(RunSpec):
    """Agents to train in multi-target games. Options with several values are combined; each combination is a row.

    Attributes:
        world: names of worlds, of `icy list worlds`.
        representation: form of messages: "gs", symbols by a Gumbel-softmax that is relaxed in training; "qt", binary
            words; "cb", words of a learned codebook; or "soft" or "gumb".
        rule_length: number of concepts in a rule, l; one or several values.
        sender: names of senders, of `icy list models`.
        receiver: names of receivers.
        targets: number of objects that obey the rule, T; one or several values.
        distractors: number of objects that do not obey the rule, D; by default as many as targets.
        distractor_kind: how distractors are drawn: "near", lacking a random number of the concepts; "uniform", from all
            objects; "groups", lacking random concepts; or "auto", uniform for rules of one concept and near for longer
            rules. Several kinds are trained together.
        word_size: size of a word, d: number of symbols for gs and cb, number of bits for qt; by default enough for all
            concepts.
        message_length: number of words in a message; by default the number of concepts in a rule.
        sender_hidden: hidden size of the sender, and size of the vectors of its perception.
        receiver_hidden: hidden size of the receiver, and size of the vectors of its perception.
        sender_sees: "targets", or "both" for targets and distractors.
        perception: name of the perception of both agents, of `icy list perceptions`; by default one that suits the
            world.
        updates: number of updates; the best evaluation among them is the result.
        seeds: how many, counted from 123, or which: [1, 2], "1,2", "123-127".
        preset: "default"; "published", the settings behind the printed numbers of CBM24; or a game of Mu & Goodman
            2021, as in "mugoodman21/concept". `icy list presets` describes them.
        game: further settings of turns, as in rule_sampling=uniform; see icy.games.TurnSettings.
        world_options: arguments of the world.
        representation_options: attributes of the representation.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
        perception_options: further arguments of the perception.
        settings: changes to the settings of learning and evaluation, as in learning_rate=0.001; see
            icy.games.GamesLearningSettings.
        quick: use few seeds and updates where these are not given, to try things out; the agents are saved.
    """

    function = "icy games train"
    job_kind = "games"
    small = MappingProxyType({"seeds": 2, "updates": 300, "keep_models": True})
    axes = (
        *("world", "representation", "sender", "receiver", "rule_length", "targets"),
        *("word_size", "message_length", "preset"),
    )

    old_names = MappingProxyType({**RunSpec.old_names, **OLD_NAMES, "steps": "updates"})

    world: str | Iterable[str] = "thing"
    representation: str | Iterable[str] = "qt"
    rule_length: Numbers = 1
    sender: str | Iterable[str] = "RNNAutoReg:LSTM"
    receiver: str | Iterable[str] = "RNN1L:LSTM"
    targets: Numbers = 20
    distractors: int | None = None
    distractor_kind: str | Iterable[str] = "auto"
    word_size: Numbers | None = None
    message_length: Numbers | None = None
    sender_hidden: int = 60
    receiver_hidden: int = 40
    sender_sees: str = "targets"
    perception: str | None = None
    updates: int = 20_000
    seeds: Numbers = 3
    preset: str = "default"
    game: Mapping[str, Any] = field(default_factory=dict)
    world_options: Mapping[str, Any] = field(default_factory=dict)
    representation_options: Mapping[str, Any] = field(default_factory=dict)
    sender_options: Mapping[str, Any] = field(default_factory=dict)
    receiver_options: Mapping[str, Any] = field(default_factory=dict)
    perception_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
