"""Perceptions: modules that map an object of a world to the input vector of an agent.

A perception is a module that maps objects `[batch, *shape]` to vectors `[batch, size]`. A factory
`(shape, size, **options)` creates it. If it has `broadcasts = True`, it must also run a stack of replicates at once:
with parameters that have a leading axis, it maps objects `[replicate, batch, *shape]` to vectors
`[replicate, batch, size]`. Buffers of a submodule with `stacks_buffers = True` then have this axis too, and may be
changed in place. Perceptions register like plug-ins, and are imported on first use.
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
