"""Command lines and sweep files that nobody should write, and what each must end in: a sentence or a result.

`{folder}` stands for a folder with the files below.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np

DIGITS = "9" * 5000
DEEP = "[" * 50_000
DRY = ("-m", "sender/FC1L", "-g", "perm", "--quick", "--dry-run", "-o", "{folder}/out")
SWEEP = ("sweep", *DRY)
PROBE = ("probe", *DRY)

# Done, refused in a sentence, or either: some machines have the memory.
DONE, REFUSED, EITHER = (0,), (1, 2), (0, 1, 2)

LINES: list[tuple[tuple[str, ...], tuple[int, ...]]] = [
    ((*PROBE, "--seeds", "²"), REFUSED),
    ((*PROBE, "--seeds", DIGITS), REFUSED),
    ((*PROBE, "--seeds", f"1-{DIGITS}"), REFUSED),
    ((*PROBE, "--seeds", "1-999999999999"), REFUSED),
    ((*PROBE, "--hidden", "²"), REFUSED),
    ((*PROBE, "--hidden", DIGITS), REFUSED),
    ((*PROBE, "--vocab-size", "²"), REFUSED),
    ((*PROBE, "--vocab-size", DIGITS), REFUSED),
    ((*PROBE, "--vocab-size", "2147483648"), EITHER),
    ((*PROBE, "--word-length", "2147483648"), EITHER),
    ((*PROBE, "--meanings", "²x3"), REFUSED),
    ((*PROBE, "--meanings", "999999999x999999999"), REFUSED),
    ((*PROBE, "--meanings", "62x2"), REFUSED),
    ((*PROBE, "--target", "nan"), REFUSED),
    ((*PROBE, "--target", "1e999"), REFUSED),
    ((*PROBE, "--cap", "nan"), REFUSED),
    ((*PROBE, "--protocol", "generalise", "--held-out", "nan"), REFUSED),
    ((*PROBE, "--set", "learning_rate=NaN"), REFUSED),
    ((*PROBE, "--set", "batch_size=99999999999999999999"), REFUSED),
    ((*PROBE, "--set", f"check_every={DIGITS}"), REFUSED),
    ((*PROBE, "--set", f"learning_rate={DIGITS[:400]}"), REFUSED),
    ((*PROBE, "--target", DIGITS[:400]), REFUSED),
    ((*PROBE, "--option", f"a={DEEP}"), REFUSED),
    ((*PROBE, "--workers", "99999999999999999999"), EITHER),
    (("probe", "-m", DIGITS, "-g", "perm", "--dry-run"), REFUSED),
    (("probe", "-m", "sender/FC1L", "-g", "+" * 3000, "--dry-run"), REFUSED),
    ((*SWEEP, "--shard", "²/3"), REFUSED),
    ((*SWEEP, "--shard", f"1/{DIGITS}"), REFUSED),
    ((*SWEEP, "--hidden", f"8,{DIGITS}"), REFUSED),
    ((*SWEEP, "--vocab-size", "4,²"), REFUSED),
    ((*SWEEP, "--word-length", "²"), REFUSED),
    ((*SWEEP, "--meanings", "3x4,²x4"), REFUSED),
    (("sweep", "{folder}/not-utf8.toml", "--dry-run"), REFUSED),
    (("metrics", "concat", "--meanings", "3x5", "-m", "cbm"), DONE),
    (("metrics", "concat", "--meanings", "3x5", "-m", "context_independence", "--seeds", "2"), DONE),
    (("metrics", "rot", "--meanings", "1x1", "-m", "all"), DONE),
    (("metrics", "{folder}/same.csv", "{folder}/same.csv", "-m", "cbm"), DONE),
    (("metrics", "{folder}/token.csv", "-m", "all"), DONE),
    (("metrics", "{folder}/token.csv", "-m", "bosdis", "--set", "constant=zero"), DONE),
    (("metrics", "{folder}/twenty-digits.csv", "-m", "all"), DONE),
    (("metrics", "{folder}/value.csv", "-m", "topsim", "--set", "meaning=euclidean"), REFUSED),
    (("metrics", "{folder}/digits.csv", "-m", "topsim"), DONE),
    (("metrics", "{folder}/empty.npz"), REFUSED),
    (("metrics", "{folder}/broken.npz"), REFUSED),
    (("metrics", "{folder}/no-shape.npz"), REFUSED),
    (("metrics", "{folder}/empty.pt"), REFUSED),
    (("metrics", "{folder}/broken.pt"), REFUSED),
    (("metrics", "{folder}/no-message.csv"), REFUSED),
    (("metrics", "concat", "--meanings", "2x3", "--pairs", "²"), REFUSED),
    (("metrics", "concat", "--meanings", "2x3", "--pairs", DIGITS), REFUSED),
    (("metrics", "concat", "--meanings", "2x3", "-m", "bosdis", "--set", "ignore=0"), DONE),
    (("metrics", "concat", "--meanings", "2x3", "-m", "cbm", "--set", "words=²"), REFUSED),
    (("metrics", "concat", "--meanings", "2x3", "--vocab-size", "2147483649"), REFUSED),
    (("metrics", "{folder}/same.csv", "--eos", DIGITS), EITHER),
    (("s2b", "eval", "--shots", "²"), REFUSED),
    (("s2b", "eval", "--samples", DIGITS), REFUSED),
    (("s2b", "play", "--values", "²-5"), REFUSED),
    (("s2b", "play", "--dimensions", "2147483648"), REFUSED),
    (("s2b", "stimuli", "--rows", "²"), REFUSED),
    ((*PROBE, "--seeds", "٣"), REFUSED),
    ((*PROBE, "--seeds", ""), REFUSED),
    ((*PROBE, "--seeds", "0"), REFUSED),
    ((*PROBE, "--seeds", "1000000000"), REFUSED),
    ((*PROBE, "--hidden", "0"), REFUSED),
    ((*PROBE, "--hidden", "1000000000"), EITHER),
    ((*PROBE, "--vocab-size", "1"), EITHER),
    ((*PROBE, "--word-length", "0"), REFUSED),
    ((*PROBE, "--meanings", ""), REFUSED),
    ((*PROBE, "--meanings", "0x3"), REFUSED),
    ((*PROBE, "--meanings", "1000000000x1"), EITHER),
    ((*PROBE, "--set", ""), REFUSED),
    ((*PROBE, "--set", "=1"), REFUSED),
    ((*PROBE, "--set", "learning_rate=-inf"), REFUSED),
    ((*PROBE, "--option", "="), REFUSED),
    ((*PROBE, "-m", ""), REFUSED),
    ((*PROBE, "-g", ""), REFUSED),
    ((*PROBE, "--plugin", "{folder}"), REFUSED),
    ((*PROBE, "--plugin", "{folder}/same.csv"), REFUSED),
    (("probe", "-m", "sender/FC1L", "-g", "perm", "--quick", "-o", "{folder}/same.csv"), REFUSED),
    (("probe", "-m", "sender/FC1L", "-g", "perm", "--quick", "-o", "/proc/none"), REFUSED),
    (("probe", "-m", "sender/FC1L", "-g", "perm", "--quick", "-o", "{folder}/" + "a" * 5000), REFUSED),
    (("table", "{folder}/" + "a" * 5000), REFUSED),
    (("table", ""), REFUSED),
    (("metrics", "{folder}"), REFUSED),
    (("sweep", "{folder}", "--dry-run"), REFUSED),
]

SWEEPS: dict[str, str | bytes] = {
    "model is a number": "model = 5",
    "model is a table": "model = {a = 1}",
    "grammar is a number": "grammar = 3",
    "grammar is a list of lists": 'grammar = [["perm"]]',
    "target is text": 'target = "high"',
    "workers is text": 'workers = "two"',
    "workers is a fraction": "workers = 1.5",
    "settings is a number": "settings = 5",
    "options is text": 'options = "x"',
    "out is a number": "out = 5",
    "out is a date": "out = 2026-01-01",
    "plugin is a number": "plugin = 5",
    "rerun is a list": "rerun = [1]",
    "quick is text": 'quick = "yes please"',
    "seeds is true": "seeds = true",
    "seeds is a digit of another kind": 'seeds = "²"',
    "seeds is a number of thousands of digits": f"seeds = {DIGITS}",
    "retries is text": 'retries = "x"',
    "shard is a number": "shard = 2",
    "kind is a list": 'kind = ["e2e"]',
    "a part is a number": "sweep = [5]",
    "a part has a wrong value": '[[sweep]]\nmodel = "sender/FC1L"\n\n[[sweep]]\nhidden = true',
    "brackets within brackets": f"model = {DEEP}",
    "not UTF-8": b'model = "\xff\xfe"',
    "empty": "",
    "model is a list of lists of lists": 'model = [[["sender/FC1L"]]]',
    "seeds is a date": "seeds = 2026-01-01",
    "seeds is infinite": "seeds = inf",
    "target is no number": "target = nan",
    "hidden is 0": "hidden = 0",
    "a key is empty": '"" = 1',
    "a key has a NUL": '"\\u0000" = 1',
    "plugin has a NUL": 'plugin = "a\\u0000b.py"',
    "grammar has a NUL": 'grammar = "perm\\u0000"',
    "model has a NUL": 'model = "sender/\\u0000"',
    "tables within tables": "[a.b.c.d]\ne = 1",
    "sweep is an empty list": "sweep = []",
    "settings within settings": "[settings.settings]\nbatch_size = 3",
    "an option is there twice": "word-length = 2\nword_length = 3",
}


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
    (folder / "not-utf8.toml").write_bytes(SWEEPS["not UTF-8"])  # type: ignore[arg-type]
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
