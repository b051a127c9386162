"""`icy.iterate`: pass languages from learner to learner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from icy.config.kinds import values_for
from icy.config.options import ChainOptions
from icy.config.requests import spell_out
from icy.config.settings import SCHEMES, Grammars, settings_for
from icy.core.checks import seed_list
from icy.core.errors import require_known
from icy.core.surroundings import standard_state
from icy.core.text import words
from icy.grammars import expand_grammars
from icy.languages.meanings import MeaningSpace
from icy.models.creation import cannot_use
from icy.records.kinds import JobKind
from icy.training.chain_settings import ChainRequest, ChainSettings, bottleneck_share, chain_conventions
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate
from icy.training.language_job import LanguageJob

from .display import run_request
from .e2e import pair_entries, pair_parameter_counts
from .probe import language_values, parameter_counts, usable_models, with_languages
from .progress import Watcher
from .results import ProbeResult
from .user_languages import UserGrammars

if TYPE_CHECKING:
    from .user_models import Models

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
        **options: the other fields of ChainRequest.

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
    return run_request(ChainRequest.asked(model=model, grammar=grammar, **options), watcher, progress)


spell_out(iterate, ChainRequest, ProbeResult)


def chain_jobs(request: Any) -> list[LanguageJob]:
    """Return the jobs of a request, one per model and combination of settings. Errors as for `iterate`."""
    if request.scheme is not None:  # its options that are not given
        require_known("scheme", request.scheme, SCHEMES)
        options = {name: value for name, value in SCHEMES[request.scheme].items() if name not in request.given}
        request = replace(request, **options).with_given(request.given)
    return jobs_of_each(request, _rows)


def _rows(request: Any) -> list[LanguageJob]:
    """Return the jobs of a request with one value along each axis, one per model or pair."""
    seeds, given = seed_list(request.chains), UserGrammars.of(request.grammar, request)
    values = values_for(ChainSettings, request) | language_values(request, given, with_concat=False)
    values["bottleneck"] = bottleneck_share(request.bottleneck, MeaningSpace.of(values["meanings"]))
    values["target"] = None if str(request.target).lower() == NO_TARGET else request.target
    jobs = []
    for models in _models(request, values["representation"]):
        training = settings_for(request.preset, "e2e" if len(models) > 1 else "probe", **request.settings)
        settings = ChainSettings(**{**values, **models, "training": training})
        settings.split()  # raises if the space is too small
        names = expand_grammars(given.names, "receiver" if settings.side == "receiver" else "sender")
        replicates = tuple(Replicate(name, seed) for name in names for seed in seeds)
        counts = pair_parameter_counts(settings.pair) if settings.receiver else parameter_counts(settings.learners[0])
        job = LanguageJob(settings=settings, replicates=replicates, languages=given.languages, parameters=counts)
        jobs.append(with_languages(job))
    return jobs


def _models(request: Any, representation: str) -> list[dict[str, str]]:
    """Return the models of each row, by field: a sender, a receiver, or both."""
    if words(request.receiver):
        pairs = pair_entries(request.model, request.receiver)
        for entry in (entry for pair in pairs for entry in pair):
            if not entry.works_with(representation):
                raise cannot_use(entry, representation)
        return [{"model": sender.name, "receiver": receiver.name} for sender, receiver in pairs]
    receivers = [name for name in words(request.model) if name.startswith(RECEIVERS)]
    senders = [name for name in words(request.model) if name not in receivers]
    entries = usable_models(senders, representation, ("sender",)) if senders or not receivers else []
    entries += usable_models(receivers, representation, ("receiver",)) if receivers else []
    return [{"model": entry.qualified} for entry in entries]


CHAIN = JobKind(
    "chain",
    request=ChainRequest,
    jobs=chain_jobs,
    train="icy.training.chain_training:train_chains",
    rehearse="icy.training.chain_training:rehearse",
    conventions=chain_conventions,
    noun="chains",
    baseline=False,
    counted="generations",
    command="iterate",
    measures=(
        *("agreement", "distinct", "seen_accuracy", "unseen_accuracy", "topsim", "posdis", "bosdis", "reached"),
        "communication",
    ),
    curve=(
        *("generation", "accuracy", "agreement", "distinct", "seen_accuracy", "unseen_accuracy", "updates"),
        *("topsim", "posdis", "bosdis", "communication"),
    ),
)
