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

from .cases import Case, CheckFailure, NotApplicable, Unsupported, checks_of
from .contracts import CONTRACTS, BoundCheck, CheckResult, ContractError, bound_checks, check, parametrize_with_checks

__all__ = [
    "CONTRACTS",
    "BoundCheck",
    "Case",
    "CheckFailure",
    "CheckResult",
    "ContractError",
    "NotApplicable",
    "Unsupported",
    "bound_checks",
    "check",
    "checks_of",
    "parametrize_with_checks",
]
