"""Import objects by address, plug-in files, and renamed objects by their old names."""

from __future__ import annotations

import atexit
import importlib.util
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from .code import FILE_PREFIX, remember_file, short_hash
from .errors import IcyError, PluginError
from .processes import scratch_folder


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


def renamed(
    module: str, names: Mapping[str, str], load: Callable[[str], object] | None = None
) -> Callable[[str], object]:
    """Return a function `__getattr__` for a module, which returns objects by their old names, with a warning.

    Args:
        module: full name of the module.
        names: the new name of each old name in the module.
        load: a function that returns objects with other names, if the module loads these on first use.
    """

    def getattr_(name: str) -> object:
        if name in names:
            warnings.warn(f"{module}.{name} is now {names[name]}", FutureWarning, stacklevel=2)
            return getattr(sys.modules[module], names[name])
        if load is not None:
            return load(name)
        raise AttributeError(f"module '{module}' has no attribute '{name}'")

    return getattr_


def import_file(file: Path, path: str) -> None:
    """Import a plug-in file. Its decorators register its models, grammars and other objects.

    Args:
        file: the file to import.
        path: the path that names the module: the original path, if `file` is a copy.

    Raises:
        PluginError: the file is not a Python file, or fails to import.
    """
    name = module_name(path)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise PluginError(f"The plug-in file '{file}' is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its classes can be pickled by name
    try:
        # Always compile the source: cached bytecode may be out of date if a file changes twice within a second.
        content = file.read_bytes()
        code = spec.loader.source_to_code(content, str(file))
        remember_file(module, content)
        exec(code, module.__dict__)
    except IcyError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginError(f"The plug-in '{file}' cannot be loaded: {type(error).__name__}: {error}.") from error


def module_name(path: str) -> str:
    """Return the name of the module of a plug-in file."""
    return f"{FILE_PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', Path(path).stem)}_{short_hash(path)}"  # names may be equal


def import_content(content: bytes, path: str) -> None:
    """Import the content of a plug-in file of another machine, under its path on that machine.

    Raises:
        PluginError: the file fails to import.
    """
    # Kept until the process exits, because `inspect` may read the source.
    folder = scratch_folder("plugin")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / Path(path).name
    file.write_bytes(content)
    import_file(file, path)
