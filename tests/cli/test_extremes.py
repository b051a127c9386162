"""Extreme command lines and sweep files end in a result or in one sentence, and take little memory and time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.extremes import LINES, REFUSED, SWEEPS, write_files

MOST_MEMORY = 10**9  # bytes
MOST_SECONDS = 15  # of CPU time; the system ends a command that hangs

# The process imports everything once, and forks for every command line on its input.
MEASURE = f"""
import json, os, resource, sys
import click, numpy, pandas, torch
from icy.cli import COMMANDS, main

for name in COMMANDS:
    main.get_command(click.Context(main), name)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open("stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        resource.setrlimit(resource.RLIMIT_CPU, ({MOST_SECONDS}, {MOST_SECONDS}))
        try:
            main(json.loads(line), prog_name="icy")
        except SystemExit as end:
            os._exit(end.code or 0)  # the usual exit takes a second per child
    _, status, used = os.wait4(child, 0)
    with open("stderr", errors="replace") as file:
        stderr = file.read()
    found = (os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024, stderr)
    print(json.dumps(found), flush=True)
"""


def name_of(words: tuple[str, ...]) -> str:
    """Return a short form of a command line."""
    return " ".join(word if len(word) < 30 else f"{word[:8]}..." for word in words if "folder}/out" not in word)


@pytest.mark.slow
def test_extreme_lines_and_files(tmp_path: Path, subtests: pytest.Subtests) -> None:
    write_files(tmp_path)
    cases = [(name_of(words), words, codes) for words, codes in LINES]
    for place, (name, text) in enumerate(SWEEPS.items()):
        (tmp_path / f"{place}.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        cases.append((name, ("sweep", f"{{folder}}/{place}.toml", "--dry-run", "-o", "{folder}/out"), REFUSED))
    lines = [json.dumps([word.replace("{folder}", str(tmp_path)) for word in words]) for _, words, _ in cases]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    for (name, _, codes), line in zip(cases, done.stdout.splitlines(), strict=True):
        with subtests.test(name):
            code, peak, stderr = json.loads(line)
            assert code in codes, stderr
            assert "Traceback" not in stderr
            if code:  # one line says what is wrong, after click's lines about the usage
                assert sum(found.startswith("Error: ") for found in stderr.splitlines()) == 1, stderr
            assert peak < MOST_MEMORY
