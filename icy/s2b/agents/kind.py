"""The kind of job that trains agents."""

from icy.records.kinds import JobKind, register_job_kind

register_job_kind(
    JobKind(
        "s2b",
        "Train agents of meta-referential games.",
        spec=f"{__package__}.spec:S2BSpec",
        jobs=f"{__package__}.job:agent_jobs",
        source="MetaRG22; MetaRG24; icy",
        table="icy.analysis.tables.s2b:training_table",
        measures=(
            *("support", "floor", "observations", "cpu_seconds", "topsim", "posdis", "bosdis", "distinct"),
            *("shots", "samples", "distractors"),
        ),
        curve=("steps", "accuracy", "support", "observations"),
        noun="agents",
        model=f"{__package__}.kept:kept_networks",
    )
)
