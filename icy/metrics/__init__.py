"""Compositionality metrics for any table of meanings and messages, independent of training and of games.

Every metric takes meanings and messages, or one Language; its conventions are arguments, and it returns a Score. The
metrics are registered like a plug-in's, and each is imported on first use. Only metrics that train something, or count
on a GPU, import torch.

Example:
    >>> from icy import metrics
    >>> metrics.posdis([[0, 0], [0, 1], [1, 0], [1, 1]], [[1, 3], [1, 4], [2, 3], [2, 4]]).value
    1.0
"""

import lazy_loader

from icy.core.register import register_metric

# Modules, relative to this package. A module must not have the name of its function: importing it would replace it.

register_metric(
    "topsim",
    "icy.metrics.topographic.topsim:topsim",
    description="Topographic similarity: correlation between distances of meanings and of their messages.",
    source="Brighton and Kirby 2006; Lazaridou et al. 2018",
    aliases=("rho",),
    weighted=True,
)
register_metric(
    "posdis",
    "icy.metrics.information:posdis",
    description="Positional disentanglement: how far each position encodes a single attribute.",
    source="Chaabouni et al. 2020",
    weighted=True,
)
register_metric(
    "bosdis",
    "icy.metrics.information:bosdis",
    description="Bag-of-symbols disentanglement: how far the count of each symbol encodes a single attribute.",
    source="Chaabouni et al. 2020",
    weighted=True,
)
register_metric(
    "hce",
    "icy.metrics.residual:hce",
    description="Human compositional entropy: one less residual entropy with every position at its best attribute.",
    source="Icy22 appendix D",
    aliases=("compent",),
    weighted=True,
)
register_metric(
    "residual_entropy",
    "icy.metrics.residual:residual_entropy",
    description="Residual entropy: entropy of attributes given the positions assigned to each.",
    source="Resnick et al. 2020",
    aliases=("resent",),
    weighted=True,
    lower_is_better=True,
)
register_metric(
    "context_independence",
    "icy.metrics.context:context_independence",
    description="Context independence: how well each attribute value and one token predict each other.",
    source="Bogin, Geva and Berant 2018",
    aliases=("CI",),
    weighted=True,
)
register_metric(
    "ami",
    "icy.metrics.corpus:ami",
    description="Adjusted mutual information between whole messages and whole meanings.",
    source="Vinh et al. 2009; Mu and Goodman 2021",
    weighted=True,
)
register_metric(
    "tre",
    "icy.metrics.reconstruction:tre",
    description="Tree reconstruction error: how far messages are from a composition of their parts; lower is better.",
    source="Andreas 2019",
    aliases=("TRE7",),
    weighted=True,
    lower_is_better=True,
)
register_metric(
    "cbm",
    "icy.metrics.concept_matching:cbm",
    description="Concept best matching: share of words that translate into a concept of their phrase.",
    source="CBM24",
    weighted=True,
)
register_metric(
    "factor_vae",
    "icy.metrics.disentanglement:factor_vae",
    description="FactorVAE score: how well the code that varies least identifies the attribute held fixed.",
    source="Kim and Mnih 2018",
    aliases=("FactorVAE",),
    weighted=True,
)
register_metric(
    "mig",
    "icy.metrics.disentanglement:mig",
    description="Mutual information gap: how far a single code encodes each attribute.",
    source="Chen et al. 2018",
    weighted=True,
)
register_metric(
    "modularity",
    "icy.metrics.disentanglement:modularity",
    description="Modularity: how far each code encodes a single attribute.",
    source="Ridgeway and Mozer 2018",
    weighted=True,
)
register_metric(
    "dci",
    "icy.metrics.prediction:dci",
    description="DCI: how far codes are important for one attribute, attributes depend on one code, or both.",
    source="Eastwood and Williams 2018",
)
register_metric(
    "sap",
    "icy.metrics.prediction:sap",
    description="Separated attribute predictability: how much better one code predicts an attribute than the next.",
    source="Kumar, Sattigeri and Balakrishnan 2018",
)
register_metric(
    "conflict_count",
    "icy.metrics.prediction:conflict_count",
    description="Conflict count: how often a token at a position has an unusual meaning; lower is better.",
    source="Kuciński et al. 2021",
    lower_is_better=True,
)
register_metric(
    "npmi",
    "icy.metrics.context:npmi",
    description="Normalised pointwise mutual information: how strongly each attribute value goes with its best token.",
    source="Bouma 2009; Lipinski et al. 2024",
)
register_metric(
    "mutual_information",
    "icy.metrics.corpus:mutual_information",
    description="Mutual information between whole messages and whole meanings, in bits.",
    source="Shannon 1948",
)
register_metric(
    "message_entropy",
    "icy.metrics.corpus:message_entropy",
    description="Entropy of whole messages, in bits; needs no meanings.",
    source="Shannon 1948",
)
register_metric(
    "unique_messages",
    "icy.metrics.corpus:unique_messages",
    description="Number of distinct messages; needs no meanings.",
    source="Guo et al. 2022; CBM24",
)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
