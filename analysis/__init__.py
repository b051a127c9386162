"""Tables and plots of results, and the published numbers to hold them against.

The names below are loaded on first use, so that what needs one of them does not wait for the others. A function is not
among them where a submodule has its name: once imported, the submodule would stand in its place. So
`from icy.analysis.agreement import agreement`.

Example:
    >>> from icy.analysis import published
    >>> published("icy22/table20").query("model == 'FC2L' and grammar == 'rot'")["mean"].item()
    0.481
"""

from __future__ import annotations

from typing import TYPE_CHECKING

_WHERE = {
    "Atlas": "atlas",
    "BiasTable": "tables",
    "Placement": "placing",
    "PublishedTable": "literature",
    "bias_table": "tables",
    "difference_table": "tables",
    "end_to_end_agreement": "agreement",
    "end_to_end_table": "endtoend",
    "find_table": "literature",
    "plots": "plots",
    "published": "literature",
    "published_tables": "literature",
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
    from .agreement import end_to_end_agreement
    from .atlas import Atlas
    from .endtoend import end_to_end_table
    from .literature import PublishedTable, find_table, published, published_tables
    from .placing import Placement
    from .tables import BiasTable, bias_table, difference_table
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
