"""Training of the rows of speed.py by icy: probes, pairs, games and learners of S2B, as their commands train them.

A row is named by its kind and its parts: "sender/FC2L", "pair/SOFT/FC2L+FC2L" (representation, sender and receiver),
"game/gs/4" (representation, concepts of a rule and maybe a preset), "agent/r2d2/LSTM" (learner and core).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.harness import Where

if TYPE_CHECKING:  # set the number of threads before importing PyTorch
    from icy.training.lockstep import Lockstep

GRAMMARS = ("concat", "perm", "proj", "pairsum", "rot", "shufdet", "hol")
SPACE = "5x10"
SEEDS = 5  # replicates of a pair or a game in a process, as in a row of published tables
FIRST_SEED = 123


class Course(NamedTuple):
    """A training in progress.

    Attributes:
        update: makes a number of updates of all replicates.
        replicates: number of replicates.
        engine: engine that trains them.
    """

    update: Callable[[int], Any]
    replicates: int
    engine: str


def is_probe(model: str) -> bool:
    """Return whether a row is a probe of one model."""
    return model.startswith(("sender/", "receiver/"))


def make_course(model: str, where: Where, place: int = 0, seeds: int = SEEDS) -> Course:
    """Return the training of a row in process `place`; processes have different replicates.

    Args:
        model: name of the row.
        where: device, engine, and stack of a probe.
        place: number of the process.
        seeds: replicates of a pair or a game.
    """
    kind, _, rest = model.partition("/")
    if kind == "agent":
        learner, core = rest.split("/")
        job = make_job("s2b", core=core, learner=learner, seeds=[FIRST_SEED + place])
        training = job.settings.training(FIRST_SEED + place)
        return Course(training.run, 1, "pytorch")
    if is_probe(model):
        stack: Lockstep = stack_of(model, where, place)
        return advancing(stack, where.stack)
    first = FIRST_SEED + place * seeds
    how = {"seeds": list(range(first, first + seeds)), "device": where.device, "engine": where.engine}
    stack = (pair_stack if kind == "pair" else game_stack)(*rest.split("/"), how)
    return advancing(stack, seeds)


def advancing(stack: Lockstep, replicates: int) -> Course:
    """Return a training that advances a stack."""
    course = stack.course
    return Course(lambda count: stack.advance(course.updates + count), replicates, course.learner.engine)


def stack_of(model: str, where: Where, place: int = 0) -> Lockstep:
    """Return the training of one process's stack of probes, which cycle through the grammars."""
    from icy.training.engine import Probes
    from icy.training.job import Replicate
    from icy.training.lockstep import Lockstep

    numbers = range(place * where.stack, (place + 1) * where.stack)
    replicates = tuple(Replicate(GRAMMARS[n % len(GRAMMARS)], n // len(GRAMMARS)) for n in numbers)
    some = sorted({r.condition for r in replicates})
    job = make_job("probe", model=model, grammar=some, meanings=SPACE, device=where.device, engine=where.engine)
    return Lockstep(Probes(replace(job, replicates=replicates, baselines={r.seed: 1 for r in replicates})))


def pair_stack(representation: str, pair: str, how: dict[str, Any]) -> Lockstep:
    """Return the training of pairs from scratch."""
    from icy.training.lockstep import Lockstep
    from icy.training.pair_game import PairGame, new_players

    sender, receiver = pair.split("+")
    job = make_job("e2e", sender=sender, receiver=receiver, representation=representation, meanings=SPACE, **how)
    return Lockstep(PairGame(job, [new_players(job, replicate) for replicate in job.replicates]))


def game_stack(*row_and_how: Any) -> Lockstep:
    """Return the training of the agents of a game in the world Thing."""
    from icy.games.game_stack import Games
    from icy.training.lockstep import Lockstep

    *row, how = row_and_how
    return Lockstep(Games(game_job(*row, **how)))


def game_job(representation: str, concepts: str, preset: str = "default", **how: Any) -> Any:
    """Return the job of a game, for icy and for the plain way."""
    return make_job("games", representation=representation, rule_length=int(concepts), preset=preset, **how)


def make_job(kind: str, **options: Any) -> Any:
    """Return the job of a row, as the command of its kind makes it."""
    from icy.experiments.plan import make_plan
    from icy.records.kinds import job_kind

    (row,) = make_plan(job_kind(kind).request_class().asked(**options)).rows
    return row.job
