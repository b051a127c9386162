"""Code, commands, links and anchors of README, the guides and the documentation pages, each with its page and line."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import click

import icy
from icy.cli import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GUIDES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\S+/bin/)?(icy (?:.*\\\n)*.+)$", re.MULTILINE)

Items = Iterator[tuple[str, str]]
"""Pairs of a place ("docs/cli.md:12") and a text."""


def _is_page(path: Path) -> bool:
    folder, generated = path.relative_to(DOCS).parts[0], path.parent.name == "benchmarks" and path.name != "index.md"
    return not path.name.startswith("_") and not folder.startswith(("_build", "_generated")) and not generated


PAGES = (*GUIDES, *sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md") if _is_page(path)))


@cache
def text(page: str) -> str:
    """Return the text of a file, which is named relative to the root of the project."""
    return (ROOT / page).read_text(encoding="utf-8")


def _find(pattern: re.Pattern[str], page: str, content: str) -> Iterator[tuple[str, re.Match[str]]]:
    for match in pattern.finditer(content):
        yield f"{page}:{content.count(chr(10), 0, match.start()) + 1}", match


@cache
def prose(page: str) -> str:
    """Return a page without its fenced blocks except includes. Line numbers stay as they are."""
    return FENCE.sub(
        lambda match: match[0] if match[2].startswith("{include}") else "\n" * match[0].count("\n"), text(page)
    )


def fenced(page: str, language: str) -> Items:
    """Yield the fenced blocks in a language, or "" for blocks without a language."""
    for place, match in _find(FENCE, page, text(page)):
        if match[2].strip() == language:
            yield place, dedent(match[3])


def code(page: str, language: str = "python") -> list[str]:
    """Return the fenced blocks in a language without their places."""
    return [block for _, block in fenced(page, language)]


def sections(page: str) -> list[str]:
    """Return the headings of a page without backticks."""
    return [heading.replace("`", "") for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)]


def generated_parts(page: str) -> Items:
    """Yield the parts that a page has generated: each is a name and its arguments."""
    for place, match in _find(re.compile(r"^ *```\{generated\} (.+)$", re.MULTILINE), page, text(page)):
        yield place, match[1]


# -- commands ----------------------------------------------------------------------------------------------------------


def shell_commands(page: str, *languages: str) -> Items:
    """Yield the icy commands of fenced blocks, with continued lines joined."""
    for language in languages:
        for place, block in fenced(page, language):
            name, _, line = place.rpartition(":")
            for match in COMMAND.finditer(block):
                below = block.count("\n", 0, match.start()) + 1
                yield f"{name}:{int(line) + below}", re.sub(r"\\\n *", " ", match[1])


def commands(page: str) -> Items:
    """Yield the icy commands of a page, from its blocks and between backticks."""
    yield from shell_commands(page, "sh", "")
    for place, match in _find(re.compile(r"`(icy [a-z][^`\n]*)`"), page, prose(page)):
        yield place, match[1]


def problem_of_command(line: str) -> str:
    """Return why a command cannot exist (no command or option of that name), or ""."""
    words = shlex.split(line, comments=True)[1:]
    command: click.Command | None = main
    context = click.Context(main)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.get_command(context, words[0])
        if command is None:
            return f"there is no command {words[0]!r}"
        words = words[1:]
    assert command is not None
    known = {flag for p in command.params if isinstance(p, click.Option) for flag in (*p.opts, *p.secondary_opts)}
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    unknown = sorted(used - known - {"--help"})
    return f"there is no option {', '.join(unknown)}" if unknown else ""


# -- Python ------------------------------------------------------------------------------------------------------------


def problem_of_python(block: str) -> str:
    """Return why a block is not Python, or which call of icy does not fit the function's signature, or ""."""
    try:
        tree = ast.parse(block)
    except SyntaxError as error:
        return f"line {error.lineno} of the block: {error.msg}"
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function = _public(call.func)
        if function is not None:
            try:
                names = {word.arg: None for word in call.keywords if word.arg}
                inspect.signature(function).bind(*[None] * len(call.args), **names)
            except TypeError as error:
                return f"line {call.lineno} of the block: {ast.unparse(call.func)}: {error}"
    return ""


def _public(node: ast.expr) -> Any:
    """Return the object that a dotted name stands for if it begins with icy or metrics, else None."""
    if isinstance(node, ast.Name):
        return {"icy": icy, "metrics": icy.metrics}.get(node.id)
    owner = _public(node.value) if isinstance(node, ast.Attribute) else None
    return None if owner is None or inspect.isclass(owner) else getattr(owner, node.attr)  # type: ignore[attr-defined]


# -- links -------------------------------------------------------------------------------------------------------------


@cache
def anchors(page: str) -> frozenset[str]:
    """Return the anchors of a page: its headings, as GitHub and MyST name them, and its own targets."""
    heads = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in sections(page)}
    return frozenset(heads | set(re.findall(r"^\((\w+)\)=$", text(page), re.MULTILINE)))


def links(page: str) -> Items:
    """Yield the targets of the links and pictures of a page."""
    for place, match in _find(re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\""), page, prose(page)):
        yield place, match[1] or match[2]


def problem_of_link(page: str, target: str) -> str:
    """Return why a link of a page leads nowhere, or ""."""
    if target.startswith("http"):
        return ""
    path, _, anchor = target.partition("#")
    file = ((ROOT / page).parent / path).resolve() if path else ROOT / page
    if not file.exists():
        return "there is no such file"
    if anchor and file.suffix == ".md" and anchor not in anchors(file.relative_to(ROOT.resolve()).as_posix()):
        return "there is no such anchor"
    return ""
