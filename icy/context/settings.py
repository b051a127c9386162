"""Settings, requests and jobs of text models that learn languages from the examples in their prompts."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from icy.config.kinds import Settings, request_of, values_for
from icy.config.protocols import BASELINE
from icy.config.requests import SEEDS, RunRequest, option
from icy.config.settings import Meanings, Numbers, PresetName, RepresentationName, TrainingSettings
from icy.core.checks import seed_list
from icy.core.errors import InvalidSettingError
from icy.core.fields import setting
from icy.core.registry import Entry
from icy.core.streams import DrawsName, stream
from icy.core.text import counted, words
from icy.core.types import Fields
from icy.grammars import check_side, expand_grammars
from icy.languages.language import Language
from icy.languages.splits import Split
from icy.text.interface import Constraint, TextSettings, cost_of_reading, estimated_tokens
from icy.text.models import check_name, entry_of
from icy.training.combinations import jobs_of_each
from icy.training.job import Replicate
from icy.training.language_job import LanguageJob
from icy.training.probe_settings import MEANINGS_HELP, LanguageSettings

from .prompts import FORMS, Rows, Sheet, Shown

FIRST = 4  # examples in the shortest prompts; each further prompt has twice as many
UNUSED: Any = {"asked": False, "key": "", "label": ""}  # fields that text models do not have


def _ends(own: "ContextSettings") -> Fields:
    return {"target": own.target, "max_updates": own.examples[-1], "settings": {"round_ratio": False}}


@dataclass(frozen=True, kw_only=True)
class ContextSettings(TextSettings, LanguageSettings):
    """How a text model learns languages from examples.

    Attributes:
        model: URL#MODEL for a server, transformers#FOLDER, or other names of `icy list text-models`.
        role: "sender", which answers with the message of a meaning; "receiver", with the meaning of a message; or both.
        protocol: "acquire", examples to the target as a ratio to concat's; "generalise", accuracy on the held-out
            meanings after the most examples; or both. Both use the same answers.
        form: form of the prompts; or several: "plain-1", values by numbers and tokens as letters; "named-1", values by
            names; "spoken-1", tokens as syllables; "story-1", both.
        answers: "text", whole answers; or "choices", one part of an answer per request, the one with the largest
            log-probability, so that small base models can take part; or both.
        target: accuracy at which a language counts as learned.
        most: largest number of examples; by default all meanings that are not held out.
        held_out: number of meanings that are held out of the examples, and asked for.
        batch: number of meanings that a request asks for.
        max_tokens: largest number of tokens of an answer.
        cache: folder for saved answers; "none" does not save them. With saved answers, a repeated call resumes.
        max_requests: largest number of requests that a model gets in this call, without saved answers.
        temperature: temperature of sampling; 0 takes the likeliest answer.
        price_prompt: price of a million tokens that the model reads, for the cost in a dry run.
    """

    kind = "context"
    on_cpu = True
    learners = ()  # no model trains

    model: str = setting(asked=False, key="", label="")
    role: Literal["sender", "receiver"] = setting("sender", axis=True, key="", label="")
    protocol: Literal["acquire", "generalise"] = setting("acquire", axis=True)
    form: str = setting("plain-1", "form of prompts", among=FORMS, since="0.3", axis=True, every=lambda: FORMS)
    answers: Literal["text", "choices"] = setting("text", axis=True, since="0.3")
    meanings: str = setting("3x4", axis=True, takes=Meanings, metavar="AxK[,...]", help=MEANINGS_HELP)
    target: float = setting(0.8, "target", above=0, most=1, writes=_ends)
    most: int | None = setting(None, "largest number of examples", least=1, key="", label="")
    held_out: int = setting(16, "number of held-out meanings", least=1, quick=4, label="")
    batch: int = setting(1, least=1, since="0.3")
    max_tokens: int = setting(1024, least=1, label="", since="0.3")
    cache: str | Path = setting("icy-text", key="", label="", metavar="FOLDER")
    max_requests: int | None = setting(None, "largest number of requests", least=1, key="", label="")
    temperature: float = setting(0.0, "temperature", least=0, most=10, label="", since="0.3")
    price_prompt: float = setting(0.0, "price", least=0, key="", label="")
    run: str = setting("", asked=False, key="", label="")
    constrain: Constraint = setting("none", **UNUSED)
    hidden: int = setting(1, **UNUSED)
    draws: DrawsName = setting("icy", **UNUSED)
    representation: RepresentationName = setting("discr", **UNUSED)
    preset: PresetName = setting("default", **UNUSED)
    training: TrainingSettings = setting(TrainingSettings(), **UNUSED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.held_out > (most := self.space.size - self.space.values):
            raise InvalidSettingError(f"Of {self.space}, at most {most} meanings can be held_out; not {self.held_out}.")
        assert self.sheet  # raises if the form does not have the values or tokens

    @property
    def name(self) -> str:
        """Name of the text model with its role."""
        return f"{self.role}/{self.model}"

    @property
    def side(self) -> str:
        """ "sender" or "receiver"."""
        return self.role

    @property
    def measure(self) -> str:
        """The measure of the protocol."""
        return "ratio" if self.protocol == "acquire" else "held_out"

    @property
    def models(self) -> list[Entry]:
        """The registry entry of the text model, in a list."""
        return [entry_of(self.model)]

    @cached_property
    def sheet(self) -> Sheet:
        """How the language is shown."""
        return Sheet(self.space, self.vocab_size, self.message_length, self.role, self.form)

    @cached_property
    def examples(self) -> list[int]:
        """The numbers of examples in the prompts."""
        most = min(self.space.size - self.held_out, self.most or self.space.size)
        return [n for n in (FIRST * 2**k for k in range(32)) if n < most] + [most]

    def shown(self, seed: int, language: Language) -> tuple[Shown, Rows]:
        """Return all examples of a seed in their order with the queries, and the right answers to the queries."""
        rest, asked = Split("random", self.held_out / self.space.size).parts(self.space, seed)
        order = stream(seed, "context", "order").permutation(rest)[: self.examples[-1]]
        both: tuple[Any, Any] = language.meanings, language.messages
        source, target = both[:: 1 if self.role == "sender" else -1]
        return Shown(self.sheet, source[order], target[order], source[asked]), target[asked]

    def facts(self) -> dict[str, str]:
        """Return the settings that distinguish rows with the same name, as texts by heading."""
        return Settings.facts(self)

    def length(self, baseline: float | None) -> int:
        """Return the number of examples in the longest prompt."""
        return self.examples[-1]

    def summary(self, record: Fields) -> str:
        """Return the result of a replicate in a few words."""
        return f"held out {record['accuracy']:.3f} after {counted(record['steps'], 'example')}"

    def explain(self, reason: str, condition: str, numbers: Fields) -> str:
        """Return the reason for a failure, as a sentence without a full stop; "" for the usual sentence."""
        if reason == "max_steps":
            return f"concat did not reach {self.target} within {counted(self.examples[-1], 'example')}"
        return super().explain(reason, condition, numbers)


@dataclass(frozen=True, kw_only=True)
class ContextJob(LanguageJob):
    """Languages that a text model learns from examples."""

    checkpoints: bool = False  # answers are saved instead

    def requests(self) -> int:
        """Return the number of requests for all replicates."""
        own = self.settings
        places = own.held_out * len(own.sheet.options) if own.answers == "choices" else -(-own.held_out // own.batch)
        return len(self.replicates) * len(own.examples) * int(places)

    def conditions_text(self) -> str:
        """Return sentences that list the grammars, and count requests and tokens."""
        own, replicate = self.settings, self.replicates[0]
        shown, _ = own.shown(replicate.seed, self.language(replicate))
        each = [Shown(own.sheet, shown.inputs[:n], shown.outputs[:n], shown.queries[: own.batch]) for n in own.examples]
        tokens = [estimated_tokens(own.sheet.prompt(one)) for one in each]
        whole = round(sum(tokens) / len(tokens) * self.requests())
        return (
            f"{super().conditions_text()} {self.requests():,} requests, about {whole:,} tokens to read; the longest "
            f"prompt has about {tokens[-1]:,}. {cost_of_reading(whole, own.price_prompt)}"
        ).strip()


@request_of(ContextSettings)
class ContextRequest(RunRequest):
    """The arguments of `icy.in_context`.

    Attributes:
        grammar: names, chains (`rot+perm`) or wildcards; "all" is every grammar that the role can use.
        seeds: how many, counted from 123 as in the papers, or which: [1, 2], "1,2", "123-127".
        workers: number of processes. Each loads a local model, and counts its own requests.
        quick: a small language and few seeds if these are not given, to try things out.
    """

    function = "icy.in_context"
    job_kind = "context"
    small = MappingProxyType({"seeds": 1, "grammar": "concat,perm"})

    model: str | Iterable[str] = option((), flags=("--model", "-m"), metavar="NAME|URL#MODEL", completes="text_models")
    grammar: str | Iterable[str] = option(
        "all", flags=("--grammar", "-g"), metavar="NAME", completes="grammars",
        help="names, chains (rot+perm) or wildcards, repeatable.",
    )  # fmt: skip
    seeds: Numbers = option(3, **SEEDS)
    workers: int | None = option(1, minimum=1)


def context_jobs(request: Any) -> Sequence[ContextJob]:
    """Return the jobs of a request, one per model and combination of values along its axes.

    Raises:
        IcyError: an unknown name, or a value that is not accepted.
    """
    return jobs_of_each(request, partial(_rows, uuid.uuid4().hex))


def _rows(run: str, request: Any) -> list[ContextJob]:
    """Return the jobs of a request with one value along each axis; `run` is unique to the call."""
    names, role, jobs = words(request.model), str(request.role), []
    values = values_for(ContextSettings, request) | {"meanings": str(request.meanings), "run": run}
    grammars = [BASELINE, *(g for g in expand_grammars(request.grammar, role) if g != BASELINE)]
    replicates = tuple(Replicate(name, seed) for name in grammars for seed in seed_list(request.seeds))
    for name in names:
        check_name(name)
        job = ContextJob(settings=ContextSettings(**{**values, "model": name}), replicates=replicates)
        for grammar in grammars:  # raises if it does not fit
            check_side(grammar, role)
            job.language(Replicate(grammar, replicates[0].seed))
        jobs.append(job)
    if not jobs:
        raise InvalidSettingError("No model was given; `icy list text-models` shows all.")
    return jobs
