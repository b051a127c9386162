"""Register the built-in receivers, without importing them; one family per file."""

from icy.core.register import register_receiver

P = "Perkins21 table 15; Icy22 appendix B"

register_receiver(
    "FC2L",
    "icy.models.receivers.fc:FC2L",
    description="Shared embedding, tanh, one linear layer over all positions (the form of the papers' tables).",
    source="Perkins21 table 15",
)
register_receiver(
    "FC",
    "icy.models.receivers.fc:FC",
    description="Shared embedding, tanh, two linear layers over all positions.",
    source="Perkins21 table 15",
)
register_receiver(
    "FC1L",
    "icy.models.receivers.fc:FC1L",
    description="Sum of one row of scores per position and symbol.",
    source="program of Icy22",
)
register_receiver(
    "FC2Lv2",
    "icy.models.receivers.fc:FC2Lv2",
    description="Sum of one embedding per position and symbol, tanh, one linear layer (FC2L of Icy22's program).",
    source="program of Icy22",
)
register_receiver(
    "MeanEmbeddings",
    "icy.models.receivers.mean:MeanEmbeddings",
    description="Mean of the symbols' embeddings, tanh, one linear layer; ignores order.",
    source="program of Icy22",
)
register_receiver(
    "CNN",
    "icy.models.receivers.cnn:CNN",
    description="Shared embedding, blocks of convolution, max-pooling and ReLU, one linear layer.",
    source=P,
)
register_receiver(
    "RNN1L",
    "icy.models.receivers.rnn:RNN",
    description="Recurrent net over the message, one layer.",
    source=P,
    aliases=("RNN",),
    takes_cell=True,
)
register_receiver(
    "RNN2L",
    "icy.models.receivers.rnn:RNN",
    description="Recurrent net over the message, two layers.",
    source=P,
    defaults={"layers": 2},
    takes_cell=True,
)
register_receiver(
    "Hier",
    "icy.models.receivers.hier:Hier",
    description="HU-RNN, two levels joined by a stop gate.",
    source="Perkins21 section 2.9; Icy22 section 3.3.2, appendix C.5",
    aliases=("HURecv",),
    published={"shared_gate": True},
    takes_cell=True,
)
register_receiver(
    "Transformer",
    "icy.models.receivers.transformer:Transformer",
    description="Pre-norm transformer over the message, several heads, mean over positions.",
    source="Vaswani et al. 2017 (NeurIPS); pre-norm as Xiong et al. 2020 (ICML)",
)
_CELLED = {"encoder": ("recurrent", "hierarchy")}
register_receiver(
    "Composed",
    "icy.models.receivers.composed:composed",
    description="Encoder and head of parts, chosen by options in the name.",
    source="icy",
    takes_cell=True,
    choices={
        "encoder": ("recurrent", "hierarchy", "linear", "convolution", "transformer", "mean"),
        "direction": ("forward", "both"),
        "boundary": ("learned", "fixed"),
        "cell": ("GRU",),
        "layers": (1, 2, 3),
        "positions": ("sinusoid", "learned", "none"),
        "embedding": ("shared", "positional"),
        "head": ("linear", "perceptron"),
        "norm": ("none", "layer"),
        "width": (1, 2, 4),
    },
    conditions={
        "direction": [{"encoder": ("recurrent",)}],
        "boundary": [{"encoder": ("hierarchy",)}],
        "cell": [_CELLED],
        "layers": [{"encoder": ("recurrent", "transformer")}],
        "positions": [{"encoder": ("transformer",)}],
        "embedding": [{"encoder": ("linear",)}],
        "norm": [{"encoder": ("recurrent", "hierarchy", "linear", "convolution", "mean")}],
    },
)
register_receiver(
    "Hashtable",
    "icy.models.receivers.lookup:Hashtable",
    description="Remembers the first meaning of each message; no parameters.",
    source="Perkins21 table 15",
)
register_receiver(
    "kNN",
    "icy.models.receivers.lookup:KNN",
    description="The meaning of the nearest message seen so far; no parameters.",
    source="Perkins21 table 15",
    aliases=("KNN",),
)
