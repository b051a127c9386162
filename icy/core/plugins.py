"""Import plug-in files, and hash their source."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import inspect
import re
import shutil
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

from .errors import IcyError, PluginError
from .scratch import scratch_folder

FILE_PREFIX = "icy_plugin_"  # prefix of the module names of imported plug-in files


def import_file(file: Path, path: str) -> None:
    """Import a plug-in file. Its decorators register its models, grammars and other objects.

    Args:
        file: the file to import.
        path: the path that names the module: the original path, if `file` is a copy.

    Raises:
        PluginError: the file is not a Python file, or fails to import.
    """
    place = hashlib.blake2b(path.encode(), digest_size=4).hexdigest()  # two files may have the same name
    name = f"{FILE_PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', file.stem)}_{place}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise PluginError(f"The plug-in file '{file}' is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that its classes can be pickled by name
    try:
        # Always compile the source: cached bytecode may be out of date if a file changes twice within a second.
        code = spec.loader.source_to_code(file.read_bytes(), str(file))
        exec(code, module.__dict__)
    except IcyError:
        del sys.modules[name]
        raise
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginError(f"The plug-in '{file}' cannot be loaded: {type(error).__name__}: {error}.") from error


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


def source_digest(factory: object, origin: str) -> str:
    """Return a hash of the source of a plug-in file, or of a definition in a notebook cell or script.

    Return "" for installed packages, which have versions.
    """
    try:
        if origin.startswith(FILE_PREFIX):
            content = Path(str(sys.modules[origin].__file__)).read_bytes()  # a file may declare any encoding
        elif origin == "__main__":
            content = inspect.getsource(factory).encode()  # type: ignore[arg-type]
        else:
            return ""
    except (OSError, TypeError):  # typed at a prompt, without a source
        return ""
    lines = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # the same on every system
    return hashlib.blake2b(lines, digest_size=4).hexdigest()
