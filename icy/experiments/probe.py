"""`icy.probe`: plan and run a probe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from icy.config.protocols import BASELINE, Protocol, get_protocol
from icy.config.settings import settings_for
from icy.config.specs import ProbeSpec, spell_out
from icy.core.checks import hidden_list, seed_list
from icy.core.errors import InvalidSettingError
from icy.core.registry import SIDES, Entry, registry
from icy.experiments.trackers.make import watching
from icy.grammars import expand_grammars, make_language
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import Split
from icy.models.factory import cannot_use
from icy.records.store import Store
from icy.training.job import Job, Replicate, Task

from .plan import Plan, Row, _device, log, parameter_counts, planned
from .results import ProbeResult
from .run import run_plan
from .watcher import Watcher

LanguageKey = tuple[str, MeaningSpace, int, int]  # grammar, space, V and w


def probe(
    model: str | Iterable[str], grammar: str | Iterable[str] = "all", *, watcher: Watcher | None = None, **options: Any
) -> ProbeResult:
    """Measure which grammars a model learns easily.

    Finished replicates are kept in the folder `out`; the same call again, or one with more grammars or seeds, trains
    only what is missing. Concat is always included, as the baseline.

    Args:
        model: names or wildcards of senders and receivers.
        grammar: names, chains or wildcards.
        watcher: told of progress.
        **options: protocol, meanings, vocab_size, word_length, seeds, target, cap, held_out, split, hidden,
            representation, preset, options, settings, quick, device, workers, runner, per_gpu, engine, out, rerun,
            plugin, track; ProbeSpec describes each.

    Returns:
        The results of this call's replicates, trained now or on file.

    Raises:
        IcyError: an unknown name, a value that cannot be, a folder that cannot be written, and the like.
        KeyboardInterrupt: at Ctrl-C. What had finished is kept.

    Example:
        >>> import icy, tempfile
        >>> result = icy.probe("sender/FC2L", ["perm", "rot"], quick=True, workers=1, out=tempfile.mkdtemp())
        >>> result.to_dataframe("wide").columns.get_level_values(0).unique().tolist()
        ['concat', 'perm', 'rot']
    """
    spec = ProbeSpec.asked(model=model, grammar=grammar, **options)
    plan = make_plan(spec)
    return run_plan(plan, watching(watcher, spec.track, spec.out))


spell_out(probe, ProbeSpec, ProbeResult)


def make_plan(spec: ProbeSpec, tried: set[LanguageKey] | None = None) -> Plan:
    """What a probe is going to do, without doing it. Errors as for `probe`.

    Args:
        spec: what was asked for.
        tried: languages that are known to be possible; those of this plan join them.
    """
    for file in [spec.plugin] if isinstance(spec.plugin, (str, Path)) else spec.plugin:
        registry.load_file(file)
    space, seeds, sizes = MeaningSpace.of(spec.meanings), seed_list(spec.seeds), hidden_list(spec.hidden)
    from icy.core.representations import get_representation  # imports torch

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
