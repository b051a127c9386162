"""Import objects by address, on first use."""

from __future__ import annotations

import importlib
from typing import Any


def load_object(address: object) -> Any:
    """Import and return the object at "module:object"; return objects that are not text unchanged.

    Raises:
        ImportError: the module cannot be imported.
        AttributeError: the module does not have this object.

    Example:
        >>> load_object("math:pi")
        3.141592653589793
    """
    if not isinstance(address, str):
        return address
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)
