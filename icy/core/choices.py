"""Options in the name of a model, as in `Composed[cell=GRU,layers=2]`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .errors import IcyError, InvalidSettingError, UnknownNameError
from .text import listed, words

Choice = str | int | bool
Choices = Mapping[str, Sequence[Choice]]  # the values of each option; the first value is the default
Conditions = Mapping[str, Sequence[Choices]]  # see Entry

BRACKETS = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
PLAIN = re.compile(r"[\w.-]+")  # characters of options and values in names
WORDS = {"None": None, "True": True, "False": False, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}
LIKE_OTHERS = re.compile(r"-?[0-9.]+(e[+-]?[0-9]+)?|-?inf|nan|True|False|None")


class UnknownChoiceError(UnknownNameError):
    """A name with an option or a value that its model does not have.

    Attributes:
        understood: number of the given options that the model has.
    """

    def __init__(self, sentence: str, understood: int) -> None:
        super().__init__(sentence)
        self.understood = understood


def as_text(value: object) -> str:
    """Return a value as in a name.

    Example:
        >>> as_text(True), as_text(2), as_text("GRU")
        ('true', '2', 'GRU')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def typed_text(value: object) -> str:
    """Return a value as in a table: text that reads like a number, True, False or None is in quotes.

    Example:
        >>> typed_text(1), typed_text("1"), typed_text("GRU"), typed_text("1-3")
        ('1', "'1'", 'GRU', '1-3')
    """
    return repr(value) if isinstance(value, str) and LIKE_OTHERS.fullmatch(value) else str(value)


def typed(text: str) -> object:
    """Return the value of a text on the command line: JSON, None, True, False, nan or inf; else the text.

    Example:
        >>> typed("0.5"), typed("True"), typed("[1, 2]"), typed("GRU")
        (0.5, True, [1, 2], 'GRU')
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # RecursionError: too many nested brackets
        return WORDS.get(text, text)


def distinct(what: str, values: Iterable[Any]) -> list[Any]:
    """Return values without repeats.

    Raises:
        InvalidSettingError: two values of different types are equal or are written alike, such as 1, "1", 1.0 and True.
    """
    found: list[Any] = []
    for value in values:
        alike = [one for one in found if one == value or as_text(one).lower() == as_text(value).lower()]
        if other := [one for one in alike if _type(one) is not _type(value)]:
            raise InvalidSettingError(
                f"{what} has the values {other[0]!r} and {value!r}, which differ only in their type: keep one of them."
            )
        if value not in alike:
            found.append(value)
    return found


def _type(value: object) -> type:
    return next((kind for kind in (bool, int, float, str) if isinstance(value, kind)), type(value))


def name_with(family: str, chosen: Mapping[str, Choice]) -> str:
    """Return the name of a family with options.

    Example:
        >>> name_with("Composed", {"cell": "GRU", "layers": 2}), name_with("Composed", {})
        ('Composed[cell=GRU,layers=2]', 'Composed')
    """
    inner = ",".join(f"{option}={as_text(value)}" for option, value in chosen.items())
    return f"{family}[{inner}]" if inner else family


def split_name(name: str) -> tuple[str, dict[str, str] | None]:
    """Split a name into the name of its family and the options in its brackets.

    The options are None if the name does not end with brackets, or if they are part of a shell pattern, which has no
    `=` between them.

    Raises:
        UnknownChoiceError: an option has no value, or two values.

    Example:
        >>> split_name("Composed[cell=GRU, layers=2]"), split_name("?o[tl]"), split_name("FC2L")
        (('Composed', {'cell': 'GRU', 'layers': '2'}), ('?o[tl]', None), ('FC2L', None))
    """
    found = BRACKETS.fullmatch(name.strip())
    if found is None or ("=" not in found[2] and found[2].strip()):
        return name, None
    chosen: dict[str, str] = {}
    for part in words(found[2]):
        option, equals, value = (text.strip() for text in part.partition("="))
        if not (option and equals and value):
            raise UnknownChoiceError(f"'{part}' in '{name}' is not an option; write option=value.", 0)
        if option.lower() in map(str.lower, chosen):
            raise UnknownChoiceError(f"'{name}' has two values of the option {option}; keep one.", 0)
        chosen[option] = value
    return found[1].strip(), chosen


def effective(owner: str, choices: Choices, conditions: Conditions, given: Mapping[str, object]) -> dict[str, Choice]:
    """Return the value of every option that has an effect, in the declared order.

    Args:
        owner: name of the model, for errors.
        choices, conditions: see Entry.
        given: values or their text, in any case. Other options take their default.

    Raises:
        UnknownChoiceError: the model does not have an option or a value.

    Example:
        >>> choices, conditions = {"net": ("flat", "deep"), "layers": (1, 2)}, {"layers": [{"net": ("deep",)}]}
        >>> effective("Mine", choices, conditions, {"layers": 2})
        {'net': 'flat'}
        >>> effective("Mine", choices, conditions, {"Layers": "2", "net": "DEEP"})
        {'net': 'deep', 'layers': 2}
    """
    by_lower = {option.lower(): option for option in choices}
    understood = sum(option.lower() in by_lower for option in given)
    values: dict[str, Choice] = {}
    for option, value in given.items():
        own = by_lower.get(option.lower())
        if own is None:
            known = listed([*choices])
            raise UnknownChoiceError(f"{owner} has no option '{option}'; its options: {known}.", understood)
        fits = [one for one in choices[own] if as_text(one).lower() == as_text(value).lower()]
        if not fits:
            known = listed([as_text(one) for one in choices[own]], "or")
            raise UnknownChoiceError(
                f"The option {own} of {owner} cannot be '{as_text(value)}'; it is {known}.", understood
            )
        values[own] = fits[0]
    found: dict[str, Choice] = {}
    for option, allowed in choices.items():
        if any(all(found.get(o) in accepted for o, accepted in one.items()) for one in conditions.get(option, [{}])):
            found[option] = values.get(option, allowed[0])
    return found


def check_choices(owner: str, choices: Choices, conditions: Conditions) -> None:
    """Check the declared options of a model.

    Raises:
        IcyError: an option has no values, or a name or value that cannot be part of a name, or a condition depends on
            an option that is not declared before it.
    """
    before: list[str] = []
    for option, values in choices.items():
        texts = [as_text(value).lower() for value in values]
        plain = option.isidentifier() and texts and all(map(PLAIN.fullmatch, texts))
        if not (plain and len({*texts}) == len(texts) == len({*values})):  # True equals 1
            raise IcyError(
                f"The option '{option}' of {owner} needs a name like a Python argument and distinct values of letters, "
                f"digits, '_', '-' and '.', not {tuple(values)!r}."
            )
        for other, accepted in (pair for one in conditions.get(option, ()) for pair in one.items()):
            if other not in before or not {*accepted} <= {*choices[other]}:
                raise IcyError(
                    f"The condition of the option '{option}' of {owner} needs an option declared before it and values "
                    f"of this option, not {other}={tuple(accepted)!r}."
                )
        before.append(option)
    if extra := [option for option in conditions if option not in choices]:
        raise IcyError(f"{owner} has a condition for '{extra[0]}', which is not one of its choices.")
