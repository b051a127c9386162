"""Completion in bash."""

from __future__ import annotations

import pytest

from tests.cli.helpers import run


@pytest.mark.parametrize(
    ("line", "breaks", "expected"),
    [
        ("icy probe --model HierZero:G", ":=", ["GRU"]),
        ("icy probe --model HierZero:G", "=", ["HierZero:GRU"]),
        ("icy probe --model=hierzero:g", ":=", ["GRU"]),
        ("icy probe -m sender/FC1", ":=", ["sender/FC1L"]),
        ("icy probe -m X -g rot+pe", ":=", ["rot+perm"]),
        ("icy probe --protocol ", ":=", ["budget", "acquire", "generalise"]),
        ("icy show shu", ":=", ["shuf", "shufdet"]),
        ("icy list pre", ":=", ["presets"]),
        ("icy s2b text --model scripted-o", ":=", ["scripted-oracle"]),
        ("icy do", ":=", ["doctor"]),
    ],
)
def test_bash_completes_names(line: str, breaks: str, expected: list[str]) -> None:
    environment = {"_ICY_COMPLETE": "bash_complete", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    result = run(env={**environment, "COMP_BREAKS": breaks, "COMP_WORDS": "", "COMP_CWORD": "0"})
    assert result.stdout.split() == [f"plain,{word}" for word in expected]


def test_the_bash_script_hands_over_the_line() -> None:
    assert 'COMP_LINE="$COMP_LINE"' in run(env={"_ICY_COMPLETE": "bash_source"}).stdout
