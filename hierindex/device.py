"""Where torch would compute, and in which type."""

import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")  # of NVIDIA, of NVIDIA under WSL, of AMD


def accelerator() -> str | None:
    """The accelerator that torch finds, by torch's name for it, if any.

    Importing torch takes seconds, so it is asked only where a driver is there or torch is
    imported already.
    """
    if "torch" not in sys.modules and not _may_have_one():
        return None
    torch = _torch()
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def fastest_dtype(device: str) -> "torch.dtype":
    """bfloat16 on a GPU that computes in it, float32 elsewhere.

    Parameters
    ----------
    device : str
        As torch names it.
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
