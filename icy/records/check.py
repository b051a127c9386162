"""Check records that are read from files: fields, types, key, and the inputs of computed numbers.

A record may be incomplete, written by an older or newer icy, by hand, or by somebody else. A record that fails a check
is left out, with a warning that names it. The other records are read as usual.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, cast, get_type_hints

import msgspec

from icy.core.checks import LARGEST_RATIO
from icy.core.errors import IcyError
from icy.core.files import is_inside
from icy.core.text import counted, in_a_line, listed
from icy.core.types import Options

from .kinds import kind_of, points_of
from .record import CROSSINGS, Record, as_json, checks_of, config_text, own_key, value_of

log = logging.getLogger(__name__)
LARGEST = 2**63  # limit of whole numbers in tables
RESULT_FIELDS = ("steps", "accuracy")  # fields that only a failure may lack
GROUPS = ("settings", "options")  # fields of a configuration that are tables
STEPS = "steps"  # in a configuration, the planned steps of a game; in a record, the steps made
NOT_REPEATED = {*GROUPS, STEPS}  # fields of a configuration that a record does not repeat
COUNTS = frozenset({"steps", "baseline_steps", "sender_steps", "receiver_steps", *CROSSINGS})  # of updates
SHARES = frozenset(name for name in Record.__annotations__ if name.endswith("accuracy"))
LONGEST = 40  # characters of a value in a sentence


def valid_records(items: Iterable[tuple[str, object]]) -> list[Record]:
    """Return the valid records; leave out the others, with a warning for each.

    Args:
        items: pairs (place, content). The place is for the warning; the content is JSON text or the decoded object.
    """
    good = []
    for where, content in items:
        try:
            good.append(checked(content))
        except ValueError as error:
            warn_left_out(where, error)
    return good


def warn_left_out(where: object, error: Exception) -> None:
    """Warn about a file or record that was left out."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    log.warning("%s is not a readable result and is left out: %s.", where, why)


def checked(content: object, key: str | None = None) -> Record:
    """Decode a record and check it.

    Args:
        content: JSON text, or the decoded object.
        key: required key, from the name of the file.

    Raises:
        ValueError: the content is not JSON or not a record. The text gives the reason, without a full stop.
    """
    try:
        if isinstance(content, str | bytes):
            record = msgspec.json.decode(content)  # rejects NaN, and text that cannot be encoded
        else:
            json.dumps(record := content, ensure_ascii=False, allow_nan=False).encode()  # rejects the same
        if (fault := next(_faults(record, key), None)) is not None:
            raise ValueError(fault)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)[:1].lower() + str(error)[1:]) from error
    except msgspec.DecodeError as error:  # not a ValueError before msgspec 0.21
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except UnicodeError as error:
        raise ValueError("it has text that is not valid Unicode") from error
    return cast(Record, record)


def config_fault(config: Options) -> str | None:
    """Return why a configuration cannot be stored in a record, without a full stop; None for valid configurations."""
    hints = get_type_hints(Record)
    try:
        values = as_json(config)
        if config_text(values) != config_text(config):
            raise TypeError
    except (TypeError, ValueError):
        return "it has a value that JSON cannot store; JSON stores text, finite numbers, lists, and tables by names"
    for name in (values.keys() & hints.keys()) - {STEPS}:
        try:
            msgspec.convert(values[name], hints[name])
        except msgspec.ValidationError as error:
            return f"{name} is {_quoted(values[name])} ({str(error)[:1].lower()}{str(error)[1:]})"
    return None


def _faults(record: Any, key: str | None) -> Iterator[str]:
    """Yield the faults of an object decoded from JSON. After the first fault, any exception may follow."""
    msgspec.convert(record, Record)  # raises if fields are missing or of other types
    if not record["failed"] and (missing := [name for name in RESULT_FIELDS if name not in record]):
        yield f"it has a result, but lacks {listed(missing)}"
    if key is not None and record["key"] != key:
        yield f"its key is {_quoted(record['key'])}, not the name of its file"
    if (own := own_key(record)) != record["key"]:
        yield f"its key is {_quoted(record['key'])}, but the key of its configuration and versions is {own}"
    yield from _wrong_config(record)
    yield from _wrong_parts(record)
    yield from _wrong_numbers(record)


def _wrong_config(record: Record) -> Iterator[str]:
    config, repeated = record["config"], dict(record)
    for name in GROUPS:
        if not isinstance(config.get(name, {}), dict):
            yield f"{name} in its configuration is {_quoted(config[name])}, not a table"
    for name in ("model", "grammar", "seed", *config):
        if name not in NOT_REPEATED and repeated.get(name) != config.get(name):
            yield f"{name} is {_quoted(repeated.get(name))}, and {_quoted(config.get(name))} in its configuration"
    try:
        checks_of(record)
    except (IcyError, TypeError) as error:
        yield f"its settings are not valid: {in_a_line(error).rstrip('.')}"


def _wrong_parts(record: Record) -> Iterator[str]:
    try:
        datetime.fromisoformat(record["finished"])
    except ValueError:
        yield f"finished is {_quoted(record['finished'])}, not a date and time"
    for place in (*record.get("files", ()), *filter(None, [record.get("language")])):
        if not is_inside(place):
            yield f"it names the file {_quoted(place)}, which is not in its folder"
    yield from _wrong_curve(record)


def _wrong_curve(record: Record) -> Iterator[str]:
    names, known = points_of(record), kind_of(record).curve
    if names != known[: len(names)]:  # an older version may have measured less
        yield f"the numbers of its curve are {listed(names)}, not {listed(known)}"
    for point in record.get("curve", ()):
        if not point or point[0] is None:
            yield "its curve has a point without a number of updates"
        elif len(point) != len(names):
            yield f"its curve has a point of {counted(len(point), 'number')}, not {listed(names)}"
        elif not 0 <= point[0] < LARGEST:
            yield f"its curve has a point at {_quoted(point[0])} updates"


def _wrong_numbers(record: Record) -> Iterator[str]:
    fields = cast("Mapping[str, Any]", record)
    for name in kind_of(record).measures:
        if not isinstance(fields.get(name), int | float | None):
            yield f"{name} is {_quoted(fields[name])}, not a number"
    for name, value in (*fields.items(), *record["parameters"].items()):
        if isinstance(value, int) and not -LARGEST <= value < LARGEST:
            yield f"{name} is larger than any number in a table"
        if name in COUNTS and value is not None and value < 0:
            yield f"{name} is {_quoted(value)}, less than 0"
        if name in SHARES and value is not None and not 0 <= value <= 1:
            yield f"{name} is {_quoted(value)}, not a share from 0 to 1"
    try:
        value = value_of(record)
        if record["measure"] == "ratio" and not math.isnan(value) and not 0 <= value <= LARGEST_RATIO:
            yield f"its ratio is {value:g}, not from 0 to {LARGEST_RATIO:g}"
    except (KeyError, TypeError, OverflowError) as error:
        yield f"its value cannot be computed ({type(error).__name__}: {in_a_line(error)})"


def _quoted(value: object) -> str:
    """Return a value as text; long texts are cut."""
    text = in_a_line(json.dumps(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
