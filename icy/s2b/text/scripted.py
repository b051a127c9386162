"""Text models that follow a script, for tests of players, prompts and servers."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import LISTENER, SPEAKER, registry
from icy.s2b.episode_streams import EpisodeStreams, Wholes
from icy.s2b.game import FAILURE, SUCCESS, UNKNOWN, Seen
from icy.s2b.players.interface import Action, Player, Seat
from icy.s2b.settings import GameSettings

from .prompt import HEARD, RIGHT, SAID, SAW, SEE, STEP, WRONG, Shown
from .text_model import TextModel, TextReply, TextRequest, TextSettings, parse

READERS = {LISTENER: "nearest", SPEAKER: "digital"}  # prompts contain all facts that these players need


def as_json(decision: int | None, message: Sequence[int] | None = None) -> TextReply:
    """Return the reply of a model that answers with JSON."""
    said = {"decision": decision} if decision is not None else {}
    return parse(json.dumps({**said, **({} if message is None else {"message": list(message)})}))


class ScriptedModel(TextModel):
    """Base class of scripted text models, which have no settings."""

    worth_keeping = False

    def __init__(self, name: str = "", settings: TextSettings | None = None) -> None:
        self.given = name

    def answer(self, requests: Sequence[TextRequest]) -> Iterator[tuple[int, TextReply]]:
        """Yield the replies to requests of S2B.

        Raises:
            IncompatibleError: other questions.
        """
        if not all(isinstance(request, TextRequest) for request in requests):
            raise IncompatibleError(f"{self.name} plays only the games of S2B.")
        return super().answer(requests)


class OracleModel(ScriptedModel):
    """Text model that knows the game, and is always right."""

    privileged = True

    def begin(self, seat: Seat) -> None:
        """Store the game."""
        self.seat = seat

    def reply(self, request: TextRequest) -> TextReply:
        """Return the right answer."""
        assert self.seat.game is not None
        answer = int(self.seat.game.answer[request.episode_id])
        return as_json(min(answer, self.seat.settings.decisions - 1), [0] * len(request.choices.get("message", [])))


class YesModel(ScriptedModel):
    """Text model that always answers 0 ("yes" in a game without distractors) and sends empty messages."""

    def reply(self, request: TextRequest) -> TextReply:
        """Return the answer 0."""
        return as_json(0, [0] * len(request.choices.get("message", [])))


class ReadingModel(ScriptedModel):
    """Text model that reads only the prompt, and acts as a player of icy: the named one, or READERS[role]."""

    def reply(self, request: TextRequest) -> TextReply:
        """Let a new player play the episode in the prompt, and return its last action."""
        settings, course = read_prompt(request.prompt, request.role)
        name = self.given or READERS[request.role]
        player: Player = registry.get(name, request.role).create()
        if player.privileged:
            raise InvalidSettingError(f"{name} needs facts that a prompt does not contain; choose another player.")
        player.begin(Seat(settings, 1, EpisodeStreams.of_seeds([request.seed])))
        action = Action()
        for seen in course:
            action = player.act(seen)
        decision = 0 if action.decision is None else int(action.decision[0])
        message = [] if action.message is None else action.message[0].tolist()
        return as_json(decision, message if "message" in request.choices else None)


# -- reading prompts ---------------------------------------------------------------------------------------------------


@dataclass
class _PromptGame:
    """A game, as read from a prompt."""

    query: bool
    sees: Shown | None = None
    heard: list[list[int]] = field(default_factory=list)
    said: list[list[int]] = field(default_factory=list)
    result: int = UNKNOWN
    saw: Shown | None = None
    steps: int = 0  # in the format of MetaRG24


def read_prompt(prompt: str, role: str) -> tuple[GameSettings, list[Seen]]:
    """Read the settings of the game, and a player's observations so far, from a prompt for a role.

    Only games with continuous stimuli and without messages of the listener are supported.
    """
    settings = _settings(prompt)
    games: list[_PromptGame] = []
    for line in prompt.splitlines():
        if found := re.fullmatch(r"Phase (\d), game \d+", line):
            games.append(_PromptGame(found[1] == "2"))
        elif games:
            _note(games[-1], line)
    course, before = [], UNKNOWN
    for number, game in enumerate(games):
        course += _steps(settings, role, game, before, last=number == len(games) - 1)
        before = game.result
    course[0] = replace(course[0], fresh=np.array([True]))
    return settings, course


def _settings(prompt: str) -> GameSettings:
    """Read the settings of the game from the rules."""

    def number(pattern: str) -> int:
        found = re.search(pattern, prompt)
        assert found is not None, pattern
        return int(found[1])

    slots = number(r"the listener sees (\d+) stimul")
    return GameSettings(
        dimensions=number(r"stimulus is (\d+) number"),
        vocab_size=number(r"symbols? out of \d+, 0 to (\d+)"),
        length=number(r"at most (\d+) symbol"),
        rounds=number(r"sends (\d+) message"),
        distractors=slots - 1,
        view="full" if "others;" in prompt else "partial",
        descriptive=slots == 1 or "not among them" in prompt,
        feedback="shown what the speaker saw" in prompt,
    )


def _note(game: _PromptGame, line: str) -> None:
    """Add the facts in a line of a prompt to a game."""
    if line.startswith((SEE, SAW)):
        rows = [[float(x) for x in one.split()] for one in re.findall(r"\[([^\]]*)\]", line)]
        setattr(game, "sees" if line.startswith(SEE) else "saw", np.array([rows], dtype=np.float64))
    elif line.startswith(STEP):
        game.steps += 1
    elif line.startswith(HEARD) and game.steps == 1:
        pass  # there is no message before the first one
    elif line.startswith((HEARD, SAID)):
        tokens = [int(one) for one in line.partition(": ")[2].split()]
        (game.heard if line.startswith(HEARD) else game.said).append(tokens)
    elif line in (RIGHT, WRONG):
        game.result = SUCCESS if line == RIGHT else FAILURE


def _steps(settings: GameSettings, role: str, game: _PromptGame, before: int, last: bool) -> list[Seen]:
    """Return the player's observations at each step of a game so far."""
    here = role == LISTENER
    reached = game.steps - 1 if game.steps else len(game.heard if here else game.said)
    steps = [
        _seen(settings, here, game.query, round_, game.sees, game.heard[round_ - 1] if here and round_ else [], before)
        for round_ in range(min(reached, settings.rounds) + 1)
    ]
    if settings.feedback and (not last or reached > settings.rounds):
        shown = game.saw if here else game.sees
        steps.append(_seen(settings, here, game.query, settings.rounds + 1, shown, [], game.result))
    return steps


def _seen(
    settings: GameSettings, here: bool, query: bool, round_: int, shown: Shown | None, message: list[int], result: int
) -> Seen:
    def one(value: float) -> Wholes:
        return np.array([value])

    padded = message + [0] * (settings.length - len(message))
    return Seen(
        shown, np.array([padded]), one(query), one(round_), one(result), one(0.0), one(False),
        may_speak=one(not here and round_ < settings.rounds), may_decide=one(here and round_ == settings.rounds),
        over=one(False), feedback=one(round_ > settings.rounds), idle=one(False),
    )  # fmt: skip
