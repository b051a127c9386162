"""Sphinx extension of the site: directives for generated parts, and small changes to the output of other extensions.

- `{generated} NAME ARGUMENT...` in Markdown: a table or text of `generated.py`.
- `.. public:: PACKAGE` in `{eval-rst}`: documentation of the public names of a package.
- `.. registered:: KIND...` in `{eval-rst}`: documentation of the classes and functions behind registered names.
- Before a build, pictures are drawn into `_generated/`, and each page of measurements gets a page in `benchmarks/`.
  After the build, the explorer of the atlas is added to the site.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from generated import PARTS, first_line
from measured import link_pages, write_pages
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains import Domain
from sphinx.domains.python import PyObject
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature
from sphinx.util.nodes import nested_parse_with_titles

from icy.analysis.literature.catalogue import published_sources
from icy.core.registry import registry

ARRAY = re.compile(r"ndarray\[tuple\[(?:~?typing\.)?Any, \.\.\.\], (?:~?numpy\.)?dtype\[((?:[^][]|\[[^][]*\])*)\]\]")
OF_PAPERS = ("cite", "papers", "changelog")  # pages that explain or list the papers
LONE_STAR = re.compile(r"(?<![\\*\w])\*(?=[\w\[])(?![^*]*\*)")
LONE_LETTER = re.compile(r"^(\s*:\w+ \w+: )([A-Z]\.)$")  # would begin a list
COLON = "\N{MODIFIER LETTER COLON}"  # replaces a colon while Napoleon runs
VALUES = {  # descriptions of values, which have no docstrings
    "icy.testing.CONTRACTS": "The class of cases of each kind of plug-in; `checks_of` returns its checks.",
}
API = Path(__file__).parents[1] / "api"
HOMES = ("icy", "icy.metrics", "icy.s2b", "icy.grammars", "icy.models", "icy.analysis", "icy.testing")
log = logging.getLogger(__name__)


class Generated(SphinxDirective):
    """Directive that inserts Markdown from `generated.py`."""

    required_arguments, optional_arguments = 1, 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the requested part."""
        arguments = self.arguments[1].split() if len(self.arguments) > 1 else []
        text = link_pages(PARTS[self.arguments[0]](*arguments), Path(self.env.srcdir), self.env.docname)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class Listed(SphinxDirective):
    """Directive that inserts lines of reStructuredText."""

    final_argument_whitespace = True

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the lines."""
        node = nodes.Element()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(list(self.lines()), source="generated"), node)
        return node.children


class Public(Listed):
    """Directive that documents the public names of a package: a table of all names, then the documentation of each.

    A name that several packages export is documented only in the first of HOMES. With the option `names`, only these
    names are documented, without the table, and the page of the package leaves them out.
    """

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"names": str.split}

    def lines(self) -> Iterator[str]:
        """Yield a table, then an autodoc directive for each name."""
        module = importlib.import_module(self.arguments[0])
        found = {name: one for name, one in vars_of(module).items() if not name.startswith("__")}
        names = self.options.get("names")
        if names is None:
            yield from (f".. automodule:: {module.__name__}", "")
            yield from _overview(module.__name__, found) if found else ()
            elsewhere = names_of_groups(module.__name__)
            names = [name for name in found if name not in elsewhere]
        for name in names:
            if not inspect.ismodule(found[name]) and home(found[name], name) == module.__name__:
                yield from documented(f"{module.__name__}.{name}", found[name])


def vars_of(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a module with their values."""
    return {name: getattr(module, name) for name in getattr(module, "__all__", ())}


def names_of_groups(package: str) -> list[str]:
    """Return the names of a package that the pages of its groups document."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(API.glob("*.md")))
    return " ".join(re.findall(rf"^\.\. public:: {package}\n   :names: (.+)$", text, re.MULTILINE)).split()


def _overview(package: str, found: dict[str, Any]) -> Iterator[str]:
    yield from (".. list-table::", "   :widths: 30 70", "")
    for name, one in found.items():
        summary = first_line(one) if not plain(one) else VALUES.get(f"{package}.{name}", "A value.")
        where = one.__name__ if inspect.ismodule(one) else f"~{home(one, name) or package}.{name}"
        yield from (f"   * - :py:obj:`{where}`", f"     - {summary}")
    yield ""


def home(one: object, name: str) -> str | None:
    """Return the package that a public name is documented in."""
    for package in HOMES:
        module = importlib.import_module(package)
        if name in getattr(module, "__all__", ()) and getattr(module, name) is one:
            return package
    return None


def plain(one: object) -> bool:
    """Return whether an object is a plain value, without a docstring."""
    return not (inspect.ismodule(one) or callable(one))


def documented(name: str, one: object) -> list[str]:
    """Return the autodoc directive for an object."""
    if inspect.isclass(one):
        return [f".. autoclass:: {name}", "   :members:", "   :inherited-members: Module, BaseException", ""]
    if plain(one):
        return [f".. py:data:: {name}", "", f"   {VALUES.get(name, 'A value.')}", ""]
    return [f".. autofunction:: {name}", ""]


class Registered(Listed):
    """Directive that documents the classes and functions that are registered under the given kinds, each once."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        """Yield an autodoc directive for each factory."""
        factories = {id(f): f for f in (entry.load() for entry in registry.entries(*self.arguments[0].split()))}
        for factory in factories.values():
            yield from (f".. auto{'class' if inspect.isclass(factory) else 'function'}:: {of_module(factory)}", "")


def of_module(one: Any) -> str:
    """Return the full name of a class or function."""
    return f"{one.__module__}.{one.__qualname__}"


# -- changes to output of other extensions ----------------------------------------------------------------------------


def readable_signature(
    app: Sphinx, what: str, name: str, one: Any, options: Any, arguments: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Use a function's own `__signature__` if it defines one, and shorten types to their aliases."""
    signature = getattr(one, "__signature__", None) if what == "function" else None
    if signature is not None:
        bare = signature.replace(return_annotation=inspect.Signature.empty)
        arguments, result = stringify_signature(bare, unqualified_typehints=True), signature.return_annotation
        returns = result if isinstance(result, str) else of_module(result)
    return _with_aliases(arguments), _with_aliases(returns)


def _with_aliases(text: str | None) -> str | None:
    """Replace the full type of arrays by its alias, such as `NDArray[int64]`, and a default factory by `{}`."""
    if text is None:
        return None
    return ARRAY.sub(r"NDArray[\1]", text).replace("<factory>", "{}")


def hide_colon(app: Sphinx, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    """Hide colons in docstrings of properties, as Napoleon would read the text before a colon as a type."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(":", COLON)


def keep_plain(app: Sphinx, what: str, name: str, one: Any, options: Any, lines: list[str]) -> None:
    """Escape text that looks like markup: a star before a word, as in [*stack, batch], and a letter, as in "L." """
    for i, line in enumerate(lines):
        parts = LONE_LETTER.sub(r"\1\\\2", line.replace(COLON, ":")).split("`")
        parts[::2] = [LONE_STAR.sub(r"\\*", part) for part in parts[::2]]
        lines[i] = "`".join(parts)


def within_signature(app: Sphinx, domain: Domain | None, node: nodes.Node | None) -> bool | None:
    """Suppress warnings about types in signatures, which may be internal ones without a page."""
    while node is not None:
        if isinstance(node, addnodes.desc_signature):
            return True
        node = node.parent
    return None


def write_measured_pages(app: Sphinx) -> None:
    """Write a page into docs/benchmarks/ for each page of measurements."""
    write_pages(Path(app.srcdir))


def link_measured_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to pages of measurements into links to their pages on the site."""
    source[0] = link_pages(source[0], Path(app.srcdir), page)


def link_included_pages(app: Sphinx, file: Path, page: str, source: list[str]) -> None:
    """Do the same for an included file, such as the README."""
    source[0] = link_pages(source[0], Path(app.srcdir), str(file))


def use_dashes(app: Sphinx, doctree: nodes.document) -> None:
    """Put a dash between an argument and its description, where Sphinx writes two hyphens."""
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def link_papers(app: Sphinx, doctree: nodes.document) -> None:
    """Link the first use of each paper's short name on a page, since readers cannot know what CBM24 is."""
    page, left = app.env.docname, {source["name"] for source in published_sources().values()}
    if page in OF_PAPERS:
        return
    for text in [*doctree.findall(nodes.Text)]:
        if isinstance(text.parent, nodes.paragraph) and any(name in text for name in left):
            pieces: list[nodes.Node] = []
            for piece in re.split(rf"\b({'|'.join(sorted(left))})\b", text):
                to = {"refdomain": "std", "reftype": "doc", "reftarget": "/cite", "refexplicit": True, "refdoc": page}
                shown = nodes.inline("", piece, classes=["xref", "std", "std-doc"])
                pieces.append(addnodes.pending_xref("", shown, **to) if piece in left else nodes.Text(piece))
                left.discard(piece)
            text.parent.replace(text, pieces)


def draw_pictures(app: Sphinx) -> None:
    """Draw the pictures, unless they are newer than their sources."""
    import gallery
    import pictures
    import rooms
    import sheets

    folder = Path(app.srcdir) / "_generated"
    root = Path(app.srcdir).parent
    sources = [*(Path(module.__file__) for module in (gallery, pictures, rooms, sheets)), root / "pyproject.toml"]
    sources += [*(root / "grammars").glob("*.py"), *(root / "icy" / "games" / "worlds").glob("*.py")]
    drawn = list(folder.glob("*.png"))
    if not drawn or min(map(os.path.getmtime, drawn)) < max(map(os.path.getmtime, sources)):
        log.info("drawing pictures ...")
        pictures.draw_all(folder)


DIRECTIVES: dict[str, type[Directive]] = {
    "generated": Generated,
    "public": Public,
    "registered": Registered,
}


def write_explorer(app: Sphinx, error: Exception | None) -> None:
    """Write the explorer of the atlas next to the pages of the site."""
    if error is None and app.builder.format == "html":
        from icy.analysis.atlas.atlas import atlas
        from icy.analysis.report.explorer import explorer_page

        Path(app.outdir, "explore.html").write_text(explorer_page(atlas()), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.setup_extension("mathml")
    app.setup_extension("addresses")
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    app.connect("builder-inited", draw_pictures)
    app.connect("builder-inited", write_measured_pages)
    app.connect("build-finished", write_explorer)
    app.connect("autodoc-process-signature", readable_signature)
    app.connect("autodoc-process-docstring", hide_colon, priority=100)  # before napoleon
    app.connect("autodoc-process-docstring", keep_plain, priority=900)  # and after it
    app.connect("warn-missing-reference", within_signature)
    app.connect("source-read", link_measured_pages)
    app.connect("include-read", link_included_pages)
    app.connect("doctree-read", use_dashes)
    app.connect("doctree-read", link_papers)
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"  # the word that docstrings use
    return {"parallel_read_safe": True, "parallel_write_safe": True}
