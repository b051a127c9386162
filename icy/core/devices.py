"""Where to compute."""

from __future__ import annotations

import gc

from .errors import InvalidSettingError


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


def make_current(device: str) -> None:
    """Have streams, graphs and counts of memory be of this GPU, where it is one, and not of the first."""
    import torch

    if torch.device(device).type == "cuda":
        torch.cuda.set_device(device)


def release(device: str) -> None:
    """Give back what was taken and is needed no more: stacks hold on to themselves until they are collected."""
    gc.collect()
    if device.startswith("cuda"):
        import torch

        torch.cuda.empty_cache()
