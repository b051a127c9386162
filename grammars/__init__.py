"""Grammars: ways of composing messages from meanings, one per file.

`make_language` makes a language by the name of its grammar. Importing this package registers the built-in grammars;
`icy.grammars.grammar` describes how to write one.
"""

from icy.core.importing import renamed

from . import (
    concat,  # noqa: F401  (imported to register)
    hol,  # noqa: F401  (imported to register)
    pairsum,  # noqa: F401  (imported to register)
    perm,  # noqa: F401  (imported to register)
    proj,  # noqa: F401  (imported to register)
    rot,  # noqa: F401  (imported to register)
    shuf,  # noqa: F401  (imported to register)
    shufdet,  # noqa: F401  (imported to register)
)
from .grammar import Corruption, Grammar, WordTable
from .languages import (
    cached_language,
    canonical_name,
    check_side,
    expand_grammars,
    grammar_sides,
    grammar_version,
    is_grammar,
    make_language,
)

__all__ = [
    "Corruption",
    "Grammar",
    "WordTable",
    "cached_language",
    "canonical_name",
    "check_side",
    "expand_grammars",
    "grammar_sides",
    "grammar_version",
    "is_grammar",
    "make_language",
]

__getattr__ = renamed(__name__, {"Table": "WordTable"})
