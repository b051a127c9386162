"""Native code under AddressSanitizer and UBSan: right and wrong arrays lead to no wrong read, write or shift."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from icy.core import native
from tests.cores import needs_native

ROOT = Path(__file__).parents[3]
TESTS = (
    "tests/models/native/test_wrong_tensors.py",
    "tests/models/native/test_calls.py",
    "tests/games/test_native_game.py",
    "tests/training/test_native_pair.py",
    "tests/training/test_native_draws.py",
    "tests/training/test_ends.py",
    "tests/games/test_turns.py",
    "tests/s2b/agents/cores/test_recurrence.py",
    "tests/metrics/topographic/test_native.py",
    "tests/metrics/topographic/test_pairs.py",
)
# Builds the libraries with sanitizers, and runs the tests with these in place of the usual ones.
SCRIPT = """
import sys, os
from pathlib import Path
import pytest
from icy.core import native
from icy.core.native import build

scratch, variant, *tests = sys.argv[1:]
build.VARIANTS = {kind: {n: f for n, f in of.items() if n == variant} for kind, of in build.VARIANTS.items()}
build.LINK["linux"] = (f"-Wl,--version-script={build.EXPORTS}", "-lasan", "-lubsan", "-lm", "-lc", "-lgcc")
preload = os.environ.pop("LD_PRELOAD")  # not for the compiler
for folder in ("models/native", "icy/metrics/topographic/native"):
    target = Path(scratch, Path(folder).parent.name)
    print(build.build(Path(folder).absolute(), target, target / "objects"))
os.environ["LD_PRELOAD"] = preload
opened = native._open
native._open = lambda folder: opened(Path(scratch, folder.parent.name))
code = pytest.main(["-q", "-p", "no:cacheprovider", *tests])
assert native.load("icy.models.native").path.is_relative_to(scratch)
raise SystemExit(code)
"""


@needs_native
@pytest.mark.stress
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("g++"), reason="needs GCC on Linux")
def test_no_wrong_read_or_write(tmp_path: Path) -> None:
    library = native.load("icy.models.native")
    assert library is not None
    libraries = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libstdc++.so.6")
    ]
    environment = {
        **os.environ,
        "CXX": "g++ -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1",
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), library.variant, *TESTS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
