"""`icy.e2e`, also called `icy.end_to_end`: train a sender and a receiver together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from icy.config.kinds import values_for
from icy.config.options import EndToEndOptions
from icy.config.protocols import BASELINE, SCRATCH
from icy.config.requests import spell_out
from icy.config.settings import OPEN, Grammars, settings_for
from icy.core.checks import seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import SIDES, Entry, registry, without_choices
from icy.core.surroundings import standard_state
from icy.core.text import counted, several
from icy.grammars import expand_grammars
from icy.languages.frequencies import EQUAL, Frequencies
from icy.models.creation import cannot_use
from icy.records.kinds import JobKind
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate
from icy.training.language_job import PairJob
from icy.training.pair_settings import EndToEndRequest, EndToEndSettings, pair_conventions

from .display import run_request
from .probe import language_values, with_languages
from .progress import Watcher
from .results import EndToEndResult
from .user_languages import UserGrammars, with_space

if TYPE_CHECKING:
    import pandas as pd

    from icy.analysis.tables.printed_table import BiasTable

    from .user_models import Models

SCRATCH_UPDATES = 50_000  # the updates of Perkins21 table 6


@standard_state()
def e2e(
    sender: Models,
    receiver: Models,
    pretrain: Grammars = SCRATCH,
    *,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    **options: Unpack[EndToEndOptions],
) -> EndToEndResult:
    """Train a sender and a receiver together, from scratch or after each was pre-trained on a grammar.

    Finished runs are kept in the folder `out`. If you repeat the call, also with more grammars or seeds, only missing
    runs are trained. After pre-training, the length of the game depends on the updates that concat needed, so concat
    is trained too, unless `steps` is given.

    Args:
        sender: names of senders; or a class or function that makes a sender, or a PyTorch module.
        receiver: names of receivers; or a class, function or module, as for `sender`.
        pretrain: grammars or languages, or "none".
        watcher: callbacks that observe the run.
        progress: whether to show the progress of the run. By default it is shown live in notebooks and on terminals,
            and as a line a minute elsewhere, unless a watcher is given or the environment has ICY_PROGRESS=0.
        **options: the other fields of EndToEndRequest.

    Returns:
        The results of this call's runs, trained now or on file. Their `failures` include runs that did not reach the
        target of pre-training.

    Raises:
        IcyError: invalid arguments, such as an unknown name or models that do not fit together.
        KeyboardInterrupt: at Ctrl-C. Finished replicates are kept. If it is not caught, the script ends with a sentence
            instead of a traceback.

    Example:
        >>> import icy, tempfile
        >>> out = tempfile.mkdtemp()
        >>> result = icy.e2e("FC2L", "RNN1L:GRU", quick=True, seeds=1, updates=20, workers=1, out=out)
        >>> result.language().space
        MeaningSpace(attributes=3, values=4)
    """
    request = EndToEndRequest.asked(sender=sender, receiver=receiver, pretrain=pretrain, **options)
    result = run_request(request, watcher, progress)
    assert isinstance(result, EndToEndResult)
    return result


spell_out(e2e, EndToEndRequest, EndToEndResult)
end_to_end = e2e


def pair_jobs(request: Any) -> list[PairJob]:
    """Return the jobs of an end-to-end run, one per pair and combination of settings. Errors as for `e2e`."""
    return jobs_of_each(request, _rows)


def _rows(request: Any) -> list[PairJob]:
    """Return the jobs of an end-to-end run with one value along each axis."""
    from icy.core.representations import get_representation  # imports torch

    seeds, given = seed_list(request.seeds), UserGrammars.of(request.pretrain, request)
    request, frequencies = with_space(request)
    values = values_for(EndToEndSettings, request) | language_values(request, given)
    values["pretrain_representation"] = get_representation(str(request.pretrain_representation)).name
    grammars = _grammars(request, given.names)
    scratch = grammars == [SCRATCH]
    values["updates"] = SCRATCH_UPDATES if scratch and request.updates is None else request.updates
    if not isinstance(request.most, int) or request.most < 0:
        raise InvalidSettingError(f"most must be a number of updates, or 0 for no limit, not {request.most}.")
    values |= {"scratch": scratch, "most": request.most or None, "pretrained": ""}
    values["training"] = settings_for(request.preset, "e2e", **request.settings)
    jobs = []
    for sender, receiver in pair_entries(request.sender, request.receiver):
        settings = EndToEndSettings(**values, sender=sender.name, receiver=receiver.name)
        _require_usable(settings)
        _check_population(settings, frequencies)
        _check_lengths(settings)
        replicates = tuple(Replicate(name, seed) for name in grammars for seed in seeds)
        job = PairJob(settings=settings, replicates=replicates, languages=given.languages, frequencies=frequencies)
        jobs.append(with_languages(job))
    if request.pretrained is not None:
        from .user_models import with_saved_models  # imports torch

        jobs = with_saved_models(jobs, request.pretrained)
    return [replace(job, parameters=pair_parameter_counts(job.settings)) for job in jobs]


def _check_population(settings: EndToEndSettings, frequencies: Frequencies | None) -> None:
    """Raise InvalidSettingError if a population cannot play in this setting."""
    if settings.population.is_pair:
        return
    if not settings.scratch:
        raise InvalidSettingError("A population starts from scratch: leave out pretrain, or train one pair.")
    if frequencies is not None and frequencies.law not in ("", EQUAL):
        raise InvalidSettingError(
            "A population needs frequencies that do not depend on the seed: give a table of meanings with weights in "
            f"place of {frequencies.law}."
        )
    if settings.training.training_readings:
        raise InvalidSettingError(
            "A population is not evaluated on its training batches: use the preset 'default', or leave out "
            "training_readings."
        )
    if settings.replace_every and settings.training.optimizer != "adam":
        raise InvalidSettingError(
            f"The optimizer of new agents must be 'adam', not '{settings.training.optimizer}': change it, or leave out "
            "replace_every."
        )


def _check_lengths(settings: EndToEndSettings) -> None:
    """Raise if messages cannot end early in this setting, but should."""
    if not settings.lengths.vary:
        return
    if not settings.scratch:
        raise InvalidSettingError("A sender that ends its messages starts from scratch: leave out pretrain.")
    if settings.representation not in OPEN:
        raise IncompatibleError(
            f"Messages of '{settings.representation}' have no end token: leave out max_length, or choose one of "
            f"{', '.join(OPEN)}."
        )
    if settings.training.symbols != "V+1":
        raise InvalidSettingError("The start symbol ends a message: leave out symbols=V, or leave out max_length.")
    for entry in settings.models:
        if not getattr(entry.load(), "takes_ends", True):
            raise IncompatibleError(
                f"{entry.qualified} declares that it does not take messages that end early: leave out max_length."
            )


def _grammars(request: Any, patterns: list[str]) -> list[str]:
    """Return the grammars of pre-training; concat comes first if the length of the game depends on concat."""
    if patterns == [SCRATCH]:
        return patterns
    if SCRATCH in patterns:
        raise InvalidSettingError(f"pretrain must be '{SCRATCH}' or grammars, not both; use two runs.")
    if not patterns:
        raise InvalidSettingError(f"pretrain must be '{SCRATCH}' or names of grammars, but it is empty.")
    names = expand_grammars(patterns, "sender")
    if request.updates is not None:
        return names
    return [BASELINE, *(name for name in names if name != BASELINE)]


def pair_entries(sender: str | Iterable[str], receiver: str | Iterable[str]) -> list[tuple[Entry, Entry]]:
    """Return pairs of named senders and receivers, in order; or one model of a side with each of the other side.

    Raises:
        InvalidSettingError: a side has no model, or the numbers of senders and receivers do not fit.
    """
    senders, receivers = _entries(sender, "sender"), _entries(receiver, "receiver")
    for side, entries in (("sender", senders), ("receiver", receivers)):
        if not entries:
            raise InvalidSettingError(f"No {side} was given; `icy list models '{side}/*'` shows all.")
    if len(senders) != len(receivers) and 1 not in (len(senders), len(receivers)):
        raise InvalidSettingError(
            f"{counted(len(senders), 'sender')} and {counted(len(receivers), 'receiver')} make no pairs: give equally "
            "many of both, or a single sender or receiver."
        )
    count = max(len(senders), len(receivers))
    pairs = [(senders[i % len(senders)], receivers[i % len(receivers)]) for i in range(count)]
    return list({(speaker.name, listener.name): (speaker, listener) for speaker, listener in pairs}.values())


def _entries(names: str | Iterable[str], side: str) -> list[Entry]:
    """Return the models of one side in the given order, with repeats, because pairs are formed by position."""
    each = [str(name) for some in several(names) for name in several(some)]
    return [entry for name in each for entry in without_choices(registry.match(name, side))]


def _require_usable(settings: EndToEndSettings) -> None:
    for entry in settings.models:
        if not entry.works_with(settings.representation):
            raise cannot_use(entry, settings.representation)
        if not settings.scratch and not entry.works_with(settings.pretrain_representation):
            raise _cannot_learn(entry, settings.pretrain_representation)


def _cannot_learn(entry: Entry, representation: str) -> IncompatibleError:
    return IncompatibleError(
        f"{entry.qualified} cannot be pre-trained in the representation '{representation}', only in "
        f"{' or '.join(entry.representations)}: use --pretrain-representation {entry.representations[0]}."
    )


def pair_parameter_counts(settings: EndToEndSettings) -> dict[str, int]:
    """Return the number of parameters of all agents of both sides, by convention ("true" and "published").

    Raises:
        IncompatibleError: the sides do not fit together.
    """
    from icy.models.creation import count_parameters
    from icy.training.task_models import try_pair

    pair = try_pair(settings)
    counts = [(settings.population.members(side), count_parameters(getattr(pair, side))) for side in SIDES]
    return {name: sum(agents * count[name] for agents, count in counts) for name in ("true", "published")}


def _table(long: pd.DataFrame, spread: str = "sd", **more: Any) -> BiasTable:
    from icy.analysis.tables.e2e import end_to_end_table  # imports pandas

    return end_to_end_table(long, spread, **more)


END_TO_END = JobKind(
    "e2e",
    request=EndToEndRequest,
    jobs=pair_jobs,
    train="icy.training.pair_training:train_pairs",
    rehearse="icy.training.pair_training:rehearse",
    result=EndToEndResult,
    table=_table,
    noun="pairs",
    plot="e2e",
    model="icy.training.task_models:saved_pair",
    measures=(
        *("sender_accuracy", "receiver_accuracy", "end_to_end_accuracy", "end_to_end_loss", "topsim"),
        *("worst_accuracy", "sender_agreement", "mean_length", "length_by_rank"),
    ),
    curve=("steps", "accuracy", "loss", "topsim", "sender_accuracy", "receiver_accuracy"),
    conventions=pair_conventions,
    # A pair's further configuration depends on whether it was pre-trained, which varies within a row.
    row=(
        *("model", "options", "meanings", "vocab_size", "word_length", "hidden_size", "representation", "protocol"),
        "pretrained",
        *("senders", "receivers", "replace_every", "replacement", "max_length", "length_cost"),
    ),
)
