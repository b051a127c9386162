"""Registers the kind of job that trains agents of games."""

from __future__ import annotations

from typing import Any

from icy.core.types import Fields
from icy.records.kinds import JobKind, register_job_kind

# The same names as in icy.games.evaluation; importing that module would import the metrics.
LANGUAGE = (
    *("cbm", "cbm_floor", "cbm_holistic", "ambiguity_rate", "paraphrase_rate", "unmatched_rate", "precision"),
    *("recall", "ami", "topsim", "unique_words", "unique_messages", "unique_phrases", "unique_concepts", "total"),
    *("good", "ambiguous", "paraphrase", "concept_tokens", "unmatched_concepts"),
)


def game_conventions(config: Fields) -> dict[str, dict[str, Any]]:
    """Return the conventions of each metric in a record of a game, from the configuration of the record."""
    from .settings import GamesLearningSettings  # imports the metrics

    learning = config.get("settings", {}).get("setup", {}).get("learning", {})
    topsim_of = learning.get("topsim_of", GamesLearningSettings.topsim_of)
    return {
        "cbm": {
            "words": "tokens",
            "concepts": "items",
            "repeats": "counted",
            "unmatched": learning.get("unmatched", GamesLearningSettings.unmatched),
        },
        "ami": {"average": "max"},
        "topsim": {
            "correlation": "spearman",
            "meaning": "cosine",
            "message": "levenshtein",
            "pairs": "all",
            "normalise": "none",
            "of": topsim_of,
        },
    }


register_job_kind(
    JobKind(
        "games",
        "Train agents of multi-target games.",
        spec=f"{__package__}.spec:GamesSpec",
        jobs=f"{__package__}.jobs:game_jobs",
        train=f"{__package__}.game_stack:train",
        rehearse=f"{__package__}.game_stack:seconds_per_update",
        source="CBM24; MuGoodman21; icy",
        table="icy.analysis.tables.games:games_table",
        measures=(
            *("soft_accuracy", "seen_accuracy", "seen_cbm", *LANGUAGE),
            *("best_step", "rule_length", "targets", "distractors", "message_length"),
        ),
        curve=("steps", "accuracy", "loss", "cbm", "topsim", "words"),
        noun="agents",
        model=f"{__package__}.final:model_of_record",
        command="games train",
        conventions=game_conventions,
        evaluates="games eval",
    )
)
