"""EGG: text that its programs print, and the fields of its interactions in files of any format."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace

import numpy as np

from icy.core.errors import InvalidSettingError, quoted
from icy.languages.rule import Array, Container, unpacked
from icy.languages.values import values_of

from .files import File, Found
from .tables import LENGTHS, NO_ATTRIBUTES, messages_by_name

PROBABLY = 0.02  # largest distance of 8-bit numbers from a sum of 1
LENGTH_ERROR = 1e-3  # lengths may be sums of probabilities, such as 2.999999
CUT = "messages end at message_length"
RELAXED = "tokens are the largest entries of relaxed symbols (Gumbel-softmax)"
ENDS = "0 ends messages in EGG, and counts as a token here unless eos=0 (--eos 0) leaves it out"
UNHEARD = "0 ends messages in EGG, and eos=0 (--eos 0) leaves out the symbols after it, which receivers ignore"
NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)"
VECTOR = rf"{NUMBER}(?:[ ,]{NUMBER})*"
GAMES = {  # a line per game, by the program of EGG's zoo: what separates its parts, how often, and its form
    "external_game": (
        *(";", 3),
        rf"(?P<input>{VECTOR});(?P<message>{VECTOR});(?P<output>{NUMBER});(?P<label>{NUMBER})",
    ),
    "objects_game": (
        *(" -> ", 3),
        rf"(?P<input>{VECTOR}) -> (?P<candidates>{VECTOR}(?:; {VECTOR})*) -> (?P<message>{VECTOR}) -> "
        rf"(?P<output>{NUMBER}) \(label=(?P<label>{NUMBER})\)",
    ),
    "channel": (
        *(" -> ", 2),
        rf"input: (?P<input>{NUMBER}) -> message: (?P<message>{VECTOR}) -> output: (?P<output>{NUMBER})",
    ),
}
PYTHON = {"nan": "NaN", "inf": "Infinity", "None": "null", "True": "1", "False": "0"}  # in JSON


def read(file: File) -> Found | None:
    """Read the lines of games; if there are none, the last printed INPUTS, LABELS, MESSAGES and OUTPUTS.

    Raises:
        InvalidSettingError: a line of a game is damaged, or a table is.
    """
    lines = [(number, line.rstrip()) for number, line in file.lines]
    if {"INPUTS", "MESSAGES"} <= {line for _, line in lines}:
        return _of_tables(lines)
    for game, (mark, times, form) in GAMES.items():
        begin = next((i for i, (_, line) in enumerate(lines) if line.count(mark) == times), len(lines))
        if begin < len(lines) and re.fullmatch(form, lines[begin][1]):  # otherwise the line is the header of a table
            return _of_games(game, form, [(number, line) for number, line in lines[begin:] if mark in line])
    return None


def _of_games(game: str, form: str, lines: list[tuple[int, str]]) -> Found:
    columns: dict[str, list[object]] = {name: [] for name in re.compile(form).groupindex}
    for number, line in lines:
        if (match := re.fullmatch(form, line)) is None:
            raise InvalidSettingError(f"Line {number} does not have the form of EGG's {game}: {quoted(line)}.")
        for name, text in match.groupdict().items():
            vectors = [re.findall(NUMBER, vector) for vector in text.split(";")]
            numbers = [[int(n) if n.lstrip("+-").isdecimal() else float(n) for n in vector] for vector in vectors]
            columns[name].append(numbers if name == "candidates" else numbers[0])
    places = [number for number, _ in lines]
    return Found(columns, f"a log of EGG's {game}", ("input",), ("message",), places, "line")


def _of_tables(lines: list[tuple[int, str]]) -> Found:
    tables: dict[str, Container] = {}
    times = 0
    for (number, name), (_, text) in zip(lines, [*lines[1:], (0, "")], strict=True):
        if name not in ("INPUTS", "LABELS", "MESSAGES", "OUTPUTS"):
            continue
        if name == "INPUTS":
            tables, times = {}, times + 1
        try:
            tables[name.lower()] = json.loads(re.sub(r"\b(nan|inf|None|True|False)\b", lambda m: PYTHON[m[0]], text))
        except ValueError as error:
            raise InvalidSettingError(f"Line {number + 1} holds an incomplete list of {name} ({error}).") from error
    remarks = [f"the last of {times} validations"] if times > 1 else []
    return Found(tables, "validation events of EGG", ("inputs",), ("messages",), remarks=remarks)


# -- fields of interactions --------------------------------------------------------------------------------------------


def with_fields(found: Found, file: File) -> Found:
    """Read columns with the names of EGG's fields like the fields of an Interaction, in a file of any format.

    Relaxed symbols become tokens, and messages end at `message_length`. Other columns are returned unchanged.
    """
    fields = {name.rpartition(".")[2].lower() for name in found.columns}
    if not ("of EGG" in found.what or fields & {"sender_input", *NO_ATTRIBUTES}):
        return found
    columns, lengths, remarks = dict(found.columns), found.lengths, list(found.remarks)
    if "of EGG" not in found.what:  # an Interaction lacks its missing fields
        columns = {n: c for n, c in columns.items() if not isinstance(c, list) or any(e is not None for e in c)}
    for name in file.message_columns or found.messages or messages_by_name(list(columns)):
        if name not in columns:
            continue
        own = name.rpartition(".")[0]
        length = next((c for c in columns if c.rpartition(".")[0] == own and c.lower().endswith(LENGTHS)), None)
        symbols, relaxed = _discrete(columns[name])
        whole = symbols is not None and symbols.dtype.kind in "iu"
        if symbols is not None:
            columns[name], remarks = symbols, [*([RELAXED] if relaxed else []), *remarks]
        if length is not None and (symbols is None or whole):
            lengths = values_of(np.asarray(unpacked(columns[length], "Lengths")).ravel().tolist())
            fraction = any(isinstance(n, float) and LENGTH_ERROR < n % 1 < 1 - LENGTH_ERROR for n in lengths)
            remarks.append(f"{CUT}{' rounded down' if fraction else ''}")  # as EGG does
        elif symbols is not None and whole and symbols.ndim == 2:
            ended = np.logical_or.accumulate(symbols == 0, axis=1)
            unheard = (ended & (symbols != 0)).any()
            remarks += [UNHEARD] if unheard else [ENDS] if ended.size and ended[:, -1].all() else []
    return replace(found, columns=columns, lengths=lengths, remarks=remarks)


def _discrete(entries: Container) -> tuple[Array | None, bool]:
    """Return messages as tokens [N, S], and whether they were vectors of symbols, [N, V] or [N, S, V].

    Real-valued messages are returned unchanged; None for texts, missing values and messages that differ in length.
    """
    held = unpacked(entries, "Messages")
    if isinstance(held, list) and any(isinstance(row, list) for row in held):
        with suppress(ValueError):
            held = np.array(held)
    if not isinstance(held, np.ndarray) or held.dtype.kind not in "iuf":
        return None, False
    if held.ndim > 1 < held.shape[-1] and (held.dtype.kind == "f" or held.ndim == 3) and held.min() >= -PROBABLY:
        with np.errstate(invalid="ignore", over="ignore"):
            relaxed = bool(np.all(abs(held.sum(-1, dtype=float) - 1) < PROBABLY))
        if relaxed:
            return held.argmax(-1).reshape(len(held), -1), True
    if held.dtype.kind == "f" and held.ndim < 3 and np.all(held == np.floor(held)):
        held = held.astype(np.int64)
    return (held if held.ndim > 1 else held[:, None]), False
