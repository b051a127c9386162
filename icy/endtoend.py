"""Sender and receiver together: plan an end-to-end run, train what it lacks, file it, and return the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from icy.asking import Asked, seed_list, spell_out
from icy.devices import resolve_device
from icy.errors import IncompatibleError, InvalidSettingError, StoreError
from icy.grammars import expand_grammars, make_language
from icy.language import Language
from icy.long_table import game_curves
from icy.meanings import MeaningSpace
from icy.models.making import cannot_use
from icy.planning import Plan, Row, plan_workers
from icy.probing import run_plan
from icy.registry import Entry, registry
from icy.results import ProbeResult
from icy.store import Store
from icy.tracking import watching
from icy.training.job import Replicate
from icy.training.pair_job import SCRATCH, EndToEnd, PairEntry, PairJob, PairTask
from icy.training.protocols import BASELINE
from icy.training.settings import settings_for
from icy.watcher import Watcher

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from icy.analysis.tables import BiasTable

SCRATCH_STEPS = 50_000  # where Perkins21 table 6 was read


@dataclass(frozen=True)
class EndToEndSpec(Asked):
    """What to train together, and how: the arguments of `icy.end_to_end`, under the names that the command line uses.

    Attributes:
        sender: names of senders.
        receiver: names of receivers: one for every sender, or one for all of them (or one sender for all receivers).
        pretrain: grammars (names, chains or wildcards) that both sides learn first, each in a run of its own; or
            "none", to start from scratch.
        representation: of the link: "soft", the receiver reads probabilities; "gumb", samples that gradients pass
            through; "discr", sampled tokens, both sides trained by REINFORCE.
        steps: updates of the game; from scratch 50000, after pre-training cap times what concat took.
        cap: updates of the game after pre-training, as a multiple of concat's supervised updates at the same seed (the
            slower side's).
        most: limit of these; 0 for none.
        target: accuracy that each side must reach in pre-training.
        pretrain_representation: in which each side learns its grammar; as published, soft whatever the link is.
        report_every: updates between two readings of the game.
        meanings: the space, "attributes x values".
        vocab_size: V.
        word_length: tokens per word, w; messages have A*w.
        seeds: how many, counted from 123 as in the papers, or which: [1, 2], "1,2", "123-127".
        hidden: hidden size E of both.
        preset: "default", or "published" for the behaviour that the printed numbers depend on.
        sender_options: further arguments of the senders.
        receiver_options: further arguments of the receivers.
        settings: changes to the preset's TrainingSettings.
        quick: a small space, few seeds and few updates wherever these are not given, to try things out.
        device: "cpu", "cuda", or "auto" for a GPU if there is one.
        workers: processes on a CPU; one per core unless given.
        engine: how replicates are stacked: "auto", "broadcast", "vmap" or "loop".
        out: the results folder.
        rerun: "missing", "failed", "always" or "never"; see icy.store.RERUN.
        plugin: files that register models or grammars.
        track: where results are shown beside the results folder, as soon as each is filed: "tensorboard", "mlflow" or
            "wandb", or several; all of them local. See icy.tracking.
    """

    function = "icy.end_to_end"
    small = MappingProxyType({"meanings": "3x4", "word_length": 2, "seeds": 2, "hidden": 32, "steps": 400})

    sender: str | Iterable[str]
    receiver: str | Iterable[str]
    pretrain: str | Iterable[str] = SCRATCH
    representation: str = "soft"
    steps: int | None = None
    cap: float = 20
    most: int = 10_000
    target: float = 0.99
    pretrain_representation: str = "soft"
    report_every: int = 100
    meanings: str | MeaningSpace | tuple[int, int] = "5x10"
    vocab_size: int = 4
    word_length: int = 4
    seeds: int | str | Iterable[int] = 3
    hidden: int = 128
    preset: str = "default"
    sender_options: Mapping[str, Any] = field(default_factory=dict)
    receiver_options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    device: str = "auto"
    workers: int | None = None
    engine: str = "auto"
    out: str | Path = "icy-results"
    rerun: str = "missing"
    plugin: str | Path | Iterable[str | Path] = ()
    track: str | Iterable[str] = ()


@dataclass(frozen=True, repr=False)
class EndToEndResult(ProbeResult):
    """What an end-to-end run measured; a ProbeResult with curves, and with the languages that emerged.

    Attributes:
        folder: the results folder, where the languages are.
    """

    folder: Path | None = None

    def bias_table(self, spread: str = "sd", **options: Any) -> BiasTable:
        """The table, to be printed in any way; options as of `icy.analysis.end_to_end_table`."""
        from icy.analysis.endtoend import end_to_end_table
        from icy.long_table import to_long

        return end_to_end_table(to_long(self.records), spread, **options)

    def curves(self) -> pd.DataFrame:
        """A row per pair and reading: model, representation, grammar, seed, and the columns of CURVE.

        `accuracy` and `loss` are those of the game, `sender_accuracy` and `receiver_accuracy` those on the language of
        pre-training.
        """
        return game_curves(self.records)

    def plot(self) -> Figure:
        """The curves as a figure, in the form of Icy22 figure 7."""
        from icy.analysis.plots.endtoend import e2e

        return e2e(self)

    def language(self, grammar: str = SCRATCH, seed: int | None = None, model: str | None = None) -> Language:
        """The language that emerged in one run: what its sender says, greedily, of every meaning.

        Args:
            grammar: of pre-training; "none" from scratch.
            seed: by default the first.
            model: the pair, as in "HierZero:GRU+Hier:GRU"; by default the first.

        Raises:
            StoreError: there is no such run, or its language is not on file.
        """
        for record in self.records:
            fits = record["grammar"] == grammar and seed in (None, record["seed"]) and model in (None, record["model"])
            if fits and record.get("language") and not record["failed"]:
                return Language.load((self.folder or Path()) / record["language"])
        runs = ", ".join(dict.fromkeys(f"{r['model']} on {r['grammar']} with seed {r['seed']}" for r in self.records))
        raise StoreError(f"There is no language of '{grammar}' with seed {seed}; there is {runs or 'nothing'}.")

    @classmethod
    def load(cls, path: str | Path) -> EndToEndResult:
        """The end-to-end runs in a results folder, or in a file that `save` wrote in one.

        Raises:
            StoreError: there is no such file or folder, or it holds no end-to-end runs.
        """
        path = Path(path)
        found = ProbeResult.load(path)
        records = [r for r in found.records if r["protocol"] == EndToEnd.name]
        if not records:
            raise StoreError(f"{path} holds no end-to-end runs.")
        return cls(records, found.paths, path if path.is_dir() else path.parent)


def end_to_end(
    sender: str | Iterable[str],
    receiver: str | Iterable[str],
    pretrain: str | Iterable[str] = SCRATCH,
    *,
    watcher: Watcher | None = None,
    **options: Any,
) -> EndToEndResult:
    """Train a sender and a receiver together, from scratch or after each has learnt a grammar.

    Finished runs are kept in the folder `out`; the same call again, or one with more grammars or seeds, trains only
    what is missing. After pre-training the length of the game is relative to concat's, so concat is included unless
    `steps` is given.

    Args:
        sender: names of senders.
        receiver: names of receivers.
        pretrain: grammars, or "none".
        watcher: told of progress.
        **options: representation, steps, cap, most, target, pretrain_representation, report_every, meanings,
            vocab_size, word_length, seeds, hidden, preset, sender_options, receiver_options, settings, quick, device,
            workers, engine, out, rerun, plugin, track; EndToEndSpec describes each.

    Returns:
        The results of this call's runs, trained now or on file. A run whose pre-training did not reach its target is
        among its `failures`.

    Raises:
        IcyError: an unknown name, a value that cannot be, models that do not fit together, and the like.
        KeyboardInterrupt: at Ctrl-C. What had finished is kept.

    Example:
        >>> import icy, tempfile
        >>> out = tempfile.mkdtemp()
        >>> result = icy.end_to_end("FC2L", "RNN1L:GRU", quick=True, seeds=1, steps=20, workers=1, out=out)
        >>> result.language().space
        MeaningSpace(attributes=3, values=4)
    """
    spec = EndToEndSpec.asked(sender=sender, receiver=receiver, pretrain=pretrain, **options)
    plan = make_pair_plan(spec)
    return run_pairs(plan, watching(watcher, spec.track, spec.out))


spell_out(end_to_end, EndToEndSpec, EndToEndResult)


def run_pairs(plan: Plan, watcher: Watcher | None = None) -> EndToEndResult:
    """Train what a plan of pairs lacks, file it, and return all of its results. Errors as for `end_to_end`."""
    found = run_plan(plan, watcher)
    return EndToEndResult(found.records, found.paths, plan.store.folder)


def make_pair_plan(spec: EndToEndSpec) -> Plan:
    """What an end-to-end run is going to do, without doing it. Errors as for `end_to_end`."""
    from icy.representations import get_representation  # imports torch

    for file in [spec.plugin] if isinstance(spec.plugin, (str, Path)) else spec.plugin:
        registry.load_file(file)
    link, before = (get_representation(name).name for name in (spec.representation, spec.pretrain_representation))
    grammars = _grammars(spec)
    entries = _pairs(spec, pretrained=grammars != [SCRATCH])
    task = PairTask(
        entries[0],
        MeaningSpace.of(spec.meanings),
        spec.vocab_size,
        spec.word_length,
        spec.hidden,
        link,
        before,
        dict(spec.sender_options),
        dict(spec.receiver_options),
    )
    blank = PairJob(
        task,
        _protocol(spec, grammars),
        settings_for(spec.preset, "e2e", **spec.settings),
        (),
        device=resolve_device(spec.device),
        engine=spec.engine,
        folder=str(spec.out),
        preset=spec.preset,
    )
    seeds = seed_list(spec.seeds)
    for name in grammars:
        if name != SCRATCH:  # now, so that one that cannot be made at these sizes does not stop a long run later
            make_language(name, task.space, task.vocab_size, task.word_length, seeds[0])
    rows = tuple(_make_row(replace(blank, task=replace(task, entry=e)), spec, grammars, seeds) for e in entries)
    return Plan(tuple(rows), Store(spec.out), blank.device, plan_workers(spec.workers, blank.device, rows))


def _protocol(spec: EndToEndSpec, grammars: list[str]) -> EndToEnd:
    steps = SCRATCH_STEPS if spec.steps is None and grammars == [SCRATCH] else spec.steps
    if not isinstance(spec.most, int) or spec.most < 0:
        raise InvalidSettingError(f"most is a number of updates, or 0 for no limit; not {spec.most}.")
    return EndToEnd(spec.target, spec.cap, spec.most or None, steps, spec.report_every)


def _grammars(spec: EndToEndSpec) -> list[str]:
    """The grammars of pre-training, concat first where the length of the game depends on it."""
    asked = [spec.pretrain] if isinstance(spec.pretrain, str) else list(spec.pretrain)
    if asked == [SCRATCH]:
        return asked
    if SCRATCH in asked:
        raise InvalidSettingError(f"pretrain is '{SCRATCH}' or grammars, not both; make two runs of it.")
    if not asked:
        raise InvalidSettingError(f"pretrain is '{SCRATCH}' or names of grammars; none was given.")
    names = expand_grammars(asked, "sender")
    if spec.steps is not None:
        return names
    return [BASELINE, *(name for name in names if name != BASELINE)]


def _pairs(spec: EndToEndSpec, pretrained: bool) -> list[PairEntry]:
    """The pairs that are meant: in order, or one of a side with each of the other."""
    senders, receivers = _entries(spec.sender, "sender"), _entries(spec.receiver, "receiver")
    for side, found in (("sender", senders), ("receiver", receivers)):
        if not found:
            raise InvalidSettingError(f"No {side} was given; `icy list models '{side}/*'` shows what there is.")
    if len(senders) != len(receivers) and 1 not in (len(senders), len(receivers)):
        raise InvalidSettingError(
            f"{len(senders)} senders and {len(receivers)} receivers make no pairs: give as many of each, or one of one."
        )
    count = max(len(senders), len(receivers))
    pairs = [PairEntry(senders[i % len(senders)], receivers[i % len(receivers)]) for i in range(count)]
    for pair in pairs:
        _require_usable(pair, spec, pretrained)
    return list({pair.name: pair for pair in pairs}.values())


def _entries(names: str | Iterable[str], side: str) -> list[Entry]:
    """The models of one side in the order given, repeats and all: they are paired by place."""
    return [entry for name in ([names] if isinstance(names, str) else names) for entry in registry.match(name, side)]


def _require_usable(pair: PairEntry, spec: EndToEndSpec, pretrained: bool) -> None:
    for entry in (pair.sender, pair.receiver):
        if not entry.works_with(spec.representation.lower()):
            raise cannot_use(entry, spec.representation.lower())
        if pretrained and not entry.works_with(spec.pretrain_representation.lower()):
            raise _cannot_learn(entry, spec.pretrain_representation)


def _cannot_learn(entry: Entry, representation: str) -> IncompatibleError:
    return IncompatibleError(
        f"{entry.qualified} cannot be pre-trained in the representation '{representation}', only in "
        f"{' or '.join(entry.representations)}: use --pretrain-representation {entry.representations[0]}."
    )


def _make_row(blank: PairJob, spec: EndToEndSpec, grammars: list[str], seeds: list[int]) -> Row:
    replicates = tuple(Replicate(name, seed) for name in grammars for seed in seeds)
    job = replace(blank, replicates=replicates, parameters=_parameters(blank))
    return Row.of(job, Store(spec.out), spec.rerun)


def _parameters(job: PairJob) -> dict[str, int]:
    """Parameters of both sides together, by either convention; made on the way to a first message."""
    from icy.models.making import count_parameters
    from icy.training.pair_model import try_pair

    pair = try_pair(job.task, job.settings)
    counts = [count_parameters(model) for model in (pair.sender, pair.receiver)]
    return {convention: sum(count[convention] for count in counts) for convention in ("true", "published")}
