"""Tables and plots of results, published numbers to compare them with, and the atlas.

The names below are loaded on first use, so that no one waits for modules they do not need. Other functions are
imported from their modules, such as `icy.analysis.literature.agreement.agreement`.

Example:
    >>> from icy.analysis import published
    >>> published("icy22/table20").query("model == 'FC2L' and grammar == 'rot'")["mean"].item()
    0.481
"""

from __future__ import annotations

from typing import TYPE_CHECKING

# No name here may be that of a subpackage, such as `atlas`: Python binds an imported submodule in its package, in the
# place of a function. `plots` is the subpackage itself.
_WHERE = {
    "AcrossModels": "correlations",
    "Atlas": "atlas.atlas",
    "BiasTable": "tables.table",
    "Comparison": "tables.differences",
    "Equivalence": "statistics",
    "Placement": "atlas.placement",
    "MixedEffects": "mixed",
    "PublishedTable": "literature.catalogue",
    "WithinOrder": "correlations",
    "across_models": "correlations",
    "bias_table": "tables.bias",
    "compare": "tables.differences",
    "difference_table": "tables.bias",
    "end_to_end_agreement": "literature.agreement",
    "end_to_end_table": "tables.end_to_end",
    "equivalence": "statistics",
    "find_table": "literature.catalogue",
    "mixed_effects": "mixed",
    "paired_tests": "tables.paired",
    "plots": "plots",
    "published": "literature.catalogue",
    "published_tables": "literature.catalogue",
    "reliability": "correlations",
    "seeds_needed": "tables.paired",
    "within_model_order": "correlations",
}

__all__ = [
    "AcrossModels",
    "Atlas",
    "BiasTable",
    "Comparison",
    "Equivalence",
    "MixedEffects",
    "Placement",
    "PublishedTable",
    "WithinOrder",
    "across_models",
    "bias_table",
    "compare",
    "difference_table",
    "end_to_end_agreement",
    "end_to_end_table",
    "equivalence",
    "find_table",
    "mixed_effects",
    "paired_tests",
    "plots",
    "published",
    "published_tables",
    "reliability",
    "seeds_needed",
    "within_model_order",
]

if TYPE_CHECKING:  # the same names once more, for type checkers and editors, which cannot see through __getattr__
    from . import plots
    from .atlas.atlas import Atlas
    from .atlas.placement import Placement
    from .correlations import AcrossModels, WithinOrder, across_models, reliability, within_model_order
    from .literature.agreement import end_to_end_agreement
    from .literature.catalogue import PublishedTable, find_table, published, published_tables
    from .mixed import MixedEffects, mixed_effects
    from .statistics import Equivalence, equivalence
    from .tables.bias import bias_table, difference_table
    from .tables.differences import Comparison, compare
    from .tables.end_to_end import end_to_end_table
    from .tables.paired import paired_tests, seeds_needed
    from .tables.table import BiasTable
else:  # hidden from type checkers: they would take any misspelt name for Any

    def __getattr__(name: str) -> object:
        """Import a public name on first use (PEP 562), and keep it."""
        if name not in _WHERE:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        from importlib import import_module

        module = import_module(f"{__name__}.{_WHERE[name]}")
        found = module if name == _WHERE[name] else getattr(module, name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """Return all names, whether loaded yet or not."""
        return sorted({*globals(), *_WHERE})
