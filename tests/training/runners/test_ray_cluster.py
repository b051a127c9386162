"""A Ray cluster: the same numbers as on one machine, also when a node is killed in the middle."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import icy
from icy.core.errors import IcyError
from icy.experiments.progress import Watcher
from icy.training.job import Job
from icy.training.runners import ray_cluster as clusters
from tests.helpers import SMALL, numbers

MODEL = """\
import torch
from icy.core.register import register_sender
from torch import nn

@register_sender("OfAFile", description="Of a file.", source="a test")
class Linear(nn.Module):
    def __init__(self, space, message_length, vocab_size, hidden_size=8, representation=None):
        super().__init__()
        self.space, self.shape = space, (message_length, vocab_size + 1)
        self.out = nn.Linear(space.attributes * space.values, message_length * (vocab_size + 1))

    def forward(self, meanings):
        hot = nn.functional.one_hot(meanings, self.space.values).float().flatten(1)
        return self.out(hot).view(-1, *self.shape)
"""


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "icy", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})


@pytest.fixture
def two_nodes() -> Iterator[Any]:
    """A cluster of two nodes with a core each."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


class NodeKiller(Watcher):
    """Kills the second node in the middle of its first task.

    The task on the second node sends its first readings and then waits until the node dies. The task on the first node
    starts after that. So the second node always has an unfinished task when it dies.
    """

    def __init__(self, cluster: Any, folder: Path) -> None:
        super().__init__()
        self.cluster, self.dead = cluster, folder / "dead"

    def read(self, job: Job, readings: Any) -> None:
        if not self.dead.exists():
            self.cluster.remove_node(self.cluster.second, allow_graceful=False)
            self.dead.touch()

    def task(self) -> Callable[..., None]:
        """Return the function that tasks run. Ray sends a nested function by its code."""
        second, dead, run_in_task = self.cluster.second.node_id, self.dead, clusters._run_in_task

        def run_held(job: bytes, ticket: int, additions: Any, mail: Any, level: int) -> None:
            import ray

            def put(content: Any) -> None:
                mail.put(content)
                while content[1] == "read":
                    time.sleep(1)

            on_second = ray.get_runtime_context().get_node_id() == second
            while not on_second and not dead.exists():
                time.sleep(0.05)
            run_in_task(job, ticket, additions, SimpleNamespace(put=put) if on_second else mail, level)

        return run_held


@pytest.mark.ray
def test_a_cluster_that_loses_a_node_gives_the_numbers_of_one_machine(
    tmp_path: Path, two_nodes: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = icy.sweep(**SMALL, workers=1, out=str(tmp_path / "plain"))
    killer = NodeKiller(two_nodes, tmp_path)
    monkeypatch.setattr(clusters, "_run_in_task", killer.task())
    found = icy.sweep(**SMALL, runner="ray", out=str(tmp_path / "ray"), watcher=killer)
    assert killer.dead.exists()
    assert "A worker or node was lost" in caplog.text
    assert not found.failures
    assert numbers(found.records) == numbers(plain.records)
    assert {r["key"] for r in found.records} == {r["key"] for r in plain.records}


@pytest.mark.ray
def test_a_plugin_file_reaches_the_tasks(tmp_path: Path, two_nodes: Any) -> None:
    """Under its own version, so that its results are found on file afterwards."""
    file = tmp_path / "mine.py"
    file.write_text(MODEL)
    words = ["probe", "-m", "sender/OfAFile", "-g", "perm", "--quick", "--plugin", str(file), "--format", "csv"]
    on_ray = run(*words, "--runner", "ray", "-o", str(tmp_path / "ray"), RAY_ADDRESS=two_nodes.address)
    here = run(*words, "--workers", "1", "-o", str(tmp_path / "here"))
    assert on_ray.returncode == here.returncode == 0, on_ray.stderr
    assert on_ray.stdout == here.stdout
    assert "Nothing to train" in run(*words, "-o", str(tmp_path / "ray")).stderr


@pytest.mark.process
def test_a_file_of_another_machine_registers_as_it_does_there(tmp_path: Path) -> None:
    """Under the same version and module, though only its text is at hand."""
    file = tmp_path / "mine.py"
    file.write_text(MODEL)
    script = """
import pathlib, sys
from icy.core.registry import registry
path = pathlib.Path(sys.argv[1])
registry.load_file(path) if path.exists() else registry.load_content(str(path.resolve()), sys.argv[2].encode())
entry = registry.get("sender/OfAFile")
print(entry.full_version, entry.origin, entry.load().__module__)
"""
    words = [sys.executable, "-c", script, str(file), MODEL]
    there = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    file.unlink()
    here = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert there == here
    assert "icy_plugin_mine" in here


@pytest.mark.process
def test_models_of_a_notebook_are_refused_with_a_remedy() -> None:
    script = f"""
import icy
from icy.training.probe_settings import ProbeRequest
from icy.experiments.plan import make_plan
{MODEL}
given = dict(model="sender/OfAFile", grammar="perm", quick=True)
print(make_plan(ProbeRequest.asked(**given)).total)
try:
    make_plan(ProbeRequest.asked(**given, runner="ray"))
except icy.IcyError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    total, sentence = found.splitlines()
    assert total == "4"
    assert sentence.startswith("'OfAFile' is defined in a notebook")
    assert 'plugin="mine.py"' in sentence


def test_without_ray_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(IcyError, match=r"pip install .*icy-toolkit\[ray\]"):
        clusters.RayRunner()


# -- addresses of a cluster --------------------------------------------------------------------------------------------


class StandIn:
    """A stand-in for Ray, which takes seconds to start: notes its arguments.

    Args:
        found: the address of a cluster that is there.
        settles_on: the address that a cluster of its own takes.
    """

    __version__ = "9"

    def __init__(self, found: str | None = None, settles_on: str = "127.0.0.1") -> None:
        self.asked: list[dict[str, Any]] = []
        self.constants = SimpleNamespace(ENABLE_RAY_CLUSTER=True)
        services = SimpleNamespace(canonicalize_bootstrap_address=lambda _: found)
        self._private = SimpleNamespace(services=services, ray_constants=self.constants)
        self.util = SimpleNamespace(get_node_ip_address=lambda: settles_on)

    def init(self, **given: Any) -> None:
        self.asked.append({**given, "reachable": self.constants.ENABLE_RAY_CLUSTER})


@pytest.mark.parametrize("found", [None, "10.0.0.7:6379"])
def test_a_cluster_of_icys_own_is_asked_to_listen_on_this_machine_alone(found: str | None) -> None:
    """And one that is there is joined as it is."""
    ray = StandIn(found)
    clusters._connect(ray)
    (given,) = ray.asked
    own = {"address": "local", "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    assert {name: given.get(name) for name in own} == (dict.fromkeys(own) if found else own)
    assert given["reachable"] is (found is not None)
    assert ray.constants.ENABLE_RAY_CLUSTER is True


def test_a_ray_that_listens_on_another_address_gives_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    clusters._connect(StandIn())
    assert not caplog.messages
    clusters._connect(StandIn(settles_on="10.0.0.7"))
    assert ["10.0.0.7" in said for said in caplog.messages] == [True]


@pytest.mark.parametrize(("found", "said"), [(None, "cannot be started"), ("10.0.0.7:6379", "cannot be reached")])
def test_a_ray_that_does_not_start_raises_a_sentence(
    found: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: Any) -> None:
        raise Exception("The current node timed out during startup.")

    ray = StandIn(found)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(IcyError, match=f"{said}: .*timed out"):
        clusters._connect(ray)
    assert ray.constants.ENABLE_RAY_CLUSTER is True


@pytest.mark.ray
def test_a_cluster_of_icys_own_listens_on_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    psutil = pytest.importorskip("psutil")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with clusters.RayRunner(workers=1):
        own = [psutil.Process(), *psutil.Process().children(recursive=True)]
        found = [c.laddr for one in own for c in one.net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert len(found) > 2
    assert {address.ip for address in found} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
