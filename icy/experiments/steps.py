"""Expected updates of replicates, from results in the folder and in the atlas that comes with icy."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from statistics import median

from icy.config.protocols import BASELINE, SCRATCH
from icy.records.load import ATLAS_FILE
from icy.training.chains.chain_job import ChainJob
from icy.training.job import Replicate
from icy.training.pairs.pair_job import PairJob
from icy.training.probe_job import ProbeJob
from icy.training.tasks import Task

from .plan import Row

# Columns of the atlas by which results are similar to a replicate.
PLACE = ("model", "hidden_size", "meanings", "word_length", "vocab_size", "representation")
ACQUIRE = "acquire"
MIDDLE = 0.9  # between the targets of the atlas, 0.8 and 0.99
OTHERS = ""  # grammars that the atlas does not have
RATIO_TO_99 = 2.3  # updates to 0.99, relative to 0.8, where the atlas has only 0.8


def expected_updates(row: Row) -> dict[Replicate, float]:
    """Return the expected number of updates of each missing replicate of a row.

    For a language job these are the means of similar results: of the same model and setting if there are any, else of
    other models of the side in the setting, else of other settings. Baselines on file take precedence.
    """
    job, baseline = row.job, mean_baseline(row)
    if isinstance(job, ProbeJob):
        steps = _probe_updates(job, {r.condition for r in row.missing}, baseline)
        return {r: steps[r.condition] for r in row.missing}
    if isinstance(job, PairJob):
        return {r: _pair_updates(job, r.condition, baseline) for r in row.missing}
    if isinstance(job, ChainJob):
        return {r: _chain_updates(job, r.condition) for r in row.missing}
    return dict.fromkeys(row.missing, job.expected_steps(baseline))


def mean_baseline(row: Row) -> float | None:
    """Return the mean updates of the baselines on file, if there are any."""
    on_file = [steps for steps in row.baselines().values() if not isinstance(steps, str)]
    return sum(on_file) / len(on_file) if on_file else None


def _probe_updates(job: ProbeJob, grammars: Iterable[str], baseline: float | None) -> dict[str, float]:
    """Return the updates of each grammar of a probe, and of its baseline."""
    protocol, task = job.protocol, job.task
    if protocol.max_updates is not None:
        return dict.fromkeys({BASELINE, *grammars}, float(protocol.max_updates))
    usual = _steps(task, BASELINE, protocol.target)
    concat = min(job.settings.max_steps, usual) if baseline is None else baseline
    found = {BASELINE: concat}
    for grammar in grammars:
        if grammar != BASELINE:
            ratio = _steps(task, grammar, protocol.target) / usual if protocol.stops_at_target else protocol.cap
            found[grammar] = concat * min(protocol.cap, ratio)
    return found


def _pair_updates(job: PairJob, grammar: str, baseline: float | None) -> float:
    """Return the updates of a game and of pre-training. An update of a single side counts as half an update."""
    task, target = job.task, job.protocol.target
    sides = [job.task.alone(side, task.pretrain_representation) for side in ("sender", "receiver")]
    concat = max(_steps(side, BASELINE, target) for side in sides) if baseline is None else baseline
    game = float(job.length(round(concat)) or 0)
    if grammar == SCRATCH or job.pretrained:
        return game
    return game + sum(_steps(side, grammar, target) for side in sides) / 2


def _chain_updates(job: ChainJob, grammar: str) -> float:
    """Return the updates of a chain: the first language is the grammar; later languages are as easy as concat."""
    protocol = job.protocol
    if (target := protocol.target) is None:
        return job.updates_with(protocol.updates)
    first, later = (
        job.updates_with(sum(_steps(task, name, target) for task in map(job.side_task, job.sides)) / len(job.sides))
        for name in (grammar, BASELINE)
    )
    return (first + (protocol.generations - 1) * later) / protocol.generations


def _steps(task: Task, grammar: str, target: float) -> float:
    """Return the mean updates that similar models take to a target."""
    found = _similar(task.entry.qualified, task.hidden_size, str(task.space), task.word_length, task.vocab_size,
                     task.representation, task.side, target > MIDDLE)  # fmt: skip
    return found.get(grammar) or found[OTHERS]


@functools.cache
def _similar(
    model: str, hidden: int, meanings: str, length: int, vocab_size: int, representation: str, side: str, high: bool
) -> Mapping[str, float]:
    """Return mean updates by grammar."""
    setting = (model, hidden, meanings, length, vocab_size, representation)
    known = _atlas(side, ACQUIRE)
    for places in (range(len(PLACE)), range(2, len(PLACE)), (0, 5), (5,), ()):
        same = [means for place, means in known.items() if all(place[i] == setting[i] for i in places)]
        if same:
            break
    grammars = dict.fromkeys(grammar for means in same for grammar in means)
    found = {grammar: median(means[grammar] for means in same if grammar in means) for grammar in grammars}
    found[OTHERS] = sum(found.values()) / len(found)
    scale = _to_99(side, model) if high else 1
    return {grammar: scale * steps for grammar, steps in found.items()}


def _to_99(side: str, model: str) -> float:
    """Return the updates of concat to 0.99, relative to its updates to 0.8, for a model in the papers' space."""
    steps = {
        protocol: [
            means[BASELINE]
            for place, means in _atlas(side, protocol).items()
            if (place[0], place[2]) == (model, "5x10")
        ]
        for protocol in (ACQUIRE, "budget")
    }
    return steps["budget"][0] / steps[ACQUIRE][0] if all(steps.values()) else RATIO_TO_99


@functools.cache
def _atlas(side: str, protocol: str) -> Mapping[tuple[str, ...], Mapping[str, float]]:
    """Return the mean updates of each model in each setting of the atlas, by grammar. Keys are values of PLACE."""
    import pyarrow.parquet

    columns = [*PLACE, "grammar", "steps"]
    filters = [("side", "=", side), ("protocol", "=", protocol), ("settings", "=", "")]
    steps: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in pyarrow.parquet.read_table(ATLAS_FILE, columns=columns, filters=filters).to_pylist():
        place = tuple(row[name] for name in PLACE)
        steps.setdefault(place, {}).setdefault(row["grammar"], []).append(row["steps"])
    return {place: {g: sum(some) / len(some) for g, some in found.items()} for place, found in steps.items()}
