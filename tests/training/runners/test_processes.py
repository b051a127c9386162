"""Processes of workers: copies where that is safe, fresh ones elsewhere, and the same numbers from both."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from joblib.externals.loky.process_executor import BrokenProcessPool

import icy
from icy.core.machine import keeps_memory
from icy.core.registry import registry
from icy.training.runners import pool
from tests.helpers import numbers

PROBE = {"model": ["sender/HierZero:GRU", "receiver/FC1L"], "grammar": ["perm", "proj"], "meanings": "2x3",
         "word_length": 2, "hidden": 8, "seeds": 2, "target": 0.6, "settings": {"check_every": 20}}  # fmt: skip
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")


def run(script: str) -> Any:
    """Run a script in a fresh process, with one thread; return its last line, parsed as JSON."""
    prelude = "import json, os, sys, time; from icy.training.runners import pool\n"
    found = subprocess.run([sys.executable, "-c", prelude + script], capture_output=True, text=True, timeout=900)
    assert not found.returncode, found.stderr
    return json.loads(found.stdout.splitlines()[-1])


COPIES = """
made, facts = [], []
def copies(*given, real=pool.copies):
    made.extend(real(*given))
    return list(made)
def ended(*given, real=pool.run_job):
    from icy.core.machine import keeps_memory
    records = real(*given)
    heavy = [name for name in ("torch._dynamo", "sympy", "scipy.stats", "sklearn") if name in sys.modules]
    with open(f"{sys.argv[1]}/{os.getpid()}.json", "a") as file:
        file.write(json.dumps([keeps_memory(), heavy, os.environ["OMP_NUM_THREADS"]]) + "\\n")
    return records
"""


@pytest.mark.process
@only_linux
def test_a_pool_of_copies_gives_the_numbers_of_one_process(tmp_path: Path) -> None:
    script = f"""{COPIES}
import icy
from pathlib import Path
from icy.core.machine import keeps_memory
sys.argv = ["", {str(tmp_path)!r}]
pool.copies, pool.run_job = copies, ended
result = icy.probe(**{PROBE!r}, workers=2, out=sys.argv[1] + "/pool", progress=False)
facts = [json.loads(line) for file in Path(sys.argv[1]).glob("*.json") for line in file.read_text().splitlines()]
print(json.dumps([result.records, len(made), facts, len(list(Path(sys.argv[1]).glob("*.json"))), keeps_memory()]))
"""
    records, copied, facts, workers, here = run(script)
    alone = icy.probe(**PROBE, workers=1, out=str(tmp_path / "alone"), progress=False)  # type: ignore[arg-type]
    assert numbers(records) == numbers(alone.records)
    assert copied == 2
    assert workers == 2  # both copies trained
    assert facts == [[True, [], "1"]] * len(facts)  # memory kept, nothing heavy imported, one thread
    assert not here  # the user's process is as it was
    assert not keeps_memory()  # training in this process did not change it


@pytest.mark.process
def test_fresh_processes_give_the_same_numbers_and_keep_their_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "copies", lambda *_: [])
    of_pool = icy.probe(**PROBE, workers=2, out=str(tmp_path / "pool"), progress=False)  # type: ignore[arg-type]
    alone = icy.probe(**PROBE, workers=1, out=str(tmp_path / "alone"), progress=False)  # type: ignore[arg-type]
    assert numbers(of_pool.records) == numbers(alone.records)
    process = pool.FreshProcess(keeps_memory, pool._start_fresh_worker, registry.additions(), logging.WARNING)
    assert process.submit().result()
    process.kill()
    assert not keeps_memory()


# -- where copying is not safe -----------------------------------------------------------------------------------------


def test_nothing_is_copied_with_a_second_thread() -> None:
    going = threading.Event()
    other = threading.Thread(target=going.wait)
    other.start()
    try:
        assert pool.copies(2, os.getpid, int) == []
    finally:
        going.set()
        other.join()


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_nothing_is_copied_on_other_systems(monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert pool.copies(2, os.getpid, int) == []


def test_nothing_is_copied_with_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert pool.copies(2, os.getpid, int) == []


def test_workers_of_a_gpu_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "copies", lambda *_: pytest.fail("a copy"))
    with pool.PoolRunner(2, device="cuda"):
        pass


@pytest.mark.process
@only_linux
def test_nothing_is_copied_after_openmp_has_run() -> None:
    script = """
import torch
torch.set_num_threads(2)
torch.randn(10**7).exp()
threads = len(os.listdir("/proc/self/task"))
found = pool.copies(2, os.getpid, int)
try:
    left = os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    left = None
print(json.dumps([threads, len(found), left]))
"""
    threads, copied, left = run(script)
    assert threads > 1
    assert not copied
    assert left is None  # the first copy has ended


@pytest.mark.process
@only_linux
@pytest.mark.parametrize("start", ["lambda: time.sleep(1e6)", "lambda: 1 / 0"])
def test_nothing_is_copied_if_a_copy_is_not_ready(start: str) -> None:
    script = f"""
pool.PATIENCE_SECONDS = 1
print(json.dumps(len(pool.copies(2, os.getpid, {start}))))
"""
    assert run(script) == 0


# -- work in a copy ----------------------------------------------------------------------------------------------------


@pytest.mark.process
@only_linux
def test_a_copy_answers_raises_and_is_lost() -> None:
    script = """
from icy.core.errors import StoreError
class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(one + two)
def task(what):
    if what == "store":
        raise StoreError("the disk is full")
    if what == "odd":
        raise Odd("cannot be ", "read back")
    if what == "exit":
        os._exit(3)
    return os.getpid(), what
first, second = pool.copies(2, task, int)
told = []
answers = [first.submit("a").result(), first.submit("b").result(), second.submit("a").result()]
for what in ("store", "odd", "exit", "a"):
    error = first.submit(what).exception(60)
    told.append([type(error).__name__, str(error)])
print(json.dumps([answers, os.getpid(), told]))
first.kill(), second.kill()
"""
    answers, here, told = run(script)
    (one, _), (again, _), (other, _) = answers
    assert one == again != other != here
    assert told[0] == ["StoreError", "the disk is full"]
    assert told[1][0] == "IcyError"
    assert "cannot be read back" in told[1][1]
    assert [name for name, _ in told[2:]] == [BrokenProcessPool.__name__] * 2


@pytest.mark.process
@only_linux
def test_copies_draw_numbers_of_their_own() -> None:
    script = """
import random, numpy as np, torch
torch.manual_seed(5), np.random.seed(5), random.seed(5)
def draw():
    return torch.rand(1).item(), np.random.rand(), random.random()
made = pool.copies(2, draw, int)
one, two = (copy.submit().result() for copy in made)
print(json.dumps([one, two, draw()]))
for copy in made:
    copy.kill()
"""
    for drawn in zip(*run(script), strict=True):
        assert len(set(drawn)) == 3


# -- workers end with their parent -------------------------------------------------------------------------------------


def gone(pid: int) -> bool:
    """Whether a process ends; five minutes are enough on any machine."""
    end = time.monotonic() + 900
    while time.monotonic() < end:
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    return False


def started_by_one_that_is_killed(script: str) -> list[int]:
    """The processes that a script prints, which then is killed."""
    prelude = "import json, logging, os, time; from icy.training.runners import pool\n"
    end = f"\nos.kill(os.getpid(), {int(signal.SIGKILL)})"
    # To a file: a pipe would be held open by what outlives the script.
    with tempfile.TemporaryFile("w+") as printed:
        subprocess.run([sys.executable, "-c", prelude + script + end], stdout=printed, timeout=900)
        printed.seek(0)
        found: list[int] = json.loads(printed.read())
    return found


FRESH = """
from icy.core.registry import registry
made = pool.FreshProcess(os.getpid, pool._start_fresh_worker, registry.additions(), logging.WARNING)
made.submit()
while not made.processes():
    time.sleep(0.001)
print(json.dumps([made.processes()[0].pid]), flush=True)
"""


@pytest.mark.process
@only_linux
def test_a_copy_ends_with_its_parent() -> None:
    made = "made = pool.copies(1, os.getpid, pool._start_copied_worker)\n"
    (worker,) = started_by_one_that_is_killed(made + "print(json.dumps([made[0].submit().result()]), flush=True)")
    assert gone(worker)


@only_linux
def test_a_fresh_worker_ends_with_a_parent_that_is_killed_as_it_starts() -> None:
    """It imports for a second or two before it can look, and its parent's number then is another."""
    (worker,) = started_by_one_that_is_killed(FRESH + "time.sleep(0.05)")
    assert gone(worker)


@only_linux
def test_a_copy_ends_with_a_parent_that_is_killed_as_it_starts() -> None:
    (worker,) = started_by_one_that_is_killed("""
def start():
    time.sleep(1)
    pool._start_copied_worker()
made = pool.CopiedProcess(os.getpid, start)
print(json.dumps([made.processes()[0].pid]), flush=True)
""")
    assert gone(worker)


@pytest.mark.process
@only_linux
def test_copies_do_not_hold_the_pipe_open_that_tells_of_the_end() -> None:
    """None waits for the next look at its parent's number."""
    workers = started_by_one_that_is_killed("""
pool.LOOK_SECONDS = 1000
made = pool.copies(3, os.getpid, pool._start_copied_worker)
print(json.dumps([copy.submit().result() for copy in made]), flush=True)
""")
    assert len(workers) == 3
    assert all(gone(worker) for worker in workers)


@pytest.mark.process
@only_linux
def test_a_copy_ends_though_another_process_holds_the_pipe_open() -> None:
    worker, other = started_by_one_that_is_killed("""
made = pool.copies(1, os.getpid, pool._start_copied_worker)
other = os.fork()
if not other:
    time.sleep(600)
    os._exit(0)
print(json.dumps([made[0].submit().result(), other]), flush=True)
""")
    assert gone(worker)
    os.kill(other, signal.SIGKILL)


@pytest.mark.process
@only_linux
def test_a_record_that_is_being_written_is_written_to_its_end(tmp_path: Path) -> None:
    begun, done = tmp_path / "begun", tmp_path / "done"
    (worker,) = started_by_one_that_is_killed(f"""
def task():
    with pool.to_its_end:
        print(json.dumps([os.getpid()]), flush=True)
        open({str(begun)!r}, "w").close()
        time.sleep(2)
        open({str(done)!r}, "w").close()
    time.sleep(600)
made = pool.copies(1, task, pool._start_copied_worker)
made[0].submit()
while not os.path.exists({str(begun)!r}):
    time.sleep(0.01)
""")
    assert gone(worker)
    assert done.exists()


@pytest.mark.process
@only_linux
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_to_all_processes_are_the_parents_to_handle(name: str) -> None:
    script = f"""
import signal
made = pool.copies(1, os.getpid, pool._start_copied_worker)
worker = made[0].submit().result()
os.kill(worker, signal.{name})
print(json.dumps([worker, made[0].submit().result(60)]))
made[0].kill()
"""
    worker, again = run(script)
    assert worker == again


@pytest.mark.process
@only_linux
@pytest.mark.parametrize("forgotten", ["an interrupt as copies are made", "a copy that nobody knows"])
def test_an_interrupt_leaves_no_copies_to_wait_for(forgotten: str) -> None:
    make = {
        "an interrupt as copies are made": """
real = pool.CopiedProcess
class Interrupted(real):
    def __init__(self, *given):
        super().__init__(*given)
        os.kill(os.getpid(), signal.SIGINT)
        assert not len(made)  # only once it is known here
        made.append(self._process)
pool.CopiedProcess = Interrupted
try:
    pool.copies(1, os.getpid, pool._start_copied_worker)
except KeyboardInterrupt:
    print(json.dumps([made[0].exitcode]), flush=True)
""",
        "a copy that nobody knows": """
print(pool.CopiedProcess(os.getpid, pool._start_copied_worker).ready(60))
print("[-9]", flush=True)
""",
    }
    signal_first = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nmade = []\n"
    assert run(signal_first + make[forgotten]) == [-signal.SIGKILL]
