"""A process whose clock can be set: a library in front of the system's answers for it."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("clock.c")
LIBRARY = "HIERINDEX_TEST_CLOCK"


def run_with_clock(script: str, folder: Path) -> str:
    """Run a Python script that may call `set_clock`, and return what it prints."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux, to put a clock before the system's")
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE], check=True)
    path = os.pathsep.join(sys.path)
    environment = {**os.environ, "LD_PRELOAD": str(library), LIBRARY: str(library)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**environment, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def set_clock(seconds: int) -> None:
    """Set the clock of this process to so many seconds after the real time."""
    ctypes.c_long.in_dll(ctypes.CDLL(os.environ[LIBRARY]), "clock_offset").value = seconds
