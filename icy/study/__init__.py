"""Secret Spy Codes: the human study of Icy22, for people, simulated players and models of the zoo."""

from icy.records.kinds import JobKind, register_job_kind

from . import players as _players  # noqa: F401  registers them

register_job_kind(
    JobKind(
        "study",
        "Simulate players of Secret Spy Codes, and let senders of the zoo play.",
        spec=f"{__name__}.study_job:StudySpec",
        jobs=f"{__name__}.study_job:study_jobs",
        train=f"{__name__}.simulate:train",
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
