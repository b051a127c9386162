"""What to train in multi-target games, and how: the arguments of the kind of job "games"."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from icy.config.options import Numbers
from icy.config.specs import RunSpec


@dataclass(frozen=True)
class GamesSpec(RunSpec):
    """What agents to train in multi-target games: all combinations of what is several become rows.

    Attributes:
        world: names of worlds, of `icy list worlds`.
        channel: what a message is made of: "gs", symbols by a Gumbel-softmax that is relaxed in training; "qt", binary
            words; "cb", words of a learned codebook; or another representation.
        rule_length: concepts that the objects of a turn share, l; one or several.
        sender: names of senders, of `icy list models`.
        receiver: names of receivers.
        targets: objects that obey the rule, T; one or several.
        distractors: objects that do not, D; as many as targets unless given.
        distractor_kind: how these are drawn: "near", lacking a random number of the concepts; "uniform", from all
            objects; "groups", lacking random concepts; or "auto", uniform for rules of one concept and near for longer
            ones. Several are trained side by side.
        word_size: symbols of a word with gs and cb, bits with qt, d; enough for all concepts unless given.
        message_length: words of a message; as many as a rule has concepts unless given.
        sender_hidden: hidden size of the sender, and size of what it perceives.
        receiver_hidden: hidden size of the receiver, and size of what it perceives.
        sender_sees: "targets", or "both": distractors too.
        perception: name of the perception of both, of `icy list perceptions`; by default one that suits the world.
        steps: number of updates; the best evaluation among them counts.
        seeds: how many, counted from 123, or which: [1, 2], "1,2", "123-127".
        preset: "default"; "published", what the printed numbers of CBM24 depend on; or a game of Mu & Goodman 2021, as
            in "mugoodman21/concept". `icy list presets` describes them.
        game: further settings of turns, as in rule_sampling=uniform; see icy.games.TurnSettings.
        world_options: arguments of the world.
        channel_options: attributes of the channel.
        sender_options: further arguments of the sender.
        receiver_options: further arguments of the receiver.
        perception_options: further arguments of the perception.
        settings: changes to the settings of learning and evaluation, as in learning_rate=0.001; see
            icy.games.LearningSettings.
        quick: few seeds and updates wherever these are not given, to try things out; the agents are kept.
    """

    function = "icy games train"
    job_kind = "games"
    small = MappingProxyType({"seeds": 2, "steps": 300, "keep_models": True})
    axes = ("world", "channel", "sender", "receiver", "rule_length", "targets", "word_size", "message_length", "preset")

    world: str | Iterable[str] = "thing"
    channel: str | Iterable[str] = "qt"
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
    steps: int = 20_000
    seeds: Numbers = 3
    preset: str = "default"
    game: Mapping[str, Any] = field(default_factory=dict)
    world_options: Mapping[str, Any] = field(default_factory=dict)
    channel_options: Mapping[str, Any] = field(default_factory=dict)
    sender_options: Mapping[str, Any] = field(default_factory=dict)
    receiver_options: Mapping[str, Any] = field(default_factory=dict)
    perception_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
