"""Habits of hard English, as patterns: constructions that readers who learned English late have to read twice.

A match may be right in its place. EXEMPT lists phrases that are right, each with the reason.
"""

from __future__ import annotations

import ast
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROSE = ("icy", "models", "grammars", "analysis", "benchmarks", "docs", "results", "setup.py", *ROOT.glob("*.md"))

HABITS = {
    "tell": r"\b(?:tells?|told|telling)\b",
    "is no X": r"\b(?:is|are|was|were) no (?!longer\b|more\b|fewer\b|less\b|such\b)\w+",
    "what": r"\bwhat (?:is|are|was|were|it|its|one|they|has|have|had|can|does|do|an?|the|no|comes|goes|lacks|remains|"
    r"follows|happens|stands|others?)\b",
    "that which": r"\bthat which\b|\bthose (?:who|that|which|of)\b",
    "beside": r"\bbeside\b",
    "go on": r"\b(?:go|goes|went|gone|going) on\b",
    "anew": r"\banew\b",
    "stands": r"\bstands? (?:in|for|beside|above|below|there|on)\b|\bstood\b",
    "whose": r"\bwhose\b|\bof which\b|\bin which case\b",
    "as far as": r"\bas far as\b|\bin so far\b",
    "such": r"\bsuch (?!as\b|that\b)\w+",
    "is had": r"\bputs? out\b|\bis had\b|\blies? to\b|\bcomes? to (?:be|have|mean|say|speak)\b",
    "nor": r"\bnor\b",
    "but": r"\b(?:all|none|nothing|any|every\w*) but\b|\bbut for\b|\bbut one\b",
    "learnt": r"\b(?:learnt|spelt|whilst|burnt|dreamt)\b",
    "is of": r"\bis (?:at|of)(?= (?:a|an|the|its|their|no|another|one)\b)",
}
PATTERN = re.compile("|".join(HABITS.values()), re.IGNORECASE)

# Phrases in help texts and errors that stay, each with the reason.
EXEMPT = {"but one is": "a conjunction: however, one is"}


def habits(text: str) -> list[str]:
    """Return the constructions in a text that are hard to read."""
    for phrase in EXEMPT:
        text = text.replace(phrase, "")
    return [match[0] for match in PATTERN.finditer(" ".join(text.split()))]


def texts() -> Iterator[Path]:
    """Yield the files with prose."""
    listed = subprocess.run(["git", "ls-files", "-z", *map(str, PROSE)], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.split("\0"):
        path = ROOT / name
        if path.suffix in (".py", ".md", ".html", ".txt") and path.is_file() and not path.is_symlink():
            yield path


def prose(path: Path) -> str:
    """Return the prose of a file: strings and comments of a program, text outside code blocks of a page."""
    if path.suffix != ".py":
        return re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    strings = [
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    ]
    with path.open("rb") as file:
        comments = [token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    return "\n".join([*strings, *comments])


def errors(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the texts of each error, warning and note of a program."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Raise) or re.fullmatch(r"(\w+\.)?(note|warn|warning|info|error|echo)", name):
            values = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            yield node.lineno, " ".join(value for value in values if isinstance(value, str))
