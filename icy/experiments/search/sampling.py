"""The trials of a search in Optuna: which point each has, and its values, in a SQLite file of the results folder.

The point of a trial depends only on the trials of earlier batches and on the number of the trial: every trial has a
separate sampler, and its seed comes from the seed of the search and from the number. So a search that was stopped
continues with the same trials. Trials that other programs enqueue, ask or add in the same study do not count.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icy.core.errors import IcyError, InvalidSettingError, StoreError
from icy.core.streams import stream_key
from icy.core.text import counted
from icy.core.types import Choices, Fields

from .setup import SearchSetup

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.storages import RDBStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial

log = logging.getLogger(__name__)
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
        InvalidSettingError: Optuna is not installed; the message has the command that installs it.
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
        self._path = folder / DATABASE if folder else Path()
        self._corrected: dict[int, FrozenTrial] = {}
        with self._errors():
            self.study = self._open(folder)
            self._check_others()

    def _open(self, folder: Path | None) -> Study:
        import optuna

        if folder is None:
            return optuna.create_study(directions=self._directions)
        # "?", "%" and "{" in the name of a folder have a meaning in the URL, so that it does not hold the path.
        connect = partial(sqlite3.connect, self._path, check_same_thread=False)
        self._storage = optuna.storages.RDBStorage(f"sqlite:///{DATABASE}", engine_kwargs={"creator": connect})
        self._require_no_other_report(self._storage, folder)
        return optuna.create_study(
            storage=self._storage, study_name=self._setup.name, directions=self._directions, load_if_exists=True
        )

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of the database and of Optuna into a sentence: their kinds differ between versions of Optuna."""
        try:
            yield
        except IcyError:
            raise
        except Exception as error:
            what = (str(error) or type(error).__name__).partition("\n")[0].rstrip(".")
            raise StoreError(
                f"The trials of the search in '{self._path}' cannot be read or written: {what}. Move this file away, "
                "and the same search makes its trials again from the records, without training."
            ) from error

    def _check_others(self) -> None:
        """Warn of trials of other programs, and raise if the study does not take the trials of this search."""
        from optuna.distributions import check_distribution_compatibility

        if [direction.name.lower() for direction in self.study.directions] != self._directions:
            raise ValueError("its study has other directions")
        others = [trial for trial in self.study.get_trials(deepcopy=False) if not self._is_own(trial)]
        for name, found in (pair for trial in others for pair in trial.distributions.items()):
            if name in self._distributions:
                check_distribution_compatibility(found, self._distributions[name])
        if others:
            log.warning(
                "%s has %s of other programs, which icy leaves out. To measure a model of your choice, add it to "
                "`baselines`.",
                *(self._path.name, counted(len(others), "trial")),
            )

    def _is_own(self, trial: FrozenTrial) -> bool:
        return (
            trial.state.name in ("COMPLETE", "FAIL")
            and MODEL in trial.user_attrs
            and trial.distributions == self._distributions
        )

    def _require_no_other_report(self, storage: RDBStorage, folder: Path) -> None:
        import optuna

        searches = optuna.get_all_study_summaries(storage)
        reported = {one.study_name for one in searches if one.user_attrs.get(REPORTED) in (True, one.study_name)}
        if reported - {self._setup.name} and (folder / PAGE).exists():
            raise InvalidSettingError(
                f"The folder '{folder}' has the report of another search, with other models, objectives or settings: "
                f"give another folder as `out`, and '{folder}' as `start` (--from) to use its records again."
            )

    def set_reported(self) -> None:
        """Save that the report of this search is written, so that no other search replaces it."""
        with self._errors():
            self.study.set_user_attr(REPORTED, self.study.study_name)  # a copy of the study has another name

    def close(self) -> None:
        """Close the database."""
        if self._storage is not None:
            self._storage.remove_session()
            self._storage.engine.dispose()

    def ended(self) -> list[FrozenTrial]:
        """Return the trials that have ended, by number, with the values of `correct`."""
        with self._errors():
            saved = sorted(self.study.get_trials(deepcopy=False), key=lambda trial: trial.number)
        return [self._corrected.get(trial.number, trial) for trial in saved if self._is_own(trial)]

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
        with self._errors():
            self.study.add_trial(self._trial(params, values, about))

    def correct(self, number: int, values: Sequence[float] | None) -> None:
        """Replace the values of a saved trial if its replicates were trained again; the file keeps the first values."""
        saved = self.ended()[number]
        if saved.values != values:
            corrected = self._trial(saved.params, values, saved.user_attrs)
            corrected.number = saved.number
            self._corrected[saved.number] = corrected

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
