"""Importing plug-in files."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
import types
from pathlib import Path

from .errors import IcyError, PluginError

FILE_PREFIX = "icy_plugin_"  # of the module that a plug-in file becomes


def _import_file(file: Path, path: str) -> types.ModuleType:
    place = hashlib.blake2b(path.encode(), digest_size=4).hexdigest()  # two files may have one name
    name = f"{FILE_PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', file.stem)}_{place}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise PluginError(f"The plug-in file '{file}' is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that classes defined in it can be pickled by name
    try:
        spec.loader.exec_module(module)
    except IcyError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginError(f"The plug-in '{file}' cannot be loaded: {type(error).__name__}: {error}.") from error
    return module


def _source_digest(factory: object, origin: str) -> str:
    """A hash of a plug-in file, or of what a notebook cell or script defines; of installed packages, which have
    versions, none."""
    try:
        if origin.startswith(FILE_PREFIX):
            text = Path(str(sys.modules[origin].__file__)).read_text()
        elif origin == "__main__":
            text = inspect.getsource(factory)  # type: ignore[arg-type]
        else:
            return ""
    except (OSError, TypeError):  # typed at a prompt: there is no source to be had
        return ""
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
