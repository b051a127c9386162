"""Division of texts into tokens, and of lists that are written as texts."""

from __future__ import annotations

import logging
import re
import shlex
import unicodedata
from collections.abc import Sequence

from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import listed

from .rule import WAYS, Rule

log = logging.getLogger(__name__)
SEPARATORS = ",;|/-_.:"  # one of them may separate the tokens of a message
PLAIN_SEPARATORS = ",;|"  # never tokens themselves
BRACKETED = re.compile(r"(?:\w+\()?\s*c?[\[(](.*?)[\])]\s*(?:,[^\[\]()]*)?\)?", re.DOTALL)
BRACED = re.compile(r"\{.*\}", re.DOTALL)
WRAPPED = re.compile(r"\b[a-zA-Z][\w.]*\(([^(),]*)(?:,[^()]*)?\)")  # a scalar, such as np.int64(3), tensor(3)
ENTRY = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^\s,;'\"]+)")  # entry of a list in text: with quotes, or without
DECIMAL = re.compile(r"-?(\d+\.\d*|\.\d+|\d+(\.\d*)?[eE][+-]?\d+)")
JOINER = "\u200d"  # joins letters into one: emoji, or letters of Indian scripts
SKIN_TONES = tuple(map(chr, range(0x1F3FB, 0x1F400)))  # skin tones modify the emoji before them
LACKING = ("", "...", "None", "nan", "NaN", "null", "<NA>")  # entries of a list that is cut off or lacks a value


def split(texts: Sequence[str], rule: Rule) -> tuple[list[list[str]], str]:
    """Split texts into tokens; also return how tokens were written, in words.

    Raises:
        InvalidSettingError: the texts can be read in two ways, or do not fit the requested way.
    """
    texts = [unicodedata.normalize("NFC", text) for text in texts]  # one letter for each é in any encoding
    how = rule.tokens.lower() if rule.tokens.lower() in WAYS else rule.tokens
    if how == "letters":
        return [letters(text) for text in texts], "a letter each"
    if how == "spaces":
        return [text.split() for text in texts], "tokens between spaces"
    if how == "whole":
        return [[text.strip()] for text in texts], "a single token"
    if how != "auto":
        return _at(how, texts, rule), f"tokens between '{how}'"
    if (lists := listed_texts(texts, "message", rule)) is not None:
        return lists, "lists of tokens"
    spaced = any(len(text.split()) > 1 for text in texts)
    if mark := _separator(texts, spaced):
        return _at(mark, texts, rule), f"tokens between '{mark}'"
    if spaced:
        _require_one_spelling(texts, rule)
        return [text.split() for text in texts], "tokens between spaces"
    _require_letters(texts)
    rows = [letters(text) for text in texts]
    return rows, "a letter each" if any(len(row) > 1 for row in rows) else "a single token"


def letters(text: str) -> list[str]:
    """Return the letters of a text without spaces; marks and joiners belong to the letter before them.

    Example:
        >>> letters("a \u092c\u093f"), len(letters("\U0001f44d\U0001f3fd"))
        (['a', 'बि'], 1)
    """
    if text.isascii():
        return [c for c in text if not c.isspace()]
    found: list[str] = []
    for c in text:
        joined = unicodedata.category(c).startswith("M") or c == JOINER or c in SKIN_TONES
        if found and (joined or found[-1].endswith(JOINER)):
            found[-1] += c
        elif not c.isspace():
            found.append(c)
    return found


def listed_texts(texts: Sequence[str], what: str, rule: Rule) -> list[list[str]] | None:
    """Split each text in brackets, such as "[10, 1]", into its entries; return None if no text is in brackets.

    Args:
        texts: texts of all rows.
        what: "message" or "meaning", for errors.
        rule: rule that names the row in errors, by its `place`.

    Raises:
        InvalidSettingError: some texts are in brackets and others are not, all are sets or dictionaries, or a list
            holds lists or lacks a value.
    """
    plain = [text.strip() for text in texts]
    if plain and all(map(BRACED.fullmatch, plain)):
        raise InvalidSettingError(f"The {what} {quoted(texts[0])} is a set or dictionary, which has no order.")
    inside = [BRACKETED.fullmatch(text) for text in plain]
    found = [match is not None for match in inside]
    if not any(found):
        return None
    if not all(found):
        one, other = (f"{quoted(texts[row])} in {rule.place(row)}" for row in (found.index(True), found.index(False)))
        raise InvalidSettingError(f"The {what} {one} is in brackets, but {other} is not; write all in the same way.")
    return [_entries(match[1]) for match in inside if match is not None]


def _entries(text: str) -> list[str]:
    """Return the entries of a list without its brackets: "10, 1", "10 1" or "'a', 'b'"."""
    text = WRAPPED.sub(r"\1", text).strip()
    if re.search(r"(^|[\s,;])['\"]", text):
        found = ENTRY.findall(text)
        entries, bare = ["".join(parts) for parts in found], [last for *_, last in found if last]
    else:
        cut = [part.strip() for part in re.split("[,;]", text.strip(" ,;"))]
        entries = bare = cut if len(cut) > 1 else text.strip(",;").split()
    for entry in bare:
        if re.search(r"[\[\](){}]", entry):
            raise InvalidSettingError(f"'{text}' is a list of lists, but a message or meaning must be one list.")
        if entry in LACKING:
            raise InvalidSettingError(f"The list '{text}' is cut off or lacks a value; write whole lists.")
    return [whole_text(entry) for entry in entries]


def whole_text(text: str) -> str:
    """Remove the decimal point of a whole number, as in "1."; return other texts unchanged."""
    number = float(text) if DECIMAL.fullmatch(text) else 0.5
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else text


def _separator(texts: Sequence[str], spaced: bool) -> str:
    """Return the mark that separates the tokens of all messages; "" if there is none."""
    marks = sorted({c for text in texts for c in text if c in (PLAIN_SEPARATORS if spaced else SEPARATORS)})
    parts = [part.strip() for text in texts for part in text.split(marks[0])] if len(marks) == 1 else []
    if parts and all(parts):
        mark, first = marks[0], next(text for text in texts if marks[0] in text)
        if spaced and all(len(part.split()) == 1 for part in parts):
            return mark
        lacking = [text for text in texts if len(text.strip()) > 1 and mark not in text]
        numeric = all(re.fullmatch("[0-9]+", text.strip()) for text in lacking)
        if not spaced and mark == "." and all(DECIMAL.fullmatch(text) for text in texts):
            if 1 in (len({text.partition(".")[side] for text in texts}) for side in (0, 2)):
                raise _ambiguous(first, ("the tokens before and after the point", mark), ("the number", "whole"))
        elif not spaced and 2 * len(lacking) > len(texts) and not numeric:
            tokens = f"the tokens between {quoted(mark)}, which most messages do not have"
            raise _ambiguous(first, (tokens, mark), (f"letters, and {quoted(mark)} is a letter", "letters"))
        if not spaced:
            return mark
    for mark in filter(PLAIN_SEPARATORS.__contains__, marks):
        first = next(text for text in texts if mark in text)
        tokens = f"the tokens {listed([quoted(part.strip()) for part in first.split(mark)])}"
        whole = ("words", "spaces") if spaced else ("letters", "letters")
        raise _ambiguous(first, (tokens, mark), (f"{whole[0]} with {quoted(mark)} in them", whole[1]))
    return ""


def _ambiguous(text: str, *readings: tuple[str, str]) -> InvalidSettingError:
    """Return an error for a message that can be read in two ways, each with its value of the option `tokens`."""
    ways = [f'as {reading} (tokens="{way}", or --tokens {shlex.quote(way)})' for reading, way in readings]
    return InvalidSettingError(f"The message {quoted(text)} can be read in two ways: {', or '.join(ways)}.")


def _at(mark: str, texts: Sequence[str], rule: Rule) -> list[list[str]]:
    if not any(mark in text for text in texts):
        raise InvalidSettingError(
            f"The separator {quoted(mark)} is in no message; set tokens (--tokens) to {', '.join(WAYS)}, or to a "
            "separator of the messages."
        )
    rows = [[part.strip() for part in text.split(mark)] for text in texts]
    for place, row in enumerate(rows):
        if not all(row):
            raise InvalidSettingError(
                f"The message {quoted(texts[place])} in {rule.place(place)} is empty between two '{mark}' or at its "
                f"end; {quoted(mark)} separates tokens."
            )
    return rows


def _require_one_spelling(texts: Sequence[str], rule: Rule) -> None:
    """Raise an error if only some messages have spaces between tokens; only warn if the others are numbers."""
    spaced = [row for row, text in enumerate(texts) if len(text.split()) > 1]
    plain = [row for row, text in enumerate(texts) if len(text.split()) == 1 < len(text)]
    tokens = {token for row in spaced for token in texts[row].split()}
    if not plain or any(len(token) > 1 for token in tokens):
        return  # tokens of several letters may be alone in a message
    one, other = (f"{quoted(texts[row])} in {rule.place(row)}" for row in (spaced[0], plain[0]))
    met = f"The message {one} has spaces between its tokens, but {other} has none"
    alone = texts[plain[0]]
    if not all(re.fullmatch("[0-9]+", token) for token in (*tokens, alone)):
        raise InvalidSettingError(f"{met}; write all messages in the same way.")
    log.warning("%s: it was read as a single token, the number %s.", met, alone)


def _require_letters(texts: Sequence[str]) -> None:
    """Raise an error if texts of several letters without spaces may also be single tokens."""
    longer = next((text for text in texts if len(letters(text)) > 1), None)
    if longer is None:
        return
    one_length = len({len(letters(text)) for text in texts}) == 1
    if all(re.fullmatch("-?[0-9]+", text) for text in texts):
        clear = one_length and any(text[0] == "0" for text in texts)
    else:
        clear = one_length or 2 * len(set(texts)) > len(texts)
    if not clear:
        tokens = f"the tokens {listed([*map(quoted, letters(longer))])}"
        raise _ambiguous(longer, (tokens, "letters"), (f"the single token {quoted(longer)}", "whole"))
