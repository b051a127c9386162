"""`icy.search`: search a space of models for those with wanted biases.

Optuna's samplers draw the points of trials, and runs of ordinary jobs measure these. A point depends only on the trials
of earlier batches and on the number of the trial: every draw has a sampler of its own, and its seed comes from the seed
of the search and from the number. So a search that was stopped has the same trials when it continues, and finds their
records in the results folder.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

from filelock import FileLock, Timeout

from icy.config.options import SearchOptions
from icy.config.requests import RETRIES, spell_out
from icy.core.errors import IncompatibleError, InvalidSettingError, PluginError, StoreError, what_and_where
from icy.core.processes import NOTHING, interrupt_text, interrupt_with, interrupted_with
from icy.core.streams import stream_key
from icy.core.surroundings import standard_state
from icy.core.types import Fields
from icy.experiments.display import callbacks_of
from icy.experiments.plan import Plan, Row, plan_rows, planned, store_of
from icy.experiments.progress import Watcher
from icy.experiments.requests import SearchRequest
from icy.experiments.run import require_engine, run_plan
from icy.experiments.sweep_file import read_search as read_search
from icy.experiments.user_models import Models, with_model_names
from icy.records.long_table import write_tables
from icy.records.record import Record

from .objectives import Value
from .report import require_no_other_report, write_report
from .result import Finalist, Measured, SearchResult, SearchTrial, ranked
from .setup import HIDDEN, Point, SearchSetup, set_up

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.study import Study

LOCK = "search.lock"
DATABASE = "search.sqlite"  # the trials, for Optuna's dashboard
STARTUP = 10  # trials at random before the model of TPE
CANDIDATES = 24  # values that TPE compares in each dimension; half of them at each redraw, as the best is often taken
REDRAWS = 50  # draws of a point that no trial has, before any free point is taken
SEEDS = 2**31  # seeds of Optuna's samplers are below
SOME = 8  # points that show before the training whether settings are accepted


@interrupted_with(NOTHING)
@standard_state()
def search(
    model: Models = (),
    *,
    file: str | Path | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[SearchOptions],
) -> SearchResult:
    """Search a space of models for those with wanted biases.

    It needs the extra `search`. The same call continues an interrupted search with the same trials.

    Args:
        model: names or wildcards of models: the search chooses one. Or a single model: the search chooses its options.
            Or a class or function that makes a model.
        file: a search in TOML or YAML; the other arguments override its options.
        watcher: callbacks that observe each run.
        progress: whether to show the progress of each run; see `icy.probe`.
        **options: the other fields of SearchRequest.

    Returns:
        The trials, and the finalists with their second measurement. The report is in search.md of the results folder,
        and the best model in winner.py.

    Raises:
        IcyError: invalid arguments, such as an unknown name, or a folder that cannot be written.
        KeyboardInterrupt: at Ctrl-C. Finished replicates are kept. If it is not caught, the script ends with a sentence
            instead of a traceback.

    Example:
        >>> import icy, tempfile
        >>> result = icy.search(["sender/FC1L", "sender/FC2L"], minimize="ratio:perm", quick=True, seeds=1, finalists=0,
        ...                     workers=1, out=tempfile.mkdtemp())
        >>> sorted(trial.name for trial in result.trials)
        ['FC1L', 'FC2L']
    """
    given = {**(read_search(file) if file is not None else {}), **({"model": model} if model else {}), **options}
    request = with_model_names(SearchRequest.asked(**given), "model")
    return run_search(set_up(request), lambda: callbacks_of(request, watcher, progress))


spell_out(search, SearchRequest, SearchResult)


def first_plan(setup: SearchSetup) -> tuple[Plan, int]:
    """Return the plan of the first batch of trials, and the number of these trials, without training."""
    measuring = Measuring(setup)
    measuring.check()
    with open_trials(setup) as trials:
        points = trials.batch(min(setup.request.batch, setup.trials))
    return measuring.plan(points, setup.rungs[0])[0], len(points)


def run_search(setup: SearchSetup, watcher: Callable[[], Watcher | None]) -> SearchResult:
    """Run a search, and write its report.

    Args:
        setup: the search.
        watcher: makes the callbacks of a run.
    """
    measuring, store = Measuring(setup, watcher), store_of(setup.request)
    measuring.check()
    require_no_other_report(setup, store.folder)
    store.prepare()
    with _alone(store.folder):
        try:
            with open_trials(setup, store.folder) as ended:
                trials = _halve(setup, measuring, _first_rung(setup, measuring, ended))
                finalists, baselines = _again(setup, measuring, trials)
                importances = ended.importances()
            result = SearchResult(trials, finalists, baselines, importances, store.folder, setup=setup)
            return replace(result, paths=write_report(result))
        except KeyboardInterrupt as error:  # also while the trials of a later batch are planned
            if interrupt_text(error) not in ("", NOTHING):
                raise
            raise interrupt_with(f"finished trials are kept in {store.folder}") from None
        finally:
            if store.records():
                write_tables(store)  # once for all runs of the search


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of the searches in a folder.

    Raises:
        StoreError: another process runs a search in this folder.
    """
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout as error:
        raise StoreError(
            f"Another search runs in the folder '{folder}', and a search is one run: wait for its end, after which the "
            "same command continues it, give it more --workers, or give another folder (--out)."
        ) from error


def _first_rung(setup: SearchSetup, measuring: Measuring, ended: Trials) -> list[SearchTrial]:
    """Return all trials, measured at the first rung, batch by batch; with `rerun="never"` those with all records.

    Raises:
        StoreError: no trial has all records.
    """
    found: list[SearchTrial] = []
    while batch := ended.batch(min(setup.request.batch, setup.trials - len(found))):
        for one in measuring.measure(batch, setup.rungs[0]):
            if not one.whole:  # later trials depend on the values of this one
                if not found:
                    raise StoreError(f"The folder '{setup.request.out}' has no results of this search.")
                return found
            ended.add(one)
            found.append(SearchTrial(len(found), (one,)))
    return found


def _halve(setup: SearchSetup, measuring: Measuring, trials: Sequence[SearchTrial]) -> list[SearchTrial]:
    """Measure the best share of the trials of each rung at the next (successive halving)."""
    found = list(trials)
    for rung, changes in enumerate(setup.rungs[1:], 1):
        own = [one for one in ranked(setup.objectives, found) if len(one.rungs) == rung]
        count = math.ceil(round(setup.request.keep * len(own), 9))  # 0.28 * 25 is 7.000000000000001
        best = sorted(one.number for one in own[:count])
        measured = measuring.measure_all([found[number].last.point for number in best], changes)
        for number, one in zip(best, measured, strict=False):
            found[number] = replace(found[number], rungs=(*found[number].rungs, one))
    return found


def _again(
    setup: SearchSetup, measuring: Measuring, trials: Sequence[SearchTrial]
) -> tuple[list[Finalist], list[Finalist]]:
    """Measure the best trials and the baselines again, with new seeds and words; with `rerun="never"` from records.

    Baselines have the hidden size of the best trial, or their own.
    """
    best = ranked(setup.objectives, trials)[: setup.request.finalists]
    if not best:
        return [], []
    first = best[0].last.point
    size = {HIDDEN: first.hidden} if HIDDEN in first.params else {}
    baselines = [
        point if point.params else replace(point, hidden=first.hidden, params=size) for point in setup.baselines
    ]
    points = [*(one.last.point for one in best), *baselines]
    again = measuring.measure_all(points, setup.again())
    larger: Sequence[Measured | None] = []
    if setup.request.larger:
        larger = measuring.measure_all(points, setup.again(larger=True))
    searched = [one.last if len(one.rungs) == len(setup.rungs) else None for one in best] + [None] * len(baselines)
    found = [Finalist(*one) for one in zip(searched, again, larger or [None] * len(points), strict=False)]
    return found[: len(best)], found[len(best) :]


# -- points and measurements -------------------------------------------------------------------------------------------


class Trials:
    """The trials of a search that have ended, and the points of the next ones.

    Args:
        setup: the search.
        study: a study of Optuna without trials.
        shown: another one, which gets a copy of each trial.
    """

    def __init__(self, setup: SearchSetup, study: Study, shown: Study | None = None) -> None:
        from optuna.distributions import CategoricalDistribution

        self._setup, self._study, self._shown = setup, study, shown
        self._distributions = {name: CategoricalDistribution(v) for name, v in setup.space.values.items()}
        self._drawn: list[object] = []  # the identity of each drawn point

    def batch(self, count: int) -> list[Point]:
        """Return the points of the next trials; fewer than `count` if the space has no more points."""
        points = []
        for _ in range(count):
            if (point := self._draw()) is None:
                break
            self._drawn.append(self._setup.space.identity(point))
            points.append(point)
        return points

    def _draw(self) -> Point | None:
        """Return a point that no trial has; None if there is none."""
        space, key = self._setup.space, (self._setup.request.sampler_seed, "search", len(self._drawn))
        for attempt in range(REDRAWS):
            self._study.sampler = self._sampler(stream_key(*key, attempt) % SEEDS, max(CANDIDATES >> attempt, 1))
            point = space.point(self._study.ask(dict(self._distributions)).params)
            if space.identity(point) not in self._drawn:
                return point
        first = stream_key(*key) % space.size
        every = (space.nth((first + place) % space.size) for place in range(space.size))
        return next((point for point in every if space.identity(point) not in self._drawn), None)

    def _sampler(self, seed: int, candidates: int) -> BaseSampler:
        from optuna.samplers import RandomSampler, TPESampler

        if self._setup.request.sampler == "random":
            return RandomSampler(seed=seed)
        return TPESampler(
            seed=seed, n_startup_trials=STARTUP, n_ei_candidates=candidates, multivariate=False, constant_liar=False
        )

    def add(self, measured: Measured) -> None:
        """Add the next trial, which has ended."""
        from optuna.trial import TrialState, create_trial

        trial = create_trial(
            state=TrialState.COMPLETE if measured.known else TrialState.FAIL,
            values=[value.value for value in measured.values] if measured.known else None,
            params=dict(measured.point.params),
            distributions=dict(self._distributions),
            user_attrs={"model": measured.point.entry.qualified, "bounds": [value.bound for value in measured.values],
                        "problem": measured.problem},
        )  # fmt: skip
        for study in filter(None, (self._study, self._shown)):
            study.add_trial(trial)

    def importances(self) -> list[dict[str, float]]:
        """Return the importance of each dimension for each objective (fANOVA; Hutter et al. 2014), the largest first.

        A random forest is fitted to the values. An importance is the variance of the forest's mean over all other
        dimensions, as a share of the sum of these variances. It is empty for an objective with one value in all trials,
        and if fewer than two trials have values.
        """
        from optuna.importance import FanovaImportanceEvaluator, get_param_importances
        from optuna.trial import TrialState

        complete = self._study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
        found: list[dict[str, float]] = []
        for place in range(len(self._setup.objectives)):
            several = len({trial.values[place] for trial in complete}) > 1
            shares = several and get_param_importances(
                self._study,
                evaluator=FanovaImportanceEvaluator(seed=0),
                target=lambda trial, place=place: trial.values[place],  # type: ignore[misc]
            )
            found.append(dict(shares or {}))
        return found


@contextlib.contextmanager
def open_trials(setup: SearchSetup, folder: Path | None = None) -> Iterator[Trials]:
    """Open a search without trials, silence Optuna's messages, one per trial, and at the end close the database.

    Args:
        setup: the search.
        folder: results folder, where DATABASE gets a copy of each trial; None for no copy.

    Raises:
        StoreError: the database cannot be written.
    """
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    before, storage, shown = optuna.logging.get_verbosity(), None, None
    optuna.logging.set_verbosity(logging.WARNING)
    small, large = optuna.study.StudyDirection.MINIMIZE, optuna.study.StudyDirection.MAXIMIZE
    directions = [large if one.maximize else small for one in setup.objectives]
    try:
        if folder is not None:
            with contextlib.suppress(OSError):
                (folder / DATABASE).unlink()  # of an earlier run; its trials come again
            # "?", "%" and "{" in the name of a folder have a meaning in the URL, so that it does not hold the path.
            connect = partial(sqlite3.connect, folder / DATABASE, check_same_thread=False)
            storage = optuna.storages.RDBStorage(f"sqlite:///{DATABASE}", engine_kwargs={"creator": connect})
            shown = optuna.create_study(storage=storage, study_name=setup.name, directions=directions)
        yield Trials(setup, optuna.create_study(directions=directions), shown)
    except (optuna.exceptions.OptunaError, SQLAlchemyError) as error:
        raise StoreError(
            f"'{folder}/{DATABASE}' cannot be written: {what_and_where(error)}. Close the programs that use this file, "
            "and run the same search again, which keeps its finished trials."
        ) from error
    finally:
        optuna.logging.set_verbosity(before)
        if storage is not None:
            storage.remove_session()
            storage.engine.dispose()


class Measuring:
    """Measures points of a search.

    Args:
        setup: the search.
        watcher: makes the callbacks of a run.
    """

    def __init__(self, setup: SearchSetup, watcher: Callable[[], Watcher | None] = lambda: None) -> None:
        self._setup, self._watcher = setup, watcher
        self._started = False  # whether the records to start from are in the folder

    def plan(self, points: Sequence[Point], changes: Fields) -> tuple[Plan, list[list[Row] | Exception]]:
        """Return the plan of some points, and the rows of each, or the error if the model refuses its options.

        Args:
            points: the points.
            changes: settings that replace settings of the search.
        """
        found = [self._rows_of(point, changes) for point in points]
        rows = {row.job.row: row for own in found if not isinstance(own, Exception) for row in own}
        return planned(self._setup.request, list(rows.values())), found

    def check(self) -> None:
        """Raise if the settings of a rung or of the second measurement are not accepted, before any training.

        Raises:
            IcyError: models refuse them: some points of the space, and at later rungs all baselines.
        """
        setup, size = self._setup, self._setup.space.size
        some = [setup.space.nth(place * size // min(size, SOME)) for place in range(min(size, SOME))]
        later = [*setup.rungs[1:], setup.again(), *([setup.again(larger=True)] if setup.request.larger else [])]
        for points, changes in [(some, setup.rungs[0]), *(([*some, *setup.baselines], one) for one in later)]:
            found = (self._rows_of(point, changes) for point in points)
            refusals = [*takewhile(lambda rows: isinstance(rows, Exception), found)]
            if len(refusals) == len(points):
                raise cast(Exception, refusals[0])

    def _rows_of(self, point: Point, changes: Fields) -> list[Row] | Exception:
        try:
            rows = [row for request in self._setup.requests_of(point, changes) for row in plan_rows(request)]
            require_engine(rows)
        except (InvalidSettingError, IncompatibleError, PluginError) as error:  # the point cannot be trained
            return error
        return rows

    def measure(self, points: Sequence[Point], changes: Fields) -> list[Measured]:
        """Train missing replicates of some points, and return their values; arguments as for `plan`.

        The caller writes the tables of the folder.
        """
        plan, rows = self.plan(points, changes)
        plan, self._started = replace(plan, start=() if self._started else plan.start), True
        result = run_plan(plan, self._watcher(), RETRIES, tables=False)
        records = {record["key"]: record for record in result.records}
        return [self._measured(point, own, records) for point, own in zip(points, rows, strict=True)]

    def measure_all(self, points: Sequence[Point], changes: Fields) -> list[Measured]:
        """Return the values as `measure` does; no values if `rerun="never"` leaves a replicate without a record."""
        found = self.measure(points, changes) if points else []
        return found if all(one.whole for one in found) else []

    def _measured(self, point: Point, rows: list[Row] | Exception, records: Mapping[str, Record]) -> Measured:
        if isinstance(rows, Exception):
            return Measured(point, (Value(math.nan),) * len(self._setup.objectives), str(rows))
        keys = [row.job.key(replicate) for row in rows for replicate in row.job.replicates]
        own = tuple(records[key] for key in keys if key in records)
        whole = len(own) == len(keys)  # a sum over a part of the replicates would be too small
        values = tuple(one.value(own if whole else (), self._setup.people) for one in self._setup.objectives)
        failures = [str(record["error"]) for record in own if record["failed"]]
        problem = "" if all(value.known for value in values) else (failures or ["a replicate is not on file"])[0]
        return Measured(point, values, problem, rows[0].job.parameters.get("true", 0), whole, own)
