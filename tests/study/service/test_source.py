"""The source of the service has no clients of other services and no automatic decisions."""

from __future__ import annotations

import ast
from pathlib import Path

import icy.study.service

SERVICE = Path(icy.study.service.__file__).parent
CLIENTS = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "telnetlib", "urllib3"}


def test_only_a_researcher_rejects() -> None:
    """Only one function saves decisions, and only `icy study review` calls it."""
    writers = [path.name for path in SERVICE.rglob("*.py") if "INSERT INTO review" in path.read_text(encoding="utf-8")]
    callers = [path.name for path in SERVICE.rglob("*.py") if "decide(" in path.read_text(encoding="utf-8")]
    assert writers == callers == ["review.py"]


def test_the_service_has_no_clients() -> None:
    """The service has no client of another service, so it cannot transfer money or send data."""
    for path in SERVICE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not {name.partition(".")[0] for name in names} & CLIENTS, path
            assert "urllib.request" not in names, path
