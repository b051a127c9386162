"""Simulated players of the study. They register like plug-ins, and each is imported on first use."""

from icy.core.register import register_study_player

_PLAYERS = {
    "random-letters": ("simulated:RandomPlayer", "Types random letters, and studies nothing.", "icy"),
    "constant": ("simulated:ConstantPlayer", "Types one and the same code always.", "Icy22 appendix K"),
    "memoriser": ("simulated:Memoriser", "Knows every code it was shown; for others copies the nearest.", "icy"),
    "composer": ("simulated:Composer", "Learns a word for every colour and shape, and puts them side by side.", "icy"),
    "family": ("simulated:FamilyComposer", "A composer that also fits permuted letters and orders of words.", "icy"),
    "careless": ("simulated:CarelessPlayer", "Composes, but looks at fewer cards, forgets and mistypes.", "icy"),
}

for _name, (_place, _description, _source) in _PLAYERS.items():
    register_study_player(_name, f"{__name__}.{_place}", description=_description, source=_source)
