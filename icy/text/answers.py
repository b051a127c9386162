"""Reads the answers of text models: completions of chat servers, and the text after a model's thoughts."""

import contextlib
import json
import re
import time
from typing import Any

from .interface import CUT, Answer, Usage, is_count

# -- reads completions of chat servers: from the text of a response to an answer ---------------------------------------


TEXT_PARTS = (None, "text", "output_text")  # types of content parts that are text, not thoughts, images or tools
REASONS = {  # standard names of finish reasons, by servers' names
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length"), CUT),
}
EVENTS = re.compile(r"\s*(?:data|event|id|retry)?:")  # the start of a stream of server-sent events
HTML_TAG = re.compile(r"<(style|script)\b.*?</\1\s*>|<[^<>]*>", re.DOTALL | re.IGNORECASE)
DESCRIBING = ("id", "root", "parent", "canonical_slug", "digest", "sha", "revision", "version", "meta", "created")
NEW = 3600  # seconds for which a model is new
MOST_QUOTED = 300  # number of letters of a server's own words in an error


class NoChoice(ValueError):
    """A completion has an empty list of choices. Some servers send this for a prompt that they block."""


def read_completion(text: str) -> Answer:
    """Read the body of a response: a JSON object, or the events of a stream that was not requested.

    Separate fields for reasoning are not read. `logprobs` has all tokens that the server reports.

    Raises:
        NoChoice: the list of choices is empty.
        ValueError: the body is not a whole completion.
    """
    try:
        data = _assembled(text) if EVENTS.match(text) else json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(data, dict) or data.get("error"):
        raise ValueError("no completion")
    if data.get("choices") == []:
        raise NoChoice
    choice = _choice(data)
    finish = _finish(choice.get("finish_reason"))
    if finish == "error":
        raise ValueError("the server failed while it answered")
    model, fingerprint = (str(data[name]) if data.get(name) else None for name in ("model", "system_fingerprint"))
    return Answer(_content(choice), finish, _usage(data.get("usage")), model, fingerprint, _logprobs(choice))


def _choice(data: dict[str, Any]) -> dict[str, Any]:
    """Return the first choice of a completion or of an event.

    Raises:
        ValueError: a choice is missing.
    """
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        raise ValueError("no choice")
    return first


def _content(choice: dict[str, Any]) -> str:
    """Return the text of a choice, or "". Older servers send `text` in place of a message."""
    message = choice.get("message", choice.get("delta"))
    content = message.get("content") if isinstance(message, dict) else choice.get("text")
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") in TEXT_PARTS else part for part in parts]
    return "".join(str(one) for one in texts if isinstance(one, (str, int, float)) and not isinstance(one, bool))


def _finish(given: object) -> str | None:
    """Return the standard name of the reason why an answer ends; None if the server does not report it."""
    if not isinstance(given, str) or not given:
        return None
    name = given.lower()
    return REASONS.get(name, name if re.fullmatch(r"[\w.-]{1,40}", name, re.ASCII) else "other")


def _logprobs(choice: dict[str, Any]) -> dict[str, float]:
    """Return the log-probability of each alternative to the first token, without blanks; {} if not reported."""
    try:
        first = choice["logprobs"]["content"][0]["top_logprobs"]
        pairs = [(str(one["token"]).strip(), float(one["logprob"])) for one in first]
    except (LookupError, TypeError, ValueError, OverflowError):
        return {}
    return {token: max(value for name, value in pairs if name == token) for token, _ in pairs}


def _assembled(text: str) -> dict[str, Any]:
    """Join the events of a stream into one completion.

    Raises:
        ValueError: an event is not JSON or reports an error, or the stream ends early.
    """
    lines = [line.strip() for line in re.findall("(?m)^data:(.*)", re.sub("\r\n?", "\n", text))]
    ended = "[DONE]" in lines
    pieces: list[str] = []
    whole: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    for line in lines[: lines.index("[DONE]") if ended else None]:
        data = json.loads(line)
        if not isinstance(data, dict) or data.get("error"):
            raise ValueError("an event holds no piece of text")
        whole |= {name: fact for name, fact in data.items() if fact}
        with contextlib.suppress(ValueError):
            piece = _choice(data)
            if piece.get("index", 0) == 0:
                pieces.append(_content(piece))
                choice = {name: fact for name, fact in piece.items() if fact} | choice
    if not pieces or not (ended or choice.get("finish_reason")):
        raise ValueError("the stream ends early")
    return {**whole, "choices": [{**choice, "message": {"content": "".join(pieces)}}]}


def described(text: str, name: str) -> tuple[dict[str, object], list[str]]:
    """Read a server's list of models: the description of a model, {} if unknown, and the names of all models.

    The only model of a list is described whatever its name is, because some servers ignore the requested name.

    Args:
        text: the list, as JSON.
        name: name of the model.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}, []
    known = (data.get("data") or data.get("models")) if isinstance(data, dict) else data
    models = [one for one in known if isinstance(one, dict)] if isinstance(known, list) else []
    ids = [str(one.get("id") or one.get("name") or "") for one in models]
    same = [one for one, id_ in zip(models, ids, strict=True) if id_ in (name, f"{name}:latest")] or models
    facts = {field: same[0].get(field) for field in DESCRIBING} if len(same) == 1 else {}
    made = facts.get("created")
    if not is_count(made) or made > time.time() - NEW:  # some servers report the present time
        facts["created"] = None
    return {field: fact for field, fact in facts.items() if fact and fact != name}, list(filter(None, ids))


def _usage(usage: object) -> Usage | None:
    """Return the server's counts of tokens. Reasoning tokens count as written, even if listed separately."""
    if not isinstance(usage, dict):
        return None
    read, written, total = (usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    if not is_count(read) or not is_count(written):
        return None
    details = usage.get("completion_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    if is_count(total):
        written = max(written, total - read)
    if is_count(reasoning) and reasoning > written:
        written += reasoning
    return Usage(read, written)


def words_of(text: str) -> str:
    """Return a server's description of an error in one line, without HTML tags."""
    said = text
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(text)
        error = data.get("error", data) if isinstance(data, dict) else data
        said = str(error.get("message", error) if isinstance(error, dict) else error)
    if said.lstrip().startswith("<"):
        said = HTML_TAG.sub(" ", said[:10_000])
    line = " ".join(said.split())
    return line if len(line) <= MOST_QUOTED else f"{line[: MOST_QUOTED - 3]}..."


# -- removes the thoughts of reasoning models from their answers -------------------------------------------------------

# A rule recognizes markers of thoughts: a name in brackets (`<think>`, `[THINK]`, `◁think▷`, `<|begin_of_thought|>`,
# `&lt;think&gt;`) or the value of a tag's attribute (`<details type="reasoning">`) has a word for thinking. `SPECIAL`
# lists markers of other forms.


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
