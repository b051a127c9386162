"""Tables and plots of results, published numbers to compare them with, and the atlas.

The names in `__init__.pyi` are loaded on first use, so that no one waits for modules they do not need. Other functions
are imported from their modules, such as `icy.analysis.literature.agreement.agreement`.

Example:
    >>> from icy.analysis import published
    >>> published("icy22/table20").query("model == 'FC2L' and grammar == 'rot'")["mean"].item()
    0.481
"""

import warnings

import lazy_loader

# No name there may be that of a subpackage, such as `atlas`: Python binds an imported submodule in its package, in the
# place of a function. `plots` is the subpackage itself.
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Load a public name; old ones are of versions before 0.3."""
    if name == "Comparison":
        warnings.warn("icy.analysis.Comparison is now icy.analysis.ResultsComparison", FutureWarning, stacklevel=2)
        name = "ResultsComparison"
    return _load(name)
