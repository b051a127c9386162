"""Simulated players of the study. Each is imported on first use."""

from icy.core.register import register_study_player

_PLAYERS = {
    "random-letters": ("simulated:RandomPlayer", "Types random letters and never opens Train.", "icy"),
    "constant": ("simulated:ConstantPlayer", "Always types the same code: the first that it sees.", "Icy22 appendix K"),
    "memoriser": ("simulated:Memoriser", "Remembers every code; for a new shape copies a similar shape's code.", "icy"),
    "composer": ("simulated:Composer", "Learns a word for every colour and shape, and types both words.", "icy"),
    "family": ("simulated:FamilyComposer", "A composer that also fits permuted letters and swapped words.", "icy"),
    "careless": ("simulated:CarelessPlayer", "A composer that sees fewer cards, forgets and mistypes.", "icy"),
}

for _name, (_place, _description, _source) in _PLAYERS.items():
    register_study_player(_name, f"{__name__}.{_place}", description=_description, source=_source)
