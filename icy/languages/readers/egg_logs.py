"""Text that EGG's programs print: a line per game, and the tables of PrintValidationEvents."""

from __future__ import annotations

import json
import re

import numpy as np

from icy.core.errors import InvalidSettingError, quoted
from icy.core.text import counted, listed
from icy.languages.containers import Entries

from .egg import RELAXED, UNHEARD, discrete, has_tokens_after_end
from .found import File, Found

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
SCALARS = ("output", "label")
TABLES = ("INPUTS", "LABELS", "MESSAGES", "OUTPUTS")
PYTHON = {"nan": "NaN", "inf": "Infinity", "None": "null", "True": "1", "False": "0"}  # in JSON


def read(file: File) -> Found | None:
    """Read the lines of games; if there are none, the last printed INPUTS, LABELS, MESSAGES and OUTPUTS.

    Raises:
        InvalidSettingError: a line of a game is damaged, or tables do not fit.
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
    matches = [(number, re.fullmatch(form, line)) for number, line in lines]
    for (number, match), (_, line) in zip(matches, lines, strict=True):
        if match is None:
            raise InvalidSettingError(f"Line {number} does not have the form of EGG's {game}: {quoted(line)}.")
    columns = {name: [_entry(name, m[name], game) for _, m in matches if m] for name in re.compile(form).groupindex}
    places = [number for number, _ in lines]
    return Found(columns, f"a log of EGG's {game}", ("input",), ("message",), places, "line")


def _entry(name: str, text: str, game: str) -> object:
    if name == "candidates":
        return [_numbers(vector) for vector in text.split(";")]
    numbers = _numbers(text)
    return numbers[0] if name in SCALARS or (name, game) == ("input", "channel") else numbers


def _numbers(text: str) -> list[float | int]:
    return [int(t) if t.lstrip("+-").isdecimal() else float(t) for t in re.findall(NUMBER, text)]


def _of_tables(lines: list[tuple[int, str]]) -> Found:
    tables: dict[str, Entries] = {}
    times = 0
    for (number, name), (_, text) in zip(lines, [*lines[1:], (0, "")], strict=True):
        if name not in TABLES:
            continue
        if name == "INPUTS":
            tables, times = {}, times + 1
        try:
            tables[name.lower()] = json.loads(re.sub(r"\b(nan|inf|None|True|False)\b", lambda m: PYTHON[m[0]], text))
        except ValueError as error:
            raise InvalidSettingError(f"Line {number + 1} holds an incomplete list of {name} ({error}).") from error
    if absent := [name for name in ("inputs", "messages") if name not in tables]:
        raise InvalidSettingError(f"The last validation that EGG printed here has no list of {absent[0].upper()}.")
    lengths = {name: len(rows) for name, rows in tables.items()}
    if len(set(lengths.values())) > 1:
        sizes = listed([f"{counted(n, 'row')} of {name.upper()}" for name, n in lengths.items()])
        raise InvalidSettingError(f"The lists that EGG printed differ in length: {sizes}.")
    messages, relaxed = discrete(np.array(tables["messages"]))
    tables["messages"] = messages
    remarks = [RELAXED] if relaxed else []
    remarks += [UNHEARD] if has_tokens_after_end(messages) else []
    remarks += [f"the last of {times} validations"] if times > 1 else []
    return Found(tables, "validation events of EGG", ("inputs",), ("messages",), remarks=remarks)
