"""Registers the kinds of jobs that train agents, and the trained agent that comes with icy."""

from typing import Any

from icy.core.register import register_listener
from icy.core.types import Fields
from icy.records.kinds import JobKind, register_job_kind


def language_conventions(config: Fields) -> dict[str, dict[str, Any]]:
    """Return the conventions of each language metric in records of trained agents, which are icy's defaults."""
    return {
        "topsim": {
            "correlation": "spearman",
            "meaning": "hamming",
            "message": "levenshtein",
            "pairs": "all",
            "normalise": "none",
        },
        "posdis": {"constant": "skip"},
        "bosdis": {"constant": "skip"},
    }


register_job_kind(
    JobKind(
        "s2b",
        "Train agents of meta-referential games.",
        spec=f"{__package__}.spec:S2BSpec",
        jobs=f"{__package__}.agent_job:agent_jobs",
        train=f"{__package__}.agent_run:train",
        rehearse=f"{__package__}.agent_run:seconds_per_update",
        source="MetaRG22; MetaRG24; icy",
        table="icy.analysis.tables.s2b:training_table",
        measures=(
            *("support", "floor", "constant_floor", "observations", "cpu_seconds", "topsim", "posdis", "bosdis"),
            *("distinct", "ease_of_acquisition", "reconstructed", "shots", "samples", "distractors"),
        ),
        curve=("steps", "accuracy", "support", "observations", "reconstructed"),
        noun="agents",
        model=f"{__package__}.saved_networks:kept_networks",
        command="s2b train",
        conventions=language_conventions,
        evaluates="s2b eval --listener",
    )
)

register_job_kind(
    JobKind(
        "recall",
        "Train agents of the recall task.",
        spec=f"{__package__}.spec:RecallSpec",
        jobs=f"{__package__}.recall_job:recall_jobs",
        train=f"{__package__}.recall_job:train",
        rehearse=f"{__package__}.agent_run:seconds_per_update",
        source="MetaRG22 section 3.3, MetaRG24 appendix E.1; icy",
        table="icy.analysis.tables.s2b:recall_table",
        measures=("first_shot", "chance", "no_memory", "one_game", "reconstructed", "observations", "cpu_seconds"),
        curve=("steps", "accuracy", "first_shot", "observations", "reconstructed"),
        noun="agents",
        model=f"{__package__}.recall_job:kept_networks",
        command="s2b recall",
    )
)

register_listener(
    "memory",
    f"{__package__}.shipped:memory",
    description="An attention memory of dimensions and positions, trained from rewards only.",
    source="icy",
)
