"""`icy.sweep`: many rows from lists of models, grammars, representations and more, in one run.

A sweep expands into the requests of its rows, of any kinds of jobs. The rows are planned, ordered longest first, and
run into one folder. Replicates on file are not trained again, so the same command resumes an interrupted sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, get_args

from icy.config.options import SweepOptions
from icy.config.requests import RUNNING, RunRequest, names, spell_out
from icy.config.settings import OrderName
from icy.core.checks import parse_whole
from icy.core.errors import IncompatibleError, InvalidSettingError, quoted, require_known, unknown
from icy.core.fields import current_names
from icy.core.registry import SIDES, registry
from icy.core.surroundings import standard_state
from icy.core.text import listed, words
from icy.core.types import Choices, Fields
from icy.experiments.requests import SweepRequest
from icy.records.kinds import RowKey, job_kind
from icy.training.combinations import combinations, warn_of_refused
from icy.training.job import Job
from icy.training.probe_settings import ProbeRequest

from .display import callbacks_of
from .idle import warn_of_idle
from .plan import Plan, Row, plan_rows, planned, store_of
from .progress import Watcher
from .results import ProbeResult
from .run import require_engine, run_plan
from .sweep_file import read_sweep as read_sweep
from .user_models import Models, with_model_names

log = logging.getLogger(__name__)

ORDERS = get_args(OrderName)  # orders of the rows


@standard_state()
def sweep(
    model: Models = (),
    *,
    file: str | Path | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[SweepOptions],
) -> ProbeResult:
    """Probe many models under many settings.

    Args:
        model: names or wildcards of senders and receivers; or a class or function that makes a model, or a PyTorch
            module.
        file: a sweep in TOML or YAML; the other arguments override its options.
        watcher: callbacks that observe the run.
        progress: whether to show the progress of the run. By default it is shown live in notebooks and on terminals,
            and as a line a minute elsewhere, unless a watcher is given or the environment has ICY_PROGRESS=0.
        **options: the other fields of SweepRequest.

    Returns:
        The results of all of the sweep's replicates, trained now or on file.

    Raises:
        IcyError: invalid arguments, such as an unknown name, or a folder that cannot be written. A row that fails in
            training is not an error: it is recorded as failed, and the other rows are trained.
        KeyboardInterrupt: at Ctrl-C. Finished replicates are kept. If it is not caught, the script ends with a sentence
            instead of a traceback.

    Example:
        >>> import icy, tempfile
        >>> result = icy.sweep("*/FC1L", grammar="perm", representation=["soft", "gumb"], quick=True,
        ...                    workers=1, out=tempfile.mkdtemp())
        >>> sorted({(r["model"], r["representation"]) for r in result.records})
        [('receiver/FC1L', 'gumb'), ('receiver/FC1L', 'soft'), ('sender/FC1L', 'gumb'), ('sender/FC1L', 'soft')]
    """
    given: Choices = {**({"model": model} if model else {}), **options}
    request = with_model_names(sweep_request(**(given if file is None else over(read_sweep(file), given))), "model")
    plan = make_sweep(request)
    callbacks = callbacks_of(request, watcher, progress)
    return run_plan(plan, callbacks, retries=request.retries)


spell_out(sweep, SweepRequest, ProbeResult)


def sweep_request(**given: Any) -> SweepRequest:
    """Return the request of a sweep. Its parts may be of several kinds of jobs.

    Each argument of the whole sweep is passed to the parts that take it.

    Raises:
        UnknownNameError: no part takes an argument, or a kind is unknown.
    """
    registry.load_files(given.get("plugin", ()))
    whole = given.get("kind", SweepRequest.kind)
    parts: Sequence[Fields] = given.get("parts") or ({},)
    kinds = [str(part.get("kind", whole)) for part in parts]
    if set(kinds) == {SweepRequest.kind}:
        return SweepRequest.asked(**given)
    given = current_names(SweepRequest, given)
    takes = {kind: _takes(job_kind(kind).request_class()) for kind in kinds}
    of_whole = [n for n in names(SweepRequest) if n in RUNNING or n not in (*names(ProbeRequest), "side")]
    of_parts = [name for known in takes.values() for name in known]
    for name in given:
        if name not in of_parts and name not in of_whole:
            raise unknown(f"option of a sweep of {listed(sorted(takes))}", name, [*of_parts, *of_whole])
    full = [
        {**{name: value for name, value in given.items() if name in takes[kind]}, **part, "kind": kind}
        for part, kind in zip(parts, kinds, strict=True)
    ]
    return SweepRequest.asked(**{n: v for n, v in given.items() if n in of_whole} | {"parts": tuple(full)})


def _takes(request_class: type[RunRequest]) -> list[str]:
    """Return the arguments that a part of a sweep takes."""
    side = ["side"] if issubclass(SweepRequest, request_class) else []
    return [name for name in (*names(request_class), *request_class.old_names) if name not in RUNNING] + side


def over(of_file: Fields, given: Fields) -> Choices:
    """Return the options of a file and of its parts, overridden by the options of the caller.

    Example:
        >>> over({"seeds": 5, "parts": ({"model": "FC1L", "hidden": 8},)}, {"hidden": 16})
        {'seeds': 5, 'parts': ({'model': 'FC1L'},), 'hidden': 16}
    """
    parts = []
    registry.load_files(given.get("plugin", of_file.get("plugin", ())))  # which may register the kinds of parts
    for part in of_file.get("parts", ()):
        kind = str(part.get("kind", of_file.get("kind", SweepRequest.kind)))
        own = {name.replace("-", "_"): value for name, value in part.items()}
        own = current_names(job_kind(kind).request_class(), own)
        parts.append({name: value for name, value in own.items() if name not in given})
    return {**of_file, **({"parts": tuple(parts)} if parts else {}), **given}


# -- the plan ----------------------------------------------------------------------------------------------------------


def make_sweep(request: SweepRequest) -> Plan:
    """Return the plan of a sweep, without training. Errors as for `sweep`."""
    require_known("order", request.order, ORDERS)
    registry.load_files(request.plugin)
    store = store_of(request)
    planned_rows: list[Row] = []
    places: dict[RowKey, list[int]] = {}  # of rows with the same key
    refused: list[IncompatibleError] = []
    jobs: list[Job] = []  # of all requests, before rows with the same key are joined
    for one in expand(request):
        try:
            rows = plan_rows(one)
            require_engine(rows)
            jobs += [row.job for row in rows]
        except IncompatibleError as error:  # a model that does not work in one of several representations
            refused.append(error)
            continue
        for row in rows:
            same = places.setdefault(row.job.row, [])
            at = next((i for i in same if _trained_alike(planned_rows[i], row)), None)
            if at is None:
                same.append(len(planned_rows))
                planned_rows.append(row)
            else:
                planned_rows[at] = Row.of(planned_rows[at].job.joined(row.job), store, request.rerun)
    warn_of_refused(refused, planned_rows)
    warn_of_idle(request, jobs)
    ordered = sorted(planned_rows, key=cost, reverse=True) if request.order == "longest" else planned_rows
    return planned(request, _share(ordered, request.shard))


def expand(request: SweepRequest) -> list[RunRequest]:
    """Return the requests of a sweep: a request per combination of values along its axes.

    Raises:
        UnknownNameError: a part does not take an argument, or a kind of job is unknown.
        InvalidSettingError: no model, or a part with an option for the whole sweep.
    """
    requests: list[RunRequest] = []
    parts: Sequence[Fields] = request.parts or ({},)
    for part in parts:
        own = {name.replace("-", "_"): value for name, value in part.items()}
        request_class = job_kind(own.pop("kind", request.kind)).request_class()
        own = current_names(request_class, own)
        _check_part(own, request_class)
        known = names(request_class)
        # For other kinds, `sweep_request` adds the arguments of the whole sweep.
        shared = names(SweepRequest) if issubclass(SweepRequest, request_class) else RUNNING
        options = {**{name: getattr(request, name) for name in shared}, **own}
        models = {"model": _models(options)} if "model" in known else {}
        whole = request_class.asked(**{**{name: v for name, v in options.items() if name in known}, **models})
        requests.extend(each.with_given({*request.given, *own}) for each in combinations(whole, by_model=True))
    return requests


def _check_part(own: Fields, request_class: type[RunRequest]) -> None:
    for name in own:
        if name in RUNNING:
            raise InvalidSettingError(f"'{name}' is for the whole sweep, and cannot be set in a part.")
        if name not in _takes(request_class):
            raise unknown("argument of a part of a sweep", name, _takes(request_class))


def _models(options: Fields) -> list[str]:
    models = words(options["model"])
    if not models:
        raise InvalidSettingError("No model was given; `icy list models` shows all.")
    side = options.get("side")
    if side is not None and side not in SIDES:
        raise unknown("side", str(side), SIDES)
    return [_on_side(model, side) for model in models]


def _on_side(model: str, side: str | None) -> str:
    """Restrict a name or wildcard to one side.

    Raises:
        InvalidSettingError: the name has the other side as its prefix.
    """
    own, slash, _ = model.partition("/")
    if side is None or (slash and own == side):
        return model
    if slash and own in SIDES:
        raise InvalidSettingError(f"'{model}' is not a {side}: leave out the prefix '{own}/' or the side.")
    return f"{side}/{'*' if model == 'all' else model.removeprefix('*/')}"


def _trained_alike(one: Row, other: Row) -> bool:
    """Return whether two rows of a sweep with the same key are trained in the same way.

    The key of a row of pairs does not include the target of pre-training, since pairs from scratch are in the same
    row. If parts of a sweep have different targets, their rows stay separate.
    """
    jobs = (replace(row.job, replicates=()) for row in (one, other))
    return next(jobs) == next(jobs)


def cost(row: Row) -> float:
    """Return the relative cost of a row: from the seconds of replicates on file, else from the work of one update."""
    measured = [r["seconds"] for r in row.filed if not r["failed"] and r.get("seconds")]
    if measured:
        return float(len(row.missing) * sum(measured) / len(measured))
    return len(row.job.replicates) * row.job.update_cost


def _share(rows: Sequence[Row], shard: str | None) -> list[Row]:
    """Return the rows of one shard, dealt in an order that is the same on every machine.

    Raises:
        InvalidSettingError: the shard does not have the form i/n.
    """
    if shard is None:
        return list(rows)
    index, count = map(parse_whole, str(shard).partition("/")[::2])
    if index is None or count is None or not 1 <= index <= count:
        raise InvalidSettingError(f"A shard is i/n, the i-th of n shares, as in 2/8; not {quoted(shard)}.")
    # Independent of records on file, which other machines may add. Rows of similar cost go to different shards.
    ordered = sorted(rows, key=lambda row: (-row.job.parameters.get("true", 0) * len(row.job.replicates), row.job.row))
    mine = {row.job.row for row in ordered[index - 1 :: count]}
    return [row for row in rows if row.job.row in mine]
