"""Options, tasks and jobs of simulated games."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from icy.config.settings import settings_for
from icy.config.specs import RunSpec
from icy.core.checks import whole_number
from icy.core.code import short_hash
from icy.core.entry import STUDY_PLAYER, Entry
from icy.core.errors import InvalidSettingError, require_known
from icy.core.registry import registry
from icy.core.text import counted, names_in
from icy.core.types import Choices, Fields
from icy.grammars import canonical_name, expand_grammars, grammar_version
from icy.records.record import Record
from icy.training.combinations import jobs_of_each
from icy.training.job import Job, Replicate
from icy.training.probe_job import ProbeSettings

from .game import StudyGame, StudyGameSettings, instance_of
from .game.languages import person_seed
from .game.settings import DATASETS, PRESETS
from .players.player import StudyPlayer, digest_of, play, read_logs

if TYPE_CHECKING:
    from .players.zoo import ZooPlayer

# -- options of the kind of job "study": players and conditions to simulate --------------------------------------------


@dataclass(frozen=True)
class StudySpec(RunSpec):
    """Settings of simulated games of Secret Spy Codes. Each combination of values is a row.

    Attributes:
        player: simulated players, as in `icy list study-players`, and senders of the zoo, as in HierZero:GRU.
        dataset: "synth", three colors and shapes with random words; "eng", five with English words; or both.
        grammar: names of grammars or chains.
        protocol: "played", the game as people play it; "converged", in which players learn all cards before the
            held-out items; "yoked", the cards and items of another player's game, in the same order; or several.
        instances: number of instances (language and held-out items) per dataset and grammar, with one game each.
        list_seed: seed of the list of instances, which people and machines share.
        preset: "clean", or "published" for the authors' service; or both.
        game: further settings of the game, as in examples=30; see icy.study.game.StudyGameSettings.
        yoked_to: player that the protocol "yoked" follows: a simulated player, or a file of exported games.
        hidden: hidden size E of senders.
        representation: representation of senders: "soft", "gumb" or "discr", or several.
        updates: number of updates of senders per test item; in the protocol "yoked", per card.
        most: maximum number of updates of senders under the protocol "converged".
        options: further arguments of the players, as in slip=0.1.
        settings: changes to the training settings of senders, as in learning_rate=0.002.
        quick: use few instances, grammars and updates where these are not set, for a quick try.
    """

    function = "icy study simulate"
    job_kind = "study"
    small = MappingProxyType({"instances": 3, "grammar": ("concat", "perm"), "updates": 5})
    axes = ("player", "dataset", "protocol", "preset", "representation")

    player: str | Iterable[str] = ("composer", "memoriser")
    dataset: str | Iterable[str] = ("synth", "eng")
    grammar: str | Iterable[str] = ("concat", "perm", "proj", "rot", "shufdet")
    protocol: str | Iterable[str] = "played"
    instances: int = 20
    list_seed: int = 0
    preset: str | Iterable[str] = "clean"
    game: Mapping[str, Any] = field(default_factory=dict)
    yoked_to: str = "memoriser"
    hidden: int = 128
    representation: str | Iterable[str] = "soft"
    updates: int = 20
    most: int = 20_000
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


# -- tasks and jobs of simulated games ---------------------------------------------------------------------------------


# -- tasks -------------------------------------------------------------------------------------------------------------

BATCH_SIZE = 16  # at most 22 cards exist, so larger batches would repeat them
PLAYED, CONVERGED, YOKED = "played", "converged", "yoked"
PROTOCOLS = (PLAYED, CONVERGED, YOKED)


def player_entry(name: str) -> Entry:
    """Find the registry entry of a simulated player or of a sender.

    Raises:
        UnknownNameError: the name is not registered.
    """
    return registry.get(name, STUDY_PLAYER, "sender")


@dataclass(frozen=True, kw_only=True)
class StudyTask:
    """All settings that can change the measures of a game, except the grammar and the instance.

    Attributes:
        player: canonical name of the player or sender.
        game: settings of the game; each replicate replaces the grammar.
        protocol: one of PROTOCOLS.
        list_seed: seed of the list of instances.
        yoked_to: the player to follow: a player's name, or the path of a game file.
        digest: digest of the game file; "" for a player.
        options: arguments of the player.
        hidden: hidden size of a sender.
        representation: representation of a sender's messages.
        updates: number of updates of a sender per item or card.
        most: maximum number of updates of a sender under the protocol "converged".
        training: changes to the training settings of a sender.
    """

    player: str
    game: StudyGameSettings
    protocol: str = PLAYED
    list_seed: int = 0
    yoked_to: str = ""
    digest: str = ""
    options: Fields = field(default_factory=dict)
    hidden: int = 128
    representation: str = "soft"
    updates: int = 20
    most: int = 20_000
    training: Fields = field(default_factory=dict)

    @cached_property
    def entry(self) -> Entry:
        """The registry entry of the player."""
        return player_entry(self.player)

    @property
    def learns(self) -> bool:
        """Whether the player is a sender of the zoo."""
        return self.entry.kind != STUDY_PLAYER

    def make_player(self) -> StudyPlayer:
        """Create the player.

        Raises:
            IcyError: the player cannot be created.
        """
        if not self.learns:
            player: StudyPlayer = self.entry.create(**self.options)
            return player
        from .players.zoo import ZooPlayer, ZooSettings  # imports torch

        training = settings_for("default", **{"batch_size": BATCH_SIZE, **self.training})
        updates = 0 if self.protocol == CONVERGED else self.updates  # "converged" trains before the first question
        per_card, sizes = self.protocol == YOKED, (self.hidden, self.representation, updates)
        return ZooPlayer(self.entry, ZooSettings(*sizes, per_card, training, dict(self.options)))

    def game_of(self, grammar: str, number: int) -> StudyGame:
        """Return the game with a grammar and an instance of the list."""
        settings = replace(self.game, grammar=grammar)
        return StudyGame(settings, instance_of(settings, number, self.list_seed), self.seed_of(number))

    def seed_of(self, number: int) -> int:
        """Return the seed of a game, which is the same for every player and grammar."""
        return person_seed(self.game.dataset, number, self.list_seed)

    def config(self) -> Choices:
        """Return the settings that a record stores in addition to its columns."""
        game = {name: value for name, value in self.game.to_json().items() if name not in ("dataset", "grammar")}
        yoked = {"yoked_to": self.digest or self.yoked_to} if self.protocol == YOKED else {}
        # Under "converged" the updates per item have no effect, but keys of earlier records include them.
        updates = StudyTask.updates if self.protocol == CONVERGED else self.updates
        zoo = {"updates": updates, "training": {"batch_size": BATCH_SIZE, **self.training}} if self.learns else {}
        return {"game": game, "list_seed": self.list_seed, **yoked, **zoo}


# -- jobs --------------------------------------------------------------------------------------------------------------

LOGS = ".jsonl"  # suffix of game files


@dataclass(frozen=True)
class StudyJob(Job):
    """A job with the games of one player in one condition. A replicate is a grammar and an instance's number.

    Attributes:
        task: the player and the settings of the game.
    """

    task: StudyTask

    kind = "study"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "device", "cpu")  # a sender of one game is small

    @property
    def name(self) -> str:
        """Name of the player."""
        return self.task.player

    @property
    def facts(self) -> dict[str, str]:
        """Settings that distinguish the rows of a player."""
        zoo = {"representation": self.task.representation} if self.task.learns else {}
        return {"dataset": self.task.game.dataset, "protocol": self.task.protocol, "preset": self.preset, **zoo}

    @property
    def entries(self) -> list[Entry]:
        """Registry entries of the kind of job, the player and its cell, and the grammars."""
        entry = self.task.entry
        names = dict.fromkeys(name for r in self.replicates for name in r.condition.split("+"))
        grammars = [registry.get(name, "grammar") for name in names]
        return [*super().entries, entry, *([entry.cell] if entry.cell else []), *grammars]

    def config(self, replicate: Replicate) -> Choices:
        """Return the configuration of a replicate: all choices that can change its measures."""
        task, content = self.task, self.task.game.content
        zoo = {"hidden_size": task.hidden, "representation": task.representation} if task.learns else {}
        most = {"most": task.most} if task.learns and task.protocol == CONVERGED else {}
        changed = {f"game.{name}": value for name, value in task.game.departures(self.preset).items()}
        yoked = {"yoked_to": Path(task.yoked_to).name} if task.protocol == YOKED else {}
        listed = {"list_seed": task.list_seed} if task.list_seed else {}
        training = task.training if task.learns else {}
        return {
            "model": self.name,
            "grammar": replicate.condition,
            "seed": replicate.seed,
            "dataset": task.game.dataset,
            "protocol": task.protocol,
            "meanings": str(content.space),
            "vocab_size": content.vocab_size,
            "word_length": content.word_length,
            **zoo,
            **most,
            "options": {**task.options, **changed, **yoked, **listed, **training},
            "settings": task.config(),
        }

    def versions(self, replicate: Replicate) -> dict[str, str]:
        """Return the versions of the kind of job, the player and the grammar."""
        own = {"model": self.task.entry.full_version, "grammar": grammar_version(replicate.condition)}
        if any(registry.get(name, "grammar").is_users for name in replicate.condition.split("+")):
            own["language"] = short_hash(str(self.task.game_of(replicate.condition, replicate.seed).codes))
        return super().versions(replicate) | own

    def behavior(self) -> dict[str, Fields]:
        """Return the behavior of a player that is code of users: its game, or for a sender that of the model."""
        task, entry = self.task, self.task.entry
        if not entry.is_users:
            return {}
        from icy.training.task_models import fixed_randomness, model_behavior, sums_of  # imports torch

        if task.learns:
            content = task.game.content
            sizes = content.space, content.vocab_size, content.word_length, task.hidden, task.representation
            return {
                entry.qualified: model_behavior(
                    ProbeSettings.of_model(entry, *sizes, dict(task.options)), settings_for("default")
                )
            }
        game = task.game_of(self.any_replicate.condition, 0)
        with fixed_randomness():
            trials = play(game, task.make_player(), game.seed).state.trials
        numbers = sums_of(np.array([float(getattr(t, name)) for t in trials]) for name in ("correct", "cards"))
        return {entry.qualified: {"tensors": short_hash(str([t.text for t in trials])), "numbers": numbers}}

    def length(self, baseline: float | None) -> int | None:
        """Return the number of updates (of a sender) or items; None if it is not known."""
        if self.task.protocol == CONVERGED:
            return None
        examples = self.task.game.examples
        return examples * self.task.updates if self.task.learns else examples

    def most_updates(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates or items."""
        return self.length(None) or self.task.most

    def summary(self, record: Record) -> str:
        """Return a short text with the result of a game."""
        after = counted(record["steps"], "update" if self.task.learns else "item")
        return f"held-out {record['accuracy']:.2f} after {after}"


REPRESENTATIONS = ("soft", "gumb", "discr")  # accepted representations of senders


# -- from a spec -------------------------------------------------------------------------------------------------------


def study_jobs(spec: StudySpec) -> list[StudyJob]:
    """Return the jobs of a spec, one per combination of the values along its axes.

    Raises:
        IcyError: an unknown name, a value that is not accepted, or settings that do not go together.
    """
    if spec.device not in ("auto", "cpu"):
        raise InvalidSettingError("Players of the study play on the CPU; leave out device (--device).")
    for what, least in (("instances", 1), ("hidden", 1), ("updates", 1), ("most", 1), ("list_seed", 0)):
        whole_number(f"setting {what}", getattr(spec, what), least=least)
    known = {"player": [entry.name for entry in registry.entries(STUDY_PLAYER)], "dataset": list(DATASETS)}
    choices = {"protocol": PROTOCOLS, "preset": list(PRESETS), "representation": REPRESENTATIONS}
    return jobs_of_each(spec, _jobs, {**known, **choices})


def _jobs(spec: StudySpec) -> list[StudyJob]:
    """Return the job of a spec with one value along each axis."""
    task = _task(spec)
    grammars = [canonical_name(name) for name in names_in("grammar", spec.grammar, expand_grammars("all", "sender"))]
    if task.digest:
        replicates = _replicates_in(task, grammars)
    else:
        for grammar in grammars:
            instance_of(replace(task.game, grammar=grammar), 0, task.list_seed)  # raises if it does not fit the dataset
        replicates = [Replicate(grammar, number) for grammar, number in product(grammars, range(spec.instances))]
    return [StudyJob(task, replicates=tuple(replicates), parameters=_parameters(task), preset=str(spec.preset))]


def _replicates_in(task: StudyTask, grammars: Iterable[str]) -> list[Replicate]:
    """Return a replicate for every game in a file that belongs to the condition, with the number of its line."""
    found = [
        Replicate(log.game.settings.grammar, number)
        for number, log in enumerate(read_logs(task.yoked_to))
        if log.game.settings.dataset == task.game.dataset and log.game.settings.grammar in set(grammars)
    ]
    if not found:
        raise InvalidSettingError(
            f"'{task.yoked_to}' has no game of the dataset '{task.game.dataset}' in the grammars {', '.join(grammars)}."
        )
    return found


def _task(spec: StudySpec) -> StudyTask:
    protocol, preset = str(spec.protocol), str(spec.preset)
    require_known("protocol of the study", protocol, PROTOCOLS)
    require_known("preset", preset, PRESETS)
    entry = player_entry(str(spec.player))
    yoked_to, digest = "", ""
    if protocol == YOKED and spec.yoked_to.endswith(LOGS):
        yoked_to, digest = str(Path(spec.yoked_to).resolve()), digest_of(spec.yoked_to)
    elif protocol == YOKED:
        yoked_to = registry.get(spec.yoked_to, STUDY_PLAYER).name
    return StudyTask(
        player=entry.name,
        game=StudyGameSettings.of(preset, **{**spec.game, "dataset": spec.dataset}),
        protocol=protocol,
        list_seed=spec.list_seed,
        yoked_to=yoked_to,
        digest=digest,
        options=dict(spec.options),
        hidden=spec.hidden,
        representation=str(spec.representation),
        updates=spec.updates,
        most=spec.most,
        training=dict(spec.settings) if entry.kind != STUDY_PLAYER else {},
    )


def _parameters(task: StudyTask) -> dict[str, int]:
    """Count the parameters of a sender. Other players are only created, to check their settings.

    Raises:
        IcyError: the player cannot be created.
    """
    player = task.make_player()
    return cast("ZooPlayer", player).parameters(task.game.content) if task.learns else {"true": 0, "published": 0}
