"""The registry: names -> factories, for senders, receivers, recurrent cells, grammars, metrics and players of S2B.

The built-in zoo registers here exactly as a stranger's plug-in does. An entry may hold a factory or the string
"module:object"; a string is imported when the entry is first created, so listing names never imports torch.

A family that takes a recurrent cell is registered once (`HierZero`) and appears once per cell (`HierZero:GRU`),
so a plug-in cell works in every family and a plug-in family with every cell.
"""

from __future__ import annotations

import atexit
import contextlib
import fnmatch
import importlib
import importlib.metadata
import importlib.util
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

from .errors import DuplicateNameError, IcyError, PluginError, UnknownNameError, unknown, what_and_where
from .plugins import FILE_PREFIX, _import_file, _source_digest
from .text import natural

SIDES = ("sender", "receiver")
PLAYERS = SPEAKER, LISTENER = ("speaker", "listener")  # of S2B's games
KINDS = (*SIDES, "cell", "grammar", "metric", *PLAYERS)
# Packages that register on import; they list themselves.
BUILT_IN = ("icy.models", "icy.grammars", "icy.metrics", "icy.s2b")
ENTRY_POINT_GROUP = "icy.plugins"

F = TypeVar("F")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """One registered thing: what it is called, how to make it, and where it comes from.

    Attributes:
        kind: "sender", "receiver", "cell", "grammar", "metric", "speaker" or "listener".
        name: the canonical name; for a family with a cell, as looked up, `Family:Cell`.
        factory: what makes it, or "module:object".
        description: one line.
        source: paper and section it follows, or where a stranger's comes from.
        version: raised whenever a change could move results; stored with every result.
        defaults: keyword arguments the factory gets unless the caller says otherwise.
        published: further arguments under the `published` preset, where the papers' program departs from the papers.
        aliases: other accepted names.
        takes_cell: the factory wants a `cell=` factory, and the name is completed by `:Cell`.
        representations: those that it works with, if not all.
        origin: the module that registered it.
        cell: the entry of the cell, once one is chosen.
        digest: of the source, for what a plug-in file or a notebook registered: edited, it is another thing, whose
            results are not those on file.
    """

    kind: str
    name: str
    factory: Any
    description: str
    source: str
    version: int = 1
    defaults: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    takes_cell: bool = False
    representations: tuple[str, ...] = ()
    origin: str = ""
    cell: Entry | None = None
    digest: str = ""

    @property
    def qualified(self) -> str:
        """The name with its side, as in `sender/FC2L`; unique over the registry."""
        return f"{self.kind}/{self.name}"

    @property
    def full_version(self) -> str:
        """Version of the entry, of its source if it is the user's own, and of its cell where it has one."""
        own = f"{self.version}-{self.digest}" if self.digest else str(self.version)
        return own if self.cell is None else f"{own}.{self.cell.full_version}"

    def works_with(self, representation: str) -> bool:
        """Whether it can be trained in a representation."""
        return not self.representations or representation in self.representations

    def load(self) -> Any:
        """The factory itself, imported now if it was registered as a string.

        Raises:
            PluginError: the module or the object in it cannot be found.
        """
        if not isinstance(self.factory, str):
            return self.factory
        module_name, _, attribute = self.factory.partition(":")
        try:
            return getattr(importlib.import_module(module_name), attribute)
        except (ImportError, AttributeError) as error:
            raise PluginError(
                f"{self.qualified} points to '{self.factory}', which cannot be loaded: {error}"
            ) from error

    def create(self, *args: Any, **options: Any) -> Any:
        """Make the thing: `defaults`, then the cell, then `options`, on top of one another.

        Raises:
            PluginError: the factory failed, with the place where.
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
            raise PluginError(f"{self.qualified} cannot be made: {what_and_where(error)}.") from error


class Additions(NamedTuple):
    """What a user has registered beyond what icy brings along.

    Attributes:
        files: plug-in files: where they are, and what is in them.
        modules: names of modules that register on import.
        entries: those of a notebook or script, which no other process can import.
    """

    files: list[tuple[str, str]]
    modules: list[str]
    entries: list[Entry]


class Registry:
    """Names of everything that registers. The module-level `registry` is the one icy uses."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}
        self._loaded = False
        self.plugin_files: list[str] = []  # in the order loaded, so that worker processes can do the same

    # -- registering ---------------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Register one entry.

        Raises:
            DuplicateNameError: the name, or an alias of it, is taken by another module. The same module may
                register again, as a notebook cell run twice does.
        """
        for name in (entry.name, *entry.aliases):
            if ":" in name or "/" in name or "+" in name:
                raise IcyError(f"A {entry.kind} cannot be called '{name}': ':', '/' and '+' have a meaning in names.")
            taken = self._find(entry.kind, name)
            if taken is not None and taken.origin != entry.origin:
                raise DuplicateNameError(
                    f"A {entry.kind} called '{name}' is already registered by {taken.origin}; "
                    f"{entry.origin} must choose another name."
                )
        self._entries[(entry.kind, entry.name)] = entry

    @contextlib.contextmanager
    def holding(self, entry: Entry) -> Iterator[None]:
        """Register an entry for as long as a `with` block runs.

        Raises:
            DuplicateNameError: as for `add`.
        """
        self.load_all()
        key = (entry.kind, entry.name)
        before = self._entries.get(key)
        self.add(entry)
        try:
            yield
        finally:
            del self._entries[key]
            if before is not None:
                self._entries[key] = before

    def _find(self, kind: str, name: str) -> Entry | None:
        exact = self._entries.get((kind, name))
        if exact is not None:
            return exact
        return next((e for e in self._entries.values() if e.kind == kind and name in e.aliases), None)

    # -- looking up ----------------------------------------------------------------------------------------------

    def entries(self, *kinds: str) -> list[Entry]:
        """Every entry of the given kinds, one per cell for the families that take one, in natural order of names."""
        self.load_all()
        found: list[Entry] = []
        for entry in self._entries.values():
            if entry.kind in (kinds or KINDS):
                found.extend(self._with_each_cell(entry) if entry.takes_cell else [entry])
        return sorted(found, key=lambda e: (KINDS.index(e.kind), natural(e.name)))

    def _with_each_cell(self, family: Entry) -> Iterator[Entry]:
        for cell in self._entries.values():
            if cell.kind == "cell":
                yield _bind(family, cell)

    def get(self, name: str, *kinds: str) -> Entry:
        """The entry called `name` (canonical, alias, or `side/name`) among `kinds`.

        Raises:
            UnknownNameError: nothing is called that, or it exists on both sides and the side is not said.
        """
        self.load_all()
        kinds = kinds or KINDS
        side, slash, bare = name.partition("/")
        if slash and side in kinds:
            kinds, name = (side,), bare
        found = [e for e in (self._lookup(kind, name) for kind in kinds) if e is not None]
        if len(found) > 1:
            raise UnknownNameError(f"'{name}' exists on both sides; write {' or '.join(e.qualified for e in found)}.")
        if not found:
            raise self._unknown(name, kinds)
        return found[0]

    def _lookup(self, kind: str, name: str) -> Entry | None:
        family_name, colon, cell_name = name.partition(":")
        family = self._find(kind, family_name)
        if family is None or family.takes_cell != bool(colon):
            return None
        if not colon:
            return family
        cell = self._find("cell", cell_name)
        return None if cell is None else _bind(family, cell)

    def _unknown(self, name: str, kinds: Sequence[str]) -> UnknownNameError:
        known = [n for e in self.entries(*kinds) for n in (e.name, *e.aliases)]
        listing = f"{kinds[0]}s" if tuple(kinds) in (("grammar",), ("metric",)) else "models"
        listing = "players" if set(kinds) <= set(PLAYERS) else listing
        return unknown(" or ".join(kinds), name, list(dict.fromkeys(known)), f"`icy list {listing}` shows all.")

    def match(self, pattern: str | Iterable[str] | None, *kinds: str) -> list[Entry]:
        """Entries whose name or qualified name matches a shell pattern (`*GRU`, `sender/RNN*`, `all`), any case.

        A pattern without wildcards is a name, looked up by `get`. Several patterns give the union, in order.

        Raises:
            UnknownNameError: a pattern matches nothing.
        """
        if pattern is None:
            return self.entries(*kinds)
        patterns = [pattern] if isinstance(pattern, str) else list(pattern)
        found: dict[str, Entry] = {}
        for one in patterns:
            for entry in self._match_one(one, kinds):
                found.setdefault(entry.qualified, entry)
        return list(found.values())

    def _match_one(self, pattern: str, kinds: tuple[str, ...]) -> list[Entry]:
        if pattern == "all":
            return self.entries(*kinds)
        if not any(c in pattern for c in "*?["):
            return [self.get(pattern, *kinds)]
        hits = [
            e
            for e in self.entries(*kinds)
            if any(fnmatch.fnmatchcase(n.lower(), pattern.lower()) for n in (e.name, e.qualified))
        ]
        if not hits:
            raise self._unknown(pattern, kinds or KINDS)
        return hits

    def additions(self) -> Additions:
        """What the user has added, so that another process can do the same."""
        entries = self._entries.values()
        loaded = {e.origin for e in entries if not e.origin.startswith((FILE_PREFIX, "icy.", "__main__"))}
        return Additions(
            [(file, Path(file).read_text() if Path(file).exists() else "") for file in self.plugin_files],
            sorted(loaded),
            [entry for entry in entries if entry.origin == "__main__"],
        )

    def add_all(self, additions: Additions) -> None:
        """Register what another process has added.

        Raises:
            PluginError: a file fails to import.
        """
        for path, text in additions.files:
            if Path(path).is_file() and Path(path).read_text() == text:
                self.load_file(path)
            else:
                self.load_text(path, text)
        for module in additions.modules:
            try:
                importlib.import_module(module)
            except ImportError as error:  # it may not be needed; if it is, its names will be missed
                log.warning("The module '%s', which registers models or grammars, is not here: %s", module, error)
        for entry in additions.entries:
            self.add(entry)

    # -- plug-ins ------------------------------------------------------------------------------------------------

    def load_all(self) -> None:
        """Import the built-in zoo and every installed plug-in package (entry points), once."""
        if self._loaded:
            return
        self._loaded = True  # first, because the modules imported below may look names up
        for module in BUILT_IN:
            importlib.import_module(module)
        for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
            try:
                point.load()
            except Exception as error:  # one broken package must not keep the user from all the rest
                what = f"{type(error).__name__}: {error}"
                log.warning("The plug-in '%s' (%s) cannot be loaded and is left out: %s", point.name, point.value, what)

    def load_file(self, path: str | Path) -> None:
        """Import one plug-in file, whose decorators register what it holds.

        Raises:
            PluginError: the file is missing or fails to import.
        """
        file = Path(path).resolve()
        if str(file) in self.plugin_files:
            return
        self.load_all()
        if not file.is_file():
            raise PluginError(f"The plug-in file '{path}' does not exist.")
        _import_file(file, str(file))
        self.plugin_files.append(str(file))

    def load_text(self, path: str, text: str) -> None:
        """Import a plug-in file of another machine, as if it were at its path there.

        Args:
            path: where it is there, as `plugin_files` has it.
            text: what is in it.

        Raises:
            PluginError: it fails to import.
        """
        if path in self.plugin_files:
            return
        self.load_all()
        # Kept as long as the process lives: what is defined in it may be asked for its source.
        folder = Path(tempfile.mkdtemp(prefix="icy-plugin-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        file = folder / Path(path).name
        file.write_text(text)
        _import_file(file, path)
        self.plugin_files.append(path)


def _bind(family: Entry, cell: Entry) -> Entry:
    aliases = tuple(f"{alias}:{cell.name}" for alias in family.aliases)
    description = f"{family.description.rstrip('.')}, with the {cell.name} cell."
    return replace(family, name=f"{family.name}:{cell.name}", aliases=aliases, cell=cell, description=description)


registry = Registry()


class Card(TypedDict, total=False):
    """What an entry says of itself; see Entry."""

    description: str
    source: str
    version: int
    defaults: Mapping[str, Any]
    published: Mapping[str, Any]
    aliases: Sequence[str]
    takes_cell: bool
    representations: Sequence[str]


def _register(kind: str, name: str, target: str | None, card: Card) -> Callable[[F], F]:
    def record(factory: object, origin: str) -> None:
        doc = (getattr(factory, "__doc__", None) or "").strip().partition("\n")[0]
        registry.add(
            Entry(
                kind,
                name,
                factory,
                description=card.get("description", "" if isinstance(factory, str) else doc),
                source=card.get("source", ""),
                version=card.get("version", 1),
                defaults=dict(card.get("defaults", {})),
                published=dict(card.get("published", {})),
                aliases=tuple(card.get("aliases", ())),
                takes_cell=card.get("takes_cell", False),
                representations=tuple(card.get("representations", ())),
                origin=origin,
                digest=_source_digest(factory, origin),
            )
        )

    def decorate(factory: F) -> F:
        record(factory, getattr(factory, "__module__", "?"))
        return factory

    if target is not None:
        record(target, target.partition(":")[0])
    return decorate


def register_sender(name: str, target: str | None = None, **card: Unpack[Card]) -> Callable[[F], F]:
    """Register a sender: a factory `(space, message_length, vocab_size, hidden_size, **options) -> nn.Module`.

    Use it as a decorator above a class or function, or pass `target="module:object"` to register one that is
    imported only when it is first made. The first line of the docstring is the description, unless one is given.

    Args:
        name: how users will call it; without ':', '/' or '+'.
        target: where to find the factory, instead of decorating it.
        **card: description, source, version, defaults, published, aliases, takes_cell, representations; see Entry.

    Raises:
        DuplicateNameError: another module has registered the name.
    """
    return _register("sender", name, target, card)


def register_receiver(name: str, target: str | None = None, **card: Unpack[Card]) -> Callable[[F], F]:
    """Register a receiver: a factory `(space, message_length, vocab_size, hidden_size, **options) -> nn.Module`.

    Arguments and errors as for `register_sender`.
    """
    return _register("receiver", name, target, card)


def register_cell(name: str, target: str | None = None, **card: Unpack[Card]) -> Callable[[F], F]:
    """Register a recurrent cell: a factory `(input_size, hidden_size) -> icy.models.cells.Cell`.

    It appears at once in every family that takes a cell. Arguments and errors as for `register_sender`.
    """
    return _register("cell", name, target, card)


def register_grammar(name: str, target: str | None = None, **card: Unpack[Card]) -> Callable[[F], F]:
    """Register a grammar; `icy.grammars.base` says what its factory takes.

    Arguments and errors as for `register_sender`.
    """
    return _register("grammar", name, target, card)


def register_metric(name: str, target: str | None = None, **card: Unpack[Card]) -> Callable[[F], F]:
    """Register a metric: a function `(meanings, messages=None, **conventions) -> icy.metrics.Score`.

    `icy.metrics.Table.of(meanings, messages)` reads whatever such a function is called with. Arguments and errors as
    for `register_sender`.
    """
    return _register("metric", name, target, card)


def register_speaker(name: str, target: str | None = None, **card: Unpack[Card]) -> Callable[[F], F]:
    """Register a speaker of S2B: a class or function that makes an `icy.s2b.Player`, without arguments.

    Arguments and errors as for `register_sender`.
    """
    return _register("speaker", name, target, card)


def register_listener(name: str, target: str | None = None, **card: Unpack[Card]) -> Callable[[F], F]:
    """Register a listener of S2B: a class or function that makes an `icy.s2b.Player`, without arguments.

    Arguments and errors as for `register_sender`.
    """
    return _register("listener", name, target, card)


def list_models(pattern: str | Iterable[str] | None = None) -> list[str]:
    """Names of the registered senders and receivers that match a shell pattern, qualified, as in `sender/FC2L`.

    Example:
        >>> import icy
        >>> icy.list_models("sender/FC*")
        ['sender/FC1L', 'sender/FC2L']
    """
    return [entry.qualified for entry in registry.match(pattern, *SIDES)]


def list_grammars(pattern: str | Iterable[str] | None = None) -> list[str]:
    """Names of the registered grammars that match a shell pattern.

    Example:
        >>> import icy
        >>> icy.list_grammars("shuf*")
        ['shuf', 'shufdet']
    """
    return [entry.name for entry in registry.match(pattern, "grammar")]


def list_metrics(pattern: str | Iterable[str] | None = None) -> list[str]:
    """Names of the registered metrics that match a shell pattern.

    Example:
        >>> import icy
        >>> icy.list_metrics("*dis")
        ['bosdis', 'posdis']
    """
    return [entry.name for entry in registry.match(pattern, "metric")]


def list_players(pattern: str | Iterable[str] | None = None) -> list[str]:
    """Names of the registered players of S2B that match a shell pattern, qualified, as in `speaker/posdis`.

    Example:
        >>> import icy
        >>> icy.list_players("*/posdis")
        ['speaker/posdis', 'listener/posdis']
    """
    return [entry.qualified for entry in registry.match(pattern, *PLAYERS)]


def canonical(name: str) -> str:
    """The name of a model or grammar that is called so, under the side that was given if any; or what was given.

    Example:
        >>> canonical("RNN:GRU"), canonical("comp"), canonical("sender/FC2L"), canonical("FC*")
        ('RNN1L:GRU', 'concat', 'sender/FC2L', 'FC*')
    """
    try:
        entry = registry.get(name, *SIDES, "grammar")
    except UnknownNameError:
        return name
    return entry.qualified if "/" in name else entry.name
