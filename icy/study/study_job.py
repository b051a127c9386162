"""Settings, requests and rows of simulated games."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from icy.config.kinds import Settings, request_of, values_for
from icy.config.requests import RunRequest
from icy.config.settings import settings_for
from icy.core.checks import whole_number
from icy.core.code import short_hash
from icy.core.entry import STUDY_PLAYER, TEXT_MODEL, Entry
from icy.core.errors import InvalidSettingError
from icy.core.fields import setting
from icy.core.registry import registry
from icy.core.text import counted, names_in
from icy.core.types import Choices, Fields
from icy.grammars import canonical_name, expand_grammars, grammar_version
from icy.text.models import entry_of
from icy.training.job import Job, Replicate

from .game import StudyGame, StudyGameSettings, instance_of
from .game.languages import person_seed
from .game.settings import DATASETS
from .players.player import StudyPlayer, digest_of, play, read_logs

if TYPE_CHECKING:
    from .players.zoo import ZooPlayer

# -- settings of a row: a player and its game --------------------------------------------------------------------------


BATCH_SIZE = 16  # at most 22 cards exist, so larger batches would repeat them
PLAYED, CONVERGED, YOKED = "played", "converged", "yoked"
REPRESENTATIONS = ("soft", "gumb", "discr")  # the representations of senders that "all" means
LOGS = ".jsonl"  # suffix of game files
TEXT = "text:"  # before the name of a text model


def player_entry(name: str) -> Entry:
    """Find the registry entry of a simulated player, of a sender, or of a text model.

    Raises:
        UnknownNameError: the name is not registered.
    """
    return entry_of(name[len(TEXT) :]) if name.startswith(TEXT) else registry.get(name, STUDY_PLAYER, "sender")


@dataclass(frozen=True, kw_only=True)
class StudySettings(Settings):
    """The player of a row and its game. A request may have several values of some of these; each is a row.

    Attributes:
        player: simulated players, as in `icy list study-players`; senders of the zoo, as in HierZero:GRU; and text
            models, as in text:http://localhost:8000/v1#llama.
        dataset: "synth", three colors and shapes with random words; "eng", five with English words; or both.
        protocol: "played", the game as people play it; "converged", in which players learn all cards before the
            held-out items; "yoked", the cards and items of another player's game, in the same order; or several.
        list_seed: seed of the list of instances, which people and machines share.
        preset: "clean", or "published" for the authors' service; or both.
        game: further settings of the game, as in examples=30; see icy.study.game.StudyGameSettings.
        yoked_to: player that the protocol "yoked" follows: a simulated player, or a file of exported games.
        digest: digest of the game file; "" for a player.
        hidden: hidden size E of senders.
        representation: representation of senders: "soft", "gumb" or "discr", or several.
        updates: number of updates of senders per test item; in the protocol "yoked", per card.
        most: maximum number of updates of senders under the protocol "converged".
        options: further arguments of the players, as in slip=0.1.
        training: changes to the training settings of a sender.
    """

    kind = "study"
    on_cpu = True  # a sender of one game is small

    player: str = setting(axis=True, every=lambda: [entry.name for entry in registry.entries(STUDY_PLAYER)])
    dataset: str = setting("synth", axis=True, every=lambda: list(DATASETS))
    protocol: Literal["played", "converged", "yoked"] = setting("played", "protocol of the study", axis=True)
    list_seed: int = setting(0, least=0)
    preset: Literal["clean", "published"] = setting("clean", axis=True)
    game: Fields = setting({})
    yoked_to: str = "memoriser"
    digest: str = setting("", asked=False)
    hidden: int = setting(128, least=1)
    representation: str = setting("soft", axis=True, every=lambda: REPRESENTATIONS)
    updates: int = setting(20, least=1, quick=5)
    most: int = setting(20_000, least=1)
    options: Fields = setting({})
    training: Fields = setting({}, asked=False)

    @property
    def name(self) -> str:
        """Name of the player."""
        return self.player

    @cached_property
    def game_settings(self) -> StudyGameSettings:
        """All settings of the game; each replicate replaces the grammar."""
        return StudyGameSettings.of(self.preset, **{**self.game, "dataset": self.dataset})

    @cached_property
    def entry(self) -> Entry:
        """The registry entry of the player."""
        return player_entry(self.player)

    @property
    def learns(self) -> bool:
        """Whether the player is a sender of the zoo."""
        return self.entry.kind == "sender"

    def make_player(self) -> StudyPlayer:
        """Create the player.

        Raises:
            IcyError: the player cannot be created.
        """
        if self.entry.kind == TEXT_MODEL:
            from .players.text import TextPlayer

            return TextPlayer(self.player[len(TEXT) :], **self.options)
        if not self.learns:
            player: StudyPlayer = self.entry.create(**self.options)
            return player
        from .players.zoo import ZooPlayer  # imports torch

        training = settings_for("default", **{"batch_size": BATCH_SIZE, **self.training})
        pace = 0 if self.protocol == CONVERGED else self.updates  # "converged" trains before the first question
        model = {"hidden": self.hidden, "representation": self.representation, "options": self.options}
        return ZooPlayer(self.entry, pace, training, self.protocol == YOKED, **model)

    def game_of(self, grammar: str, number: int) -> StudyGame:
        """Return the game with a grammar and an instance of the list; its seed is that of every player and grammar."""
        settings = replace(self.game_settings, grammar=grammar)
        instance = instance_of(settings, number, self.list_seed)
        return StudyGame(settings, instance, person_seed(self.dataset, number, self.list_seed))

    def config(self) -> Choices:
        """Return the entries of the configuration of a record."""
        content, game = self.game_settings.content, self.game_settings.to_json()
        options = {**self.options, **{f"game.{n}": v for n, v in self.game_settings.departures(self.preset).items()}}
        parts: Choices = {"game": {n: v for n, v in game.items() if n not in ("dataset", "grammar")}}
        parts["list_seed"] = self.list_seed
        sizes: Choices = {}
        if self.protocol == YOKED:
            options["yoked_to"], parts["yoked_to"] = Path(self.yoked_to).name, self.digest or self.yoked_to
        if self.list_seed:
            options["list_seed"] = self.list_seed
        if self.learns:
            sizes = {"hidden_size": self.hidden, "representation": self.representation}
            sizes |= {"most": self.most} if self.protocol == CONVERGED else {}
            options |= self.training
            # Under "converged" the updates per item have no effect, but keys of earlier records include them.
            parts["updates"] = StudySettings.updates if self.protocol == CONVERGED else self.updates
            parts["training"] = {"batch_size": BATCH_SIZE, **self.training}
        return {
            "dataset": self.dataset,
            "protocol": self.protocol,
            "meanings": str(content.space),
            "vocab_size": content.vocab_size,
            "word_length": content.word_length,
            **sizes,
            "options": options,
            "settings": parts,
        }

    def facts(self) -> dict[str, str]:
        """Return the settings that distinguish rows of the player, as texts by heading."""
        zoo = {"representation": self.representation} if self.learns else {}
        return {"dataset": self.dataset, "protocol": self.protocol, "preset": self.preset, **zoo}

    @property
    def entries(self) -> list[Entry]:
        """Registry entries of the player and its cell."""
        return [self.entry, *([self.entry.cell] if self.entry.cell else [])]

    def entries_of(self, condition: str) -> list[Entry]:
        """Return the registry entries of a grammar, and of each part of a chain."""
        return [registry.get(name, "grammar") for name in condition.split("+")]

    def versions(self, condition: str, seed: int) -> dict[str, str]:
        """Return the versions of the player and the grammar."""
        own = {"model": self.entry.full_version, "grammar": grammar_version(condition)}
        if any(entry.is_users for entry in self.entries_of(condition)):
            own["language"] = short_hash(str(self.game_of(condition, seed).codes))
        return own

    def behavior(self, condition: str) -> dict[str, Fields]:
        """Return the behavior of a player that is code of users: its game, or for a sender that of the model."""
        if not self.entry.is_users or self.entry.kind == TEXT_MODEL:
            return {}
        from icy.training.task_models import fixed_randomness, model_behavior, sums_of  # imports torch

        player = self.make_player()
        if self.learns:
            model = cast("ZooPlayer", player).model_settings(self.game_settings.content)
            return {self.entry.qualified: model_behavior(model, settings_for("default"))}
        game = self.game_of(condition, 0)
        with fixed_randomness():
            trials = play(game, player, game.seed).state.trials
        numbers = sums_of(np.array([float(getattr(t, name)) for t in trials]) for name in ("correct", "cards"))
        return {self.entry.qualified: {"tensors": short_hash(str([t.text for t in trials])), "numbers": numbers}}

    def length(self, baseline: float | None) -> int | None:
        """Return the number of updates (of a sender) or items; None if it is not known."""
        if self.protocol == CONVERGED:
            return None
        return self.game_settings.examples * (self.updates if self.learns else 1)

    def most_updates(self, baseline: float | None) -> int:
        """Return the maximum number of updates or items."""
        return self.length(None) or self.most

    def summary(self, record: Fields) -> str:
        """Return a short text with the result of a game."""
        after = counted(record["steps"], "update" if self.learns else "item")
        return f"held-out {record['accuracy']:.2f} after {after}"


# -- requests: several rows, each with games of an instance and a grammar ---------------------------------------------


@request_of(StudySettings)
class StudyRequest(RunRequest):
    """Simulated games of Secret Spy Codes. Each combination of values is a row.

    Attributes:
        grammar: names of grammars or chains.
        instances: number of instances (language and held-out items) per dataset and grammar, with one game each.
        settings: changes to the training settings of senders, as in learning_rate=0.002.
        quick: use few instances, grammars and updates where these are not set, for a quick try.
    """

    function = "icy study simulate"
    job_kind = "study"
    small = MappingProxyType({"instances": 3, "grammar": ("concat", "perm")})

    player: str | Iterable[str] = ("composer", "memoriser")
    dataset: str | Iterable[str] = ("synth", "eng")
    grammar: str | Iterable[str] = ("concat", "perm", "proj", "rot", "shufdet")
    instances: int = 20
    settings: Mapping[str, Any] = field(default_factory=dict)


def rows(request: Any) -> list[Job]:
    """Return the job of a request that has one value along each axis.

    Raises:
        IcyError: an unknown name, a value that is not accepted, or settings that do not go together.
    """
    if request.device not in ("auto", "cpu"):
        raise InvalidSettingError("Players of the study play on the CPU; leave out device (--device).")
    instances = whole_number("setting instances", request.instances)
    entry, derived = player_entry(str(request.player)), {"yoked_to": "", "digest": ""}
    if request.protocol == YOKED and request.yoked_to.endswith(LOGS):
        derived = {"yoked_to": str(Path(request.yoked_to).resolve()), "digest": digest_of(request.yoked_to)}
    elif request.protocol == YOKED:
        derived["yoked_to"] = registry.get(request.yoked_to, STUDY_PLAYER).name
    training = request.settings if entry.kind == "sender" else {}
    player_name = request.player if entry.kind == TEXT_MODEL else entry.name
    values = {**values_for(StudySettings, request), **derived, "player": player_name, "training": training}
    settings = StudySettings(**values)
    game = settings.game_settings
    grammars = [canonical_name(name) for name in names_in("grammar", request.grammar, expand_grammars("all", "sender"))]
    if settings.digest:
        replicates = _replicates_in(settings, grammars)
    else:
        for grammar in grammars:
            instance_of(replace(game, grammar=grammar), 0, settings.list_seed)  # raises if it does not fit the dataset
        replicates = [Replicate(grammar, number) for grammar, number in product(grammars, range(instances))]
    player, parameters = settings.make_player(), {"true": 0, "published": 0}
    if settings.learns:
        parameters = cast("ZooPlayer", player).parameters(game.content)
    return [Job(settings=settings, replicates=tuple(replicates), parameters=parameters)]


def _replicates_in(settings: StudySettings, grammars: Sequence[str]) -> list[Replicate]:
    """Return a replicate for every game in a file that belongs to the row, with the number of its line."""
    found = [
        Replicate(log.game.settings.grammar, number)
        for number, log in enumerate(read_logs(settings.yoked_to))
        if log.game.settings.dataset == settings.dataset and log.game.settings.grammar in grammars
    ]
    if not found:
        raise InvalidSettingError(
            f"'{settings.yoked_to}' has no game of the dataset '{settings.dataset}' in the grammars "
            f"{', '.join(grammars)}."
        )
    return found
