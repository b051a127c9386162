"""Agents of games evaluated side by side: those that were kept, and those that know the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.checks import whole_number
from icy.core.conventions import conventions_json
from icy.core.errors import UnknownNameError, unknown
from icy.core.fields import checked
from icy.core.surroundings import standard_state

from .conventions import game_conventions
from .final import evaluate_agents
from .kept import KeptAgents, kept_agents
from .oracles import ORACLES, make_oracle
from .playing import Agents, Learned
from .rules import Rules
from .setup import Setup
from .spoken import Spoken
from .turn_settings import TurnSettings
from .turns import Turns
from .worlds.factory import make_world

if TYPE_CHECKING:
    import pandas as pd

TRAINING = ("channel", "word_size", "message_length", "steps", "settings")  # what tells trainings apart


@dataclass(frozen=True, eq=False)
class Player:
    """Agents in a game, and how they are called.

    Attributes:
        label: their name.
        seed: of their training; 0 of those that know the rules.
        setup: their game.
        distractor_kind: kind of its distractors.
        agents: who plays.
        learned: the training that they come from; None of those that know the rules.
    """

    label: str
    seed: int
    setup: Setup
    distractor_kind: str
    agents: Agents
    learned: Setup | None = None

    def evaluate(self) -> tuple[dict[str, float], Spoken]:
        """Return scores and what was said; see `evaluate_agents`."""
        return evaluate_agents(self.agents, self.setup, self.distractor_kind)

    @property
    def training(self) -> dict[str, Any]:
        """What tells their training from others, as text; of those that know the rules nothing."""
        if self.learned is None:
            return dict.fromkeys(TRAINING, "")
        changes = ", ".join(f"{name}={value}" for name, value in self.learned.changes().items())
        return {name: str(getattr(self.learned, name)) for name in TRAINING[:-1]} | {"settings": changes}

    @property
    def turns(self) -> Turns:
        """Turns of their game."""
        return Turns(self.setup.made_world, self.setup.of_turns(self.distractor_kind), [0])


@dataclass(frozen=True)
class GameChanges:
    """A game, as far as it is to be another than the one in which agents learned.

    Attributes:
        world: name of the world, of agents that know the rules; others have theirs.
        world_options: arguments of the world.
        turns: settings of turns, by name.
        count: number of turns of an evaluation.
    """

    world: str = "thing"
    world_options: Mapping[str, Any] | None = None
    turns: Mapping[str, Any] | None = None
    count: int | None = None

    def of(self, setup: Setup, distractor_kind: str) -> tuple[Setup, str]:
        """Return the setup of agents with this game in the place of their own, and the kind of its distractors.

        Raises:
            IcyError: a setting that there is not, or a game that cannot be.
        """
        given = checked(TurnSettings, self.turns or {}, "setting of turns")
        if "targets" in given:
            given.setdefault("distractors", given["targets"])
        turns = replace(setup.turns, **{"distractor_kind": distractor_kind, **given})
        learning = setup.learning
        if self.count is not None:
            learning = replace(learning, turns=whole_number("number of turns", self.count, least=2))
        options = {**setup.world_options, **(self.world_options or {})}
        return replace(setup, turns=turns, learning=learning, world_options=options), turns.drawn_distractors


@standard_state()
def players(who: str | Path, game: GameChanges | None = None, **where: Any) -> list[Player]:
    """Return agents in their games.

    Args:
        who: a name of ORACLES, or a results folder, pack or .safetensors file of agents that were kept.
        game: what is to be different of their games; of oracles, their game.
        **where: of the agents that were kept only these, by the names of records: seed=124.

    Raises:
        IcyError: there are none, or a game that cannot be.
    """
    game = GameChanges() if game is None else game
    if str(who) in ORACLES:
        return [_oracle(str(who), game)]
    if not Path(who).exists():
        raise unknown("oracle, folder or file of agents", str(who), list(ORACLES))
    return [_learned(kept, game) for kept in kept_agents(who, **where)]


def _learned(kept: KeptAgents, game: GameChanges) -> Player:
    _require_registered(kept)
    setup, kind = game.of(kept.setup, kept.distractor_kind)
    agents = Learned(kept.model(setup), setup.made_world)
    return Player(kept.label, int(kept.card["seed"]), setup, kind, agents, kept.setup)


def _require_registered(kept: KeptAgents) -> None:
    try:
        _ = kept.setup.entries
    except UnknownNameError as error:
        lacking = f"{kept.label}, is made with a plug-in, which --plugin FILE registers"
        raise UnknownNameError(f"{lacking}: {error}") from error


def one_player(who: str | Path, game: GameChanges | None = None, **where: Any) -> Player:
    """Return the one that `players` returns.

    Raises:
        IcyError: as for `players`, or there are several.
    """
    if str(who) not in ORACLES and Path(who).exists():
        return _learned(KeptAgents.one(who, **where), GameChanges() if game is None else game)
    return players(who, game, **where)[0]


def _oracle(name: str, game: GameChanges) -> Player:
    world = make_world(game.world, **(game.world_options or {}))
    given = dict(game.turns or {})
    bare = Setup(
        world=game.world, channel="gs", word_size=len(world.concepts), message_length=given.get("rule_length", 1)
    )
    setup, kind = game.of(bare, "auto")
    rules = Rules.of(world, setup.turns.rule_length)
    return Player(name, 0, setup, kind, make_oracle(name, rules))


@standard_state()
def compare(
    who: str | Path | Sequence[str | Path] = tuple(ORACLES), game: GameChanges | None = None, **where: Any
) -> pd.DataFrame:
    """Evaluate agents in games, and return a row of scores for each.

    Args:
        who: see `players`; one or several.
        game: see `players`.
        **where: see `players`.

    Returns:
        The columns `agents`, `seed`, `world`, those of TRAINING (what agents learned with), `rule_length`, `targets`,
        `distractors` and `distractor_kind` (what they play), the scores of `icy.games.evaluate_agents`, and the
        `conventions` of the metrics among them, as JSON.

    Example:
        >>> from icy.games import GameChanges, compare
        >>> rows = compare("literal", GameChanges(turns={"rule_length": 4, "distractor_kind": "uniform"}, count=200))
        >>> rows[["agents", "rule_length", "cbm"]].to_dict("records")
        [{'agents': 'literal', 'rule_length': 4, 'cbm': 0.25}]
    """
    import pandas as pd

    asked = [who] if isinstance(who, (str, Path)) else list(who)
    rows = []
    for player in [one for name in asked for one in players(name, game, **where)]:
        scores, _ = player.evaluate()
        turns = player.setup.turns
        about = {"agents": player.label, "seed": player.seed, "world": player.setup.world, **player.training}
        about |= {name: getattr(turns, name) for name in ("rule_length", "targets", "distractors")}
        used = conventions_json(game_conventions({"settings": {"setup": player.setup.config()}}))
        rows.append({**about, "distractor_kind": player.distractor_kind, **scores, "conventions": used})
    return pd.DataFrame(rows)
