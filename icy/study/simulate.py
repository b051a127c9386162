"""Simulated games under the protocols "played", "converged" and "yoked"."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from icy.records.kinds import JobKind
from icy.training.job import Job, Outcome, Reading, Replicate, Report

from .game import Event, StudyGame, Trial
from .game.game import card_order
from .players.player import Exposure, Log, StudyPlayer, StudySeat, evidence, play, read_logs
from .rows import game_measures, item_measures, language_measures
from .study_job import CONVERGED, PLAYED, YOKED, StudyRequest, StudySettings, player_entry, rows

if TYPE_CHECKING:
    from .players.zoo import ZooPlayer


@dataclass(frozen=True)
class Result:
    """The result of one game.

    Attributes:
        trials: answered items.
        numbers: measures by name.
        updates: number of updates of a sender.
        cut: whether training reached the limit of updates before all cards were learned.
    """

    trials: tuple[Trial, ...]
    numbers: Mapping[str, float]
    updates: int = 0
    cut: bool = False


def train(job: Job, report: Report | None = None) -> Iterator[Outcome]:
    """Play the games of a job one after the other, and yield their outcomes; see Job.train."""
    settings: StudySettings = job.settings
    for replicate in job.replicates:
        began = time.perf_counter()
        game, result = result_of(settings, replicate)
        seconds = time.perf_counter() - began
        numbers = {**result.numbers, **language_measures(game)}
        outcome = Outcome(
            replicate,
            "cap" if result.cut else "steps",
            result.updates if settings.learns else len(result.trials),
            numbers.pop("accuracy"),
            [(t.example + 1, float(t.correct), t.cards, float(t.held_out is not None)) for t in result.trials],
            engine="",
            seconds=seconds,
            extra=numbers,
        )
        if report is not None:
            report([Reading(replicate, outcome.steps, outcome.accuracy)])
        yield outcome


def result_of(settings: StudySettings, replicate: Replicate) -> tuple[StudyGame, Result]:
    """Play one game, and return its rules and its result."""
    log = games_in(settings.yoked_to, settings.digest)[replicate.seed] if settings.digest else None
    game = log.game if log else settings.game_of(replicate.condition, replicate.seed)
    protocols = {PLAYED: _play, CONVERGED: _converge, YOKED: _play_yoked}
    return game, protocols[settings.protocol](settings, game, replicate)


@lru_cache(maxsize=2)
def games_in(path: str, digest: str) -> list[Log]:
    """Read the games of a file. They are cached under its path and digest."""
    return read_logs(path)


# -- protocols ---------------------------------------------------------------------------------------------------------


def _play(settings: StudySettings, game: StudyGame, replicate: Replicate) -> Result:
    """Play the game as people do (protocol "played")."""
    player = settings.make_player()
    state = play(game, player, game.seed).state
    return Result(state.trials, game_measures(game, state), _updates(player))


def _converge(settings: StudySettings, game: StudyGame, replicate: Replicate) -> Result:
    """Learn all cards, and then answer all items (protocol "converged")."""
    player = settings.make_player()
    player.begin(StudySeat(game.settings.content, game.seed))
    order = card_order(game.settings, game.instance, game.seed)
    cards = order[: game.settings.cap]
    values = game.settings.content.values
    for meaning in cards:
        player.learn(divmod(meaning, values), game.codes[meaning])
    cut = settings.learns and not cast("ZooPlayer", player).converge(settings.most)
    held_out = game.instance.held_out or order[game.settings.cap :]
    full = replace(game.new(), cards=len(cards), exposures=tuple(int(m in cards) for m in range(len(game.codes))))
    items = [game.item(full, example, m, None) for example, m in enumerate(cards)]
    items += [game.item(full, len(cards) + j, m, j) for j, m in enumerate(held_out)]
    trials = tuple(_answer_trial(trial, player, values) for trial in items)
    return Result(trials, item_measures(trials), _updates(player), cut)


def _play_yoked(settings: StudySettings, game: StudyGame, replicate: Replicate) -> Result:
    """Follow another player's game: see the same cards and answer the same items, in the same order ("yoked")."""
    player, values = settings.make_player(), game.settings.content.values
    player.begin(StudySeat(game.settings.content, game.seed))
    theirs: list[Trial] = []
    ours: list[Trial] = []
    if settings.digest:
        events: Sequence[Event] = games_in(settings.yoked_to, settings.digest)[replicate.seed].events
    else:
        events = play(game, player_entry(settings.yoked_to).create(), game.seed).events
    for step in evidence(game, events):
        if isinstance(step, Exposure):
            player.learn(step.item, step.code)
        else:
            theirs.append(step)
            ours.append(_answer_trial(step, player, values))
    numbers = item_measures(ours)
    pairs = [(a.correct, b.correct) for a, b in zip(ours, theirs, strict=True) if a.held_out is not None]
    agreement = {"agreement": sum(a == b for a, b in pairs) / len(pairs)} if pairs else {}
    return Result(tuple(ours), numbers | agreement, _updates(player))


def _answer_trial(trial: Trial, player: StudyPlayer, values: int) -> Trial:
    """Let the player answer an item, and return the graded item."""
    text = player.answer(divmod(trial.meaning, values))
    correct = text == trial.code
    return replace(trial, raw=text, text=text, correct=correct, points=(trial.cards - 1) * correct)


def _updates(player: Any) -> int:
    return int(getattr(player, "updates", 0))


STUDY = JobKind(
    "study",
    request=StudyRequest,
    settings=StudySettings,
    rows=rows,
    train=train,
    table="icy.analysis.tables.study:simulated_table",
    measures=(
        *("items", "letters", "distance", "first", "first_items", "answerable", "answerable_items"),
        *("answerable_twice", "answerable_twice_items", "trained", "trained_items", "agreement", "score"),
        *("cards", "views", "added", "identical", "distinct", "degenerate", "chance"),
    ),
    curve=("steps", "accuracy", "cards", "held_out"),
    noun="games",
    command="study simulate",
    counted="trials",
)
"""The kind of job."""
