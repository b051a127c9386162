"""Perceptions: what turns an object, as a world shows it, into the vector that an agent works with.

A perception is a module from objects `[batch, *shape]` to vectors `[batch, size]`, made by a factory
`(shape, size, **options)`. One that says `broadcasts = True` must also run a stack of replicates at once: with
parameters that have a leading axis, objects `[replicate, batch, *shape]` give vectors `[replicate, batch, size]`.
Buffers of a submodule that says `stacks_buffers = True` then have a leading axis too, and may be changed in place.
They register like plug-ins, imported on first use.
"""

from icy.core.register import register_perception

_HERE = "icy.games.perception"

register_perception(
    "mlp", f"{_HERE}.mlp:MLP", description="Feed-forward net with one hidden layer, ReLU.", source="CBM24 appendix C"
)
register_perception(
    "conv4",
    f"{_HERE}.conv4:Conv4",
    description="Four blocks of convolution 3x3, batch norm, ReLU and max-pooling, then a linear layer.",
    source="Mu and Goodman 2021; CBM24 appendix C",
)
