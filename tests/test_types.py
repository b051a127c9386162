"""What a type checker says of a user's calls."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CONFIG = f"""
[mypy]
strict = True
mypy_path = {ROOT}
[mypy-icy.*]
follow_imports = silent
[mypy-torch.*,numpy.*,pandas.*,scipy.*,sklearn.*,matplotlib.*,pyarrow.*,PIL.*,rich.*,gymnasium.*,pettingzoo.*,jaxtyping.*]
follow_imports = skip
follow_imports_for_stubs = True
"""

RIGHT = """
from pathlib import Path
import icy
from icy.languages.meanings import MeaningSpace

icy.probe("sender/FC2L", "rot", protocol="generalise", meanings=(3, 4), seeds=[1, 2], hidden="16,32", out=Path("x"))
icy.probe(["sender/*"], meanings=MeaningSpace(3, 4), quick=True, target=None, engine="loop+plain", track=["wandb"])
icy.probe("sender/FC2L", representation=["soft", "discr"], protocol="all", vocab_size=[4, 5], meanings=["3x4", (2, 3)])
icy.end_to_end("FC2L", "FC2L", representation="all", hidden=[8, 16]).language(seed=1, representation="soft", steps=20)
icy.sweep("*/FC*", grammar="perm", meanings=["3x4", "5x10"], vocab_size=[4, 5], representation=["soft", "gumb"])
icy.sweep(kind="e2e", sender="FC2L", receiver="FC2L", updates=20, file="sweep.toml", order="given", side="sender")
icy.end_to_end("FC2L", "RNN1L:GRU", quick=True, updates=20, settings={"learning_rate": 0.1}).language()
icy.reproduce("icy22/table3", "Hashtable", grammar="perm", seeds=1).cells
icy.s2b.evaluate("posdis", "binding", shots=2, compat="near32", query="all", episodes=8)
icy.s2b.parallel_env(distractors=2, view="partial", actions="flat")
icy.s2b.evaluate_text("scripted-yes", seeds="1,2", shots=2, text_settings=icy.s2b.TextSettings(constrain="grammar"))
icy.s2b.BatchedRecall(representation="ohe", split="support", episodes=3)
icy.train("e2e", sender="FC2L", receiver="FC2L", updates=20, seeds=[1]).language()
icy.train("s2b", core="pairs", shots="1,2", workers=1)
icy.train("kind-of-a-plug-in", rate=0.1)
"""

WRONG = """
import icy

icy.probe("sender/FC2L", meaningz="3x4")  # call-arg
icy.probe("sender/FC2L", protocol="aquire")  # arg-type
icy.probe("sender/FC2L", seeds=[1.5])  # list-item
icy.probe("sender/FC2L", engine="fast")  # arg-type
icy.probe(5)  # arg-type
icy.sweep("sender/FC2L", representation=["soft", "gumbel"])  # list-item
icy.sweep("sender/FC2L", side="both")  # arg-type
icy.end_to_end("FC2L", "FC2L", preset="publishd")  # arg-type
icy.end_to_end("FC2L", "FC2L", split="random")  # call-arg
icy.reproduce("icy22/table3", rerun="all")  # arg-type
icy.reproduce("icy22/table3", protocol="acquire")  # call-arg
icy.s2b.evaluate("posdis", "binding", shot=2)  # call-arg
icy.s2b.GameSettings(view="both")  # arg-type
icy.s2b.BatchedRecall(compat="near")  # arg-type
icy.s2b.TextSettings(constrain="gramar")  # arg-type
icy.s2b.evaluate_text("scripted-yes", shot=2)  # call-arg
icy.train("probe", model="FC2L").language()  # attr-defined
"""


@pytest.mark.process
def test_mypy_rejects_wrong_options_and_accepts_right_ones(tmp_path: Path) -> None:
    """Libraries are left out, for speed: none of the options has a type of theirs."""
    for name, text in (("mypy.ini", CONFIG), ("right.py", RIGHT), ("wrong.py", WRONG)):
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = re.findall(r"^(\w+\.py):(\d+): error: .* \[([\w-]+)\]$", done.stdout, re.MULTILINE)
    comments = ((n, re.search("# (.+)", line)) for n, line in enumerate(WRONG.splitlines(), 1))
    wanted = [("wrong.py", str(n), comment[1]) for n, comment in comments if comment is not None]
    assert found == wanted, done.stdout + done.stderr
