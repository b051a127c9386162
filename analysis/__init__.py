"""Tables and plots of results, and the published numbers to hold them against.

The names below are loaded on first use, so that what needs one of them does not wait for the others. A function is not
among them where a submodule has its name: once imported, the submodule would stand in its place. So
`from icy.analysis.literature.agreement import agreement`.

Example:
    >>> from icy.analysis import published
    >>> published("icy22/table20").query("model == 'FC2L' and grammar == 'rot'")["mean"].item()
    0.481
"""

from __future__ import annotations

from typing import TYPE_CHECKING

_WHERE = {
    "Atlas": "atlas.atlas",
    "BiasTable": "tables.table",
    "Placement": "atlas.placement",
    "PublishedTable": "literature.catalogue",
    "bias_table": "tables.bias",
    "difference_table": "tables.bias",
    "end_to_end_agreement": "literature.agreement",
    "end_to_end_table": "tables.end_to_end",
    "find_table": "literature.catalogue",
    "plots": "plots",
    "published": "literature.catalogue",
    "published_tables": "literature.catalogue",
}

__all__ = [
    "Atlas",
    "BiasTable",
    "Placement",
    "PublishedTable",
    "bias_table",
    "difference_table",
    "end_to_end_agreement",
    "end_to_end_table",
    "find_table",
    "plots",
    "published",
    "published_tables",
]

if TYPE_CHECKING:  # the same names once more, for type checkers and editors, which cannot see through __getattr__
    from . import plots
    from .atlas.atlas import Atlas
    from .atlas.placement import Placement
    from .literature.agreement import end_to_end_agreement
    from .literature.catalogue import PublishedTable, find_table, published, published_tables
    from .tables.bias import bias_table, difference_table
    from .tables.end_to_end import end_to_end_table
    from .tables.table import BiasTable
else:  # hidden from type checkers: they would take any misspelt name for Any

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for (PEP 562), and keep it."""
        if name not in _WHERE:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        from importlib import import_module

        module = import_module(f"{__name__}.{_WHERE[name]}")
        found = module if name == _WHERE[name] else getattr(module, name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """What is loaded and what would be."""
        return sorted({*globals(), *_WHERE})
