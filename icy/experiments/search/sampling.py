"""The trials of a search in Optuna: which point each has, and its values, in a SQLite file of the results folder.

The point of a trial depends only on the trials of earlier batches and on the number of the trial: every trial has a
separate sampler, and its seed comes from the seed of the search and from the number. So a search that was stopped
continues with the same trials. The file holds only trials that have ended.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.errors import InvalidSettingError, StoreError
from icy.core.streams import stream_key
from icy.core.types import Choices, Fields

from .setup import SearchSetup

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.storages import RDBStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial

INSTALL = 'A search needs the package optuna: pip install "icy-toolkit[search]". Nothing was trained.'
DATABASE, PAGE = "search.sqlite", "search.md"  # the trials, and the report
REPORTED = "reported"  # attribute of a search that has written its report
MODEL = "model"  # attribute of a trial with the name of its model
STARTUP = 10  # trials at random before the model of TPE
CANDIDATES = 24  # values that TPE compares in each dimension; half of them at each redraw, as the best is often taken
REDRAWS = 50  # draws of a point that no trial has, before any free point is taken
SEEDS = 2**31  # seeds of Optuna's samplers are below


def require_optuna() -> None:
    """Raise if Optuna is not installed.

    Raises:
        InvalidSettingError: it is not.
    """
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise InvalidSettingError(INSTALL) from error


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's own messages, one per trial, within the block."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


class Trials:
    """The trials of a search that have ended, in its database.

    Args:
        setup: the search.
        folder: results folder, which exists; None keeps the trials in memory.

    Raises:
        StoreError: the database cannot be opened.
        InvalidSettingError: the folder has the report of another search.
    """

    def __init__(self, setup: SearchSetup, folder: Path | None) -> None:
        from optuna.distributions import CategoricalDistribution

        self._setup = setup
        self._distributions: dict[str, BaseDistribution] = {
            name: CategoricalDistribution(v) for name, v in setup.space.values.items()
        }
        self._directions = [one.direction for one in setup.objectives]
        self._storage: RDBStorage | None = None
        self._corrected: dict[int, FrozenTrial] = {}
        self.study = self._open(folder)

    def _open(self, folder: Path | None) -> Study:
        import optuna
        from sqlalchemy.exc import SQLAlchemyError

        if folder is None:
            return optuna.create_study(directions=self._directions)
        path = folder / DATABASE
        try:
            # "?", "%" and "{" in the name of a folder have a meaning in the URL, so that it does not hold the path.
            connect = partial(sqlite3.connect, path, check_same_thread=False)
            self._storage = optuna.storages.RDBStorage(f"sqlite:///{DATABASE}", engine_kwargs={"creator": connect})
            self._require_no_other_report(self._storage, folder)
            return optuna.create_study(
                storage=self._storage, study_name=self._setup.name, directions=self._directions, load_if_exists=True
            )
        except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
            what = str(error).partition("\n")[0]
            raise StoreError(f"The trials of the search in '{path}' cannot be read: {what}.") from error

    def _require_no_other_report(self, storage: RDBStorage, folder: Path) -> None:
        import optuna

        searches = optuna.get_all_study_summaries(storage)
        reported = {search.study_name for search in searches if REPORTED in search.user_attrs}
        if reported - {self._setup.name} and (folder / PAGE).exists():
            raise InvalidSettingError(
                f"The folder '{folder}' has the report of another search, with other models, objectives or settings: "
                f"give another folder as `out`, and '{folder}' as `start` (--from) to use its records again."
            )

    def set_reported(self) -> None:
        """Save that the report of this search is written, so that no other search replaces it."""
        self.study.set_user_attr(REPORTED, True)

    def close(self) -> None:
        """Close the database."""
        if self._storage is not None:
            self._storage.remove_session()
            self._storage.engine.dispose()

    def ended(self) -> list[FrozenTrial]:
        """Return the trials that have ended, by number, with the values of `correct`."""
        saved = sorted(self.study.get_trials(deepcopy=False), key=lambda trial: trial.number)
        return [self._corrected.get(trial.number, trial) for trial in saved]

    def batch(self, first: int, count: int) -> list[Choices]:
        """Return the dimensions of the points of some trials: of ended trials as they are, of others drawn now.

        There are fewer if the space has no more points.

        Args:
            first: number of the first trial; all trials before it have ended.
            count: number of trials.
        """
        ended = self.ended()
        history, found = ended[:first], [dict(trial.params) for trial in ended[first : first + count]]
        identity = self._setup.space.identity
        seen = [*(identity(trial.params) for trial in history), *map(identity, found)]
        for number in range(first + len(found), first + count):
            params = self._draw(number, history, seen)
            if params is None:
                break
            seen.append(identity(params))
            found.append(params)
        return found

    def _draw(self, number: int, history: Sequence[FrozenTrial], seen: Sequence[Fields]) -> Choices | None:
        """Return a point that no trial has; None if there is none."""
        study = self._study_of(history)
        for attempt in range(REDRAWS):
            seed = stream_key(self._setup.spec.sampler_seed, "search", number, attempt) % SEEDS
            study.sampler = self._sampler(seed, max(CANDIDATES >> attempt, 1))
            params = dict(study.ask(self._distributions).params)
            if self._setup.space.identity(params) not in seen:
                return params
        size = self._setup.space.size
        first = stream_key(self._setup.spec.sampler_seed, "search", number) % size
        every = (self._setup.space.nth((first + place) % size) for place in range(size))
        return next((one for one in every if self._setup.space.identity(one) not in seen), None)

    def _study_of(self, trials: Sequence[FrozenTrial]) -> Study:
        """Return a study in memory with some trials."""
        import optuna

        study = optuna.create_study(directions=self._directions)
        study.add_trials(trials)
        return study

    def _sampler(self, seed: int, candidates: int) -> BaseSampler:
        import optuna

        if self._setup.spec.sampler == "random":
            return optuna.samplers.RandomSampler(seed=seed)
        return optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, n_ei_candidates=candidates, multivariate=False, constant_liar=False
        )

    def add(self, params: Fields, values: Sequence[float] | None, about: Fields) -> None:
        """Save a trial that has ended.

        Args:
            params: dimensions of its point.
            values: values of the objectives; None if it failed.
            about: further facts, for Optuna's attributes.
        """
        self.study.add_trial(self._trial(params, values, about))

    def correct(self, number: int, values: Sequence[float] | None) -> None:
        """Replace the values of a saved trial if its replicates were trained again; the file keeps the first values."""
        saved = self.ended()[number]
        if saved.values != values:
            self._corrected[number] = self._trial(saved.params, values, saved.user_attrs)

    def _trial(self, params: Fields, values: Sequence[float] | None, about: Fields) -> FrozenTrial:
        import optuna

        state = optuna.trial.TrialState.FAIL if values is None else optuna.trial.TrialState.COMPLETE
        arguments: dict[str, Any] = {"values": None if values is None else list(values), "user_attrs": dict(about)}
        return optuna.trial.create_trial(
            state=state, params=dict(params), distributions=self._distributions, **arguments
        )

    def importances(self, count: int) -> list[dict[str, float]]:
        """Return the importance of each dimension for each objective (fANOVA; Hutter et al. 2014), the largest first.

        A random forest is fitted to the values. An importance is the variance of the forest's mean over all other
        dimensions, as a share of the sum of these variances. It is empty for an objective with one value in all trials,
        and if fewer than two trials have values.

        Args:
            count: number of trials; the first ones count.
        """
        import optuna

        trials = self.ended()[:count]
        complete = [trial for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
        found: list[dict[str, float]] = []
        for place in range(len(self._directions)):
            if len({trial.values[place] for trial in complete}) < 2:
                found.append({})
                continue
            shares = optuna.importance.get_param_importances(
                self._study_of(trials),
                evaluator=optuna.importance.FanovaImportanceEvaluator(seed=0),
                target=lambda trial, place=place: trial.values[place],  # type: ignore[misc]
            )
            found.append({name: float(share) for name, share in shares.items()})
        return found
