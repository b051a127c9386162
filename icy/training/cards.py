"""Trained models in files: weights as safetensors, with a card that describes the training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor

from icy.core.entry import ENTRY_KINDS
from icy.core.errors import StoreError
from icy.core.registry import registry
from icy.core.types import Choices, Fields
from icy.records.long_table import SYNONYMS
from icy.records.pack import file_in
from icy.records.record import Record, model_file
from icy.records.saved_models import Facts, distinctions, match_facts, records_with_models, require_one

from .weights import card_of_file, unpack_weights

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
