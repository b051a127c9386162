"""Agents of games evaluated side by side: those that were kept, and those that know the rules."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.checks import whole_number
from icy.core.conventions import conventions_json
from icy.core.errors import InvalidSettingError, UnknownNameError, unknown
from icy.core.fields import checked, differing
from icy.core.surroundings import standard_state
from icy.core.text import counted

from .final import evaluate_agents
from .game_task import GameTask
from .oracles import ORACLES, make_oracle
from .playing import Agents, Learned
from .registered import game_conventions
from .saved_agents import SavedAgents, kept_agents
from .settings import GamesLearningSettings
from .spoken import Spoken
from .turn_settings import TurnSettings
from .turns import Turns, rules_of
from .worlds.factory import make_world

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
Names = str | Path | Sequence[str | Path]  # of oracles, and folders or files of trained agents
USUAL_WORLD = "thing"  # of oracles without trained agents
TOLD = ("rule_length", "targets", "distractors", "distractor_kind")  # of a game, whatever their values
EVALUATION = ("turns", "topsim_of", "unmatched")  # settings of learning that scores depend on
TRAINING = ("channel", "word_size", "message_length", "steps", "settings")  # what tells trainings apart


@dataclass(frozen=True, eq=False)
class GameAgents:
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
    setup: GameTask
    distractor_kind: str
    agents: Agents
    learned: GameTask | None = None

    def evaluate(self) -> tuple[dict[str, float], Spoken]:
        """Return scores and what was said; see `evaluate_agents`."""
        return evaluate_agents(self.agents, self.setup, self.distractor_kind)

    @property
    def training(self) -> dict[str, str]:
        """What tells their training from others, as text; of those that know the rules nothing."""
        if self.learned is None:
            return dict.fromkeys(TRAINING, "")
        changes = ", ".join(f"{name}={value}" for name, value in self.learned.changes().items())
        return {name: str(getattr(self.learned, name)) for name in TRAINING[:-1]} | {"settings": changes}

    @property
    def game(self) -> str:
        """The game and its evaluation in words: if the texts are equal, scores can be compared."""
        setup, turns = self.setup, self.setup.of_turns(self.distractor_kind)
        learning = differing(setup.learning, GamesLearningSettings())
        settings = {
            **{f"world.{name}": value for name, value in setup.world_options.items()},
            "message_length": setup.message_length,
            **{name: getattr(turns, name) for name in TOLD},
            **differing(turns, TurnSettings(**{name: getattr(turns, name) for name in TOLD})),
            **{f"evaluation.{name}": value for name, value in learning.items() if name in EVALUATION},
        }
        return ", ".join([setup.world, *(f"{name}={value}" for name, value in settings.items())])

    @property
    def turns(self) -> Turns:
        """Turns of their game."""
        return Turns(self.setup.made_world, self.setup.of_turns(self.distractor_kind), [0])


@dataclass(frozen=True)
class GameChanges:
    """A game, as far as it is to be another than the one in which agents learned.

    Attributes:
        world: name of the world, of agents that know the rules; by default the world of the trained agents in the
            same call, or "thing".
        world_options: arguments of the world.
        turns: settings of turns, by name.
        count: number of turns of an evaluation.
    """

    world: str | None = None
    world_options: Mapping[str, Any] | None = None
    turns: Mapping[str, Any] | None = None
    count: int | None = None

    def of(self, setup: GameTask, distractor_kind: str) -> tuple[GameTask, str]:
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
def players(who: Names, game: GameChanges | None = None, **where: object) -> list[GameAgents]:
    """Return agents in their games.

    Agents that know the rules play the game of the trained agents among `who`, each once for every game of theirs. A
    warning names those that cannot.

    Args:
        who: one or several: a name of ORACLES, or a results folder, pack or .safetensors file of agents that were kept.
        game: changes of their games; of oracles alone, their game.
        **where: of the agents that were kept only these, by the names of records: seed=124.

    Raises:
        IcyError: there are none, or a game that cannot be.
    """
    game = GameChanges() if game is None else game
    asked = [who] if isinstance(who, (str, Path)) else list(who)
    found = {name: _trained(name, game, where) for name in asked if str(name) not in ORACLES}
    games = {player.game: player for players in found.values() for player in players}
    return [player for name in asked for player in found.get(name) or _oracles(str(name), game, list(games.values()))]


def _trained(path: str | Path, game: GameChanges, where: Mapping[str, object]) -> list[GameAgents]:
    if not Path(path).exists():
        raise unknown("oracle, folder or file of agents", str(path), list(ORACLES))
    return [_learned(kept, game) for kept in kept_agents(path, **where)]


def _learned(kept: SavedAgents, game: GameChanges) -> GameAgents:
    _require_registered(kept)
    learned = kept.setup
    if game.world not in (None, learned.world):
        raise InvalidSettingError(
            f"{kept.label}, learned in the world '{learned.world}' and plays in no other; leave out world (--world)."
        )
    setup, kind = game.of(learned, kept.distractor_kind)
    if setup.made_world.shape != learned.made_world.shape:
        raise InvalidSettingError(
            f"{kept.label}, learned on objects of shape {learned.made_world.shape}, and those of this game have shape "
            f"{setup.made_world.shape}; leave out the options of the world (--world-options)."
        )
    agents = Learned(kept.model(setup), setup.made_world)
    return GameAgents(kept.label, int(kept.card["seed"]), setup, kind, agents, learned)


def _require_registered(kept: SavedAgents) -> None:
    try:
        _ = kept.setup.entries
    except UnknownNameError as error:
        lacking = f"{kept.label}, is made with a plug-in, which --plugin FILE registers"
        raise UnknownNameError(f"{lacking}: {error}") from error


def one_player(who: str | Path, game: GameChanges | None = None, **where: object) -> GameAgents:
    """Return the one that `players` returns.

    Raises:
        IcyError: as for `players`, or there are several.
    """
    if str(who) not in ORACLES and Path(who).exists():
        return _learned(SavedAgents.find_one(who, **where), GameChanges() if game is None else game)
    return players(who, game, **where)[0]


def _oracles(name: str, game: GameChanges, beside: Sequence[GameAgents]) -> Iterator[GameAgents]:
    """Yield an oracle in the game of each of some trained agents, or alone in the game that was asked for."""
    if not beside:
        yield _oracle(name, *_usual_game(game))
    reasons: Counter[str] = Counter()
    for player in beside:
        try:
            yield _oracle(name, player.setup, player.distractor_kind)
        except InvalidSettingError as error:
            reasons[str(error)] += 1
    for reason, games in reasons.items():
        log.warning("Left out: %s in %s of %s. %s", name, games, counted(len(beside), "game"), reason)


def _oracle(name: str, setup: GameTask, distractor_kind: str) -> GameAgents:
    """Return an oracle in a game, with a word for every concept in place of the channel of trained agents."""
    rules = rules_of(setup.made_world, setup.turns)
    agents = make_oracle(name, rules, setup.message_length)
    own = replace(setup, channel="gs", channel_options={}, word_size=len(rules.concepts))
    return GameAgents(name, 0, own, distractor_kind, agents)


def _usual_game(game: GameChanges) -> tuple[GameTask, str]:
    """Return the game that was asked for, with a word in a message for every concept of a rule."""
    name = USUAL_WORLD if game.world is None else game.world
    concepts = len(make_world(name, **(game.world_options or {})).concepts)
    length = dict(game.turns or {}).get("rule_length", 1)
    return game.of(GameTask(world=name, channel="gs", word_size=concepts, message_length=length), "auto")


@standard_state()
def compare(
    who: Names = tuple(ORACLES),
    game: GameChanges | None = None,
    told: Callable[[str, int, int], None] | None = None,
    **where: object,
) -> pd.DataFrame:
    """Evaluate agents in games, and return a row of scores for each.

    Args:
        who: see `players`; one or several.
        game: see `players`.
        told: called before each evaluation with the agents' name, and the numbers of finished and all evaluations.
        **where: see `players`.

    Returns:
        The columns `agents`, `seed`, `game` (the game in words: only rows of the same game can be compared), `world`,
        those of TRAINING (what agents learned with), `rule_length`, `targets`, `distractors` and `distractor_kind`
        (their game), the scores of `icy.games.evaluate_agents`, and the `conventions` of the metrics among them,
        as JSON.

    Example:
        >>> from icy.games import GameChanges, compare
        >>> rows = compare("literal", GameChanges(turns={"rule_length": 4, "distractor_kind": "uniform"}, count=200))
        >>> rows[["agents", "rule_length", "cbm"]].to_dict("records")
        [{'agents': 'literal', 'rule_length': 4, 'cbm': 0.25}]
    """
    import pandas as pd

    rows, every = [], players(who, game, **where)
    for place, player in enumerate(every):
        if told is not None:
            told(f"{player.label}, seed {player.seed}", place, len(every))
        scores, _ = player.evaluate()
        turns = player.setup.turns
        about = {"agents": player.label, "seed": player.seed, "game": player.game, "world": player.setup.world}
        about |= player.training | {name: getattr(turns, name) for name in ("rule_length", "targets", "distractors")}
        used = conventions_json(game_conventions({"settings": {"setup": player.setup.config()}}))
        rows.append({**about, "distractor_kind": player.distractor_kind, **scores, "conventions": used})
    return pd.DataFrame(rows)
