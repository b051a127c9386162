"""Names for types of values that can be anything: options of a caller, content of JSON files, functions.

`Options` is the type of keyword options that a function passes on, checks, or stores, without using the values.
`Config` is the type of a configuration in a record, and `Json` the type of a value in a configuration. Check the type
of a `Json` value (`isinstance`, or a function of `icy.core.checks`) before use. If the fields are known, use a
TypedDict or a dataclass instead. `AnyFunction` is a function of any signature with any result. `State` is the content
of a checkpoint (tensors, numbers, text, lists and dicts), `Choices` is a configuration made by a job, and `Fields` is a
configuration that is read without checks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = "Mapping[str, Json] | list[Json] | tuple[Json, ...] | str | int | float | bool | None"
Config: TypeAlias = Mapping[str, Json]
Options: TypeAlias = Mapping[str, object]
AnyFunction: TypeAlias = Callable[..., Any]
State: TypeAlias = dict[str, Any]
Choices: TypeAlias = dict[str, Any]
Fields: TypeAlias = Mapping[str, Any]
