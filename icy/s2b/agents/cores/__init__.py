"""Cores of agents that learn S2B: networks with a memory of the episode. Each is imported on first use."""

import lazy_loader

from icy.core.register import register_core

_CORES = {
    "LSTM": ("lstm:LSTM", "LSTM of two layers, 256 and 128, each followed by a ReLU.", "MetaRG22, table of R2D2"),
    "LSTM-512": ("lstm:LSTM512", "LSTM of one layer of 512.", "the authors' later program"),
    "DNC": ("dnc:DNC", "Differentiable neural computer: a memory with content, usage and order.", "Graves et al. 2016"),
    "ESBN": ("esbn:ESBN", "Emergent symbols: keys for stimuli, and a controller that also sees stimuli.", "MetaRG22"),
    "ESBN-strict": ("esbn:StrictESBN", "Emergent symbols: the controller sees keys only.", "Webb et al. 2021"),
    "DCEM": ("dcem:DCEM", "Dual-coding episodic memory: words retrieve stimuli and vice versa.", "Hill et al. 2020"),
    "PairMemory": ("pairs:PairMemory", "Attention over earlier pairs of a number and a token.", "icy"),
    "Transformer": ("transformer:TransformerCore", "Causal Transformer over the last steps of an episode.", "icy"),
}

for _name, (_place, _description, _source) in _CORES.items():
    register_core(_name, f"{__name__}.{_place}", description=_description, source=_source)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
