"""Check that faults cost a sweep nothing but time: `python -m tests.stress.faults`.

A sweep of quick rows runs undisturbed into one folder, and into others with faults: its process or one of its workers
is killed at random moments, it is told to end in the ways that systems have, several run in one folder, or the disk is
full. After each fault the same command goes on, and so on to the end. Then every record is compared with the
undisturbed one, and the page `faults.md` is written: how often each fault was tried, and what was lost, repeated,
different, or left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
PAGE = HERE.with_suffix(".md")
MODELS = ("*/FC1L", "*/FC2L", "sender/HierZero:*", "sender/RNNZero:*", "receiver/RNN1L:*", "receiver/Hier:RNN")
FEW = ("*/FC1L", "sender/HierZero:RNN", "receiver/RNN1L:GRU")
OPTIONS = "--quick --representation soft,gumb --target 0.6 --cap 3 --set check_every=20 --retries 1000 -q"
OWN = ("key", "curve", "steps", "accuracy", "reason", "baseline_steps", "parameters")  # what faults must not change
LOG, MARK = "ICY_FAULTS_LOG", "ICY_FAULTS_MARK"  # environment of a sweep: where it logs what it files, and its name
PATIENCE = 120.0  # seconds for a sweep to end in
HEARS = 0.3  # seconds from its first line until it hears signals, and then some
GRACE = 2.0  # seconds for its processes to be gone in
SMALL_DISK = 30_000  # bytes
SMALL_FILES = 1_500, 20_000  # too small for a record, and for a table

KILL = signal.SIGKILL

Fault = Callable[["Sweep", random.Random], None]


# -- in a sweep --------------------------------------------------------------------------------------------------------


def log_puts(log: Path) -> None:
    """Have this process and its workers log every record that they file, and whether it was on file."""
    from icy.records.store import Store

    put = Store.put

    def logged(self: Any, record: Any, files: Any = None) -> None:
        there = self.path(record["key"]).exists()
        put(self, record, files)
        with contextlib.suppress(OSError), log.open("a") as file:  # which may not grow, as files of a full disk
            file.write(f"{record['key']} {'again' if there else 'new'}\n")

    Store.put = logged  # type: ignore[method-assign]


if LOG in os.environ:  # also where a fresh worker imports this file
    log_puts(Path(os.environ[LOG]))


def be_icy() -> None:
    """Be the command `icy`, with the words of this process."""
    from icy.cli import main

    sys.argv = ["icy", *sys.argv[2:]]
    Path(os.environ[LOG]).touch()  # in a moment it hears signals
    main(prog_name="icy")


# -- a sweep, and what became of it ------------------------------------------------------------------------------------


@dataclass
class Sweep:
    """A sweep that runs.

    Attributes:
        folder: its results.
        process: its process.
        mark: in the environment of all of its processes.
        words: file of what it says.
        log: file of what it files.
        hung: whether it did not end.
    """

    folder: Path
    process: subprocess.Popen[bytes]
    mark: str
    words: Path
    log: Path
    hung: bool = False

    def until(self, true: Callable[[], bool]) -> bool:
        """Wait until something is true; return whether it became so before the sweep ended."""
        while self.process.poll() is None:
            if true():
                return True
            time.sleep(0.01)
        return False

    def alive(self) -> list[int]:
        """Return its processes, without Python's trackers of resources, which end by themselves."""
        return [pid for pid in processes(self.mark) if b"tracker" not in command_of(pid)]

    def workers(self) -> list[int]:
        """Return its workers."""
        return [pid for pid in self.alive() if pid != self.process.pid and b"python" in command_of(pid)]

    def works(self) -> bool:
        """Whether it has workers."""
        return bool(self.workers())

    def send(self, number: int, group: bool = False) -> None:
        """Send a signal to it, or to all of its processes."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.process.pid, number)

    def ended(self) -> int:
        """Wait for its end, and kill it if that does not come; return its exit code."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.hung = True
            self.process.kill()
            return self.process.wait()

    def orphans(self) -> list[int]:
        """Return the processes that outlive it by more than a moment, and end them."""
        end = time.monotonic() + GRACE
        while (left := self.alive()) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left


@dataclass
class Counts:
    """What came of one kind of fault.

    Attributes:
        fault: what was done.
        tries: how often.
        exits: how often it ended with each exit code.
        lost: records that were on file, and were not afterwards; and those that the end lacks.
        repeated: records that were filed although they were on file.
        differing: records that differ from the undisturbed run's.
        orphans: processes that went on without their sweep.
        traces: sweeps that printed a stack trace.
        hung: sweeps that did not end.
        left: temporary folders, claims and half files after the last of the runs.
    """

    fault: str
    tries: int = 0
    exits: Counter[int] = field(default_factory=Counter)
    lost: int = 0
    repeated: int = 0
    differing: int = 0
    orphans: int = 0
    traces: int = 0
    hung: int = 0
    left: int = 0

    ZERO = ("lost", "repeated", "differing", "orphans", "traces", "hung", "left")

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not any(getattr(self, name) for name in self.ZERO)


class Bench:
    """A sweep to do faults to, and what it gives undisturbed.

    Args:
        work: an empty folder.
        models: of the sweep.
        seeds: how many.
        workers: how many.
        seed: of the random moments.
    """

    def __init__(self, work: Path, models: Sequence[str] = MODELS, seeds: int = 1, workers: int = 2, seed: int = 0):
        self.work, self.random, self._numbers = work, random.Random(seed), count()
        words = [*OPTIONS.split(), "-g", "perm", "--seeds", str(seeds), "--workers", str(workers)]
        self._command = [sys.executable, str(HERE), "--icy", "sweep", *words, *(w for m in models for w in ("-m", m))]
        self.temporary = work / "tmp"
        self.temporary.mkdir()
        begun = time.monotonic()
        plain = self.start(work / "plain")
        if plain.ended():
            raise SystemExit(plain.words.read_text())
        self.seconds = time.monotonic() - begun
        self.whole = records(plain.folder)
        plain.orphans()

    def start(self, folder: Path, *more: str, limit: int | None = None) -> Sweep:
        """Start the sweep into a folder, in a process group of its own.

        Args:
            folder: its results.
            *more: further words of the command.
            limit: the most bytes that one of its files may have.
        """
        mark = f"{os.getpid()}-{next(self._numbers)}"
        words, log = self.work / f"{mark}.txt", self.work / f"{mark}.log"
        paths = os.pathsep.join([str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")])  # the icy of this checkout
        own = {LOG: str(log), MARK: mark, "TMPDIR": str(self.temporary), "PYTHONPATH": paths}

        def prepare() -> None:
            for number in (signal.SIGINT, signal.SIGHUP):  # which a shell's background, or nohup, has ignored
                signal.signal(number, signal.SIG_DFL)
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        with words.open("wb") as file:
            process = subprocess.Popen(
                [*self._command, "-o", str(folder), *more],
                stdout=subprocess.DEVNULL,
                stderr=file,
                env={**os.environ, **own},
                start_new_session=True,
                preexec_fn=prepare,
            )
        return Sweep(folder, process, mark, words, log)

    def moment(self, longest: float | None = None) -> float:
        """Return a random number of seconds within the time that the sweep takes."""
        return self.random.uniform(0.0, self.seconds if longest is None else longest)

    # -- series ------------------------------------------------------------------------------------------------------

    def disturb(self, name: str, fault: Fault, tries: int) -> Counts:
        """Do a fault to the sweep, and to it again as it goes on, in one folder after another.

        Only sweeps that the fault met count: one that came to its end before counts for nothing.
        """
        counts, logs, folder = Counts(name), [], self._folder()
        while counts.tries < tries:
            before = stamps(folder)
            sweep = self.start(folder)
            fault(sweep, self.random)
            code = sweep.ended()
            logs.append(sweep.log)
            counts.tries += code != 0
            counts.exits[code] += code != 0
            self._count(counts, sweep, before)
            if not code:
                self._finish(counts, folder, logs)
                logs, folder = [], self._folder()
        self._resume(counts, folder, logs)
        return counts

    def kill_workers(self, name: str, tries: int) -> Counts:
        """Kill one worker after another of sweeps that go on to their end."""
        counts = Counts(name)
        while counts.tries < tries:
            sweep = self.start(self._folder())
            while sweep.until(sweep.works) and counts.tries < tries:
                time.sleep(self.moment(1.5))
                if workers := sweep.workers():
                    counts.tries += kill(self.random.choice(workers))
            counts.exits[sweep.ended()] += 1
            self._count(counts, sweep)
            self._finish(counts, sweep.folder, [sweep.log])
        return counts

    def together(self, name: str, several: int, tries: int, late: float = 0.0, killed: int = 0) -> Counts:
        """Run several sweeps in one folder.

        Args:
            name: what is done.
            several: how many sweeps.
            tries: how often.
            late: the most seconds by which each begins after the one before.
            killed: how many of them are killed.
        """
        counts = Counts(name)
        for _ in range(tries):
            folder = self._folder()
            sweeps = []
            for _ in range(several):
                sweeps.append(self.start(folder))
                time.sleep(self.moment(late))
            for sweep in sweeps[:killed]:
                time.sleep(self.moment(self.seconds / 2))
                sweep.send(signal.SIGKILL)
            counts.tries += 1
            for sweep in sweeps:
                counts.exits[sweep.ended()] += 1
                self._count(counts, sweep)
            logs = [sweep.log for sweep in sweeps]
            if killed:  # their files are removed at the next start
                self._resume(counts, folder, logs)
            else:
                self._finish(counts, folder, logs)
        return counts

    def fill_disk(self, tries: int) -> Counts:
        """Run on a disk that soon is full, of which each try makes some more room; without one, with short files."""
        counts, logs, folder = Counts("full disk"), [], self._folder()
        disk = self.work / "disk"
        disk.mkdir()
        for number in range(tries):
            size = SMALL_DISK * (number + 1)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
            mounted = not subprocess.run(mount, capture_output=True).returncode
            if not mounted:
                counts.fault = "a disk that takes no more than short files"
            where = disk / "o" if mounted else folder
            if mounted and folder.exists():
                shutil.copytree(folder, where)
            sweep = self.start(where, limit=None if mounted else SMALL_FILES[number % 2])
            code = sweep.ended()
            counts.tries += 1
            counts.exits[code] += 1
            self._count(counts, sweep)
            logs.append(sweep.log)
            if mounted:
                counts.left += len([*where.rglob(".*.tmp")])
                shutil.copytree(where, folder, dirs_exist_ok=True)
                subprocess.run(["umount", str(disk)], check=True)
        self._resume(counts, folder, logs)
        return counts

    def _folder(self) -> Path:
        return self.work / f"results-{next(self._numbers)}"

    def _resume(self, counts: Counts, folder: Path, logs: Sequence[Path]) -> None:
        """Run the sweep to its end without a fault, and count what its folder holds then."""
        last = self.start(folder)
        counts.lost += bool(last.ended())
        self._count(counts, last)
        self._finish(counts, folder, [*logs, last.log])

    def _count(self, counts: Counts, sweep: Sweep, before: Mapping[str, int] = {}) -> None:
        """Count what one sweep left: processes, stack traces, and records that were there before."""
        counts.hung += sweep.hung
        counts.orphans += len(sweep.orphans())
        said = sweep.words.read_text(errors="replace")
        if "Traceback" in said or "Exception ignored" in said:
            counts.traces += 1
            print(f"  {counts.fault}: {said}", flush=True)
        after = stamps(sweep.folder)
        counts.lost += len(before.keys() - after.keys())
        counts.repeated += sum(after.get(key, stamp) != stamp for key, stamp in before.items())

    def _finish(self, counts: Counts, folder: Path, logs: Sequence[Path]) -> None:
        """Count what a folder holds in the end, against the undisturbed run."""
        found = records(folder)
        counts.lost += len(self.whole.keys() - found.keys())
        counts.differing += sum(self.whole.get(key) != record for key, record in found.items())
        lines = [line.split() for log in logs if log.exists() for line in log.read_text().splitlines()]
        filed = Counter(key for key, _ in lines)
        counts.repeated += len({key for key, how in lines if how == "again" or filed[key] > 1})
        claims = folder / "claims"
        behind = [*self.temporary.iterdir(), *halves(folder), *([claims] if claims.exists() else [])]
        counts.left += len(behind)
        if behind:
            print(f"  {counts.fault}: left {', '.join(map(str, behind))}", flush=True)
        shutil.rmtree(folder)


# -- faults ------------------------------------------------------------------------------------------------------------


def signals(
    *numbers: int, longest: float, after: Callable[[Sweep], bool] | None = None, wait: float = 0.0, group: bool = False
) -> Fault:
    """Send signals to the sweep within half a second, at a random moment.

    Args:
        *numbers: the signals.
        longest: the most seconds until the first signal.
        after: what must be true of the sweep first; by default, the moment is from the start of its process.
        wait: further seconds until the first signal.
        group: whether all processes of the sweep get them.
    """

    def fault(sweep: Sweep, moments: random.Random) -> None:
        if after is not None:
            sweep.until(lambda: after(sweep))
        time.sleep(wait + moments.uniform(0.0, longest))
        for number in numbers:
            sweep.send(number, group)
            time.sleep(0.5 / len(numbers) if len(numbers) > 1 else 0.0)

    return fault


def suite(bench: Bench, tries: int) -> Iterator[Counts]:
    """Yield the counts of every kind of fault, each tried so often; of several runs in a folder less often."""
    long, some = bench.seconds, max(1, tries // 3)
    hearing = {"longest": long, "after": lambda sweep: sweep.log.exists(), "wait": HEARS}  # from when it hears signals
    at_once, at_start = signals(KILL, longest=long), signals(KILL, longest=2.0, after=Sweep.works)
    yield bench.disturb("signal 9 to the sweep, at any moment", at_once, tries)
    yield bench.disturb("signal 9 to it, within 2 s of its workers' start", at_start, tries)
    yield bench.kill_workers("signal 9 to a worker, at any moment", tries)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name)
        yield bench.disturb(name, signals(number, **hearing), tries)
        yield bench.disturb(f"{name} to all of its processes", signals(number, **hearing, group=True), tries)
    eight = signals(*[signal.SIGINT] * 8, **hearing, group=True)
    yield bench.disturb("eight times SIGINT in half a second", eight, tries)
    for several in (2, 3):
        yield bench.together(f"{several} runs in one folder, started together", several, some)
        yield bench.together(f"{several} runs in one folder, one after another", several, some, late=long / 2)
        yield bench.together(f"{several} runs in one folder, one killed", several, some, killed=1)
    yield bench.fill_disk(some)


# -- what there is -----------------------------------------------------------------------------------------------------


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the records on file by key, without the fields that depend on the clock."""
    read = [json.loads(path.read_text()) for path in folder.glob("records/*.json")]
    return {r["key"]: {name: r.get(name) for name in OWN} for r in read}


def stamps(folder: Path) -> dict[str, int]:
    """Return when each record was written, in nanoseconds."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("records/*.json")}


def halves(folder: Path) -> list[Path]:
    """Return the files that were not written to their end, and that are old enough to be no one's work."""
    return [path for path in folder.rglob(".*") if time.time() - path.stat().st_mtime > 3600]


def processes(mark: str) -> list[int]:
    """Return the processes that run with a mark in their environment."""
    found, line = [], f"{MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and line in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
        except OSError:  # it ended, or is another user's
            continue
    return found


def command_of(pid: int) -> bytes:
    """Return the command line of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def kill(pid: int) -> bool:
    """Kill a process; return whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


# -- the page ----------------------------------------------------------------------------------------------------------


def page(counts: Sequence[Counts], bench: Bench, command: str, minutes: float) -> str:
    """Return the page."""
    from icy.core.text import markdown_table
    from results.pages import describe_versions, fill_template

    heads = ["fault", "tries", "exits", *Counts.ZERO]
    cells = [[c.fault, c.tries, _exits(c), *(getattr(c, name) for name in Counts.ZERO)] for c in counts]
    total = sum(c.tries for c in counts)
    sums = ["all", total, "", *(sum(getattr(c, name) for c in counts) for name in Counts.ZERO)]
    table = markdown_table(heads, [*cells, sums], numbers=range(3, len(heads)))
    return fill_template(
        PAGE,
        command=command,
        cores=os.cpu_count(),
        minutes=f"{minutes:.0f}",
        versions=describe_versions(),
        replicates=len(bench.whole),
        seconds=f"{bench.seconds:.0f}",
        fields=f"{', '.join(OWN[:-1])} and {OWN[-1]}",
        table=table,
        grace=f"{GRACE:.0f}",
    )


def _exits(counts: Counts) -> str:
    return ", ".join(f"{code} ({times})" for code, times in sorted(counts.exits.items()) if times)


def main() -> None:
    """Run, disturb, resume, compare."""
    from results.pages import read_options

    given = read_options(
        __doc__,
        tries=(12, "of each kind of fault"),
        seeds=1,
        workers=2,
        models={"nargs": "+", "default": FEW},
        page=PAGE,
    )
    begun, work = time.monotonic(), Path(tempfile.mkdtemp(prefix="icy-faults-"))
    try:
        bench = Bench(work, given.models, given.seeds, given.workers)
        print(f"undisturbed: {len(bench.whole)} replicates in {bench.seconds:.0f} s", flush=True)
        found = []
        for counts in suite(bench, given.tries):
            wrong = ", ".join(f"{name} {getattr(counts, name)}" for name in Counts.ZERO)
            print(f"{counts.fault}: {counts.tries} tries; {wrong}", flush=True)
            found.append(counts)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    command = " ".join(["python -m tests.stress.faults", *sys.argv[1:]])
    given.page.write_text(page(found, bench, command, (time.monotonic() - begun) / 60))
    sys.exit(not all(counts.clean for counts in found))


if __name__ == "__main__":
    be_icy() if sys.argv[1:2] == ["--icy"] else main()
