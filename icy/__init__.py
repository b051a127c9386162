"""icy: which composition functions does an architecture learn easily, and which not?

The names in `__init__.pyi` are loaded on first use, so that `import icy` and quick commands (`icy --help`,
`icy list`) do not wait for torch.

Example:
    >>> import icy
    >>> icy.list_grammars("shuf*")
    ['shuf', 'shufdet']
"""

import lazy_loader

# No package or module directly in `icy` may have the name of a function in `__init__.pyi`: Python binds an imported
# submodule in its package, in the function's place.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__.remove("list")  # which `from icy import *` would put in the place of Python's own
