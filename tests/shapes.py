"""Shape checks for all tests: jaxtyping's import hook with beartype, on the rooms whose functions take arrays.

Every public function, method and dataclass of ROOMS whose annotations name a shape is checked whenever a test calls it,
its arguments and its result. Exempt are

- private functions, which stand in inner loops and are handed what a checked function was given;
- what is no array, such as numbers and names: a wrong one is a user's mistake, which the function answers with an error
  sentence of its own, or a plug-in's, which its contract finds, and tests hold both;
- a call whose arrays have the types and sizes of an earlier call, which was checked;
- calls of a function after the first `CALLS` of each test: some functions are called 10,000 times in a test, and
  looking at every call would double the time of some folders.
"""

import functools
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

import jaxtyping
from beartype.door import is_bearable

ROOMS = (
    "icy.core.noise", "icy.core.representations", "icy.games.formulas", "icy.games.rules", "icy.games.turns",
    "icy.games.worlds", "icy.grammars", "icy.languages.table", "icy.metrics", "icy.models",
    "icy.s2b",
)  # fmt: skip
CALLS = 30
ShapeError = jaxtyping.TypeCheckError

calls: Counter[object] = Counter()  # calls of each function in this test

_jaxtyped = jaxtyping.jaxtyped


def check_shapes() -> None:
    """Install the hook, which sees the modules that are imported from now on.

    Raises:
        RuntimeError: a module of ROOMS has been imported already.
    """
    early = [name for name in sys.modules if f"{name}.".startswith(tuple(f"{room}." for room in ROOMS))]
    if early:
        raise RuntimeError(f"Imported before their shapes could be checked: {', '.join(early)}.")
    jaxtyping.jaxtyped = _decorated  # the name that the hook writes into the modules
    jaxtyping.install_import_hook(ROOMS, "beartype.beartype")


def names_shape(hint: Any) -> bool:
    """Return whether a type is that of an array with a shape, or contains one."""
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(map(names_shape, get_args(hint)))


def is_private(name: str) -> bool:
    """Return whether a name begins with one underscore."""
    return name.startswith("_") and not name.endswith("__")


def is_checked(thing: Any) -> bool:
    """Return whether a function, or the constructor of a class, is public and names a shape."""
    hints = getattr(thing.__init__ if isinstance(thing, type) else thing, "__annotations__", {})
    return not is_private(thing.__name__) and any(map(names_shape, hints.values()))


def _decorated(thing: Any = None, *, typechecker: Any) -> Any:
    """Check a function or class unless it is exempt; stands in for `jaxtyping.jaxtyped`, which checks every call."""
    if thing is None:
        return lambda thing: _decorated(thing, typechecker=typechecker)
    if is_checked(thing):
        if not isinstance(thing, type):
            return _checked(thing)
        thing.__init__ = _checked(thing.__init__)
    return thing


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its arrays checked: all arguments before a call, and after it the result beside them."""
    signature, hints = inspect.signature(function), dict(function.__annotations__)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL and name in hints:
            hints[name] = tuple[hints[name], ...]
    sizes, sizes_of = _sizes(function, signature, hints)
    known: dict[Any, set[Any]] = {}

    def check(values: Mapping[str, Any], found: tuple[int, ...]) -> None:
        with _jaxtyped("context"):
            for name, value in values.items():
                if not _fits(value, hints.get(name), dict(zip(sizes, found, strict=True))):
                    where = f"{function.__module__}.{function.__qualname__}"
                    raise ShapeError(f"{where}: {name} is {_seen(value)}, not {hints[name]}; {sizes} are {found}")

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        calls[function] += 1
        if calls[function] > CALLS:
            return function(*args, **kwargs)
        found = sizes_of(*args, **kwargs) if sizes else ()
        given = _seen(args), _seen(kwargs) if kwargs else (), found
        results = known.get(given)
        if results is None:
            check(signature.bind(*args, **kwargs).arguments, found)
            results = known[given] = set()
        result = function(*args, **kwargs)
        returned = _seen(result)
        if returned not in results:
            check({**signature.bind(*args, **kwargs).arguments, "return": result}, found)
            results.add(returned)
        return result

    return checked


def _sizes(
    function: Callable[..., Any], signature: inspect.Signature, hints: Mapping[str, Any]
) -> tuple[list[str], Callable[..., tuple[int, ...]]]:
    """Return the sizes that types give in braces, such as `{self.episodes}`, and a function of a call's arguments."""
    sizes = sorted({size for hint in hints.values() for size in re.findall(r"{(.+?)}", str(hint))})
    parameters = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else None)
        for p in signature.parameters.values()
    ]
    plain = str(signature.replace(parameters=parameters, return_annotation=signature.empty))[1:-1]
    sizes_of = eval(f"lambda {plain}: ({''.join(f'{size}, ' for size in sizes)})", function.__globals__)
    sizes_of.__defaults__, sizes_of.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return sizes, sizes_of


_ARRAYS: dict[type, bool] = {}  # of each type that was seen, whether it is one of arrays


def _seen(value: Any) -> Any:
    """Return all that decides whether an argument or result fits."""
    kind = type(value)
    if kind is tuple or kind is list:
        return tuple(map(_seen, value))
    if kind is dict:
        return tuple((name, _seen(one)) for name, one in value.items()) if value else ()
    is_array = _ARRAYS.get(kind)
    if is_array is None:
        is_array = _ARRAYS[kind] = hasattr(kind, "dtype") and hasattr(kind, "shape")
    return (kind, value.dtype, value.shape) if is_array else kind


def _fits(value: Any, hint: Any, sizes: Mapping[str, int]) -> bool:
    """Return whether the arrays of a value have the shapes that its type names; `sizes` are those named in braces."""
    origin, args = get_origin(hint), get_args(hint)
    if not names_shape(hint):
        return True
    if not args:
        return is_bearable(value, _sized(hint, re.sub(r"{(.+?)}", lambda match: str(sizes[match[1]]), hint.dim_str)))
    if origin in (Union, UnionType):
        return any(_fits(value, arg, sizes) if names_shape(arg) else is_bearable(value, arg) for arg in args)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(_fits(one, args[1], sizes) for one in value.values())
    if origin in (tuple, list, Sequence):
        if not isinstance(value, Sequence):
            return False
        items = args if origin is tuple and args[-1] is not ... else len(value) * args[:1]
        return len(value) == len(items) and all(_fits(*pair, sizes) for pair in zip(value, items, strict=True))
    return True


@functools.cache
def _sized(hint: Any, axes: str) -> Any:
    """Return the type of the same array with other axes; kept, as beartype compiles a check for each."""
    return hint.dtype[hint.array_type, axes]
