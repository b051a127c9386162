"""The contract that every plug-in must fulfill, as small named checks.

    >>> from icy.testing import check
    >>> results = check("rot")
    >>> all(result.passed for result in results)
    True

`check` takes the name of any plug-in, or an unregistered class or function. `icy check NAME` runs the same
checks from the command line, and `parametrize_with_checks` makes each check a separate pytest test. If a plug-in
cannot pass a check, declare the check and the reason in the argument `expected_failures`, or in an attribute of this
name on the factory. The failure is then reported as excused.
"""

import warnings
from collections.abc import Callable
from typing import Any

from .cases import CheckFailure, NotApplicable, Unsupported
from .cells import CELL_CHECKS, CellCase
from .contracts import CONTRACTS, bound_checks, check, parametrize_with_checks
from .cores import CORE_CHECKS, CoreCase
from .grammars import GRAMMAR_CHECKS, GrammarCase
from .metrics import METRIC_CHECKS, MetricCase
from .models import MODEL_CHECKS, ModelCase
from .perceptions import PERCEPTION_CHECKS, PerceptionCase
from .players import PLAYER_CHECKS, PlayerCase
from .runner import BoundCheck, CheckResult, ContractError
from .study_players import STUDY_PLAYER_CHECKS, StudyPlayerCase
from .text_models import TEXT_MODEL_CHECKS, TextModelCase
from .worlds import WORLD_CHECKS, WorldCase

__all__ = [
    "CELL_CHECKS",
    "CORE_CHECKS",
    "GRAMMAR_CHECKS",
    "METRIC_CHECKS",
    "MODEL_CHECKS",
    "PERCEPTION_CHECKS",
    "PLAYER_CHECKS",
    "STUDY_PLAYER_CHECKS",
    "TEXT_MODEL_CHECKS",
    "WORLD_CHECKS",
    "BoundCheck",
    "CellCase",
    "CheckFailure",
    "CheckResult",
    "ContractError",
    "CoreCase",
    "GrammarCase",
    "MetricCase",
    "ModelCase",
    "NotApplicable",
    "PerceptionCase",
    "PlayerCase",
    "StudyPlayerCase",
    "TextModelCase",
    "Unsupported",
    "WorldCase",
    "bound_checks",
    "check",
    "parametrize_with_checks",
]


def __getattr__(name: str) -> Callable[..., list[CheckResult]]:
    """Return a function of versions before 0.3, which checks one kind of plug-in."""
    kind = name.removeprefix("check_").replace("_", "-")
    if not name.startswith("check_") or kind not in (*CONTRACTS, "model"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    warnings.warn(f"icy.testing.{name} is now icy.testing.check", FutureWarning, stacklevel=2)

    def check_kind(plugin: str | Callable[..., object], side: str | None = None, **setting: Any) -> list[CheckResult]:
        return check(plugin, side or (None if kind == "model" else kind), **setting)

    return check_kind
