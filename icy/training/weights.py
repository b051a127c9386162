"""Weights of trained models as safetensors, in files beside their records."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from icy.core.errors import StoreError
from icy.core.types import Choices, Fields
from icy.models.base import MemoryModel
from icy.records.record import Record

CARD = "icy"  # name of the card among the metadata of a file


def pack_weights(weights: Mapping[str, Tensor], card: Fields | None = None) -> bytes:
    """Return tensors by name as the content of a .safetensors file.

    Args:
        weights: the tensors.
        card: what they are, for `card_of`; of values that JSON has.
    """
    from safetensors.torch import save

    metadata = None if card is None else {CARD: json.dumps(card, sort_keys=True)}
    return save({name: value.detach().cpu().contiguous().clone() for name, value in weights.items()}, metadata)


def card_of(content: bytes) -> Choices:
    """Return what the content of a .safetensors file says of itself; empty if that is nothing.

    Raises:
        StoreError: it is damaged.
    """
    unpack_weights(content)  # whose header is then sound
    (size,) = struct.unpack("<Q", content[:8])
    text = json.loads(content[8 : 8 + size]).get("__metadata__", {}).get(CARD, "{}")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise StoreError(f"The card of a kept model is damaged ({error}).") from error
    return found if isinstance(found, dict) else {}


def card_of_file(path: Path, what: str) -> Choices:
    """Return the card of a .safetensors file of what a job with a `setup` has trained.

    Args:
        path: of the file.
        what: was trained, as in "agent".

    Raises:
        StoreError: it cannot be read, is damaged, or has no such card.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from error
    card = card_of(content)
    if "setup" not in card:
        raise StoreError(f"{path} does not say what {what} its weights are of.")
    return card


def unpack_weights(content: bytes) -> dict[str, Tensor]:
    """Return the tensors of a .safetensors file by name.

    Raises:
        StoreError: it is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(content)
    except SafetensorError as error:
        raise StoreError(f"The file of a kept model is damaged ({error}).") from error


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return what a model has learnt: what it says it has stored, or its parameters and buffers."""
    if isinstance(model, MemoryModel):
        return model.stored()
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def require_version(record: Record, name: str, version: str) -> None:
    """Check that a model or grammar is of the version that a record was made with.

    Raises:
        StoreError: it is of another.
    """
    if (trained := record["versions"].get(name)) != version:
        raise StoreError(
            f"{record['model']} on {record['grammar']} with seed {record['seed']} was trained with version {trained} "
            f"of the {name}, and that of now is {version}: load the one that it was trained with, or train it again."
        )


def restore(model: nn.Module, weights: Mapping[str, Tensor], name: str) -> nn.Module:
    """Give a model what it had learnt, to the bit, and put it in evaluation mode.

    Args:
        model: a new one of the same architecture.
        weights: as of `state_of`.
        name: of the model, for errors.

    Raises:
        StoreError: they are not of this architecture.
    """
    if isinstance(model, MemoryModel):
        model.restore(dict(weights))
        return model.eval()
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    shapes = [{n: tuple(value.shape) for n, value in tensors.items()} for tensors in (own, weights)]
    if shapes[0] != shapes[1]:
        odd = min(n for n in {*own, *weights} if shapes[0].get(n) != shapes[1].get(n))
        raise StoreError(
            f"What is kept of {name} does not fit the model of that name as it is now ('{odd}' is of another shape, or "
            "only one of them has it): load the version of the model that was trained."
        )
    with torch.no_grad():
        for n, value in own.items():
            value.copy_(weights[n])
    return model.eval()
