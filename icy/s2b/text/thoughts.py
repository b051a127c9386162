"""Removes the thoughts of reasoning models from their answers."""

import re
from collections.abc import Iterator

TAGS = (
    "think", "thinking", "thinking_process", "thought", "thoughts", "thought_process", "reason", "reasoning", "reflect",
    "reflection", "analysis", "scratchpad", "rationale", "chain_of_thought", "cot", "inner_monologue", "inner_thoughts",
    "monologue",
)  # fmt: skip
WORDS = r"(?:think|thinking|thought|thoughts|reasoning)"
NAMESPACE = r"(?:\w+:)?"  # as in <seed:think>


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield the patterns of the opening and the closing marker, for each kind of thought."""
    for first, last in ((r"(?:begin|start)_(?:of_)?{}", r"end_(?:of_)?{}"), (r"{}_(?:begin|start)", r"{}_end")):
        yield rf"<\|?{first.format(WORDS)}\|?>", rf"<\|?{last.format(WORDS)}\|?>"
    for tag in TAGS:
        name = NAMESPACE + tag.replace("_", "[_-]")
        yield (
            rf"<\s*{name}(?:\s[^<>]*)?(?<!/)>|\[{name}\]|◁{name}▷|<\|{name}\|>",
            rf"<\s*/\s*{name}\s*>|\[/{name}\]|◁/{name}▷|<\|/{name}\|>",
        )
    yield r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"
    yield "<unused94>", "<unused95>"
    yield r"<\|channel>", r"<channel\|>"
    final = r"<\|channel\|>\s*final\b(?:[^{}]{0,60}?<\|message\|>)?"  # every other channel is a thought
    yield r"<\|channel\|>(?!\s*final\b)", final


# The same channels, if a server removed the special tokens, as in "analysisWe see ...assistantfinal{...}"
CHANNELS = r"""(?-i:(?P<o>\A\s*(?:analysis|commentary)(?=[\w{\["'<]))|(?P<c>assistantfinal))"""
MARK = re.compile(
    r"(?=[<\[◁])(?:"
    + "|".join(f"(?P<o{i}>{opening})|(?P<c{i}>{closing})" for i, (opening, closing) in enumerate(_pairs()))
    + f")|{CHANNELS}",
    re.IGNORECASE,
)


def without_thoughts(text: str) -> str | None:
    """Return the text after the last closed thought; None if a thought is not closed.

    A thought ends at the closing marker of its own kind. A closing marker without an opening one ends a thought that
    the prompt opened.

    Example:
        >>> without_thoughts("<think>1 or 0?</think> 0"), without_thoughts("or 1?</think> 0"), without_thoughts("0")
        (' 0', ' 0', '0')
        >>> without_thoughts("<think>1 or 0?") is None
        True
    """
    begins, thought = 0, None
    for mark in MARK.finditer(text):
        opens, kind = _read(mark)
        if opens:
            thought = kind if thought is None else thought
        elif thought in (None, kind):
            thought, begins = None, mark.end()
    return text[begins:] if thought is None else None


def _read(mark: re.Match[str]) -> tuple[bool, str]:
    """Return whether a marker opens a thought, and its kind."""
    group = str(mark.lastgroup)
    return group[0] == "o", group[1:]


def open_thought(prompt: str) -> str:
    """Return the opening marker of a thought at the end of a prompt (in some chat templates), or ""."""
    end = prompt.rstrip()
    last = next((mark for mark in MARK.finditer(end) if mark.end() == len(end)), None)
    return last[0] if last and _read(last)[0] else ""
