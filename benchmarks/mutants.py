"""Check that the tests notice bugs that would change a published number: `python benchmarks/mutants.py`.

Each mutant is one small change of icy's Python: off by one, > for >=, a population's deviation for a sample's, a wrong
axis, a clip that is left out. It is made in a copy of the repository, and the tests of its own module run there, until
one fails: the default suite first, then the marked tests. The same tests must pass in a copy without a change.
Native cores are not built again, so no mutant is in C++. Takes ten to twenty minutes, writes mutants.md, and ends with
1 if a mutant is not caught.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from about import describe_versions

from icy.core.text import markdown_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path(__file__).with_suffix(".md")
BUILT = ("_native.so", "_native.txt")  # which git ignores, and the tests of native cores need
PATIENCE = 900.0  # seconds for the tests of a mutant
MARKED = "contract or native or process or docs or slow"  # tests outside the default suite
FAILED, PASSED = 1, 0  # exit codes of pytest; any other means that the tests did not run


@dataclass(frozen=True)
class Mutant:
    """A bug.

    Attributes:
        changes: what published number it would change.
        file: where it is, below the repository's root.
        text: what stands there, once.
        replacement: what stands there instead.
        tests: folders or modules of tests that must notice.
    """

    changes: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]

    def fault(self, root: Path) -> str | None:
        """Return why it cannot be made, in words; None if it can."""
        found = (root / self.file).read_text(encoding="utf-8").count(self.text)
        return None if found == 1 else f"{self.file} holds {self.text!r} {found} times, not once"

    def make(self, root: Path) -> None:
        """Change the file of a copy of the repository."""
        if (fault := self.fault(root)) is not None:
            raise SystemExit(fault)
        path = root / self.file
        path.write_text(path.read_text(encoding="utf-8").replace(self.text, self.replacement), encoding="utf-8")


GRAMMARS = ("tests/grammars",)
REPRESENTATIONS = ("tests/core/test_representations.py",)
PROTOCOLS = ("tests/config/test_protocols.py",)
SETTINGS = ("tests/config/test_settings.py",)
STATISTICS = ("tests/analysis/test_statistics.py",)
CELLS = ("tests/analysis/test_table_cells.py",)
TABLES = ("tests/analysis/tables",)
RECORDS = ("tests/records",)
TRAINING = ("tests/training/test_batches.py", "tests/training/test_engine.py", "tests/training/test_learners.py")
STACK = ("tests/training/test_stack.py", "tests/training/test_learners.py")
SPLITS = ("tests/languages/test_splits.py",)
INFORMATION = ("tests/metrics/test_information.py", "tests/metrics/test_entropy.py")
RESIDUAL = ("tests/metrics/test_residual.py",)
MATCHING = ("tests/metrics/test_concept_matching.py",)
TOPSIM = ("tests/metrics/topographic",)
TRE = ("tests/metrics/reconstruction",)
GAME = ("tests/training/pairs",)
S2B = ("tests/s2b/test_targets.py", "tests/s2b/test_evaluation.py", "tests/s2b/test_game.py")

MUTANTS = (
    # -- languages
    Mutant(
        "every cell of perm: the last position stays in its place",
        "grammars/perm.py",
        "table.rng.permutation(table.message_length)",
        "[*table.rng.permutation(table.message_length - 1), table.message_length - 1]",
        GRAMMARS,
    ),
    Mutant(
        "every cell of proj: another law of the matrix",
        "grammars/proj.py",
        "table.rng.random((size, size))",
        "table.rng.standard_normal((size, size))",
        GRAMMARS,
    ),
    Mutant(
        "every cell of proj: the last token is never chosen",
        "grammars/proj.py",
        "enumerate(scores[1:], start=1)",
        "enumerate(scores[1:-1], start=1)",
        GRAMMARS,
    ),
    Mutant(
        "every cell of rot: sums begin anew with each word",
        "grammars/rot.py",
        "np.cumsum(messages, axis=1, dtype=np.int64)",
        "np.cumsum(table.words(messages), axis=2, dtype=np.int64).reshape(messages.shape)",
        GRAMMARS,
    ),
    Mutant(
        "every cell of pairsum: the last word gets the first one before its update",
        "grammars/pairsum.py",
        "words[:, (a + 1) % attributes]",
        "table.words(messages)[:, (a + 1) % attributes]",
        GRAMMARS,
    ),
    Mutant(
        "every cell of shuf: one order of words for all messages",
        "grammars/shuf.py",
        "table.rng.permuted(in_order, axis=1)",
        "table.rng.permutation(in_order, axis=1)",
        GRAMMARS,
    ),
    Mutant(
        "every cell of shufdet: the first attribute decides",
        "grammars/shufdet.py",
        "np.arange(len(messages)) % values",
        "np.arange(len(messages)) // values ** (attributes - 1)",
        GRAMMARS,
    ),
    Mutant(
        "every cell: two values may share a word",
        "grammars/base.py",
        "size=count, replace=False",
        "size=count, replace=True",
        GRAMMARS,
    ),
    # -- losses
    Mutant(
        "SOFT, senders: the loss is summed over positions",
        "icy/core/representations/soft.py",
        "cross_entropy(scores, messages).mean((-2, -1))",
        "cross_entropy(scores, messages).mean(-2).sum(-1)",
        REPRESENTATIONS,
    ),
    Mutant(
        "SOFT, receivers: the loss is averaged over attributes",
        "icy/core/representations/base.py",
        "cross_entropy(scores, meanings).mean(-2).sum(-1)",
        "cross_entropy(scores, meanings).mean((-2, -1))",
        REPRESENTATIONS,
    ),
    Mutant(
        "GUMB: the temperature does not divide the noise",
        "icy/core/representations/samples.py",
        "((scores + gumbel) / temperature)",
        "(scores / temperature + gumbel)",
        REPRESENTATIONS,
    ),
    Mutant(
        "DISCR: the population's deviation of rewards",
        "icy/core/representations/losses.py",
        "rewards.std(over, keepdim=True)",
        "rewards.std(over, correction=0, keepdim=True)",
        REPRESENTATIONS,
    ),
    Mutant(
        "DISCR: entropy is punished",
        "icy/core/representations/discrete.py",
        "gain.sum((-2, -1)) - self.entropy_weight",
        "gain.sum((-2, -1)) + self.entropy_weight",
        REPRESENTATIONS,
    ),
    Mutant(
        "DISCR, pairs: values are drawn by the noise of tokens",
        "icy/core/representations/discrete.py",
        "noise.channel(ANSWERS)",
        "noise.channel(0 * ANSWERS)",
        REPRESENTATIONS,
    ),
    # -- training, and when it ends
    Mutant(
        "steps to the target: a check at the target is not one",
        "icy/config/protocols.py",
        "if now[1] < target:",
        "if now[1] <= target:",
        PROTOCOLS,
    ),
    Mutant(
        "steps to the target: read off from the wrong end",
        "icy/config/protocols.py",
        "(target - low) / (high - low)",
        "(high - target) / (high - low)",
        PROTOCOLS,
    ),
    Mutant(
        "cut ratios: rounding lengthens the limit by a step",
        "icy/config/protocols.py",
        "math.ceil(round(self.cap * baseline_steps, 6))",
        "math.ceil(self.cap * baseline_steps)",
        PROTOCOLS,
    ),
    Mutant(
        "cut ratios: a ratio of exactly the cap is cut",
        "icy/config/protocols.py",
        "reached > protocol.cap * baseline",
        "reached >= protocol.cap * baseline",
        PROTOCOLS,
    ),
    Mutant(
        "accuracies after concat's steps: one check too many",
        "icy/config/protocols.py",
        "steps >= protocol.limit(baseline)",
        "steps > protocol.limit(baseline)",
        PROTOCOLS,
    ),
    Mutant(
        "steps to the target: a grid of checks that is rounded up",
        "icy/config/settings.py",
        "updates + max(1, int(updates * self.check_growth))",
        "updates + max(1, math.ceil(updates * self.check_growth))",
        SETTINGS,
    ),
    Mutant(
        "published steps: checks on 50, 100, ... in place of 0, 50, ...",
        "icy/config/settings.py",
        "return updates - 1 if self.steps_from_zero else updates",
        "return updates",
        SETTINGS,
    ),
    Mutant(
        "steps to the target: an accuracy in single precision",
        "icy/training/learners.py",
        "torch.stack(right).sum(0).double()",
        "torch.stack(right).sum(0)",
        TRAINING,
    ),
    Mutant(
        "every cell: gradients are scaled up to the limit too",
        "icy/training/stack.py",
        "+ 1e-6)).clamp_(max=1)",
        "+ 1e-6))",
        STACK,
    ),
    # -- random streams
    Mutant(
        "every accuracy: read on the meanings just trained on",
        "icy/training/batches.py",
        'stream_key(s, "meanings", purpose)',
        'stream_key(s, "meanings")',
        TRAINING,
    ),
    Mutant(
        "every cell: successive batches overlap",
        "icy/training/batches.py",
        "start = first * batch_size * space.attributes",
        "start = first * batch_size",
        TRAINING,
    ),
    Mutant(
        "GUMB and DISCR: all seeds of a stack share the noise of the first",
        "icy/training/batches.py",
        "updates[:, None])[:, self._seed_of]",
        "updates[:, None])[:, self._seed_of * 0]",
        TRAINING,
    ),
    Mutant(
        "every spread over seeds: all seeds start from the same weights",
        "icy/training/engine.py",
        "stream_key(seed, *names)",
        "stream_key(0, *names)",
        TRAINING,
    ),
    # -- generalisation
    Mutant(
        "accuracy on what was trained on: read on held-out meanings",
        "icy/training/batches.py",
        'if purpose == "report" else',
        'if purpose.startswith("report") else',
        TRAINING,
    ),
    Mutant(
        "held-out accuracy: a value may never be trained on",
        "icy/languages/splits.py",
        "np.setdiff1d(np.arange(space.size), space.index(once))",
        "np.arange(space.size)",
        SPLITS,
    ),
    Mutant(
        "held-out accuracy: the same two attributes at every seed",
        "icy/languages/splits.py",
        "np.sort(generator.choice(space.attributes, 2, replace=False))",
        "np.arange(2)",
        SPLITS,
    ),
    # -- ratios and tables
    Mutant(
        "ratios: a cut run counts with its last check, beyond the cap",
        "icy/records/record.py",
        'return float(record["cap"] if "max_updates" not in record else record["steps"] / baseline)',
        'return float(record["steps"] / baseline)',
        RECORDS,
    ),
    Mutant(
        "ratios: steps of the check in place of the crossing",
        "icy/records/record.py",
        'record.get("crossing", record["steps"]) / baseline',
        'record["steps"] / baseline',
        RECORDS,
    ),
    Mutant(
        "what readings leave open: the variance of a reading for its standard deviation",
        "icy/records/resolution.py",
        "spread = math.sqrt(target * (1 - target) / answers_of(record))",
        "spread = target * (1 - target) / answers_of(record)",
        RECORDS,
    ),
    Mutant(
        "concat steps: seeds weigh by their grammars",
        "analysis/tables/bias.py",
        'long.drop_duplicates(["row", "seed"])',
        "long",
        TABLES,
    ),
    Mutant(
        "concat steps: failed runs count",
        "analysis/tables/bias.py",
        'long["grammar"].eq(BASELINE) & ~long["failed"].astype(bool)',
        'long["grammar"].eq(BASELINE)',
        TABLES,
    ),
    Mutant(
        "standard errors: the population's deviation",
        "analysis/cells.py",
        '("standard error of the mean", lambda v: float(v.std(ddof=1))',
        '("standard error of the mean", lambda v: float(v.std(ddof=0))',
        CELLS,
    ),
    Mutant(
        "95 % intervals: one degree of freedom too many",
        "analysis/cells.py",
        "student(len(v) - 1)",
        "student(len(v))",
        CELLS,
    ),
    Mutant(
        "95 % intervals: one side only",
        "analysis/statistics.py",
        "(1 + confidence) / 2",
        "confidence",
        STATISTICS,
    ),
    Mutant(
        "geometric spreads: the population's deviation",
        "analysis/statistics.py",
        "float(logs.std(ddof=1)) if np.ptp(logs)",
        "float(logs.std(ddof=0)) if np.ptp(logs)",
        STATISTICS,
    ),
    Mutant(
        "geometric means: ratios near 0 are not raised",
        "analysis/statistics.py",
        "np.maximum(np.asarray(values, float), LEAST_RATIO), np",
        "np.maximum(np.asarray(values, float), 1e-12), np",
        STATISTICS,
    ),
    Mutant(
        "geometric means with cut runs: cut runs give degrees of freedom",
        "analysis/statistics.py",
        "fair * error, len(known) - 1)",
        "fair * error, len(logs) - 1)",
        STATISTICS,
    ),
    Mutant(
        "p-values: a larger one may be corrected below a smaller one",
        "analysis/statistics.py",
        "np.maximum.accumulate(values[order] * np.arange(count, 0, -1))",
        "values[order] * np.arange(count, 0, -1)",
        STATISTICS,
    ),
    # -- metrics
    Mutant(
        "topsim: ties get the lowest rank, not the average",
        "icy/metrics/topographic/topsim.py",
        "margin.cumsum() - (margin - 1) / 2",
        "margin.cumsum() - (margin - 1)",
        TOPSIM,
    ),
    Mutant(
        "topsim: pairs of a row and itself count",
        "icy/metrics/topographic/topsim.py",
        "merged[0, 0] -= 0 if ordered else own",
        "merged[0, 0] -= 0 if ordered else 0",
        TOPSIM,
    ),
    Mutant(
        "topsim: edits are divided by the smaller length, not the larger one",
        "icy/metrics/topographic/distances.py",
        "np.maximum(left, right)",
        "np.minimum(left, right)",
        TOPSIM,
    ),
    Mutant(
        "TRE: a wrong symbol costs one output, not two",
        "icy/metrics/reconstruction/exact.py",
        "2 * alike > rows[values], 0, 2)",
        "2 * alike > rows[values], 0, 1)",
        TRE,
    ),
    Mutant(
        "standard errors of TRE: no correction for a finite table",
        "icy/metrics/reconstruction/tre.py",
        "* (1 - len(errors) / whole)",
        "",
        TRE,
    ),
    Mutant(
        "HCE: ties are decided by rounding",
        "icy/metrics/information.py",
        "tolerance: float = 1e-9",
        "tolerance: float = 0.0",
        (*INFORMATION, *RESIDUAL),
    ),
    Mutant(
        "HCE: a constant attribute counts as 1",
        "icy/metrics/residual.py",
        "if alone <= NOTHING:\n        return 0.0",
        "if alone <= NOTHING:\n        return 1.0",
        RESIDUAL,
    ),
    Mutant(
        "CBM: over the tokens of messages, however long the phrases",
        "icy/metrics/concept_matching.py",
        "int(np.maximum(of_words, of_concepts) @ times)",
        "int(of_words @ times)",
        MATCHING,
    ),
    Mutant(
        "CBM: a word may be matched to a concept that it never occurs with",
        "icy/metrics/concept_matching.py",
        "assigned] > 0, assigned, NONE)",
        "assigned] >= 0, assigned, NONE)",
        MATCHING,
    ),
    Mutant(
        "posdis and bosdis: the gap to the worst attribute, not to the second",
        "icy/metrics/information.py",
        "ordered[-1] - ordered[-2]",
        "ordered[-1] - ordered[0]",
        INFORMATION,
    ),
    Mutant(
        "bosdis: whether a symbol occurs, not how often",
        "icy/metrics/information.py",
        "(table.messages == token).sum(1)",
        "(table.messages == token).any(1)",
        INFORMATION,
    ),
    Mutant(
        "residual entropy in bits: in nats",
        "icy/metrics/entropy.py",
        "np.log2(total) - (some @ np.log2(some)) / total",
        "np.log(total) - (some @ np.log(some)) / total",
        INFORMATION,
    ),
    # -- end to end, and S2B
    Mutant(
        "accuracy of pairs: of whole meanings",
        "icy/training/pairs/game.py",
        "right = (answered.argmax(-1) == meanings[0]).double().mean((-2, -1))",
        "right = (answered.argmax(-1) == meanings[0]).all(-1).double().mean(-1)",
        GAME,
    ),
    Mutant(
        "published accuracy of pairs: of whole meanings",
        "icy/training/pairs/game.py",
        "(read.argmax(-1) == seen).to(answered.dtype).mean((-2, -1))",
        "(read.argmax(-1) == seen).all(-1).to(answered.dtype).mean(-1)",
        GAME,
    ),
    Mutant(
        "accuracy of a pair's receiver: read on what the sender says",
        "icy/training/pairs/game.py",
        "(told.argmax(-1) == meanings[0])",
        "(answered.argmax(-1) == meanings[0])",
        GAME,
    ),
    Mutant(
        "ZSCT: the query takes three test values",
        "icy/s2b/targets.py",
        "== 1).sum(-1) >= threshold",
        "== 1).sum(-1) > threshold",
        S2B,
    ),
    Mutant(
        "ZSCT: a shot of every value too few",
        "icy/s2b/targets.py",
        "np.int32(WEIGHT * (shots + 1))",
        "np.int32(WEIGHT * shots)",
        S2B,
    ),
    Mutant(
        "ZSCT: repeats are allowed as soon as shots are as many as stimuli",
        "icy/s2b/targets.py",
        "shots * spaces.sizes.sum(1) > eligible.sum(1) * samples",
        "shots * spaces.sizes.sum(1) >= eligible.sum(1) * samples",
        S2B,
    ),
    Mutant(
        "ZSCT: read in the support",
        "icy/s2b/scores.py",
        "cls(shares[:, 1, RIGHT], shares[:, 0, RIGHT]",
        "cls(shares[:, 0, RIGHT], shares[:, 1, RIGHT]",
        S2B,
    ),
    Mutant(
        "S2B over seeds: episodes without a game of the phase count as 0",
        "icy/s2b/evaluation.py",
        "total / np.maximum(there.sum(1), 1)",
        "total / self.episodes",
        S2B,
    ),
)


@dataclass(frozen=True)
class Result:
    """What the tests made of a mutant.

    Attributes:
        mutant: which.
        caught: whether a test failed.
        test: the first that failed, or "".
        seconds: until then.
        by_default: whether the test is one of the default suite.
    """

    mutant: Mutant
    caught: bool
    test: str
    seconds: float
    by_default: bool


@contextmanager
def copied() -> Iterator[Path]:
    """Make a copy of what git tracks, with what was built."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    built = [str(path.relative_to(ROOT)) for name in BUILT for path in ROOT.rglob(name)]
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        for name in [*filter(None, tracked.split("\0")), *built]:
            if (ROOT / name).is_symlink() or (ROOT / name).exists():  # what was removed may still be tracked
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, Path(folder) / name, follow_symlinks=False)
        yield Path(folder)


def tried(mutant: Mutant) -> Result:
    """Return what tests make of a mutant."""
    started = time.perf_counter()
    test = first_failure(mutant.tests, mutant)
    by_default = test is not None
    test = test or first_failure([*mutant.tests, "-m", MARKED], mutant)
    return Result(mutant, test is not None, test or "", time.perf_counter() - started, by_default)


def first_failure(tests: Sequence[str], mutant: Mutant | None = None) -> str | None:
    """Run tests in a copy of the repository, with a mutant or without; return the first that fails, or None.

    Raises:
        SystemExit: they do not run.
    """
    with copied() as root:
        if mutant is not None:
            mutant.make(root)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-rfE", *tests]
        environment = {**os.environ, "PYTHONPATH": str(root / "src"), "TMPDIR": str(root), "COLUMNS": "1000"}
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (FAILED, PASSED) or (done.returncode == FAILED) != (found is not None):
        raise SystemExit(f"The tests {' '.join(tests)} did not run:\n{done.stdout}{done.stderr}")
    return found[1] if found else None


def cells(mutant: Mutant) -> list[str]:
    """Return the first cells of a mutant's line, which tell it from all others."""
    shown = [f"`{' '.join(text.split())}`" if text else "nothing" for text in (mutant.text, mutant.replacement)]
    return [mutant.changes, f"`{mutant.file}`", " to ".join(shown)]


def line(result: Result) -> str:
    """Return the line of the table of what was tried."""
    by = f"`{result.test.removeprefix('tests/')}`" if result.caught else MISSED
    by += LATER if result.caught and not result.by_default else ""
    return row(*cells(result.mutant), by, f"{result.seconds:.0f}")


def row(*found: str) -> str:
    """Return a line of the table, or its beginning."""
    return markdown_table(found, [], markup=True).splitlines()[0]


def page(lines: Sequence[str], versions: str) -> str:
    """Return the page of these lines, and of earlier ones of mutants that are still the same."""
    earlier = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    begins = [row(*cells(mutant)) for mutant in MUTANTS]
    found = [next((one for one in (*lines, *earlier) if one.startswith(begin)), None) for begin in begins]
    told = [one for one in found if one is not None]
    return PAGE_TEXT.format(
        versions=versions,
        count=len(MUTANTS),
        caught=sum(MISSED not in one for one in told),
        by_default=sum(MISSED not in one and LATER not in one for one in told),
        files=len({mutant.file for mutant in MUTANTS}),
        table="\n".join([markdown_table(HEAD, [], numbers=[4]), *told]),
    )


HEAD = ["what it changes", "file", "mutant", "caught by", "seconds"]
MISSED = "**not caught**"
LATER = " (a marked suite)"
PAGE_TEXT = """\
# Bugs that would change a published number

Made by `python benchmarks/mutants.py`, last with {versions}.
Each line is one small bug in icy's Python, made in a copy of the repository,
and the first of its module's tests that fails there. Before that, all of these tests passed in a copy without a
change. Native cores are held against the Python that they stand for by tests of their own.

**{caught} of {count} mutants in {files} files are caught**, {by_default} of them by the default suite.

{table}

*seconds*: until the test failed, with the start of Python, beside other work. Lines may be of several runs: with words
behind it, the command tries only the mutants that these name, and keeps the other lines.
"""


def main() -> None:
    """Try mutants, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "only", nargs="*", help="parts of files' names or of what changes; other lines of the page stay"
    )
    given = parser.parse_args()
    chosen = [m for m in MUTANTS if not given.only or any(part in f"{m.file} {m.changes}" for part in given.only)]
    if (test := first_failure(sorted({test for mutant in chosen for test in mutant.tests}))) is not None:
        raise SystemExit(f"{test} fails without a mutant.")
    lines = []
    for mutant in chosen:
        lines.append(line(tried(mutant)))
        print(lines[-1], flush=True)
    PAGE.write_text(page(lines, describe_versions()), encoding="utf-8")
    sys.exit(any(MISSED in one for one in lines))


if __name__ == "__main__":
    main()
