"""The registry maps names to factories: senders, receivers, recurrent cells, grammars, metrics, players, text models
and cores of S2B, worlds and perceptions of games, players of the study, readers of files, and kinds of jobs.

Built-in models register here exactly as plug-ins do. An entry holds a factory, or the string "module:object", which is
imported when the entry is first created; so listing names never imports torch.

A family that takes a recurrent cell is registered once (`HierZero`) and listed once per cell (`HierZero:GRU`), so that
a plug-in cell works in every family, and a plug-in family with every cell.
"""

from __future__ import annotations

import contextlib
import fnmatch
import importlib
import importlib.metadata
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar, Unpack

from .docs import described, spell_out_arguments
from .entry import (
    CORE,
    ENTRY_KINDS,
    LISTENER,
    PERCEPTION,
    PLAYERS,
    READER,
    SIDES,
    SPEAKER,
    STUDY_PLAYER,
    TEXT_MODEL,
    WORLD,
    Entry,
    EntryFields,
)
from .errors import DuplicateNameError, IcyError, PluginError, UnknownNameError, unknown
from .plugins import FILE_PREFIX, import_content, import_file, source_digest
from .text import listed, natural, words
from .types import AnyFunction

__all__ = [
    "BUILT_IN",
    "CORE",
    "ENTRY_KINDS",
    "ENTRY_POINT_GROUP",
    "LISTENER",
    "PERCEPTION",
    "PLAYERS",
    "READER",
    "SIDES",
    "SPEAKER",
    "STUDY_PLAYER",
    "TEXT_MODEL",
    "WORLD",
    "Additions",
    "Entry",
    "EntryFields",
    "Registry",
    "canonical",
    "register_cell",
    "register_core",
    "register_grammar",
    "register_listener",
    "register_metric",
    "register_perception",
    "register_reader",
    "register_receiver",
    "register_sender",
    "register_speaker",
    "register_study_player",
    "register_text_model",
    "register_world",
    "registry",
]

# Packages that register on import; they list themselves.
BUILT_IN = (
    *("icy.models", "icy.grammars", "icy.metrics", "icy.languages.readers", "icy.s2b", "icy.games", "icy.study"),
    "icy.experiments",
)
ENTRY_POINT_GROUP = "icy.plugins"
SAME = "Arguments and errors as for"
MOST_NAMED = 5  # entries in an error

F = TypeVar("F")
log = logging.getLogger(__name__)


class Additions(NamedTuple):
    """Plug-ins that a user has registered, in a form that can be sent to another process.

    Attributes:
        files: path and content of each plug-in file.
        modules: names of modules that register on import.
        entries: entries of a notebook or script, which no other process can import.
    """

    files: list[tuple[str, bytes]]
    modules: list[str]
    entries: list[Entry]


class _Importing(NamedTuple):
    """The plug-in file that is being imported, and the kinds and names that it has registered so far."""

    file: str
    names: set[tuple[str, str]]


class Registry:
    """A collection of entries, looked up by name. icy uses the module-level `registry`."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}
        self._loaded = False
        self.plugin_files: list[str] = []  # in the order loaded, which worker processes follow
        self._importing: _Importing | None = None

    # -- registering ---------------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Register one entry.

        Raises:
            IcyError: the name holds a ':', '/' or '+'.
            DuplicateNameError: another module has taken the name or one of its aliases, or the same plug-in file has,
                further up. A module that is run again may register again, as when a notebook cell is run twice.
        """
        names = {entry.name, *entry.aliases}
        for name in names:
            if ":" in name or "/" in name or "+" in name:
                raise IcyError(f"A {entry.kind} cannot be called '{name}': ':', '/' and '+' have a meaning in names.")
            taken = self._find(entry.kind, name)
            if taken is not None and taken.origin != entry.origin:
                raise DuplicateNameError(
                    f"A {entry.kind} called '{name}' is already registered by {taken.origin}; "
                    f"{entry.origin} must choose another name."
                )
            if self._importing is not None and (entry.kind, name) in self._importing.names:
                raise DuplicateNameError(
                    f"The plug-in file '{self._importing.file}' registers two {entry.kind}s called '{name}'; "
                    "each needs a name of its own."
                )
        if self._importing is not None:
            self._importing.names.update((entry.kind, name) for name in names)
        self._entries[(entry.kind, entry.name)] = entry

    @contextlib.contextmanager
    def holding(self, entry: Entry) -> Iterator[None]:
        """Register an entry within a `with` block.

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
            self._entries |= {} if before is None else {key: before}

    def find(self, kind: str, name: str) -> Entry | None:
        """Return the entry of a kind by its name or an alias, or None."""
        self.load_all()
        return self._find(kind, name)

    def _find(self, kind: str, name: str) -> Entry | None:
        if (exact := self._entries.get((kind, name))) is not None:
            return exact
        return next((e for e in self._entries.values() if e.kind == kind and name in e.aliases), None)

    # -- looking up ----------------------------------------------------------------------------------------------

    def entries(self, *kinds: str) -> list[Entry]:
        """Return every entry of the given kinds (default: all), sorted by kind and name; of a family that takes a
        cell, one entry per cell."""
        self.load_all()
        found: list[Entry] = []
        for entry in self._entries.values():
            if entry.kind in (kinds or ENTRY_KINDS):
                found.extend(self._with_each_cell(entry) if entry.takes_cell else [entry])
        return sorted(found, key=lambda e: (ENTRY_KINDS.index(e.kind), natural(e.name)))

    def _with_each_cell(self, family: Entry) -> Iterator[Entry]:
        for cell in self._entries.values():
            if cell.kind == "cell":
                yield family.with_cell(cell)

    def get(self, name: str, *kinds: str) -> Entry:
        """Return the entry called `name` (canonical name, alias, or `kind/name`, in any case) among `kinds`.

        Raises:
            UnknownNameError: no entry has the name, or entries of several kinds have it and `name` does not say which
                is meant.
        """
        self.load_all()
        kinds = kinds or ENTRY_KINDS
        side, slash, bare = name.partition("/")
        if slash and side in kinds:
            kinds, name = (side,), bare
        found = [e for e in (self._lookup(kind, name) for kind in kinds) if e is not None]
        if len(found) > 1:
            several = not any({e.kind for e in found} <= set(roles) for roles in (SIDES, PLAYERS))
            where = "is the name of several things" if several else "exists on both sides"
            raise UnknownNameError(f"'{name}' {where}; write {' or '.join(e.qualified for e in found)}.")
        if not found:
            raise self._unknown(name, kinds)
        return found[0]

    def made_by(self, factory: object, *kinds: str) -> list[Entry]:
        """Return the entries among `kinds` (default: all) whose factory this class or function is; of a family that
        takes a cell, one entry per cell."""
        address = f"{getattr(factory, '__module__', '?')}:{getattr(factory, '__qualname__', '?')}"
        return [entry for entry in self.entries(*kinds) if entry.factory is factory or entry.factory == address]

    def _lookup(self, kind: str, name: str) -> Entry | None:
        """Return the entry of a kind by its name or an alias; in another case if only one entry has the name so."""
        family_name, colon, cell_name = name.partition(":")
        family = self._find(kind, family_name) or self._in_any_case(kind, family_name)
        if not colon and (family is None or family.takes_cell):
            bound = (self._with_each_cell(e) for e in self._entries.values() if e.kind == kind and e.takes_cell)
            return next((e for each in bound for e in each if name.lower() in map(str.lower, e.aliases)), None)
        if family is None or family.takes_cell != bool(colon):
            return None
        if not colon:
            return family
        cell = self._find("cell", cell_name) or self._in_any_case("cell", cell_name)
        return None if cell is None else family.with_cell(cell)

    def _in_any_case(self, kind: str, name: str) -> Entry | None:
        called = [
            e for e in self._entries.values() if e.kind == kind and name.lower() in map(str.lower, (e.name, *e.aliases))
        ]
        return called[0] if len(called) == 1 else None

    def named(self, name: str) -> list[Entry]:
        """Return the entries of every kind that have a name, which may begin with the kind, as in `sender/FC2L`."""
        self.load_all()
        kind, slash, bare = name.partition("/")
        kinds, bare = ((kind,), bare) if slash and kind in ENTRY_KINDS else (ENTRY_KINDS, name)
        return [entry for one in kinds if (entry := self._lookup(one, bare)) is not None]

    def plugin_hint(self, *kinds: str) -> str:
        """Return a sentence for a name that is unknown because a plug-in was not loaded, or has it spelled otherwise.

        Args:
            *kinds: that the name may be of.
        """
        how = '--plugin FILE, or plugin="FILE" in Python'
        if not self.plugin_files:
            return f"If a plug-in registers it, name the file: {how}."
        own = [e.qualified for e in self._entries.values() if e.origin.startswith(FILE_PREFIX) and e.kind in kinds]
        register = listed(own[:MOST_NAMED]) if own else f"no {listed(kinds, 'or')}"
        return f"The plug-ins that were given register {register}; another one is given by {how}."

    def _unknown(self, name: str, kinds: Sequence[str]) -> UnknownNameError:
        known = [n for e in self.entries(*kinds) for n in (e.name, *e.aliases)]
        several = {*kinds} <= {*SIDES} or len(kinds) > len(PLAYERS)
        listing = "players" if {*kinds} <= {*PLAYERS} else "models" if several else f"{kinds[0]}s"
        if others := dict.fromkeys(entry.kind for entry in self.named(name)):
            return UnknownNameError(f"No {listed(kinds, 'or')} is called '{name}', which is a {listed([*others])}.")
        hint = f"`icy list {listing}` shows all. {self.plugin_hint(*kinds)}"
        return unknown(listed(kinds, "or"), name, list(dict.fromkeys(known)), hint)

    def match(self, pattern: str | Iterable[str] | None, *kinds: str) -> list[Entry]:
        """Return the entries whose name or qualified name matches a shell pattern (`*GRU`, `sender/RNN*`, `all`).

        Case is ignored. A pattern that matches no name is matched with aliases. A pattern without wildcards is a name,
        looked up by `get`. Several patterns, in a list or between commas, give the union, in the order of the patterns.

        Raises:
            UnknownNameError: a pattern matches nothing.
        """
        if pattern is None:
            return self.entries(*kinds)
        patterns = words(pattern) or ([pattern] if isinstance(pattern, str) else [])
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
        entries = self.entries(*kinds)
        hits = [e for e in entries if _fits(pattern, e.name, e.qualified)]
        hits = hits or [e for e in entries if _fits(pattern, *e.aliases, *(f"{e.kind}/{a}" for a in e.aliases))]
        if not hits:
            raise self._unknown(pattern, kinds or ENTRY_KINDS)
        return hits

    def additions(self) -> Additions:
        """Return the user's plug-ins, for `add_all` in another process."""
        entries = self._entries.values()
        loaded = {e.origin for e in entries if not e.origin.startswith((FILE_PREFIX, "icy.", "__main__"))}
        return Additions(
            [(file, Path(file).read_bytes() if Path(file).exists() else b"") for file in self.plugin_files],
            sorted(loaded),
            [entry for entry in entries if entry.origin == "__main__"],
        )

    def add_all(self, additions: Additions) -> None:
        """Register the plug-ins of another process.

        Raises:
            PluginError: a file fails to import.
        """
        for path, content in additions.files:
            if Path(path).is_file() and Path(path).read_bytes() == content:
                self.load_file(path)
            else:
                self.load_content(path, content)
        for module in additions.modules:
            try:
                importlib.import_module(module)
            except ImportError as error:  # if a run needs it, looking up its name will fail
                log.warning("The module '%s', which registers models or grammars, is not here: %s", module, error)
        for entry in additions.entries:
            self.add(entry)

    # -- plug-ins ------------------------------------------------------------------------------------------------

    def load_all(self) -> None:
        """Import the built-in packages and every installed plug-in package (entry points), once."""
        if self._loaded:
            return
        self._loaded = True  # set first: the modules imported below may look names up
        for module in BUILT_IN:
            importlib.import_module(module)
        for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
            try:
                point.load()
            except Exception as error:  # one broken package must not disable the rest
                what = f"{type(error).__name__}: {error}"
                log.warning("The plug-in '%s' (%s) cannot be loaded and is left out: %s", point.name, point.value, what)

    def load_file(self, path: str | Path) -> None:
        """Import a plug-in file, whose decorators register what it defines.

        Raises:
            PluginError: the file is missing or fails to import.
            DuplicateNameError: it registers a name twice, or one that is taken.
        """
        try:
            file = Path(path).resolve()
        except ValueError as error:  # a NUL in it
            raise PluginError(f"The plug-in file {str(path)!r} cannot be: {error}.") from error
        if str(file) in self.plugin_files:
            return
        self.load_all()
        if not file.is_file():
            raise PluginError(f"The plug-in file '{path}' does not exist.")
        before = dict(self._entries)
        with self._each_name_once(str(path)):
            import_file(file, str(file))
        self.plugin_files.append(str(file))
        if self._entries == before:
            log.warning("The plug-in file '%s' registers nothing; does it lack @icy.register_sender?", path)

    def load_content(self, path: str, content: bytes) -> None:
        """Import the content of a plug-in file of another machine, as if it were at its path there.

        Args:
            path: its path there, as in `plugin_files`.
            content: of the file, in whatever encoding it declares.

        Raises:
            PluginError: it fails to import.
        """
        if path in self.plugin_files:
            return
        self.load_all()
        with self._each_name_once(path):
            import_content(content, path)
        self.plugin_files.append(path)

    @contextlib.contextmanager
    def _each_name_once(self, file: str) -> Iterator[None]:
        """Refuse, while a plug-in file is imported, a name that it has registered before; if it fails, forget it."""
        before, self._importing = self._importing, _Importing(file, set())
        try:
            yield
        except BaseException:
            for key in self._importing.names & self._entries.keys():
                if self._entries[key].origin.startswith(FILE_PREFIX):  # a module that it imported stays imported
                    del self._entries[key]
            raise
        finally:
            self._importing = before


def _fits(pattern: str, *names: str) -> bool:
    """Return whether any name fits a shell pattern, in any case."""
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in names)


registry = Registry()


def _register(kind: str, name: str, target: str | None, card: EntryFields) -> Callable[[F], F]:
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
                weighted=card.get("weighted", False),
                lower_is_better=card.get("lower_is_better", False),
                origin=origin,
                digest=source_digest(factory, origin),
            )
        )

    def decorate(factory: F) -> F:
        record(factory, getattr(factory, "__module__", "?"))
        return factory

    if target is not None:
        record(target, target.partition(":")[0])
    return decorate


def register_sender(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a sender: a factory `(space, message_length, vocab_size, hidden_size, **options) -> nn.Module`.

    Use it as a decorator of a class or function, or pass `target="module:object"` for a factory that is imported when
    it is first called. The description defaults to the first line of the docstring.

    Args:
        name: the name that users type; without ':', '/' or '+'.
        target: where to import the factory from, instead of decorating it.
        **card: fields of Entry, by name.

    Raises:
        DuplicateNameError: another module has registered the name.
    """
    return _register("sender", name, target, card)


def register_receiver(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a receiver: a factory `(space, message_length, vocab_size, hidden_size, **options) -> nn.Module`.

    Arguments and errors as for `register_sender`.
    """
    return _register("receiver", name, target, card)


def register_cell(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a recurrent cell: a factory `(input_size, hidden_size) -> icy.models.cells.Cell`.

    Every family that takes a cell lists it at once. Arguments and errors as for `register_sender`.
    """
    return _register("cell", name, target, card)


def register_grammar(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a grammar; `icy.grammars.grammar` describes its factory.

    Arguments and errors as for `register_sender`.
    """
    return _register("grammar", name, target, card)


def register_metric(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a metric: a function `(meanings, messages=None, **conventions) -> icy.metrics.Score`.

    `icy.metrics.Table.of(meanings, messages)` reads every form of these arguments. With `weighted=True` it reads
    `Table.weights`, in which a row counts as often as its weight says; otherwise `icy.metrics.evaluate` gives it the
    repeated rows. `lower_is_better=True` is for errors. Arguments and errors as for `register_sender`.
    """
    return _register("metric", name, target, card)


def register_speaker(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a speaker of S2B: a class or function without arguments that makes an `icy.s2b.Player`.

    Arguments and errors as for `register_sender`.
    """
    return _register("speaker", name, target, card)


def register_listener(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a listener of S2B: a class or function without arguments that makes an `icy.s2b.Player`.

    Arguments and errors as for `register_sender`.
    """
    return _register("listener", name, target, card)


def register_text_model(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a text model for the text players of S2B: a factory `(name, settings) -> icy.s2b.TextModel`.

    It is given what follows `#` in the name that users type, as in `--model transformers#FOLDER`, and the
    `icy.s2b.TextSettings`; it may also return a function from a TextRequest to a TextReply. Arguments and errors as for
    `register_sender`.
    """
    return _register(TEXT_MODEL, name, target, card)


def register_core(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a core of agents that learn S2B: a factory `(width, **options) -> icy.s2b.agents.cores.Core`.

    It is given the width of an input, and by name those of `capacity` and `parts` that it takes; see
    `icy.s2b.agents.cores.make_core`. Arguments and errors as for `register_sender`.
    """
    return _register(CORE, name, target, card)


def register_world(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a world of the multi-target games: a factory `(**options) -> icy.games.World`.

    It must work without options; see `icy.games.make_world`. Arguments and errors as for `register_sender`.
    """
    return _register(WORLD, name, target, card)


def register_perception(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a perception of the games: a factory `(shape, size, **options) -> nn.Module`.

    It is given the shape of an object and the size of what the module must put out for each, [batch, *shape] to [batch,
    size]; `icy.games.perception` describes it. Arguments and errors as for `register_sender`.
    """
    return _register(PERCEPTION, name, target, card)


def register_study_player(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a simulated player of the study: a factory `(**options) -> icy.study.players.StudyPlayer`.

    Arguments and errors as for `register_sender`.
    """
    return _register(STUDY_PLAYER, name, target, card)


def register_reader(name: str, target: str | None = None, **card: Unpack[EntryFields]) -> Callable[[F], F]:
    """Register a reader of files: a function `(file) -> icy.languages.readers.Found | None`.

    It is given an `icy.languages.readers.File`, and returns the columns of the file, or None if the file is not of its
    format. Readers of plug-ins are asked before icy's own. Arguments and errors as for `register_sender`.
    """
    return _register(READER, name, target, card)


def _describe_arguments(*others: AnyFunction) -> None:
    """Describe the arguments of the register functions, which are alike, in the docstring of each."""
    said = described(Entry)
    spell_out_arguments(register_sender, {name: said[name] for name in EntryFields.__annotations__})
    _, args, whole = (register_sender.__doc__ or "").partition("Args:")
    for function in others:
        before, same, _ = (function.__doc__ or "").rpartition(SAME)
        if same:
            function.__doc__ = f"{before.rstrip()}\n\n    {args}{whole}"


_describe_arguments(
    register_receiver, register_cell, register_grammar, register_metric, register_speaker, register_listener,
    register_text_model, register_core, register_world, register_perception, register_study_player, register_reader,
)  # fmt: skip


def canonical(name: str) -> str:
    """Resolve an alias of a model or grammar, keeping its `side/`; return any other name unchanged.

    Example:
        >>> canonical("RNN:GRU"), canonical("comp"), canonical("sender/FC2L"), canonical("FC*")
        ('RNN1L:GRU', 'concat', 'sender/FC2L', 'FC*')
    """
    try:
        entry = registry.get(name, *SIDES, "grammar")
    except UnknownNameError:
        return name
    return entry.qualified if "/" in name else entry.name
