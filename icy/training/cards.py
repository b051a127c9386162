"""Trained models in files: weights as safetensors, beside a card that says what was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor

from icy.core.errors import StoreError
from icy.core.types import Choices, Fields
from icy.records.long_table import SYNONYMS
from icy.records.pack import file_in
from icy.records.record import Record, model_file
from icy.records.saved_models import Facts, distinctions, match_facts, records_with_models, require_one

from .weights import card_of_file, unpack_weights

SUFFIX = ".safetensors"
NAMED = ("model", "grammar", "seed")  # of a record, in a card


@dataclass(frozen=True)
class SavedModel:
    """What a job trained, in a file. Each kind of job has its own class.

    Attributes:
        card: what the file says of it.
        source: the file, or the results folder or pack with the file's path in it.
        apart: what tells it from others of its model and seed in the same place.
    """

    kind: ClassVar[str]  # of the jobs
    what: ClassVar[str]  # they train, as messages call it

    card: Fields
    source: tuple[Path, str]
    apart: str = ""

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return f"{self.card['model']}, seed {self.card['seed']}{', ' * bool(self.apart)}{self.apart}"

    def weights(self) -> dict[str, Tensor]:
        """Return the weights by name.

        Raises:
            StoreError: the file is damaged.
        """
        folder, place = self.source
        try:
            return unpack_weights(file_in(folder, place) if place else folder.read_bytes())
        except StoreError as error:
            raise StoreError(
                f"{folder / place if place else folder}: {error} Train it again, or leave it out."
            ) from error

    @classmethod
    def found(cls, path: str | Path, **where: Any) -> list[Self]:
        """Return what is kept in a results folder, a pack, or a .safetensors file.

        Args:
            path: of it.
            **where: what it must have, by the names of records: seed=124, samples=4.

        Raises:
            StoreError: there is none.
            UnknownNameError: something that these records do not say.
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
    def one(cls, path: str | Path, **where: Any) -> Self:
        """Return the one that `found` returns.

        Raises:
            StoreError: there is none, or there are several; the message says in what they differ.
            UnknownNameError: as `found`.
        """
        found = cls.found(path, **where)
        if len(found) > 1:
            require_one(path, records_with_models(path, cls.kind, cls.what, **where)[1])
        return found[0]


def _card(record: Record) -> Choices:
    return {name: record.get(name) for name in NAMED} | {"setup": record["config"]["settings"]["setup"]}


def facts_of_card(card: Fields) -> Facts:
    """Return the facts of a card by the names of `icy.records.saved_models.facts_of`, inner ones included."""
    found: Choices = {}
    for name, value in card.items():
        found |= facts_of_card(value) if isinstance(value, Mapping) else {name: value}
    found |= {own: found[name] for name, own in SYNONYMS.items() if name in found and own not in found}
    return {**found, **{name: card[name] for name in NAMED if name in card}}
