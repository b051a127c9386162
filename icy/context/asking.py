"""Ask text models for the held-out meanings of a language, after more and more examples."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from icy.config.protocols import BASELINE, reached_at
from icy.core.streams import stream
from icy.records.kinds import JobKind
from icy.text.cache import shared_model
from icy.text.interface import Answer, Question, TooLongError
from icy.text.models import TextModel, replies_of
from icy.training.job import Outcome, Reading, Replicate, Report

from .prompts import Rows, Shown, baselines
from .settings import ContextJob, ContextRequest, ContextSettings, context_jobs

SCORES = ("accuracy", "words", "whole", "unreadable")
BASELINES = ("nearest", "bag", "lookup", "composer")
COUNTS = ("requests", "cached", "prompt_tokens", "answer_tokens")
CHOICE = 8  # largest number of tokens of an answer that is one choice
UNREADABLE = -1  # in place of a token or value


def train(job: ContextJob, report: Report | None = None) -> Iterator[Outcome]:
    """Ask for all replicates of a job, concat first, and yield their outcomes; see Job.train."""
    own, learned = job.settings, dict(job.baselines)
    model = shared_model(own.model, own, str(own.cache), own.max_requests, own.run)
    for replicate in sorted(job.replicates, key=lambda one: one.condition != BASELINE):
        concat = learned.get(replicate.seed)
        if own.measure == "ratio" and replicate.condition != BASELINE and isinstance(concat, str):
            yield Outcome(replicate, "no_baseline", 0, math.nan)
            continue
        outcome = _learn(job, replicate, model, report)
        if own.measure != "ratio":
            yield replace(outcome, reason="steps", crossing=None)
            continue
        if replicate.condition == BASELINE:
            concat = learned[replicate.seed] = outcome.crossing or outcome.reason
        assert concat is not None, "concat is asked first"
        if not isinstance(concat, str):
            outcome = replace(outcome, baseline_steps=math.ceil(concat), baseline_crossing=concat)
        yield outcome


def _learn(job: ContextJob, replicate: Replicate, model: TextModel, report: Report | None) -> Outcome:
    """Ask for the held-out meanings after each number of examples."""
    own, language, counts = job.settings, job.language(replicate), Counter[str]()
    shown, right = own.shown(replicate.seed, language)
    before, crossing = (0, _chance(own)), None  # without examples
    curve: list[tuple[float, ...]] = []
    for count in own.examples:
        some = replace(shown, inputs=shown.inputs[:count], outputs=shown.outputs[:count])
        try:
            scores = _scores(own, _answers(own, some, replicate, model, counts), right)
        except TooLongError:  # for the model's context
            if not curve:
                raise
            break
        others = baselines(some, language)
        curve.append((count, *scores.values(), *(float((others[name] == right).mean()) for name in BASELINES)))
        crossing = reached_at(own.target, before, (count, scores["accuracy"])) if crossing is None else crossing
        before = count, scores["accuracy"]
        if report is not None:
            report([Reading(replicate, count, scores["accuracy"])])
    reason = "target" if crossing is not None else "max_steps" if replicate.condition == BASELINE else "cap"
    last = dict(zip(CONTEXT.curve[2:], curve[-1][2:], strict=True))
    numbers = {**last, "chance": _chance(own), **{name: counts[name] for name in COUNTS}}
    return Outcome(replicate, reason, *before, curve, extra=numbers, crossing=crossing)


def _chance(own: ContextSettings) -> float:
    """Return the accuracy of random answers."""
    return 1 / own.vocab_size if own.role == "sender" else own.space.chance


def _answers(own: ContextSettings, shown: Shown, at: Replicate, model: TextModel, counts: Counter[str]) -> Rows:
    """Ask for the answers to all queries; UNREADABLE in place of unreadable ones."""
    count, places = len(shown.queries), len(own.sheet.options)
    names = "context", at.condition, len(shown.inputs)
    seeds = iter(stream(at.seed, *names).integers(2**31, size=count * places).tolist())
    found: Rows = np.full((count, places), UNREADABLE)

    def ask(parts: Sequence[Shown], **how: Any) -> Iterator[tuple[int, Answer]]:
        """Ask a question about each part; yield its number with the answer."""
        most = min(own.max_tokens, CHOICE) if how else own.max_tokens
        questions = [
            Question(own.sheet.prompt(one, not how), max_tokens=most, seed=next(seeds), gap=" ", data=one, **how)
            for one in parts
        ]
        numbers = {id(question): number for number, question in enumerate(questions)}
        for question, answer in replies_of(model, questions, Answer):
            read, written = answer.usage or (0, 0)
            counts.update(dict(zip(COUNTS, (1, answer.cached, read, written), strict=True)))
            yield numbers[id(question)], answer

    if own.answers == "text":
        groups = [range(start, min(start + own.batch, count)) for start in range(0, count, own.batch)]
        for number, answer in ask([replace(shown, queries=shown.queries[[*group]]) for group in groups]):
            for query, row in zip(groups[number], own.sheet.read(answer, len(groups[number])), strict=True):
                found[query] = UNREADABLE if row is None else row
        return found
    for place, options in enumerate(own.sheet.options):
        # After a part that could not be read, the answer continues with the first option.
        parts = [
            replace(shown, queries=shown.queries[[n]], begun=found[n, :place].clip(0).tolist()) for n in range(count)
        ]
        for number, answer in ask(parts, candidates=options):
            known = {text: value for text, value in answer.logprobs.items() if text in options}
            said = max(known, key=lambda text: known[text]) if known else answer.text.strip()
            found[number, place] = options.index(said) if said in options else UNREADABLE
    return found


def _scores(own: ContextSettings, answers: Rows, right: Rows) -> Mapping[str, float]:
    """Return the share of right places, words and answers, and that of answers that could not be read."""
    equal = answers == right
    words = equal.reshape(len(equal), -1, own.word_length if own.role == "sender" else 1).all(2)
    numbers = equal.mean(), words.mean(), equal.all(1).mean(), (answers == UNREADABLE).any(1).mean()
    return dict(zip(SCORES, map(float, numbers), strict=True))


CONTEXT = JobKind(
    "context",
    request=ContextRequest,
    settings=ContextSettings,
    jobs=context_jobs,
    train=train,
    rehearse=lambda job, updates: math.nan,  # no model is asked before the run
    measures=(*SCORES[1:], *BASELINES, "chance", *COUNTS),
    curve=("steps", *SCORES, *BASELINES),
    noun="languages",
    counted="examples",
)
"""The kind of job."""
