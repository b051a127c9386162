"""Entries of the registry: kind, name, factory and origin of one registered thing."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

from .errors import IcyError, PluginError, what_and_where
from .lazy import load_object
from .signatures import misfit
from .types import Options

SIDES = ("sender", "receiver")
PLAYERS = SPEAKER, LISTENER = ("speaker", "listener")  # of S2B's games
TEXT_MODEL = "text-model"
CORE = "core"  # of an agent that learns S2B
WORLD = "world"  # of the multi-target games
PERCEPTION = "perception"  # of an agent in them
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
    representations: Sequence[str]
    weighted: bool
    lower_is_better: bool


@dataclass(frozen=True)
class Entry:
    """One registered thing: what it is called, how to make it, and where it comes from.

    Attributes:
        kind: "sender", "receiver", "cell", "grammar", "metric", "speaker", "listener", "text-model", "core", "world",
            "perception", "study-player", "reader" or "job".
        name: the canonical name; once a family is bound to a cell, `Family:Cell`.
        factory: a callable, or "module:object" to import it from.
        description: one line.
        source: the paper and section it follows, or the origin of a plug-in.
        version: raised whenever a change could move results; stored with every result.
        defaults: keyword arguments passed to the factory unless the caller overrides them.
        published: further arguments under the preset `published`, where the papers' program departs from the papers.
        aliases: other accepted names, for example of a paper. In an alias of a family, {cell} means the cell's name.
        takes_cell: the factory takes a `cell=` factory, and `:Cell` completes the name.
        representations: the representations it works with; empty for all.
        weighted: of a metric, whether it reads the weights of a Table; others get the repeated rows.
        lower_is_better: of a metric, whether it is an error; permutation tests count values that are as low.
        origin: the module that registered it.
        cell: the entry of the cell, once one is chosen.
        digest: hash of the source, if a plug-in file or a notebook registered it: after an edit it is a different
            thing, and the results on file do not belong to it.
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
    representations: tuple[str, ...] = ()
    weighted: bool = False
    lower_is_better: bool = False
    origin: str = ""
    cell: Entry | None = None
    digest: str = ""

    @property
    def qualified(self) -> str:
        """The name with its kind, as in `sender/FC2L`; unique in the registry."""
        return f"{self.kind}/{self.name}"

    @property
    def full_version(self) -> str:
        """The version, with the digest of a user's own source, and the version of the cell if there is one."""
        own = f"{self.version}-{self.digest}" if self.digest else str(self.version)
        return own if self.cell is None else f"{own}.{self.cell.full_version}"

    def works_with(self, representation: str) -> bool:
        """Return whether it can be trained in a representation."""
        return not self.representations or representation in self.representations

    def with_cell(self, cell: Entry) -> Entry:
        """Return the entry of a family bound to a cell, called `Family:Cell`."""
        own = (alias if "{cell}" in alias else f"{alias}:{{cell}}" for alias in self.aliases)
        aliases = tuple(alias.replace("{cell}", cell.name) for alias in own)
        description = f"{self.description.rstrip('.')}, with the {cell.name} cell."
        return replace(self, name=f"{self.name}:{cell.name}", aliases=aliases, cell=cell, description=description)

    def load(self) -> Any:
        """Return the factory, imported now if it was registered as a string.

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
        """Call the factory with `defaults`, overridden by `options`, and the cell.

        Raises:
            PluginError: the factory takes other arguments, or failed; the message says which, or where.
        """
        merged = {**self.defaults, **options}
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

    def misfit(self, options: Collection[str] = ()) -> str:
        """Say which arguments the factory, or its cell, takes and which it must take; "" if icy can call it.

        Args:
            options: further arguments that it gets by name.
        """
        own = misfit(self.kind, self.load(), self.takes_cell, {*self.defaults, *options, "representation"})
        return own or (self.cell.misfit() if self.cell is not None else "")


def __getattr__(name: str) -> object:
    """Return a class by its name in versions before 0.3."""
    if name == "Card":
        warnings.warn("icy.core.entry.Card is now EntryFields", FutureWarning, stacklevel=2)
        return EntryFields
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
