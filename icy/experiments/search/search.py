"""`icy.search`: search a space of models for those with wanted biases.

Every trial is made of ordinary records in the results folder, so a search resumes, and never trains a replicate twice.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from filelock import FileLock, Timeout

from icy.config.options import SearchOptions
from icy.config.search_spec import SearchSpec
from icy.config.specs import spell_out
from icy.core.errors import StoreError
from icy.core.signals import NOTHING, interrupt_text, interrupt_with, interrupted_with
from icy.core.surroundings import standard_state
from icy.experiments.display import with_progress
from icy.experiments.plan import Plan, store_of
from icy.experiments.sweep_file import read_search as read_search
from icy.experiments.trackers.make import watching
from icy.experiments.user_models import Models, with_model_names
from icy.experiments.watcher import Watcher
from icy.records.long_table import write_tables

from .report import require_no_other_report, write_report
from .result import Finalist, SearchResult, SearchTrial, ranked
from .setup import SearchSetup, set_up
from .space import HIDDEN
from .trials import Measured, Measuring, Trials, open_trials

LOCK = "search.lock"


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
        **options: the other fields of SearchSpec.

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
    spec = with_model_names(SearchSpec.asked(**given), "model")
    return run_search(set_up(spec), lambda: watching(with_progress(watcher, progress), spec.track, spec.out))


spell_out(search, SearchSpec, SearchResult)


def first_plan(setup: SearchSetup) -> tuple[Plan, int]:
    """Return the plan of the first batch of trials, and the number of these trials, without training."""
    measuring = Measuring(setup)
    measuring.check()
    with open_trials(setup) as trials:
        points = trials.batch(min(setup.spec.batch, setup.trials))
    return measuring.plan(points, setup.rungs[0])[0], len(points)


def run_search(setup: SearchSetup, watcher: Callable[[], Watcher | None]) -> SearchResult:
    """Run a search, and write its report.

    Args:
        setup: the search.
        watcher: makes the callbacks of a run.
    """
    measuring, store = Measuring(setup, watcher), store_of(setup.spec)
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
    while batch := ended.batch(min(setup.spec.batch, setup.trials - len(found))):
        for one in measuring.measure(batch, setup.rungs[0]):
            if not one.whole:  # later trials depend on the values of this one
                if not found:
                    raise StoreError(f"The folder '{setup.spec.out}' has no results of this search.")
                return found
            ended.add(one)
            found.append(SearchTrial(len(found), (one,)))
    return found


def _halve(setup: SearchSetup, measuring: Measuring, trials: Sequence[SearchTrial]) -> list[SearchTrial]:
    """Measure the best share of the trials of each rung at the next (successive halving)."""
    found = list(trials)
    for rung, changes in enumerate(setup.rungs[1:], 1):
        own = [one for one in ranked(setup.objectives, found) if len(one.rungs) == rung]
        count = math.ceil(round(setup.spec.keep * len(own), 9))  # 0.28 * 25 is 7.000000000000001
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
    best = ranked(setup.objectives, trials)[: setup.spec.finalists]
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
    if setup.spec.larger:
        larger = measuring.measure_all(points, setup.again(larger=True))
    searched = [one.last if len(one.rungs) == len(setup.rungs) else None for one in best] + [None] * len(baselines)
    found = [Finalist(*one) for one in zip(searched, again, larger or [None] * len(points), strict=False)]
    return found[: len(best)], found[len(best) :]
