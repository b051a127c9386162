"""Removes the thoughts of reasoning models from their answers.

A rule recognizes markers of thoughts: a name in brackets (`<think>`, `[THINK]`, `◁think▷`, `<|begin_of_thought|>`,
`&lt;think&gt;`) or the value of a tag's attribute (`<details type="reasoning">`) has a word for thinking. `SPECIAL`
lists markers of other forms.
"""

import re

WORD = (  # words for thinking, at the end of a word: antThinking, but not thinker
    r"(?:(?:think(?:ing|s)?|thoughts?|reason(?:ing|s)?|reflect(?:ions?|ing|s)?|analy[sz](?:is|es|e|ing)|"
    r"scratch[_ -]?pad|rationale|monologue|inner[_ -]?(?:voice|dialogue|speech)|plan(?:ning)?|critiques?|"
    r"deliberat(?:ions?|e|ing)|ponder(?:ing)?|contemplat(?:ions?|e|ing)|introspection|brainstorm(?:ing)?|"
    r"ruminat(?:ions?|e|ing)|cogitat(?:ions?|e|ing)|musings?|(?<![^\W\d_])cot)"
    r"(?:(?![^\W\d_])|(?-i:(?<=[a-z])(?=[A-Z])))|思考|思维|思維|推理|생각)"
)
NAME = re.compile(rf"(?=[\w▁.:-]*?{WORD})[\w▁.:-]*\w", re.IGNORECASE)
HAS_WORD = re.compile(WORD, re.IGNORECASE)
FRAME = re.compile(r"(?:begin|start|open|of|end|stop|close|finish)(?=[\W_▁]|$)|[\W_▁]+", re.IGNORECASE)
LAST = re.compile(r"(?:^|[\W_▁])(?:end|stop|close|finish)(?:[\W_▁]|$)", re.IGNORECASE)
OPENS = r"[<＜‹〈⟨«❮《]|&(?:amp;)?(?:lt|#0*60|#x0*3c);|\\u003c"
CLOSES = r"[>＞›〉⟩»❯》]|&(?:amp;)?(?:gt|#0*62|#x0*3e);|\\u003e"
TAG = (
    rf"(?:{OPENS}){{1,2}}\s*(?P<pipe>[|｜])?(?P<tag>[^<>＜＞‹›|｜]{{1,200}}?)[|｜]?\s*(?:{CLOSES}){{1,2}}|"
    r"(?P<mark>[\[［【◁{]){1,2}(?P<word>\s*/?\s*(?:(?:begin|start|end|stop) )?[\w▁.:-]{1,80}\s*)[\]］】▷}]{1,2}"
)
# Markers of other kinds: the opening and the closing one. Every channel except the final one is a thought.
SPECIAL = {
    "inner": (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    "unused": ("<unused94>", "<unused95>"),
    "gemma": (r"<\|channel>", r"<channel\|>"),
    "channel": (
        r"<\|channel\|>(?!\s*final\b)",
        r"<\|channel\|>\s*final\b(?:[^{}]{0,60}?<\|message\|>)?",
    ),
    "role": (
        rf"<\|[\w ]{{1,40}}\|>\s*{WORD}(?=\s*(?:\n|<\|))",
        r"<\|(?:im_start|start|start_header_id|role)\|>\s*(?:assistant|answer|final|response)\b(?:<\|end_header_id\|>)?",
    ),
    "fence": (rf"^[ \t]*(?:```|~~~)[ \t]*{WORD}[ \t]*$", r"^[ \t]*(?:```|~~~)[ \t]*$"),
    "latex": (rf"\\begin\{{\w*?{WORD}\}}", rf"\\end\{{\w*?{WORD}\}}"),
    "attribute_details": (
        rf"<details>\s*<summary>[^<>]{{0,80}}?{WORD}[^<>]{{0,80}}</summary>",
        r"</details\s*>",
    ),
    # The channels, if a server removed the special tokens, as in "analysisWe see ...assistantfinal{...}"
    "text": (r"""\A\s*(?-i:analysis|commentary)(?=(?-i:[\w{\["'<]))""", r"(?-i:assistantfinal)"),
}
MARK = re.compile(
    "|".join(f"(?P<o_{kind}>{opening})|(?P<c_{kind}>{closing})" for kind, (opening, closing) in SPECIAL.items())
    + f"|{TAG}",
    re.IGNORECASE | re.MULTILINE,
)
NEVER_FIRST = ("fence", "attribute")  # their closing markers have other uses

# A first line like "## Thinking", "**Thinking:**" or "Thinking..." opens a thought too. It ends at a line that says so,
# or that begins with "Answer".
HEADING = re.compile(
    rf"\A(?:_|[^\w{{])*(?:(?:my|the|internal|inner|deep|chain[ -]of|step[ -]by[ -]step)[ -]){{0,2}}{WORD}"
    r"(?:[ -](?:process|steps?|aloud|out loud|through|log|mode|for [\w. ]{1,20})|过程|過程)?"
    r"(?:(?P<dots>\W*(?:\.\.\.|…))|(?:_|[^\w\n{])*(?:\n|\Z)|(?P<inline>:?[)*_\]]+:?\s*|(?<=thinking)\s?:|(?<=thought)\s?:|：))",
    re.IGNORECASE,
)
HEADING_END = re.compile(
    rf"^[^\w\n]*(?:(?:done|finished|end of)[ -]{WORD}|{WORD}[ -](?:complete|done|finished|ended)|"
    r"(?:the |my )?(?:final )?(?:answer|response|output|decision|result|conclusion|solution)\b(?![\"']))[^\w\n{\[]*",
    re.IGNORECASE | re.MULTILINE,
)
LAST_OBJECT = re.compile(r"\{[^{}]*\}[\W_]*\Z")
LAST_LINE = re.compile(rf"(?:\A|\n)[^\S\n]*{LAST_OBJECT.pattern}")


def without_thoughts(text: str) -> str | None:
    """Return the text after the last closed thought; None if a thought is not closed.

    A thought ends at the closing marker of its own kind. A closing marker without an opening one ends a thought that
    the prompt opened. A thought that only a heading opens may also end at a JSON object alone at the end of the text.

    Example:
        >>> without_thoughts("<think>1 or 0?</think> 0"), without_thoughts("or 1?</think> 0"), without_thoughts("0")
        (' 0', ' 0', '0')
        >>> without_thoughts("<think>1 or 0?") is None, without_thoughts("Thinking...\\n1 or 0?") is None
        (True, True)
    """
    begins, thought = 0, ""
    for mark in MARK.finditer(text):
        opens, kind = _read(mark)
        if opens:
            thought = thought or kind
        elif kind and (thought == kind or (not thought and not kind.startswith(NEVER_FIRST))):
            thought, begins = "", mark.end()
    if thought:
        return None
    rest = text[begins:]
    heading = HEADING.match(rest)
    if heading is None:
        return rest
    ends = [end.end() for end in HEADING_END.finditer(rest, heading.end())]
    if ends or heading["dots"]:
        return rest[ends[-1] :] if ends else None
    last = (LAST_OBJECT if heading["inline"] else LAST_LINE).search(rest)
    return last and last[0]


def _read(mark: re.Match[str]) -> tuple[bool, str]:
    """Return whether a marker opens a thought, and its kind; "" for a bracket that is not a marker."""
    group = str(mark.lastgroup)
    if group[:2] in ("o_", "c_"):
        return group[0] == "o", group[2:]
    inside = (mark["tag"] or mark["word"]).replace("\\", "").strip(" \n!-")
    closes = inside.startswith("/")
    inside = inside.removeprefix("/").strip()
    is_whole = mark["pipe"] or mark["word"]  # the name may have spaces
    tag, _, attributes = (inside.replace(" ", "_"), "", "") if is_whole else inside.partition(" ")
    if inside.endswith("/"):  # a tag without content
        return False, ""
    if NAME.fullmatch(tag):
        family = "<" if mark["tag"] else mark["mark"]
        return not (closes or LAST.search(tag)), f"{family}:{FRAME.sub('', tag).lower()}"
    is_attribute = "=" in attributes and HAS_WORD.search(attributes) is not None
    return is_attribute, f"attribute_{tag.lower()}" if is_attribute or closes else ""


def open_thought(prompt: str) -> str:
    """Return the opening marker of a thought at the end of a prompt (in some chat templates), or ""."""
    end = prompt.rstrip()
    last = next((mark for mark in MARK.finditer(end) if mark.end() == len(end)), None)
    return last[0] if last and _read(last)[0] else ""
