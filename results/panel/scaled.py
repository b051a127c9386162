"""Models of the robustness panel with scaled initial weights, a plug-in: `--option scale=0.5`.

Every initial weight and bias is the built-in model's at the same seed, times `scale`. None of these models has a
normalization layer. Results are filed under the names below, with the option. An edit of this file changes their keys.
"""

from icy.core.registry import register_receiver, register_sender, registry

MODELS = {
    "sender": {"FC2L": False, "RNNZero": True, "HierZero": True},
    "receiver": {"FC2L": False, "CNN": False, "RNN1L": True},
}


def scaled(side, name):
    """Return a factory of the model `name` of a side, with the further option `scale`."""
    built_in = registry.find(side, name)

    def plain(space, message_length, vocab_size, hidden_size, *, scale=1.0):
        return _times(scale, built_in.create(space, message_length, vocab_size, hidden_size))

    def with_cell(space, message_length, vocab_size, hidden_size, *, cell, scale=1.0):
        return _times(scale, built_in.create(space, message_length, vocab_size, hidden_size, cell=cell))

    return with_cell if built_in.takes_cell else plain


def _times(scale, model):
    for parameter in model.parameters():
        parameter.data.mul_(scale)
    return model


for _side, _names in MODELS.items():
    for _name, _takes_cell in _names.items():
        {"sender": register_sender, "receiver": register_receiver}[_side](
            f"Scaled-{_name}",
            description=f"{_name} with scaled initial weights.",
            source="results/panel/__main__.py",
            takes_cell=_takes_cell,
        )(scaled(_side, _name))
