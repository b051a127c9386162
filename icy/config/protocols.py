"""Protocols: the length of the training of each grammar relative to concat, and the reported measure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from icy.core.checks import LARGEST_RATIO, whole_number
from icy.core.errors import InvalidSettingError, quoted, require_known

BASELINE = "concat"
PAIRS = (
    "e2e"  # in configurations of pairs, which have no protocol; the version of their rules is that of EndToEndSettings
)
SCRATCH = "none"  # instead of a grammar: sender and receiver have not learned a language before


@dataclass(frozen=True)
class Protocol:
    """Rules for measuring a grammar relative to the baseline grammar, concat, with the same seed.

    Concat is trained until it reaches `target`, after N updates. Every other grammar is a new model with the same
    initial weights and the same meanings, trained for at most `cap` * N updates. Checks measure the accuracy. The step
    at which the target is reached is interpolated between two checks (`reached_at`), except on a fixed grid of checks.

    Attributes:
        name: name that users type.
        description: one line.
        source: paper and section.
        target: accuracy at which the training on concat stops, and on other grammars too if `stops_at_target`.
        cap: largest number of updates of other grammars, as a multiple of N.
        max_updates: a common budget instead of the cap: every grammar, including concat, is trained for this number of
            updates, even beyond the target; None for no budget.
        stops_at_target: whether training on other grammars stops at `target`.
        measure: "accuracy" at the end, "ratio" of steps to N, or "held_out", accuracy at the end on meanings that were
            never trained on.
        version: increased whenever a change could alter results.
        targets: targets by representation, if different from `target`.
    """

    name: str
    description: str
    source: str
    target: float
    cap: float
    stops_at_target: bool
    measure: str
    version: int = 1
    targets: Mapping[str, float] = field(default_factory=dict)
    max_updates: int | None = None

    @property
    def length(self) -> dict[str, float]:
        """The limit of the training by name: {"cap": ...} or {"max_updates": ...}."""
        return {"cap": self.cap} if self.max_updates is None else {"max_updates": self.max_updates}

    @property
    def holds_out(self) -> bool:
        """Whether some meanings are held out of training; `target` then refers to the meanings of training."""
        return self.measure == "held_out"

    def limit(self, baseline_steps: float) -> int:
        """Return the smallest number of steps at which a check ends the training, whatever the accuracy is."""
        if self.max_updates is not None:
            return self.max_updates
        return math.ceil(round(self.cap * baseline_steps, 6))  # 1.1 * 100 is 110.00000000000001


PROTOCOLS = {
    p.name: p
    for p in (
        Protocol(
            "budget",
            "Accuracy of each grammar after as many updates as concat takes to the target.",
            "Perkins21 tables 13-16; Icy22 table 20",
            target=0.99,
            targets={"discr": 0.95},  # sampled tokens rarely get further
            cap=1,
            stops_at_target=False,
            measure="accuracy",
        ),
        Protocol(
            "acquire",
            "Updates to the target accuracy as a ratio to concat's, cut at 20.",
            "Icy22 tables 3-6, 12-15, 19",
            target=0.8,
            cap=20,
            stops_at_target=True,
            measure="ratio",
        ),
        Protocol(
            "generalise",
            "Accuracy on meanings held out of training, when the other meanings are learned to the target, cut at 20.",
            "icy; the papers hold no meanings out",
            target=0.99,
            targets={"discr": 0.95},
            cap=20,
            stops_at_target=True,
            measure="held_out",
        ),
    )
}


def get_protocol(
    name: str,
    target: float | None = None,
    cap: float | None = None,
    representation: str = "soft",
    max_updates: int | None = None,
) -> Protocol:
    """Return a protocol by name, with the target of a representation, or another target, cap or common budget.

    Raises:
        UnknownNameError: unknown protocol.
        InvalidSettingError: a target outside (0, 1], or a cap below 1, or a cap for `budget`; max_updates below 1, for
            a protocol other than `acquire`, or together with a cap.
    """
    require_known("protocol", name, PROTOCOLS, "`icy list protocols` describes them.")
    protocol = PROTOCOLS[name]
    if target is None:
        protocol = replace(protocol, target=protocol.targets.get(representation, protocol.target))
    else:
        protocol = replace(protocol, target=checked_target(target))
    if cap is not None:
        if not protocol.stops_at_target:
            raise InvalidSettingError(
                f"The protocol '{name}' has no cap: every grammar is trained for as many updates as concat."
            )
        protocol = replace(protocol, cap=checked_cap(cap, 1))
    if max_updates is not None:
        if protocol.measure != "ratio":
            raise InvalidSettingError(no_max_updates(name))
        if cap is not None:
            raise InvalidSettingError(
                f"max_updates={max_updates} replaces the cap: it is the number of updates of every grammar. Give only "
                "one of the two."
            )
        protocol = replace(protocol, max_updates=whole_number("setting max_updates", max_updates))
    return protocol


def no_max_updates(name: str) -> str:
    """Return the error for a protocol without a common budget."""
    return f"max_updates is an option of the protocol 'acquire', not of '{name}': leave it out."


def checked_target(target: Any) -> float:
    """Return a target unchanged.

    Raises:
        InvalidSettingError: the target is not an accuracy above 0.
    """
    if not isinstance(target, (int, float)) or not 0 < target <= 1:
        raise InvalidSettingError(f"The target must be an accuracy above 0 and at most 1, not {quoted(target)}.")
    return target


def checked_cap(cap: Any, least: float) -> float:
    """Return a cap unchanged.

    Raises:
        InvalidSettingError: the cap is not a number from `least` to LARGEST_RATIO, or is 0.
    """
    if not isinstance(cap, (int, float)) or not least <= cap <= LARGEST_RATIO or cap == 0:
        from_ = f"at least {least:g}" if least else "above 0"
        raise InvalidSettingError(
            f"The cap must be a multiple of concat's updates, {from_} and at most {LARGEST_RATIO:g}, not {quoted(cap)}."
        )
    return cap


def reached_at(target: float, before: tuple[int, float] | None, now: tuple[int, float]) -> float | None:
    """Return the step at which an accuracy was reached, on a straight line between two checks.

    Args:
        target: the accuracy.
        before: steps and accuracy at the previous check, below the target; None for the first check.
        now: steps and accuracy at this check.

    Returns:
        The interpolated step; for the first check, the step of the check; None if this check is below the target.
    """
    if now[1] < target:
        return None
    if before is None:
        return now[0]
    (began, low), (ended, high) = before, now
    return began + (ended - began) * (target - low) / (high - low)


def decide(
    protocol: Protocol,
    grammar: str,
    reached: float | None,
    steps: int,
    baseline: float | str | None,
    max_steps: int,
    late: bool = False,
) -> str | None:
    """Decide at an evaluation whether a replicate is finished, and why.

    Args:
        protocol: the protocol.
        grammar: the replicate's grammar.
        reached: step at which the replicate reached the target; None if this check is below the target.
        steps: steps so far.
        baseline: concat's updates at the same seed; None while concat is being trained; a text if concat failed.
        max_steps: limit of the baseline's steps.
        late: whether a budget ends at the first check after the limit, not at the limit.

    Returns:
        None to continue; or "target", "cap", "budget", "max_steps" (the baseline missed the target), or "no_baseline".
    """
    if protocol.max_updates is not None and (grammar == BASELINE or not isinstance(baseline, str)):
        if steps < protocol.max_updates:
            return None
        return "target" if reached is not None else "max_steps" if grammar == BASELINE else "cap"
    if grammar == BASELINE:
        if reached is not None:
            return "target"
        return "max_steps" if steps >= max_steps else None
    if isinstance(baseline, str):
        return "no_baseline"
    if protocol.stops_at_target and reached is not None:
        # On a fixed grid the check counts, as in the papers, and may be the one that ends the training.
        beyond = baseline is not None and reached != steps and reached > protocol.cap * baseline
        return "cap" if beyond else "target"
    if baseline is not None and steps >= protocol.limit(baseline) + (late and not protocol.stops_at_target):
        return "cap" if protocol.stops_at_target else "budget"
    return None
