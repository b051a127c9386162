"""Checks of speakers and listeners of S2B. The first line of each docstring is the claim that the check tests.

Players play on NumPy arrays, so the checks use no other arrays.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from icy.core.errors import IncompatibleError
from icy.core.registry import LISTENER, SPEAKER, Entry
from icy.s2b.channel import regular
from icy.s2b.episode_streams import EpisodeStreams, Wholes
from icy.s2b.game import BatchedGame
from icy.s2b.players.interface import Action, Player, Seat, seated
from icy.s2b.settings import GameSettings
from icy.s2b.turn import Seen

from .cases import (
    CheckFailure,
    NotApplicable,
    check_made_by_name,
    first_line,
    named,
    require,
    same_random_state,
)

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
class PlayerCase:
    """A speaker or listener under test.

    Attributes:
        entry: the player's registry entry; its kind is the role.
        registered: whether the registry knows the player.
        seats: settings of each tried game by name, or None if the player refused the game; see `accepted`.
        played: records of the usual episodes, by settings of the game; see `episodes`.
    """

    entry: Entry
    registered: bool = True
    seats: dict[str, GameSettings | None] = field(default_factory=dict, init=False, repr=False, compare=False)
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
        for name in names:
            if name in self.seats:
                continue
            settings = GameSettings.of(**{**ROOMY, **GAMES[name]})
            try:
                seated(self.make(), self.role, _begun(settings, SEEDS))
            except IncompatibleError:
                self.seats[name] = None
            else:
                self.seats[name] = settings
        return {name: found for name in names if (found := self.seats[name]) is not None}

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
            self.played[settings] = play(self, settings)
        return self.played[settings]


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


def play(
    case: PlayerCase,
    settings: GameSettings,
    seeds: Iterable[int] = SEEDS,
    player: Player | None = None,
    between: Callable[[BatchedGame, Player], None] | None = None,
) -> PlayedEpisodes:
    """Play an episode of every seed to its end.

    Args:
        case: the player under test.
        settings: settings of the game.
        seeds: seeds of the episodes.
        player: a player that has played before; by default a new player.
        between: called with the game and the player before each step.
    """
    game, record = _begun(settings, seeds), PlayedEpisodes()
    mine, partner = seated(player or case.make(), case.role, game), case.partner(game)
    while not game.turn.done.all():
        if between is not None:
            between(game, mine)
        seen = game.turn.seen_by(case.role)
        record.seen.append(copy.deepcopy(seen))
        action = mine.act(seen)
        record.changed |= _differing(seen, record.seen[-1])
        _step(game, case.role, action, partner.act(game.turn.seen_by(case.other)))
        record.actions.append(counted(action, record.seen[-1], settings, case.role))
    record.illegal = int(game.illegal[case.role].sum())
    return record


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


def check_plays_every_game(case: PlayerCase) -> str:
    """Games of every kind, with K = 0 and K = 3, are played to the end, or refused with an IncompatibleError."""
    accepted = case.accepted()
    refused = [name for name in GAMES if name not in accepted]
    require(accepted, f"The player refuses every game: {', '.join(refused)}.")
    for name, settings in accepted.items():
        try:
            case.episodes(settings)
        except IncompatibleError as error:
            raise CheckFailure(
                f"The game '{name}' is refused while it is played: {first_line(error)}; refuse it in `begin`."
            ) from error
        except Exception as error:
            error.add_note(f"The game was '{name}'.")
            raise
    return f"refuses {', '.join(refused)}" if refused else "plays all"


def check_legal_actions(case: PlayerCase) -> None:
    """Every action is legal: existing tokens and decisions, and only where `may_speak` and `may_decide` allow them."""
    for name, settings in case.accepted().items():
        try:
            illegal = case.episodes(settings).illegal
        except Exception:  # reported by the check 'plays_every_game'
            continue
        require(
            not illegal,
            f"{illegal} actions are illegal in the game '{name}'; give tokens 0..V only where `seen.may_speak`, "
            "decisions below `settings.decisions` only where `seen.may_decide`, and 0 elsewhere.",
        )


def check_deterministic(case: PlayerCase) -> None:
    """The same seeds give the same actions: a player's draws come from `seat.streams`."""
    for name, settings in case.games().items():
        step = _first_difference(play(case, settings).actions, case.episodes(settings).actions)
        require(
            step is None,
            f"Two players with the same seeds act differently at step {step} ({name}); draw from `seat.streams`.",
        )


def check_random_state_untouched(case: PlayerCase) -> None:
    """Playing does not change the global random state of torch, NumPy and Python."""
    for settings in case.games().values():
        with same_random_state("The player"):
            play(case, settings)


def check_alone_and_in_a_batch(case: PlayerCase) -> None:
    """An episode is the same alone and in a batch."""
    for name, settings in case.games().items():
        together = case.episodes(settings).actions
        for i, seed in enumerate(SEEDS):
            alone = partial(_actions, case, settings, [seed])
            expected = alone()
            mine = [actions[i : i + 1] for actions in together[: len(expected)]]
            what = f"An episode is different alone and in a batch ({name}); keep the state of episodes separate"
            require_same_actions(mine, expected, what, alone)


def check_begins_anew(case: PlayerCase) -> None:
    """A player that has played before acts like a new player: `begin` forgets everything."""
    for name, settings in case.games().items():
        player, new = case.make(), partial(_actions, case, settings)
        play(case, settings, OTHER_SEEDS, player)
        what = f"A player that has played before acts differently from a new player ({name}); forget all in `begin`"
        again = play(case, settings, player=player).actions
        require_same_actions(again, case.episodes(settings).actions, what, new)


def check_forgets_between_episodes(case: PlayerCase) -> None:
    """If the next episode begins at once (`seen.fresh`), the player forgets the previous one."""
    for name, settings in case.games().items():
        usual = partial(_second_episodes, case, settings, 0)
        what = f"A partner's actions in one episode change the next episode ({name}); forget where `seen.fresh`"
        require_same_actions(_second_episodes(case, settings, 1), usual(), what, usual)


def _actions(case: PlayerCase, settings: GameSettings, seeds: Iterable[int] = SEEDS) -> list[Wholes]:
    return play(case, settings, seeds).actions


def _second_episodes(case: PlayerCase, settings: GameSettings, variant: int) -> list[Wholes]:
    """Return the actions in the second episode of every seed, after a first episode with a variant of the partner."""
    game = _begun(settings, SEEDS, autoreset=True)
    actions: list[Wholes] = []
    player = seated(case.make(), case.role, game)
    streams = EpisodeStreams.of_seeds(SEEDS).within("testing", "partner")
    while (game.episode_number < 2).any():
        number, seen = game.episode_number, copy.deepcopy(game.turn.seen_by(case.role))
        action = player.act(game.turn.seen_by(case.role))
        _step(game, case.role, action, _scripted(settings, streams.nth(np.where(number, 2, variant)), len(actions)))
        actions.append(counted(action, seen, settings, case.role) * (number == 1)[:, None])
    return actions


def _scripted(settings: GameSettings, streams: EpisodeStreams, step: int) -> Action:
    """Return a partner's action, which depends only on its stream. An illegal action counts as no action."""
    message = streams.integers("say", settings.vocab_size + 1, (settings.length,), step * settings.length)
    return Action(message, streams.integers("decide", settings.decisions, (1,), step)[:, 0])


def check_sees_only_observations(case: PlayerCase) -> None:
    """Given the same observations without a game or a partner, the player acts the same: it reads nothing hidden."""
    if case.make().privileged:
        raise NotApplicable("the player is privileged: it gets the game")
    for name, settings in case.games().items():
        record, player = case.episodes(settings), case.make()
        player.begin(Seat(settings, len(SEEDS), EpisodeStreams.of_seeds(SEEDS).within("player", case.role)))
        found = [counted(player.act(copy.deepcopy(s)), s, settings, case.role) for s in record.seen]
        what = f"With observations alone, the player acts differently ({name}): it reads hidden facts"
        require_same_actions(found, record.actions, what, partial(_actions, case, settings))


def check_observations_unchanged(case: PlayerCase) -> None:
    """The player does not change its observations."""
    for name, settings in case.games().items():
        changed = ", ".join(sorted(case.episodes(settings).changed))
        require(not changed, f"The player changed {changed} of its observations in place ({name}); work on a copy.")


def check_utters(case: PlayerCase) -> None:
    """`utter` returns tokens [n, length], the same for the same stimuli, and a call does not change later actions."""
    if case.role != SPEAKER:
        raise NotApplicable("only speakers have `utter`")

    def ask(game: BatchedGame, player: Player) -> None:
        stimuli, meanings = game.turn.speaker.stimulus[:, 0], game.latents(SPEAKER)[:, 0]
        for episode in range(len(SEEDS)):
            first, again = (_uttered(player, stimuli.copy(), meanings.copy(), episode) for _ in range(2))
            require(np.array_equal(first, again), f"The same stimuli have other messages the second time ({name}).")
            _require_tokens(first, len(stimuli), settings)

    for name, settings in case.games().items():
        asked, plain = play(case, settings, between=ask).actions, partial(_actions, case, settings)
        what = f"After a call of `utter` the speaker acts differently ({name}); `utter` must not change its state"
        require_same_actions(asked, case.episodes(settings).actions, what, plain)


def _uttered(player: Player, stimuli: NDArray[np.float32], meanings: Wholes, episode: int) -> Wholes:
    try:
        return player.utter(stimuli, meanings, episode)
    except IncompatibleError as refusal:
        raise NotApplicable(first_line(refusal)) from refusal


def _require_tokens(found: Wholes, count: int, settings: GameSettings) -> None:
    tokens = np.asarray(found)
    require(
        tokens.ndim == 2 and len(tokens) == count and tokens.dtype.kind in "iu",
        f"`utter` must return whole numbers [{count}, tokens] for {count} stimuli, not {tokens.dtype} of shape "
        f"{tokens.shape}.",
    )
    require(
        tokens.min(initial=0) >= 0 and tokens.max(initial=0) <= settings.vocab_size,
        f"Tokens must be 0..{settings.vocab_size}; `utter` returned {tokens.min()} to {tokens.max()}.",
    )


PLAYER_CHECKS = named(
    check_made_by_name,
    check_plays_every_game,
    check_legal_actions,
    check_deterministic,
    check_random_state_untouched,
    check_alone_and_in_a_batch,
    check_begins_anew,
    check_forgets_between_episodes,
    check_sees_only_observations,
    check_observations_unchanged,
    check_utters,
)
