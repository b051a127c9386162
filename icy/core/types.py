"""Names for types of values that can be anything: options of a caller, content of JSON files, functions.

`Options` is the type of keyword options that a function passes on, checks, or writes down, without use of the values.
`Config` is the type of a configuration that was read from a record or is about to be saved in one. `Json` is the type
of one value in it. A value of `Json` needs a check of its type (`isinstance`, or a function of `icy.core.checks`)
before use; where fields are known, a TypedDict or a dataclass says more. `AnyFunction` is a function of any signature
with any result; `Factory` is one whose result is not used. `State` is the content of a checkpoint (tensors, numbers,
text, lists and dicts), `Choices` a configuration that a job makes, and `Fields` one that is read without checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = "Mapping[str, Json] | list[Json] | tuple[Json, ...] | str | int | float | bool | None"
Config: TypeAlias = Mapping[str, Json]
Options: TypeAlias = Mapping[str, object]
AnyFunction: TypeAlias = Callable[..., Any]
Factory: TypeAlias = Callable[..., object]
State: TypeAlias = dict[str, Any]
Choices: TypeAlias = dict[str, Any]
Fields: TypeAlias = Mapping[str, Any]
