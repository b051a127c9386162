"""Arguments and settings without effect: warned of or refused before training."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from icy.config.protocols import PROTOCOLS, SCRATCH, no_max_updates
from icy.config.settings import PRETRAINING_SETTINGS, settings_for
from icy.config.specs import ChainSpec, EndToEndSpec, ProbeSpec, RunSpec, SweepSpec
from icy.core.errors import InvalidSettingError
from icy.core.machine import resolve_device
from icy.core.registry import SIDES, registry
from icy.core.text import several, words
from icy.core.types import Fields
from icy.training.combinations import OF_MESSAGES

log = logging.getLogger(__name__)
S = TypeVar("S", bound=RunSpec)
REFUSED = ("held_out", "split")  # refused, since users expect a measure of generalization
IDLE_IN_CHAINS = ("fresh_reading", "round_ratio", "max_steps", "training_readings")  # a learner has other rules
Idle = dict[str, str]  # names of arguments and settings without effect, with a sentence for each


def warn_of_idle(specs: Sequence[RunSpec]) -> None:
    """Warn of arguments and settings that have no effect in any of several runs that are planned together.

    Raises:
        InvalidSettingError: an argument without effect is among REFUSED.
    """
    idle_options = [idle(spec) for spec in specs]
    for name in dict.fromkeys(name for each in idle_options for name in each):
        sentences = [
            each.get(name)
            for spec, each in zip(specs, idle_options, strict=True)
            if name in spec.given or name in getattr(spec, "settings", {})
        ]
        if None in sentences:  # it has an effect in one of them
            continue
        for sentence in dict.fromkeys(filter(None, sentences)):
            if name in REFUSED:
                raise InvalidSettingError(sentence)
            log.warning("%s", sentence)


def warn_of_idle_retries(spec: SweepSpec) -> None:
    """Warn of retries that have no effect."""
    if "retries" in spec.given and spec.runner == "local" and spec.workers == 1:
        log.warning("retries does nothing with one worker: the worker is this process, which is never restarted.")


def without_idle(spec: S) -> S:
    """Return one of several specs without arguments that have no effect in it, but may have one in the others."""
    left_out = [name for name in idle(spec) if name in ("held_out", "split", "cap", "max_updates")]
    active = replace(spec, **{name: getattr(type(spec), name) for name in left_out})
    return active.with_given(spec.given)


def idle(spec: RunSpec) -> Idle:
    """Return the arguments and settings without effect in a run; empty for kinds of jobs that plug-ins register."""
    own = _idle_in_probe(spec) if isinstance(spec, ProbeSpec) else ()
    own = _idle_in_pairs(spec) if isinstance(spec, EndToEndSpec) else own
    own = _idle_in_chains(spec) if isinstance(spec, ChainSpec) else own
    return {**dict(_idle_anywhere(spec)), **dict(own)}


def _idle_anywhere(spec: RunSpec) -> Iterator[tuple[str, str]]:
    if "per_gpu" in spec.given and spec.runner == "ray" and spec.device == "cpu":
        yield "per_gpu", "per_gpu does nothing on a cluster's CPUs; there is a process per core."
    if getattr(spec, "settings", {}).get("tf32") and spec.runner == "local" and resolve_device(spec.device) == "cpu":
        yield "tf32", "The setting 'tf32' does nothing on a CPU."


def _idle_in_probe(spec: ProbeSpec) -> Iterator[tuple[str, str]]:
    protocol, representation = PROTOCOLS.get(str(spec.protocol)), str(spec.representation).lower()
    if protocol is None:
        return  # refused elsewhere
    if not protocol.holds_out:
        why = f"The protocol '{protocol.name}' holds out no meanings; held_out and split are for 'generalise'."
        yield from ((name, why) for name in REFUSED if name in spec.given)
    if "cap" in spec.given and spec.cap is not None and not protocol.stops_at_target:
        yield "cap", f"The protocol '{protocol.name}' has no cap: every grammar gets concat's updates."
    if "max_updates" in spec.given and spec.max_updates is not None:
        if protocol.measure != "ratio":
            yield "max_updates", no_max_updates(protocol.name)
        elif "max_steps" in spec.settings:
            yield "max_steps", "The setting 'max_steps' does nothing with max_updates, which replaces it."
    yield from _idle_settings(spec, [representation], "probe", f"in a probe under '{representation}'")
    if "round_ratio" in spec.settings and protocol.measure != "ratio":
        yield "round_ratio", f"The setting 'round_ratio' does nothing under '{protocol.name}', which gives no ratios."
    sides = {entry.kind for model in words(spec.model) for entry in registry.match(model, *SIDES)}
    yield from _idle_on_side(spec.settings, representation, sides)


def _idle_on_side(settings: Fields, representation: str, sides: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the settings without effect, because only models of the other side read them, and a sentence for each."""
    if sides == {"receiver"}:
        why = "does nothing in receivers: it concerns the messages of senders."
        yield from ((name, f"The setting '{name}' {why}") for name in OF_MESSAGES if name in settings)
    if "least_squares" in settings and representation == "gumb" and sides == {"sender"}:
        yield "least_squares", "The setting 'least_squares' does nothing in senders."


def _idle_in_chains(spec: ChainSpec) -> Iterator[tuple[str, str]]:
    pair, representation = bool(words(spec.receiver)), str(spec.representation).lower()
    kind, where = "e2e" if pair else "probe", f"in a chain under '{representation}'"
    yield from _idle_settings(spec, [representation], kind, where)
    sides = {"receiver" if name.startswith("receiver/") else "sender" for name in words(spec.model)}
    yield from _idle_on_side(spec.settings, representation, set(SIDES) if pair else sides)
    yield from ((n, f"The setting '{n}' does nothing in a chain.") for n in IDLE_IN_CHAINS if n in spec.settings)
    if "replacement" in spec.given and spec.population == 1 and spec.scheme is None:
        yield "replacement", "replacement does nothing without a population of at least two members."


def _idle_in_pairs(spec: EndToEndSpec) -> Iterator[tuple[str, str]]:
    scratch = several(spec.pretrain) == [SCRATCH]
    own = str(spec.representation).lower()
    both = [own] if scratch else [own, str(spec.pretrain_representation).lower()]
    yield from _idle_settings(spec, both, "e2e", f"in an end-to-end run with the representation '{own}'")
    if "round_ratio" in spec.settings:
        yield "round_ratio", "The setting 'round_ratio' does nothing in an end-to-end run, which gives no ratios."
    if spec.updates is not None or scratch:
        why = "from scratch, which does not train concat"
        why = why if spec.updates is None else f"with {spec.updates} updates, which fix the length of the game"
        yield from ((name, f"{name} does nothing {why}.") for name in ("cap", "most") if name in spec.given)
    if "replacement" in spec.given and not spec.replace_every:
        yield "replacement", "replacement does nothing without replace_every, the updates between two replacements."
    if scratch:
        names = [name for name in ("target", "pretrain_representation", "draws") if name in spec.given]
        yield from ((name, f"{name} does nothing from scratch: it is for pre-training.") for name in names)
    elif spec.pretrained is not None and "target" in spec.given:
        yield "target", "target does nothing with pretrained: the probe has trained the models already."
    if "least_squares" in spec.settings and "gumb" not in ([] if spec.pretrained is not None else both[1:]):
        yield "least_squares", "The setting 'least_squares' does nothing in a game: it is for pre-training by 'gumb'."
    if scratch or spec.pretrained is not None:
        why = f"does nothing {'from scratch' if scratch else 'with pretrained'}: it is for pre-training."
        yield from ((name, f"The setting '{name}' {why}") for name in PRETRAINING_SETTINGS if name in spec.settings)


def _idle_settings(spec: Any, representations: list[str], kind: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield the settings that no representation of a run reads."""
    settings = settings_for(spec.preset, kind, **spec.settings)
    used = {name for representation in representations for name in settings.under(representation, kind)}
    for name in spec.settings:
        if name == "check_growth" and name not in used and settings.check_every is not None:
            yield name, f"The setting '{name}' does nothing with a fixed grid, check_every={settings.check_every}."
        elif name not in used and name not in settings.silent(kind):
            yield name, f"The setting '{name}' does nothing {where}."
