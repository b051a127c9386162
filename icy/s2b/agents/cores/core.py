"""The interface of cores, the code that recurrent cores share, and the creation of a core by name."""

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
"""State of a core: tensors with the episode as first axis. Their sizes are constant during an episode."""

Inputs: TypeAlias = Float[Tensor, "step batch width"]
Resets: TypeAlias = Bool[Tensor, "step batch"]
Outputs: TypeAlias = Float[Tensor, "step batch output"]
Traced: TypeAlias = tuple[Outputs, Float[Tensor, "step batch latent"], State]
"""Result of `trace`: outputs, [T, B, `output`], latents, [T, B, `latent_width`], and the state after the last step."""

Device: TypeAlias = torch.device | str | None

CAPACITY = 256  # steps; the longest measured episodes have 231 (2 to 5 values, 1 sample)


@dataclass(frozen=True)
class Parts:
    """Widths of the parts of an input, for cores that treat them differently; further numbers may follow.

    Attributes:
        vision: width of the encoded stimuli.
        language: width of the encoded message.
        flags: width of rewards, round, role, phase and result.
        stimuli: number of stimuli in `vision`, concatenated.
        tokens: number of tokens in `language`, concatenated.
    """

    vision: int
    language: int
    flags: int = 0
    stimuli: int = 1
    tokens: int = 1

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Widths of the stimuli, the message and the flags."""
        return self.vision, self.language, self.flags

    @property
    def width(self) -> int:
        """Total width of the three parts."""
        return sum(self.sizes)

    @classmethod
    def halves(cls, width: int) -> "Parts":
        """Return default parts of an input: stimuli in the first half, the message in the second."""
        return cls(width // 2, width - width // 2)


class Core(nn.Module):
    """Base class of cores: modules that read an episode step by step and store their memory in a state.

    A subclass implements `start`, `step` and `latent`. By default `unroll` and `trace` call `step` for every step; a
    core may override `trace` with a faster method. The state is the whole memory. So one module can play many episodes,
    and states can be stored and reused.

    Attributes:
        width: width of an input, D.
        output: width of an output.
        latent_width: width of the output of `latent`.
        raw: whether the core reads stimuli and messages directly; networks then have no encoding layers before it.
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
            device: torch device; by default the device of the weights.
        """
        raise NotImplementedError

    def step(self, x: Float[Tensor, "batch width"], state: State) -> tuple[Float[Tensor, "batch output"], State]:
        """Read the next input of each episode, [B, D], and return the outputs, [B, `output`], and the new state."""
        raise NotImplementedError

    def latent(self, state: State) -> Float[Tensor, "batch latent"]:
        """Return the part of a state that the reconstruction loss uses, [B, `latent_width`]."""
        raise NotImplementedError

    def unroll(self, xs: Inputs, state: State, resets: Resets | None = None) -> tuple[Outputs, State]:
        """Read T inputs. The result is the same as with `step` for each input.

        Args:
            xs: inputs, [T, B, D].
            state: the state before the first input.
            resets: mask of inputs that begin an episode, [T, B]; before them, the state is reset to `start`.

        Returns:
            Outputs, [T, B, `output`], and the state after the last input.
        """
        ys, _, state = self.trace(xs, state, resets)
        return ys, state

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs like `unroll`, and also return `latent` of the state after each step."""
        ys, latents, begins = [], [], beginnings(resets, len(xs))
        for t, x in enumerate(xs):
            if resets is not None and begins[t]:
                state = begun(state, self.start(len(x), x.device), resets[t])
            y, state = self.step(x, state)
            ys.append(y)
            latents.append(self.latent(state))
        return torch.stack(ys), torch.stack(latents), state

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def zeros(self, *shape: int, device: Device = None) -> Float[Tensor, "..."]:
        """Return zeros with the dtype of the weights, on their device by default."""
        weight = next(self.parameters())
        return torch.zeros(shape, dtype=weight.dtype, device=weight.device if device is None else device)


class SequenceCore(Core):
    """Base class of cores that read several inputs at once. Subclasses implement `trace`, which `step` calls."""

    def step(self, x: Float[Tensor, "batch width"], state: State) -> tuple[Float[Tensor, "batch output"], State]:
        """Read the next input of each episode; see Core."""
        ys, state = self.unroll(x[None], state)
        return ys[0], state

    def trace(self, xs: Inputs, state: State, resets: Resets | None = None) -> Traced:
        """Read T inputs; see Core. Subclasses implement this."""
        raise NotImplementedError


def beginnings(resets: Resets | None, steps: int) -> list[bool]:
    """Return, for each step, whether an episode begins in any row."""
    return [False] * steps if resets is None else resets.any(1).tolist()


def begun(state: State, start: State, which: Bool[Tensor, " batch"]) -> State:
    """Reset the rows of a state in the mask `which` to `start`."""
    return tuple(
        torch.where(which.view(-1, *[1] * (now.dim() - 1)), first, now) for now, first in zip(state, start, strict=True)
    )


def make_core(
    name: str, width: int, *, capacity: int = CAPACITY, parts: Parts | None = None, **options: object
) -> Core:
    """Create a core by name.

    Args:
        name: name of a registered core (`icy list cores`).
        width: width of an input.
        capacity: capacity of the memory in steps, for cores with this argument; new steps replace the oldest.
        parts: widths of the stimuli and the message in an input, for cores with this argument.
        **options: further options of the core.

    Raises:
        UnknownNameError: no core has this name.
        PluginError: the core does not accept these options, or is not a `Core`.

    Example:
        >>> from icy.s2b.agents.cores import make_core
        >>> make_core("LSTM", 20).output, make_core("LSTM", 20, sizes=(64,)).output
        (128, 64)
    """
    return made_of(registry.get(name, CORE), width, capacity=capacity, parts=parts, **options)


def made_of(
    entry: Entry, width: int, *, capacity: int = CAPACITY, parts: Parts | None = None, **options: object
) -> Core:
    """Create the core of a registry entry; see `make_core`."""
    optional = {"capacity": capacity, "parts": parts}
    core = entry.create(width, **{name: value for name, value in optional.items() if takes(entry, name)}, **options)
    if not isinstance(core, Core):
        raise PluginError(
            f"{entry.qualified} returns a {type(core).__name__}; derive it from icy.s2b.agents.cores.Core."
        )
    return core


def takes(entry: Entry, option: str) -> bool:
    """Return whether a core's factory has a parameter with this name."""
    return option in inspect.signature(entry.load()).parameters
