"""The address of the service, and access to the researcher's page."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from icy.core.errors import InvalidSettingError, StoreError
from icy.study.service import app_of, listening, plan
from icy.study.service.network import Serving
from tests.study.service.helpers import study
from tests.study.service.web.serving import free_port


def test_by_default_only_this_machine_is_served() -> None:
    found = Serving()
    assert (found.host, found.is_local, found.researcher, found.behind_proxy) == ("127.0.0.1", True, False, False)
    assert "*" not in found.hosts
    assert found.address("pilot") == "http://127.0.0.1:8000/pilot"


def test_addresses_begin_with_the_base_url() -> None:
    found = Serving(base_url="https://study.example/", root_path="/spy", behind_proxy=True)
    assert found.address("pilot") == "https://study.example/spy/pilot"
    assert found.hosts[0] == "study.example"
    assert Serving(host="::1").address("pilot") == "http://[::1]:8000/pilot"


@pytest.mark.parametrize(
    "given", [{"host": "0.0.0.0"}, {"behind_proxy": True}, {"base_url": "https://study.example"}], ids=str
)
def test_a_public_service_needs_a_password_for_the_researchers_page(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError, match="ICY_STUDY_PASSWORD"):
        Serving(researcher=True, **given)
    assert Serving(researcher=True, password="x", **given).researcher


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"base_url": "study.example"}, "must be like https://study.example"),
        ({"base_url": "https://study.example/spy"}, "set a path with --root-path"),
        *(
            ({"base_url": f"https://{wrong}"}, "must be like https://study.example")
            for wrong in ("", "a..b", "study.example:port", "study.example:70000", "-a.example", "a b", "[::1", "a@b.c")
        ),
        ({"base_url": "ftp://study.example"}, "must be like https://study.example"),
        ({"base_url": "https://study.example?a=b"}, "must be like https://study.example"),
        ({"root_path": "spy"}, "must begin with a slash"),
        ({"port": 0}, "The port must be"),
        ({"port": 70_000}, "The port must be at most 65535"),
    ],
)
def test_invalid_settings_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        Serving(**given)


def test_a_missing_extra_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("icy.study.service.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(InvalidSettingError, match=r'pip install "icy-toolkit\[study\]"'):
        app_of([study(tmp_path)], Serving())


def test_studies_of_one_name_are_not_served_together(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingError, match="Two studies are called 'pilot'"):
        app_of([study(tmp_path), study(tmp_path)], Serving())


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    where = Serving(port=free_port())
    with listening(where), pytest.raises(StoreError, match="another program listens there; stop it, or choose another"):
        listening(where)


def test_small_replies_are_sent_at_once() -> None:
    """asyncio sets TCP_NODELAY only on sockets with the protocol TCP; without it a page takes 40 ms more."""
    with listening(Serving(port=free_port())) as found:
        assert found.proto == socket.IPPROTO_TCP


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StoreError, match=r"cannot listen at 192\.0\.2\.1, port 8000: .*; choose another --host"):
        listening(Serving(host="192.0.2.1"))  # reserved for documentation (RFC 5737)


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_runs_until_a_signal_stops_it(number: signal.Signals, tmp_path: Path) -> None:
    """After Ctrl-C or SIGTERM, the exit code is 0, and the command prints one sentence."""
    plan.new_study(tmp_path / "pilot.toml")
    port = free_port()
    command = [sys.executable, "-m", "icy", "study", "serve", str(tmp_path / "pilot.toml"), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(f"http://127.0.0.1:{port}/pilot")
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out) == (0, "")
    assert err.splitlines() == [f"pilot (pilot): http://127.0.0.1:{port}/pilot", "Stopped; all recorded data is saved."]


def wait_for(address: str, patience: float = 300.0) -> None:
    """Wait until the server answers."""
    until = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            assert time.monotonic() < until, "nothing is served"
            time.sleep(0.05)
