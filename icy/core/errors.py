"""Exceptions for user errors, each with a short message.

The message is for the user of a command: it states the given value, the accepted values, and the next step. The command
line prints only the message; Python callers get the exception.
"""

from __future__ import annotations

import difflib
import reprlib
import traceback
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

MOST_SHOWN = 60  # longest value in a sentence
SHORT = reprlib.Repr()  # also cuts nested lists
SHORT.maxstring = SHORT.maxother = SHORT.maxlong = 2 * MOST_SHOWN


class IcyError(Exception):
    """Base class of all errors that are shown without a stack trace."""


class UnknownNameError(IcyError, KeyError):
    """A name that is not registered."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0])


class InvalidSettingError(IcyError, ValueError):
    """A value that is not accepted."""


class IncompatibleError(IcyError, ValueError):
    """Two settings that are each valid but do not work together, such as shuf for a sender."""


class StoreError(IcyError, OSError):
    """A results folder or file that cannot be read or written."""

    def __str__(self) -> str:
        return str(self.args[0])


class SurroundingsError(IcyError, RuntimeError):
    """A failure of the program or the machine that runs a training, not of the training itself."""


class PluginError(IcyError, ImportError):
    """A plug-in that cannot be loaded."""


class DuplicateNameError(IcyError, ValueError):
    """A name that another module has already registered."""


def quoted(value: object) -> str:
    """Return a value as text for a sentence; long texts are cut.

    Example:
        >>> quoted("half"), quoted([1, 2]), len(quoted("9" * 5000))
        ("'half'", '[1, 2]', 60)
    """
    try:
        text = SHORT.repr(value)
    except ValueError:  # Python does not convert numbers with thousands of digits
        text = "a number with thousands of digits"
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 4]}...{text[-1]}"


def nearest(given: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known names most similar to `given`, best first, ignoring case."""
    by_lower: dict[str, str] = {}
    for name in known:
        by_lower.setdefault(name.lower(), name)
    return [by_lower[m] for m in difflib.get_close_matches(given.lower(), list(by_lower), n=count, cutoff=0.5)]


def unknown(what: str, given: str, known: Sequence[str], hint: str = "") -> UnknownNameError:
    """Make an UnknownNameError that suggests the names most similar to `given`.

    Args:
        what: the kind of name, such as "sender" or "grammar".
        given: the unknown name.
        known: the accepted names.
        hint: the next step, such as "`icy list models` shows all".
    """
    close = nearest(given, known)
    if close:
        suggestion = f"did you mean {' or '.join(close)}?"
    else:
        text = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
        suggestion = f"known: {text or 'none'}."
    sentence = f"No {what} is called {quoted(given)}; {suggestion}"
    return UnknownNameError(f"{sentence} {hint}".strip())


def require_known(what: str, given: object, known: Collection[str], hint: str = "") -> None:
    """Raise an UnknownNameError if a name is not known; arguments as for `unknown`."""
    if given not in known:
        raise unknown(what, str(given), list(known), hint)


def what_and_where(error: BaseException) -> str:
    """Describe an exception as part of a sentence: type, first line of the message, and line of code."""
    text = f"{type(error).__name__}: {error}".strip().partition("\n")[0].rstrip(".: ")
    if isinstance(error, IcyError):
        return str(error).rstrip(".")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]  # skip frames of libraries
    frames = traceback.StackSummary.from_list(own) if own else frames
    return f"{text} (line {frames[-1].lineno} of {Path(frames[-1].filename).name})" if frames else text
