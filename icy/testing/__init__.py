"""The contract that every plug-in keeps, as small named checks that anyone can run.

    >>> from icy.testing import check_grammar
    >>> results = check_grammar("rot")
    >>> all(result.passed for result in results)
    True

There is a function for each kind: `check_model`, `check_cell`, `check_grammar`, `check_metric`, `check_speaker`,
`check_listener`, `check_text_model` and `check_core`. `icy check NAME` runs the same checks from the command line, and
`parametrize_with_checks` makes each of them a test of its own in pytest. If a plug-in cannot pass a check, declare the
check and the reason, in the argument `expected_failures` or in an attribute of that name on the factory; the failure is
then reported as excused.
"""

from .cases import CheckFailure, GrammarCase, ModelCase, NotApplicable
from .cells import CELL_CHECKS, CellCase
from .contracts import (
    bound_checks,
    check_cell,
    check_core,
    check_grammar,
    check_listener,
    check_metric,
    check_model,
    check_speaker,
    check_text_model,
    parametrize_with_checks,
)
from .cores import CORE_CHECKS, CoreCase
from .grammars import GRAMMAR_CHECKS
from .metrics import METRIC_CHECKS, MetricCase
from .models import MODEL_CHECKS
from .players import PLAYER_CHECKS, PlayerCase
from .runner import BoundCheck, CheckResult, ContractError
from .text_models import TEXT_MODEL_CHECKS, TextModelCase

__all__ = [
    "CELL_CHECKS",
    "CORE_CHECKS",
    "GRAMMAR_CHECKS",
    "METRIC_CHECKS",
    "MODEL_CHECKS",
    "PLAYER_CHECKS",
    "TEXT_MODEL_CHECKS",
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
    "PlayerCase",
    "TextModelCase",
    "bound_checks",
    "check_cell",
    "check_core",
    "check_grammar",
    "check_listener",
    "check_metric",
    "check_model",
    "check_speaker",
    "check_text_model",
    "parametrize_with_checks",
]
