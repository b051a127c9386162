"""Differentiable neural computer (Graves et al. 2016, "Hybrid computing using a neural network with dynamic external
memory"; the equations are in its Methods)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from icy.core.checks import whole_number

from .core import Core, Device, State
from .lstm import LSTMStack

EPSILON = 1e-6  # keeps cosines and products of usages differentiable at zero
RANKED = 1e4  # usages that agree to 4 digits count as equal: unused slots differ by rounding errors
MODES = 3  # of a read head: the previous slot in writing order, slots similar to the key, the next slot


class DNC(Core):
    """LSTM with a memory that is addressed by content, by usage and by the order of writing.

    The default sizes are from MetaRG22, table of R2D2. The output is a linear map of the hidden states of the
    controller (the LSTM) and the vectors that the heads read.

    Args:
        width: width of an input.
        controller: size of the controller's layers.
        layers: number of the controller's layers.
        slots: number of memory slots.
        slot: width of a slot.
        reads: number of read heads; there is one write head.
        output: width of an output.
    """

    def __init__(
        self,
        width: int,
        controller: int = 128,
        layers: int = 2,
        slots: int = 128,
        slot: int = 32,
        reads: int = 2,
        output: int = 128,
    ) -> None:
        sizes = {"controller": controller, "layers": layers, "slots": slots, "slot": slot, "reads": reads}
        for name, size in sizes.items():
            whole_number(name, size)
        super().__init__(width, output, slots * slot)
        self.slots, self.slot, self.reads = slots, slot, reads
        self.controller = LSTMStack(self.width + reads * slot, [controller] * layers)
        self.widths = [reads * slot, reads, slot, 1, slot, slot, reads, 1, 1, reads * MODES]
        self.interface = nn.Linear(controller * layers, sum(self.widths))
        self.answer = nn.Linear(controller * layers + reads * slot, output)

    def start(self, episodes: int, device: Device = None) -> State:
        """Return zeros: controller state, memory, usage, precedence, link matrix, write weights and read weights."""
        slots, reads = self.slots, self.reads
        shapes = [(slots, self.slot), (slots,), (slots,), (slots, slots), (slots,), (reads, slots)]
        controller = self.controller.start(self.zeros(episodes, 1, device=device))
        return (*controller, *(self.zeros(episodes, *shape, device=device) for shape in shapes))

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the memory."""
        return state[-6].flatten(1)

    def step(self, x: Float[Tensor, "batch width"], state: State) -> tuple[Float[Tensor, "batch output"], State]:
        """Write to the memory, then read from it; see Core."""
        *controller, memory, usage, precedence, link, writing, reading = state
        earlier = reading @ memory
        _, hidden, after = self.controller(torch.cat([x, earlier.flatten(1)], -1)[None], tuple(controller))
        hidden = hidden[0]
        parts = self.interface(hidden).split(self.widths, -1)
        keys, strengths, key, strength, erase, write, free, allocate, gate, modes = parts
        usage = usage_after(usage, writing, reading, free.sigmoid())
        by_content = content(memory, key[:, None], strength)[:, 0]
        writing = allocate.sigmoid() * allocation(usage) + (1 - allocate.sigmoid()) * by_content
        writing = gate.sigmoid() * writing
        memory = memory * (1 - writing[:, :, None] * erase.sigmoid()[:, None]) + writing[:, :, None] * write[:, None]
        link = link_after(link, precedence, writing)
        precedence = (1 - writing.sum(-1, keepdim=True)) * precedence + writing
        alike = content(memory, keys.unflatten(-1, (self.reads, self.slot)), strengths)
        before, after_it = reading @ link, reading @ link.mT
        mode = modes.unflatten(-1, (self.reads, MODES)).softmax(-1)
        reading = mode[..., 0:1] * before + mode[..., 1:2] * alike + mode[..., 2:3] * after_it
        y = self.answer(torch.cat([hidden, (reading @ memory).flatten(1)], -1))
        return y, (*after, memory, usage, precedence, link, writing, reading)


Slots = Float[Tensor, "batch slot"]
Heads = Float[Tensor, "batch head"]
Links = Float[Tensor, "batch slot slot"]
HeadSlots = Float[Tensor, "batch head slot"]


def content(
    memory: Float[Tensor, "batch slot width"], keys: Float[Tensor, "batch head width"], strengths: Heads
) -> HeadSlots:
    """Return the softmax over slots of cosine(key, slot) * (1 + log(1 + e^x)), where x is the key's strength."""
    cosines = F.normalize(keys, dim=-1, eps=EPSILON) @ F.normalize(memory, dim=-1, eps=EPSILON).mT
    return (cosines * (1 + F.softplus(strengths))[..., None]).softmax(-1)


def usage_after(usage: Slots, writing: Slots, reading: HeadSlots, free: Heads) -> Slots:
    """Return the usage of each slot: writing raises it, and a read head with an open free gate lowers it."""
    retained = (1 - free[..., None] * reading).prod(1)
    return (usage + writing - usage * writing) * retained


def allocation(usage: Slots) -> Slots:
    """Return the allocation weights of slots: the least used slots get the largest weights."""
    order = (usage.detach() * RANKED).round().sort(dim=-1, stable=True).indices
    ordered = (EPSILON + (1 - EPSILON) * usage).gather(-1, order)
    used_before = F.pad(ordered.cumprod(-1)[:, :-1], (1, 0), value=1.0)
    return torch.zeros_like(usage).scatter(-1, order, (1 - ordered) * used_before)


def link_after(link: Links, precedence: Slots, writing: Slots) -> Links:
    """Return the link matrix: entry (i, j) is the degree to which slot i was written right after slot j."""
    row, column = writing[:, :, None], writing[:, None, :]
    linked = (1 - row - column) * link + row * precedence[:, None, :]
    return linked * (1 - torch.eye(link.shape[-1], dtype=link.dtype, device=link.device))
