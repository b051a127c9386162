"""A stand-in for an OpenAI-compatible server: it speaks the protocol, and misbehaves as a test asks."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answering = Callable[["Asked"], "Answer"]


@dataclass(frozen=True)
class Asked:
    """A request as the server got it: its number from 0, path, headers and body."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][0]["content"])


@dataclass(frozen=True)
class Answer:
    """What the server does: wait, and send a status, headers and a body, of which it may cut the end."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: bool = False
    drip: float = 0.0  # seconds between single bytes
    slow_headers: float = 0.0  # seconds between the lines of 100 headers


def said(content: Any, **more: Any) -> Answer:
    """A completion."""
    return chosen({"message": {"role": "assistant", "content": content}}, **more)


def chosen(choice: Any, usage: Any = None, **more: Any) -> Answer:
    """A completion with this choice."""
    counts = {"prompt_tokens": 100, "completion_tokens": 5} if usage is None else usage
    return Answer(json.dumps({"choices": [choice], "usage": counts}).encode(), **more)


def failed(status: int, message: str = "oops", **headers: str) -> Answer:
    """A refusal."""
    return Answer(json.dumps({"error": {"message": message}}).encode(), status, headers)


YES = '{"decision": 0}'


@dataclass
class StandIn:
    """A running server: its URL, all requests so far, how many were under way at once, and lists of models so far."""

    url: str
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0
    listed: int = 0


@contextlib.contextmanager
def serving(answering: Answering, models: Callable[[], Answer] | None = None) -> Iterator[StandIn]:
    """Run a server in a thread, which answers as the function says, and lists its models if it can."""
    lock, now = threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *given: Any) -> None:
            pass

        def do_CONNECT(self) -> None:  # as a proxy that refuses
            self.send(failed(502))

        def do_GET(self) -> None:
            here.listed += 1
            self.send(failed(404) if models is None or self.path != "/v1/models" else models())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                one = Asked(len(here.asked), self.path, dict(self.headers), body)
                here.asked.append(one)
                now[0] += 1
                here.most_at_once = max(here.most_at_once, now[0])
            try:
                answer = answering(one)
                time.sleep(answer.seconds)
            finally:  # before the answer is sent, as the client may ask again before this thread goes on
                with lock:
                    now[0] -= 1
            self.send(answer)

        def send(self, answer: Answer) -> None:
            with contextlib.suppress(OSError):  # of a client that waited no longer
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name.replace("_", "-"), value)
                for number in range(100 if answer.slow_headers else 0):
                    self.send_header(f"X-{number}", "x")
                    self.flush_headers()
                    time.sleep(answer.slow_headers)
                self.send_header("Content-Length", str(len(answer.body) + 10 * answer.cut))
                self.end_headers()
                if not answer.drip:
                    self.wfile.write(answer.body)
                for place in range(len(answer.body) if answer.drip else 0):
                    self.wfile.write(answer.body[place : place + 1])
                    time.sleep(answer.drip)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    here = StandIn(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
