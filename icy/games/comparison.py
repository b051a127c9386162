"""Evaluate and compare agents of games: trained agents from files, and oracles that know the rules."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Integer
from numpy.typing import NDArray
from torch import Tensor

from icy.core.checks import whole_number
from icy.core.conventions import conventions_json
from icy.core.errors import InvalidSettingError, UnknownNameError, require_known, unknown
from icy.core.fields import changed_fields, checked
from icy.core.noise import counter_hash, shift
from icy.core.progress import track
from icy.core.streams import stream, stream_key
from icy.core.surroundings import standard_state
from icy.core.text import counted

from .evaluation import Spoken, matching
from .playing import Agents, Answers, SavedAgents, TrainedAgents, batches, evaluate_agents, kept_agents
from .rules import FREE, Rules, RuleSource
from .settings import IMAGE_AXES, OLD_NAMES, GamesLearningSettings, GamesSettings, TurnSettings, game_conventions
from .turns import TEST, TurnBatch, Turns, rules_of
from .worlds.world import make_world

if TYPE_CHECKING:
    import pandas as pd


# -- oracles: agents that know the rules, with ideal, holistic or random languages -------------------------------------


Demanded = Integer[Tensor, "*stack turn attr"]
TABLE_SEED = 0
MOST_MESSAGES = 2**62  # largest number of messages of a holistic language, which are numbered


def match_candidates(demanded: Demanded, batch: TurnBatch) -> Bool[Tensor, "*stack turn candidate"]:
    """Return which candidates have all values that a rule demands."""
    values = demanded[..., None, :]
    return ((values == FREE) | (values == batch.objects[0, 0])).all(-1)


@dataclass(frozen=True, eq=False)
class Ideal:
    """Agents with one word per concept. A message has the words of the rule's concepts, in the order of attributes.

    Attributes:
        rules: rules of the game.
        known: number of concepts in a message; by default all concepts of the phrase.
        length: number of words in a message; by default the number of concepts.

    Raises:
        InvalidSettingError: messages are too short for the concepts.
    """

    rules: Rules
    known: int | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        needed = self.rules.length if self.known is None else self.known
        if self.length is not None and self.length < needed:
            raise InvalidSettingError(
                f"The ideal language needs {counted(needed, 'word')} per message, one per concept, and a message has "
                f"{self.length}; take longer messages."
            )

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns. The listener chooses the candidates with all concepts in the message."""
        words = self.words(batch.rules[0, 0])
        return Answers(words, match_candidates(self.understood(words), batch))

    def words(self, demanded: Demanded) -> Integer[Tensor, "*stack turn length"]:
        """Return the messages for rules: the indices of the demanded concepts."""
        first = torch.tensor(self.rules.world.first_concepts, device=demanded.device, dtype=torch.int64)
        words = (demanded + first)[demanded != FREE].view(*demanded.shape[:-1], self.rules.length)
        return words[..., : self.known]

    def understood(self, words: Integer[Tensor, "*stack turn length"]) -> Demanded:
        """Return the values that a message demands; FREE for other attributes."""
        sizes = self.rules.world.sizes
        concepts = [(attribute, value) for attribute, size in enumerate(sizes) for value in range(size)]
        attribute, value = torch.tensor(concepts, device=words.device, dtype=torch.int64).unbind(-1)
        values = torch.full((*words.shape[:-1], len(sizes)), FREE, device=words.device, dtype=torch.int64)
        return values.scatter(-1, attribute[words], value[words])


class Holistic:
    """Agents with one random message per rule. There are as many different words as concepts.

    Args:
        rules: rules of the game.
        length: number of words in a message; by default the number of concepts of a rule.

    Raises:
        InvalidSettingError: there are fewer messages than rules.
    """

    def __init__(self, rules: Rules, length: int | None = None) -> None:
        base, length = len(rules.concepts), rules.length if length is None else length
        if base**length < rules.count:
            raise InvalidSettingError(
                f"There are {base**length} messages of {counted(length, 'word')}, too few for {rules.count} rules; "
                "take longer messages."
            )
        distinct = min(length, int(math.log(MOST_MESSAGES, base)))  # words that distinguish rules
        draws = stream(TABLE_SEED, "games", "holistic")
        numbers = draws.choice(base**distinct, rules.count, replace=False)
        self._places = base ** np.arange(distinct - 1, -1, -1)
        words = numbers[:, None] // self._places % base
        rest = draws.integers(base, size=(rules.count, length - distinct))
        self.rules, self.table = rules, torch.from_numpy(np.concatenate([words, rest], 1))
        order = np.argsort(numbers)
        self._sorted, self._rule = torch.from_numpy(numbers[order]), torch.from_numpy(order)

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns. The listener knows the rule of each message."""
        words = self.table[batch.numbers[0, 0].cpu()]
        numbers = (words[..., : len(self._places)] * torch.from_numpy(self._places)).sum(-1)
        rule = self._rule[torch.searchsorted(self._sorted, numbers)]
        return Answers(words, match_candidates(self.rules.table[rule.to(self.rules.table.device)], batch))


@dataclass(frozen=True, eq=False)
class Random:
    """Agents with random words and random answers.

    Attributes:
        rules: rules of the game, with as many different words as concepts.
        length: number of words in a message; by default the number of concepts of a rule.
    """

    rules: Rules
    length: int | None = None

    def play(self, batch: TurnBatch) -> Answers:
        """Play turns with random words and answers."""
        keys = batch.keys[0, 0]
        places = torch.arange(self.length or self.rules.length, device=keys.device)
        own = counter_hash(keys[:, :1] ^ stream_key(TABLE_SEED, "games", "random words"), places)
        answers = counter_hash(keys ^ stream_key(TABLE_SEED, "games", "random answers"), torch.zeros_like(keys))
        return Answers(shift(own, 33) % len(self.rules.concepts), (shift(answers, 33) & 1).bool())


ORACLES: dict[str, tuple[Callable[[Rules, int], Agents], str]] = {
    "ideal": (
        lambda rules, length: Ideal(rules, length=length),
        "A word for every concept, and a listener that knows them.",
    ),
    "literal": (
        lambda rules, length: Ideal(rules, known=1, length=length),
        "The same language, with only the first word of each message.",
    ),
    "holistic": (Holistic, "A random message for every phrase, and a listener that knows them."),
    "random": (Random, "Random words and random answers."),
}


def make_oracle(name: str, rules: RuleSource, message_length: int | None = None) -> Agents:
    """Create an oracle by the name of its language.

    Args:
        name: name in ORACLES: "ideal", "literal", "holistic" or "random".
        rules: rules of the game.
        message_length: number of words in a message of the game; by default the number of concepts of a rule.

    Returns:
        The agents. They need no training, because their language is given.

    Raises:
        UnknownNameError: no oracle has this name.
        InvalidSettingError: the language is not possible with these rules or messages.
    """
    require_known("oracle", name, ORACLES)
    if not isinstance(rules, Rules):
        raise InvalidSettingError(
            "Oracles need rules that are conjunctions of concepts, not formulas; take rules='conjunctions'."
        )
    return ORACLES[name][0](rules, rules.length if message_length is None else message_length)


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
        trained: settings of the training; None for oracles.
    """

    label: str
    seed: int
    setup: GamesSettings
    distractor_kind: str
    agents: Agents
    trained: GamesSettings | None = None

    def evaluate(self) -> tuple[dict[str, float], Spoken]:
        """Evaluate the agents; see `evaluate_agents`."""
        return evaluate_agents(self.agents, self.setup, self.distractor_kind)

    @property
    def training(self) -> dict[str, str]:
        """Settings of the training by name, as text; empty for oracles."""
        if self.trained is None:
            return dict.fromkeys(TRAINING, "")
        changes = ", ".join(f"{name}={value}" for name, value in self.trained.changes().items())
        texts = {name: str(getattr(self.trained, OLD_NAMES.get(name, name))) for name in TRAINING[:-1]}
        return {**texts, "settings": changes}

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

    def of(self, setup: GamesSettings, distractor_kind: str) -> tuple[GamesSettings, str]:
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
    files = [name for name in names if str(name) not in ORACLES]
    if wrong := [name for name in files if not Path(name).exists()]:
        raise unknown("oracle, folder or file of agents", str(wrong[0]), list(ORACLES))
    trained = {name: [_with_game(saved, game) for saved in kept_agents(name, **where)] for name in files}
    games = {player.game: player for players in trained.values() for player in players}
    return [player for name in names for player in trained.get(name) or _oracles(str(name), game, list(games.values()))]


def _with_game(saved: SavedAgents, game: GameOverrides) -> GameAgents:
    own = saved.setup
    try:
        _ = own.registered
    except UnknownNameError as error:
        lacking = f"{saved.label}, needs a plug-in; load it with --plugin FILE"
        raise UnknownNameError(f"{lacking}: {error}") from error
    if game.world not in (None, own.world):
        raise InvalidSettingError(
            f"{saved.label}, learned in the world '{own.world}' and can play in this world only; leave out world "
            "(--world)."
        )
    setup, kind = game.of(own, saved.distractor_kind)
    if setup.made_world.shape != own.made_world.shape:
        raise InvalidSettingError(
            f"{saved.label}, learned on objects of shape {own.made_world.shape}, and the objects of this game have "
            f"shape {setup.made_world.shape}; leave out the options of the world (--world-options)."
        )
    agents = TrainedAgents(saved.model(setup), setup.made_world)
    return GameAgents(saved.label, int(saved.card["seed"]), setup, kind, agents, own)


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


def _oracle(name: str, setup: GamesSettings, distractor_kind: str) -> GameAgents:
    """Create an oracle for a game. Its messages have one word per concept."""
    rules = rules_of(setup.made_world, setup.turns)
    agents = make_oracle(name, rules, setup.message_length)
    own = replace(setup, representation="gs", representation_options={}, word_size=len(rules.concepts))
    return GameAgents(name, 0, own, distractor_kind, agents)


def _usual_game(game: GameOverrides) -> tuple[GamesSettings, str]:
    """Return the requested game of oracles, with as many words per message as concepts per rule."""
    name = USUAL_WORLD if game.world is None else game.world
    concepts = len(make_world(name, **(game.world_options or {})).concepts)
    length = dict(game.turns or {}).get("rule_length", 1)
    return game.of(GamesSettings(world=name, representation="gs", word_size=concepts, message_length=length), "auto")


@standard_state()
def compare(who: Names = tuple(ORACLES), game: GameOverrides | None = None, **where: object) -> pd.DataFrame:
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
        used = conventions_json(game_conventions({"settings": {"setup": player.setup.setup()}}))
        rows.append({**about, "distractor_kind": player.distractor_kind, **scores, "conventions": used})
    return pd.DataFrame(rows)


# -- show turns as text: the rule, the message with its translation, and the chosen objects ----------------------------


UNMATCHED_WORD = "-"  # shown for a word without a matched concept


@dataclass(frozen=True)
class ShownTurn:
    """A turn as text.

    Attributes:
        rule: the rule of the targets.
        words: the words of the message.
        concepts: the concept that best matches each word in the whole language, or UNMATCHED_WORD.
        chosen: the chosen candidates, as text.
    """

    rule: str
    words: Sequence[str]
    concepts: Sequence[str]
    chosen: str

    def lines(self, number: int) -> list[str]:
        """Return the turn as lines of text, for a person to read."""
        return [
            f"turn {number}: {self.rule}",
            f"  message: {' '.join(self.words)} (best matching concepts: {', '.join(self.concepts)})",
            f"  chosen: {self.chosen}",
        ]


def show_turns(player: GameAgents, count: int) -> list[ShownTurn]:
    """Let agents play the first `count` turns of an evaluation, and return these turns as text."""
    _, spoken = player.evaluate()
    name = player.setup.word_name
    translation = matching(spoken, name=name).details["translation"]
    concepts = dict(zip(translation["word"], translation["concept"], strict=True))
    shown: list[ShownTurn] = []
    targets, distractors = player.setup.turns.targets, player.setup.turns.distractors
    for batch in _first(player, count):
        answers = player.agents.play(batch)
        for rule, message, chosen in zip(batch.numbers[0, 0].tolist(), answers.words, answers.chosen, strict=True):
            words = [name(word) for word in message.tolist()]
            right, wrong = int(chosen[:targets].sum()), int(chosen[targets:].sum())
            meanings = [concepts.get(word, UNMATCHED_WORD) for word in words]
            counts = f"{right} of {targets} targets, {wrong} of {distractors} distractors"
            shown.append(ShownTurn(player.turns.rules.name(rule), words, meanings, counts))
    return shown[:count]


def _first(player: GameAgents, count: int) -> list[TurnBatch]:
    """Return the batches with the first `count` turns of an evaluation."""
    size = player.setup.learning.batch_size
    return list(batches(player.turns, TEST, -(-count // size) * size, size))


def images_of(player: GameAgents, count: int) -> NDArray[np.float32] | None:
    """Return the candidates of the first turns as images [turn, candidate, channel, y, x]; None without images."""
    world = player.setup.made_world
    if len(world.shape) != IMAGE_AXES:
        return None
    shown = [world.observe(batch.objects[0, 0], batch.keys[0, 0]) for batch in _first(player, count)]
    return torch.cat(shown)[:count].cpu().numpy()


def values_of(player: GameAgents, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the candidates' values in the first turns [turn, candidate, attr], and each turn's rule as a table row."""
    shown = _first(player, count)
    objects, rules = (torch.cat([getattr(b, name)[0, 0] for b in shown])[:count] for name in ("objects", "rules"))
    return objects.cpu().numpy(), rules.cpu().numpy()
