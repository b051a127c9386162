"""Simulated players of the study. They register like plug-ins, and each is imported on first use."""

from icy.core.register import register_study_player

_PLAYERS = {
    "random-letters": ("simple:RandomPlayer", "Types random letters, and studies nothing.", "icy"),
    "constant": ("simple:ConstantPlayer", "Types one and the same code always.", "Icy22 appendix K"),
    "memoriser": ("memory:Memoriser", "Knows every code it was shown; for others copies the nearest.", "icy"),
    "composer": ("composer:Composer", "Learns a word for every colour and shape, and puts them side by side.", "icy"),
    "family": ("family:FamilyComposer", "A composer that also fits permuted letters and orders of words.", "icy"),
    "careless": ("careless:CarelessPlayer", "Composes, but looks at fewer cards, forgets and mistypes.", "icy"),
}

for _name, (_place, _description, _source) in _PLAYERS.items():
    register_study_player(_name, f"{__name__}.{_place}", description=_description, source=_source)
