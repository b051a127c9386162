"""The service of Secret Spy Codes: a study with people in their browsers, on Starlette and SQLite.

    plan = read_plan("pilot")                  # pilot.toml
    study = open_study(plan)                   # its database and key
    app = app_of([study], Serving())           # icy.study.service.network; needs the extra "study"

`icy.study.game` has the rules of the game, and `icy.study.rows` the columns of the data. This package opens the
database (`studies`), assigns people to conditions (`persons`), stores the games (`play`), serves the pages (`web`), and
reads the data (`links`, `review`, `export`). It runs in one process, which by default only this machine can reach.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from icy.core.errors import InvalidSettingError, StoreError

from .network import INSTALL, Serving
from .plan import StudyPlan, read_plan
from .studies import Database, Study, open_study

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["Database", "Study", "StudyPlan", "app_of", "listening", "open_study", "read_plan", "serve"]

BACKLOG = 2048  # maximum number of waiting connections


def app_of(studies: Sequence[Study], serving: Serving) -> ASGIApp:
    """Create the web application for studies.

    Raises:
        InvalidSettingError: the extra "study" is not installed, or two studies have the same name.
    """
    names = [study.name for study in studies]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidSettingError(
            f"Two studies are called '{twice[0]}', but the name is part of the address: serve only one of them."
        )
    try:
        from .web import make_app
    except ImportError as error:
        raise InvalidSettingError(INSTALL) from error
    return make_app(studies, serving)


def listening(serving: Serving) -> socket.socket:
    """Open a socket that listens at the host and port of the service.

    Raises:
        StoreError: the port is in use, or this machine does not have the address.
    """
    family = socket.AF_INET6 if ":" in serving.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # allows a restart right after an exit
        found.bind((serving.host, serving.port))
        found.listen(BACKLOG)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            help_ = "another program listens there; stop it, or choose another --port"
        else:
            help_ = f"{(error.strerror or str(error)).lower()}; choose another --host or --port"
        raise StoreError(f"The service cannot listen at {serving.host}, port {serving.port}: {help_}.") from error
    return found


def serve(app: ASGIApp, serving: Serving, at: socket.socket) -> None:
    """Serve an application until the process is interrupted.

    Requests are not logged: people's addresses are private, and page addresses give access to games.

    Args:
        app: web application from `app_of`.
        serving: network settings.
        at: socket from `listening`; it is closed at the end.
    """
    import uvicorn

    logging.getLogger("icy").setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        proxy_headers=serving.behind_proxy,
        access_log=False,
        server_header=False,
        log_level="warning",
        timeout_graceful_shutdown=5,
    )
    with contextlib.suppress(KeyboardInterrupt):  # the usual way to stop a service
        uvicorn.Server(config).run(sockets=[at])
