"""Response times of the pages of `icy study` while 200 people play at once: `python -m benchmarks.study_load`.

`icy study serve` runs in its own process. Simulated players take part through its pages, from consent to the
completion code, and click as often as people do. Every request is timed. Writes study-load.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from icy.core.machine import device_name
from icy.core.text import markdown_table
from icy.study.players.simulated import Composer
from icy.study.service import open_study, read_plan
from icy.study.service.export import audit
from icy.study.service.plan import new_study
from icy.study.service.studies import Study
from results.pages import describe_versions, fill_template, read_options
from tests.study.service.robot import Ask, Playing, Reply, Robot

PAGE = Path(__file__).parent / "study-load.md"
PORT = 8731
EXAMPLES = 12
GAME = f"examples = {EXAMPLES}\nheld_out_at = [5, 8, 11]\ninterval = 3\n"
LEAST_READ = 2.5  # seconds on the page of information; the service treats faster consent as a program's
PATIENCE = 60.0  # largest number of seconds for a reply
REUSED = 2.0  # seconds for which a connection is used again; the service closes idle connections after 5
KINDS = {"page": "pages (GET)", "picture": "pictures (GET)", "form": "forms (POST)"}
QUIET = 0.1  # fraction of a core
SPOILED = "Other work on the machine slowed the replies: on a quiet machine they are faster."


@dataclass
class Times:
    """The measured response times.

    Attributes:
        seconds: response times in seconds, by kind of request.
        errors: errors in replies.
        finished: number of players who finished.
    """

    seconds: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    errors: list[str] = field(default_factory=list)
    finished: int = 0

    def quantiles(self, kind: str = "") -> list[str]:
        """Return number, median, 95 % and 99 % quantile and maximum, in milliseconds; `kind` "" is all requests."""
        found = np.concatenate([self.seconds[one] for one in ([kind] if kind else KINDS)]) * 1000
        marks = [*np.quantile(found, [0.5, 0.95, 0.99]), found.max()]
        return [f"{len(found):,}", *(f"{mark:.1f}" for mark in marks)]


class Client:
    """The browser of one player, which follows redirects itself in order to time each request."""

    def __init__(self, root: str, times: Times) -> None:
        limits = httpx.Limits(keepalive_expiry=REUSED)
        self.http = httpx.AsyncClient(base_url=root, headers={"origin": root}, timeout=PATIENCE, limits=limits)
        self.times = times

    async def send(self, ask: Ask) -> Reply:
        """Return the reply, after redirects.

        Raises:
            RuntimeError: the reply was not a page.
        """
        address, form = ask.address, ask.form
        while True:
            kind = "form" if form is not None else "picture" if "/picture/" in address else "page"
            start = time.perf_counter()
            reply = await (self.http.get(address) if form is None else self.http.post(address, data=dict(form)))
            self.times.seconds[kind].append(time.perf_counter() - start)
            if reply.status_code == 200:
                return Reply(address, reply.text)
            if reply.status_code != 303:
                raise RuntimeError(f"{reply.status_code} for {kind}")
            address, form = reply.headers["location"], None


async def play(playing: Playing, client: Client, late: float, pause: float, chance: random.Random) -> None:
    """Simulate a player who arrives after `late` seconds, from consent to the completion code."""
    await asyncio.sleep(late)
    try:
        async with client.http:
            ask = next(playing)
            while True:
                reply = await client.send(ask)
                ask = playing.send(reply)
                if "/picture/" not in ask.address:  # a browser requests pictures by itself
                    least = LEAST_READ if ask.address.endswith("/enter") else 0.0
                    await asyncio.sleep(max(least, chance.expovariate(1 / pause)))
    except StopIteration:
        client.times.finished += 1
    except (httpx.HTTPError, RuntimeError, LookupError) as error:
        client.times.errors.append(f"{type(error).__name__}: {error}")


async def play_all(study: Study, root: str, given: argparse.Namespace) -> Times:
    """Simulate all players at once, and return their response times."""
    times = Times()
    content = study.plan.conditions.cells[0][1].content
    players = [
        play(
            Robot(Composer(), content, seed, looks=2).take_part("/pilot"),
            Client(root, times),
            given.ramp * seed / given.players,
            given.pause,
            random.Random(seed),
        )
        for seed in range(given.players)
    ]
    await asyncio.gather(*players)
    return times


def prepared(folder: Path) -> Study:
    """Write the files of a study for `icy study serve`, and return the study."""
    new_study(folder / "pilot.toml")
    path = folder / "pilot.toml"
    text = (
        path.read_text().replace("[conditions.game]", f"[conditions.game]\n{GAME}").replace("quota = 20", "quota = 0")
    )
    path.write_text(text)
    return open_study(read_plan(path))


def serving(folder: Path) -> subprocess.Popen[bytes]:
    """Start the service, and wait until it answers."""
    command = [sys.executable, "-m", "icy", "study", "serve", str(folder / "pilot.toml"), "--port", str(PORT)]
    process = subprocess.Popen(command)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(f"http://127.0.0.1:{PORT}/pilot")
            return process
        except httpx.HTTPError:
            time.sleep(0.1)
    raise SystemExit("The service does not start.")


def busy() -> float:
    """Return the seconds that this machine's cores have been busy since its start."""
    fields = [int(one) for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def used(who: int) -> float:
    """Return the CPU seconds of this process, or of its finished child processes."""
    found = resource.getrusage(who)
    return found.ru_utime + found.ru_stime


def measured(given: argparse.Namespace) -> str:
    """Run the benchmark, and return the page."""
    with tempfile.TemporaryDirectory() as folder:
        study = prepared(Path(folder))
        process = serving(Path(folder))
        start, before, own = time.perf_counter(), busy(), used(resource.RUSAGE_SELF)
        times = asyncio.run(play_all(study, f"http://127.0.0.1:{PORT}", given))
        seconds, all_work = time.perf_counter() - start, busy() - before
        clients = used(resource.RUSAGE_SELF) - own
        process.send_signal(signal.SIGINT)
        process.wait()
        server = used(resource.RUSAGE_CHILDREN)
        checked = audit(study)
    print(*times.errors[:5], sep="\n", file=sys.stderr)
    others = max(0.0, all_work - clients - server) / seconds
    requests = sum(map(len, times.seconds.values()))
    rows = [["all", *times.quantiles()], *([name, *times.quantiles(kind)] for kind, name in KINDS.items())]
    return fill_template(
        PAGE,
        players=given.players,
        ramp=given.ramp,
        examples=EXAMPLES,
        pause=given.pause,
        machine=device_name("cpu"),
        made=describe_versions(),
        times=markdown_table(["requests", "number", "median", "95 %", "99 %", "longest"], rows, numbers=range(1, 6)),
        requests=requests,
        seconds=seconds,
        rate=requests / seconds,
        errors=len(times.errors) or "no",
        finished=times.finished,
        faults=len(checked.faults) or "no",
        trials=checked.trials,
        server=server / seconds,
        cost=1000 * server / requests,
        clients=clients / seconds,
        others=others,
        cores=os.cpu_count(),
        spoiled=SPOILED if others > QUIET else "",
    )


def main() -> None:
    """Measure, and write the page."""
    given = read_options(
        __doc__,
        players=(200, "number of players at once"),
        pause=(4.0, "mean seconds between clicks of a player"),
        ramp=(25.0, "seconds in which all players come"),
        quick=(False, "20 fast players; nothing is written"),
    )
    if given.quick:
        given.players, given.pause, given.ramp = 20, 0.3, 2.0
    page = measured(given)
    print(page)
    if not given.quick:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
