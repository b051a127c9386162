"""icy: which composition functions does an architecture learn easily, and which not?

The names below are loaded on first use, so that `import icy` and the command line's quick answers (`icy --help`,
`icy list`) do not wait for torch.

Example:
    >>> import icy
    >>> icy.list_grammars("shuf*")
    ['shuf', 'shufdet']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icy.core.moved import answer_old_addresses
from icy.version import __version__

answer_old_addresses()

# No package or module directly in `icy` may have the name of a function here: Python binds an imported submodule in its
# package, in the function's place.
_WHERE = {
    "Atlas": "icy.analysis.atlas.atlas:Atlas",
    "IcyError": "icy.core.errors:IcyError",
    "Language": "icy.languages.language:Language",
    "MeaningSpace": "icy.languages.meanings:MeaningSpace",
    "ProbeResult": "icy.experiments.results:ProbeResult",
    "Watcher": "icy.experiments.watcher:Watcher",
    "Reproduction": "icy.experiments.reproduction:Reproduction",
    "atlas": "icy.analysis.atlas.atlas:atlas",
    "create_receiver": "icy.models:create_receiver",
    "create_sender": "icy.models:create_sender",
    "end_to_end": "icy.experiments.end_to_end:end_to_end",
    "EndToEndResult": "icy.experiments.results:EndToEndResult",
    "games": "icy.games",
    "list_grammars": "icy.core.registry:list_grammars",
    "list_metrics": "icy.core.registry:list_metrics",
    "list_models": "icy.core.registry:list_models",
    "list_players": "icy.core.registry:list_players",
    "make_language": "icy.grammars:make_language",
    "metrics": "icy.metrics",
    "probe": "icy.experiments.probe:probe",
    "register_cell": "icy.core.registry:register_cell",
    "register_core": "icy.core.registry:register_core",
    "register_grammar": "icy.core.registry:register_grammar",
    "register_listener": "icy.core.registry:register_listener",
    "register_metric": "icy.core.registry:register_metric",
    "register_perception": "icy.core.registry:register_perception",
    "register_reader": "icy.core.registry:register_reader",
    "register_receiver": "icy.core.registry:register_receiver",
    "register_sender": "icy.core.registry:register_sender",
    "register_speaker": "icy.core.registry:register_speaker",
    "register_study_player": "icy.core.registry:register_study_player",
    "register_text_model": "icy.core.registry:register_text_model",
    "register_world": "icy.core.registry:register_world",
    "report": "icy.experiments.report:report",
    "reproduce": "icy.experiments.reproduce:reproduce",
    "s2b": "icy.s2b",
    "sweep": "icy.experiments.sweep:sweep",
    "testing": "icy.testing",
    "train": "icy.experiments.train:train",
}

__all__ = [
    "Atlas",
    "EndToEndResult",
    "IcyError",
    "Language",
    "MeaningSpace",
    "ProbeResult",
    "Reproduction",
    "Watcher",
    "__version__",
    "atlas",
    "create_receiver",
    "create_sender",
    "end_to_end",
    "games",
    "list_grammars",
    "list_metrics",
    "list_models",
    "list_players",
    "make_language",
    "metrics",
    "probe",
    "register_cell",
    "register_core",
    "register_grammar",
    "register_listener",
    "register_metric",
    "register_perception",
    "register_reader",
    "register_receiver",
    "register_sender",
    "register_speaker",
    "register_study_player",
    "register_text_model",
    "register_world",
    "report",
    "reproduce",
    "s2b",
    "sweep",
    "testing",
    "train",
]

if TYPE_CHECKING:  # the same names once more, for type checkers and editors, which cannot see through __getattr__
    from icy import games, metrics, s2b, testing
    from icy.analysis.atlas.atlas import Atlas, atlas
    from icy.core.errors import IcyError
    from icy.core.registry import (
        list_grammars,
        list_metrics,
        list_models,
        list_players,
        register_cell,
        register_core,
        register_grammar,
        register_listener,
        register_metric,
        register_perception,
        register_reader,
        register_receiver,
        register_sender,
        register_speaker,
        register_study_player,
        register_text_model,
        register_world,
    )
    from icy.experiments.end_to_end import end_to_end
    from icy.experiments.probe import probe
    from icy.experiments.report import report
    from icy.experiments.reproduce import reproduce
    from icy.experiments.reproduction import Reproduction
    from icy.experiments.results import EndToEndResult, ProbeResult
    from icy.experiments.sweep import sweep
    from icy.experiments.train import train
    from icy.experiments.watcher import Watcher
    from icy.grammars import make_language
    from icy.languages.language import Language
    from icy.languages.meanings import MeaningSpace
    from icy.models import create_receiver, create_sender
else:  # hidden from type checkers: they would take any misspelt name for Any

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for (PEP 562), and keep it."""
        if name not in _WHERE:
            raise AttributeError(f"module 'icy' has no attribute '{name}'")
        from importlib import import_module

        module_name, _, attribute = _WHERE[name].partition(":")
        module = import_module(module_name)
        found = getattr(module, attribute) if attribute else module
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        """What is loaded and what would be."""
        return sorted({*globals(), *_WHERE})
