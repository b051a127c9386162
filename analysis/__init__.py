"""Tables and plots of results, published numbers to compare them with, and the atlas.

The names in `__init__.pyi` are loaded on first use, which keeps the import of icy fast. Other functions are imported
from their modules, such as `icy.analysis.literature.agreement.agreement`.

Example:
    >>> from icy.analysis import published
    >>> published("icy22/table20").query("model == 'FC2L' and grammar == 'rot'")["mean"].item()
    0.481
"""

import lazy_loader

from icy.core.importing import renamed

# No function there may have the name of a subpackage, such as `atlas`: importing the subpackage would overwrite it.
# `plots` is the subpackage itself.
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = renamed(__name__, {"Comparison": "ResultsComparison"}, _load)
