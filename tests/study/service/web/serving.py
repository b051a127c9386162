"""A study served at a port of this machine, for tests with a browser or another process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn

from icy.study.service import Study
from icy.study.service.network import Serving
from icy.study.service.web import make_app
from tests.study.service.web.helpers import without_limits


def free_port() -> int:
    """A free port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def reachable(of: Sequence[Study] | Study, web: Serving | None = None) -> Iterator[str]:
    """Serve studies at a port of this machine, and yield the address."""
    studies = [of] if isinstance(of, Study) else of
    config = uvicorn.Config(
        make_app(studies, web or without_limits(), ("*",)), port=0, access_log=False, log_level="error"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
