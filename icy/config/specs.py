"""Specs: everything that a user can ask for, one dataclass per function of the library.

The fields of a spec are the arguments of the function and, with `-` for `_`, the options of the command; the text under
"Attributes" is their help. The metadata of a field has the differences of the command line: `flags` in place of
`--name`; `metavar`; `help`; `completes`, a function of `icy.cli.groups`; `names` in place of the names in its type;
`minimum` of a number; `exponents` for numbers such as 1e6; and `brackets`, False for no brackets around names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from icy.core.errors import require_known
from icy.core.fields import current_names, described, setting, spell_out_arguments

from .protocols import SCRATCH
from .settings import (
    SCHEMES,
    STACKINGS,
    Draws,
    Engine,
    Grammars,
    Numbers,
    OrderName,
    Paths,
    Presets,
    Protocols,
    Representations,
    Rerun,
    RunnerName,
    SamplerName,
    SideName,
    Spaces,
    SplitName,
    SymbolsName,
    TrackerName,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


RETRIES = 2


def option(default: Any, **shown: object) -> Any:
    """Declare a field with its default and its metadata for the command line."""
    return setting(default, metadata=shown)


# How options of several specs appear on the command line.
MODELS = MappingProxyType({"flags": ("--model", "-m"), "metavar": "NAME", "completes": "models"})
DRAWS = MappingProxyType({"metavar": "icy|authors[,...]"})
SEEDS = MappingProxyType(
    {"metavar": "N|N,N,...", "help": "how many, counted from 123 as in the papers, or which: 1,2 or 123-127."}
)
MEANINGS = MappingProxyType(
    {"metavar": "AxK[,...]|FILE", "help": "attributes x values; sizes of each, 10,4,2; or a table of meanings."}
)
CHANGES = MappingProxyType(
    {
        "flags": ("--set",),
        "help": "a change to the preset's training settings, as in learning_rate=0.002 or learning_rate=0.001,0.004.",
    }
)


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """How and where to run: the arguments that all functions share.

    Attributes:
        quick: use small values for options that are not given, to try things out.
        device: "cpu", "cuda", or "auto" for a GPU if there is one.
        workers: number of processes. By default one per core on a CPU, one on a GPU, and on a Ray cluster one per core
            or, with `per_gpu`, per share of a GPU.
        runner: where to run: "local", this machine; or "ray", a Ray cluster, which needs the extra `ray`.
        per_gpu: on a Ray cluster, processes that share one GPU.
        engine: how replicates are trained: "native", one after another by compiled code, or stacked by PyTorch:
            "broadcast", "vmap" or "loop"; "auto", the first of these that the model and the machine allow; and on a
            GPU, how updates are issued: "auto+graph", one CUDA graph per update, or "auto+plain".
        out: the results folder.
        rerun: "missing", "failed", "always" or "never"; see icy.records.store.RERUN.
        initial_results: packs, results folders or saved results (of `icy pack`) to start from: their records are copied
            into the results folder and not trained again.
        keep_models: save the weights of every replicate in the results folder, as safetensors; `ProbeResult.model`
            loads the modules. Replicates with a record but without weights are trained again.
        plugin: files that register models, grammars or kinds of jobs.
        track: also show each result, as soon as it is recorded, in "tensorboard", "mlflow" or "wandb", or several; all
            of them local. See icy.experiments.trackers.
    """

    function: ClassVar[str]  # name of the function, for errors
    job_kind: ClassVar[str]  # kind of job of the plan
    small: ClassVar[Mapping[str, Any]] = MappingProxyType({})  # the values of `quick`
    axes: ClassVar[tuple[str, ...]] = ()  # fields that may have several values in a sweep
    old_names: ClassVar[Mapping[str, str]] = MappingProxyType({"start": "initial_results"})  # old name: field
    settings_class: ClassVar[type | None] = None  # class of the settings of its rows; see `icy.config.kinds`
    given: ClassVar[frozenset[str]] = frozenset()  # fields that were requested, in a spec that `asked` made

    quick: bool = False
    device: str = "auto"
    workers: int | None = option(None, minimum=1)
    runner: RunnerName = option("local", brackets=False)
    per_gpu: int = option(1, minimum=1)
    engine: Engine = option(
        "auto",
        metavar=f"{'|'.join(STACKINGS)}[+plain|+graph]",
        help="how replicates are trained; +graph: one CUDA graph per update; +plain: none.",
    )
    out: str | Path = option("icy-results", flags=("--out", "-o"), metavar="FOLDER")
    rerun: Rerun = option("missing", brackets=False)
    initial_results: Paths = option((), flags=("--from",), metavar="PACK")
    keep_models: bool = False
    plugin: Paths = option((), metavar="FILE")
    track: TrackerName | Iterable[TrackerName] = option(
        (), help="show every result in these trackers too, in files under FOLDER/tracking."
    )

    @classmethod
    def asked(cls, **given: Any) -> Self:
        """Return the spec of these options; with `quick`, the other options get small values.

        Raises:
            UnknownNameError: an argument that the function does not take.
        """
        known = names(cls)
        given = {name: tuple(value) if isinstance(value, Iterator) else value for name, value in given.items()}
        if "grammar" in known and "grammars" in given:  # a common name for a list of grammars
            given["grammar"] = given.pop("grammars")
        given = current_names(cls, given)
        for name in given:
            require_known(f"option of {cls.function}", name, known)
        return cls(**({**cls.small, **given} if given.get("quick") else given)).with_given(given)

    def with_given(self, names: Iterable[str]) -> Self:
        """Return the spec, with these fields marked as set by the user."""
        object.__setattr__(self, "given", frozenset(names))
        return self

    @property
    def start_files(self) -> list[str | Path]:
        """The packs to start from as a list."""
        return [found] if isinstance(found := self.initial_results, (str, Path)) else list(found)


def _set_symbols(spec: ProbeSpec | EndToEndSpec) -> None:
    """Add the symbols that senders can use, if given, to the training settings."""
    if spec.symbols is not None:
        object.__setattr__(spec, "settings", {**spec.settings, "symbols": spec.symbols})


RUNNING = tuple(f.name for f in fields(RunSpec))


def names(spec: type) -> list[str]:
    """Return the names of a spec's fields: first the fields that the spec declares, then the fields of RunSpec."""
    dataclass: type[DataclassInstance] = spec
    found = [f.name for f in fields(dataclass)]
    return sorted(found, key=lambda name: name in RUNNING)


def spell_out(function: Callable[..., Any], spec: type[RunSpec], result: type) -> None:
    """Make help() and notebooks show every option of a function with its default and its description."""
    own, options = inspect.signature(function).parameters, inspect.signature(spec).parameters
    first = [options[name] for name, p in own.items() if name in options and p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p.replace(kind=p.KEYWORD_ONLY) for p in options.values() if p not in first]
    beside = [p for name, p in own.items() if name not in options and p.kind is p.KEYWORD_ONLY]
    signature = inspect.Signature([*first, *named, *beside], return_annotation=result)
    function.__signature__ = signature  # type: ignore[attr-defined]
    descriptions = described(spec)
    arguments = [name for name, p in own.items() if p.kind is not p.VAR_KEYWORD]
    spell_out_arguments(function, {p.name: descriptions.get(p.name, "") for p in named if p.name not in arguments})


@dataclass(frozen=True)
class ProbeSpec(RunSpec):
    """The arguments of `icy.probe`.

    Attributes:
        model: names or wildcards of senders and receivers (`HierZero:GRU`, `receiver/FC2L`, `sender/RNN*`).
        grammar: names, chains (`rot+perm`) or wildcards; "all" is every grammar that the side can use. Also your own
            languages: a file (`emerged.csv`), a Language, or the name of a language in the results
            (`emerged@1a2b3c4d5e6f7081`). A language sets meanings, vocab_size and word_length, and is the same for all
            seeds.
        protocol: "acquire", updates to the target as a ratio to concat's; "budget", accuracy after concat's updates;
            "generalise", accuracy on meanings held out of training; or several: a list, "acquire,budget", or "all".
            All combinations of several protocols, meanings, sizes, representations and presets are rows.
        meanings: the space, "attributes x values", or several: ["3x4", "5x10"] or "3x4,5x10". Also the number of values
            of each attribute, "10,4,2"; or a file of the meanings that exist, with a column per attribute and
            optionally a column `weight`.
        frequencies: how often each meaning is drawn: "equal"; "zipf:S", in proportion to 1 / rank ** S, where each seed
            has its own order of the meanings; by default by the weights of the file, or equal. Or several.
        vocab_size: V, or several.
        word_length: tokens per word, w, or several; messages have A*w. Or the smallest and the largest number, "1-4":
            each value has its own, a message ends with an end token, and if meanings have frequencies, frequent values
            have short words.
        seeds: how many, counted from 123 as in the papers, or which: [1, 2], "1,2", "123-127".
        word_seeds: seeds of only the words, each a separate row with all `seeds`, which then vary only initial weights
            and the sequence of meanings; by default each seed has its own words.
        draws: generators of the languages: "icy"; or "authors", the languages of Perkins21 and Icy22, drawn as in the
            authors' program; or both.
        target: accuracy at which concat counts as learned; by default 0.8 for acquire and 0.99 for other protocols.
        cap: for acquire and generalise, largest number of updates of a grammar, as a multiple of concat's updates.
        max_updates: for acquire, instead of the cap: the number of updates of every grammar, including concat, even
            beyond the target, so that fast models are not cut early and accuracies at the end are comparable.
        held_out: for generalise, the share of the meanings that is left out of training.
        split: for generalise, how the held-out meanings are chosen: "random"; or "combinations", which holds out all
            meanings with certain pairs of values of two attributes. Each seed has its own choice, and trains on every
            value.
        hidden: hidden size E, or several, each a separate row: [64, 128] or "64,128".
        representation: form of messages: "soft", probabilities; "gumb", Gumbel-softmax samples; "discr",
            tokens, trained by REINFORCE; of the games of CBM24: "gs", relaxed Gumbel-softmax; "qt",
            binary words; "cb", codes; or several: a list, "soft,discr", or "all" that the model works with.
        symbols: symbols that senders can use under soft, gumb and discr: "V+1" (default), the vocabulary and the start
            symbol; or "V", the vocabulary alone. The same as the setting `symbols`.
        preset: "default", "published" for the behavior behind the printed numbers, or both.
        options: further arguments of the models.
        settings: changes to the preset's TrainingSettings, by name; a list has several values to vary.
        quick: a small space, few seeds and a small hidden size if these are not given: a result in seconds, to
            try things out.
    """

    function = "icy.probe"
    job_kind = "probe"
    small = MappingProxyType({"meanings": "3x4", "word_length": 2, "seeds": 2, "hidden": 32})
    axes = (
        *("protocol", "meanings", "frequencies", "vocab_size", "word_length", "draws", "representation", "preset"),
        "settings",
    )

    model: str | Iterable[str] = field(metadata=MODELS)
    grammar: Grammars = option(
        "all",
        flags=("--grammar", "-g"),
        metavar="NAME",
        completes="files_and_grammars",
        help='names, chains (rot+perm) or wildcards, or files of languages (emerged.csv), repeatable; "all" is every '
        "grammar that the side can use.",
    )
    protocol: Protocols = "acquire"
    meanings: Spaces = option("5x10", **MEANINGS)
    frequencies: str | Iterable[str] | None = option(None, metavar="equal|zipf:S[,...]")
    vocab_size: Numbers = option(4, metavar="V[,...]", help="number of tokens, V.")
    word_length: Numbers = option(4, metavar="w|w-w[,...]")
    seeds: Numbers = option(3, **SEEDS)
    word_seeds: Numbers | None = option(
        None,
        metavar="N|N,N,...",
        help="seeds of the words alone, each a row with all --seeds, which then vary weights and drawn meanings.",
    )
    draws: Draws = option("icy", **DRAWS)
    target: float | None = None
    cap: float | None = None
    max_updates: int | None = None
    held_out: float = 0.2
    split: SplitName = option("random", brackets=False)
    hidden: Numbers = option(128, metavar="E[,...]", help="hidden size E, or several, each a separate row: 64,128.")
    representation: Representations = "soft"
    symbols: SymbolsName | None = option(None, brackets=False)
    preset: Presets = "default"
    options: Mapping[str, Any] = option({}, flags=("--option",), help="a further argument of the models.")
    settings: Mapping[str, Any] = option({}, **CHANGES)

    def __post_init__(self) -> None:
        _set_symbols(self)


@dataclass(frozen=True)
class SweepSpec(ProbeSpec):
    """The arguments of `icy.sweep`.

    Takes every argument of `icy.probe`. With `parts`, each part is a separate sweep; it takes the arguments that it
    does not set from the whole sweep.

    Attributes:
        model: names or wildcards of senders and receivers.
        side: "sender" or "receiver" for only this side; by default both.
        kind: kind of job of the sweep, or of a part: "probe", "e2e", or a kind that a plug-in registers.
        parts: arguments of parts of the sweep, by name.
        shard: "i/n": the i-th of n shares of the rows, for n machines that write into one folder.
        retries: how often icy restarts a stack after a worker was killed, before it records a failure.
        order: "longest" first, so that no long row remains at the end, or as "given".
    """

    function = "icy.sweep"

    model: str | Iterable[str] = option((), **MODELS)
    side: SideName | None = None
    kind: str = "probe"
    parts: Sequence[Mapping[str, Any]] = ()
    shard: str | None = option(None, metavar="i/n")
    retries: int = option(RETRIES, minimum=0)
    order: OrderName = "longest"


@dataclass(frozen=True)
class EndToEndSpec(RunSpec):
    """The arguments of `icy.e2e`.

    Attributes:
        sender: names of senders.
        receiver: names of receivers: a receiver per sender, or a single receiver for all senders (or a single sender
            for all receivers).
        pretrain: grammars (names, chains or wildcards) or languages (see ProbeSpec) that both sides learn first, each
            in a separate run; or "none", to start from scratch.
        representation: form of messages: "soft", the receiver reads probabilities; "gumb", samples that
            gradients pass through; "discr", sampled tokens, both sides trained by REINFORCE; a channel of the games of
            CBM24: "gs", relaxed samples; "qt", binary words; "cb", learned codes; or several: a list, "soft,discr", or
            "all" that both models work with. All combinations of several representations, meanings, sizes and presets
            are rows.
        senders: number of senders of a population, or several. In every update they play with random receivers.
        receivers: number of receivers of a population, or several.
        replace_every: updates after which new agents replace old ones, or several; 0 for never.
        replacement: agents that are replaced: "gradual", the oldest sender and the oldest receiver; "random", a random
            agent of each side; "receivers", all receivers; or several.
        max_length: largest number of tokens of a message that the sender may end early, in place of A*w, or several.
            The start symbol ends a message.
        length_cost: cost of a token, which is added to the loss: a number, by default 0; "lazy", which grows with the
            accuracy of the pair; "impatient", the receiver answers after every token; "lazimpa", both (Rita et al.
            2020); or several.
        updates: updates of the game; from scratch 50000, after pre-training cap times concat's updates.
        cap: updates of the game after pre-training, as a multiple of concat's supervised updates at the same seed (of
            the slower side).
        most: limit of these updates; 0 for no limit.
        target: accuracy that each side must reach in pre-training.
        pretrain_representation: representation in which each side learns its grammar; soft, as published; or
            several.
        pretrained: results of a probe that saved its models (`keep_models`). Its senders and receivers of each grammar
            and seed play the game, instead of newly pre-trained models.
        report_every: updates between two evaluations of the game.
        meanings: the space, "attributes x values", or several: ["3x4", "5x10"] or "3x4,5x10". Also the number of values
            of each attribute, "10,4,2"; or a table of the meanings that exist (see ProbeSpec).
        frequencies: how often each meaning is drawn: "equal", or "zipf:S"; by default by the weights of the table, or
            equal. Or several.
        vocab_size: V, or several.
        word_length: tokens per word, w, or several; messages have A*w.
        draws: generators of the languages of `pretrain`: "icy" or "authors" (see ProbeSpec), or both.
        seeds: how many, counted from 123 as in the papers, or which: [1, 2], "1,2", "123-127".
        hidden: hidden size E of both, or several.
        symbols: symbols that senders can use under soft, gumb and discr: "V+1" (default), the vocabulary and the start
            symbol; or "V", the vocabulary alone. The same as the setting `symbols`.
        preset: "default", "published" for the behavior behind the printed numbers, or both.
        sender_options: further arguments of the senders.
        receiver_options: further arguments of the receivers.
        settings: changes to the preset's TrainingSettings, by name; a list has several values to vary.
        quick: a small space, few seeds and few updates if these are not given, to try things out.
    """

    function = "icy.e2e"
    job_kind = "e2e"
    small = MappingProxyType({"meanings": "3x4", "word_length": 2, "seeds": 2, "hidden": 32, "updates": 400})
    old_names = MappingProxyType({**RunSpec.old_names, "steps": "updates"})
    axes = (
        *("senders", "receivers", "replace_every", "replacement", "max_length", "length_cost"),
        *("representation", "pretrain_representation", "meanings", "frequencies", "vocab_size", "word_length"),
        *("draws", "hidden", "preset", "settings"),
    )

    sender: str | Iterable[str] = field(metadata={**MODELS, "flags": ("--sender", "-s")})
    receiver: str | Iterable[str] = field(metadata={**MODELS, "flags": ("--receiver", "-r")})
    pretrain: Grammars = option(
        SCRATCH,
        metavar="GRAMMAR|none",
        completes="files_and_grammars",
        help="grammars, or files of languages, that both sides learn first, each in a separate run, repeatable; or "
        "none, from scratch.",
    )
    representation: Representations = "soft"
    senders: Numbers = option(1, metavar="N[,...]")
    receivers: Numbers = option(1, metavar="M[,...]")
    replace_every: Numbers = option(0, metavar="N[,...]")
    replacement: str | Iterable[str] = option("gradual", metavar="gradual|random|receivers[,...]")
    max_length: Numbers | None = option(None, metavar="N[,...]")
    length_cost: float | str | Iterable[float | str] = option(0, metavar="C|lazy|impatient|lazimpa[,...]")
    updates: int | None = None
    cap: float = 20
    most: int = 10_000
    target: float = 0.99
    pretrain_representation: Representations = "soft"
    pretrained: str | Path | None = option(None, metavar="RESULTS")
    report_every: int = 100
    meanings: Spaces = option("5x10", **MEANINGS)
    frequencies: str | Iterable[str] | None = option(None, metavar="equal|zipf:S[,...]")
    vocab_size: Numbers = option(4, metavar="V[,...]", help="number of tokens, V.")
    word_length: Numbers = option(4, metavar="w[,...]")
    draws: Draws = option("icy", **DRAWS)
    seeds: Numbers = option(3, **SEEDS)
    hidden: Numbers = option(128, metavar="E[,...]")
    symbols: SymbolsName | None = option(None, brackets=False)
    preset: Presets = "default"
    sender_options: Mapping[str, Any] = option(
        {}, flags=("--sender-option",), help="a further argument of the senders, as in layers=2."
    )
    receiver_options: Mapping[str, Any] = option(
        {}, flags=("--receiver-option",), help="a further argument of the receivers."
    )
    settings: Mapping[str, Any] = option({}, **CHANGES)

    def __post_init__(self) -> None:
        _set_symbols(self)


@dataclass(frozen=True)
class ChainSpec(RunSpec):
    """The arguments of `icy.iterate`: the languages to pass from learner to learner, and how they are passed on.

    Attributes:
        model: names or wildcards of senders, or of receivers as in "receiver/FC2L".
        receiver: names of receivers, for chains of pairs: one for every sender, or one for all of them (or one sender
            for all receivers). Both sides learn, and the sender speaks to the next pair.
        grammar: first languages: names, chains (`rot+perm`) or wildcards of grammars, or languages (see ProbeSpec).
        generations: learners in a chain, one after the other.
        chains: how many chains start from each language, counted from seed 123, or the seeds themselves: [1, 2],
            "1,2", "123-127".
        bottleneck: the share of the meanings that a learner sees, or their number if it is more than 1; or several.
            Every value of every attribute is among them. 1 shows all meanings.
        transmission: the messages that a learner passes on: "greedy", the most probable tokens; "sampled", tokens
            drawn from its probabilities; or several.
        target: the accuracy on the meanings seen at which a learner stops; "none" trains `updates` in any case.
        updates: maximum number of updates of a learner, in pairs of each side.
        interaction: updates in which the sender and the receiver of a pair play after both have learned, so that
            ambiguous messages are penalized; or several. 0 for none.
        population: number of members of the population of a chain, or several. The teacher of a learner is drawn from
            all members of the last generation.
        replacement: members that a generation replaces by learners: "simultaneous", all; "gradual", one in turn; or
            several.
        scheme: options as in a paper, if they are not given: "ren20" (Ren et al. 2020, NIL) and "elberg25" (Elberg et
            al. 2025, CELEBI), an interaction of 4000 updates; "cheng23" (Cheng et al. 2023, imitation), a single
            generation without interaction; "li19-gradual" and "li19-simultaneous" (Li and Bowling 2019), populations
            of 5 that are replaced one by one or all at once.
        meanings: the space, "attributes x values", or several: ["3x4", "4x5"] or "3x4,4x5".
        vocab_size: V, or several.
        word_length: tokens per word, w, or several; messages have A*w.
        draws: generators of the first languages: "icy" or "authors" (see ProbeSpec), or both.
        hidden: hidden size E, or several.
        representation: form of messages in training: "soft", "gumb" or "discr", or several.
        preset: "default", "published" for the behavior behind the printed numbers, or both.
        options: further arguments of the models; in pairs, of the senders.
        receiver_options: further arguments of the receivers of pairs.
        settings: changes to the preset's TrainingSettings, by name; a list has several values to vary.
        quick: a small space, few chains and few generations wherever these are not given, to try things out.
    """

    function = "icy.iterate"
    job_kind = "chain"
    small = MappingProxyType(
        {"meanings": "3x4", "word_length": 2, "chains": 2, "hidden": 32, "generations": 3, "updates": 1000}
    )
    axes = (
        *("bottleneck", "transmission", "interaction", "population", "replacement"),
        *("meanings", "vocab_size", "word_length", "draws", "hidden", "representation", "preset"),
        "settings",
    )

    model: str | Iterable[str] = field(metadata=MODELS)
    receiver: str | Iterable[str] = option((), **{**MODELS, "flags": ("--receiver", "-r")})
    grammar: Grammars = option(
        "all",
        flags=("--grammar", "-g"),
        metavar="NAME",
        completes="files_and_grammars",
        help="first languages: names, chains (rot+perm) or wildcards of grammars, or files of languages, repeatable; "
        '"all" is every grammar that the learners can use.',
    )
    generations: int = option(10, minimum=1)
    chains: Numbers = option(4, metavar="N|N,N,...")
    bottleneck: float | str | Iterable[float] = option(0.5, metavar="SHARE|N[,...]")
    transmission: str | Iterable[str] = option("greedy", metavar="greedy|sampled[,...]")
    target: float | str = option(0.98, metavar="ACCURACY|none")
    updates: int = option(4000, minimum=1)
    interaction: Numbers = option(0, metavar="N[,...]")
    population: Numbers = option(1, metavar="N[,...]")
    replacement: str | Iterable[str] = option("simultaneous", metavar="simultaneous|gradual[,...]")
    scheme: str | None = option(None, metavar="|".join(SCHEMES))
    meanings: Spaces = option("4x5", metavar="AxK[,...]")
    vocab_size: Numbers = option(4, metavar="V[,...]", help="number of tokens, V.")
    word_length: Numbers = option(3, metavar="w[,...]")
    draws: Draws = option("icy", **DRAWS)
    hidden: Numbers = option(64, metavar="E[,...]")
    representation: Representations = "soft"
    preset: Presets = "default"
    options: Mapping[str, Any] = option(
        {}, flags=("--option",), help="a further argument of the models; in pairs, of the senders."
    )
    receiver_options: Mapping[str, Any] = option(
        {}, flags=("--receiver-option",), help="a further argument of the receivers of pairs."
    )
    settings: Mapping[str, Any] = option({}, **CHANGES)


@dataclass(frozen=True)
class ReproduceSpec(RunSpec):
    """The arguments of `icy.reproduce`.

    Attributes:
        table: the name of a published table, as in "icy22/table3".
        only: names or wildcards of models in the table; by default all.
        grammar: names of grammars in the table; by default all. Concat is always trained.
        representation: "soft", "gumb" or "discr", if in the table; by default all.
        seeds: number of seeds, or the seeds; by default the paper's number.
        observations: for agents: number of observations that each learns from; by default the paper's number.
        settings: changes to the training settings of the preset `published`.
        quick: one seed of the row that is expected to take the least time, under one representation, to try it out.
    """

    function = "icy.reproduce"
    small = MappingProxyType({"seeds": 1})

    table: str
    only: str | Iterable[str] = option((), metavar="NAME[,NAME]", completes="models")
    grammar: str | Iterable[str] = option((), flags=("--grammar", "-g"), metavar="NAME", completes="grammars")
    representation: Representations = option((), names=("soft", "gumb", "discr"))
    seeds: Numbers | None = option(None, **SEEDS)
    observations: int | None = option(None, metavar="N", exponents=True)
    settings: Mapping[str, Any] = option(
        {}, flags=("--set",), help="a change to the settings of the preset, as in check_every=400."
    )


# -- the spec of a search; see `icy.config.specs` ----------------------------------------------------------------------


@dataclass(frozen=True)
class SearchSpec(ProbeSpec):
    """The arguments of `icy.search`: the models to choose from, the objectives, and the settings of every trial.

    Takes every argument of `icy.probe`. Except for `hidden`, each has one value. A trial is a point of the space of
    models: a name, a hidden size and options.

    Attributes:
        model: names or wildcards of models: the search chooses one. Or a single model: the search chooses its options
            in `space`, or all that it declares.
        side: "sender" or "receiver" for only this side.
        space: values of each option to choose from, as in {"cell": ["GRU", "LSTM"]}. A single value is fixed.
        minimize: what should be small: "ratio:shufdet", a difference such as "ratio:rot - ratio:shufdet", "people",
            "parameters", "updates" or "seconds"; several give the Pareto front. See icy.experiments.search.objectives.
        maximize: what should be large, in the same words.
        grammar: grammars to train in addition to the grammars of the objectives.
        trials: number of trials; less if the space has fewer points.
        sampler: how points are chosen: "tpe", by a model of the results so far (Bergstra et al. 2011), or "random".
        sampler_seed: seed of the choice.
        batch: trials that are chosen together, from the results of earlier batches, and trained at the same time.
        rungs: tables of settings that replace settings of the search. All trials run at the first rung, and the best
            share of each rung (`keep`) at the next.
        keep: share of the trials of a rung that go to the next.
        finalists: number of the best trials that are measured again with new seeds and words.
        new_seeds: number of seeds of these measurements.
        larger: settings of a second measurement of finalists and baselines, as in {"meanings": "5x10"}.
        baselines: names of models that are measured with the finalists; by default HierZero:dgsend, FC2L and
            RNNAutoReg:LSTM among senders, and Hier:GRU and FC2L among receivers. Their hidden size is that of the best
            trial, unless they have their own, as in "FC2L hidden=128".
        people: the people of the objective "people": "icy22", or a file with the rows of an exported study (.csv or
            .parquet).
        instances: games per dataset and grammar in the distance to people.
        winner: name of the best model in the plug-in file winner.py.
        quick: a small space, few seeds, few trials and a small hidden size if these are not given, to try things out.
    """

    function = "icy.search"
    small = MappingProxyType({**ProbeSpec.small, "trials": 6, "finalists": 1, "new_seeds": 2, "instances": 2})

    model: str | Iterable[str] = option((), **MODELS)
    side: SideName | None = None
    space: Mapping[str, Any] = option(
        {}, help='values of an option to choose from, as in cell=["GRU","LSTM"]; repeatable.'
    )
    minimize: str | Iterable[str] = option((), metavar="OBJECTIVE")
    maximize: str | Iterable[str] = option((), metavar="OBJECTIVE")
    grammar: Grammars = option((), flags=("--grammar", "-g"), metavar="NAME", completes="files_and_grammars")
    trials: int = option(20, minimum=1)
    sampler: SamplerName = option("tpe", brackets=False)
    sampler_seed: int = 0
    batch: int = option(4, minimum=1)
    rungs: Sequence[Mapping[str, Any]] = ()
    keep: float = 1 / 3
    finalists: int = option(3, minimum=0)
    new_seeds: int = option(5, minimum=2)
    larger: Mapping[str, Any] = option(
        {}, help="a setting of a second measurement of finalists and baselines, as in meanings=5x10; repeatable."
    )
    baselines: str | Iterable[str] | None = option(None, metavar="NAME", completes="models")
    people: str | Path = option("icy22", metavar="icy22|ROWS")
    instances: int = option(20, minimum=1)
    winner: str = option("Winner", metavar="NAME")
