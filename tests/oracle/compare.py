"""Compare two files of `run.py` and print their differences: python compare.py a.json b.json."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_SHOWN = 20  # differences of a section
MOST_CHARACTERS = 200  # of a value

MISSING = "(missing)"


def differences(a: Any, b: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both values wherever two JSON values differ.

    Of lists of unequal lengths, it is what only one of them has.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from differences(a.get(key, MISSING), b.get(key, MISSING), f"{path}/{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from differences(one, other, f"{path}/{i}")
    elif isinstance(a, list) and isinstance(b, list):
        mine, others = [x for x in a if x not in b], [x for x in b if x not in a]
        yield path, mine, others
    elif a != b:
        yield path, a, b


def shown(value: Any) -> str:
    """Return a value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


def main() -> int:
    """Print the differences by section, and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("a", type=Path)
    parser.add_argument("b", type=Path)
    parser.add_argument("--all", action="store_true", help="print every difference")
    given = parser.parse_args()
    a, b = (json.loads(path.read_text(encoding="utf-8")) for path in (given.a, given.b))
    n_differences = 0
    for section in [*a, *(name for name in b if name not in a)]:
        found = list(differences(a.get(section, MISSING), b.get(section, MISSING)))
        n_differences += len(found)
        print(f"{section}: {len(found) or 'no'} differences")
        for path, one, other in found if given.all else found[:MOST_SHOWN]:
            print(f"  {path}\n    - {shown(one)}\n    + {shown(other)}")
        if len(found) > MOST_SHOWN and not given.all:
            print(f"  and {len(found) - MOST_SHOWN} more; --all prints them")
    return int(n_differences > 0)


if __name__ == "__main__":
    sys.exit(main())
