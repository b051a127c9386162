"""Create models by name, and count their parameters."""

import inspect
from typing import TYPE_CHECKING, Any

from icy.core.choices import as_text, name_with
from icy.core.errors import IncompatibleError, InvalidSettingError
from icy.core.machine import available_memory
from icy.core.registry import Entry, registry
from icy.core.text import size
from icy.core.types import AnyFunction
from icy.languages.meanings import MeaningSpace

if TYPE_CHECKING:
    from torch import nn


LARGE = 4096  # models from this hidden size are checked against the memory before they are created
COPIES = 4  # copies of a parameter in training: itself, its gradient and Adam's two moments
BYTES = 4  # per copy
COMMON_ARGUMENTS = {"space", "message_length", "vocab_size", "hidden_size", "self"}  # arguments that are not options
DEFAULTS = {"message_length": 20, "vocab_size": 4, "hidden_size": 128}  # Icy22's main setting, with 5x10


def create_sender(
    name: str,
    space: MeaningSpace | str | tuple[int, int],
    message_length: int = DEFAULTS["message_length"],
    vocab_size: int = DEFAULTS["vocab_size"],
    hidden_size: int = DEFAULTS["hidden_size"],
    **options: object,
) -> "nn.Module":
    """Create a sender: meanings [batch, attr] -> scores [batch, length, vocab + 1].

    Args:
        name: a registered sender, such as `HierZero:GRU` (`icy list models` shows all).
        space: the meanings, as a MeaningSpace or as "5x10".
        message_length: L.
        vocab_size: V.
        hidden_size: E.
        **options: further arguments of the model, such as `representation="gumb"` for models that read their own
            symbols (by default SOFT).

    Returns:
        The sender, with newly drawn weights. It maps meanings [batch, attr], whole numbers from 0, to logits [batch,
        length, vocab + 1]; the last symbol is the end token.

    Raises:
        UnknownNameError: unknown sender or representation.
        InvalidSettingError: a size is not a positive whole number, or the model does not have an option.
        IncompatibleError: the model does not work with the representation.

    Example:
        >>> import icy
        >>> icy.create_sender("HierZero:GRU", "5x10").parameter_count("published")
        107782
    """
    return create(registry.get(name, "sender"), space, message_length, vocab_size, hidden_size, **options)


def create_receiver(
    name: str,
    space: MeaningSpace | str | tuple[int, int],
    message_length: int = DEFAULTS["message_length"],
    vocab_size: int = DEFAULTS["vocab_size"],
    hidden_size: int = DEFAULTS["hidden_size"],
    **options: object,
) -> "nn.Module":
    """Create a receiver: tokens [batch, length], or weights [batch, length, vocab + 1], -> scores [batch, attr, value].

    Args:
        name: a registered receiver, such as `Hier:GRU` (`icy list receivers` shows all).
        space: the meanings, as a MeaningSpace or as "5x10".
        message_length: L.
        vocab_size: V.
        hidden_size: E.
        **options: further arguments of the model.

    Returns:
        The receiver, with newly drawn weights. It maps tokens [batch, length], or weights [batch, length, vocab + 1],
        to logits [batch, attr, value].

    Raises:
        IcyError: as for `create_sender`.

    Example:
        >>> import icy
        >>> icy.create_receiver("RNN1L:GRU", "5x10").parameter_count("published")
        108092
    """
    return create(registry.get(name, "receiver"), space, message_length, vocab_size, hidden_size, **options)


def create(
    entry: Entry,
    space: MeaningSpace | str | tuple[int, int],
    message_length: int,
    vocab_size: int,
    hidden_size: int,
    /,  # so that options with these names are refused below in a sentence
    **options: object,
) -> "nn.Module":
    """Create the model of a registry entry; see `create_sender`."""
    for what, value in (("message_length", message_length), ("vocab_size", vocab_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidSettingError(f"{what} must be a whole number of at least 1, not {value!r}.")
    if in_name := [name for name in options if name in entry.choices]:
        name = name_with(entry.qualified.partition("[")[0], {in_name[0]: as_text(options[in_name[0]])})
        raise InvalidSettingError(f"The option '{in_name[0]}' is part of the model's name: write {name}.")
    factory = entry.load()
    accepted = _option_names(factory)
    if "representation" in options or entry.representations:
        options["representation"] = _representation(entry, options.get("representation", entry.representations[:1]))
        if accepted is not None and "representation" not in accepted:
            del options["representation"]  # only models with a feedback loop depend on it
    unknown = [name for name in options if name in COMMON_ARGUMENTS or (accepted is not None and name not in accepted)]
    if unknown:
        known = "any other name" if accepted is None else ", ".join(sorted(accepted)) or "none"
        raise InvalidSettingError(f"{entry.qualified} has no option '{unknown[0]}'; its options: {known}.")
    sizes = MeaningSpace.of(space), message_length, vocab_size, hidden_size
    if hidden_size >= LARGE:
        _require_memory(entry, sizes, options)
    model: nn.Module = entry.create(*sizes, **options)
    if entry.kind == "receiver" and not sizes[0].is_grid:
        from .base import leave_out_missing_values  # imports torch

        leave_out_missing_values(model, sizes[0])
    return model


def _require_memory(entry: Entry, sizes: tuple[object, ...], options: dict[str, object]) -> None:
    """Raise before any allocation if the parameters of a large model do not fit in memory.

    Raises:
        InvalidSettingError: parameters, gradients and the two moments of Adam do not fit.
    """
    import torch

    available = available_memory()
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):  # tensors with shapes but no numbers
            count = sum(p.numel() for p in entry.create(*sizes, **options).parameters())
    except Exception as error:  # the model computes with its weights in its constructor; then try to create it
        if "overflow" not in str(error):
            return
        count = available  # more than can be counted
    if COPIES * BYTES * count > available:
        raise InvalidSettingError(
            f"{entry.qualified} with a hidden size of {sizes[-1]} has {count:.1e} parameters, which need about "
            f"{size(COPIES * BYTES * count)} of memory in training, but {size(available)} is available; take a smaller "
            "hidden size."
        )


def _representation(entry: Entry, given: Any) -> Any:
    from icy.core.representations import get_representation  # imports torch

    (name,) = given if isinstance(given, tuple) else (given,)
    found = get_representation(name) if isinstance(name, str) else name
    if not entry.works_with(found.name):
        raise cannot_use(entry, found.name)
    return found


def cannot_use(entry: Entry, representation: str) -> IncompatibleError:
    """Return the error for a model in a representation that it does not support."""
    own = " or ".join(entry.representations)
    return IncompatibleError(
        f"{entry.qualified} cannot be trained in the representation '{representation}', only in {own}: "
        f"use --representation {entry.representations[0]}."
    )


def count_parameters(model: "nn.Module") -> dict[str, int]:
    """Return the number of trainable parameters by both conventions; they are equal for a plain `nn.Module`."""
    true = sum(p.numel() for p in model.parameters() if p.requires_grad)
    count = getattr(model, "parameter_count", None)
    return {"true": true, "published": int(count("published")) if callable(count) else true}


def _option_names(factory: AnyFunction) -> set[str] | None:
    """Return a factory's own options, without the arguments that all models have; None if any keyword is accepted."""
    parameters = list(inspect.signature(factory).parameters.values())
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    named = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return set(named) - COMMON_ARGUMENTS - {"cell"}
