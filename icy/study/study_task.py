"""Tasks: the player, the condition and the protocol of simulated games."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from icy.config.settings import settings_for
from icy.core.entry import STUDY_PLAYER, Entry
from icy.core.registry import registry
from icy.core.types import Choices, Fields

from .game import StudyGame, StudyGameSettings, instance_of
from .game.instances import person_seed
from .players.player import StudyPlayer

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

        training = settings_for("default", batch_size=self.training.get("batch_size", BATCH_SIZE), **self._changes)
        updates = 0 if self.protocol == CONVERGED else self.updates  # "converged" trains before the first question
        per_card, sizes = self.protocol == YOKED, (self.hidden, self.representation, updates)
        return ZooPlayer(self.entry, ZooSettings(*sizes, per_card, training, dict(self.options)))

    @property
    def _changes(self) -> Choices:
        return {name: value for name, value in self.training.items() if name != "batch_size"}

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
