"""Shape checks for all tests: jaxtyping's import hook with beartype, on the rooms whose functions take arrays.

Every public function, method and dataclass of ROOMS whose annotations name a shape is checked whenever a test calls it,
its arguments and its result. Exempt are

- private functions, which stand in inner loops and are handed what a checked function was given: with them, the tests
  of models take twice as long;
- what is no array, such as numbers and names: a wrong one is a user's mistake, which the function answers with an error
  sentence of its own, or a plug-in's, which its contract finds, and tests hold both.
"""

import functools
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import jaxtyping
from beartype import beartype
from beartype.door import is_bearable
from beartype.roar import BeartypeCallHintViolation
from beartype.vale import Is

ROOMS = ("icy.core.noise", "icy.core.representations", "icy.grammars", "icy.metrics", "icy.models", "icy.s2b")
SHAPE_ERRORS = (jaxtyping.TypeCheckError, BeartypeCallHintViolation)

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
    jaxtyping.install_import_hook(ROOMS, "tests.shapes.typechecker")


def typechecker(function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply beartype to a function's arrays."""
    function.__annotations__ = {name: _arrays_of(hint) for name, hint in function.__annotations__.items()}
    return beartype(function)


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


def _arrays_of(hint: Any) -> Any:
    """Return what is checked of a type.

    beartype by itself checks one item of a sequence, drawn from the global generator, whose state some tests compare.
    """
    origin, args = get_origin(hint), get_args(hint)
    if not names_shape(hint):
        return Any
    if not args:
        return hint
    if origin in (Union, UnionType):
        return functools.reduce(operator.or_, (_arrays_of(arg) if names_shape(arg) else arg for arg in args))
    if origin is tuple and args[-1] is not ...:
        return tuple[tuple(map(_arrays_of, args))]
    if origin in (tuple, list, Sequence):
        item = _arrays_of(args[0])
        return Annotated[object, Is[lambda items: all(is_bearable(one, item) for one in items)]]
    if origin in (dict, Mapping):
        value = _arrays_of(args[1])
        return Annotated[object, Is[lambda items: all(is_bearable(one, value) for one in items.values())]]
    return Any


def _decorated(thing: Any = None, *, typechecker: Any) -> Any:
    """Decorate as `jaxtyping.jaxtyped` does, but leave out what is exempt, and check arguments once, not twice."""
    if thing is None:
        return lambda thing: _decorated(thing, typechecker=typechecker)
    if not is_checked(thing):
        return thing
    if isinstance(thing, type):
        thing.__init__ = _decorated(thing.__init__, typechecker=typechecker)
        return thing
    if any("{" in str(hint) for hint in thing.__annotations__.values()):  # a size that is read off the arguments
        return _jaxtyped(thing, typechecker=typechecker)
    checked = typechecker(thing)

    @functools.wraps(thing)
    def in_own_scope(*args: Any, **kwargs: Any) -> Any:
        with _jaxtyped("context"):
            return checked(*args, **kwargs)

    return in_own_scope
