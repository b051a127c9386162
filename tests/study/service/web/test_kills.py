"""A server that is killed by signal 9 a hundred times during a game: nothing is lost, and the game continues."""

from __future__ import annotations

import http.client
import os
import random
import signal
import socket
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

import pytest

from icy.study.service.export import audit
from tests.study.service.helpers import pid, plan, rows, study
from tests.study.service.robot import Ask, Reply
from tests.study.service.web.helpers import robot, without_limits
from tests.study.service.web.serving import free_port

pytestmark = [pytest.mark.stress, pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")]
KILLS = 100
PATIENCE = 300.0  # seconds to wait for an answer of a server


def serve_in_child(folder: Path, port: int, **given: Any) -> int:
    """Start a server in another process, and return the process id."""
    child = os.fork()
    if child == 0:
        try:
            import uvicorn

            from icy.study.service import open_study
            from icy.study.service.web import make_app

            app = make_app([open_study(plan(folder, **given))], without_limits(), ("*",))
            uvicorn.run(app, port=port, access_log=False, log_level="critical")
        finally:
            os._exit(0)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return child
        time.sleep(0.005)
    raise AssertionError("The server does not start.")


class Server:
    """A server that is killed at random times, even while it answers, and started again."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.folder, self.given, self.port = folder, given, free_port()
        self.chance, self.kills = random.Random(1), 0
        self.start()

    def start(self) -> None:
        """Start the server, and schedule its kill if kills are left."""
        self.child = serve_in_child(self.folder, self.port, **self.given)
        self.timer = threading.Timer(self.chance.uniform(0.0, 0.2), os.kill, (self.child, signal.SIGKILL))
        if self.kills < KILLS:
            self.timer.start()

    def answer(self, ask: Ask) -> Reply:
        """Return the server's answer; repeat the request after a kill, like a person who loads the page again."""
        while True:
            try:
                return send(ask, self.port)
            except (OSError, http.client.HTTPException):
                self.timer.join()
                os.waitpid(self.child, 0)
                self.kills += 1
                self.start()

    def stop(self) -> None:
        """Stop the server."""
        self.timer.cancel()
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)


def send(ask: Ask, port: int) -> Reply:
    """Send a request, and follow redirects.

    Raises:
        OSError, http.client.HTTPException: it was killed.
    """
    address, form = ask.address, ask.form
    origin = f"http://127.0.0.1:{port}"
    for _ in range(5):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        headers = {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded"}
        body = None if form is None else urllib.parse.urlencode(form)
        connection.request("GET" if form is None else "POST", address, body, headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        if reply.status != 303:
            assert reply.status == 200, (reply.status, text)
            return Reply(address, text)
        address, form = str(reply.getheader("location")), None
    raise AssertionError("redirected for ever")


def test_a_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    given = {
        "conditions": {"grammar": ["concat"], "quota": 50, "game": {"examples": 50, "held_out_at": [29, 39, 49]}},
        "platform": {"name": "prolific"},
    }
    server, games = Server(tmp_path, **given), 0
    while server.kills < KILLS:
        games += 1
        playing = robot(study(tmp_path, **given)).take_part(f"/pilot?PROLIFIC_PID={pid(games)}")
        ask, graded = next(playing), 0
        while True:
            reply = server.answer(ask)
            graded += ask.address.endswith("/answer")
            try:
                ask = playing.send(reply)
            except StopIteration:
                break
        assert graded == 50
    server.stop()
    of = study(tmp_path, **given)
    assert audit(of).faults == ()
    found = rows(
        of, "SELECT game.state, count(*) AS items FROM game JOIN trial ON trial.game = game.id GROUP BY game.id"
    )
    assert found == [{"state": "closed", "items": 50}] * games
    assert len(rows(of, "SELECT * FROM person")) == games
