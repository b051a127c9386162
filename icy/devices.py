"""Where to compute."""

from __future__ import annotations

from icy.errors import InvalidSettingError


def resolve_device(device: str) -> str:
    """The device that is meant, checked.

    Raises:
        InvalidSettingError: it is not there.
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        there = ["auto", "cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise InvalidSettingError(f"There is no device '{device}' here; there is {', '.join(there)}.") from error
    return device
