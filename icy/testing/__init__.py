"""The contract that every plug-in keeps, as small named checks that anyone can run.

    >>> from icy.testing import check_grammar
    >>> results = check_grammar("rot")
    >>> all(result.passed for result in results)
    True

There is a function for each kind: `check_model`, `check_cell`, `check_grammar`, `check_metric`, `check_speaker`,
`check_listener`, `check_text_model`, `check_core`, `check_world`, `check_perception` and `check_study_player`.
`icy check NAME` runs the same checks from the command line, and `parametrize_with_checks` makes each of them a test of
its own in pytest. If a plug-in cannot pass a check, declare the check and the reason, in the argument
`expected_failures` or in an attribute of that name on the factory; the failure is then reported as excused.
"""

from .cases import CheckFailure, GrammarCase, ModelCase, NotApplicable, Unsupported
from .cells import CELL_CHECKS, CellCase
from .contracts import (
    check_cell,
    check_core,
    check_grammar,
    check_listener,
    check_metric,
    check_model,
    check_perception,
    check_speaker,
    check_study_player,
    check_text_model,
    check_world,
)
from .cores import CORE_CHECKS, CoreCase
from .grammars import GRAMMAR_CHECKS
from .metrics import METRIC_CHECKS, MetricCase
from .models import MODEL_CHECKS
from .perceptions import PERCEPTION_CHECKS, PerceptionCase
from .players import PLAYER_CHECKS, PlayerCase
from .registered import bound_checks, parametrize_with_checks
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
    "check_cell",
    "check_core",
    "check_grammar",
    "check_listener",
    "check_metric",
    "check_model",
    "check_perception",
    "check_speaker",
    "check_study_player",
    "check_text_model",
    "check_world",
    "parametrize_with_checks",
]
