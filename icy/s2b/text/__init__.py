"""Text models as players of S2B (MetaRG24): prompts, answers, and scripted models.

Each is imported on first use.
"""

from icy.core.register import register_text_model

_MODELS = {
    "scripted-oracle": ("scripted:OracleModel", "Knows the game, and is always right; for tests.", "icy"),
    "scripted-yes": ("scripted:YesModel", "Always answers 0; for tests.", "icy"),
    "scripted-reader": (
        "scripted:ReadingModel",
        "Reads only the prompt, and plays as the player after #, by default nearest; for tests.",
        "icy",
    ),
}

for _name, (_place, _description, _source) in _MODELS.items():
    register_text_model(_name, f"{__name__}.{_place}", description=_description, source=_source)
