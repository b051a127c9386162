"""icy: which composition functions does an architecture learn easily, and which not?

The names in `__init__.pyi` are loaded on first use, so that `import icy` and quick commands (`icy --help`,
`icy list`) do not wait for torch.

Docstrings give the source of a model, grammar, metric or game as the short name of its paper:

- Perkins21: H. Perkins, "A Framework for Measuring Compositional Inductive Bias", 2021.
- Icy22: H. Perkins, "Neural networks can understand compositional functions that humans do not, in the context of
  emergent communication", 2021, the later version of Perkins21.
- CBM24: B. Carmeli, Y. Belinkov, R. Meir, "Concept-Best-Matching: Evaluating Compositionality in Emergent
  Communication", 2024.
- MuGoodman21: J. Mu, N. Goodman, "Emergent Communication of Generalizations", 2021.
- MetaRG22, MetaRG24: K. Denamganai, S. Missaoui, J. A. Walker, "Meta-Referential Games to Learn Compositional Learning
  Behaviours", the version of 2022 with one learning agent, and the version of 2024 with two.

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
