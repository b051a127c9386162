"""What attention memories of S2B need: `python benchmarks/s2b_ablations.py [--only ROW,ROW]`.

Trains the memory listener beside the posdis speaker (rows `listener ...`), and the pair that learns both sides (rows
`pair ...`), whole and with a part left out. What is on file in benchmarks/s2b-ablations.csv is not trained again, so
the same command goes on after an interruption; several may run at once, on different rows. Writes that file, and
benchmarks/s2b-ablations.md.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from icy.core.checks import parse_whole
from icy.core.errors import InvalidSettingError, unknown
from icy.core.text import markdown_table
from icy.s2b import GameSettings
from icy.s2b.agents.learning import DealtLearning, LearningSettings, read
from icy.s2b.agents.memory import MemoryListener, MemorySettings
from icy.s2b.agents.pair import Pair, PairSettings
from icy.s2b.agents.speaker import SpeakerSettings

HERE = Path(__file__).parent
TABLE, PAGE = HERE / "s2b-ablations.csv", HERE / "s2b-ablations.md"
READINGS = 20  # of a curve
FEW, MANY = 200, 1000  # episodes of a reading, and of the last one
CURVE_SEED, LAST_SEED = 99, 123
SCALE = 5.0  # of the scores of new tokens, for a speaker that is sure of itself from the start
ENOUGH = 95.0  # per cent in the query, to say how fast


@dataclass(frozen=True)
class Row:
    """What is trained.

    Attributes:
        about: what is left out, for the page.
        listener: settings of the listener's memory.
        speaker: settings of the speaker, if it learns as well.
        pair: settings of the training of a pair; None where the speaker is posdis.
    """

    about: str
    listener: Mapping[str, Any] = field(default_factory=dict)
    speaker: Mapping[str, Any] = field(default_factory=dict)
    pair: Mapping[str, Any] | None = None


ROWS: Mapping[str, Row] = {
    "listener": Row("nothing"),
    "listener raw": Row("sines and cosines of numbers", {"waves": False}),
    "listener no difference": Row("how far what is read lies from what was asked for", {"difference": False}),
    "listener joint": Row(
        "pairs: one memory of whole games", {"kind": "joint", "heads": 6, "width": 64, "hidden": 128}
    ),
    "listener aligned": Row("learning which position is about which dimension: it is given", {"aligned": True}),
    "listener deaf": Row("messages", {"deaf": True}),
    "pair": Row("nothing", pair={}),
    "pair whole": Row(
        "positions that see one number: each sees the whole stimulus", speaker={"kind": "whole"}, pair={}
    ),
    "pair no memory": Row("the speaker's memory", speaker={"memory": False}, pair={}),
    "pair no memory sure": Row(
        "the speaker's memory, with scores of tokens times 5", speaker={"memory": False, "scale": SCALE}, pair={}
    ),
    "pair dot": Row("attention by distance: dot products", speaker={"attention": "dot"}, pair={}),
    "pair soft": Row("drawn dimensions: means by learned weights", speaker={"alignment": "soft"}, pair={}),
    "pair gumbel": Row(
        "learning by reward alone: straight-through tokens, entropy 0.02", pair={"estimator": "gumbel", "entropy": 0.02}
    ),
    "pair gumbel no entropy": Row(
        "the entropy too: straight-through tokens, entropy 0", pair={"estimator": "gumbel", "entropy": 0.0}
    ),
    "pair deaf": Row("messages", {"deaf": True}, pair={}),
}


@dataclass(frozen=True)
class Reading:
    """A line of the table: a reading of a training, in per cent."""

    row: str
    most: int
    seed: int
    total: int
    updates: int
    seconds: float
    query: float
    support: float


class Run:
    """A training of a row.

    Args:
        row: what is trained.
        most: largest number of values.
        seed: of weights, episodes and draws.
        updates: in place of the usual number.
    """

    def __init__(self, row: Row, most: int, seed: int, updates: int | None = None) -> None:
        game, changed = GameSettings(most=most), {} if updates is None else {"updates": updates}
        memory = MemorySettings(**row.listener)
        self.advance: Callable[[int], Any]
        self.accuracies: Callable[[int, int], dict[str, float]]
        if row.pair is None:
            settings = LearningSettings(**changed)
            torch.manual_seed(seed)
            learning = DealtLearning(MemoryListener(game, memory), game, settings, seed)
            self.total, self.advance = settings.updates, learning.run
            self.accuracies = lambda episodes, of: read(learning.model, game, episodes=episodes, seed=of)
        else:
            speaker = SpeakerSettings(**row.speaker)
            both = PairSettings(speaker=speaker, listener=memory, seed=seed, **{**row.pair, **changed})
            pair = Pair(game, both)
            self.total, self.advance = both.updates, pair.train
            self.accuracies = lambda episodes, of: pair.evaluate(episodes, seed=of)

    def readings(self) -> list[tuple[int, float, dict[str, float]]]:
        """Train to the end; return readings after so many updates and CPU seconds of training."""
        found, seconds, done = [], 0.0, 0
        every = math.ceil(self.total / READINGS)
        while done < self.total:
            began = time.process_time()
            some = min(every, self.total - done)
            self.advance(some)
            seconds, done = seconds + time.process_time() - began, done + some
            last = done == self.total
            found.append((done, seconds, self.accuracies(MANY if last else FEW, LAST_SEED if last else CURVE_SEED)))
        return found


def measured(name: str, most: int, seed: int, updates: int | None = None) -> list[Reading]:
    """Train a row, and return its readings."""
    run = Run(ROWS[name], most, seed, updates)
    return [
        Reading(
            name, most, seed, run.total, done, round(seconds, 1), *(round(100 * now[n], 3) for n in ("zsct", "support"))
        )
        for done, seconds, now in run.readings()
    ]


# -- the file ----------------------------------------------------------------------------------------------------------


def on_file(table: Path) -> pd.DataFrame:
    """Return the readings on file."""
    return pd.read_csv(table) if table.exists() else pd.DataFrame(columns=[f.name for f in fields(Reading)])


def is_there(found: pd.DataFrame, name: str, most: int, seed: int) -> bool:
    """Return whether a training is on file to its end."""
    of = found["row"].eq(name) & found["most"].eq(most) & found["seed"].eq(seed)
    return bool((of & found["updates"].eq(found["total"])).any())


def add(table: Path, readings: Sequence[Reading]) -> None:
    """Add the readings of a training to a file in one write, so that others may add theirs meanwhile."""
    text = pd.DataFrame([asdict(reading) for reading in readings]).to_csv(index=False, header=not table.exists())
    with table.open("a") as file:
        file.write(text)


# -- the page ----------------------------------------------------------------------------------------------------------


def page(found: pd.DataFrame) -> str:
    """Return the page, of the rows on file."""
    spaces = sorted(found["most"].unique())
    lines = []
    for name, row in ROWS.items():
        of = found[found["row"] == name]
        if len(of):
            cells = [text for most in spaces for text in _cells(of[of["most"] == most])]
            lines.append([name, row.about, *cells])
    heads = ["row", "left out"]
    heads += [f"V 2-{most}, {what}" for most in spaces for what in ("query", "support", f"s to {ENOUGH:.0f} %")]
    return "\n".join([
        "# What attention memories need",
        "",
        "Made by `python benchmarks/s2b_ablations.py`: accuracy in per cent at the end of training, mean ± standard "
        f"deviation over seeds (how many in brackets) of {MANY} episodes each, S = O = 1, under the default schedule, "
        f"where never listening earns 50; and CPU seconds of training until a reading of {FEW} episodes was at least "
        f"{ENOUGH:.0f} in the query, the median over seeds, - where most seeds never were. Rows `listener` learn by "
        "reward beside posdis, rows `pair` both sides by reward alone but for those called gumbel. Chance is 50.",
        "",
        markdown_table(heads, lines, range(2, len(heads))),
        "",
    ])  # fmt: skip


def _cells(of: pd.DataFrame) -> list[str]:
    """Return query, support and seconds of a row in one space."""
    last = of[of["updates"] == of["total"]]
    if last.empty:
        return ["-"] * 3
    spread = [
        f"{last[n].mean():.1f}" + ("" if len(last) < 2 else f" ± {last[n].std():.1f}") for n in ("query", "support")
    ]
    reached = of[of["query"] >= ENOUGH].groupby("seed")["seconds"].min().reindex(last["seed"])
    median = reached.fillna(math.inf).median()
    return [f"{spread[0]} ({len(last)})", spread[1], f"{median:.0f}" if math.isfinite(median) else "-"]


def main() -> None:
    """Train what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows, with commas between them; all by default")
    parser.add_argument("--most", default="3,5", help="largest numbers of values")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--updates", type=int, help="in place of the usual number, to try things out")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in chosen(given.only):
        for most in numbers(given.most):
            for seed in numbers(given.seeds):
                if not is_there(on_file(given.table), name, most, seed):
                    readings = measured(name, most, seed, given.updates)
                    add(given.table, readings)
                    print(readings[-1], flush=True)
    given.page.write_text(page(on_file(given.table)))


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a text, with commas between them.

    Raises:
        InvalidSettingError: it has something else.
    """
    found = [parse_whole(part.strip()) for part in text.split(",")]
    if None in found:
        raise InvalidSettingError(f"Whole numbers with commas between them are wanted, not '{text}'.")
    return [number for number in found if number is not None]


def chosen(only: str) -> list[str]:
    """Return the rows of these names, with commas between them; all by default.

    Raises:
        UnknownNameError: there is no such row.
    """
    names = [name.strip() for name in only.split(",") if name.strip()] or list(ROWS)
    for name in names:
        if name not in ROWS:
            raise unknown("row", name, list(ROWS))
    return names


if __name__ == "__main__":
    main()
