"""`icy.iterate`: pass languages from learner to learner."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack, cast

from icy.config.options import ChainOptions
from icy.config.settings import SCHEMES, Grammars, settings_for
from icy.config.specs import ChainSpec, spell_out
from icy.core.checks import seed_list
from icy.core.errors import InvalidSettingError, require_known
from icy.core.surroundings import standard_state
from icy.core.text import words
from icy.grammars import expand_grammars
from icy.languages.meanings import MeaningSpace
from icy.models.creation import cannot_use
from icy.training.chain_job import ChainJob, ChainProtocol, bottleneck_share
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate
from icy.training.tasks import PairTask, Task

from .display import callbacks_of
from .e2e import pair_entries, pair_parameter_counts
from .plan import make_plan
from .probe import parameter_counts, usable_models
from .progress import Watcher
from .results import ProbeResult
from .run import run_plan
from .user_languages import UserGrammars
from .user_models import Models, with_model_names

NO_TARGET = "none"
RECEIVERS = "receiver/"  # beginning of names and wildcards of receivers


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

    Each learner is a new sender, receiver or pair. It trains on the messages of the learner before it for a part of the
    meanings, and then speaks for all meanings. Finished chains are kept in the folder `out`; the same call again, or
    one with more languages or chains, trains only missing chains.

    Args:
        model: names or wildcards of senders, or of receivers as in "receiver/FC2L"; or a class or function that makes a
            model, or a PyTorch module. With the option `receiver`, the senders of pairs.
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
    spec = with_model_names(ChainSpec.asked(model=model, grammar=grammar, **options), "model", "receiver")
    return run_plan(make_plan(spec), callbacks_of(spec, watcher, progress))


spell_out(iterate, ChainSpec, ProbeResult)


def chain_jobs(spec: ChainSpec) -> list[ChainJob]:
    """Return the jobs of a spec, one per model and combination of settings. Errors as for `iterate`."""
    return jobs_of_each(_with_scheme(spec), _jobs)


def _with_scheme(spec: ChainSpec) -> ChainSpec:
    """Return a spec with the options of its scheme that are not given."""
    if spec.scheme is None:
        return spec
    require_known("scheme", spec.scheme, SCHEMES)
    options = {name: value for name, value in SCHEMES[spec.scheme].items() if name not in spec.given}
    return replace(spec, **options).with_given(spec.given)


def _jobs(spec: ChainSpec) -> list[ChainJob]:
    """Return the jobs of a spec with one value along each axis."""
    from icy.core.representations import get_representation  # imports torch

    seeds, given = seed_list(spec.chains), UserGrammars.of(spec.grammar, spec)
    space, vocab_size, word_length = given.sizes(spec, with_concat=False)
    representation = get_representation(str(spec.representation)).name
    target = None if str(spec.target).lower() == NO_TARGET else cast(float, spec.target)
    protocol = ChainProtocol(
        *(spec.generations, bottleneck_share(spec.bottleneck, space), str(spec.transmission), target, spec.updates),
        interaction=cast(int, spec.interaction),
        population=cast(int, spec.population),
        replacement=str(spec.replacement),
    )
    protocol.split(space)  # raises if the space is too small
    jobs = []
    for task in _tasks(spec, (space, vocab_size, word_length, cast(int, spec.hidden), representation)):
        pair = isinstance(task, PairTask)
        settings = settings_for(str(spec.preset), "e2e" if pair else "probe", **spec.settings)
        names = expand_grammars(given.names, "receiver" if task.side == "receiver" else "sender")
        replicates = tuple(Replicate(name, seed) for name in names for seed in seeds)
        blank = ChainJob(
            *(task, protocol, settings),
            replicates=replicates,
            languages=given.languages,
            draws=str(spec.draws),
            preset=str(spec.preset),
        )
        for name in names:  # now, so that a grammar that cannot be made does not stop a long run later
            blank.language(Replicate(name, seeds[0]))
        counts = pair_parameter_counts(task, settings) if isinstance(task, PairTask) else parameter_counts(task)
        jobs.append(replace(blank, parameters=counts))
    return jobs


def _tasks(spec: ChainSpec, sizes: tuple[MeaningSpace, int, int, int, str]) -> list[Task | PairTask]:
    """Return the senders, receivers or pairs of a spec with one value along each axis.

    Args:
        spec: the spec.
        sizes: meanings, V, w, E and representation.
    """
    representation = sizes[-1]
    if words(spec.receiver):
        options = dict(spec.options), dict(spec.receiver_options)
        pairs = pair_entries(spec.model, spec.receiver)
        for entry in (one for pair in pairs for one in (pair.sender, pair.receiver)):
            if not entry.works_with(representation):
                raise cannot_use(entry, representation)
        return [PairTask(pair, *sizes, representation, *options) for pair in pairs]
    for name in ("receiver_options", "interaction"):
        if getattr(spec, name):
            raise InvalidSettingError(f"The option {name} is for chains of pairs: give a receiver (--receiver) too.")
    receivers = [name for name in words(spec.model) if name.startswith(RECEIVERS)]
    senders = [name for name in words(spec.model) if name not in receivers]
    entries = usable_models(senders, representation, ("sender",)) if senders or not receivers else []
    entries += usable_models(receivers, representation, ("receiver",)) if receivers else []
    return [Task(entry, *sizes, dict(spec.options)) for entry in entries]
