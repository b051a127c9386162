"""`icy.iterate`: pass languages from learner to learner."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack, cast

from icy.config.options import ChainOptions
from icy.config.settings import settings_for
from icy.config.specs import ChainSpec, spell_out
from icy.config.types import Grammars
from icy.core.checks import seed_list
from icy.core.surroundings import standard_state
from icy.grammars import expand_grammars
from icy.training.chains.chain_job import ChainJob, ChainProtocol, bottleneck_share
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate
from icy.training.tasks import Task

from .display import with_progress
from .plan import make_plan
from .probe import parameter_counts, usable_models
from .results import ProbeResult
from .run import run_plan
from .trackers.make import watching
from .user_languages import UserGrammars
from .user_models import Models, with_model_names
from .watcher import Watcher

NO_TARGET = "none"


@standard_state()
def iterate(
    model: Models,
    grammar: Grammars = "all",
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[ChainOptions],
) -> ProbeResult:
    """Pass languages from learner to learner, and measure how much of the first language survives.

    Each learner is a new sender. It trains on the messages of the learner before it for a part of the meanings, and
    then speaks for all meanings. Finished chains are kept in the folder `out`; the same call again, or one with more
    languages or chains, trains only missing chains.

    Args:
        model: names or wildcards of senders; or a class or function that makes a sender, or a PyTorch module.
        grammar: first languages: names, chains or wildcards of grammars; or a Language, or a file of one.
        watcher: callbacks that observe the run.
        progress: whether its progress is shown; by default in notebooks and on terminals, and a line a minute
            elsewhere, unless there is a watcher or the environment has ICY_PROGRESS=0.
        **options: the other fields of ChainSpec.

    Returns:
        The results of this call's chains. The value of a chain is its survival: the share of the tokens that are the
        same in the first and the last language. Its curve has a point for the first language and one per generation.

    Raises:
        IcyError: an unknown name, or a value that is not accepted.
        KeyboardInterrupt: at Ctrl-C. Finished chains are kept; uncaught, it ends a script with a sentence.

    Example:
        >>> import icy, tempfile
        >>> result = icy.iterate("FC2L", ["perm", "hol"], quick=True, workers=1, out=tempfile.mkdtemp())
        >>> [(record["grammar"], record["seed"], len(record["curve"])) for record in result.records]
        [('perm', 123, 4), ('perm', 124, 4), ('hol', 123, 4), ('hol', 124, 4)]
    """
    spec = with_model_names(ChainSpec.asked(model=model, grammar=grammar, **options), "model")
    return run_plan(make_plan(spec), watching(with_progress(watcher, progress), spec.track, spec.out))


spell_out(iterate, ChainSpec, ProbeResult)


def chain_jobs(spec: ChainSpec) -> list[ChainJob]:
    """Return the jobs of a spec, one per model and combination of settings. Errors as for `iterate`."""
    return jobs_of_each(spec, _jobs)


def _jobs(spec: ChainSpec) -> list[ChainJob]:
    """Return the jobs of a spec with one value along each axis."""
    from icy.core.representations import get_representation  # imports torch

    seeds, given = seed_list(spec.chains), UserGrammars.of(spec.grammar, spec)
    space, vocab_size, word_length = given.sizes(spec, with_concat=False)
    representation = get_representation(str(spec.representation)).name
    target = None if str(spec.target).lower() == NO_TARGET else cast(float, spec.target)
    protocol = ChainProtocol(
        spec.generations, bottleneck_share(spec.bottleneck, space), str(spec.transmission), target, spec.updates
    )
    protocol.split(space)  # raises if the space is too small
    names = expand_grammars(given.names, "sender")
    replicates = tuple(Replicate(name, seed) for name in names for seed in seeds)
    jobs = []
    for entry in usable_models(spec.model, representation, ("sender",)):
        sizes = space, vocab_size, word_length, cast(int, spec.hidden)
        task = Task(entry, *sizes, representation, dict(spec.options))
        settings = settings_for(str(spec.preset), **spec.settings)
        blank = ChainJob(
            *(task, protocol, settings), replicates=replicates, languages=given.languages, preset=str(spec.preset)
        )
        for name in names:  # now, so that a grammar that cannot be made does not stop a long run later
            blank.language(Replicate(name, seeds[0]))
        jobs.append(replace(blank, parameters=parameter_counts(task)))
    return jobs
