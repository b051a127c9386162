"""Objects named by text, imported on first use."""

from __future__ import annotations

import importlib
from typing import Any


def load_object(address: object) -> Any:
    """Return the object at "module:object", imported now; anything but text is returned as it is.

    Raises:
        ImportError: the module cannot be imported.
        AttributeError: it holds no such object.

    Example:
        >>> load_object("math:pi")
        3.141592653589793
    """
    if not isinstance(address, str):
        return address
    module, _, name = address.partition(":")
    return getattr(importlib.import_module(module), name)
