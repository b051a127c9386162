"""Count the models that work in other training loops: `python -m tests.stress.other_loops`, into other-loops.md.

Run `tests.testing.other_loops`, and the checks of float64 and copies, on every sender and receiver.
With `--before CHECKOUT`, a folder that holds another version of icy, also run them on its models.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
ROOT, PAGE = HERE.parents[1], HERE / "other-loops.md"
COLUMNS = {
    "autocast": "autocast",
    "float64": "float64",
    "bfloat16": "bfloat16",
    "empty_batch": "empty batch",
    "deepcopy": "copy.deepcopy",
    "pickles": "pickle",
    "state_dict": "state_dict",
    "second_derivatives": "second derivatives",
    "func_grad": "torch.func.grad",
    "vmap": "torch.func.vmap",
    "compile": "torch.compile",
    "export": "torch.export",
}
WORDS = ("works", "not supported", "fails", "does not apply")
LIMIT = 120  # seconds for a check

Found = dict[str, dict[str, list[str]]]  # by check and model: a word and the error


def measure() -> Found:
    """Return what every check found of every model of the icy that is imported."""
    import torch

    from icy.testing import BoundCheck, NotApplicable, Unsupported, bound_checks

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(ROOT))
    from tests.testing.other_loops import LOOPS

    checks = bound_checks(["sender/*", "receiver/*"])
    cases = {check.label: check.case for check in checks}
    checks += [BoundCheck(name, label, run, case) for name, run in LOOPS.items() for label, case in cases.items()]
    signal.signal(signal.SIGALRM, _too_long)
    found: Found = {}
    for name in COLUMNS:
        for check in (check for check in checks if check.name == name):
            word, error = "works", ""
            signal.alarm(LIMIT)
            try:
                check()
            except Unsupported as lack:
                word, error = "not supported", str(lack)
            except NotApplicable as why:
                word, error = "does not apply", str(why)
            except Exception as failure:
                word, error = "fails", f"{type(failure).__name__}: {failure}"
            signal.alarm(0)
            found.setdefault(name, {})[check.label] = [word, error.partition("\n")[0]]
        print(name, {word: _count(found[name], word) for word in WORDS}, file=sys.stderr, flush=True)
    return found


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {LIMIT} seconds")


def _count(results: Mapping[str, list[str]], word: str) -> int:
    return sum(result[0] == word for result in results.values())


def measured(checkout: Path) -> Found:
    """Return what `measure` returns for a checkout, in a process of its own."""
    command = [sys.executable, str(HERE / "other_loops.py"), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=environment, cwd=checkout, stdout=subprocess.PIPE, text=True, check=True)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(measure()))  # of the imported icy, which may be an older one
        return
    from icy.core.text import markdown_table
    from results.pages import describe_versions, fill_template, read_options

    given = read_options(__doc__, before=(Path, "checkout of another version of icy"))

    versions = {"before": measured(given.before.resolve())} if given.before else {}
    versions["now"] = measured(ROOT)
    made_by = "`python -m tests.stress.other_loops`"
    if given.before:
        commit = "git", "-C", str(given.before), "rev-parse", "--short", "HEAD"
        before = subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip()
        made_by = f"`python -m tests.stress.other_loops --before CHECKOUT`, a checkout of {before}"
    heads = [f"{word}, {version}" for word in WORDS for version in versions]
    table = [
        [title, *(str(_count(versions[version][name], word)) for word in WORDS for version in versions)]
        for name, title in COLUMNS.items()
    ]
    lacking = [
        [label, COLUMNS[name], result[0], result[1].replace("`", "")]
        for name, results in versions["now"].items()
        for label, result in results.items()
        if result[0] in ("not supported", "fails")
    ]
    missing = "\n\n## Missing now\n\n" + markdown_table(["model", "", "", "error"], lacking) if lacking else ""
    text = fill_template(
        PAGE,
        count=len(versions["now"]["float64"]),
        table=markdown_table(["", *heads], table) + missing,
        made_by=made_by,
        versions=describe_versions(),
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
