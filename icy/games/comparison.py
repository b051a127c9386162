"""Evaluate and compare agents of games: trained agents from files, and oracles that know the rules."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.checks import whole_number
from icy.core.conventions import conventions_json
from icy.core.errors import InvalidSettingError, UnknownNameError, unknown
from icy.core.fields import changed_fields, checked
from icy.core.progress import track
from icy.core.surroundings import standard_state
from icy.core.text import counted

from .final import evaluate_agents
from .game_task import GameTask
from .oracles import ORACLES, make_oracle
from .playing import Agents, TrainedAgents
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
Names = str | Path | Sequence[str | Path]  # names of oracles; folders or files of trained agents
USUAL_WORLD = "thing"  # world of oracles that are evaluated without trained agents
GAME_SETTINGS = ("rule_length", "targets", "distractors", "distractor_kind")  # always in the text of a game
EVALUATION = ("turns", "topsim_of", "unmatched")  # learning settings that affect scores
TRAINING = ("representation", "word_size", "message_length", "steps", "settings")  # that distinguish trainings


@dataclass(frozen=True, eq=False)
class GameAgents:
    """A speaker and a listener, with a name and a game.

    Attributes:
        label: name of the pair.
        seed: seed of the training; 0 for oracles.
        setup: the game to play.
        distractor_kind: kind of the game's distractors.
        agents: the speaker and the listener.
        training_task: task of the training; None for oracles.
    """

    label: str
    seed: int
    setup: GameTask
    distractor_kind: str
    agents: Agents
    training_task: GameTask | None = None

    def evaluate(self) -> tuple[dict[str, float], Spoken]:
        """Evaluate the agents; see `evaluate_agents`."""
        return evaluate_agents(self.agents, self.setup, self.distractor_kind)

    @property
    def training(self) -> dict[str, str]:
        """Settings of the training by name, as text; empty for oracles."""
        if self.training_task is None:
            return dict.fromkeys(TRAINING, "")
        changes = ", ".join(f"{name}={value}" for name, value in self.training_task.changes().items())
        return {name: str(getattr(self.training_task, name)) for name in TRAINING[:-1]} | {"settings": changes}

    @property
    def game(self) -> str:
        """The game and its evaluation as text. Scores are comparable if their texts are equal."""
        setup, turns = self.setup, self.setup.of_turns(self.distractor_kind)
        learning = changed_fields(setup.learning, GamesLearningSettings())
        settings = {
            **{f"world.{name}": value for name, value in setup.world_options.items()},
            "message_length": setup.message_length,
            **{name: getattr(turns, name) for name in GAME_SETTINGS},
            **changed_fields(turns, TurnSettings(**{name: getattr(turns, name) for name in GAME_SETTINGS})),
            **{f"evaluation.{name}": value for name, value in learning.items() if name in EVALUATION},
        }
        return ", ".join([setup.world, *(f"{name}={value}" for name, value in settings.items())])

    @property
    def turns(self) -> Turns:
        """Source of the game's turns."""
        return Turns(self.setup.made_world, self.setup.of_turns(self.distractor_kind), [0])


@dataclass(frozen=True)
class GameOverrides:
    """Changes to the game of trained agents, or the game of oracles.

    Attributes:
        world: name of the world, only for oracles; by default the world of the trained agents in the same call, or
            "thing".
        world_options: arguments of the world.
        turns: settings of turns, by name.
        count: number of turns per evaluation.
    """

    world: str | None = None
    world_options: Mapping[str, Any] | None = None
    turns: Mapping[str, Any] | None = None
    count: int | None = None

    def of(self, setup: GameTask, distractor_kind: str) -> tuple[GameTask, str]:
        """Apply the changes to a game. Return the new game and its kind of distractors.

        Raises:
            IcyError: a setting is unknown, or the game is impossible.
        """
        settings = checked(TurnSettings, self.turns or {}, "setting of turns")
        if "targets" in settings:
            settings.setdefault("distractors", settings["targets"])
        turns = replace(setup.turns, **{"distractor_kind": distractor_kind, **settings})
        learning = setup.learning
        if self.count is not None:
            learning = replace(learning, turns=whole_number("number of turns", self.count, least=2))
        options = {**setup.world_options, **(self.world_options or {})}
        return replace(setup, turns=turns, learning=learning, world_options=options), turns.drawn_distractors


@standard_state()
def players(who: Names, game: GameOverrides | None = None, **where: object) -> list[GameAgents]:
    """Load trained agents and create oracles, and give each a game.

    Each oracle plays every game of the trained agents. A warning names games that an oracle cannot play.

    Args:
        who: one or several names of oracles (ORACLES), or results folders, packs or .safetensors files of trained
            agents.
        game: changes to the games; without trained agents, the game of the oracles.
        **where: load only trained agents with these values of their records' fields, as in seed=124.

    Returns:
        The pairs, in the order of `who`, each with the game that it plays. An oracle has an entry per game.

    Raises:
        IcyError: no agents match, or a game is impossible.
    """
    game = GameOverrides() if game is None else game
    names = [who] if isinstance(who, (str, Path)) else list(who)
    trained = {name: _load_trained(name, game, where) for name in names if str(name) not in ORACLES}
    games = {player.game: player for players in trained.values() for player in players}
    return [player for name in names for player in trained.get(name) or _oracles(str(name), game, list(games.values()))]


def _load_trained(path: str | Path, game: GameOverrides, where: Mapping[str, object]) -> list[GameAgents]:
    if not Path(path).exists():
        raise unknown("oracle, folder or file of agents", str(path), list(ORACLES))
    return [_with_game(saved, game) for saved in kept_agents(path, **where)]


def _with_game(saved: SavedAgents, game: GameOverrides) -> GameAgents:
    _require_registered(saved)
    task = saved.setup
    if game.world not in (None, task.world):
        raise InvalidSettingError(
            f"{saved.label}, learned in the world '{task.world}' and can play in this world only; leave out world "
            "(--world)."
        )
    setup, kind = game.of(task, saved.distractor_kind)
    if setup.made_world.shape != task.made_world.shape:
        raise InvalidSettingError(
            f"{saved.label}, learned on objects of shape {task.made_world.shape}, and the objects of this game have "
            f"shape {setup.made_world.shape}; leave out the options of the world (--world-options)."
        )
    agents = TrainedAgents(saved.model(setup), setup.made_world)
    return GameAgents(saved.label, int(saved.card["seed"]), setup, kind, agents, task)


def _require_registered(saved: SavedAgents) -> None:
    try:
        _ = saved.setup.entries
    except UnknownNameError as error:
        lacking = f"{saved.label}, needs a plug-in; load it with --plugin FILE"
        raise UnknownNameError(f"{lacking}: {error}") from error


def one_player(who: str | Path, game: GameOverrides | None = None, **where: object) -> GameAgents:
    """Load one pair of trained agents, or create one oracle; arguments as for `players`.

    Raises:
        IcyError: as for `players`, or several agents match.
    """
    if str(who) not in ORACLES and Path(who).exists():
        return _with_game(SavedAgents.find_one(who, **where), GameOverrides() if game is None else game)
    return players(who, game, **where)[0]


def _oracles(name: str, game: GameOverrides, trained: Sequence[GameAgents]) -> Iterator[GameAgents]:
    """Yield an oracle for each game of the trained agents, or without these for the requested game."""
    if not trained:
        yield _oracle(name, *_usual_game(game))
    reasons: Counter[str] = Counter()
    for player in trained:
        try:
            yield _oracle(name, player.setup, player.distractor_kind)
        except InvalidSettingError as error:
            reasons[str(error)] += 1
    for reason, games in reasons.items():
        log.warning("Left out: %s in %s of %s. %s", name, games, counted(len(trained), "game"), reason)


def _oracle(name: str, setup: GameTask, distractor_kind: str) -> GameAgents:
    """Create an oracle for a game. Its messages have one word per concept."""
    rules = rules_of(setup.made_world, setup.turns)
    agents = make_oracle(name, rules, setup.message_length)
    own = replace(setup, representation="gs", representation_options={}, word_size=len(rules.concepts))
    return GameAgents(name, 0, own, distractor_kind, agents)


def _usual_game(game: GameOverrides) -> tuple[GameTask, str]:
    """Return the requested game of oracles, with as many words per message as concepts per rule."""
    name = USUAL_WORLD if game.world is None else game.world
    concepts = len(make_world(name, **(game.world_options or {})).concepts)
    length = dict(game.turns or {}).get("rule_length", 1)
    return game.of(GameTask(world=name, representation="gs", word_size=concepts, message_length=length), "auto")


@standard_state()
def compare(
    who: Names = tuple(ORACLES),
    game: GameOverrides | None = None,
    **where: object,
) -> pd.DataFrame:
    """Evaluate agents, and return a row of scores for each agent and game.

    Args:
        who: see `players`.
        game: see `players`.
        **where: see `players`.

    Returns:
        The columns `agents`, `seed`, `game` (as text; only rows with the same game are comparable), `world`, the
        columns of TRAINING (settings of the training), `rule_length`, `targets`, `distractors` and `distractor_kind`
        (settings of the game), the scores of `icy.games.evaluate_agents`, and the `conventions` of the metrics, as
        JSON.

    Example:
        >>> from icy.games import GameOverrides, compare
        >>> rows = compare("literal", GameOverrides(turns={"rule_length": 4, "distractor_kind": "uniform"}, count=200))
        >>> rows[["agents", "rule_length", "cbm"]].to_dict("records")
        [{'agents': 'literal', 'rule_length': 4, 'cbm': 0.25}]
    """
    import pandas as pd

    rows = []
    for player in track(players(who, game, **where), "agents"):
        scores, _ = player.evaluate()
        turns = player.setup.turns
        about = {"agents": player.label, "seed": player.seed, "game": player.game, "world": player.setup.world}
        about |= player.training | {name: getattr(turns, name) for name in ("rule_length", "targets", "distractors")}
        used = conventions_json(game_conventions({"settings": {"setup": player.setup.config()}}))
        rows.append({**about, "distractor_kind": player.distractor_kind, **scores, "conventions": used})
    return pd.DataFrame(rows)
