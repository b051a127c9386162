"""The convolutional perception of images, for one model or a stack."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.errors import IncompatibleError
from icy.models.layers import Linear

AXES = 3  # axes of an image: channels, height, width
KERNEL = 3

Images = Float[Tensor, "batch channel height width"]


class Conv4(nn.Module):
    """Blocks of a convolution 3x3, batch norm, ReLU and max-pooling by 2, then a linear layer.

    In a stack, replicates run one after another. So the numbers of a replicate do not depend on other replicates,
    unlike with a grouped convolution, which also takes 1.5 times as long on a CPU.

    Args:
        shape: shape of an object: channels, height, width.
        size: size of an output vector.
        channels: output channels of every block.
        blocks: number of blocks; each halves height and width.
    """

    broadcasts = True

    def __init__(self, shape: tuple[int, ...], size: int, *, channels: int = 64, blocks: int = 4) -> None:
        super().__init__()
        least = 2**blocks
        if len(shape) != AXES or min(shape[1:]) < least:
            raise IncompatibleError(
                f"conv4 with {blocks} blocks needs images of at least {least}x{least} pixels, not objects of shape "
                f"{shape}; take the perception mlp."
            )
        self.blocks = nn.ModuleList(ConvolutionBlock(channels if i else shape[0], channels) for i in range(blocks))
        self.out = Linear(channels * math.prod(side // least for side in shape[1:]), size)

    def forward(
        self, objects: Float[Tensor, "*stack batch channel height width"]
    ) -> Float[Tensor, "*stack batch size"]:
        """Map images to vectors."""
        if objects.dim() == AXES + 1:
            features = self._features(objects, None)
        else:
            features = torch.stack([self._features(images, place) for place, images in enumerate(objects)])
        vectors: Tensor = self.out(features)
        return vectors

    def _features(self, images: Tensor, place: int | None) -> Tensor:
        for block in self.blocks:
            images = block(images, place)
        return images.flatten(1)


class ConvolutionBlock(nn.Module):
    """A convolution, batch norm, ReLU and max-pooling.

    The convolution does not have a bias, because batch norm would remove it.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, KERNEL, KERNEL))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))  # as PyTorch does
        self.norm = BatchNorm(outputs)

    def forward(self, images: Images, place: int | None) -> Float[Tensor, "batch channel_out half_height half_width"]:
        """Return images of half the height and width; `place` is the index of the replicate in a stack, if any."""
        x = F.conv2d(images, _of(self.weight, place), padding=KERNEL // 2)
        pooled: Tensor = F.max_pool2d(self.norm(x, place).relu(), 2)
        return pooled


class BatchNorm(nn.Module):
    """Batch norm of images, with the statistics of the batch in training and with running averages in evaluation.

    Args:
        channels: number of channels.
        momentum: weight of a batch in the running averages.
        epsilon: number added to variances.
    """

    stacks_buffers = True

    def __init__(self, channels: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.epsilon = momentum, epsilon
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.mean: Tensor
        self.variance: Tensor
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, images: Images, place: int | None) -> Images:
        """Normalize images. Training updates the running averages of replicate `place` (None without a stack)."""
        mean, variance, weight, bias = (_of(t, place) for t in (self.mean, self.variance, self.weight, self.bias))
        return F.batch_norm(images, mean, variance, weight, bias, self.training, self.momentum, self.epsilon)


def _of(stacked: Tensor, place: int | None) -> Tensor:
    """Select the part of one replicate in a stack."""
    return stacked if place is None else stacked[place]
