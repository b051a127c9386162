"""Kinds and entries of the registry: kind, name, factory and origin of a registered object."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, NamedTuple, TypedDict

from . import code
from .choices import Choice, Choices, Conditions, effective, name_with
from .errors import IcyError, PluginError, what_and_where
from .importing import load_object, renamed
from .types import AnyFunction, Options

SIDES = ("sender", "receiver")
PLAYERS = SPEAKER, LISTENER = ("speaker", "listener")  # of S2B's games
TEXT_MODEL = "text-model"
CORE = "core"  # of agents that learn S2B
WORLD = "world"  # of the multi-target games
PERCEPTION = "perception"  # of agents in these games
STUDY_PLAYER = "study-player"  # of Secret Spy Codes
READER = "reader"  # of files of meanings and messages
JOB = "job"


class EntryKind(NamedTuple):
    """A kind of registered objects, and how icy calls their factories.

    Attributes:
        noun: the object, as in "a text model for the text players of S2B".
        takes: arguments of the factory.
        makes: result of the factory.
        positional: number of arguments that are passed by position.
        named: names of arguments that are passed by name.
    """

    noun: str
    takes: str
    makes: str
    positional: int = 0
    named: tuple[str, ...] = ()


MODEL = "(space, message_length, vocab_size, hidden_size, **options)"
FAMILY = EntryKind("", "(space, message_length, vocab_size, hidden_size, cell, **options)", "", 4, ("cell",))
KINDS: Mapping[str, EntryKind] = {  # all except kinds of jobs, which `icy.records.kinds.register_job_kind` registers
    "sender": EntryKind("a sender", MODEL, "an nn.Module", 4),
    "receiver": EntryKind("a receiver", MODEL, "an nn.Module", 4),
    "cell": EntryKind("a cell", "(input_size, hidden_size, fed=True)", "an icy.models.cells.Cell", 2, ("fed",)),
    "grammar": EntryKind("a grammar", "(space, vocab_size, word_length, seed)", "an icy.Language or its messages", 4),
    "metric": EntryKind("a metric", "(meanings, messages=None, **conventions)", "an icy.metrics.Score", 2),
    SPEAKER: EntryKind("a speaker of S2B", "no arguments", "an icy.s2b.Player"),
    LISTENER: EntryKind("a listener of S2B", "no arguments", "an icy.s2b.Player"),
    TEXT_MODEL: EntryKind(
        "a text model of S2B", "(name, settings)", "an icy.s2b.TextModel, or a function from request to reply", 2
    ),
    CORE: EntryKind("a core of agents that learn S2B", "(width, **options)", "an icy.s2b.agents.cores.Core", 1),
    WORLD: EntryKind("a world of games", "options only, each with a default", "an icy.games.World"),
    PERCEPTION: EntryKind(
        "a perception of games", "(shape, size, **options)", "an nn.Module: [batch, ...] -> [batch, size]", 2
    ),
    STUDY_PLAYER: EntryKind("a player of the study", "(**options)", "an icy.study.players.StudyPlayer"),
    READER: EntryKind(
        "a reader of files", "(file)", "an icy.languages.readers.Found, or None for a file of another format", 1
    ),
}
ENTRY_KINDS = (*KINDS, JOB)


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
        chosen = {option: self.chosen.get(option, every[0]) for option, every in self.choices.items()}
        if self.takes_cell:
            chosen.pop("cell", None)
        merged = {**self.defaults, **chosen, **options}
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
        """Describe wrong parameters of the factory or its cell, as part of a sentence; "" if icy can call both.

        Args:
            options: names of further keyword arguments that icy passes to the factory.
        """
        named = {*self.defaults, *self.choices, *options, "representation"}
        own = misfit(self.kind, self.load(), self.takes_cell, named)
        return own or (self.cell.misfit() if self.cell is not None else "")


def misfit(kind: str, factory: AnyFunction, takes_cell: bool = False, given: Collection[str] = ()) -> str:
    """Describe wrong parameters of a factory, as part of a sentence; "" if icy can call it.

    Args:
        kind: kind of the entry.
        factory: the class or function.
        takes_cell: whether the factory makes models of a family that takes a cell.
        given: names of further keyword arguments that icy passes.

    Example:
        >>> misfit("grammar", lambda space, seed: None)
        '<lambda> takes (space, seed), and a grammar must take (space, vocab_size, word_length, seed)'
    """
    known = FAMILY if takes_cell else KINDS.get(kind)
    if kind == "grammar" and isinstance(factory, type) and hasattr(factory, "apply"):  # a corruption
        known = KINDS[SPEAKER]
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # compiled, or not a function: only a call can show it
        return ""
    if known is None:
        return ""
    by_name = {*known.named, *(name for name in given if name in signature.parameters)}
    try:
        signature.bind(*[None] * known.positional, **dict.fromkeys(by_name))
    except TypeError:
        plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        actual = signature.replace(parameters=plain, return_annotation=signature.empty)
        name = getattr(factory, "__name__", type(factory).__name__)
        return f"{name} takes {actual}, and a {kind} must take {known.takes}"
    return ""


__getattr__ = renamed(__name__, {"Card": "EntryFields"})
