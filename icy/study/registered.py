"""Registers the kind of job that simulates players of the study."""

from icy.records.kinds import JobKind, register_job_kind

register_job_kind(
    JobKind(
        "study",
        "Simulate players of Secret Spy Codes, and let senders of the zoo play.",
        spec=f"{__package__}.spec:StudySpec",
        jobs=f"{__package__}.study_job:study_jobs",
        train=f"{__package__}.simulate:train",
        source="Icy22 section 4.3; icy",
        table="icy.analysis.tables.study:simulated_table",
        measures=(
            *("items", "letters", "distance", "first", "first_items", "answerable", "answerable_items"),
            *("answerable_twice", "answerable_twice_items", "trained", "trained_items", "agreement", "score"),
            *("cards", "views", "added", "identical", "distinct", "degenerate", "chance"),
        ),
        curve=("steps", "accuracy", "cards", "held_out"),
        noun="games",
        command="study simulate",
        counted="trials",
    )
)
