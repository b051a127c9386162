"""`icy.e2e`, also called `icy.end_to_end`: train a sender and a receiver together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Unpack, cast

from icy.config.options import EndToEndOptions
from icy.config.protocols import BASELINE, SCRATCH, EndToEndProtocol
from icy.config.settings import OPEN, Grammars, TrainingSettings, settings_for
from icy.config.specs import EndToEndSpec, spell_out
from icy.core.checks import seed_list
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.registry import SIDES, Entry, registry, without_choices
from icy.core.surroundings import standard_state
from icy.core.text import counted, several
from icy.grammars import expand_grammars
from icy.languages.frequencies import EQUAL, Frequencies
from icy.models.creation import cannot_use
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate
from icy.training.pair_job import PairJob
from icy.training.tasks import Lengths, PairEntry, PairTask, Population

from .display import callbacks_of
from .idle import without_idle
from .plan import make_plan
from .progress import Watcher
from .results import EndToEndResult
from .run import run_plan
from .user_languages import UserGrammars, with_space
from .user_models import Models, with_model_names, with_saved_models

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
        **options: the other fields of EndToEndSpec.

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
    spec = EndToEndSpec.asked(sender=sender, receiver=receiver, pretrain=pretrain, **options)
    spec = with_model_names(spec, "sender", "receiver")
    result = run_plan(make_plan(spec), callbacks_of(spec, watcher, progress))
    assert isinstance(result, EndToEndResult)
    return result


spell_out(e2e, EndToEndSpec, EndToEndResult)
end_to_end = e2e


def pair_jobs(spec: EndToEndSpec) -> list[PairJob]:
    """Return the jobs of an end-to-end run, one per pair and combination of settings. Errors as for `e2e`."""
    return jobs_of_each(spec, _jobs, prepare=without_idle)


def _jobs(spec: EndToEndSpec) -> list[PairJob]:
    """Return the jobs of an end-to-end run with one value along each axis."""
    from icy.core.representations import get_representation  # imports torch

    user_grammars = UserGrammars.of(spec.pretrain, spec)
    spec, frequencies = with_space(spec)
    space, vocab_size, word_length = user_grammars.sizes(spec)
    name, before = (get_representation(str(name)).name for name in (spec.representation, spec.pretrain_representation))
    grammars = _grammars(spec, user_grammars.names)
    entries = _pairs(spec, pretrained=grammars != [SCRATCH])
    population = _population(spec, frequencies, scratch=grammars == [SCRATCH])
    task = PairTask(
        entries[0],
        space,
        vocab_size,
        word_length,
        cast(int, spec.hidden),
        name,
        before,
        dict(spec.sender_options),
        dict(spec.receiver_options),
        population,
        _lengths(spec, entries, name, scratch=grammars == [SCRATCH]),
    )
    seeds = seed_list(spec.seeds)
    blank = PairJob(
        task,
        _protocol(spec, grammars),
        settings_for(str(spec.preset), "e2e", **spec.settings),
        replicates=tuple(Replicate(name, seed) for name in grammars for seed in seeds),
        languages=user_grammars.languages,
        draws=str(spec.draws),
        frequencies=frequencies,
        preset=str(spec.preset),
    )
    for name in grammars:
        if name != SCRATCH:  # made now, so that a grammar that does not fit these sizes fails before a long run
            blank.language(Replicate(name, seeds[0]))
    jobs = [replace(blank, task=replace(task, entry=entry)) for entry in entries]
    if spec.pretrained is not None:
        jobs = with_saved_models(jobs, spec.pretrained)
    return [replace(job, parameters=pair_parameter_counts(job.task, job.training)) for job in jobs]


def _population(spec: EndToEndSpec, frequencies: Frequencies | None, scratch: bool) -> Population:
    population = Population(
        *(cast(int, spec.senders), cast(int, spec.receivers), cast(int, spec.replace_every), str(spec.replacement))
    )
    if population.is_pair:
        return population
    if not scratch:
        raise InvalidSettingError("A population starts from scratch: leave out pretrain, or train one pair.")
    if frequencies is not None and frequencies.law not in ("", EQUAL):
        raise InvalidSettingError(
            "A population needs frequencies that do not depend on the seed: give a table of meanings with weights in "
            f"place of {frequencies.law}."
        )
    settings = settings_for(str(spec.preset), "e2e", **spec.settings)
    if settings.training_readings:
        raise InvalidSettingError(
            "A population is not evaluated on its training batches: use the preset 'default', or leave out "
            "training_readings."
        )
    if population.replace_every and settings.optimizer != "adam":
        raise InvalidSettingError(
            f"The optimizer of new agents must be 'adam', not '{settings.optimizer}': change it, or leave out "
            "replace_every."
        )
    return population


def _lengths(spec: EndToEndSpec, pairs: list[PairEntry], name: str, scratch: bool) -> Lengths:
    lengths = Lengths(cast(int | None, spec.max_length), cast(float | str, spec.length_cost))
    if not lengths.vary:
        return lengths
    if "word_length" in spec.given:
        raise InvalidSettingError("max_length replaces word_length: leave one of the two out.")
    if not scratch:
        raise InvalidSettingError("A sender that ends its messages starts from scratch: leave out pretrain.")
    if name not in OPEN:
        raise IncompatibleError(
            f"Messages of '{name}' have no end token: leave out max_length, or choose one of {', '.join(OPEN)}."
        )
    if settings_for(str(spec.preset), "e2e", **spec.settings).symbols != "V+1":
        raise InvalidSettingError("The start symbol ends a message: leave out symbols=V, or leave out max_length.")
    for entry in (entry for pair in pairs for entry in (pair.sender, pair.receiver)):
        if not getattr(entry.load(), "takes_ends", True):
            raise IncompatibleError(
                f"{entry.qualified} declares that it does not take messages that end early: leave out max_length."
            )
    return lengths


def _protocol(spec: EndToEndSpec, grammars: list[str]) -> EndToEndProtocol:
    updates = SCRATCH_UPDATES if spec.updates is None and grammars == [SCRATCH] else spec.updates
    if not isinstance(spec.most, int) or spec.most < 0:
        raise InvalidSettingError(f"most must be a number of updates, or 0 for no limit, not {spec.most}.")
    return EndToEndProtocol(spec.target, spec.cap, spec.most or None, updates, spec.report_every)


def _grammars(spec: EndToEndSpec, patterns: list[str]) -> list[str]:
    """Return the grammars of pre-training; concat comes first if the length of the game depends on concat."""
    if patterns == [SCRATCH]:
        return patterns
    if SCRATCH in patterns:
        raise InvalidSettingError(f"pretrain must be '{SCRATCH}' or grammars, not both; use two runs.")
    if not patterns:
        raise InvalidSettingError(f"pretrain must be '{SCRATCH}' or names of grammars, but it is empty.")
    names = expand_grammars(patterns, "sender")
    if spec.updates is not None:
        return names
    return [BASELINE, *(name for name in names if name != BASELINE)]


def _pairs(spec: EndToEndSpec, pretrained: bool) -> list[PairEntry]:
    """Return the pairs of a run, each with models that work with its representations."""
    pairs = pair_entries(spec.sender, spec.receiver)
    for pair in pairs:
        _require_usable(pair, spec, pretrained)
    return pairs


def pair_entries(sender: str | Iterable[str], receiver: str | Iterable[str]) -> list[PairEntry]:
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
    pairs = [PairEntry(senders[i % len(senders)], receivers[i % len(receivers)]) for i in range(count)]
    return list({pair.name: pair for pair in pairs}.values())


def _entries(names: str | Iterable[str], side: str) -> list[Entry]:
    """Return the models of one side in the given order, with repeats, because pairs are formed by position."""
    each = [str(name) for some in several(names) for name in several(some)]
    return [entry for name in each for entry in without_choices(registry.match(name, side))]


def _require_usable(pair: PairEntry, spec: EndToEndSpec, pretrained: bool) -> None:
    for entry in (pair.sender, pair.receiver):
        if not entry.works_with(str(spec.representation).lower()):
            raise cannot_use(entry, str(spec.representation).lower())
        if pretrained and not entry.works_with(str(spec.pretrain_representation).lower()):
            raise _cannot_learn(entry, str(spec.pretrain_representation))


def _cannot_learn(entry: Entry, representation: str) -> IncompatibleError:
    return IncompatibleError(
        f"{entry.qualified} cannot be pre-trained in the representation '{representation}', only in "
        f"{' or '.join(entry.representations)}: use --pretrain-representation {entry.representations[0]}."
    )


def pair_parameter_counts(task: PairTask, settings: TrainingSettings) -> dict[str, int]:
    """Return the number of parameters of all agents of both sides, by convention ("true" and "published").

    Raises:
        IncompatibleError: the sides do not fit together.
    """
    from icy.models.creation import count_parameters
    from icy.training.task_models import try_pair

    pair = try_pair(task, settings)
    counts = [(task.population.members(side), count_parameters(getattr(pair, side))) for side in SIDES]
    return {name: sum(agents * count[name] for agents, count in counts) for name in ("true", "published")}
