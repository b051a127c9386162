"""Weights of trained models as safetensors, in files next to their records."""

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

CARD = "icy"  # name of the card in the metadata of a file


def pack_weights(weights: Mapping[str, Tensor], card: Fields | None = None) -> bytes:
    """Return tensors by name as the content of a .safetensors file.

    Args:
        weights: the tensors.
        card: a description of the weights, with values that JSON supports; `card_of` reads it.
    """
    from safetensors.torch import save

    metadata = None if card is None else {CARD: json.dumps(card, sort_keys=True)}
    return save({name: value.detach().cpu().contiguous().clone() for name, value in weights.items()}, metadata)


def card_of(content: bytes) -> Choices:
    """Return the card in the content of a .safetensors file; empty if there is none.

    Raises:
        StoreError: the content is damaged.
    """
    unpack_weights(content)  # raises if the header is damaged
    (size,) = struct.unpack("<Q", content[:8])
    text = json.loads(content[8 : 8 + size]).get("__metadata__", {}).get(CARD, "{}")
    try:
        card = json.loads(text)
    except ValueError as error:
        raise StoreError(f"The card of a saved model is damaged ({error}).") from error
    return card if isinstance(card, dict) else {}


def card_of_file(path: Path, what: str) -> Choices:
    """Return the card of a .safetensors file of a job with a `setup`.

    Args:
        path: path of the file.
        what: noun for the trained model, as in "agent".

    Raises:
        StoreError: the file cannot be read, is damaged, or has no card with a `setup`.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}.") from error
    card = card_of(content)
    if "setup" not in card:
        raise StoreError(f"{path} has no description of its {what}, so its weights cannot be loaded.")
    return card


def unpack_weights(content: bytes) -> dict[str, Tensor]:
    """Return the tensors of a .safetensors file by name.

    Raises:
        StoreError: the file is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(content)
    except SafetensorError as error:
        raise StoreError(f"The file of a saved model is damaged ({error}).") from error


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return the learned state of a model: its stored examples, or its parameters and buffers."""
    if isinstance(model, MemoryModel):
        return model.stored()
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def require_version(record: Record, name: str, version: str) -> None:
    """Check that a model or grammar has the same version as when a record was made.

    Raises:
        StoreError: the versions differ.
    """
    if (trained := record["versions"].get(name)) != version:
        raise StoreError(
            f"{record['model']} on {record['grammar']} with seed {record['seed']} was trained with version {trained} "
            f"of the {name}, but the current version is {version}: load the earlier version, or train the model again."
        )


def restore(model: nn.Module, weights: Mapping[str, Tensor], name: str) -> nn.Module:
    """Load the exact learned state of a model, and set it to evaluation mode.

    Args:
        model: a new model of the same architecture.
        weights: the learned state, as from `state_of`.
        name: name of the model, for errors.

    Raises:
        StoreError: the weights are of another architecture.
    """
    if isinstance(model, MemoryModel):
        model.restore(dict(weights))
        return model.eval()
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    shapes = [{n: tuple(value.shape) for n, value in tensors.items()} for tensors in (own, weights)]
    if shapes[0] != shapes[1]:
        odd = min(n for n in {*own, *weights} if shapes[0].get(n) != shapes[1].get(n))
        raise StoreError(
            f"The saved weights of {name} do not fit the current version of the model ('{odd}' differs in shape, or is "
            "missing in one of them): load the version of the model that was trained."
        )
    with torch.no_grad():
        for n, value in own.items():
            value.copy_(weights[n])
    return model.eval()
