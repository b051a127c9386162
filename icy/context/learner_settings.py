"""How an in-context learner is made."""

from dataclasses import dataclass

from icy.core.errors import InvalidSettingError
from icy.core.fields import CheckedFields, setting
from icy.core.registry import registry
from icy.grammars import expand_grammars

TRANSFORMER = "Transformer"  # in place of a cell
HEADS = 6
ROLES = ("sender", "receiver")


@dataclass(frozen=True, kw_only=True)
class LearnerSettings(CheckedFields):
    """How an in-context learner is made.

    Attributes:
        cell: "Transformer", or a recurrent cell of `icy list cells`.
        grammar: names or wildcards of the grammars of the languages in training.
        hidden: hidden size.
        layers: number of layers.
        updates: number of updates, each with new languages.
        lr: largest learning rate.
        seed: seed of weights and languages.

    Raises:
        IcyError: an unknown name, or a number that is not accepted.
    """

    cell: str = setting(TRANSFORMER)
    grammar: str = setting("concat,perm", completes="grammars")
    hidden: int = setting(96, "hidden size", least=1)
    layers: int = setting(3, "number of layers", least=1)
    updates: int = setting(1500, "number of updates", least=1)
    lr: float = setting(1e-3, "learning rate", above=0)
    seed: int = setting(0, "seed")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cell.lower() != TRANSFORMER.lower():
            object.__setattr__(self, "cell", registry.get(self.cell, "cell").name)
        elif self.hidden % HEADS:
            raise InvalidSettingError(
                f"The hidden size of a {TRANSFORMER} is a multiple of {HEADS}, not {self.hidden}."
            )
        names = [name for role in ROLES for name in expand_grammars(self.grammar, role)]
        object.__setattr__(self, "grammar", ",".join(dict.fromkeys(names)))
