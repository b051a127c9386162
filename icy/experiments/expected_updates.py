"""Expected updates of replicates: the range of the updates that similar records needed."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from icy.config.protocols import BASELINE, SCRATCH
from icy.languages.meanings import MeaningSpace
from icy.records.load import ATLAS_FILE
from icy.records.long_table import OLD_COLUMNS
from icy.records.record import Record
from icy.records.store import Store
from icy.training.chain_settings import ChainSettings
from icy.training.job import Job, Replicate
from icy.training.pair_settings import LEARNING_ORDER, EndToEndSettings
from icy.training.probe_settings import ProbeSettings

from .plan import Plan, Row

if TYPE_CHECKING:
    import pandas as pd

QUANTILES = 0.05, 0.95  # of the updates of similar records
SIMILAR = 2.0  # largest ratio of the sizes of similar meaning spaces
LEAST_ERROR = 1e-3  # error rate at a target of 1, so that its logarithm is finite
SETTING = ["model", "hidden_size", "meanings", "word_length", "vocab_size"]
COLUMNS = [*SETTING, "job_kind", "role", "representation", "protocol", "target", "grammar", "steps"]


class Updates(NamedTuple):
    """Lowest and highest expected updates; `capped` if the highest is the maximum because no record is similar."""

    low: float
    high: float
    capped: bool = False


class ExpectedUpdates:
    """Expected updates of the replicates of a plan, from the results folder, the packs of the plan, and the atlas.

    Args:
        plan: the plan.
        records: records to use in place of the results folder; by default it is read.
    """

    def __init__(self, plan: Plan, records: Iterable[Record] | None = None) -> None:
        import pandas as pd

        packed = (record for pack in plan.start for record in pack.records)
        saved = Store(plan.store.folder, warn=False).all_records() if records is None else records
        here = pd.DataFrame([*saved, *packed]).rename(columns=OLD_COLUMNS)
        here = here.reindex(columns=[*COLUMNS, "max_updates"])
        known = pd.concat([pd.read_parquet(ATLAS_FILE, columns=COLUMNS), here], ignore_index=True)
        self._known = known[known["steps"] > 0]
        self._similar = functools.cache(self._find_similar)

    def of_row(self, row: Row) -> dict[Replicate, Updates]:
        """Return the expected updates of each missing replicate of a row; infinite if there is no known maximum."""
        on_file = {seed: steps for seed, steps in row.baselines().items() if not isinstance(steps, str)}
        mean = fmean(on_file.values()) if on_file else None
        return {r: self._of(row.job, r.condition, on_file.get(r.seed, mean)) for r in row.missing}

    def _of(self, job: Job, grammar: str, baseline: float | None) -> Updates:
        length, most = job.length(baseline), job.most_updates(baseline)
        own = job.settings
        if isinstance(own, ProbeSettings):
            return self._of_probe(job, grammar, baseline)
        if isinstance(own, EndToEndSettings):
            tasks = [own.alone(side, own.pretrain_representation) for side in LEARNING_ORDER]
            game = self._limit(job, tasks, baseline)
            if grammar == SCRATCH or own.pretrained:
                return game
            # For both sides, as an update of one side takes about half the time of an update of the game.
            found = self._to_target(own.target, tasks, [grammar], own.training.max_steps)
            return Updates(game.low + found.low, game.high + found.high, game.capped or found.capped)
        if length is not None and job.limit_text() == "about":
            return Updates(length, length)
        if isinstance(own, ChainSettings):  # later languages are about as easy as concat
            found = self._to_target(own.target or 1.0, own.learners, (grammar, BASELINE), own.updates)
            return Updates(own.updates_with(found.low), own.updates_with(found.high), found.capped)
        alike = self._known[(self._known["job_kind"] == job.kind) & (self._known["grammar"] == grammar)]
        return _range(alike["steps"], math.inf if most is None else most, capped=alike.empty)

    def _of_probe(self, job: Job, grammar: str, baseline: float | None) -> Updates:
        own = job.settings
        if grammar == BASELINE and own.rules.max_updates is None:
            return self._to_target(own.rules.target, [own], [BASELINE], own.training.max_steps)
        limit = self._limit(job, [own], baseline)
        if job.limit_text() == "about":
            return limit
        found = self._to_target(own.rules.target, [own], [grammar], limit.high)
        return found._replace(low=min(limit.low, found.low))

    def _limit(self, job: Job, tasks: Sequence[ProbeSettings], baseline: float | None) -> Updates:
        """Return the range of the maximum updates of a grammar or a game, which depends on the updates of concat."""
        own = job.settings
        target = own.rules.target if isinstance(own, ProbeSettings) else own.target
        concat = self._to_target(target, tasks, [BASELINE], own.training.max_steps)
        if baseline is not None:
            concat = Updates(baseline, baseline)
        low, high = (job.length(steps) or 0 for steps in concat[:2])
        return Updates(low, high, concat.capped and low < high)

    def _to_target(
        self, target: float, tasks: Sequence[ProbeSettings], grammars: Sequence[str], most: float
    ) -> Updates:
        """Return the lowest and highest updates that any of the models and grammars needs to a target."""
        found = []
        for task in tasks:
            sizes = task.model, task.hidden, task.meanings, task.word_length, task.vocab_size
            for grammar in grammars:
                where = task.side, task.representation, sizes, grammar, target
                steps, near = self._similar(*where)
                found.append(_range(steps, most, capped=not near))
        return Updates(min(one.low for one in found), max(one.high for one in found), any(one.capped for one in found))

    def _find_similar(
        self, side: str, representation: str, sizes: tuple[object, ...], grammar: str, target: float
    ) -> tuple[pd.Series[float], bool]:
        """Return the updates of the most similar trainings to a target, and whether their spaces have similar sizes.

        The trainings are of the same model and sizes if there are any on file, else of spaces of similar size, else of
        all spaces; of these, of the same grammar; and of these, those with the nearest target.
        """
        known = self._known
        to_target = (known["protocol"] != "budget") | (known["grammar"] == BASELINE)
        every = known[(known["role"] == side) & (known["representation"] == representation) & to_target]
        every = every[every["target"].notna() & every["max_updates"].isna()]
        near = every[(every["meanings"].map(_size) / _size(sizes[2])).between(1 / SIMILAR, SIMILAR)]
        exact = near[(near[SETTING] == list(sizes)).all(axis=1)]
        found = next((records for records in (exact, near) if len(records)), every)
        same = found["grammar"] == grammar
        found = found[same if same.any() else ~same]
        # The error rate falls about exponentially with the updates.
        times = math.log(max(1 - target, LEAST_ERROR)) / np.log(np.maximum(1 - found["target"], LEAST_ERROR))
        distance = np.abs(np.log(times))
        return (found["steps"] * times)[distance == distance.min()], len(near) > 0


@functools.cache
def _size(space: object) -> int:
    """Return the number of values of all attributes of a meaning space."""
    parsed = MeaningSpace.parse(str(space))
    return sum(parsed.sizes) or parsed.attributes * parsed.values


def _range(steps: pd.Series[float], most: float, capped: bool) -> Updates:
    """Return the range of the updates of some records, at most `most`; `capped` if its upper end is `most`."""
    low, high = steps.quantile(QUANTILES) if len(steps) else (0.0, most)
    return Updates(float(min(low, most)), float(most if capped else min(high, most)), capped)
