"""Planning a probe: what was asked for, what of it is on file, and what is left to train."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from icy.asking import FIRST_SEED, Asked, hidden_list, seed_list
from icy.devices import resolve_device
from icy.errors import InvalidSettingError, unknown
from icy.grammars import expand_grammars, make_language
from icy.meanings import MeaningSpace
from icy.models.making import cannot_use, count_parameters
from icy.provenance import usable_cores
from icy.registry import SIDES, Entry, registry
from icy.splits import Split
from icy.store import Record, Store, to_run
from icy.training.job import Job, Replicate, Task, baselines_of
from icy.training.protocols import BASELINE, Protocol, get_protocol
from icy.training.settings import settings_for

RUNNERS = ("local", "ray")
ON_CLUSTERS = ("auto", "cpu", "cuda")  # devices
LanguageKey = tuple[str, MeaningSpace, int, int]  # grammar, space, V and w
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProbeSpec(Asked):
    """What to measure, and how: the arguments of `icy.probe`, under the names that the command line uses too.

    Attributes:
        model: names or wildcards of senders and receivers (`HierZero:GRU`, `receiver/FC2L`, `sender/RNN*`).
        grammar: names, chains (`rot+perm`) or wildcards; "all" is every grammar that the side can use.
        protocol: "acquire", steps to the target as a ratio to concat's; "budget", accuracy after concat's steps; or
            "generalise", accuracy on meanings held out of training.
        meanings: the space, "attributes x values".
        vocab_size: V.
        word_length: tokens per word, w; messages have A*w.
        seeds: how many, counted from 123 as in the papers, or which: [1, 2], "1,2", "123-127".
        target: accuracy at which concat is learnt; 0.8 for acquire and 0.99 for the others unless given.
        cap: for acquire and generalise, the longest a grammar is trained, as a multiple of concat's steps.
        held_out: for generalise, the share of the meanings that is not trained on.
        split: for generalise, which meanings these are: "random", or "combinations", every meaning with one of a
            share of the pairs of values of two attributes. Each seed holds out its own, and trains on every value.
        hidden: hidden size E, or several, each a row of its own: [64, 128] or "64,128".
        representation: what a message is made of: "soft", probabilities; "gumb", Gumbel-softmax samples; "discr",
            tokens, trained by REINFORCE.
        preset: "default", or "published" for the behaviour that the printed numbers depend on.
        options: further arguments of the models.
        settings: changes to the preset's TrainingSettings.
        quick: a small space, few seeds and a small hidden size wherever these are not given: a result in seconds, to
            try things out.
        device: "cpu", "cuda", or "auto" for a GPU if there is one.
        workers: processes at once. On a CPU, one per core unless given; on a GPU, one; on a Ray cluster, one per core
            or, of `per_gpu`, per share of a GPU.
        runner: who runs them: "local", this machine; or "ray", a Ray cluster, which needs the extra `ray`.
        per_gpu: on a Ray cluster, processes that share one GPU.
        engine: how replicates are stacked: "auto", "broadcast", "vmap" or "loop"; and on a GPU, how updates are issued:
            "auto+graph", one CUDA graph per update, or "auto+plain".
        out: the results folder.
        rerun: "missing", "failed", "always" or "never"; see icy.store.RERUN.
        plugin: files that register models or grammars.
        track: where results are shown beside the results folder, as soon as each is filed: "tensorboard", "mlflow" or
            "wandb", or several; all of them local. See icy.tracking.
    """

    function = "icy.probe"
    small = MappingProxyType({"meanings": "3x4", "word_length": 2, "seeds": 2, "hidden": 32})

    model: str | Iterable[str]
    grammar: str | Iterable[str] = "all"
    protocol: str = "acquire"
    meanings: str | MeaningSpace | tuple[int, int] = "5x10"
    vocab_size: int = 4
    word_length: int = 4
    seeds: int | str | Iterable[int] = 3
    target: float | None = None
    cap: float | None = None
    held_out: float = 0.2
    split: str = "random"
    hidden: int | str | Iterable[int] = 128
    representation: str = "soft"
    preset: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    device: str = "auto"
    workers: int | None = None
    runner: str = "local"
    per_gpu: int = 1
    engine: str = "auto"
    out: str | Path = "icy-results"
    rerun: str = "missing"
    plugin: str | Path | Iterable[str | Path] = ()
    track: str | Iterable[str] = ()


@dataclass(frozen=True)
class Row:
    """One model on all grammars and seeds, and what is on file of it.

    Attributes:
        job: all the replicates of the row, baselines first.
        missing: those that are to be trained now.
        filed: the records of the others.
    """

    job: Job
    missing: tuple[Replicate, ...]
    filed: tuple[Record, ...] = ()

    @classmethod
    def of(cls, job: Job, store: Store, rerun: str) -> Row:
        """The row of a job, as the store and what is to be run again have it."""
        keys = {job.key(r): r for r in job.replicates}
        wanted = to_run(keys, store, rerun)
        found = [store.get(key) for key in keys if key not in wanted]
        missing = tuple(r for key, r in keys.items() if key in wanted)
        return cls(job, missing, tuple(r for r in found if r is not None))

    @property
    def name(self) -> str:
        """The model."""
        return self.job.task.entry.qualified

    @property
    def facts(self) -> dict[str, str]:
        """What rows of one model may differ in, by name."""
        job, task = self.job, self.job.task
        return {
            "hidden size": str(task.hidden_size),
            "meanings": str(task.space),
            "V": str(task.vocab_size),
            "w": str(task.word_length),
            "representation": task.representation,
            "protocol": job.protocol.name,
            "target": f"{job.protocol.target:g}",
            "cap": f"{job.protocol.cap:g}",
            "preset": job.preset,
        }

    def baselines(self) -> dict[int, int | str]:
        """Concat's steps by seed, as far as it is on file."""
        return baselines_of(self.filed)

    def with_records(self, records: Sequence[Record]) -> Row:
        """The row after some of its replicates were trained."""
        done = {(r["grammar"], r["seed"]) for r in records}
        missing = tuple(r for r in self.missing if (r.grammar, r.seed) not in done)
        return replace(self, missing=missing, filed=(*self.filed, *records))


@dataclass(frozen=True)
class Plan:
    """Everything a probe is going to do."""

    rows: tuple[Row, ...]
    store: Store
    device: str
    workers: int
    runner: str = "local"
    per_gpu: int = 1

    @property
    def total(self) -> int:
        """Replicates to train."""
        return sum(len(row.missing) for row in self.rows)

    @property
    def varying(self) -> list[str]:
        """The names of the facts in which its rows differ."""
        facts = [row.facts for row in self.rows]
        found = [name for name in (facts[0] if facts else ()) if len({fact[name] for fact in facts}) > 1]
        # Targets and caps go with the protocol, unless they were asked for.
        own = {name: len({(fact["protocol"], fact[name]) for fact in facts}) for name in found}
        protocols = len({fact["protocol"] for fact in facts})
        return [name for name in found if name not in ("target", "cap") or own[name] > protocols]

    @property
    def hidden_sizes(self) -> list[int]:
        """Those of its rows, each once."""
        return list(dict.fromkeys(row.job.task.hidden_size for row in self.rows))


def make_plan(spec: ProbeSpec, tried: set[LanguageKey] | None = None) -> Plan:
    """What a probe is going to do, without doing it. Errors as for `probe`.

    Args:
        spec: what was asked for.
        tried: languages that are known to be possible; those of this plan join them.
    """
    for file in [spec.plugin] if isinstance(spec.plugin, (str, Path)) else spec.plugin:
        registry.load_file(file)
    space, seeds, sizes = MeaningSpace.of(spec.meanings), seed_list(spec.seeds), hidden_list(spec.hidden)
    from icy.representations import get_representation  # imports torch

    representation = get_representation(spec.representation).name
    entries = _usable(spec.model, representation)
    protocol = get_protocol(spec.protocol, spec.target, spec.cap, representation)
    blank = Job(
        Task(entries[0], space, spec.vocab_size, spec.word_length, sizes[0], representation, dict(spec.options)),
        protocol,
        settings_for(spec.preset, **spec.settings),
        (),
        device=_device(spec),
        engine=spec.engine,
        folder=str(spec.out),
        preset=spec.preset,
        split=_split(spec, protocol, space),
    )
    tried = set() if tried is None else tried
    tasks = [replace(blank.task, entry=entry, hidden_size=size) for entry in entries for size in sizes]
    rows = tuple(_make_row(replace(blank, task=task), spec, seeds, tried) for task in tasks)
    return planned(spec, rows)


def planned(spec: ProbeSpec, rows: Sequence[Row]) -> Plan:
    """The plan of some rows, on the runner, the device and the workers that were asked for.

    Raises:
        InvalidSettingError: fewer than one worker, more than one to share no GPU, or a model or grammar of a notebook
            for another machine.
    """
    device = _device(spec)
    if spec.per_gpu < 1:
        raise InvalidSettingError(f"per_gpu must be at least 1, not {spec.per_gpu}.")
    workers = plan_workers(spec.workers, device, rows)
    if spec.runner == "local":
        if spec.per_gpu != 1:
            raise InvalidSettingError("per_gpu is for --runner ray; on this machine --workers share the GPU.")
        return Plan(tuple(rows), Store(spec.out), device, workers)
    for row in rows:
        _refuse_notebook(row)
    return Plan(tuple(rows), Store(spec.out), device, spec.workers or 0, spec.runner, spec.per_gpu)


def _device(spec: ProbeSpec) -> str:
    """Where to compute; of a cluster it is not known before it is there."""
    if spec.runner not in RUNNERS:
        raise unknown("runner", spec.runner, RUNNERS)
    if spec.runner == "local":
        return resolve_device(spec.device)
    if spec.device not in ON_CLUSTERS:
        raise unknown("device of a cluster", spec.device, ON_CLUSTERS, "Its tasks see no GPU but their own.")
    return spec.device


def _refuse_notebook(row: Row) -> None:
    """Other machines cannot import what was defined in a notebook or at a prompt."""
    entry = row.job.task.entry
    grammars = {name for replicate in row.job.replicates for name in replicate.grammar.split("+")}
    used = [entry, *([entry.cell] if entry.cell else []), *(registry.get(name, "grammar") for name in grammars)]
    for one in used:
        if one.origin == "__main__":
            raise InvalidSettingError(
                f"'{one.name}' is defined in a notebook or script, which other machines cannot import: save it in a "
                'file of its own, mine.py, and pass plugin="mine.py" (--plugin mine.py); or use the local runner.'
            )


def _split(spec: ProbeSpec, protocol: Protocol, space: MeaningSpace) -> Split | None:
    """Which meanings are held out, if any."""
    split = Split(spec.split, spec.held_out)
    if protocol.holds_out:
        split.check(space)
        return split
    if split != Split(ProbeSpec.split, ProbeSpec.held_out):
        raise InvalidSettingError(
            f"The protocol '{protocol.name}' holds out no meanings; held_out and split are for 'generalise'."
        )
    return None


def _usable(models: str | Iterable[str], representation: str) -> list[Entry]:
    """The models that are meant; of those a wildcard stands for, the ones that work with the representation."""
    patterns = [models] if isinstance(models, str) else list(models)
    entries: dict[str, Entry] = {}
    for pattern in patterns:
        found = registry.match(pattern, *SIDES)
        usable = [entry for entry in found if entry.works_with(representation)]
        if not usable:
            raise cannot_use(found[0], representation)
        if len(usable) < len(found):
            left_out = ", ".join(entry.qualified for entry in found if entry not in usable)
            log.warning("Left out, since they do not work with '%s': %s.", representation, left_out)
        entries.update((entry.qualified, entry) for entry in usable)
    if not entries:
        raise InvalidSettingError("No model was given; `icy list models` shows what there is.")
    return list(entries.values())


def _make_row(blank: Job, spec: ProbeSpec, seeds: list[int], tried: set[LanguageKey]) -> Row:
    task = blank.task
    names = [BASELINE, *(g for g in expand_grammars(spec.grammar, task.side) if g != BASELINE)]
    for name in names:  # now, so that a grammar that cannot be made at these sizes does not stop a long run later
        language = (name, task.space, task.vocab_size, task.word_length)
        if language not in tried:
            make_language(*language, seeds[0])
            tried.add(language)
    replicates = tuple(Replicate(name, seed) for name in names for seed in seeds)
    job = replace(blank, replicates=replicates, parameters=parameter_counts(task))
    return Row.of(job, Store(spec.out), spec.rerun)


def plan_workers(asked: int | None, device: str, rows: Sequence[Row]) -> int:
    """How many processes to use: unless told, one for a GPU, and on a CPU one per core; no more than there is to do.

    Raises:
        InvalidSettingError: fewer than one was asked for.
    """
    if asked is not None and asked < 1:
        raise InvalidSettingError(f"workers must be at least 1, not {asked}.")
    workers = asked or (usable_cores() if device == "cpu" else 1)
    return max(1, min(workers, sum(len(row.missing) for row in rows)))


def parameter_counts(task: Task) -> dict[str, int]:
    """`count_parameters` of the model of a task."""
    from icy.training.engine import make_model

    return count_parameters(make_model(task, FIRST_SEED, settings_for("default")))
