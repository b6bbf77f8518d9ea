"""The device that torch computes on, and its floating-point type."""

import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # NVIDIA, NVIDIA under WSL, AMD


def accelerator() -> str | None:
    """Return torch's name of the available accelerator, or None.

    Importing torch takes seconds, so without a driver this answers None unless torch is imported.
    """
    if "torch" not in sys.modules and not _may_have_one():
        return None
    torch = _torch()
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def fastest_dtype(device: str) -> "torch.dtype":
    """Return bfloat16 for a GPU that supports it natively, else float32.

    Parameters
    ----------
    device : str
        Torch's name of the device.
    """
    import torch

    if device.startswith("cuda") and torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.bfloat16
    return torch.float32


def _may_have_one() -> bool:
    if sys.platform.startswith("linux"):
        return any(Path(driver).exists() for driver in DRIVERS)
    return sys.platform == "win32" or platform.machine() == "arm64"


def _torch() -> Any:
    import torch

    return torch
