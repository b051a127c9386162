"""Players without learning. They register like plug-ins, and each is imported on first use."""

from icy.core.register import register_listener, register_speaker

_SPEAKERS = {
    "posdis": ("PosdisSpeaker", "One token per dimension, at its position, for the value.", "MetaRG24, Posdis-Speaker"),
    "bosdis": ("BosdisSpeaker", "One token per value of any dimension; their order has no meaning.", "icy"),
    "holistic": ("HolisticSpeaker", "One random sentence per meaning, drawn again in every episode.", "icy"),
    "digital": ("DigitalSpeaker", "The cheating language: the part of [-1, 1] with each number, out of V.", "MetaRG22"),
    "random": ("RandomSpeaker", "Random tokens.", "icy"),
}
_LISTENERS = {
    "binding": (
        "binding:BindingListener",
        "Binds tokens to numbers by memory and inference, without learning.",
        "icy",
    ),
    "nearest": ("nearest:NearestListener", "Reads a number as the value of the nearest one described so far.", "icy"),
    "oracle": ("listeners:OracleListener", "Knows all meanings, and is always right.", "icy"),
    "posdis": ("listeners:PosdisListener", "Reads the posdis speaker, unpermuted; never answers none.", "MetaRG24"),
    "digital": ("listeners:DigitalListener", "Reads the cheating language, unpermuted.", "MetaRG22"),
    "always-no": ("listeners:AlwaysNo", "Always answers that the target's meaning is not there.", "icy"),
    "novelty": ("deaf:NoveltyListener", "Never listens: answers no to a stimulus that it has seen before.", "icy"),
    "novelty-meaning": (
        "deaf:MeaningNoveltyListener",
        "Never listens: answers no to a meaning that it has seen before.",
        "icy",
    ),
    "order": ("deaf:OrderListener", "Never listens: answers yes to the meaning that is next by index.", "icy"),
    "random": ("listeners:RandomListener", "Decides at random.", "icy"),
}

for _name, (_class, _description, _source) in _SPEAKERS.items():
    register_speaker(_name, f"{__name__}.speakers:{_class}", description=_description, source=_source)
for _name, (_place, _description, _source) in _LISTENERS.items():
    register_listener(_name, f"{__name__}.{_place}", description=_description, source=_source)
