"""Compositionality metrics for any table of meanings and messages, independent of training and of games.

Every metric takes meanings and messages, or one Language; its conventions are arguments, and it returns a Score. A file
of this package that has the decorator `register_metric` is imported with the package, so a new metric is one new file.
Only metrics that train something, or count on a GPU, import torch, and pandas and scipy are imported on first use.

Example:
    >>> from icy import metrics
    >>> metrics.posdis([[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 3], [1, 4], [2, 3], [2, 4]]).value
    1.0
"""

import importlib
from pathlib import Path
from typing import Any

import lazy_loader

from icy.core.registry import registry

_FOLDER = Path(__file__).parent
for _file in sorted(_FOLDER.rglob("*.py")):
    if "\n@register_metric(" in _file.read_text(encoding="utf-8"):
        _name = ".".join([__name__, *_file.relative_to(_FOLDER).with_suffix("").parts])
        _module = importlib.import_module(_name)
        globals()[_file.stem] = getattr(_module, _file.stem, _module)  # a metric may have the name of its file

_of_stub, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    known = name in __all__ or name.startswith("_")
    entry = None if known else registry.find("metric", name)  # a metric that the stub does not name
    return _of_stub(name) if entry is None else entry.load()
