"""Owners of files: whether the process that made a file is still running."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from icy.core.processes import Owner

HERE = Owner.here()
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="it needs /proc")
posix = pytest.mark.skipif(os.name != "posix", reason="Windows is not supported")


def ended() -> Owner:
    """A process that has ended."""
    script = "from icy.core.processes import Owner; print(Owner.here())"
    found = Owner.in_name(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout)
    assert found is not None
    return found


def test_this_process_is_running() -> None:
    assert HERE.pid == os.getpid()
    assert not HERE.gone()


@posix
def test_an_ended_process_is_gone() -> None:
    assert ended().space == HERE.space
    assert ended().gone()


@only_linux
def test_a_reused_process_number_is_another_process() -> None:
    assert replace(HERE, began=HERE.began - 1).gone()


@only_linux
def test_a_zombie_process_is_gone() -> None:
    script = "import sys; from icy.core.processes import Owner; print(Owner.here(), flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        owner = Owner.in_name(process.stdout.readline().decode())
        assert owner is not None
        assert not owner.gone()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has waited for it
        assert owner.gone()


def test_processes_of_other_machines_are_unknown() -> None:
    other = replace(ended(), space="00000000")
    assert not other.local
    assert not other.gone()


def test_the_name_of_a_file_contains_its_owner() -> None:
    assert Owner.in_name(f"icy-pool-{HERE}-x_9abc") == HERE
    assert Owner.in_name("icy-results") is None
    assert Owner.in_name("icy-pool-8f_2k1") is None
