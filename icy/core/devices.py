"""Choose and manage the device for computations."""

from __future__ import annotations

import gc

from .errors import InvalidSettingError


def resolve_device(device: str) -> str:
    """Check that a device is available and return its name; "auto" is "cuda" if there is a GPU, else "cpu".

    Raises:
        InvalidSettingError: the device is not available.
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device, dtype=torch.float32)
    except (RuntimeError, AssertionError) as error:
        available = ["auto", "cpu", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
        raise InvalidSettingError(f"The device '{device}' is not available; use {', '.join(available)}.") from error
    return device


def make_current(device: str) -> None:
    """Make a GPU the current device, which streams, graphs and memory counts use; ignore other devices."""
    import torch

    if torch.device(device).type == "cuda":
        torch.cuda.set_device(device)


def release(device: str) -> None:
    """Free unused memory. Stacks refer to themselves, so that only the garbage collector frees them."""
    gc.collect()
    if device.startswith("cuda"):
        import torch

        torch.cuda.empty_cache()
