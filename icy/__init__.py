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

from icy.version import __version__

# The function `probe` lives in `icy.probing`: a module `icy.probe` would replace the function as soon as anyone
# imported it, because Python binds an imported submodule in its package.
_WHERE = {
    "Atlas": "icy.analysis.atlas:Atlas",
    "IcyError": "icy.errors:IcyError",
    "Language": "icy.language:Language",
    "MeaningSpace": "icy.meanings:MeaningSpace",
    "ProbeResult": "icy.results:ProbeResult",
    "Watcher": "icy.watcher:Watcher",
    "Reproduction": "icy.reproducing:Reproduction",
    "atlas": "icy.analysis.atlas:atlas",
    "create_receiver": "icy.models:create_receiver",
    "create_sender": "icy.models:create_sender",
    "end_to_end": "icy.endtoend:end_to_end",
    "EndToEndResult": "icy.endtoend:EndToEndResult",
    "list_grammars": "icy.registry:list_grammars",
    "list_metrics": "icy.registry:list_metrics",
    "list_models": "icy.registry:list_models",
    "list_players": "icy.registry:list_players",
    "make_language": "icy.grammars:make_language",
    "metrics": "icy.metrics",
    "probe": "icy.probing:probe",
    "register_cell": "icy.registry:register_cell",
    "register_grammar": "icy.registry:register_grammar",
    "register_listener": "icy.registry:register_listener",
    "register_metric": "icy.registry:register_metric",
    "register_receiver": "icy.registry:register_receiver",
    "register_sender": "icy.registry:register_sender",
    "register_speaker": "icy.registry:register_speaker",
    "reproduce": "icy.reproducing:reproduce",
    "s2b": "icy.s2b",
    "sweep": "icy.sweeping:sweep",
    "testing": "icy.testing",
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
    "list_grammars",
    "list_metrics",
    "list_models",
    "list_players",
    "make_language",
    "metrics",
    "probe",
    "register_cell",
    "register_grammar",
    "register_listener",
    "register_metric",
    "register_receiver",
    "register_sender",
    "register_speaker",
    "reproduce",
    "s2b",
    "sweep",
    "testing",
]

if TYPE_CHECKING:  # the same names once more, for type checkers and editors, which cannot see through __getattr__
    from icy import metrics, s2b, testing
    from icy.analysis.atlas import Atlas, atlas
    from icy.endtoend import EndToEndResult, end_to_end
    from icy.errors import IcyError
    from icy.grammars import make_language
    from icy.language import Language
    from icy.meanings import MeaningSpace
    from icy.models import create_receiver, create_sender
    from icy.probing import probe
    from icy.registry import (
        list_grammars,
        list_metrics,
        list_models,
        list_players,
        register_cell,
        register_grammar,
        register_listener,
        register_metric,
        register_receiver,
        register_sender,
        register_speaker,
    )
    from icy.reproducing import Reproduction, reproduce
    from icy.results import ProbeResult
    from icy.sweeping import sweep
    from icy.watcher import Watcher
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
