"""The contract that every model and every grammar keeps, as small named checks that anyone can run on their own.

    >>> from icy.testing import check_grammar
    >>> results = check_grammar("rot")
    >>> all(result.passed for result in results)
    True

`icy check NAME` runs the same checks from the command line, and `parametrize_with_checks` makes each of them a test of
its own in pytest. A check that a plug-in cannot keep is not deleted: its name and the reason are declared, in the
argument `expected_failures` or in an attribute of that name on the factory, and the failure is reported as excused.
"""

from .cases import CheckFailure, GrammarCase, ModelCase, NotApplicable
from .grammars import GRAMMAR_CHECKS
from .models import MODEL_CHECKS
from .runner import (
    BoundCheck,
    CheckResult,
    ContractError,
    bound_checks,
    check_grammar,
    check_model,
    parametrize_with_checks,
)

__all__ = [
    "GRAMMAR_CHECKS",
    "MODEL_CHECKS",
    "BoundCheck",
    "CheckFailure",
    "CheckResult",
    "ContractError",
    "GrammarCase",
    "ModelCase",
    "NotApplicable",
    "bound_checks",
    "check_grammar",
    "check_model",
    "parametrize_with_checks",
]
