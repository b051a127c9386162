"""Read files of sweeps and searches, in TOML or YAML, and check their values against the types of the options."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from icy.config.requests import RunRequest
from icy.config.requests import names as names_of
from icy.core.entry import JOB
from icy.core.errors import InvalidSettingError, StoreError, quoted, unknown
from icy.core.fields import current_names
from icy.core.registry import registry
from icy.core.text import listed, several
from icy.core.types import Choices, Fields
from icy.experiments.requests import SearchRequest, SweepRequest
from icy.records.kinds import job_kind

log = logging.getLogger(__name__)
# Names of options of the command, and the fields that they set. Each request has the old names of its fields.
OPTIONS = {"set": "settings", "from": "initial_results", "option": "options"}
PARTS = "sweep"  # the name of the parts in a file: [[sweep]]
SUFFIXES = (".toml", ".yaml", ".yml")
SCALARS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
SEVERAL = {int: "whole numbers", float: "numbers", bool: "true and false", str: "texts"}


def read_sweep(file: str | Path) -> Choices:
    """Return the arguments in a file, in TOML or YAML by its suffix. Parts of the sweep are under [[sweep]].

    Raises:
        StoreError: the file cannot be read.
        InvalidSettingError: the format is invalid or has another suffix, or a value does not have the type of its
            option; the message names the option and the line.
    """
    path = Path(file)
    text, options = _text_and_options(path, "sweep")
    parts = options.pop(PARTS, options.pop("parts", ()))
    if not isinstance(parts, (list, tuple)) or not all(map(_is_table, parts)):
        raise InvalidSettingError(
            f"The parts of a sweep must be tables: each under [[{PARTS}]] in TOML, or a list under {PARTS}: in YAML."
        )
    kinds = [part.get("kind", options.get("kind", SweepRequest.kind)) for part in parts]
    of_whole = {name: found for kind in kinds for name, found in _types(kind).items()} | _types_of(SweepRequest)
    tables = [(None, options, of_whole), *((i, part, _types(kinds[i])) for i, part in enumerate(parts))]
    for place, table, types in tables:
        _check(table, types, lambda name, place=place: _where(path, text, place, name))  # type: ignore[misc]
    _warn_of_plugins("sweep", path, options.get("plugin", ()))
    return by_field(options) | ({"parts": tuple(map(by_field, parts))} if parts else {})


def read_search(file: str | Path) -> Choices:
    """Return the arguments in the file of a search, in TOML or YAML by its suffix. Errors as for `read_sweep`."""
    path = Path(file)
    text, options = _text_and_options(path, "search")
    types = _types_of(SearchRequest)
    known = names_of(SearchRequest)
    for name in options:
        if _field(name) not in {*known, *SearchRequest.old_names}:
            raise unknown("option of a search", name, known)
    _check(options, types, lambda name: _where(path, text, None, name))
    _warn_of_plugins("search", path, options.get("plugin", ()))
    return current_names(SearchRequest, by_field(options))


def _text_and_options(path: Path, what: str) -> tuple[str, Any]:
    text = _text_of(path, what)
    options = _parsed(text, path)
    if not _is_table(options):
        raise InvalidSettingError(f"{path} must hold names and values of options.")
    return text, options


def _warn_of_plugins(what: str, file: Path, names: object) -> None:
    """Warn of the plug-ins of a file before their import, which runs their code, also with `--dry-run`."""
    if plugins := several(names):
        log.warning("The %s %s runs the code of plug-ins: %s.", what, file, listed([*map(str, plugins)]))


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def _field(name: str) -> str:
    """Return the field of the request for a name in a file: the name of a field or of an option of the command."""
    return OPTIONS.get(name, name.replace("-", "_"))


def by_field(options: Fields) -> Choices:
    """Return options by the names of their fields."""
    return {_field(name): value for name, value in options.items()}


def _text_of(path: Path, what: str) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidSettingError(f"A {what} is a .toml, .yaml or .yml file, not '{path}'.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StoreError(f"The {what} '{path}' cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InvalidSettingError(f"{path} is not text in UTF-8: byte {error.start} is invalid.") from error


def _parsed(text: str, path: Path) -> Any:
    try:
        return tomllib.loads(text) if path.suffix.lower() == ".toml" else _of_yaml(text)
    except InvalidSettingError:
        raise
    except (ValueError, RecursionError) as error:  # RecursionError from deeply nested brackets
        language = "TOML" if path.suffix.lower() == ".toml" else "YAML"
        raise InvalidSettingError(f"{path} is not valid {language}: {error}.") from error


def _of_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise InvalidSettingError("YAML needs the package pyyaml: pip install pyyaml; or use TOML.") from error
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ValueError(f"{error.problem or error.context}{line}") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error).partition("\n")[0]) from error


# -- types -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InFile:
    """Type of the value of an option in a file.

    Attributes:
        scalars: types of a single value.
        items: types of the values of a list.
        table: whether it may be a table of names and values.
    """

    scalars: frozenset[object] = frozenset()
    items: frozenset[object] = frozenset()
    table: bool = False

    def __or__(self, other: InFile) -> InFile:
        return InFile(self.scalars | other.scalars, self.items | other.items, self.table or other.table)

    def accepts(self, value: object) -> bool:
        """Return whether a value of a file has this type. Neither true nor text counts as a number."""
        known = [*self.scalars, *([dict[str, Any]] if self.table else [])]
        known += [list[Union[tuple(self.items)]]] if self.items else []  # type: ignore[misc]  # noqa: UP007
        try:
            msgspec.convert(value, Union[tuple(known)])  # type: ignore[call-overload]  # noqa: UP007
        except msgspec.ValidationError:
            return False
        return True

    def __str__(self) -> str:
        words = [word for kind, word in SCALARS.items() if kind in self.scalars]
        words += [f"a list of {listed([w for k, w in SEVERAL.items() if k in self.items], 'or')}"] if self.items else []
        return listed([*words, *(["a table"] if self.table else [])], "or")


def _in_file(hint: Any) -> InFile | None:
    """Return the type in a file for a type hint; None if any value is allowed.

    A sequence becomes a list, a path becomes text, and a mapping becomes a table. A literal becomes text; the request
    checks this text later and suggests the most similar name. Types that exist only in Python, such as a space of
    meanings, are left out.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint in (str, int, float, bool, NoneType):
        return InFile(frozenset({hint}))
    if origin is Literal or hint is Path:
        return InFile(frozenset({str}))
    if origin in (Union, UnionType):
        known = [found for one in inner if (found := _in_file(one)) is not None]
        may_be_text = any(str in one.scalars for one in known)  # then a file can name what only Python code can make
        return reduce(or_, known, InFile()) if len(known) == len(inner) or may_be_text else None
    if origin in (Mapping, dict):
        return InFile(table=True)
    items = _in_file(inner[0]) if origin in (Iterable, Sequence, list) else None
    return InFile(items=items.scalars) if items is not None and items.scalars else None


def _types(kind: Any) -> dict[str, InFile]:
    """Return the types of the options of a kind of job; of all kinds, if a plug-in has yet to register the kind."""
    known = isinstance(kind, str) and registry.find(JOB, kind) is not None
    request: type[RunRequest] = job_kind(kind).request_class() if known else RunRequest
    return _types_of(SweepRequest if issubclass(SweepRequest, request) and request is not RunRequest else request)


def _types_of(request: type[RunRequest]) -> dict[str, InFile]:
    try:
        hints = get_type_hints(request)
    except NameError:  # a plug-in imports its types only for type checkers
        return {}
    types = {field.name: _in_file(hints[field.name]) for field in fields(request)}
    known = {name: _along(one) if name in request.axes else one for name, one in types.items() if one is not None}
    return known | {old: known[name] for old, name in request.old_names.items() if name in known}


def _along(value: InFile) -> InFile:
    """Return the type of an option that a sweep varies: a value, a list or text with commas; or a table of them."""
    return value if value.table else value | InFile(frozenset({str}), value.scalars - {NoneType})


def _check(table: Fields, types: Mapping[str, InFile], where: Callable[[str], str]) -> None:
    """Raise if a value does not have the type of its option, or an option is set twice; skip unknown options."""
    names: dict[str, str] = {}
    for name, value in table.items():
        if names.setdefault(_field(name), name) != name:
            raise InvalidSettingError(f"{where(name)}: {name} and {names[_field(name)]} are the same option.")
        expected = types.get(_field(name))
        if expected is not None and not expected.accepts(value):
            example = "learning_rate = [0.001, 0.004]" if _field(name) == "settings" else "NAME = 2"
            shown = f", as in {name} = {{{example}}}" if expected.table else ""
            raise InvalidSettingError(f"{where(name)}: {name} must be {expected}{shown}, not {quoted(value)}.")


# -- lines -------------------------------------------------------------------------------------------------------------


def _where(path: Path, text: str, part: int | None, name: str) -> str:
    """Return the file and the line of an option of the whole sweep or of a part."""
    line = (_line_in_toml if path.suffix.lower() == ".toml" else _line_in_yaml)(text, part, name)
    return f"{path}, line {line}" if line else str(path)


def _line_in_toml(text: str, part: int | None, name: str) -> int | None:
    """Return the line of a name at the start of a line, since tomllib gives no lines."""
    here = None
    pattern = re.compile(rf"""\s*(\[\s*({PARTS}\s*\.\s*)?)?["']?{re.escape(name)}["']?\s*[=.\]]""")
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"\s*\[\[\s*{PARTS}\s*\]\]", line):
            here = 0 if here is None else here + 1
        elif here == part and pattern.match(line):
            return number
    return None


def _line_in_yaml(text: str, part: int | None, name: str) -> int | None:
    import yaml

    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if part is not None:
        node = next(value for key, value in node.value if key.value in (PARTS, "parts")).value[part]
    lines = [key.start_mark.line + 1 for key, _ in node.value if key.value == name]
    return lines[0] if lines else None
