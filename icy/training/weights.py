"""Weights of trained models as safetensors, in files next to their records."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from icy.core.entry import ENTRY_KINDS
from icy.core.errors import StoreError
from icy.core.registry import registry
from icy.core.types import Choices, Fields
from icy.models.base import MemoryModel
from icy.records.long_table import SYNONYMS
from icy.records.pack import file_in
from icy.records.record import Record, model_file
from icy.records.saved_models import Facts, distinctions, match_facts, records_with_models, require_one

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


# -- trained models in files: weights as safetensors, with a card that describes the training --------------------------


SUFFIX = ".safetensors"
NAMED = ("model", "grammar", "seed")  # fields of a record that a card has


@dataclass(frozen=True)
class SavedModel:
    """A model that a job trained and saved in a file. Each kind of job has its own class.

    Attributes:
        card: the description in the file.
        source: the file; or the results folder or pack, and the path of the file there.
        apart: settings that distinguish the model from other saved models with the same name and seed.
    """

    kind: ClassVar[str]  # kind of job
    what: ClassVar[str]  # noun for the model in messages, such as "agent"

    card: Fields
    source: tuple[Path, str]
    apart: str = ""

    @property
    def label(self) -> str:
        """Name in tables."""
        return f"{self.card['model']}, seed {self.card['seed']}{', ' * bool(self.apart)}{self.apart}"

    def weights(self) -> dict[str, Tensor]:
        """Return the weights by name.

        Raises:
            StoreError: the file is damaged, or code of users has changed since the training.
        """
        folder, place = self.source
        for kind, version in self.card.get("code", {}).items():
            name = self.card["setup"].get(kind, "")
            if [entry.full_version for entry in registry.find_all(f"{kind}/{name}")] != [version]:
                raise StoreError(
                    f"{self.label} was trained with other code of the {kind} '{name}' than is loaded now: "
                    "load the plug-in as it was, or train again."
                )
        try:
            return unpack_weights(file_in(folder, place) if place else folder.read_bytes())
        except StoreError as error:
            raise StoreError(
                f"{folder / place if place else folder}: {error} Train it again, or leave it out."
            ) from error

    @classmethod
    def find(cls, path: str | Path, **where: Any) -> list[Self]:
        """Return the matching models in a results folder, a pack, or a .safetensors file.

        Args:
            path: path of the folder, pack or file.
            **where: values that must match, by the names of records: seed=124, samples=4.

        Raises:
            StoreError: no model matches.
            UnknownNameError: the records do not have a field of this name.
        """
        path = Path(path)
        if path.suffix == SUFFIX:
            card = card_of_file(path, cls.what)
            match_facts(path, cls.what, [facts_of_card(card)], where)
            return [cls(card, (path, ""))]
        folder, fits = records_with_models(path, cls.kind, cls.what, **where)
        apart = distinctions(fits)
        return [cls(_card(r), (folder, str(model_file(r))), one) for r, one in zip(fits, apart, strict=True)]

    @classmethod
    def find_one(cls, path: str | Path, **where: Any) -> Self:
        """Return the only match of `find`.

        Raises:
            StoreError: no model matches, or several do; the message shows the differences.
            UnknownNameError: as for `find`.
        """
        matches = cls.find(path, **where)
        if len(matches) > 1:
            require_one(path, records_with_models(path, cls.kind, cls.what, **where)[1])
        return matches[0]


def _card(record: Record) -> Choices:
    card = {name: record.get(name) for name in NAMED} | {"setup": record["config"]["settings"]["setup"]}
    return card | code_for_card(record["versions"])


def code_for_card(versions: Fields) -> dict[str, Fields]:
    """Return the versions of code of users as the part "code" of a card; an empty dictionary if all code is icy's."""
    own = {kind: version for kind, version in versions.items() if kind in ENTRY_KINDS and "-" in version}
    return {"code": own} if own else {}


def facts_of_card(card: Fields) -> Facts:
    """Return the fields of a card, including nested fields, with the names of `icy.records.saved_models.facts_of`."""
    facts: Choices = {}
    for name, value in card.items():
        if name == "code":
            continue
        facts |= facts_of_card(value) if isinstance(value, Mapping) else {name: value}
    facts |= {own: facts[name] for name, own in SYNONYMS.items() if name in facts and own not in facts}
    return {**facts, **{name: card[name] for name in NAMED if name in card}}
