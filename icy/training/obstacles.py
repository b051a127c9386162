"""Find out why a model cannot be stacked, by a trial of a stack of two, and suggest a remedy."""

import copy
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from icy.core.errors import IcyError
from icy.core.text import listed
from icy.models.stock import needs_stock_layers

from .stack import Stack

# Patterns of PyTorch's messages within vmap, with the cause and the remedy. The first match is used.
SENTENCES = (
    (
        r"called random operation",
        "it draws random numbers outside nn.Dropout; leave out other noise, and dropout inside "
        "nn.MultiheadAttention and nn.Transformer layers (dropout=0)",
    ),
    (
        r"_pack_padded_sequence|_pad_packed_sequence",
        "it packs sequences; messages have a fixed length, so leave out packing",
    ),
    (
        r"calling \.item\(\)",
        "it reads a number from a tensor, as .item(), int() and pack_padded_sequence do; compute with the tensor",
    ),
    (
        r"data-dependent control flow",
        "it branches on numbers in a tensor (if, while); compute both branches and select with torch.where",
    ),
    (
        r"dynamic shape",
        "the shape of a tensor depends on numbers (a boolean mask as an index, nonzero, unique); use torch.where, or "
        "multiply by the mask",
    ),
    (
        r"more elements than|inplace arithmetic",
        "it writes into a tensor that is the same for all replicates; create the tensor with x.new_zeros(...) of an x "
        "that depends on the input, or join its parts with torch.stack or torch.cat",
    ),
    (r"access data pointer|numpy|storage", "it leaves PyTorch (.numpy(), .tolist()); compute with tensors"),
    (r"has a backward pass that vmap cannot batch", "it is built from icy's layers; set `broadcasts = True` in it"),
)
NO_RULE = re.compile(r"[Bb]atching rule not implemented for aten::(\w+)")


class _ReplacedBufferError(IcyError):
    """A model assigned new tensors to its buffers."""


def obstacle_to(
    engine: str, models: Sequence[nn.Module], seeds: Sequence[int], sample: Tensor, device: torch.device
) -> str | None:
    """Return why an engine cannot run a model, and the remedy; None if it can.

    Args:
        engine: "broadcast", "vmap" or "vmap+layers".
        models: the models; the first is tried, as a stack of two.
        seeds: a seed per model.
        sample: a small batch of inputs [replicate, batch, ...].
        device: where to train.
    """
    if engine == "broadcast" and not getattr(models[0], "broadcasts", False):
        return "it does not set `broadcasts = True`"
    if engine == "vmap" and needs_stock_layers(models[0]):
        return "it has layers that vmap runs slowly or wrongly"
    two, by_vmap = [copy.deepcopy(models[0]) for _ in range(2)], engine != "broadcast"
    if by_vmap and (name := _differing_tensor(models)):
        return f"its tensor '{name}' differs between replicates and is not a buffer; use register_buffer"
    inputs, keys = torch.cat([sample[:1], sample[:1]]), torch.zeros(2, dtype=torch.long, device=device)
    try:
        trial = Stack(two, device, [seeds[0]] * 2, all_buffers=by_vmap)
        if by_vmap:
            trial.modules[0].register_forward_pre_hook(_note_buffers)
            trial.modules[0].register_forward_hook(_require_same_buffers)
        _total(trial.forward([inputs], engine, keys)).backward()
        if by_vmap:
            with torch.no_grad():
                trial.forward([inputs], engine)
    except Exception as error:  # a module of a user may raise anything
        return _sentence(error)
    return None


def _differing_tensor(models: Sequence[nn.Module]) -> str | None:
    """Return the name of a tensor attribute that differs between models, if there is one."""
    first, *others = [_plain_tensors(model) for model in {id(model): model for model in models}.values()]
    return next((n for n, x in first.items() for o in others if n not in o or not torch.equal(x, o[n])), None)


def _plain_tensors(model: nn.Module) -> dict[str, Tensor]:
    return {
        f"{place}.{name}".lstrip("."): value
        for place, part in model.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, Tensor)
    }


def _note_buffers(module: Any, inputs: Any) -> None:
    module.buffers_before = dict(module.named_buffers())


def _require_same_buffers(module: Any, inputs: Any, output: Any) -> None:
    """Raise if a forward pass replaces or adds buffers, as a stack would not keep these."""
    after = dict(module.named_buffers())
    replaced = [name for name, buffer in module.buffers_before.items() if after.get(name) is not buffer]
    if replaced or len(after) > len(module.buffers_before):
        names = listed([f"'{name}'" for name in replaced or sorted(set(after) - set(module.buffers_before))])
        raise _ReplacedBufferError(
            f"it replaces its buffers by other tensors ({names}); write into the buffers, as in self.x.copy_(...)"
        )


def _sentence(error: Exception) -> str:
    """Return the cause and the remedy of an error, in place of PyTorch's message."""
    message = str(error).strip().partition("\n")[0]
    if isinstance(error, IcyError) and "vmap cannot batch" not in message:
        return message
    if match := NO_RULE.search(message):
        return f"torch.vmap has no rule for {match[1]}; compute it by other operations"
    known = next((sentence for pattern, sentence in SENTENCES if re.search(pattern, message)), None)
    return known or f"in a stack it raises {type(error).__name__}: {message.rstrip('.')}"


def _total(output: Any) -> Tensor:
    """Return the sum of all outputs."""
    parts = output if isinstance(output, tuple) else (output,)
    return torch.stack([part.sum() for part in parts]).sum()
