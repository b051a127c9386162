"""`icy.probe`: measure which grammars a model learns easily."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Unpack

from icy.config.options import ProbeOptions
from icy.config.protocols import BASELINE, Protocol, get_protocol
from icy.config.settings import Grammars, TrainingSettings, settings_for, with_budget
from icy.config.specs import ProbeSpec, spell_out
from icy.core.checks import FIRST_SEED, hidden_list, seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import SIDES, Entry, registry, without_choices
from icy.core.surroundings import standard_state
from icy.core.text import words
from icy.grammars import expand_grammars
from icy.languages.frequencies import Frequencies
from icy.languages.meanings import MeaningSpace
from icy.languages.splits import Split
from icy.models.creation import cannot_use, count_parameters
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate
from icy.training.probe_job import ProbeJob
from icy.training.tasks import Task

from .display import callbacks_of
from .idle import without_idle
from .plan import make_plan
from .progress import Watcher
from .results import ProbeResult
from .run import run_plan
from .user_languages import UserGrammars, with_space
from .user_models import Models, with_model_names

log = logging.getLogger(__name__)


@standard_state()
def probe(
    model: Models,
    grammar: Grammars = "all",
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[ProbeOptions],
) -> ProbeResult:
    """Measure which grammars a model learns easily.

    Finished replicates are kept in the folder `out`. If you repeat the call, also with more grammars or seeds, only
    missing replicates are trained. Concat is always included, as the baseline.

    Args:
        model: names or wildcards of senders and receivers; or a class or function that makes a model, or a PyTorch
            module.
        grammar: names, chains or wildcards of grammars; or languages, as Language objects or files.
        watcher: callbacks that observe the run.
        progress: whether to show the progress of the run. By default it is shown live in notebooks and on terminals,
            and as a line a minute elsewhere, unless a watcher is given or the environment has ICY_PROGRESS=0.
        **options: the other fields of ProbeSpec.

    Returns:
        The results of this call's replicates, trained now or on file.

    Raises:
        IcyError: invalid arguments, such as an unknown name, or a folder that cannot be written.
        KeyboardInterrupt: at Ctrl-C. Finished replicates are kept. If it is not caught, the script ends with a sentence
            instead of a traceback.

    Example:
        >>> import icy, tempfile
        >>> result = icy.probe("sender/FC2L", ["perm", "rot"], quick=True, workers=1, out=tempfile.mkdtemp())
        >>> result.to_dataframe("wide").columns.get_level_values(0).unique().tolist()
        ['concat', 'perm', 'rot']
    """
    spec = with_model_names(ProbeSpec.asked(model=model, grammar=grammar, **options), "model")
    return run_plan(make_plan(spec), callbacks_of(spec, watcher, progress))


spell_out(probe, ProbeSpec, ProbeResult)


def probe_jobs(spec: ProbeSpec) -> list[ProbeJob]:
    """Return the jobs of a probe: a job per model, hidden size and combination of settings. Errors as for `probe`."""
    return jobs_of_each(spec, _jobs, prepare=without_idle)


def _jobs(spec: ProbeSpec) -> list[ProbeJob]:
    """Return the jobs of a probe with one value along each axis."""
    seeds, sizes = seed_list(spec.seeds), hidden_list(spec.hidden)
    user_grammars = UserGrammars.of(spec.grammar, spec)
    spec, frequencies = with_space(spec)
    space, vocab_size, word_length = user_grammars.sizes(spec)
    word_lengths = user_grammars.word_lengths(spec)
    from icy.core.representations import get_representation  # imports torch

    representation = get_representation(str(spec.representation)).name
    entries = usable_models(spec.model, representation)
    protocol = get_protocol(str(spec.protocol), spec.target, spec.cap, representation, spec.max_updates)
    settings = with_budget(settings_for(str(spec.preset), **spec.settings), protocol.max_updates)
    split = _split(spec, protocol, space, frequencies)
    blank = ProbeJob(
        Task(
            *(entries[0], space, vocab_size, word_length, sizes[0], representation, dict(spec.options)),
            word_lengths=word_lengths,
        ),
        protocol,
        settings,
        split,
        draws=str(spec.draws),
        frequencies=frequencies,
        preset=str(spec.preset),
    )
    tasks = [replace(blank.task, entry=entry, hidden_size=size) for entry in entries for size in sizes]
    word_seeds: Sequence[int | None] = [None] if spec.word_seeds is None else seed_list(spec.word_seeds)
    if spec.word_seeds is not None and word_lengths and frequencies is not None and frequencies.depends_on_seed:
        raise InvalidSettingError(
            f"word_seeds need words that do not depend on the order of frequencies ({frequencies.law}): give a single "
            "word length, or a table of meanings with weights."
        )
    if spec.word_seeds is not None and user_grammars.languages:
        raise InvalidSettingError(
            f"word_seeds are for grammars; the language {next(iter(user_grammars.languages))} has its own words."
        )
    blanks = [replace(blank, task=task, word_seed=seed) for task in tasks for seed in word_seeds]
    return [_complete(one, user_grammars, seeds) for one in blanks]


def _split(spec: ProbeSpec, protocol: Protocol, space: MeaningSpace, frequencies: Frequencies | None) -> Split | None:
    """Return the split of the meanings, if the protocol has held-out meanings."""
    split = Split(spec.split, spec.held_out)
    if protocol.holds_out:
        split.check(space)
        if frequencies is not None and frequencies.numbers is not None:
            for seed in seed_list(spec.seeds):
                split.held_out(space, seed, frequencies.numbers)
        return split
    if split != Split(ProbeSpec.split, ProbeSpec.held_out):
        raise InvalidSettingError(
            f"The protocol '{protocol.name}' holds out no meanings; held_out and split are for 'generalise'."
        )
    return None


def usable_models(models: str | Iterable[str], representation: str, sides: Sequence[str] = SIDES) -> list[Entry]:
    """Return the models of these sides that match.

    A wildcard matches only models that work with a representation, and families with choices only if nothing else fits.
    """
    entries: dict[str, Entry] = {}
    for pattern in words(models):
        found = without_choices(registry.match(pattern, *sides))
        usable = [entry for entry in found if entry.works_with(representation)]
        if not usable:
            raise cannot_use(found[0], representation)
        if len(usable) < len(found):
            left_out = ", ".join(entry.qualified for entry in found if entry not in usable)
            log.warning("Left out, since they do not work with '%s': %s.", representation, left_out)
        entries.update((entry.qualified, entry) for entry in usable)
    if not entries:
        raise InvalidSettingError("No model was given; `icy list models` shows all.")
    return list(entries.values())


def _complete(blank: ProbeJob, user_grammars: UserGrammars, seeds: list[int]) -> ProbeJob:
    """Return a job with its replicates (concat first) and its numbers of parameters."""
    task = blank.task
    names = [BASELINE, *(g for g in expand_grammars(user_grammars.names, task.side) if g != BASELINE)]
    replicates = tuple(Replicate(name, seed) for name in names for seed in seeds)
    job = replace(blank, replicates=replicates, languages=user_grammars.languages, parameters=parameter_counts(task))
    if task.word_lengths:
        require_ends(task, job.training)
    for name in names:  # made now, so that a grammar that does not fit these sizes fails before a long run
        job.language(Replicate(name, seeds[0]))
    return job


def require_ends(task: Task, settings: TrainingSettings) -> None:
    """Raise IncompatibleError if the model of a task does not take messages that end early."""
    if not getattr(task.entry.load(), "takes_ends", True):
        raise IncompatibleError(
            f"{task.entry.qualified} declares that it does not take messages that end early: give a single word length."
        )
    from icy.training.learners import supervised_loss
    from icy.training.task_models import representation_of

    supervised_loss(representation_of(task, settings), task.side, ends=True)


def parameter_counts(task: Task) -> dict[str, int]:
    """Return `count_parameters` of the model of a task."""
    from icy.training.task_models import make_model

    return count_parameters(make_model(task, FIRST_SEED, settings_for("default")))
