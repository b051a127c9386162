"""Senders, receivers and recurrent cells.

Importing this package only registers the built-in models. Modules that need torch are imported when a model is first
created.
"""

from icy.core.register import register_cell

from . import receivers, senders
from .creation import create_receiver, create_sender

__all__ = ["create_receiver", "create_sender", "receivers", "senders"]

DARTS = "Perkins21 appendix (architecture search)"
for _name, _class, _description, _source in (
    ("RNN", "RNNCell", "Vanilla (Elman) RNN, tanh.", "Elman 1990"),
    ("GRU", "GRUCell", "Gated recurrent unit.", "Cho et al. 2014"),
    ("LSTM", "LSTMCell", "Long short-term memory.", "Hochreiter and Schmidhuber 1997"),
    ("SRU", "SRUCell", "Simple recurrent unit.", "Lei et al. 2018"),
    ("dgsend", "DGSendCell", "DARTS cell found for senders, one node.", DARTS),
    ("dgrecv", "DGRecvCell", "DARTS cell found for receivers, four nodes.", DARTS),
    (
        "minGRU",
        "MinGRUCell",
        "Minimal GRU, linear in its state; its gates only read the input, so it needs a family that feeds it.",
        "Feng et al. 2024",
    ),
):
    register_cell(_name, f"icy.models.cells:{_class}", description=_description, source=_source)
