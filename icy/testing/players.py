"""Checks of speakers and listeners of S2B, of text models, and of simulated players of the study.

Players play on NumPy arrays, so the checks use no other arrays.
"""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import product
from typing import Any

import msgspec
import numpy as np
from joblib.externals.loky.backend.reduction import dumps

from icy.context.settings import ContextSettings
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import LISTENER, SPEAKER
from icy.grammars import make_language
from icy.s2b.channel import regular
from icy.s2b.episode_streams import EpisodeStreams, Wholes
from icy.s2b.evaluation import evaluate
from icy.s2b.game import BatchedGame, Seen
from icy.s2b.players.interface import Action, Player, Seat, seated
from icy.s2b.settings import GameSettings
from icy.s2b.text.player import DraftModel, TextListener
from icy.s2b.text.text_model import (
    TextModel,
    TextReply,
    TextRequest,
    TextSettings,
    valid_decision,
    valid_message,
)
from icy.study.game import StudyGame, StudyGameSettings, instance_of
from icy.study.players.player import StudyPlayer, play
from icy.text.interface import Answer, Question
from icy.text.models import made_of

from .cases import Case, CheckFailure, NotApplicable, first_line, require

SEEDS, OTHER_SEEDS = (2, 3, 12), (8, 46, 58)  # seeds of short episodes
REPLAYS = 8  # replays of an episode that show whether a player draws freely; short ones may agree by chance

# Short episodes, and messages with room for every language of icy's own speakers.
ROOMY: dict[str, Any] = {"dimensions": 2, "least": 2, "most": 3, "vocab_size": 6}
GAMES: dict[str, dict[str, Any]] = {
    "K = 0": {},
    "K = 3": {"distractors": 3, "samples": 2},
    "a partial view": {"distractors": 2, "view": "partial"},
    "several rounds": {"rounds": 2, "length": 1},
    "no feedback": {"feedback": False},
    "one-hot stimuli": {"representation": "ohe"},
    "no answer 'none'": {"descriptive": False, "distractors": 2},
    "a listener that may speak": {"listener_messages": True},
    "compat near32": {"distractors": 2, "compat": "near32"},
    "common games": {"kind": "common", "split": "all", "games": 4},
}
USUAL = ("K = 0", "K = 3")


@dataclass(frozen=True)
class PlayerCase(Case):
    """A speaker or listener under test.

    Attributes:
        played: records of the usual episodes, by settings of the game; see `episodes`.
    """

    played: dict[GameSettings, PlayedEpisodes] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def role(self) -> str:
        """ "speaker" or "listener"."""
        return self.entry.kind

    @property
    def other(self) -> str:
        """The partner's role."""
        return LISTENER if self.role == SPEAKER else SPEAKER

    def make(self) -> Player:
        """Create a new player."""
        made: Player = self.entry.create()
        require(isinstance(made, Player), f"The factory made a {type(made).__name__}; derive it from icy.s2b.Player.")
        return made

    def partner(self, game: BatchedGame) -> Player:
        """Seat the partner: a listener that decides at random, or a speaker with a language to learn."""
        return seated("random" if self.role == SPEAKER else "posdis", self.other, game)

    def accepted(self, names: Iterable[str] = tuple(GAMES)) -> dict[str, GameSettings]:
        """Return the games that the player accepts."""
        found = {}
        for name in names:
            settings = GameSettings.of(**{**ROOMY, **GAMES[name]})
            with contextlib.suppress(IncompatibleError):
                seated(self.make(), self.role, _begun(settings, SEEDS))
                found[name] = settings
        return found

    def games(self) -> dict[str, GameSettings]:
        """Return the usual games, without and with distractors; or all accepted games, if the player refuses both.

        Raises:
            NotApplicable: the player refuses every game.
        """
        accepted = self.accepted(USUAL) or self.accepted()
        if not accepted:
            raise NotApplicable("the player refuses every game, as the check 'plays_every_game' reports")
        return accepted

    def episodes(self, settings: GameSettings) -> PlayedEpisodes:
        """Return the actions of a new player in the usual episodes, which are played once for all checks."""
        if settings not in self.played:
            self.played[settings] = self.play(settings)
        return self.played[settings]

    def play(
        self,
        settings: GameSettings,
        seeds: Iterable[int] = SEEDS,
        player: Player | None = None,
        between: Callable[[BatchedGame, Player], None] | None = None,
    ) -> PlayedEpisodes:
        """Play an episode of every seed to its end.

        Args:
            settings: settings of the game.
            seeds: seeds of the episodes.
            player: a player that has played before; by default a new player.
            between: called with the game and the player before each step.
        """
        game, record = _begun(settings, seeds), PlayedEpisodes()
        mine, partner = seated(player or self.make(), self.role, game), self.partner(game)
        while not game.turn.done.all():
            if between is not None:
                between(game, mine)
            seen = game.turn.seen_by(self.role)
            record.seen.append(copy.deepcopy(seen))
            action = mine.act(seen)
            record.changed |= _differing(seen, record.seen[-1])
            _step(game, self.role, action, partner.act(game.turn.seen_by(self.other)))
            record.actions.append(counted(action, record.seen[-1], settings, self.role))
        record.illegal = int(game.illegal[self.role].sum())
        return record

    def use(self) -> None:
        """Play the usual games."""
        for settings in self.games().values():
            self.play(settings)

    def check_plays_every_game(self) -> str:
        """Games of every kind, with K = 0 and K = 3, are played to the end, or refused with an IncompatibleError."""
        accepted = self.accepted()
        refused = [name for name in GAMES if name not in accepted]
        require(accepted, f"The player refuses every game: {', '.join(refused)}.")
        for name, settings in accepted.items():
            try:
                self.episodes(settings)
            except IncompatibleError as error:
                what = f"The game '{name}' is refused while it is played: {first_line(error)}"
                raise CheckFailure(f"{what}; refuse it in `begin`.") from error
            except Exception as error:
                error.add_note(f"The game was '{name}'.")
                raise
        return f"refuses {', '.join(refused)}" if refused else "plays all"

    def check_legal_actions(self) -> None:
        """Every action is legal: existing tokens and decisions, only where `may_speak` and `may_decide` allow them."""
        for name, settings in self.accepted().items():
            try:
                illegal = self.episodes(settings).illegal
            except Exception:  # reported by the check 'plays_every_game'
                continue
            require(
                not illegal,
                f"{illegal} actions are illegal in the game '{name}'; give tokens 0..V only where `seen.may_speak`, "
                "decisions below `settings.decisions` only where `seen.may_decide`, and 0 elsewhere.",
            )

    def check_deterministic(self) -> None:
        """The same seeds give the same actions: a player's draws come from `seat.streams`."""
        for name, settings in self.games().items():
            step = _first_difference(self.play(settings).actions, self.episodes(settings).actions)
            what = f"Two players with the same seeds act differently at step {step} ({name})"
            require(step is None, f"{what}; draw from `seat.streams`.")

    def check_alone_and_in_a_batch(self) -> None:
        """An episode is the same alone and in a batch."""
        for name, settings in self.games().items():
            together = self.episodes(settings).actions
            for i, seed in enumerate(SEEDS):
                alone = partial(self._actions, settings, [seed])
                expected = alone()
                mine = [actions[i : i + 1] for actions in together[: len(expected)]]
                what = f"An episode is different alone and in a batch ({name}); keep the state of episodes separate"
                require_same_actions(mine, expected, what, alone)

    def check_begins_anew(self) -> None:
        """A player that has played before acts like a new player: `begin` forgets everything."""
        for name, settings in self.games().items():
            player, new = self.make(), partial(self._actions, settings)
            self.play(settings, OTHER_SEEDS, player)
            what = f"A player that has played before acts differently from a new player ({name}); forget all in `begin`"
            again = self.play(settings, player=player).actions
            require_same_actions(again, self.episodes(settings).actions, what, new)

    def check_forgets_between_episodes(self) -> None:
        """If the next episode begins at once (`seen.fresh`), the player forgets the previous one."""
        for name, settings in self.games().items():
            usual = partial(self._second_episodes, settings, 0)
            what = f"A partner's actions in one episode change the next episode ({name}); forget where `seen.fresh`"
            require_same_actions(self._second_episodes(settings, 1), usual(), what, usual)

    def _actions(self, settings: GameSettings, seeds: Iterable[int] = SEEDS) -> list[Wholes]:
        return self.play(settings, seeds).actions

    def _second_episodes(self, settings: GameSettings, variant: int) -> list[Wholes]:
        """Return the actions in the second episode of every seed, after a first one with a variant of the partner."""
        game = _begun(settings, SEEDS, autoreset=True)
        actions: list[Wholes] = []
        player = seated(self.make(), self.role, game)
        streams = EpisodeStreams.of_seeds(SEEDS).within("testing", "partner")
        while (game.episode_number < 2).any():
            number, seen = game.episode_number, copy.deepcopy(game.turn.seen_by(self.role))
            action = player.act(game.turn.seen_by(self.role))
            draws, at = streams.nth(np.where(number, 2, variant)), len(actions)
            message = draws.integers("say", settings.vocab_size + 1, (settings.length,), at * settings.length)
            decision = draws.integers("decide", settings.decisions, (1,), at)[:, 0]
            _step(game, self.role, action, Action(message, decision))  # an illegal action counts as no action
            actions.append(counted(action, seen, settings, self.role) * (number == 1)[:, None])
        return actions

    def check_sees_only_observations(self) -> None:
        """Given the same observations without a game or partner, the player acts the same: it reads nothing hidden."""
        if self.make().privileged:
            raise NotApplicable("the player is privileged: it gets the game")
        for name, settings in self.games().items():
            record, player = self.episodes(settings), self.make()
            player.begin(Seat(settings, len(SEEDS), EpisodeStreams.of_seeds(SEEDS).within("player", self.role)))
            found = [counted(player.act(copy.deepcopy(s)), s, settings, self.role) for s in record.seen]
            what = f"With observations alone, the player acts differently ({name}): it reads hidden facts"
            require_same_actions(found, record.actions, what, partial(self._actions, settings))

    def check_observations_unchanged(self) -> None:
        """The player does not change its observations."""
        for name, settings in self.games().items():
            changed = ", ".join(sorted(self.episodes(settings).changed))
            require(not changed, f"The player changed {changed} of its observations in place ({name}); work on a copy.")

    def check_utters(self) -> None:
        """`utter` returns tokens [n, length], the same for the same stimuli, and does not change later actions."""
        if self.role != SPEAKER:
            raise NotApplicable("only speakers have `utter`")

        def ask(game: BatchedGame, player: Player) -> None:
            stimuli, meanings = game.turn.speaker.stimulus[:, 0], game.latents(SPEAKER)[:, 0]
            for episode in range(len(SEEDS)):
                try:
                    first, again = (player.utter(stimuli.copy(), meanings.copy(), episode) for _ in range(2))
                except IncompatibleError as refusal:
                    raise NotApplicable(first_line(refusal)) from refusal
                require(np.array_equal(first, again), f"The same stimuli have other messages the second time ({name}).")
                _require_tokens(first, len(stimuli), settings)

        for name, settings in self.games().items():
            asked, plain = self.play(settings, between=ask).actions, partial(self._actions, settings)
            what = f"After a call of `utter` the speaker acts differently ({name}); `utter` must not change its state"
            require_same_actions(asked, self.episodes(settings).actions, what, plain)


@dataclass(eq=False)
class PlayedEpisodes:
    """A player's actions and observations in some episodes.

    Attributes:
        actions: the part of the player's action at every step that has an effect; see `counted`.
        seen: the player's observation at every step.
        illegal: number of the player's illegal actions.
        changed: fields of the observations that the player changed.
    """

    actions: list[Wholes] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    illegal: int = 0
    changed: set[str] = field(default_factory=set)


def counted(action: Action, seen: Seen, settings: GameSettings, role: str) -> Wholes:
    """Return the part of an action with an effect: tokens where a message is legal, decisions where a decision is due.

    Returns:
        Whole numbers [B, L], or for a listener [B, 1 + L] with the decision first; 0 where the action has no effect.
    """
    rows = len(seen.over)
    message = np.zeros((rows, settings.length), dtype=np.int64) if action.message is None else action.message
    found: Wholes = regular(np.asarray(message)) * (seen.may_speak & ~seen.over)[:, None]
    if role == SPEAKER:
        return found
    decision = np.zeros(rows, dtype=np.int64) if action.decision is None else np.asarray(action.decision)
    return np.concatenate([(decision * (seen.may_decide & ~seen.over))[:, None], found], axis=1)


def _begun(settings: GameSettings, seeds: Iterable[int], autoreset: bool = False) -> BatchedGame:
    numbers = list(seeds)
    game = BatchedGame(settings, episodes=len(numbers), autoreset=autoreset)
    game.reset(seeds=numbers)
    return game


def _step(game: BatchedGame, role: str, action: Action, partners: Action) -> None:
    speaks, listens = (action, partners) if role == SPEAKER else (partners, action)
    game.step(speaks.message, listens.decision, listens.message)


def _differing(one: Seen, other: Seen) -> set[str]:
    return {f.name for f in fields(Seen) if not np.array_equal(getattr(one, f.name), getattr(other, f.name))}


def require_same_actions(
    found: Sequence[Wholes], expected: Sequence[Wholes], what: str, again: Callable[[], Sequence[Wholes]]
) -> None:
    """Fail the check unless two sequences of actions are the same.

    Args:
        found: the actions to check.
        expected: the correct actions.
        what: the failure as text; the first step that differs is added.
        again: function that plays `expected` again. It detects a player that is not deterministic, which only the check
            `deterministic` reports.
    """
    first = _first_difference(found, expected)
    if first is None:
        return
    if any(_first_difference(again(), expected) is not None for _ in range(REPLAYS)):
        raise NotApplicable("the player is not deterministic, as the check 'deterministic' reports")
    raise CheckFailure(f"{what}. The first difference is at step {first}.")


def _first_difference(found: Sequence[Wholes], expected: Sequence[Wholes]) -> int | None:
    pairs = enumerate(zip(found, expected, strict=True))
    return next((step for step, (one, other) in pairs if not np.array_equal(one, other)), None)


def _require_tokens(found: Wholes, count: int, settings: GameSettings) -> None:
    tokens = np.asarray(found)
    whole = tokens.ndim == 2 and len(tokens) == count and tokens.dtype.kind in "iu"
    needed = f"`utter` must return whole numbers [{count}, tokens] for {count} stimuli"
    require(whole, f"{needed}, not {tokens.dtype} of shape {tokens.shape}.")
    if tokens.size:
        least, most = tokens.min(), tokens.max()
        sentence = f"Tokens must be 0..{settings.vocab_size}; `utter` returned {least} to {most}."
        require(least >= 0 and most <= settings.vocab_size, sentence)


# -- checks of text models of S2B --------------------------------------------------------------------------------------


SMALL = GameSettings(dimensions=2, least=2, most=2, listener_messages=True)
SEED = 3


@dataclass(frozen=True)
class TextModelCase(Case):
    """A text model under test."""

    def make(self) -> TextModel:
        """Create the model.

        Raises:
            NotApplicable: the model needs more than its name, for example a server.
        """
        try:
            return made_of(self.entry, "", TextSettings())
        except InvalidSettingError as refusal:
            raise NotApplicable(f"the model needs more than its name: {first_line(refusal)}") from refusal

    def reading(self) -> TextModel:
        """Create the model, if it only reads prompts.

        Raises:
            NotApplicable: the model gets the game.
        """
        made = self.make()
        if made.privileged:
            raise NotApplicable("the model is privileged: it gets the game")
        return made

    def requests(self) -> Sequence[Question]:
        """Return requests of S2B, or questions about a language in context if the model answers only these."""
        questions = questions_in_context()
        try:
            answers(self.reading(), requests_of_a_game()[:1])
        except Exception:
            with contextlib.suppress(Exception):
                answers(self.reading(), questions[:1])
                return questions
        return requests_of_a_game()

    def use(self) -> None:
        """Answer requests."""
        answers(self.reading(), self.requests())

    def check_answers_every_request(self) -> str:
        """Every request of a batch gets one reply: of S2B, a TextReply with the answer's text and its parsed parts."""
        requests = self.requests()
        replies = answers(self.reading(), requests)
        for reply in replies:
            try:
                msgspec.convert(asdict(reply), type(reply))
            except msgspec.ValidationError as error:
                raise CheckFailure(f"A {type(reply).__name__} has a value of the wrong type: {error}.") from error
        return f"{sum(map(_valid, requests, replies))} of {len(requests)} answers are valid"

    def check_keeps_nothing(self) -> None:
        """A request gets the same answer alone, in a batch, and after others: answers can be cached."""
        requests = self.requests()
        model = self.reading()
        together = answers(model, requests)
        if answers(self.make(), requests) != together:
            raise NotApplicable("two models with the same settings answer differently, so answers cannot be compared")
        for place in (0, len(requests) // 2, len(requests) - 1):
            (alone,) = answers(self.make(), [requests[place]])
            (after,) = answers(model, [requests[place]])
            require(alone == together[place], f"Request {place} is answered differently alone and in a batch.")
            require(after == together[place], f"Request {place} is answered differently after others.")

    def check_identity(self) -> None:
        """`identity` is JSON, and equal for two models with the same settings."""
        found = [json.dumps(self.make().identity(), sort_keys=True) for _ in range(2)]
        require(found[0] == found[1], f"`identity` is first {found[0]} and then {found[1]}.")

    def check_plays(self) -> str:
        """As a listener, the model plays episodes to the end."""
        if not self.make().privileged and not isinstance(self.requests()[0], TextRequest):
            raise NotApplicable("the model answers questions about languages only")
        listener = TextListener(self.make())
        found = evaluate("posdis", listener, SMALL, episodes=2, seeds=[SEED])
        require(not found.scores.illegal[:, 1].any(), "Some actions are illegal.")
        counts = listener.tallies[0].counts
        return f"{counts['invalid'].sum()} of {counts['asked'].sum()} answers are invalid"


def requests_of_a_game() -> list[TextRequest]:
    """Return the requests of one episode, for decisions and for messages."""
    found: list[TextRequest] = []
    evaluate("posdis", TextListener(DraftModel(), asked=found.append), SMALL, episodes=1, seeds=[SEED])
    return found


def questions_in_context() -> list[Question]:
    """Return questions about meanings of a language, with examples."""
    own = ContextSettings(model="", meanings="2x3", word_length=2, held_out=3)
    shown, _ = own.shown(SEED, make_language("concat", own.space, own.vocab_size, own.word_length, SEED))
    each = [replace(shown, queries=query[None]) for query in shown.queries]
    return [Question(own.sheet.prompt(one), data=one) for one in each]


def answers(model: TextModel, requests: Sequence[Question]) -> list[Any]:
    """Return the reply to each request; fail unless each request has a reply."""
    found = list(model.answer(requests))
    places = sorted(place for place, _ in found)
    require(
        places == list(range(len(requests))),
        f"{len(requests)} requests are answered at places {places}; yield each place once.",
    )
    kind = TextReply if isinstance(requests[0], TextRequest) else Answer
    wrong = {type(reply).__name__ for _, reply in found if not isinstance(reply, kind)}
    name = "icy.s2b.TextReply" if kind is TextReply else "icy.text.interface.Answer"
    require(not wrong, f"The model returns {', '.join(sorted(wrong))}; return an {name}.")
    return [reply for _, reply in sorted(found, key=lambda one: one[0])]


def _valid(request: Question, reply: Any) -> bool:
    if not isinstance(request, TextRequest):
        return request.data.sheet.read(reply)[0] is not None
    decides = "decision" not in request.choices or valid_decision(request, reply.decision)
    return decides and ("message" not in request.choices or valid_message(request, reply.message))


# -- checks of simulated players of the study --------------------------------------------------------------------------


SHORT = {"examples": 14, "held_out_at": (5, 9, 13), "interval": 3}  # games of checks


@dataclass(frozen=True)
class StudyPlayerCase(Case):
    """A simulated player under test.

    Attributes:
        seed: seed of the simulated persons.
    """

    seed: int = field(default=0, kw_only=True)

    def make(self) -> StudyPlayer:
        """Make the player."""
        made: StudyPlayer = self.entry.create()
        require(isinstance(made, StudyPlayer), f"The factory made a {type(made).__name__}, not a StudyPlayer.")
        return made

    def game(self, dataset: str = "synth", preset: str = "clean") -> StudyGame:
        """Return a short game."""
        settings = StudyGameSettings.of(preset, dataset=dataset, grammar="perm", **SHORT)
        return StudyGame(settings, instance_of(settings, self.seed), self.seed)

    def require_same_game(self, player: StudyPlayer, what: str) -> None:
        """Fail the check unless a player plays a game like a new player."""
        first, again = (play(self.game(), one, self.seed) for one in (self.make(), player))
        require(first.events == again.events, what)

    def use(self) -> None:
        """Play a game."""
        play(self.game(), self.make(), self.seed)

    def check_answers(self) -> None:
        """Every answer can be sent: text of letters a to z, not empty and not too long."""
        for dataset, preset in product(("synth", "eng"), ("clean", "published")):
            try:
                play(self.game(dataset, preset), self.make(), self.seed)
            except InvalidSettingError as error:
                raise CheckFailure(str(error)) from error

    def check_same_seed_same_game(self) -> None:
        """A seed gives the same game every time."""
        self.require_same_game(self.make(), "Two new players of one seed play differently.")

    def check_begin_forgets(self) -> None:
        """A player that has played before plays like a new player."""
        used = self.make()
        play(self.game(preset="published"), used, self.seed + 1)
        self.require_same_game(used, "After another game it plays differently; `begin` must forget earlier games.")

    def check_pickles(self) -> None:
        """The player can be sent to another process, and plays the same there."""
        sent: StudyPlayer = pickle.loads(dumps(self.make()))
        self.require_same_game(sent, "A player that was sent to another process plays differently.")
