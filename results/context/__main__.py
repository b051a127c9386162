"""Which languages do meta-trained networks learn in context? `python -m results.context [--train]`.

With --train, train the learners and let them answer in runs/, about half an hour on two cores; a second call
continues. Add all records to records.parquet, which is committed, and write context.md and its pictures.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pandas as pd

import icy
from icy.analysis.order import in_order
from icy.analysis.plots import curves, side_by_side
from icy.context.learner import FILE
from icy.core.text import markdown_table
from icy.experiments.results import ProbeResult
from icy.records.kinds import points_of
from icy.records.load import select
from results.estimates import print_estimate, student_interval
from results.pages import RecordFolder, describe_packs, fill_template, read_options

HERE = Path(__file__).parent
PAGE, RECORDS = HERE / "context.md", RecordFolder(HERE)
LEARNERS = {
    "transformer-0": ("Transformer", 0),
    "transformer-1": ("Transformer", 1),
    "transformer-2": ("Transformer", 2),
    "gru-0": ("GRU", 0),
    "lstm-0": ("LSTM", 0),
}
GRAMMARS = "concat,perm,rot,shufdet,proj,hol"
SEEDS = 10
SIZES = (("sender", 2), ("sender", 4), ("receiver", 2))
BASELINES = ("nearest", "bag", "lookup", "composer")


def train() -> None:
    """Train the learners, and let them answer."""
    RECORDS.runs.mkdir(exist_ok=True)
    with contextlib.chdir(RECORDS.runs):
        for name, (cell, seed) in LEARNERS.items():
            file = icy.train_context_learner(f"{name}.safetensors", cell=cell, seed=seed)
            for role, word_length in SIZES:
                protocol = "acquire" if cell == "Transformer" else "generalise"  # others do not reach the target
                options: Any = {
                    "protocol": protocol,
                    "role": role,
                    "word_length": word_length,
                    "seeds": SEEDS,
                    "cache": "none",
                    "out": ".",
                }
                icy.in_context(f"learner#{file}", GRAMMARS, **options)
    shutil.copy(RECORDS.runs / "transformer-0.safetensors", FILE)


def accuracies(found: ProbeResult) -> pd.DataFrame:
    """Return accuracies of learners and baselines, with a row per learner, language and number of examples."""
    rows = []
    for record in found.records:
        facts: dict[str, Any] = {"learner": Path(record["model"]).stem.removeprefix("learner#"), "role": record["side"]}
        facts |= {name: record[name] for name in ("word_length", "grammar", "seed")}
        rows += [facts | dict(zip(points_of(record), point, strict=True)) for point in record["curve"]]
    return pd.DataFrame(rows)


def over_languages(rows: pd.DataFrame, column: str = "accuracy") -> str:
    """Return the mean over languages of the mean over learners, with its interval."""
    means = rows.groupby("seed")[column].mean().to_numpy(float)
    return print_estimate(student_interval(means))


def by_examples(rows: pd.DataFrame) -> str:
    """Return a table with a row per grammar, and a column per number of examples."""
    counts = sorted(rows["steps"].unique())
    cells = [
        [grammar, *(over_languages(rows[rows["grammar"].eq(grammar) & rows["steps"].eq(count)]) for count in counts)]
        for grammar in in_order(rows["grammar"])
    ]
    return markdown_table(["grammar", *(f"n = {count}" for count in counts)], cells)


def by_learner(rows: pd.DataFrame) -> str:
    """Return a table with a row per learner and baseline, and a column per grammar, after all examples."""
    last, grammars = rows[rows["steps"].eq(rows["steps"].max())], in_order(rows["grammar"])
    parts = {name: (last[last["learner"].eq(name)], "accuracy") for name in LEARNERS}
    parts |= {f"{name} (baseline)": (last, name) for name in BASELINES}
    cells = [
        [name, *(over_languages(part[part["grammar"].eq(grammar)], column) for grammar in grammars)]
        for name, (part, column) in parts.items()
        if len(part)
    ]
    return markdown_table(["learner", *grammars], cells)


def main() -> None:
    """Train if asked to, pack the records, and write the page and its pictures."""
    if read_options(__doc__, train=False).train:
        train()
    RECORDS.update_pack()
    found = ProbeResult.load(RECORDS.pack)
    rows = accuracies(found)
    senders = rows[rows["role"].eq("sender")]
    short, long = (senders[senders["word_length"].eq(length)] for length in (2, 4))
    transformers = [name for name in LEARNERS if name.startswith("transformer")]
    one = [f"learner#{transformers[0]}.safetensors"]
    shown = select(found, where={"role": "sender", "word_length": 2, "protocol": "acquire"})
    side_by_side(shown).savefig(HERE / "side-by-side.png")
    curves(select(shown, models=one)).savefig(HERE / "curves.png")
    text = fill_template(
        PAGE,
        made=describe_packs(RECORDS.pack),
        short=by_examples(short[short["learner"].isin(transformers)]),
        long=by_examples(long[long["learner"].isin(transformers)]),
        receivers=by_examples(rows[rows["role"].eq("receiver") & rows["learner"].isin(transformers)]),
        learners=by_learner(short),
        ratios=shown.table(format="markdown", spread="ci95"),
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
