"""User code and everything that it captures, as digests: two models that differ never have the same digest.

The code of icy has version numbers. The code of users does not: a class in a notebook, a plug-in file, a package. So
its records depend on a digest of all that determines its behavior and can be seen without running it:

- the source of each function that can be reached, with its defaults, its closure, and the global names that it uses;
- the attributes of each class and of its base classes;
- the values that all of these refer to: constants, partial arguments, attributes and buffers of modules;
- the files of the modules that define or import them, transitively;
- the content of each file to which one of these values is a path.

Names of the standard library and of installed packages count only as names. The parameters of a PyTorch module count
only with their names and shapes, since every replicate draws its own weights.

`icy.training.task_models` runs a model, and so detects what cannot be seen here.
"""

from __future__ import annotations

import ast
import contextlib
import copyreg
import dis
import functools
import hashlib
import importlib.util
import inspect
import io
import linecache
import os
import random
import re
import sys
import sysconfig
import textwrap
import tokenize
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from enum import Enum
from importlib.machinery import ModuleSpec
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

FILE_PREFIX = "icy_plugin_"  # prefix of the module names of imported plug-in files
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
INSTALLED = {"site-packages", "dist-packages"}  # folders of installed packages
STATEFUL = (random.Random, np.random.Generator, np.random.RandomState)  # their state changes with every use
# Attributes of every class that do not change its behavior.
OF_CLASSES = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__firstlineno__"),
    *("__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__orig_bases__"),
    *("_abc_impl", "__abstractmethods__", "__parameters__", "__match_args__"),
    *("__pydantic_core_schema__", "__pydantic_serializer__", "__pydantic_validator__"),
}
GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")  # instructions that read a global name
STANDARD_LIBRARY = sysconfig.get_path("stdlib")
INSIDE = ("__wrapped__", "func", "__func__")  # attributes of wrappers with the function inside
COUNTED = {"_autograd_function_id", "_torchdynamo_wrapper_id"}  # attributes that PyTorch numbers in every process
HOOKS = ("_forward", "_backward", "_state_dict", "_load_state", "_is_full", "_is_hf")  # prefixes of lists of hooks

PLAIN_FLAGS = 0xFFFF  # flags of code objects, without those of `from __future__`
LONGEST = 200  # characters of the text of a value; longer texts are hashed
DEEPEST = 50  # values within values; deeper values are a part, so that no stack overflows
LARGEST = 2**30  # bytes of a file that is read
DEEP = "deep values"
# Names of functions that look names up by their text.
LOOKUPS = {"eval", "exec", "getattr", "globals", "vars", "__dict__"}
IMPORTERS = ("import_module", "__import__")  # names of functions that import a module

_cached: dict[Any, tuple[dict[str, str], object]] | None = None  # parts, and objects with their ids as key
_constants: dict[str, Any] = {}  # values of the last walk by label, without functions, classes and files
_changing: dict[str, tuple[Any, str]] = {}  # values that the code itself changes, and their first digests
_texts: dict[int, tuple[ModuleSpec, bytes]] = {}  # the file of a module when it was first seen, by its spec


def digest_of(parts: Mapping[str, str]) -> str:
    """Return the digest of some parts of code."""
    return short_hash("\n".join(f"{label} {digest}" for label, digest in sorted(parts.items())))


def parts_of(
    root: object, *more: object, module: str = "__main__", package: str = "", again: bool = False
) -> dict[str, str]:
    """Return the digests of all parts of user code that some objects refer to, by label.

    Args:
        root: a class, function, module or value.
        *more: further values, such as default arguments.
        module: a module with files that are parts, too.
        package: an installed package that counts as user code.
        again: whether to compute the digests again within `same_code`.

    Example:
        >>> digest_of(parts_of(print, {"width": 4})) == digest_of(parts_of(print, {"width": 64}))
        False
    """
    which = *map(id, (root, *more)), module, package
    if _cached is None or again:
        return _Walk(package).parts(root, more, module)
    if which not in _cached:
        _cached[which] = _Walk(package).parts(root, more, module), (root, more)
    return _cached[which][0]


def note_changes(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Note the constants that running the code has changed, such as a cache: they keep their first digest.

    Args:
        before: the parts of some code before icy ran it.
        after: its parts after that.
    """
    for label in before.keys() & after.keys() & _constants.keys():
        if before[label] != after[label]:
            _changing[label] = _constants[label], before[label]
    _constants.clear()


@contextlib.contextmanager
def same_code() -> Iterator[None]:
    """Within the block, user code does not change, so that each digest is computed only once."""
    global _cached
    before = _cached
    _cached = {} if before is None else before
    try:
        yield
    finally:
        _cached = before


def is_user_module(name: str | None, package: str = "") -> bool:
    """Return whether a module is a user's: outside of icy, of Python, and of installed packages.

    Args:
        name: name of the module; None for code without a module.
        package: an installed package that counts as user code.
    """
    top = (name or "").partition(".")[0]
    if top in ("", "__main__", package):
        return True
    module = sys.modules.get(name or "")
    places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
    place = next((one for one in places if one), None)
    if place is None:  # compiled into Python, not imported yet, or a name that `exec` was given
        return top not in (*sys.stdlib_module_names, "builtins", "icy")
    return top != "icy" and _is_user_path(place)


def _is_user_path(path: str) -> bool:
    installed = INSTALLED & {*Path(path).parts}
    return not installed and not path.startswith((f"{STANDARD_LIBRARY}/", f"{STANDARD_LIBRARY}\\"))


def files_of(name: str, package: str = "") -> dict[str, bytes]:
    """Return the files of a user module and of the user modules that it imports, transitively, by module name.

    A file is read when its module is first seen, so that a later edit does not change the digest of running code.
    """
    found: dict[str, bytes] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one in found or one == "__main__" or not is_user_module(one, package):
            continue
        content = _text(one)
        if content is not None:
            found[one] = content
            waiting += _imports(content, one)
    return found


def edited_modules() -> list[str]:
    """Return the names of loaded user modules with files that were edited after icy first read them."""
    known = ((spec, content) for spec, content in _texts.values() if sys.modules.get(spec.name) is not None)
    return [spec.name for spec, content in known if _read(spec.origin) not in (None, content)
            and sys.modules[spec.name].__spec__ is spec]  # fmt: skip


def remember_file(module: ModuleType, content: bytes) -> None:
    """Remember the content of the file of a module that was imported from this content."""
    if module.__spec__ is not None:
        _texts[id(module.__spec__)] = module.__spec__, _lines(content)


def _text(name: str) -> bytes | None:
    """Return the content of the file of a module, as it was when the module was first seen."""
    if name in sys.modules:
        spec = getattr(sys.modules[name], "__spec__", None)
    elif "." not in name or name.rpartition(".")[0] in sys.modules:
        with contextlib.suppress(ImportError, ValueError, AttributeError):
            spec = importlib.util.find_spec(name)
            return None if spec is None or not _is_user_path(spec.origin or "") else _read(spec.origin)
        return None
    else:
        return None
    if spec is None:
        return None
    if id(spec) not in _texts:
        content = _read(spec.origin)
        if content is None:
            return None
        _texts[id(spec)] = spec, content
    return _texts[id(spec)][1]


def _read(path: str | None) -> bytes | None:
    try:
        return _lines(Path(path or "").read_bytes())
    except OSError:
        return None


def _content(path: str | PurePath) -> str:
    """Return the digest of the content of a file, such as weights, or the size of a very large one.

    It is "" for a folder, and for a file that is missing.
    """
    file = Path(path)
    with contextlib.suppress(OSError, ValueError):
        if file.is_file():
            size, changed = file.stat().st_size, file.stat().st_mtime_ns
            return f" {size} bytes" if size > LARGEST else f" {_file_digest(file, size, changed)}"
    return ""


@functools.lru_cache(maxsize=512)
def _file_digest(path: Path, size: int, changed: int) -> str:
    """Return the digest of a file, which is read again when its size or its time changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()


def _lines(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")  # the same on every system


@functools.lru_cache(maxsize=512)
def _imports(content: bytes, name: str) -> tuple[str, ...]:
    """Return the names of the modules that a module may import, also within functions."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # not Python
        return ()
    spec = getattr(sys.modules.get(name), "__spec__", None)
    package = name if spec is not None and spec.submodule_search_locations else name.rpartition(".")[0]
    found: list[str] = [name[: place + 1].rstrip(".") for place, sign in enumerate(name) if sign == "."]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            with contextlib.suppress(ImportError, ValueError):
                base = importlib.util.resolve_name("." * node.level + base, package) if node.level else base
                found += [base, *(f"{base}.{alias.name}" for alias in node.names if alias.name != "*")]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(IMPORTERS):
            found += [str(one.value) for one in node.args if isinstance(one, ast.Constant)]
    return tuple(dict.fromkeys(name for name in found if name))


def short_hash(content: str | bytes, size: int = 4) -> str:
    """Return a hash with two hexadecimal digits per byte of its size."""
    data = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def _hashed(content: str | bytes) -> str:
    return short_hash(content, 8)


class _Walk:
    """A walk over everything that an object refers to. Each function, class, constant and file is a part."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._parts: dict[str, str] = {}
        self._waiting: deque[tuple[str, Any]] = deque()
        self._labels: dict[int, str] = {}  # of functions, classes and deep values, by id
        self._spaces: dict[tuple[str, int], str] = {}  # suffixes of the labels of global names, by module and its names
        self._texts: dict[int, str] = {}  # of values, by id
        self._kept: list[Any] = []  # all objects above, so that their ids stay unique
        self._open: list[int] = []  # values around the current one, to detect circles
        self._numbers: Counter[str] = Counter()  # of labels with the same name
        self._is_fresh = False  # whether the modules get new weights
        self._known: set[str] = set()  # names of constants
        self._seen: set[str] = set()  # names of modules with files
        self._places: dict[str, str] = {}  # files of user modules, with the names of the modules

    def parts(self, root: object, more: Iterable[object], module: str) -> dict[str, str]:
        """Return the parts of an object and of further values, with the files of a module."""
        _constants.clear()
        self._files(module)
        self._is_fresh = getattr(type(root), "makes_new_weights", False)
        reference = "\n".join(map(self.text, (root, *more)))
        self._is_fresh = False
        while self._waiting:
            label, one = self._waiting.popleft()
            if label == DEEP:
                text = self._parts.get(DEEP, "") + self.text(one)
            else:
                text = self._class(one, label) if isinstance(one, type) else self._function(one, label)
            self._parts[label] = _hashed(text)
        self._parts["reference"] = _hashed(reference)
        return self._parts

    def _is_user(self, thing: Any) -> bool:
        return is_user_module(_module_of(thing), self._package) or _is_made_by_call(thing)

    # -- values ------------------------------------------------------------------------------------------------------

    def text(self, value: Any) -> str:
        """Return a text that is equal for equal values."""
        if type(value) in PLAIN:
            path = self._path(value) if type(value) is str and os.path.isabs(value) else ""
            return path or f"{type(value).__name__} {value!r}"
        if id(value) in self._open:
            return f"circle {len(self._open) - self._open.index(id(value))}"
        if id(value) not in self._texts:
            if len(self._open) >= DEEPEST:
                return self._later(DEEP, value)
            self._open.append(id(value))
            try:
                text = self._text(value)
            except Exception:  # of its own methods, such as `__getattribute__`
                text = f"opaque {self._reference(type(value))}"
            finally:
                self._open.pop()
            self._texts[id(value)] = text if len(text) < LONGEST else _hashed(text)
            self._kept.append(value)
        return self._texts[id(value)]

    def _text(self, value: Any) -> str:
        match value:
            case Enum():
                return f"{self._reference(type(value))}.{value.name} {self.text(value.value)}"
            case type() | FunctionType():
                return self._reference(value)
            case ModuleType():
                return self._module(value, ())
            case MethodType():
                return f"{self.text(value.__func__)} of {self.text(value.__self__)}"
            case CodeType():
                return code_text(value)
            case property():
                return self._all("property", (value.fget, value.fset, value.fdel))
            case staticmethod() | classmethod():
                return self._all(type(value).__name__, (value.__func__,))
            case functools.partial():
                return self._all("partial", (value.func, value.args, value.keywords))
            case list() | tuple() if type(value) in (list, tuple):
                return self._all(type(value).__name__, value)
            case set() | frozenset():
                return f"{type(value).__name__}({','.join(sorted(map(self.text, value)))})"
            case dict() | MappingProxyType() if type(value) in (dict, MappingProxyType):
                return self._all(type(value).__name__, (part for item in value.items() for part in item))
            case memoryview():
                return f"memory {value.format} {value.shape} {_hashed(value.tobytes())}"
            case ContextVar():
                with contextlib.suppress(LookupError):
                    return self._all("variable", (value.get(),))
                return "variable"
            case np.ndarray() if type(value) is np.ndarray and not value.dtype.hasobject:
                return f"array {value.dtype} {value.shape} {_hashed(np.ascontiguousarray(value).tobytes())}"
            case PurePath():
                return self._path(value) or f"path {value}{_content(value)}"
            case BuiltinFunctionType():
                owner = value.__self__
                if owner is None or isinstance(owner, ModuleType):
                    return f"builtin {value.__module__}.{value.__qualname__}"
                return f"builtin {value.__qualname__} of {self.text(owner)}"
        if isinstance(value, STATEFUL) or type(value).__name__ == "Generator":
            return _name(type(value))
        if (torch := sys.modules.get("torch")) is not None:
            if isinstance(value, torch.nn.Module):
                return self._torch_module(value)
            if isinstance(value, torch.Tensor):
                return _tensor(value)
        return self._instance(value)

    def _all(self, name: str, values: Iterable[Any]) -> str:
        return f"{name}({','.join(map(self.text, values))})"

    def _state(self, value: Any) -> str:
        """Return the text of the attributes of an instance."""
        state = {name: one for name, one in (_own(value, "__dict__") or {}).items() if name not in COUNTED}
        for one in type(value).__mro__:
            for name, slot in vars(one).items() if "__slots__" in vars(one) else ():
                if type(slot).__name__ == "member_descriptor":
                    with contextlib.suppress(AttributeError):  # without a value
                        state[name] = slot.__get__(value)
        return self._all("state", (part for item in state.items() for part in item)) if state else ""

    def _instance(self, value: Any) -> str:
        if type(value).__name__ == "Entry" and hasattr(value, "full_version"):
            return f"entry {value.qualified} {value.full_version}"
        inside = next((one for n in INSIDE if isinstance(one := _own(value, n), FunctionType)), None)
        code = _own(value, "code")  # of torch.jit
        if self._is_user(type(value)) or inside is not None or isinstance(code, str):
            held: Any = [_own(value, "default_factory"), *value.items()] if isinstance(value, dict) else value
            held = (
                held
                if isinstance(held, (list, tuple))
                else sorted(map(self.text, held))
                if isinstance(held, set)
                else ()
            )
            return f"{self._reference(type(value))}{self._state(value)}{self._all('', held)}{self.text(inside)}{code}"
        try:
            reduce: Any = copyreg.dispatch_table.get(type(value))
            make, *rest = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except Exception:  # a lock, a file, a generator
            return _name(type(value))
        state = (list(one) if isinstance(one, Iterator) else one for one in rest)
        return self._all("made", (make, *state))

    def _path(self, path: str | PurePath) -> str:
        """Return the text of a path in the folder of a user module, equal on all machines; "" for other paths.

        A file counts with its content. A folder counts only with its name, as files of results may come and go in it.
        """
        for file, name in self._places.items():
            with contextlib.suppress(ValueError):
                inside = PurePath(path).relative_to(PurePath(file).parent)
                own = PurePath(path) == PurePath(file)  # counts by its code
                return f"path {inside.as_posix()} beside {name}{'' if own else _content(path)}"
        return ""

    def _torch_module(self, module: Any) -> str:
        """Return the text of a PyTorch module: its class, its attributes and buffers, and the shapes of parameters."""
        texts = [self._reference(type(module)), str(getattr(module, "code", ""))]
        for name, value in vars(module).items():
            if name == "training" or name in COUNTED:
                continue
            if name == "_parameters" and self._is_fresh:
                texts += [f"{n} {_shape(p)}" for n, p in value.items()]
            elif not name.startswith(HOOKS):
                texts.append(f"{name} {self.text(value)}")
            elif value:  # hooks have numbers as names, which depend on the other hooks of the process
                texts.append(f"{name} {self._all('hooks', value.values() if isinstance(value, dict) else (value,))}")
        return f"module({','.join(texts)})"

    def _module(self, module: ModuleType, names: Iterable[str]) -> str:
        """Return the text of a module, with the values of the used attributes of a user module."""
        name = module.__name__
        if not is_user_module(name, self._package):
            return f"module {name}"
        self._files(name)
        used = []
        for one in names:
            if one in vars(module) and id(module) not in self._open:
                self._open.append(id(module))
                self._global(f"{_plain(name)}.{one}", vars(module)[one], names)
                self._open.pop()
                used.append(one)
        return f"module {_plain(name)} {used}"

    def _files(self, module: str) -> None:
        if module in self._seen:  # with those that it imports
            return
        self._seen.add(module)
        if is_user_module(module, self._package) and (file := getattr(sys.modules.get(module), "__file__", None)):
            self._places[file] = _plain(module)
        for name, content in files_of(module, self._package).items():
            self._parts.setdefault(f"file {_plain(name)}", _hashed(_without_comments(content)))

    # -- parts -------------------------------------------------------------------------------------------------------

    def _reference(self, thing: Any) -> str:
        """Return the name of a class or function. A user's becomes a part; so does a user's function in a wrapper."""
        if not self._is_user(thing):
            own = str(getattr(thing, "__module__", "")).partition(".")[0] == "icy"  # versions describe icy's code
            # Functions for other types, of `functools.singledispatch`.
            registered = getattr(thing, "registry", {}) if isinstance(thing, FunctionType) else {}
            captured = filter(callable, [] if own else [*_closure(thing).values(), *registered.values()])
            inside = [c for c in captured if self._is_user(c if isinstance(c, FunctionType | type) else type(c))]
            return f"name {_name(thing)}" + (self._all("wraps", inside) if inside else "")
        return self._later(_name(thing), thing)

    def _later(self, name: str, thing: Any) -> str:
        """Return the label of a function, a class or a nested value, and queue it: its text becomes a separate part."""
        if id(thing) not in self._labels:
            self._numbers[name] += 1
            is_first = self._numbers[name] == 1 and name not in self._parts  # a constant may have the name of its class
            self._labels[id(thing)] = label = name if is_first else f"{name} ({self._numbers[name]})"
            self._kept.append(thing)
            self._waiting.append((name if name == DEEP else label, thing))
        return f"part {self._labels[id(thing)]}"

    def _class(self, thing: type, label: str) -> str:
        """Return the text of a class: its bases and attributes. Its constants become parts."""
        if (module := _module_of(thing)) is not None:
            self._files(module)
        texts = [self._reference(type(thing)), *map(self._reference, thing.__bases__)]
        for name, value in vars(thing).items():
            if name in OF_CLASSES or name in COUNTED:
                continue
            if isinstance(value, FunctionType | type | property | staticmethod | classmethod):
                texts.append(f"{name} {self.text(value)}")
            elif type(value).__name__ not in ("member_descriptor", "getset_descriptor"):
                texts.append(name)
                self._constant(f"{label}.{name}", value)
        return "\n".join(texts)

    def _function(self, function: FunctionType, label: str) -> str:
        """Return the text of a function. The constants that it uses become parts."""
        around = function.__globals__
        if (module := around.get("__name__")) is not None:
            self._files(module)
        code, texts = function.__code__, [self.text(function.__defaults__), self.text(function.__kwdefaults__)]
        for name, value in vars(function).items():
            self._constant(f"{label}.{name}", value)
        for name, value in _closure(function).items():
            self._global(f"{name} of {label}", value, _names(code))
        for name in _imported(code):
            self._files(name)
        space = _plain(str(module or ""))
        number = sum(name == space for name, _ in self._spaces)
        suffix = self._spaces.setdefault((space, id(around)), f" ({number + 1})" if number else "")
        for name in _globals(code):
            if name in around:
                self._global(f"{space}.{name}{suffix}".removeprefix("__main__."), around[name], _names(code))
        return "\n".join([code_text(code), *texts])

    def _global(self, label: str, value: Any, names: Iterable[str]) -> None:
        """Add the value of a global name, of a name of a closure or of an attribute of a module."""
        if isinstance(value, ModuleType):
            self._parts.setdefault(label, _hashed(self._module(value, names)))
        else:
            self._constant(label, value)

    def _constant(self, label: str, value: Any) -> None:
        if label not in self._known:
            self._known.add(label)  # a value that refers to itself ends here
            if label in self._numbers or (isinstance(value, FunctionType | type) and label == _name(value)):
                label = f"{label} (name)"  # a class or a function is the part with this label
            self._parts[label] = ""
            self._parts[label] = _hashed(self.text(value))
            _constants[label] = value
            if label in _changing:
                known, first = _changing[label]
                if known is value or type(known) is type(value) in PLAIN:  # not another object with the same name
                    self._parts[label] = first


def _own(value: Any, name: str) -> Any:
    """Return an attribute that an object has without its method `__getattr__`, or None."""
    with contextlib.suppress(Exception):
        inspect.getattr_static(value, name)
        return getattr(value, name)
    return None


def _module_of(thing: Any) -> str | None:
    module = getattr(thing, "__module__", None)
    module = module if isinstance(module, str) else None
    if isinstance(thing, FunctionType) and not str(module).startswith("icy."):
        return str(thing.__globals__.get("__name__") or "") or None  # decorators copy __module__
    return module


def _is_made_by_call(thing: Any) -> bool:
    """Return whether a class is the result of a call of `type`, which may give it the module of its metaclass."""
    name = getattr(thing, "__qualname__", "")
    known = getattr(sys.modules.get(getattr(thing, "__module__", "")), name.partition(".")[0], None)
    return isinstance(thing, type) and "<locals>" not in name and known is None and thing.__module__ != "builtins"


def _closure(function: Any) -> dict[str, Any]:
    """Return the values that a function captures, by name, without names that have no value yet."""
    found: dict[str, Any] = {}
    if isinstance(function, FunctionType):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):
                found[name] = cell.cell_contents
    return found


def _name(thing: Any) -> str:
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", type(thing).__qualname__)
    return f"{_plain(module)}.{name}" if isinstance(module, str) and module not in ("__main__", "builtins") else name


def _plain(module: str) -> str:
    """Return the name of a module, for a plug-in file without the hash of its folder."""
    return re.sub(rf"^{FILE_PREFIX}(\w+)_[0-9a-f]{{8}}$", r"\1", module)


def _shape(parameter: Any) -> str:
    return "" if parameter is None else f"{parameter.dtype} {tuple(parameter.shape)} {parameter.requires_grad}"


def _tensor(tensor: Any) -> str:
    import torch

    try:
        values = tensor.detach().cpu().contiguous().view(torch.uint8) if tensor.dim() else tensor.detach().cpu()
        content = _hashed(values.numpy().tobytes())
    except Exception:  # sparse, quantized, or without values
        content = repr(tensor)
    return f"tensor {tensor.dtype} {tuple(tensor.shape)} {content}"


# -- code --------------------------------------------------------------------------------------------------------------


def code_text(code: CodeType) -> str:
    """Return the source of a function, or its instructions if its file or cell has no source or another one.

    Source is the same in every version of Python. Instructions are always those that run, also if the file was edited
    after it was imported, and if the code was typed at a prompt.
    """
    instructions = _instructions(code)
    if code.co_name != "<lambda>":  # several may be on one line
        linecache.checkcache(code.co_filename)
        sources = ["".join(linecache.getlines(code.co_filename))]
        with contextlib.suppress(SyntaxError, UnicodeDecodeError):
            seen = (content for spec, content in _texts.values() if spec.origin == code.co_filename)
            sources += map(importlib.util.decode_source, seen)  # the file may have been edited since
        for source in sources:
            if _hashed(f"{code.co_firstlineno} {instructions}") in _compiled(source, code.co_filename):
                lines = source.splitlines(keepends=True)[code.co_firstlineno - 1 :]
                return _without_comments(textwrap.dedent("".join(inspect.getblock(lines))).encode())
    return repr(instructions)


@functools.lru_cache(maxsize=512)
def _without_comments(content: bytes) -> str:
    """Return code without comments, empty lines and spaces at the ends of lines. Other content is returned as it is."""
    empty = set()
    try:
        source = importlib.util.decode_source(content)
        lines = [line.rstrip() for line in source.split("\n")]
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            row, column = token.start[0] - 1, token.start[1]
            if token.type == tokenize.COMMENT:
                lines[row] = lines[row][:column].rstrip()
            if token.type in (tokenize.COMMENT, tokenize.NL) and not lines[row]:  # not within a text
                empty.add(row)
    except (SyntaxError, ValueError, tokenize.TokenError):
        return _hashed(content)
    return "\n".join(line for row, line in enumerate(lines) if row not in empty)


def _instructions(code: CodeType) -> tuple[Any, ...]:
    """Return everything in a code object that determines its behavior."""
    constants = tuple(
        _instructions(one) if isinstance(one, CodeType)
        else sorted(map(repr, one)) if isinstance(one, frozenset)
        else repr(one)
        for one in code.co_consts
    )  # fmt: skip
    return (
        *(code.co_name, code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & PLAIN_FLAGS),
    )


@functools.lru_cache(maxsize=256)
def _compiled(source: str, file: str) -> frozenset[str]:
    """Return the hashes of the instructions of all functions in a source."""
    try:
        waiting = [compile(source, file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return frozenset()
    found = set()
    while waiting:
        code = waiting.pop()
        found.add(_hashed(f"{code.co_firstlineno} {_instructions(code)}"))
        waiting += [one for one in code.co_consts if isinstance(one, CodeType)]
    return frozenset(found)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _nested(one)


def _names(code: CodeType) -> list[str]:
    """Return the names of all globals and attributes in a function and the functions in it, also by their text."""
    names = {name for one in _nested(code) for name in one.co_names}
    return sorted(names | _words(code)) if LOOKUPS & names else sorted(names)


def _words(code: CodeType) -> set[str]:
    """Return the words of all texts in a function and the functions in it."""
    texts = (text for one in _nested(code) for text in one.co_consts if isinstance(text, str))
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _used(code: CodeType, *instructions: str) -> set[str]:
    """Return the names that some instructions of a function, and of the functions in it, have."""
    return {i.argval for one in _nested(code) for i in dis.get_instructions(one) if i.opname in instructions} - {""}


def _globals(code: CodeType) -> list[str]:
    """Return the names of the globals that a function reads, also through `getattr` or `globals()` with a text."""
    found = _used(code, *GLOBAL)
    return sorted(found | _words(code) if LOOKUPS & found else found)


def _imported(code: CodeType) -> list[str]:
    """Return the names of the modules that a function imports, also by their text."""
    found = _used(code, "IMPORT_NAME")
    found |= {text for one in _nested(code) for text in one.co_consts if {*IMPORTERS} & {*one.co_names}}
    return sorted(name for name in found if name and isinstance(name, str))
