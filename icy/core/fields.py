"""Fields of dataclasses: declare checks, convert values, compare instances, and read descriptions from docstrings.

Values are converted by msgspec, not by pydantic: msgspec is already a dependency, imports faster, and works on plain
dataclasses. A field declares its limits with `setting`, because the errors of both libraries do not name the accepted
values.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

import msgspec

from .checks import LARGEST_NUMBER, LARGEST_SETTING, real_number, true_or_false, whole_number
from .errors import InvalidSettingError, quoted, require_known
from .types import AnyFunction, Options

CHECK = "check"
# Metadata of fields: of settings, see `icy.config.kinds`; and of options, see `icy.config.requests`.
OF_SETTINGS = ("axis", "every", "quick", "key", "writes", "since", "idle", "refused", "label", "asked", "takes")
OF_OPTIONS = ("flags", "metavar", "help", "completes", "names", "minimum", "exponents", "brackets")


@dataclass(frozen=True)
class FieldCheck:
    """Limits of a field of a settings dataclass. None is allowed if the type allows it.

    Attributes:
        called: name of the field in errors; by default "setting NAME" for numbers and NAME for other types.
        least: the smallest allowed number.
        most: the largest allowed number.
        above: the number must be larger than this limit.
        among: the allowed names; by default the names of the type, if it is a Literal.
        hint: a sentence that follows the error about an unknown name.
    """

    called: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    among: Sequence[str] = ()
    hint: str = ""

    def read(self, name: str, hint: Any, value: Any) -> Any:
        """Return a value as the field has it: whole numbers as int, for example.

        Raises:
            InvalidSettingError, UnknownNameError: the field does not allow the value.
        """
        types = typing.get_args(hint) if type(None) in typing.get_args(hint) else (hint,)
        if value is None and type(None) in types:
            return None
        if self.among or any(typing.get_origin(one) is typing.Literal for one in types):
            names = self.among or [name for one in types for name in typing.get_args(one)]
            if isinstance(value, str) and value not in names and value.lower() in names:
                return value.lower()
            require_known(self.called or name, value, names, self.hint)
        elif bool in types:
            true_or_false(self.called or name, value)
        elif int in types and self.least is not None:
            value = int(value) if isinstance(value, float) and value.is_integer() else value
            largest = LARGEST_NUMBER if self.most is None else int(self.most)
            return whole_number(self.called or f"setting {name}", value, int(self.least), largest)
        elif float in types and (self.least is not None or self.above is not None):
            least = self.least if self.above is None else self.above
            most = LARGEST_SETTING if self.most is None else self.most
            real_number(self.called or f"setting {name}", value, least or 0.0, most, above=self.above is not None)
        return value


def setting(
    default: Any = MISSING,
    called: str = "",
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    among: Sequence[str] = (),
    hint: str = "",
    metadata: Mapping[str, object] | None = None,
    **about: object,
) -> Any:
    """Declare a field with its default, its check (see FieldCheck), and what else is known of it.

    Args:
        default: the default; without it, a value must be given.
        called: as in FieldCheck, like `least`, `most`, `above`, `among` and `hint`.
        metadata: metadata of the field, by name.
        **about: further metadata; see `icy.config.kinds` and `icy.config.requests`.
    """
    if unknown := set(about).difference(OF_SETTINGS, OF_OPTIONS):
        known = ", ".join((*OF_SETTINGS, *OF_OPTIONS))
        raise TypeError(f"setting() has no argument {unknown.pop()!r}; it has the limits of FieldCheck, and {known}")
    initial: Any = {"default_factory": dict} if default == {} else {"default": default}
    check = FieldCheck(called, least, most, above, among, hint)
    return field(**initial, metadata={CHECK: check, **(metadata or {}), **about})


def check_fields(made: Any) -> None:
    """Check all fields of an instance of a dataclass, and convert them as `FieldCheck.read` does.

    Raises:
        InvalidSettingError, UnknownNameError: the declaration of a field does not allow its value.
    """
    of: type = type(made)
    hints = field_types(of)
    for f in fields(made):
        given = getattr(made, f.name)
        value = check_of(f).read(f.name, hints[f.name], given)
        if value is not given:
            object.__setattr__(made, f.name, value)


def check_of(declared: Field[Any]) -> FieldCheck:
    """Return the check of a field."""
    check: FieldCheck = declared.metadata.get(CHECK, FieldCheck())
    return check


class CheckedFields:
    """Base class of settings dataclasses that check each field separately."""

    def __post_init__(self) -> None:
        check_fields(self)


@functools.cache
def field_types(of: type) -> dict[str, Any]:
    """Return the type of every field of a dataclass, by name."""
    return typing.get_type_hints(of)


def changed_fields(made: Any, usual: Any) -> dict[str, Any]:
    """Return the fields in which a dataclass instance differs from another instance."""
    found = {f.name: getattr(made, f.name) for f in fields(made)}
    return {name: value for name, value in found.items() if value != getattr(usual, name)}


def current_names(of: type, given: Options) -> dict[str, Any]:
    """Return options by the names of a dataclass's fields.

    If fields were renamed, the class attribute `old_names` has the new name of each old name. Users' files may still
    have the old names, and records always do, because these names are part of their keys (`stored_names`).
    """
    new = getattr(of, "old_names", {})
    return {new.get(name, name): value for name, value in given.items()}


def stored_names(of: type, values: Options) -> dict[str, Any]:
    """Return the values of fields by the names that they have in records; the inverse of `current_names`."""
    old = {name: stored for stored, name in getattr(of, "old_names", {}).items()}
    return {old.get(name, name): value for name, value in values.items()}


def checked(of: type, given: Options, what: str, without: Iterable[str] = ()) -> dict[str, Any]:
    """Check keyword values against a dataclass's field types, and convert them. Old names of fields are accepted.

    Raises:
        UnknownNameError: the dataclass does not have this field.
        InvalidSettingError: a value has the wrong type.
    """
    hints = field_types(of)
    known = [f.name for f in fields(of) if f.name not in set(without)]
    converted = {}
    for name, value in current_names(of, given).items():
        require_known(what, name, known)
        try:
            converted[name] = msgspec.convert(value, hints[name])
        except msgspec.ValidationError as error:
            why = str(error)[:1].lower() + str(error)[1:].rstrip(".")
            raise InvalidSettingError(f"{name} cannot be {quoted(value)}: {why}.") from error
    return converted


# -- descriptions in docstrings ----------------------------------------------------------------------------------------

WIDTH = 120  # longest line of a docstring
ENTRY = re.compile(r"^( *)\*\*\w+: .*(?:\n\1 +\S.*)*\n?", re.MULTILINE)  # of **options under "Args:"


def described(kind: type) -> dict[str, str]:
    """Return the description of each attribute of a class, from its docstring and the docstrings of its bases.

    It also has the attributes of the class in its attribute `settings_class`.
    """
    settings = getattr(kind, "settings_class", None)
    descriptions = {} if settings is None else described(settings)
    for one in reversed(kind.__mro__):
        text = inspect.cleandoc(one.__doc__ or "").partition("Attributes:")[2]
        entries = re.findall(r"^    (\w+): ((?:.*)(?:\n {8}.*)*)", text, re.MULTILINE)
        descriptions.update((name, " ".join(description.split())) for name, description in entries)
    return descriptions


def spell_out_arguments(function: AnyFunction, descriptions: Mapping[str, str], keep: bool = False) -> None:
    """Replace the entry `**options` in a function's docstring by an entry for each argument.

    Args:
        function: a function with an entry `**options`, or `**` and another name, in its docstring.
        descriptions: description of each argument, by name.
        keep: whether to keep the entry `**options` before the new entries, because the function takes more arguments.
    """
    text = function.__doc__ or ""
    if (entry := ENTRY.search(text)) is None:  # for example with `python -OO`
        return
    indent = entry[1]
    entries = [
        textwrap.fill(f"{name}: {description}", WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ",
                      break_long_words=False, break_on_hyphens=False)
        for name, description in descriptions.items()
    ]  # fmt: skip
    whole = "\n".join([*([entry[0].rstrip("\n")] if keep else []), *entries, ""])
    function.__doc__ = text[: entry.start()] + whole + text[entry.end() :]
