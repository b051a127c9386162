"""Check that a replicate's record does not depend on its company: `python -m tests.stress.determinism [--quick]`.

Rows of each representation, pairs end to end, and multi-target games are trained in one process, and then again in
seven other ways: by three workers, in another order, each replicate alone, by shards with other numbers of workers,
resumed after half of the records were lost, and with one thread and two. This is done by native cores, and by PyTorch
with native code switched off. All records are compared, every field but its times and its number, and with them the
weights and languages that are kept, to the last bit. Writes tests/stress/determinism.md; exits with 1 if anything
differs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import icy
from icy.core.machine import device_name
from icy.core.text import listed, markdown_table
from results.pages import describe_versions, fill_template, read_options

PAGE = Path(__file__).with_suffix(".md")
SWITCH = "ICY_NATIVE"  # environment variable
PATHS = {"native": {}, "PyTorch": {SWITCH: "off"}}  # what the environment says for each
MAY_DIFFER = ("seconds", "finished", "filed")  # fields of a record: its times, and its number among those of its folder
GRAMMARS = ("concat", "perm", "rot")
SEEDS = (1, 2, 3, 4)
SIZES: dict[str, Any] = {"meanings": "3x4", "word_length": 2, "hidden": 20}
SETTINGS = {"learning_rate": 0.01}
MOST = 200  # updates of a baseline
MODELS = {
    "soft": ("sender/RNNAutoReg:LSTM", "sender/TransDecSoft", "receiver/CNN"),
    "gumb": ("sender/HierAutoReg:GRU", "sender/TransDecSoft", "receiver/RNN2L:SRU"),
    "discr": ("sender/RNNSampling:GRU", "sender/TransDecSampling", "receiver/Hier:GRU"),
}
PAIRS = {
    "soft": ("RNNAutoReg:GRU", "RNN1L:GRU"),
    "gumb": ("TransDecSoft", "FC2L"),
    "discr": ("RNNSampling:GRU", "RNN1L:LSTM"),
}
CHANNELS = ("gs", "qt", "cb")
SMALL_GAME: dict[str, Any] = {
    "distractor_kind": ["near", "uniform", "groups"], "rule_length": 4, "targets": 5, "steps": 40,
    "settings": {"epoch": 20, "turns": 100},
}  # fmt: skip
CONDITIONS = {"e2e": "pretrain", "games": "distractor_kind"}  # by kind; of probes, the grammar
Part = Mapping[str, Any]  # arguments of a part of a sweep
Contents = dict[str, tuple[dict[str, Any], dict[str, bytes]]]  # records and their files, by key


def rows(quick: bool) -> dict[str, list[Part]]:
    """Return the parts of each row of the table; with `quick`, a few replicates of one model or pair each."""
    seeds, grammars = (SEEDS[:2], GRAMMARS[:2]) if quick else (SEEDS, GRAMMARS)
    shared = {**SIZES, "seeds": list(seeds), "settings": SETTINGS}
    of_language = {"target": 0.5, "settings": {**SETTINGS, "max_steps": 30 if quick else MOST}}
    probes: dict[str, list[Part]] = {
        name: [
            {"model": model, "grammar": list(grammars), "representation": name, "cap": 3, **shared, **of_language}
            for model in models[-1 if quick else 0 :]
        ]
        for name, models in MODELS.items()
    }
    game = {"kind": "e2e", "steps": 20 if quick else 60, "report_every": 10 if quick else 20, **shared}
    pairs: list[Part] = [
        {"sender": sender, "receiver": receiver, "representation": name, "pretrain": pretrain, **game, **more}
        for name, (sender, receiver) in PAIRS.items()
        for pretrain, more in (
            (["none"], {}),
            (list(grammars), {"pretrain_representation": name, **of_language}),
        )
    ]
    games: list[Part] = [
        {"kind": "games", "channel": channel, "seeds": list(seeds), **SMALL_GAME} for channel in CHANNELS
    ]
    return {**probes, "e2e": pairs[-2:-1] if quick else pairs, "games": games[:1] if quick else games}


def condition_of(part: Part) -> str:
    """Return the name of the argument with the conditions of a part."""
    return CONDITIONS.get(part.get("kind", "probe"), "grammar")


def train(parts: Sequence[Part], out: Path, **how: Any) -> None:
    """Train parts of a sweep into a folder."""
    icy.sweep(parts=list(parts), out=out, device="cpu", keep_models=True, progress=False, **how)


def contents(folder: Path) -> Contents:
    """Return what is on file, without what may differ."""
    found: Contents = {}
    for path in folder.glob("records/*.json"):
        record = json.loads(path.read_text())
        files = {name: (folder / name).read_bytes() for name in record.get("files", ())}
        found[record["key"]] = ({name: value for name, value in record.items() if name not in MAY_DIFFER}, files)
    return found


# -- the ways ----------------------------------------------------------------------------------------------------------


def pool(parts: Sequence[Part], out: Path, base: Path) -> None:
    """Train by three workers."""
    train(parts, out, workers=3)


def order(parts: Sequence[Part], out: Path, base: Path) -> None:
    """Train everything in the reverse order."""
    turned = [{n: v[::-1] if isinstance(v, list) else v for n, v in part.items()} for part in parts[::-1]]
    train(turned, out, workers=1, order="given")


def alone(parts: Sequence[Part], out: Path, base: Path) -> None:
    """Train each replicate as a stack of one."""
    for part in parts:
        of = condition_of(part)
        for seed, grammar in product(part["seeds"], part[of]):  # concat first, so that it is on file for the others
            train([{**part, of: grammar, "seeds": [seed]}], out, workers=1)


def shards(parts: Sequence[Part], out: Path, base: Path) -> None:
    """Train two shards, one after another, by different numbers of workers."""
    for i in (1, 2):
        train(parts, out, workers=i, shard=f"{i}/2")


def resume(parts: Sequence[Part], out: Path, base: Path) -> None:
    """Continue from a folder that lacks every other record."""
    shutil.copytree(base, out)
    for path in sorted(out.glob("records/*.json"))[::2]:
        path.unlink()
    train(parts, out, workers=1)


def with_threads(count: int, parts: Sequence[Part], out: Path, base: Path) -> None:
    """Train while PyTorch uses some number of threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        train(parts, out, workers=1)
    finally:
        torch.set_num_threads(before)


Way = Callable[[Sequence[Part], Path, Path], None]
WAYS: dict[str, Way] = {
    **{way.__name__: way for way in (pool, order, alone, shards, resume)},
    "one thread": partial(with_threads, 1),
    "two threads": partial(with_threads, 2),
}


# -- the table ---------------------------------------------------------------------------------------------------------


@dataclass
class Line:
    """A line of the table.

    Attributes:
        row, path: its name, and what trained it.
        engines: as the records say.
        compared: replicates.
        differing: of them, by way.
    """

    row: str
    path: str
    engines: list[str]
    compared: int
    differing: dict[str, int]


def measure(row: str, path: str, parts: Sequence[Part]) -> Line:
    """Train a row in all ways, in this process and its workers."""
    with tempfile.TemporaryDirectory(prefix="icy-determinism-") as place:
        base = Path(place) / "base"
        train(parts, base, workers=1)
        whole = contents(base)
        engines = sorted({str(record.get("engine")) for record, _ in whole.values() if record.get("engine")})
        line = Line(row, path, engines, len(whole), {})
        for name, way in WAYS.items():
            out = Path(place) / name
            way(parts, out, base)
            found = contents(out)
            line.differing[name] = sum(whole.get(key) != found.get(key) for key in whole.keys() | found.keys())
    return line


def lines(names: Sequence[str], paths: Sequence[str], quick: bool) -> Iterator[Line]:
    """Measure the rows by each path, which a process of its own takes from its environment."""
    rest = {name: value for name, value in os.environ.items() if name != SWITCH}
    for name in names:
        for path in paths:
            command = [sys.executable, "-m", "tests.stress.determinism", "--measure", name, path]
            command += ["--quick"] if quick else []
            done = subprocess.run(command, env={**rest, **PATHS[path]}, stdout=subprocess.PIPE, text=True, check=True)
            yield Line(**json.loads(done.stdout.splitlines()[-1]))


def page(found: Sequence[Line]) -> str:
    """Return the page."""
    headings = ["row", "path", "engine", "replicates", *WAYS]
    table = [
        [line.row, line.path, listed(line.engines), line.compared, *(line.differing[way] for way in WAYS)]
        for line in found
    ]
    return fill_template(
        PAGE,
        **SIZES,
        grammars=listed(GRAMMARS),
        seeds=len(SEEDS),
        may_differ=listed(MAY_DIFFER),
        table=markdown_table(headings, table, range(3, len(headings))),
        differing=sum(sum(line.differing.values()) for line in found),
        compared=f"{len(WAYS) * sum(line.compared for line in found):,}",
        device=device_name("cpu"),
        versions=describe_versions(),
    )


def main() -> None:
    """Measure, and write the page."""
    given = read_options(
        __doc__,
        quick=(False, "a few replicates of a row; writes no page"),
        row=({"action": "append", "choices": [*MODELS, "e2e"]}, "only this one; writes no page"),
        path=({"action": "append", "choices": [*PATHS]}, "only this one; writes no page"),
        measure=({"nargs": 2}, argparse.SUPPRESS),
    )
    if given.measure:
        row, path = given.measure
        print(json.dumps(asdict(measure(row, path, rows(given.quick)[row]))))
        return
    found = []
    for line in lines(given.row or [*MODELS, "e2e"], given.path or [*PATHS], given.quick):
        found.append(line)
        print(f"{line.row}, {line.path}: {line.compared} replicates by {line.engines}; {line.differing}", flush=True)
    if not (given.quick or given.row or given.path):
        PAGE.write_text(page(found))
    sys.exit(any(any(line.differing.values()) for line in found))


if __name__ == "__main__":
    main()
