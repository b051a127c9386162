"""Register the built-in senders, without importing them; one family per file."""

from icy.core.register import register_sender

P = "Perkins21 table 13; Icy22 appendix B"

register_sender(
    "FC1L", "icy.models.senders.fc:FC1L", description="One linear layer from the one-hot meaning.", source=P
)
register_sender("FC2L", "icy.models.senders.fc:FC2L", description="Two linear layers with a tanh between.", source=P)

for _suffix, _layers in (("", 1), ("2L", 2)):
    _depth = "one layer" if _layers == 1 else f"{_layers} layers"
    register_sender(
        f"RNNZero{_suffix}",
        "icy.models.senders.rnn:RNNZero",
        description=f"Recurrent net from the meaning, zero input, {_depth}.",
        source=P,
        defaults={"layers": _layers},
        aliases=("{cell}-Z",) if _layers == 1 else (),
        takes_cell=True,
    )
    register_sender(
        f"RNNAutoReg{_suffix}",
        "icy.models.senders.rnn:RNNAutoReg",
        description=f"Recurrent net from the meaning, fed its last symbol, {_depth}.",
        source=P,
        defaults={"layers": _layers},
        takes_cell=True,
    )
    register_sender(
        f"RNNSampling{_suffix}",
        "icy.models.senders.rnn:RNNSampling",
        description=f"Recurrent net from the meaning, fed the token it sampled last, {_depth}.",
        source="Perkins21 section 2.9, appendix A.2.3",
        defaults={"layers": _layers},
        takes_cell=True,
        representations=("discr",),
    )
    register_sender(
        f"TransDecSoft{_suffix}",
        "icy.models.senders.transformer:TransDecSoft",
        description=f"Transformer decoder over the meaning, fed its own symbols, {_depth}.",
        source="Icy22 appendix B",
        defaults={"layers": _layers},
    )
    register_sender(
        f"TransDecSampling{_suffix}",
        "icy.models.senders.transformer:TransDecSampling",
        description=f"Transformer decoder over the meaning, fed its sampled tokens, {_depth}.",
        source="Perkins21 appendix A.9",
        defaults={"layers": _layers},
        representations=("discr",),
    )

register_sender(
    "HierZero",
    "icy.models.senders.hier:HierZero",
    description="HU-RNN, two levels joined by a stop gate, zero input.",
    source="Perkins21 section 2.9; Icy22 section 3.3.2, appendix C.5",
    aliases=("HUSendZ",),
    takes_cell=True,
)
register_sender(
    "HierAutoReg",
    "icy.models.senders.hier:HierAutoReg",
    description="HU-RNN, two levels joined by a stop gate, fed its last symbol.",
    source="Perkins21 section 2.9; Icy22 section 3.3.2, appendix C.5",
    aliases=("HUSendA",),
    takes_cell=True,
)
register_sender(
    "HierSampling",
    "icy.models.senders.hier:HierSampling",
    description="HU-RNN, two levels joined by a stop gate, fed the token it sampled last.",
    source="Perkins21 section 2.9",
    aliases=("HierAutoRegSampling",),
    takes_cell=True,
    representations=("discr",),
)
register_sender(
    "Transformer",
    "icy.models.senders.transformer:Transformer",
    description="Pre-norm transformer after the embedded meaning, several heads, teacher forcing on request.",
    source="Vaswani et al. 2017 (NeurIPS); pre-norm as Xiong et al. 2020 (ICML)",
)
_CELLED, _ATTENTIVE = {"decoder": ("recurrent", "hierarchy")}, {"decoder": ("transdec", "transformer")}
_ENCODED, _EMBEDDED = {"encoder": ("perceptron", "attention")}, {"embedding": ("sum", "joined")}
register_sender(
    "Composed",
    "icy.models.senders.composed:composed",
    description="Encoder and decoder of parts, chosen by options in the name.",
    source="icy",
    takes_cell=True,
    choices={
        "decoder": ("recurrent", "hierarchy", "linear", "transdec", "transformer"),
        "feedback": (False, True),
        "boundary": ("learned", "fixed"),
        "cell": ("GRU",),
        "layers": (1, 2, 3),
        "positions": ("sinusoid", "learned", "none"),
        "encoder": ("none", "perceptron", "attention"),
        "embedding": ("sum", "joined", "onehot"),
        "depth": (1, 2, 3),
        "norm": ("none", "layer"),
        "tied": (False, True),
        "width": (1, 2, 4),
    },
    conditions={
        "feedback": [_CELLED],
        "boundary": [{"decoder": ("hierarchy",)}],
        "cell": [_CELLED],
        "layers": [{"decoder": ("recurrent", "transdec", "transformer")}],
        "positions": [_ATTENTIVE],
        "embedding": [{"encoder": ("none", "perceptron")}],
        "depth": [_ENCODED],
        "norm": [_CELLED, *({"decoder": ("linear",), **one} for one in (_ENCODED, _EMBEDDED))],
        "tied": [{"feedback": (True,)}, _ATTENTIVE],
        "width": [  # FC1L does not depend on E
            {"decoder": ("recurrent", "hierarchy", "transdec", "transformer")},
            *(_ENCODED, _EMBEDDED),
        ],
    },
)
register_sender(
    "Hashtable",
    "icy.models.senders.hashtable:Hashtable",
    description="Remembers the first message of each meaning; no parameters.",
    source="Perkins21 table 13",
)
