"""Types of the fields of specs and settings. A Literal is the only list of its names, except where a table also
describes each name; the tests then compare both.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from icy.core.streams import DrawsName
from icy.languages.language import Language
from icy.languages.meanings import MeaningSpace

Paths = str | Path | Iterable[str | Path]
Numbers = int | str | Iterable[int]
Grammars = str | Path | Language | Iterable[str | Path | Language]
Meanings = str | MeaningSpace | tuple[int, int]

ProtocolName = Literal["budget", "acquire", "generalise"]
RepresentationName = Literal["soft", "gumb", "discr", "gs", "qt", "cb"]
PresetName = Literal["default", "published"]
Protocols = ProtocolName | Literal["all"] | Iterable[ProtocolName]
Representations = RepresentationName | Literal["all"] | Iterable[RepresentationName]
Presets = PresetName | Literal["all"] | Iterable[PresetName]
Draws = DrawsName | Literal["all"] | Iterable[DrawsName]
Spaces = Meanings | Iterable[Meanings]
NormalisationName = Literal["sigmoid", "batch"]  # normalization of QT's scores
SymbolsName = Literal["V+1", "V"]
SplitName = Literal["random", "combinations"]
SideName = Literal["sender", "receiver"]
RunnerName = Literal["local", "ray"]
Rerun = Literal["missing", "failed", "always", "never"]
TrackerName = Literal["tensorboard", "mlflow", "wandb"]
SamplerName = Literal["tpe", "random"]
OrderName = Literal["longest", "given"]
Engine = Literal[
    "auto", "native", "broadcast", "vmap", "loop",
    "auto+plain", "auto+graph", "broadcast+plain", "broadcast+graph",
    "vmap+plain", "vmap+graph", "loop+plain", "loop+graph",
]  # fmt: skip
