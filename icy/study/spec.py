"""Options of the kind of job "study": players and conditions to simulate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from icy.config.specs import RunSpec


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
