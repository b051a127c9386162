"""`--compare` of `icy probe`."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

import icy
from icy.cli import main
from icy.records.long_table import to_long


def test_a_new_model_is_placed_from_the_command_line(tmp_path: Path) -> None:
    words = ["probe", "-m", "sender/FC1L", "-g", "perm", "--quick", "--compare", "atlas", "--workers", "1"]
    done = CliRunner().invoke(main, [*words, "-o", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    assert "sender/FC1L among" in done.stdout
    assert "Nearest in bias space" in done.stdout
    result = icy.ProbeResult.load(tmp_path / "r")
    theirs = icy.atlas().table
    both = to_long(result.records).merge(theirs, on="key", suffixes=("", "_atlas"))
    assert len(both) == 4  # filed under the same keys as in the atlas
    assert ((both["steps"] - both["steps_atlas"]).abs() <= 100).all()  # two checks, for another processor's last bits
