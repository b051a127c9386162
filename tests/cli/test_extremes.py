"""Extreme command lines and sweep files end in a result or in one sentence, and take little memory and time."""

from __future__ import annotations

import io
import json
import os
import pickle
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

TEXTS = Path(__file__).with_name("extremes")
CODES = {"done": (0,), "refused": (1, 2), "either": (0, 1, 2)}  # either: some machines have the memory
NOT_UTF_8 = b'model = "\xff\xfe"'
DIGITS = "9" * 5000
LONG = {  # abbreviations in the files; `{folder}` is a folder with the files below
    "{dry}": "-m sender/FC1L -g perm --quick --dry-run -o {folder}/out",
    "{digits}": DIGITS,
    "{400-digits}": DIGITS[:400],
    "{deep}": "[" * 50_000,
    "{pluses}": "+" * 3000,
    "{name}": "a" * 5000,
}


def read_text(name: str) -> str:
    """Return a file of extremes, with what its abbreviations stand for."""
    text = (TEXTS / name).read_text()
    for short, long in LONG.items():
        text = text.replace(short, long)
    return text


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


def write_files(folder: Path) -> None:
    """Write the files that the lines above name."""
    tables = {
        "same": "shape,size,message\nball,1,ab\nball,2,ad\ncube,1,cb\ncube,2,cd\n",
        "token": f"shape,size,message\nball,1,9999999999 3\nball,2,1 {2**62}\ncube,1,{2**62 - 1} 0\n",
        "twenty-digits": "shape,size,t0,t1\n0,0,99999999999999999999,3\n0,1,4,3\n1,0,4,5\n1,1,99999999999999999999,5\n",
        "value": f"shape,size,message\n0,{2**62},ab\n0,{2**62 + 1},ad\n{10**30},{2**62},cb\n",
        "digits": f"shape,size,message\n0,{DIGITS},a b\n0,1,a d\n1,1,c d\n",
        "no-message": "m0,message\n0,a\n0,\n",
    }
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "not-utf8.toml").write_bytes(NOT_UTF_8)
    for name in ("empty.npz", "empty.pt"):
        (folder / name).write_bytes(b"")
    file = io.BytesIO()
    np.savez_compressed(file, meanings=np.arange(200).reshape(100, 2), messages=np.arange(200).reshape(100, 2))
    whole = bytearray(file.getvalue())
    whole[120:130] = bytes(10)
    (folder / "broken.npz").write_bytes(whole)
    with zipfile.ZipFile(folder / "no-shape.npz", "w") as archive:
        archive.writestr("meanings.npy", b"\x93NUMPY\x01\x00")
        archive.writestr("messages.npy", b"\x93NUMPY\x01\x00")
    (folder / "broken.pt").write_bytes(pickle.dumps({"message": [1]})[:-3])


def name_of(words: list[str]) -> str:
    """Return a short form of a command line."""
    return " ".join(word if len(word) < 30 else f"{word[:8]}..." for word in words if "folder}/out" not in word)


@pytest.mark.slow
def test_extreme_lines_and_files(tmp_path: Path, subtests: pytest.Subtests) -> None:
    write_files(tmp_path)
    commands = [line.split(": ", 1) for line in read_text("lines.txt").splitlines()]
    cases = [(name_of(words), words, CODES[end]) for end, line in commands for words in [shlex.split(line)]]
    sweeps = dict(part.split("\n", 1) for part in f"\n{read_text('sweeps.txt')}".split("\n== ")[1:])
    for place, (name, text) in enumerate({**sweeps, "not UTF-8": NOT_UTF_8}.items()):
        (tmp_path / f"{place}.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
        cases.append((name, ["sweep", f"{{folder}}/{place}.toml", "--dry-run", "-o", "{folder}/out"], CODES["refused"]))
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
