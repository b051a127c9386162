"""Senders, receivers and recurrent cells.

Importing this package only registers the built-in models. Modules that need torch are imported when a model is first
created.
"""

from icy.core.register import register_cell

from . import receivers, senders
from .creation import create_receiver, create_sender

__all__ = ["create_receiver", "create_sender", "receivers", "senders"]

register_cell("RNN", "icy.models.cells:RNNCell", description="Vanilla (Elman) RNN, tanh.", source="Elman 1990")
register_cell("GRU", "icy.models.cells:GRUCell", description="Gated recurrent unit.", source="Cho et al. 2014")
register_cell(
    "LSTM",
    "icy.models.cells:LSTMCell",
    description="Long short-term memory.",
    source="Hochreiter and Schmidhuber 1997",
)
register_cell("SRU", "icy.models.cells:SRUCell", description="Simple recurrent unit.", source="Lei et al. 2018")
register_cell(
    "dgsend",
    "icy.models.cells:DGSendCell",
    description="DARTS cell found for senders, one node.",
    source="Perkins21 appendix (architecture search)",
)
register_cell(
    "dgrecv",
    "icy.models.cells:DGRecvCell",
    description="DARTS cell found for receivers, four nodes.",
    source="Perkins21 appendix (architecture search)",
)
register_cell(
    "minGRU",
    "icy.models.cells:MinGRUCell",
    description="Minimal GRU, linear in its state; its gates only read the input, so it needs a family that feeds it.",
    source="Feng et al. 2024",
)
