"""The registry maps names to factories: senders, receivers, recurrent cells, grammars, metrics, players, text models
and cores of S2B, worlds and perceptions of games, players of the study, readers of files, and kinds of jobs.

Built-in models register here exactly as plug-ins do. An entry holds a factory, or the string "module:object", which is
imported at its first use. So listing names never imports torch.

A family that takes a recurrent cell is registered once (`HierZero`) and listed once per cell (`HierZero:GRU`). So a
plug-in cell works in every family, and a plug-in family works with every cell. A family with choices is listed once,
and its options are part of its name (`Composed[cell=GRU,layers=2]`).
"""

from __future__ import annotations

import contextlib
import fnmatch
import importlib
import importlib.metadata
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from .choices import UnknownChoiceError, check_choices, split_name
from .code import FILE_PREFIX, edited_modules, files_of
from .entry import CORE as CORE
from .entry import ENTRY_KINDS as ENTRY_KINDS
from .entry import LISTENER as LISTENER
from .entry import PERCEPTION as PERCEPTION
from .entry import PLAYERS as PLAYERS
from .entry import READER as READER
from .entry import SIDES as SIDES
from .entry import SPEAKER as SPEAKER
from .entry import STUDY_PLAYER as STUDY_PLAYER
from .entry import TEXT_MODEL as TEXT_MODEL
from .entry import WORLD as WORLD
from .entry import Entry as Entry
from .errors import DuplicateNameError, IcyError, PluginError, UnknownNameError, unknown
from .importing import import_content, import_file, module_name
from .text import listed, natural, words

# Packages that register their entries on import.
BUILT_IN = (
    *("icy.models", "icy.grammars", "icy.metrics", "icy.languages.readers", "icy.text", "icy.s2b", "icy.games"),
    *("icy.study", "icy.context", "icy.experiments"),
)
ENTRY_POINT_GROUP = "icy.plugins"
MOST_NAMED = 5  # most entries named in an error

log = logging.getLogger(__name__)


class Additions(NamedTuple):
    """The user's plug-ins, in a form that can be sent to another process.

    Attributes:
        files: path and content of each plug-in file.
        modules: names of modules that register on import.
        entries: entries of a notebook or script, which other processes cannot import.
    """

    files: list[tuple[str, bytes]]
    modules: list[str]
    entries: list[Entry]


class Registry:
    """A collection of entries, looked up by name. icy uses the module-level `registry`."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Entry] = {}
        self._loaded = False
        self.plugin_files: list[str] = []  # in the order of loading, also for worker processes
        self._imported_before: dict[str, set[str]] = {}  # modules that were imported before a plug-in file

    # -- registering ---------------------------------------------------------------------------------------------

    def add(self, entry: Entry) -> None:
        """Register one entry.

        Raises:
            IcyError: the name contains ':', '/', '+' or a square bracket, or its choices cannot be part of a name.
            DuplicateNameError: another module has registered the name or an alias, or the plug-in file registers the
                name twice. A module that runs again may register again, for example a notebook cell.
        """
        names = {entry.name, *entry.aliases}
        check_choices(entry.qualified, entry.choices, entry.conditions)
        for name in names:
            if {*":/+[]"} & {*name}:
                signs = "':', '/', '+', '[' and ']'"
                raise IcyError(f"A {entry.kind} cannot be called '{name}': {signs} have a meaning in names.")
            existing = self._find(entry.kind, name)
            if existing is not None and existing.origin != entry.origin:
                raise DuplicateNameError(
                    f"A {entry.kind} called '{name}' is already registered by {existing.origin}; "
                    f"{entry.origin} must choose another name."
                )
            # A file's entries are forgotten before it is imported again.
            if existing is not None and entry.origin.startswith(FILE_PREFIX):
                file = getattr(sys.modules.get(entry.origin), "__file__", entry.origin)
                raise DuplicateNameError(
                    f"The plug-in file '{file}' registers two {entry.kind}s called '{name}'; give each its own name."
                )
        self._entries[(entry.kind, entry.name)] = entry

    @contextlib.contextmanager
    def holding(self, entry: Entry) -> Iterator[None]:
        """Register an entry within a `with` block.

        Raises:
            DuplicateNameError: as for `add`.
        """
        self.load_all()
        key = (entry.kind, entry.name)
        before = self._entries.pop(key, None)
        try:
            self.add(entry)
            yield
        finally:
            self._entries.pop(key, None)
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
        """Return every entry of the given kinds (default: all), sorted by kind and name.

        A family that takes a cell has one entry per cell; a family with choices has one entry, with its defaults.
        """
        self.load_all()
        found: list[Entry] = []
        for entry in self._entries.values():
            if entry.kind in (kinds or ENTRY_KINDS):
                if entry.choices:
                    found.append(self._with_choices(entry, {}))
                else:
                    found.extend(self._with_each_cell(entry) if entry.takes_cell else [entry])
        return sorted(found, key=lambda e: (ENTRY_KINDS.index(e.kind), natural(e.name)))

    def _with_choices(self, family: Entry, chosen: Mapping[str, object]) -> Entry:
        """Return a family bound to values of its choices. The values of `cell` are the registered cells."""
        if not family.takes_cell:
            return family.with_choices(chosen)
        cells = {e.name: e for e in self._entries.values() if e.kind == "cell"}
        first = [name for name in family.choices.get("cell", ()) if name in cells]
        choices = {**family.choices, "cell": tuple(dict.fromkeys([*first, *cells]))}
        return replace(family, choices=choices, cells=tuple(cells.values())).with_choices(chosen)

    def _with_each_cell(self, family: Entry) -> Iterator[Entry]:
        for cell in self._entries.values():
            if cell.kind == "cell":
                yield family.with_cell(cell)

    def get(self, name: str, *kinds: str) -> Entry:
        """Return the entry called `name` (canonical name, alias, or `kind/name`, in any case) among `kinds`.

        The name of a family with choices may have options: `Family[option=value,...]`, in any order.

        Raises:
            UnknownNameError: no entry has the name, or entries of several kinds have it and `name` has no kind, or the
                family does not have an option or a value.
        """
        self.load_all()
        kinds = kinds or ENTRY_KINDS
        side, slash, bare = name.partition("/")
        if slash and side in kinds:
            kinds, name = (side,), bare
        matches, wrong = self._look_up_each(name, kinds)
        if len(matches) > 1:
            several = not any({e.kind for e in matches} <= set(roles) for roles in (SIDES, PLAYERS))
            where = "is the name of entries of several kinds" if several else "exists on both sides"
            raise UnknownNameError(f"'{name}' {where}; write {' or '.join(e.qualified for e in matches)}.")
        if not matches:
            raise max(wrong, key=lambda error: error.understood) if wrong else self._unknown(name, kinds)
        return matches[0]

    def _look_up_each(self, name: str, kinds: Iterable[str]) -> tuple[list[Entry], list[UnknownChoiceError]]:
        """Return the entries of several kinds with a name, and the errors of families without one of its options."""
        matches: list[Entry] = []
        wrong: list[UnknownChoiceError] = []
        for kind in kinds:
            try:
                entry = self._lookup(kind, name)
            except UnknownChoiceError as error:
                wrong.append(error)
            else:
                matches += [] if entry is None else [entry]
        return matches, wrong

    def entries_of_factory(self, factory: object, *kinds: str) -> list[Entry]:
        """Return the entries of `kinds` (default: all) with this class or function as their factory.

        A family that takes a cell has one entry per cell.
        """
        address = f"{getattr(factory, '__module__', '?')}:{getattr(factory, '__qualname__', '?')}"
        return [entry for entry in self.entries(*kinds) if entry.factory is factory or entry.factory == address]

    def _lookup(self, kind: str, name: str) -> Entry | None:
        """Return the entry of a kind by its name or an alias. Ignore case if the result is unique.

        Raises:
            UnknownChoiceError: the name has an option or a value that its family does not have.
        """
        name, chosen = split_name(name)
        family_name, colon, cell_name = name.partition(":")
        family = self._find(kind, family_name) or self._in_any_case(kind, family_name)
        if family is not None and family.choices:
            return None if colon else self._with_choices(family, chosen or {})
        if chosen is not None:
            return None
        if not colon and (family is None or family.takes_cell):
            families = (e for e in self._entries.values() if e.kind == kind and any("{cell}" in a for a in e.aliases))
            bound = map(self._with_each_cell, families)
            return next((e for each in bound for e in each if name.lower() in map(str.lower, e.aliases)), None)
        if family is None or family.takes_cell != bool(colon):
            return None
        if not colon:
            return family
        cell = self._find("cell", cell_name) or self._in_any_case("cell", cell_name)
        return None if cell is None else family.with_cell(cell)

    def _in_any_case(self, kind: str, name: str) -> Entry | None:
        matches = [
            e for e in self._entries.values() if e.kind == kind and name.lower() in map(str.lower, (e.name, *e.aliases))
        ]
        return matches[0] if len(matches) == 1 else None

    def find_all(self, name: str) -> list[Entry]:
        """Return the entries of all kinds with a name. The name may begin with a kind, as in `sender/FC2L`."""
        self.load_all()
        kind, slash, bare = name.partition("/")
        kinds, bare = ((kind,), bare) if slash and kind in ENTRY_KINDS else (ENTRY_KINDS, name)
        return self._look_up_each(bare, kinds)[0]

    def plugin_hint(self, *kinds: str) -> str:
        """Return advice for an unknown name: load a plug-in, or use a name of the loaded plug-ins.

        Args:
            *kinds: possible kinds of the name.
        """
        how = '--plugin FILE, or plugin="FILE" in Python'
        if not self.plugin_files:
            return f"If it is in a plug-in, load its file: {how}."
        own = [e.qualified for e in self._entries.values() if e.origin.startswith(FILE_PREFIX) and e.kind in kinds]
        register = listed(own[:MOST_NAMED]) if own else f"no {listed(kinds, 'or')}"
        return f"The loaded plug-ins register {register}; load another plug-in with {how}."

    def _unknown(self, name: str, kinds: Sequence[str]) -> UnknownNameError:
        plain, chosen = split_name(name)
        if chosen is not None and (found := self._look_up_each(plain, kinds)[0]):
            return UnknownNameError(f"{found[0].qualified} has no options; write its name without brackets.")
        family, bracket, _ = name.partition("[")
        if chosen is None and bracket and any(entry.choices for entry in self.find_all(family)):
            return UnknownNameError(f"'{name}' is not a name with options; write {family}[option=value].")
        known = [n for e in self.entries(*kinds) for n in (e.name, *e.aliases)]
        several = {*kinds} <= {*SIDES} or len(kinds) > len(PLAYERS)
        listing = "players" if {*kinds} <= {*PLAYERS} else "models" if several else f"{kinds[0]}s"
        if others := dict.fromkeys(entry.kind for entry in self.find_all(name)):
            return UnknownNameError(f"No {listed(kinds, 'or')} is called '{name}', which is a {listed([*others])}.")
        hint = f"`icy list {listing}` shows all. {self.plugin_hint(*kinds)}"
        return unknown(listed(kinds, "or"), name, list(dict.fromkeys(known)), hint)

    def match(self, pattern: str | Iterable[str] | None, *kinds: str) -> list[Entry]:
        """Return the entries with a name or qualified name that matches a shell pattern (`*GRU`, `sender/RNN*`, `all`).

        Case is ignored. If a pattern matches no name, it is matched with aliases. A pattern without wildcards, or with
        options in brackets, is a name for `get`. Several patterns, in a list or separated by commas, give the union, in
        the order of the patterns.

        Raises:
            UnknownNameError: a pattern matches nothing.
        """
        if pattern is None:
            return self.entries(*kinds)
        patterns = words(pattern) or ([pattern] if isinstance(pattern, str) else [])
        matches: dict[str, Entry] = {}
        for one in patterns:
            for entry in self._match_one(one, kinds):
                matches.setdefault(entry.qualified, entry)
        return list(matches.values())

    def _match_one(self, pattern: str, kinds: tuple[str, ...]) -> list[Entry]:
        if pattern == "all":
            return self.entries(*kinds)
        if not any(c in pattern for c in "*?[") or split_name(pattern)[1] is not None:
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
            except ImportError as error:  # a run that needs the module fails when it looks up the name
                log.warning("The module '%s', which registers models or grammars, is missing: %s", module, error)
        for entry in additions.entries:
            self.add(entry)

    # -- plug-ins ------------------------------------------------------------------------------------------------

    def load_all(self) -> None:
        """Import the built-in packages and every installed plug-in package (entry points), once."""
        if self._loaded:
            return
        self._loaded = True  # set first, because the modules imported below may look up names
        for module in BUILT_IN:
            importlib.import_module(module)
        for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
            try:
                point.load()
            except Exception as error:  # a broken package must not disable the others
                what = f"{type(error).__name__}: {error}"
                log.warning("The plug-in '%s' (%s) cannot be loaded and is left out: %s", point.name, point.value, what)

    def load_file(self, path: str | Path) -> None:
        """Import a plug-in file. Its decorators register its models, grammars and other objects.

        A file is imported only once, unless the file, or a file that it imports, was edited since.

        Raises:
            PluginError: the file is missing or fails to import.
            DuplicateNameError: the file registers a name twice, or a name of another module.
        """
        try:
            file = Path(path).resolve()
        except ValueError as error:  # the path contains NUL
            raise PluginError(f"{str(path)!r} cannot be the path of a plug-in file: {error}.") from error
        plugin = module_name(str(file))
        again = str(file) in self.plugin_files
        if again:
            modules = files_of(plugin).keys()
            if plugin in sys.modules and not modules & {*edited_modules()}:
                return
            for name in modules - self._imported_before.get(plugin, set()):  # not those of the user's program
                sys.modules.pop(name, None)
            importlib.invalidate_caches()
        self.load_all()
        if not file.is_file():
            raise PluginError(f"The plug-in file '{path}' does not exist.")
        before = dict(self._entries)
        self._imported_before.setdefault(plugin, set(sys.modules))
        with self._anew(plugin):
            import_file(file, str(file))
        if not again:
            self.plugin_files.append(str(file))
        if self._entries == before:
            log.warning("The plug-in file '%s' registers nothing; does it lack @icy.register_sender?", path)

    @contextlib.contextmanager
    def _anew(self, plugin: str) -> Iterator[None]:
        """Remove the earlier entries of a plug-in file before it is imported, and all of them if the import fails."""
        self._forget(plugin)
        try:
            yield
        except BaseException:
            self._forget(plugin)
            raise

    def _forget(self, plugin: str) -> None:
        self._entries = {key: entry for key, entry in self._entries.items() if entry.origin != plugin}

    def load_files(self, paths: str | Path | Iterable[str | Path]) -> None:
        """Import one or several plug-in files. Errors as for `load_file`."""
        for path in [paths] if isinstance(paths, (str, Path)) else paths:
            self.load_file(path)

    def load_content(self, path: str, content: bytes) -> None:
        """Import the content of a plug-in file of another machine, under its path on that machine.

        Args:
            path: path on the other machine, as in `plugin_files`.
            content: content of the file, in its declared encoding.

        Raises:
            PluginError: the file fails to import.
        """
        if path in self.plugin_files:
            return
        self.load_all()
        with self._anew(module_name(path)):
            import_content(content, path)
        self.plugin_files.append(path)


def _fits(pattern: str, *names: str) -> bool:
    """Return whether any name matches a shell pattern, ignoring case."""
    return any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for name in names)


def without_choices(entries: Sequence[Entry]) -> list[Entry]:
    """Leave out families with choices, unless nothing else is left: wildcards of a training do not select them."""
    return [entry for entry in entries if not entry.choices] or list(entries)


registry = Registry()


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
