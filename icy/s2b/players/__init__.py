"""Speakers and listeners that do not learn. Each is imported on first use."""

from icy.core.register import register_listener, register_speaker

_SPEAKERS = {
    "posdis": ("PosdisSpeaker", "One token per dimension, at its position: the value.", "MetaRG24, Posdis-Speaker"),
    "bosdis": ("BosdisSpeaker", "A different token for every value of every dimension, in arbitrary order.", "icy"),
    "holistic": ("HolisticSpeaker", "A different random sentence for every meaning in every episode.", "icy"),
    "digital": (
        "DigitalSpeaker",
        "The cheating language: for each number, the index of its bin among V equal bins.",
        "MetaRG22",
    ),
    "random": ("RandomSpeaker", "Random tokens.", "icy"),
}
_LISTENERS = {
    "binding": ("binding:BindingListener", "Binds tokens to numbers by memory and inference; does not learn.", "icy"),
    "nearest": ("listeners:NearestListener", "Gives a number the value of the nearest known number.", "icy"),
    "oracle": ("listeners:OracleListener", "Knows all meanings and is always right.", "icy"),
    "posdis": (
        "listeners:PosdisListener",
        "Understands the posdis speaker if tokens are not renamed; never decides none.",
        "MetaRG24",
    ),
    "digital": (
        "listeners:DigitalListener",
        "Understands the cheating language if tokens are not renamed.",
        "MetaRG22",
    ),
    "always-no": ("listeners:AlwaysNo", "Always decides none: no stimulus has the target's meaning.", "icy"),
    "always-yes": ("listeners:AlwaysYes", "Always decides that the first stimulus has the target's meaning.", "icy"),
    "novelty": ("deaf:NoveltyListener", "Ignores messages: decides no for a stimulus that it has seen before.", "icy"),
    "novelty-meaning": (
        "deaf:MeaningNoveltyListener",
        "Ignores messages: decides no for a meaning that it has seen before.",
        "icy",
    ),
    "order": ("deaf:OrderListener", "Ignores messages: decides yes for the next query meaning by index.", "icy"),
    "random": ("listeners:RandomListener", "Decides at random.", "icy"),
}

for _name, (_class, _description, _source) in _SPEAKERS.items():
    register_speaker(_name, f"{__name__}.speakers:{_class}", description=_description, source=_source)
for _name, (_place, _description, _source) in _LISTENERS.items():
    register_listener(_name, f"{__name__}.{_place}", description=_description, source=_source)
