"""Players without learning. They register like plug-ins, and each is imported on first use."""

from icy.core.register import register_listener, register_speaker

_SPEAKERS = {
    "posdis": ("PosdisSpeaker", "A token per dimension, at its position: the value.", "MetaRG24, Posdis-Speaker"),
    "bosdis": ("BosdisSpeaker", "A token of its own for every value, in an order that means nothing.", "icy"),
    "holistic": ("HolisticSpeaker", "A sentence of its own for every meaning, drawn anew in every episode.", "icy"),
    "digital": ("DigitalSpeaker", "The cheating language: in which of V equal parts each number lies.", "MetaRG22"),
    "random": ("RandomSpeaker", "Random tokens.", "icy"),
}
_LISTENERS = {
    "binding": (
        "binding:BindingListener",
        "Binds tokens to numbers by memory and inference alone.",
        "icy",
    ),
    "nearest": ("nearest:NearestListener", "Takes a number for the value of the nearest one heard of so far.", "icy"),
    "oracle": ("listeners:OracleListener", "Knows all meanings, and is always right.", "icy"),
    "posdis": ("listeners:PosdisListener", "Reads the posdis speaker, unpermuted; never says none.", "MetaRG24"),
    "digital": ("listeners:DigitalListener", "Reads the cheating language, unpermuted.", "MetaRG22"),
    "always-no": ("listeners:AlwaysNo", "Always says that the target's meaning is not there.", "icy"),
    "novelty": ("deaf:NoveltyListener", "Never listens: no to a stimulus that it was shown before.", "icy"),
    "novelty-meaning": (
        "deaf:MeaningNoveltyListener",
        "Never listens: no to a meaning that it was shown before.",
        "icy",
    ),
    "order": ("deaf:OrderListener", "Never listens: yes to the meaning that comes next by index.", "icy"),
    "random": ("listeners:RandomListener", "Decides at random.", "icy"),
}

for _name, (_class, _description, _source) in _SPEAKERS.items():
    register_speaker(_name, f"{__name__}.speakers:{_class}", description=_description, source=_source)
for _name, (_place, _description, _source) in _LISTENERS.items():
    register_listener(_name, f"{__name__}.{_place}", description=_description, source=_source)
