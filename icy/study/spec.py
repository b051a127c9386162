"""Players and conditions to simulate: the arguments of the kind of job "study"."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from icy.config.specs import RunSpec


@dataclass(frozen=True)
class StudySpec(RunSpec):
    """Settings of simulated games of Secret Spy Codes. Every combination of several values becomes a row.

    Attributes:
        player: simulated players, as in `icy list study-players`, and senders of the zoo, as in HierZero:GRU.
        dataset: "synth", three colours and shapes with random words; "eng", five with English words; or both.
        grammar: names or chains of grammars.
        protocol: "played", the game as people play it; "converged", all cards are learned first, then the held-out
            items are asked; "yoked", the cards and items of another player's game, in the same order; or several.
        instances: number of instances (language and held-out items) of every dataset and grammar: one game on each.
        list_seed: seed of the list of instances, which people and machines share.
        preset: "clean", or "published" for the authors' service; or both.
        game: further settings of the game, as in examples=30; see icy.study.game.StudyGameSettings.
        yoked_to: player that the protocol "yoked" follows: a simulated player, or a file of exported games.
        hidden: hidden size E of senders.
        representation: representation of senders: "soft", "gumb" or "discr", or several.
        updates: updates of senders per test item; when yoked, per card shown.
        most: maximum number of updates of senders under the protocol "converged".
        options: further arguments of the players, as in slip=0.1.
        settings: changes to the training settings of senders, as in learning_rate=0.002.
        quick: few instances, grammars and updates unless these are set, for a quick trial.
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
