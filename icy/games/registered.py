"""What games register: the kind of job that trains agents."""

from icy.records.kinds import JobKind, register_job_kind

# As in icy.games.evaluation, which would import the metrics.
LANGUAGE = (
    *("cbm", "cbm_floor", "cbm_holistic", "ambiguity_rate", "paraphrase_rate", "unmatched_rate", "precision"),
    *("recall", "ami", "topsim", "unique_words", "unique_messages", "unique_phrases", "unique_concepts", "total"),
    *("good", "ambiguous", "paraphrase", "concept_tokens", "unmatched_concepts"),
)

register_job_kind(
    JobKind(
        "games",
        "Train agents of multi-target games.",
        spec=f"{__package__}.spec:GamesSpec",
        jobs=f"{__package__}.jobs:game_jobs",
        source="CBM24; MuGoodman21; icy",
        table="icy.analysis.tables.games:games_table",
        measures=(
            *("soft_accuracy", "seen_accuracy", "seen_cbm", *LANGUAGE),
            *("best_step", "rule_length", "targets", "distractors", "message_length"),
        ),
        curve=("steps", "accuracy", "loss", "cbm", "topsim", "words"),
        noun="agents",
        model=f"{__package__}.saved_agents:model_of_record",
        command="games train",
        conventions=f"{__package__}.conventions:game_conventions",
        evaluates="games eval",
    )
)
