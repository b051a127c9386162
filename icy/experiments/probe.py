"""`icy.probe`: measure which grammars a model learns easily."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from icy.config.kinds import values_for
from icy.config.options import ProbeOptions
from icy.config.protocols import BASELINE, SCRATCH
from icy.config.requests import spell_out
from icy.config.settings import Grammars, settings_for, with_budget
from icy.core.checks import FIRST_SEED, seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import SIDES, Entry, registry, without_choices
from icy.core.surroundings import standard_state
from icy.core.text import words
from icy.core.types import Choices
from icy.grammars import expand_grammars
from icy.models.creation import cannot_use, count_parameters
from icy.records.kinds import JobKind
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate
from icy.training.language_job import LanguageJob
from icy.training.probe_settings import ProbeRequest, ProbeSettings

from .display import run_request
from .progress import Watcher
from .results import ProbeResult
from .user_languages import UserGrammars, with_space

if TYPE_CHECKING:
    from .user_models import Models

J = TypeVar("J", bound=LanguageJob)
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
        **options: the other fields of ProbeRequest.

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
    return run_request(ProbeRequest.asked(model=model, grammar=grammar, **options), watcher, progress)


spell_out(probe, ProbeRequest, ProbeResult)


def probe_jobs(request: Any) -> list[LanguageJob]:
    """Return the jobs of a probe: a job per model and combination of settings. Errors as for `probe`."""
    return jobs_of_each(request, _rows)


def _rows(request: Any) -> list[LanguageJob]:
    """Return the jobs of a probe with one value along each axis."""
    seeds, given = seed_list(request.seeds), UserGrammars.of(request.grammar, request)
    request, frequencies = with_space(request)
    values = values_for(ProbeSettings, request) | language_values(request, given)
    values["word_lengths"] = lengths = given.word_lengths(request)
    entries = usable_models(request.model, values["representation"])
    word_seeds: Sequence[int | None] = [None] if request.word_seeds is None else seed_list(request.word_seeds)
    if request.word_seeds is not None and lengths and frequencies is not None and frequencies.depends_on_seed:
        raise InvalidSettingError(
            f"word_seeds need words that do not depend on the order of frequencies ({frequencies.law}): give a single "
            "word length, or a table of meanings with weights."
        )
    if request.word_seeds is not None and given.languages:
        raise InvalidSettingError(
            f"word_seeds are for grammars; the language {next(iter(given.languages))} has its own words."
        )
    training = settings_for(request.preset, **request.settings)
    jobs = []
    for entry in entries:
        first = ProbeSettings(**{**values, "model": entry.qualified, "training": training})
        first = replace(first, training=with_budget(training, first.rules.max_updates))
        if (split := first.held_out_meanings) is not None:
            split.check(first.space)
            for seed in seeds if frequencies is not None and frequencies.numbers is not None else ():
                split.held_out(first.space, seed, frequencies.numbers)  # type: ignore[union-attr]
        if lengths:
            require_ends(first)
        names = [BASELINE, *(g for g in expand_grammars(given.names, entry.kind) if g != BASELINE)]
        replicates = tuple(Replicate(name, seed) for name in names for seed in seeds)
        counts = parameter_counts(first)
        for word_seed in word_seeds:
            job = LanguageJob(settings=replace(first, word_seed=word_seed), replicates=replicates, parameters=counts,
                              languages=given.languages, frequencies=frequencies)  # fmt: skip
            jobs.append(with_languages(job))
    return jobs


def language_values(request: Any, given: UserGrammars, with_concat: bool = True) -> Choices:
    """Return the values of the fields that depend on the languages of a user, and the name of the representation."""
    from icy.core.representations import get_representation  # imports torch

    space, vocab_size, word_length = given.sizes(request, with_concat)
    representation = get_representation(str(request.representation)).name
    sizes = {"meanings": str(space), "vocab_size": vocab_size, "word_length": word_length}
    return {**sizes, "representation": representation, "draws": str(request.draws), "preset": str(request.preset)}


def with_languages(job: J) -> J:
    """Return a job after its languages were made, so that a grammar that does not fit fails before a long run."""
    for name in dict.fromkeys(r.condition for r in job.replicates):
        if name != SCRATCH:
            job.language(Replicate(name, job.replicates[0].seed))
    return job


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


def require_ends(settings: ProbeSettings) -> None:
    """Raise IncompatibleError if a model does not take messages that end early."""
    if not getattr(settings.entry.load(), "takes_ends", True):
        raise IncompatibleError(
            f"{settings.model} declares that it does not take messages that end early: give a single word length."
        )
    from icy.training.learners import supervised_loss
    from icy.training.task_models import representation_of

    supervised_loss(representation_of(settings, settings.training), settings.side, ends=True)


def parameter_counts(settings: ProbeSettings) -> dict[str, int]:
    """Return `count_parameters` of a model."""
    from icy.training.task_models import make_model

    return count_parameters(make_model(settings, FIRST_SEED, settings_for("default")))


PROBE = JobKind(
    "probe",
    request=ProbeRequest,
    jobs=probe_jobs,
    train="icy.training.engine:train",
    rehearse="icy.training.engine:rehearse",
    measures=("train_accuracy",),
    model="icy.training.task_models:probe_model",
)
