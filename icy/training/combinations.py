"""Expand a request with several values along its axes into one per combination, and make the jobs of these."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, replace
from functools import partial
from itertools import product
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

from icy.config.kinds import declared_in, values_for
from icy.config.requests import RunRequest, names
from icy.config.settings import OF_MESSAGES
from icy.core.checks import seed_list
from icy.core.choices import distinct, typed
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.fields import check_of, field_types
from icy.core.text import listed, several, words
from icy.core.types import Choices, Fields
from icy.languages.meanings import spaces_in
from icy.languages.names import word_length_of
from icy.records.kinds import JobKind
from icy.records.record import config_text

from .job import Job, Replicate

J = TypeVar("J", bound=Job)
S = TypeVar("S", bound=RunRequest)
log = logging.getLogger(__name__)

ALL = "all"


def combinations(request: S, by_model: bool = False) -> list[S]:
    """Return a request for each combination of the values along the axes of a request.

    Args:
        request: a request; its axes may have several values.
        by_model: whether to make a request per model too. With several combinations this is always done, so that a
            model is left out only of the combinations in which it does not work.

    Raises:
        InvalidSettingError: an axis has no value, or a value that is not possible.
    """
    axes = {axis: _values(request, axis) for axis in request.axes}
    if "model" in names(type(request)) and (by_model or any(len(values) > 1 for values in axes.values())):
        axes = {"model": words(vars(request)["model"]), **axes}
    made = [replace(request, **dict(zip(axes, values, strict=True))) for values in product(*axes.values())]
    return [combination.with_given(request.given) for combination in made]


def _values(request: RunRequest, axis: str) -> list[Any]:
    """Return the values along an axis of a request, as its settings have them."""
    declared = declared_in(request.settings_class).get(axis) if request.settings_class is not None else None
    if declared is None:
        return along(axis, getattr(request, axis))
    hint: Any = field_types(request.settings_class)[axis]  # type: ignore[arg-type]
    every = get_args(hint) if get_origin(hint) is Literal else declared.metadata.get("every", tuple)()
    parsed = {float, NoneType}.intersection((hint, *get_args(hint)))
    found = [
        _parsed(one) if parsed and isinstance(one, str) else one for one in along(axis, getattr(request, axis), every)
    ]
    if None in found and getattr(type(request), axis, MISSING) is None:  # the default, for which jobs find a value
        hint = hint | None
    return [check_of(declared).read(axis, hint, one) for one in found]


def _parsed(text: str) -> object:
    """Return the number in a text, or None for "none"; otherwise the text."""
    return None if text.lower() == "none" else typed(text)


def along(axis: str, value: Any, every: Sequence[str] = ()) -> list[Any]:
    """Return the values along an axis, without repeats; `every` has the names that "all" means.

    Raises:
        InvalidSettingError: the axis has no value, or values that differ only in their type.

    Example:
        >>> along("representation", "soft,discr"), along("preset", "all", ("a", "b")), along("meanings", "3x4,10,4,2")
        (['soft', 'discr'], ['a', 'b'], ['3x4', '10,4,2'])
    """
    values = spaces_in(value) if axis == "meanings" else [each for one in several(value) for each in several(one)]
    if ALL in values and every:
        values = list(every)
    if axis == "settings":
        values = _settings(value)
    elif axis == "word_length":
        values = [word_length_of(one) for one in values]
    if not values:
        raise InvalidSettingError(f"{axis} has no value: give at least one, or leave {axis} out for the default.")
    return distinct(axis, values)


def _settings(changes: Fields) -> list[Choices]:
    """Return each combination of changes to training settings, which may have several values.

    Example:
        >>> _settings({"learning_rate": "0.001,0.004", "optimizer": "adam"})
        [{'learning_rate': 0.001, 'optimizer': 'adam'}, {'learning_rate': 0.004, 'optimizer': 'adam'}]
    """
    if not isinstance(changes, Mapping):
        raise InvalidSettingError("settings must be names with values, as in {'learning_rate': 0.001}.")
    lists = [[typed(one) if isinstance(one, str) else one for one in several(value)] for value in changes.values()]
    return [dict(zip(changes, values, strict=True)) for values in product(*lists)]


def jobs_of_each(request: S, make: Callable[[S], Sequence[J]]) -> list[J]:
    """Return the jobs of every combination of the values of a request, without repeated rows.

    A combination in which a model does not work is left out; if it is the only combination, an error is raised.

    Args:
        request: a request; its axes may have several values.
        make: makes the jobs of a request with one value along each axis.

    Raises:
        IcyError: as for `make`.
    """
    requests = combinations(request)
    if len(requests) == 1:
        return list(_made(make, requests[0]))
    jobs: dict[tuple[str, ...], J] = {}  # by keys of replicates, since a setting may have no effect in some jobs
    refused: list[IncompatibleError] = []
    for combination in requests:
        try:
            for job in _made(make, combination):
                jobs.setdefault(tuple(job.key(r) for r in job.replicates), job)
        except IncompatibleError as error:
            refused.append(error)
    warn_of_refused(refused, jobs)
    return list(jobs.values())


def jobs_of(kind: JobKind, request: Any) -> Sequence[Job]:
    """Return the jobs of a request of a kind: those of each combination of the values along its axes.

    Raises:
        IcyError: an unknown name, or a value that is not accepted.
    """
    if kind.jobs is not None:
        jobs: Sequence[Job] = kind.function("jobs")(request)
        return jobs
    return jobs_of_each(request, partial(_one_row, kind) if kind.rows is None else kind.function("rows"))


def _one_row(kind: JobKind, request: Any) -> list[Job]:
    """Return the job of a request of a kind without languages, which has one value along each axis."""
    assert kind.settings is not None
    replicates = tuple(
        Replicate(name, seed) for name in kind.conditions or (kind.name,) for seed in seed_list(request.seeds)
    )
    return [Job(settings=kind.settings(**values_for(kind.settings, request)), replicates=replicates)]


def _made(make: Callable[[S], Sequence[J]], request: S) -> Sequence[J]:
    """Return the jobs of a request; an error about a value that `quick` set says so."""
    try:
        return make(request)
    except InvalidSettingError as error:
        small = {name: value for name, value in request.small.items() if name not in request.given and request.quick}
        set_by_quick = [f"{name}={value}" for name, value in small.items() if name.replace("_", " ") in str(error)]
        if not set_by_quick:
            raise
        raise type(error)(f"{error} --quick sets {listed(set_by_quick)}, unless given.") from error


def warn_of_refused(refused: Sequence[IncompatibleError], jobs: Iterable[object]) -> None:
    """Warn of combinations that were left out; if no jobs are left, raise the first error."""
    if refused and not list(jobs):
        raise refused[0]
    for sentence in dict.fromkeys(map(str, refused)):
        log.warning("Left out: %s", sentence)


# -- rows that train the same network, because they differ only in a factor that their model does not have -------------


SAME_FOR_RECEIVERS = ("soft", "gs", "qt", "cb")  # representations with one loss of receivers, which read tokens
WHY = {"hidden size": "has no hidden layer", "representation": "learns alike in several representations"}


def warn_of_same_networks(jobs: Iterable[Job]) -> None:
    """Warn of rows that train the same network, since their results are not separate data."""
    rows: dict[str, list[Job]] = {}
    for job in jobs:
        if job.replicates:
            rows.setdefault(_network(job), []).append(job)
    values: dict[tuple[str, str], dict[str, None]] = {}
    for alike in rows.values():
        for factor in WHY:
            own = dict.fromkeys(job.facts.get(factor, "") for job in alike)
            if len(own) > 1:
                values.setdefault((alike[0].name, factor), {}).update(own)
    for (name, factor), found in values.items():
        which = listed([*found])
        log.warning("%s %s: its rows with %s %s are the same, not separate data.", name, WHY[factor], factor, which)


def _network(job: Job) -> str:
    """Return the configuration of a job's first replicate, without factors that the model does not have.

    Models of one name that have the same number of parameters at several hidden sizes have no hidden layer.
    """
    config, count = dict(job.config(job.replicates[0])), job.parameters.get("true")
    if count is not None:
        config["hidden_size"] = None
    if (
        job.kind == "probe" and job.side == "receiver" and config["representation"] in SAME_FOR_RECEIVERS
    ) or count == 0:
        config["representation"] = None
        config["settings"] = {n: v for n, v in config.get("settings", {}).items() if n not in OF_MESSAGES}
    return config_text({**config, "kind": job.kind, "parameters": count})
