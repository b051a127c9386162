"""Experiments: plan, run, and collect probes, sweeps, end-to-end runs and reproductions.

This package registers icy's own kinds of jobs, in the same way as plug-ins register theirs.
"""

from icy.records.kinds import JobKind, register_job_kind

register_job_kind(
    JobKind(
        "probe",
        "Train one model on several grammars, each compared with concat.",
        spec="icy.config.specs:ProbeSpec",
        jobs="icy.experiments.probe:probe_jobs",
        train="icy.training.engine:train",
        rehearse="icy.training.engine:rehearse",
        source="Perkins21; Icy22",
        measures=("train_accuracy",),
        model="icy.training.task_models:probe_model",
    )
)
register_job_kind(
    JobKind(
        "e2e",
        "Train a sender and a receiver together.",
        spec="icy.config.specs:EndToEndSpec",
        jobs="icy.experiments.e2e:pair_jobs",
        train="icy.training.pair_training:train_pairs",
        source="Perkins21 tables 6, 11, 17, 18; Icy22 table 18, figure 7",
        result="icy.experiments.results:EndToEndResult",
        table="icy.analysis.tables.e2e:end_to_end_table",
        noun="pairs",
        plot="e2e",
        model="icy.training.task_models:saved_pair",
        measures=(
            *("sender_accuracy", "receiver_accuracy", "end_to_end_accuracy", "end_to_end_loss", "topsim"),
            *("worst_accuracy", "sender_agreement", "mean_length", "length_by_rank"),
        ),
        curve=("steps", "accuracy", "loss", "topsim", "sender_accuracy", "receiver_accuracy"),
        conventions="icy.training.pair_job:pair_conventions",
        # A pair's further configuration depends on whether it was pre-trained, which varies within a row.
        row=(
            *("model", "options", "meanings", "vocab_size", "word_length", "hidden_size", "representation", "protocol"),
            "pretrained",
            *("senders", "receivers", "replace_every", "replacement", "max_length", "length_cost"),
        ),
    )
)
register_job_kind(
    JobKind(
        "chain",
        "Pass languages from learner to learner.",
        spec="icy.config.specs:ChainSpec",
        jobs="icy.experiments.iterate:chain_jobs",
        train="icy.training.chain_training:train_chains",
        rehearse="icy.training.chain_training:rehearse",
        conventions="icy.training.chain_job:chain_conventions",
        source="Kirby et al. 2014; Griffiths and Kalish 2007",
        noun="chains",
        baseline=False,
        counted="generations",
        command="iterate",
        measures=(
            *("agreement", "distinct", "seen_accuracy", "unseen_accuracy", "topsim", "posdis", "bosdis", "reached"),
            "communication",
        ),
        curve=(
            *("generation", "accuracy", "agreement", "distinct", "seen_accuracy", "unseen_accuracy", "updates"),
            *("topsim", "posdis", "bosdis", "communication"),
        ),
    )
)
