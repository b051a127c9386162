"""What tells one row of simulated games from another: the player, the condition, and how it is played."""

from dataclasses import dataclass, field, replace

from icy.config.settings import settings_for
from icy.core.entry import STUDY_PLAYER, Entry
from icy.core.registry import registry
from icy.core.types import Choices, Fields

from .game import StudyGame, StudyGameSettings, instance_of
from .game.instances import person_seed
from .players.player import StudyPlayer

BATCH_SIZE = 16  # cards are at most 22, so larger batches show them again and again
PLAYED, CONVERGED, YOKED = "played", "converged", "yoked"
PROTOCOLS = (PLAYED, CONVERGED, YOKED)


def player_entry(name: str) -> Entry:
    """Return the entry of a simulated player or of a sender.

    Raises:
        UnknownNameError: nothing of the name is registered.
    """
    return registry.get(name, STUDY_PLAYER, "sender")


@dataclass(frozen=True, kw_only=True)
class StudyTask:
    """All that can change the numbers of a game, but grammar and instance.

    Attributes:
        player: canonical name of the player or sender.
        game: settings of the game, whose grammar each replicate has its own of.
        protocol: one of PROTOCOLS.
        list_seed: of the list of instances.
        yoked_to: name of the player, or path of the file of games, that is followed.
        digest: of that file; "" for a player.
        options: arguments of the player.
        hidden: of a sender, hidden size.
        representation: of a sender.
        updates: of a sender, per item or card.
        most: of a sender, updates at most under the protocol "converged".
        training: of a sender, changes to the training settings.
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

    @property
    def entry(self) -> Entry:
        """The entry of the player."""
        return player_entry(self.player)

    @property
    def learns(self) -> bool:
        """Whether the player is a sender of the zoo."""
        return self.entry.kind != STUDY_PLAYER

    def made(self) -> StudyPlayer:
        """Make the player.

        Raises:
            IcyError: it cannot be made.
        """
        if not self.learns:
            made: StudyPlayer = self.entry.create(**self.options)
            return made
        from .players.zoo import ZooPlayer, ZooSettings  # imports torch

        training = settings_for("default", batch_size=self.training.get("batch_size", BATCH_SIZE), **self._changes)
        updates = 0 if self.protocol == CONVERGED else self.updates  # there what is asked follows what is learnt
        per_card, sizes = self.protocol == YOKED, (self.hidden, self.representation, updates)
        return ZooPlayer(self.entry, ZooSettings(*sizes, per_card, training, dict(self.options)))

    @property
    def _changes(self) -> Choices:
        return {name: value for name, value in self.training.items() if name != "batch_size"}

    def game_of(self, grammar: str, number: int) -> StudyGame:
        """Return the game of a grammar on an instance of the list."""
        settings = replace(self.game, grammar=grammar)
        return StudyGame(settings, instance_of(settings, number, self.list_seed), self.seed_of(number))

    def seed_of(self, number: int) -> int:
        """Return the seed of the person who plays an instance, the same for every player and grammar."""
        return person_seed(self.game.dataset, number, self.list_seed)

    def config(self) -> Choices:
        """Return what a record keeps beside the columns of its own."""
        game = {name: value for name, value in self.game.to_json().items() if name not in ("dataset", "grammar")}
        yoked = {"yoked_to": self.digest or self.yoked_to} if self.protocol == YOKED else {}
        zoo = {"updates": self.updates, "training": {"batch_size": BATCH_SIZE, **self.training}} if self.learns else {}
        return {"game": game, "list_seed": self.list_seed, **yoked, **zoo}
