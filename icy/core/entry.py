"""Entries of the registry: kind, name, factory and origin of a registered object."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, TypedDict

from . import code
from .choices import Choice, Choices, Conditions, effective, name_with
from .errors import IcyError, PluginError, what_and_where
from .lazy import load_object
from .signatures import misfit
from .types import Options

SIDES = ("sender", "receiver")
PLAYERS = SPEAKER, LISTENER = ("speaker", "listener")  # of S2B's games
TEXT_MODEL = "text-model"
CORE = "core"  # of agents that learn S2B
WORLD = "world"  # of the multi-target games
PERCEPTION = "perception"  # of agents in these games
STUDY_PLAYER = "study-player"  # of Secret Spy Codes
READER = "reader"  # of files of meanings and messages
JOB = "job"
OF_AGENTS = (*PLAYERS, TEXT_MODEL, CORE, WORLD, PERCEPTION, STUDY_PLAYER)
ENTRY_KINDS = (*SIDES, "cell", "grammar", "metric", *OF_AGENTS, READER, JOB)


class EntryFields(TypedDict, total=False):
    """Keyword arguments of the register functions; see Entry."""

    description: str
    source: str
    version: int
    defaults: Options
    published: Options
    aliases: Sequence[str]
    takes_cell: bool
    choices: Choices
    conditions: Conditions
    representations: Sequence[str]
    weighted: bool
    lower_is_better: bool


@dataclass(frozen=True)
class Entry:
    """A registered object: its name, its factory and its origin.

    Attributes:
        kind: "sender", "receiver", "cell", "grammar", "metric", "speaker", "listener", "text-model", "core", "world",
            "perception", "study-player", "reader" or "job".
        name: the canonical name; for a family with a cell, `Family:Cell`.
        factory: a callable, or "module:object" to import it from.
        description: one line.
        source: the paper and section that describe the object, or the origin of a plug-in.
        version: increased whenever a change could change results; stored with every result.
        defaults: keyword arguments of the factory, unless the caller overrides them.
        published: further keyword arguments with the preset `published`, if the papers' code differs from their text.
        aliases: other accepted names, for example from a paper. In an alias of a family, {cell} means the cell's name.
        takes_cell: whether the factory takes a `cell=` factory. Users then add `:Cell` to the name, or `[cell=Cell]` if
            the entry has choices.
        choices: options that users add to the name, as in `Composed[cell=GRU,layers=2]`: for each, its values (texts,
            whole numbers, True or False), the default first. The factory gets them as keyword arguments. With
            `takes_cell`, all registered cells are values of the option `cell`, the declared cells first.
        conditions: when an option of `choices` has an effect, for options without effect in some networks: a list of
            alternatives, each with accepted values of options declared before it. Without effect, an option is not part
            of the name, and the factory gets its default, or for `cell` nothing.
        representations: names of the representations that can train the model; empty for all.
        weighted: for a metric, whether it uses the weights of a Table; other metrics get repeated rows.
        lower_is_better: for a metric, whether lower values are better; permutation tests then count lower values.
        origin: the module that registered the object.
        cell: the entry of the chosen cell.
        cells: entries of the cells that `choices` offers.
        chosen: values of `choices` other than defaults, in the declared order; see `with_choices`.
    """

    kind: str
    name: str
    factory: Any
    description: str
    source: str
    version: int = 1
    defaults: Options = field(default_factory=dict)
    published: Options = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    takes_cell: bool = False
    choices: Choices = field(default_factory=dict)
    conditions: Conditions = field(default_factory=dict)
    representations: tuple[str, ...] = ()
    weighted: bool = False
    lower_is_better: bool = False
    origin: str = ""
    cell: Entry | None = None
    cells: tuple[Entry, ...] = field(default=(), repr=False, compare=False)
    chosen: Mapping[str, Choice] = field(default_factory=dict)

    @property
    def qualified(self) -> str:
        """The name with its kind, as in `sender/FC2L`; unique in the registry."""
        return f"{self.kind}/{self.name}"

    @property
    def full_version(self) -> str:
        """The version, with the digest of code of users, and the version of the cell, if any.

        The digest describes the present code. It changes with everything that the code captures, so that saved results
        of earlier code are not used.
        """
        parts = self.parts
        own = f"{self.version}-{code.digest_of(parts)}" if parts else str(self.version)
        return own if self.cell is None else f"{own}.{self.cell.full_version}"

    @property
    def is_users(self) -> bool:
        """Whether the object, or its cell, is code of a user: not registered by icy itself."""
        own = self.factory is not None and self.origin.partition(".")[0] != "icy"
        return own or (self.cell is not None and self.cell.is_users)

    @property
    def parts(self) -> dict[str, str]:
        """The digests of all parts of code of users (`icy.core.code`), without the cell's; empty for icy's own code.

        Raises:
            PluginError: as for `load`.
        """
        return self._parts()

    def note_changes(self, before: Mapping[str, str]) -> None:
        """Note which parts have changed since they were `before`, because icy ran the code."""
        code.note_changes(before, self._parts(again=True))

    def _parts(self, again: bool = False) -> dict[str, str]:
        package = self.origin.partition(".")[0]
        if self.factory is None or package == "icy":
            return {}
        factory, further = self.load(), (self.defaults, self.published, self.choices)
        own = factory.__module__.partition(".")[0] if isinstance(factory, type | FunctionType) else ""
        if package == "__main__" and own != "icy":  # of an installed package, for example
            package = own
        return code.parts_of(factory, *further, module=self.origin, package=package, again=again)

    def works_with(self, representation: str) -> bool:
        """Return whether the model can be trained with a representation."""
        return not self.representations or representation in self.representations

    def with_cell(self, cell: Entry) -> Entry:
        """Return the entry of a family bound to a cell, called `Family:Cell`."""
        own = (alias if "{cell}" in alias else f"{alias}:{{cell}}" for alias in self.aliases)
        aliases = tuple(alias.replace("{cell}", cell.name) for alias in own)
        description = f"{self.description.rstrip('.')}, with the {cell.name} cell."
        return replace(self, name=f"{self.name}:{cell.name}", aliases=aliases, cell=cell, description=description)

    def with_choices(self, chosen: Mapping[str, object]) -> Entry:
        """Return the entry of a family bound to values of its choices, called `Family[option=value,...]`.

        The name has only options with an effect and a value that is not the default, in the declared order.

        Args:
            chosen: values, or their text, by option. Other options take their default.

        Raises:
            UnknownNameError: `choices` does not have an option or a value.
        """
        family, old = self.name.partition("[")[0], len(name_with("", self.chosen))
        values = effective(f"{self.kind}/{family}", self.choices, self.conditions, chosen)
        own = {option: value for option, value in values.items() if value != self.choices[option][0]}
        aliases = tuple(name_with(alias[: len(alias) - old], own) for alias in self.aliases)
        cell = next((one for one in self.cells if one.name == values.get("cell")), None)
        return replace(self, name=name_with(family, own), aliases=aliases, cell=cell, chosen=own)

    def load(self) -> Any:
        """Return the factory; import it if it was registered as a string.

        Raises:
            PluginError: the module or the object in it cannot be found.
        """
        try:
            return load_object(self.factory)
        except (ImportError, AttributeError) as error:
            raise PluginError(
                f"{self.qualified} points to '{self.factory}', which cannot be loaded: {error}"
            ) from error

    def create(self, *args: object, **options: object) -> Any:
        """Call the factory with `defaults`, the values of `choices`, and the cell; `options` override defaults.

        Raises:
            PluginError: the factory takes other arguments, or failed. The message names the arguments, or the line.
        """
        merged = {**self.defaults, **self._values(), **options}
        if self.cell is not None:
            merged["cell"] = self.cell.load()
        factory = self.load()
        try:
            return factory(*args, **merged)
        except (IcyError, MemoryError):
            raise
        except Exception as error:
            why = self.misfit(merged) if isinstance(error, TypeError) else ""
            raise PluginError(f"{self.qualified} cannot be made: {why or what_and_where(error)}.") from error

    def _values(self) -> Options:
        """Return the values of all choices except the cell."""
        values = {option: self.chosen.get(option, every[0]) for option, every in self.choices.items()}
        return {option: value for option, value in values.items() if not (option == "cell" and self.takes_cell)}

    def misfit(self, options: Collection[str] = ()) -> str:
        """Describe wrong parameters of the factory or its cell, as part of a sentence; "" if icy can call both.

        Args:
            options: names of further keyword arguments that icy passes to the factory.
        """
        named = {*self.defaults, *self.choices, *options, "representation"}
        own = misfit(self.kind, self.load(), self.takes_cell, named)
        return own or (self.cell.misfit() if self.cell is not None else "")


def __getattr__(name: str) -> object:
    """Return a class by its name before version 0.3, with a warning."""
    if name == "Card":
        warnings.warn("icy.core.entry.Card is now EntryFields", FutureWarning, stacklevel=2)
        return EntryFields
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
