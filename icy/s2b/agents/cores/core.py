"""The interface of cores, what recurrent ones share, and how a core is made by its name."""

import inspect
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from icy.core.checks import whole_number
from icy.core.errors import PluginError
from icy.core.registry import CORE, Entry, registry

State: TypeAlias = tuple[Shaped[Tensor, "batch ..."], ...]
"""What a core remembers: tensors whose first axis is the episode, of the same sizes all through an episode."""

Inputs: TypeAlias = Float[Tensor, "step batch width"]
Resets: TypeAlias = Bool[Tensor, "step batch"]
Outputs: TypeAlias = Float[Tensor, "step batch output"]
Traced: TypeAlias = tuple[Outputs, Float[Tensor, "step batch latent"], State]
"""What `trace` returns: outputs, [T, B, `output`], latents, [T, B, `latent_width`], and the state after the last."""

Device: TypeAlias = torch.device | str | None

CAPACITY = 256  # steps, more than the 231 of the longest episodes that were measured at V 2-5, O = 1 (s2b-facts 3)


@dataclass(frozen=True)
class Parts:
    """The widths of the first parts of an input, for cores that treat them differently; the rest is anything else.

    Attributes:
        vision: width of what encodes the stimuli.
        language: width of what encodes the message.
        flags: width of rewards, round, role, phase and result.
        stimuli: number of stimuli that are seen side by side.
        tokens: number of tokens that are heard side by side.
    """

    vision: int
    language: int
    flags: int = 0
    stimuli: int = 1
    tokens: int = 1

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Widths of what is seen, what is heard, and the flags."""
        return self.vision, self.language, self.flags

    @property
    def width(self) -> int:
        """Width of all three."""
        return sum(self.sizes)

    @classmethod
    def halves(cls, width: int) -> "Parts":
        """Return parts for an input of which nothing else is known: the first half seen, the second half heard."""
        return cls(width // 2, width - width // 2)


class Core(nn.Module):
    """Base class of cores: modules that read an episode step by step, and remember it in a state.

    A core implements `start`, `step` and `latent`; `unroll` and `trace` go step by step unless it has a faster way.
    Whatever it remembers is in the state, so that one module plays many episodes, and a state can be stored and
    continued from later.

    Attributes:
        width: width of an input, D.
        output: width of an output.
        latent_width: width of what `latent` gives.
        raw: whether it reads stimuli and messages as they are, so that networks leave out their perceptrons.
    """

    raw = False

    def __init__(self, width: int, output: int, latent_width: int) -> None:
        super().__init__()
        self.width = whole_number("width of an input", width)
        self.output, self.latent_width = output, latent_width

    def start(self, episodes: int, device: Device = None) -> State:
        """Return the state at the beginning of episodes.

        Args:
            episodes: number of episodes, B.
            device: torch device; by default that of the weights.
        """
        raise NotImplementedError

    def step(self, x: Float[Tensor, "batch width"], state: State) -> tuple[Float[Tensor, "batch output"], State]:
        """Read the next input of each episode, [B, D], and return outputs [B, `output`] and the states after it."""
        raise NotImplementedError

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return what the reconstruction loss reads off a state (s2b-facts 10.4), [B, `latent_width`]."""
        raise NotImplementedError

    def unroll(self, xs: Inputs, state: State, resets: Resets | None = None) -> tuple[Outputs, State]:
        """Read several inputs, as `step` would one after the other.

        Args:
            xs: inputs, [T, B, D].
            state: the state before the first.
            resets: the inputs with which an episode begins: the state before them is that of `start`, [T, B].

        Returns:
            Outputs, [T, B, `output`], and the state after the last input.
        """
        ys, _, state = self._stepwise(xs, state, resets, latents=False)
        return torch.stack(ys), state

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read several inputs as `unroll` does, and also what `latent` reads off the state after each step."""
        ys, latents, state = self._stepwise(xs, state, resets, latents=True)
        return torch.stack(ys), torch.stack(latents), state

    def _stepwise(
        self, xs: Tensor, state: State, resets: Tensor | None, latents: bool
    ) -> tuple[list[Tensor], list[Tensor], State]:
        ys, read = [], []
        begins = beginnings(resets, len(xs))
        for t, x in enumerate(xs):
            if resets is not None and begins[t]:
                state = begun(state, self.start(len(x), x.device), resets[t])
            y, state = self.step(x, state)
            ys.append(y)
            if latents:
                read.append(self.latent(state))
        return ys, read, state

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def zeros(self, *shape: int, device: Device = None) -> Float[Tensor, "..."]:
        """Return zeros of the type of the weights, on their device or another."""
        weight = next(self.parameters())
        return torch.zeros(shape, dtype=weight.dtype, device=weight.device if device is None else device)


class SequenceCore(Core):
    """Base class of cores that read several inputs at once: they implement `trace`, and a step is a short sequence."""

    def step(self, x: Float[Tensor, "batch width"], state: State) -> tuple[Float[Tensor, "batch output"], State]:
        """Read the next input of each episode."""
        ys, state = self.unroll(x[None], state)
        return ys[0], state

    def unroll(self, xs: Inputs, state: State, resets: Resets | None = None) -> tuple[Outputs, State]:
        """Read several inputs at once."""
        ys, _, state = self.trace(xs, state, resets)
        return ys, state

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read several inputs at once; every such core implements this."""
        raise NotImplementedError


def beginnings(resets: Resets | None, steps: int) -> list[bool]:
    """Return at which steps an episode begins in any row."""
    return [False] * steps if resets is None else resets.any(1).tolist()


def begun(state: State, start: State, which: Bool[Tensor, " batch"]) -> State:
    """Return states of which some rows are those of `start`."""
    return tuple(
        torch.where(which.view(-1, *[1] * (now.dim() - 1)), first, now) for now, first in zip(state, start, strict=True)
    )


def make_core(
    name: str, width: int, *, capacity: int = CAPACITY, parts: Parts | None = None, **options: object
) -> Core:
    """Make a core by its name.

    Args:
        name: name of a registered core (`icy list cores`).
        width: width of an input.
        capacity: number of steps that a memory holds, for cores that take it; the oldest make room.
        parts: which parts of an input are seen and heard, for cores that take it.
        **options: further options of the core.

    Raises:
        UnknownNameError: no core has this name.
        PluginError: the core does not take these options, or is no `Core`.

    Example:
        >>> from icy.s2b.agents.cores import make_core
        >>> make_core("LSTM", 20).output, make_core("LSTM", 20, sizes=(64,)).output
        (128, 64)
    """
    return made_of(registry.get(name, CORE), width, capacity=capacity, parts=parts, **options)


def made_of(
    entry: Entry, width: int, *, capacity: int = CAPACITY, parts: Parts | None = None, **options: object
) -> Core:
    """Make the core of a registry entry; see `make_core`."""
    given = {"capacity": capacity, "parts": parts}
    made = entry.create(width, **{name: value for name, value in given.items() if takes(entry, name)}, **options)
    if not isinstance(made, Core):
        raise PluginError(f"{entry.qualified} makes a {type(made).__name__}; derive it from icy.s2b.agents.cores.Core.")
    return made


def takes(entry: Entry, option: str) -> bool:
    """Return whether a core's factory takes an option by name."""
    return option in inspect.signature(entry.load()).parameters
