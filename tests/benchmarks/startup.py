"""Seconds from a fresh process to `import hierindex` and to `hierindex --help`.

Usage: python tests/benchmarks/startup.py
"""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import hierindex": [sys.executable, "-c", "import hierindex"],
    "hierindex --help": [str(Path(sys.executable).parent / "hierindex"), "--help"],
}
RUNS = 7


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(f"median of {RUNS} fresh processes")
    for name, command in COMMANDS.items():
        seconds(command)  # compiles and reads from disk what later runs find there
        print(f"{name:<20} {median(seconds(command) for _ in range(RUNS)):6.3f} s")
