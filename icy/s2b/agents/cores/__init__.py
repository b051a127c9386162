"""Cores of agents that learn S2B: what remembers an episode. They register like plug-ins, imported on first use."""

from typing import TYPE_CHECKING

from icy.core.registry import register_core

_CORES = {
    "LSTM": ("lstm:LSTM", "LSTM of two layers, 256 and 128, each followed by a ReLU.", "MetaRG22, table of R2D2"),
    "LSTM-512": ("lstm:LSTM512", "LSTM of one layer of 512.", "the authors' later program"),
    "DNC": ("dnc:DNC", "Differentiable neural computer: a memory with content, usage and order.", "Graves et al. 2016"),
    "ESBN": ("esbn:ESBN", "Emergent symbols: keys for what was seen, and a controller that sees it too.", "MetaRG22"),
    "ESBN-strict": ("esbn:StrictESBN", "Emergent symbols: the controller sees nothing but keys.", "Webb et al. 2021"),
    "DCEM": ("dcem:DCEM", "Dual-coding episodic memory: words lead to what was seen, and back.", "Hill et al. 2020"),
    "PairMemory": ("pairs:PairMemory", "Attention over earlier pairs of a number and a token.", "icy"),
    "Transformer": ("transformer:Transformer", "Causal Transformer over the last steps of an episode.", "icy"),
}

for _name, (_place, _description, _source) in _CORES.items():
    register_core(_name, f"{__name__}.{_place}", description=_description, source=_source)

_WHERE = {"Core": "base", "Parts": "base", "SequenceCore": "base", "State": "base", "make_core": "factory"}

__all__ = ["Core", "Parts", "SequenceCore", "State", "make_core"]

if TYPE_CHECKING:
    from .base import Core, Parts, SequenceCore, State
    from .factory import make_core
else:

    def __getattr__(name: str) -> object:
        """Import a name on first access (PEP 562), and keep it."""
        if name not in _WHERE:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        from importlib import import_module

        globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
        return globals()[name]
