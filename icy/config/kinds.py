"""Settings of kinds of jobs: each is declared once, as a field of a dataclass.

A *request* has the wishes of a user; it may have several values, wildcards, files and objects. The *settings* of a row
of the table have one plain value each. They are a subclass of `Settings`. Its fields are the declaration: from their
types, limits and metadata follow the options of the command, the arguments of the function, the values of sweeps, the
configuration in records, the headings of tables, and warnings of settings without effect. `request_of` adds them to the
class of requests.

The metadata of a field, all optional, in addition to that of `icy.config.requests`:
    axis: whether a request may have several values. Each is a row.
    every: for an axis, a function that returns the names that "all" means; by default the names in its type.
    quick: the value with `quick`.
    key: name in configurations; by default that of the field; "" if configurations do not have the field.
    writes: a function from the settings to entries of the configuration, in place of `key`.
    since: the version that added the field. At its default it is left out of configurations, so that keys remain.
    idle: a function from the settings to the sentence that says why the field has no effect; "" if it has. Without
        effect it is left out of configurations, and a user who gave it is warned.
    refused: whether it is an error to give a field without effect.
    takes: the type that requests accept, if it is wider than that of the field.
    label: heading in tables and plans; by default the name with spaces; "" if these do not show it.
    asked: False for fields that `rows` finds: requests do not have them.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass
from functools import cache
from types import GenericAlias, MappingProxyType, NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from icy.core.entry import Entry
from icy.core.fields import OF_SETTINGS, check_fields, check_of, field_types, setting
from icy.core.types import Choices, Fields

from .requests import RunRequest

R = TypeVar("R", bound=RunRequest)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one row of a kind of job. Subclasses declare the fields, and can change the methods.

    Raises:
        InvalidSettingError, UnknownNameError: a field does not allow its value.
    """

    kind: ClassVar[str] = ""  # name of the kind of job
    on_cpu: ClassVar[bool] = False  # whether jobs train on the CPU, also if there is a GPU
    constants: ClassVar[Mapping[str, Any]] = MappingProxyType({})  # further entries of every configuration

    def __post_init__(self) -> None:
        check_fields(self)

    # -- identity: what determines the numbers of a replicate ----------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the row: the model, with its side if it has one."""
        return self.kind

    @property
    def entries(self) -> Sequence[Entry]:
        """Registry entries of the parts that a worker needs, without the kind and the conditions."""
        return ()

    def entries_of(self, condition: str) -> Sequence[Entry]:
        """Return the registry entries of a condition of replicates, such as its grammar."""
        return ()

    def versions(self, condition: str, seed: int) -> dict[str, str]:
        """Return the versions of the parts that determine a replicate's results, without that of the kind."""
        return {}

    def behavior(self, condition: str) -> dict[str, Fields]:
        """Return digests of what users' code computes for fixed inputs, by name; see `icy.training.task_models`."""
        return {}

    def config(self) -> Choices:
        """Return the entries of the configuration of a record, without grammar and seed."""
        found: Choices = dict(self.constants)
        for name, declared in declared_in(type(self)).items():
            value, about = getattr(self, name), declared.metadata
            if ("since" in about and value == default_of(declared)) or self._why_idle(declared):
                continue
            if "writes" in about:
                found |= about["writes"](self)
            elif key := about.get("key", name):
                found[key] = value
        return found

    @classmethod
    def given_in(cls, config: Fields) -> Choices:
        """Return the values in the configuration of a record by field, without fields that have `writes`."""
        keys = {name: f.metadata.get("key", name) for name, f in declared_in(cls).items() if "writes" not in f.metadata}
        return {name: config[key] for name, key in keys.items() if key in config}

    def facts(self) -> dict[str, str]:
        """Return the settings that distinguish rows with the same name, as texts by heading."""
        shown = {label_of(f): getattr(self, name) for name, f in declared_in(type(self)).items() if label_of(f)}
        return {label: text_of(value) for label, value in shown.items()}

    def idle(self, given: Iterable[str]) -> dict[str, str]:
        """Return the given fields without effect, each with a sentence."""
        known = declared_in(type(self))
        return {name: why for name in given if name in known and (why := self._why_idle(known[name]))}

    def _why_idle(self, declared: Field[Any]) -> str:
        why: Callable[[Any], str] | None = declared.metadata.get("idle")
        return "" if why is None else why(self)

    # -- course and texts ----------------------------------------------------------------------------------------------

    @property
    def short_name(self) -> str:
        """Name without the side, for texts that state the side elsewhere."""
        return self.name

    @property
    def side(self) -> str:
        """Group of the row in tables: "sender", "receiver", "pair" or another word."""
        return self.kind

    @property
    def measure(self) -> str:
        """Name of the number in the column `value`."""
        return "accuracy"

    def length(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a replicate, given its baseline's updates; None if not known."""
        return None

    def most_updates(self, baseline: float | None) -> int | None:
        """Return the maximum number of updates of a replicate, also if `length` is not known; None for no maximum."""
        return self.length(baseline)

    def work(self) -> float:
        """Return the relative work of an update, in addition to the number of parameters."""
        return 1.0

    def limit_text(self) -> str:
        """Return the words before the remaining time: "at most" if a replicate may end early."""
        return "about"

    def waiting_text(self) -> str:
        """Return the status text while the length of training is not known."""
        return "training"

    def phase_text(self, phase: str) -> str | None:
        """Return the name of a phase of training; None for the main phase, the phase that `length` limits."""
        return phase or None

    def conditions_text(self, conditions: Sequence[str]) -> str | None:
        """Return a sentence that lists the conditions of the replicates; None if there are none to list."""
        return None

    def summary(self, record: Fields) -> str:
        """Return the result of a replicate in a few words; "" for the usual words."""
        return ""

    def explain(self, reason: str, condition: str, numbers: Fields) -> str:
        """Return the reason for a failure, as a sentence without a full stop; "" for the usual sentence."""
        return ""


def declared_in(settings: type) -> Mapping[str, Field[Any]]:
    """Return the fields of a settings class by name."""
    found: Mapping[str, Field[Any]] = _declared(settings)
    return found


_declared: Any = cache(lambda settings: MappingProxyType({f.name: f for f in dataclasses.fields(settings)}))


def default_of(declared: Field[Any]) -> Any:
    """Return the default of a field; MISSING if it has none."""
    return declared.default if declared.default_factory is MISSING else declared.default_factory()


def label_of(declared: Field[Any]) -> str:
    """Return the heading of a field in tables; "" if they do not show it."""
    label: str = declared.metadata.get("label", declared.name.replace("_", " "))
    return label


def text_of(value: object) -> str:
    """Return a value as a short text.

    Example:
        >>> text_of(0.5), text_of(None), text_of(4000)
        ('0.5', 'none', '4000')
    """
    return "none" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


# -- requests ----------------------------------------------------------------------------------------------------------

TAKEN = ("grammar", "seed", "seeds", "settings", "conditions")  # names that settings cannot have


def request_of(settings: type[Settings]) -> Callable[[type[R]], type[R]]:
    """Return a decorator that completes a class of requests by the fields of a settings class.

    The class declares fields that only requests have, or have in another form. Where a request may
    have several values along an axis, the type becomes that of one or several. Tables of options come last.
    """

    def complete(request: type[R]) -> type[R]:
        own = inspect.get_annotations(request)
        of: Any = settings
        types, found = field_types(of), dict(own)
        for name in {*TAKEN, *(f.name for f in dataclasses.fields(RunRequest))}.intersection(types):
            raise TypeError(f"{settings.__name__} cannot have a setting called '{name}', which means something else.")
        for name, usual in (("function", f"icy.train('{settings.kind}')"), ("job_kind", settings.kind)):
            if not hasattr(request, name):
                setattr(request, name, usual)
        axes: list[str] = []
        small = dict(request.small)
        for name, declared in declared_in(settings).items():
            about, axis = declared.metadata, declared.metadata.get("axis", False)
            if about.get("asked") is False:
                continue
            axes += [name] if axis else []
            small = {**({name: about["quick"]} if "quick" in about else {}), **small}
            if name not in own:
                hint = about.get("takes", types[name])
                found[name] = hint | _several(hint) if axis else hint
                setattr(request, name, _asked(declared, types[name]))
        tables = [name for name in found if getattr(getattr(request, name, None), "default_factory", None) is dict]
        request.__annotations__ = {name: found[name] for name in (*(n for n in found if n not in tables), *tables)}
        request.axes, request.small = (*axes, *request.axes), MappingProxyType(small)
        request.settings_class = settings
        return dataclass(frozen=True)(request)

    return complete


def _several(hint: Any) -> Any:
    """Return the types of several values of a type: text with commas, or an iterable."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    one: Any = Union[tuple(part for part in parts if part is not NoneType)]  # noqa: UP007
    text: Any = Literal["all"] if get_origin(one) is Literal else str
    return text | GenericAlias(Iterable, (one,))


def _asked(declared: Field[Any], hint: Any) -> Any:
    """Return the field of a request for a field of settings, with the metadata of its option."""
    shown = {name: value for name, value in declared.metadata.items() if name not in OF_SETTINGS}
    least = check_of(declared).least
    if declared.metadata.get("axis") and get_origin(hint) is not Literal:
        shown.setdefault("metavar", "NAME[,...]" if hint is str else "N[,...]")
    elif hint is int and least is not None:
        shown.setdefault("minimum", int(least))
    return setting(default_of(declared), metadata=shown)


def values_for(settings: type[Settings], request: RunRequest) -> Choices:
    """Return the values of a request, which has one along each axis, for the fields of a settings class."""
    known = {name: f for name, f in declared_in(settings).items() if f.metadata.get("asked", True)}
    found = {name: getattr(request, name) for name in known if hasattr(request, name)}
    # Tables are copied: other mappings may change later, and may not be pickled.
    return {name: dict(value) if known[name].default_factory is dict else value for name, value in found.items()}
