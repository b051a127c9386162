"""Compositionality metrics for any table of meanings and messages, independent of training and of games.

Every metric takes meanings and messages, or one Language; its conventions are arguments, and it returns a Score. The
metrics are registered just as a plug-in registers its own, and each is imported on first use. Only those that train
something, or count on a GPU, import torch.

Example:
    >>> from icy import metrics
    >>> metrics.posdis([[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 3], [1, 4], [2, 3], [2, 4]]).value
    1.0
"""

from typing import TYPE_CHECKING

from icy.core.registry import register_metric

# Modules, relative to this package. None has the name of a function in it, which importing it would replace.
_WHERE = {
    "Score": ".score",
    "Table": "..languages.table",
    "ami": ".mutual_information",
    "bosdis": ".information",
    "cbm": ".concept_matching",
    "cbm_by_sample_size": ".concept_matching",
    "context_independence": ".context",
    "evaluate": ".evaluation",
    "factor_vae": ".disentanglement",
    "hce": ".residual",
    "information_table": ".information",
    "mig": ".disentanglement",
    "modularity": ".disentanglement",
    "permutation_test": ".evaluation",
    "PermutationTest": ".significance",
    "posdis": ".information",
    "read_table": ".table_files",
    "residual_entropy": ".residual",
    "topsim": ".topographic.topsim",
    "tre": ".reconstruction.tre",
}

register_metric(
    "topsim",
    "icy.metrics.topographic.topsim:topsim",
    description="Topographic similarity: correlation between distances of meanings and of their messages.",
    source="Brighton and Kirby 2006; Lazaridou et al. 2018",
)
register_metric(
    "posdis",
    "icy.metrics.information:posdis",
    description="Positional disentanglement: how far each position tells of one attribute alone.",
    source="Chaabouni et al. 2020",
)
register_metric(
    "bosdis",
    "icy.metrics.information:bosdis",
    description="Bag-of-symbols disentanglement: how far the count of each symbol tells of one attribute alone.",
    source="Chaabouni et al. 2020",
)
register_metric(
    "hce",
    "icy.metrics.residual:hce",
    description="Human compositional entropy: one less residual entropy with every position at its best attribute.",
    source="Icy22 section 2.6",
)
register_metric(
    "residual_entropy",
    "icy.metrics.residual:residual_entropy",
    description="Residual entropy: what is not known of the attributes from the positions assigned to each.",
    source="Resnick et al. 2020",
)
register_metric(
    "context_independence",
    "icy.metrics.context:context_independence",
    description="Context independence: how well each attribute value and one token stand for each other.",
    source="Bogin, Geva and Berant 2018",
)
register_metric(
    "ami",
    "icy.metrics.mutual_information:ami",
    description="Adjusted mutual information between whole messages and whole meanings.",
    source="Vinh et al. 2009; Mu and Goodman 2021",
)
register_metric(
    "tre",
    "icy.metrics.reconstruction.tre:tre",
    description="Tree reconstruction error: how far messages are from a composition of their parts; lower is better.",
    source="Andreas 2019",
)
register_metric(
    "cbm",
    "icy.metrics.concept_matching:cbm",
    description="Concept best matching: share of words that translate into a concept of their phrase.",
    source="CBM24",
)
register_metric(
    "factor_vae",
    "icy.metrics.disentanglement:factor_vae",
    description="FactorVAE score: how well the code that varies least tells which attribute was held.",
    source="Kim and Mnih 2018",
)
register_metric(
    "mig",
    "icy.metrics.disentanglement:mig",
    description="Mutual information gap: how far each attribute is in one code alone.",
    source="Chen et al. 2018",
)
register_metric(
    "modularity",
    "icy.metrics.disentanglement:modularity",
    description="Modularity: how far each code tells of one attribute alone.",
    source="Ridgeway and Mozer 2018",
)

__all__ = [
    "PermutationTest",
    "Score",
    "Table",
    "ami",
    "bosdis",
    "cbm",
    "cbm_by_sample_size",
    "context_independence",
    "evaluate",
    "factor_vae",
    "hce",
    "information_table",
    "mig",
    "modularity",
    "permutation_test",
    "posdis",
    "read_table",
    "residual_entropy",
    "topsim",
    "tre",
]

if TYPE_CHECKING:  # the same names again, for type checkers and editors
    from icy.languages.table import Table

    from .concept_matching import cbm, cbm_by_sample_size
    from .context import context_independence
    from .disentanglement import factor_vae, mig, modularity
    from .evaluation import evaluate, permutation_test
    from .information import bosdis, information_table, posdis
    from .mutual_information import ami
    from .reconstruction.tre import tre
    from .residual import hce, residual_entropy
    from .score import Score
    from .significance import PermutationTest
    from .table_files import read_table
    from .topographic.topsim import topsim
else:

    def __getattr__(name: str) -> object:
        """Import a name on first access (PEP 562), and keep it."""
        if name not in _WHERE:
            raise AttributeError(f"module 'icy.metrics' has no attribute '{name}'")
        from importlib import import_module

        found = getattr(import_module(_WHERE[name], __name__), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """Return all names, loaded or not."""
        return sorted({*globals(), *_WHERE})
