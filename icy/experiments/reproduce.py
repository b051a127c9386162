"""`icy.reproduce`: measure a published table again."""

from __future__ import annotations

import contextlib
import fnmatch
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from icy.config.options import ReproduceOptions
from icy.config.requests import RETRIES, RUNNING, ReproduceRequest, spell_out
from icy.config.settings import OrderName
from icy.core.checks import seed_list
from icy.core.errors import InvalidSettingError, unknown
from icy.core.fields import current_names
from icy.core.registry import canonical
from icy.core.surroundings import standard_state
from icy.core.text import several, words
from icy.core.types import Choices, Fields
from icy.experiments.requests import SweepRequest
from icy.records.kinds import job_kind

from .display import callbacks_of
from .expected_updates import ExpectedUpdates
from .plan import Plan
from .progress import Watcher
from .reproduction import Reproduction
from .results import ProbeResult
from .run import run_plan
from .sweep import make_sweep

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.literature.catalogue import PublishedTable


log = logging.getLogger(__name__)
# Rows that the paper evaluated at every update, while it evaluated the other rows every 50 (Icy22, table 4).
CHECKS: dict[tuple[str, int], Choices] = {("icy22/table4", 1280): {"check_every": 1}}
# Updates between readings. The accuracy from scratch is a mean over as many updates.
SCRATCH_REPORTS, DRIFT_REPORTS = 1000, 100
QUICK_UPDATES = 1000  # updates of agents of games with quick=True
PART = ["protocol", "representation", "role", "hidden_size", "target"]  # columns that the models of one part share


@standard_state()
def reproduce(
    table: str,
    only: str | Iterable[str] = (),
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[ReproduceOptions],
) -> Reproduction:
    """Measure a published table again, under the preset `published`, and compare it with the published numbers.

    Finished replicates are kept in the folder `out`; the same call again trains only the missing replicates.

    Args:
        table: name of the table, as in "icy22/table3"; `icy reproduce --list` shows all.
        only: names or wildcards of models in the table.
        watcher: callbacks that observe the run.
        progress: whether to show the progress of the run. By default it is shown live in notebooks and on terminals,
            and as a line a minute elsewhere, unless a watcher is given or the environment has ICY_PROGRESS=0.
        **options: the other fields of ReproduceRequest.

    Returns:
        The measured value of every cell, next to the published value.

    Raises:
        IcyError: invalid arguments, such as an unknown table, a table that icy does not measure, or a model that is
            not in any table.
        KeyboardInterrupt: at Ctrl-C. Finished replicates are kept. If it is not caught, the script ends with a sentence
            instead of a traceback.

    Example:
        >>> import icy, tempfile
        >>> options = {"grammar": "perm", "seeds": 2, "workers": 1, "out": tempfile.mkdtemp()}
        >>> done = icy.reproduce("icy22/table3", "Hashtable", **options)
        >>> done.cells[["model", "grammar", "published", "verdict"]].to_numpy().tolist()
        [['Hashtable', 'perm', 1.0, 'agrees']]
    """
    reproducing = Reproducing.of(ReproduceRequest.asked(table=table, only=only, **options))
    if not reproducing.trains:
        return reproducing.measure()
    return reproducing.run(reproducing.plan(), callbacks_of(reproducing.request, watcher, progress))


spell_out(reproduce, ReproduceRequest, Reproduction)


@dataclass(frozen=True)
class Reproducing:
    """A published table to be measured again.

    Attributes:
        request: the request.
        source: the table.
        wanted: the requested cells of the table.
    """

    request: ReproduceRequest
    source: PublishedTable
    wanted: pd.DataFrame

    @classmethod
    def of(cls, request: ReproduceRequest) -> Reproducing:
        """Select the cells of a request.

        Raises:
            UnknownNameError: an unknown table, or a name that is not in any published table.
            InvalidSettingError: `icy.reproduce` cannot measure the table, or none of its cells match.
        """
        from icy.analysis.literature.catalogue import find_table, published, why_not_measured
        from icy.analysis.literature.retraining import with_names

        if reason := why_not_measured(request.table):
            raise InvalidSettingError(reason)
        source = find_table(request.table)
        cells = published(source.id)
        if source.reproduce == "games":
            cells = with_names(cells, source.id)
        if request.observations is not None and "observations" not in cells:
            raise InvalidSettingError(
                f"The agents of {source.id} do not learn from observations: leave out `observations` (--observations)."
            )
        column = next((name for name in ("search", "agent", "row") if name in cells), "model")
        for name, patterns in (
            (column, request.only),
            ("grammar", request.grammar),
            ("representation", request.representation),
        ):
            cells = _only(cells, name, _listed(patterns), source.id)
        reproducing = cls(request, source, cells)
        if not (reproducing.trains and request.quick):
            return reproducing
        return reproducing.fastest_of_each(column) if _listed(request.only) else reproducing.fastest()

    def fastest_of_each(self, column: str) -> Reproducing:
        """Return the cells of one row of each model or agent: the row with the least expected cost."""
        import pandas as pd

        selected = []
        for _, cells in self.wanted.groupby(column, sort=False):
            part = replace(self, wanted=cells)
            with contextlib.suppress(InvalidSettingError):  # none of its models learns
                part = part.fastest()
            selected.append(part.wanted)
        return replace(self, wanted=pd.concat(selected))

    def fastest(self) -> Reproducing:
        """Return the cells of the row with the least expected cost.

        Raises:
            InvalidSettingError: none of the requested models learns.
        """
        columns = next(([name] for name in ("row", "agent") if name in self.wanted), ["model", "hidden_size"])
        columns += [name for name in ("representation", "shots", "samples", "values") if name in self.wanted]
        parts = [replace(self, wanted=cells) for _, cells in self.wanted.groupby(columns, sort=False)]
        costs: list[tuple[float, Reproducing]] = []
        for part in parts:
            with contextlib.suppress(InvalidSettingError):  # none of its models learns
                costs.append((_cost(part.plan()), part))
        if not any(cost for cost, _ in costs):
            raise InvalidSettingError(f"None of the requested rows of {self.source.id} has a model that learns.")
        return min((found for found in costs if found[0]), key=lambda found: found[0])[1]

    @property
    def trains(self) -> bool:
        """Whether the table has models to train; tables of languages have none."""
        return self.source.reproduce in PARTS

    def measure(self) -> Reproduction:
        """Measure languages and compare them with the published numbers, without training or saving."""
        return Reproduction(self.source, ProbeResult([]), self.wanted, self.language_seeds())

    def language_seeds(self) -> tuple[int, ...]:
        """Return the seeds of the languages: the requested seeds, or the seeds of the paper."""
        return tuple(seed_list(list(self.source.seeds) if self.request.seeds is None else self.request.seeds))

    def plan(self) -> Plan:
        """Plan the training: a sweep with the rows of the table as its parts.

        Raises:
            InvalidSettingError: none of the requested models learns.
        """
        parts = PARTS[self.source.reproduce](self)
        if not parts:
            raise InvalidSettingError(f"None of the requested rows of {self.source.id} has a model that learns.")
        running = {name: getattr(self.request, name) for name in RUNNING if name != "quick"}
        whole = [{"preset": "published", "settings": self.request.settings, **part} for part in parts]
        order: OrderName = "longest" if self.source.reproduce in ("probe", "steps") else "given"
        return make_sweep(SweepRequest(parts=whole, order=order, **running))

    def run(self, plan: Plan, watcher: Watcher | None = None) -> Reproduction:
        """Train the missing replicates of a plan, and compare all results with the published numbers."""
        return self.judge(run_plan(plan, watcher, retries=RETRIES))

    def judge(self, result: ProbeResult) -> Reproduction:
        """Compare measured results with the published numbers."""
        return Reproduction(self.source, result, self.wanted)

    def seeds(self, runs: float) -> Any:
        """Return the requested seeds, or the number of runs in the paper."""
        return int(runs) if self.request.seeds is None else self.request.seeds

    def settings(self, own: Fields) -> Choices:
        """Return the settings of a part with the changes of the request."""
        return {**own, **self.request.settings}


def _probes(reproducing: Reproducing) -> list[Choices]:
    """Return the trainings of a table of senders or receivers."""
    parts = []
    for key, rows in reproducing.wanted.groupby(PART, sort=False):
        about: Choices = dict(zip(PART, key, strict=True))
        about |= {"side": about.pop("role"), "hidden": int(str(about.pop("hidden_size")))}
        about["settings"] = reproducing.settings(CHECKS.get((reproducing.source.id, about["hidden"]), {}))
        for grammars, models in _by_grammars(rows).items():
            seeds = reproducing.seeds(rows["n"].max())
            parts.append({**about, "model": models, "grammar": list(grammars) or ["concat"], "seeds": seeds})
    return parts


def _steps(reproducing: Reproducing) -> list[Choices]:
    """Return the trainings of the senders in a table of published numbers of updates."""
    from icy.analysis.literature.retraining import step_parts

    parts = step_parts(reproducing.wanted, reproducing.request.seeds)
    return [{**part, "settings": reproducing.settings(part["settings"])} for part in parts]


def _pairs(reproducing: Reproducing) -> list[Choices]:
    """Return the games of a table of pairs."""
    parts: list[Choices] = []
    for (representation, hidden), rows in reproducing.wanted.groupby(["representation", "hidden_size"], sort=False):
        for grammars, models in _by_grammars(rows, keep_concat=True).items():
            senders, receivers = zip(*(str(model).split("+") for model in models), strict=True)
            parts.append({
                "kind": "e2e",
                "sender": senders,
                "receiver": receivers,
                "pretrain": "none" if grammars == ("none",) else grammars,
                "representation": representation,
                "hidden": int(str(hidden)),
                "seeds": reproducing.seeds(rows["n"].max()),
                "report_every": SCRATCH_REPORTS if grammars == ("none",) else DRIFT_REPORTS,
            })  # fmt: skip
    return parts


def _agents(reproducing: Reproducing) -> list[Choices]:
    """Return the agents of a table, with the kind of job that trains them."""
    from icy.analysis.literature.retraining import agent_parts

    request = reproducing.request
    parts = agent_parts(reproducing.source.id, reproducing.wanted, request.seeds, request.observations)
    kind = reproducing.source.reproduce
    return [{**part, "kind": kind, "settings": reproducing.settings(part["settings"])} for part in parts]


def _games(reproducing: Reproducing) -> list[Choices]:
    """Return the agents of a table of multi-target games."""
    from icy.analysis.literature.retraining import game_parts

    kind, request = reproducing.source.reproduce, reproducing.request
    settings = current_names(job_kind(kind).request_class(), request.settings)
    own: Choices = {"updates": QUICK_UPDATES} if request.quick else {}
    if "updates" in settings:
        own["updates"] = settings.pop("updates")
    parts = game_parts(reproducing.source.id, reproducing.wanted, request.seeds)
    return [{**part, **own, "kind": kind, "settings": settings} for part in parts]


PARTS = {
    "probe": _probes, "steps": _steps, "e2e": _pairs, "s2b": _agents, "recall": _agents, "games": _games,
}  # fmt: skip


def _by_grammars(rows: pd.DataFrame, keep_concat: bool = False) -> dict[tuple[str, ...], list[str]]:
    """Group models by their grammars in the table, without concat, which is always trained."""
    found: dict[tuple[str, ...], list[str]] = {}
    for model, cells in rows.groupby("model", sort=False):
        grammars = [str(g) for g in dict.fromkeys(cells["grammar"]) if keep_concat or g != "concat"]
        found.setdefault(tuple(grammars), []).append(str(model))
    return found


def _listed(names: str | Iterable[str]) -> list[str]:
    choices = words(names)
    if not choices and several(names):
        raise InvalidSettingError("A name is empty: give a name, or leave the argument out for all.")
    return [] if "all" in choices else choices


def _only(cells: pd.DataFrame, column: str, patterns: list[str], table: str) -> pd.DataFrame:
    """Return the cells with a value in `column` that matches a pattern; warn of names that only other tables have.

    Raises:
        UnknownNameError: a pattern matches no published table.
        InvalidSettingError: none of the patterns matches in this table.
    """
    if not patterns:
        return cells
    if column not in cells:
        raise InvalidSettingError(f"{table} has no {column}s to choose from.")
    available = [str(name) for name in dict.fromkeys(cells[column])]
    matches = {pattern: [name for name in available if _fits(name, pattern)] for pattern in patterns}
    for pattern, matching in matches.items():
        if not matching:
            tables = _tables_with(column, pattern)
            if not tables:
                raise unknown(f"{column} of {table}", pattern, available)
            log.warning("Left out: %s is not in %s, but in %s.", pattern, table, ", ".join(tables))
    names = {name for matching in matches.values() for name in matching}
    if not names:
        raise InvalidSettingError(f"{table} has no {column} {' or '.join(patterns)}; it has {', '.join(available)}.")
    return cells[cells[column].isin(names)]


def _fits(name: str, pattern: str) -> bool:
    """Return whether a pattern matches a name; parts of the pattern may be aliases."""
    full = "+".join(canonical(part).rpartition("/")[2] for part in pattern.split("+"))
    return fnmatch.fnmatchcase(name.lower(), full.lower())


def _tables_with(column: str, pattern: str) -> list[str]:
    """Return the tables in which a pattern matches a name."""
    import pandas as pd

    from icy.analysis.literature.catalogue import published, published_tables
    from icy.analysis.literature.retraining import with_names

    tables = [table for table in published_tables() if table.reproduce]
    every = {t.id: with_names(published(t.id), t.id) if t.reproduce == "games" else published(t.id) for t in tables}
    names = {id: cells.get(column, pd.Series(dtype=str)).unique() for id, cells in every.items()}
    return [id for id, there in names.items() if any(_fits(str(name), pattern) for name in there)]


def _cost(plan: Plan) -> float:
    """Return the expected cost of a plan, in arbitrary units; 0 if none of its models learns."""
    expected, cost = ExpectedUpdates(plan), 0.0
    for row in plan.rows:
        updates = expected.of_row(replace(row, missing=row.job.replicates, filed=())).values()
        cost += row.job.update_cost * sum((one.low * one.high) ** 0.5 for one in updates)
    return cost
