"""Digests of a model's files, remembered: hashing 180 MB takes half a second at every start."""

import hashlib
import json
import logging
import tempfile
from pathlib import Path
from typing import Self

FILE = "digests.json"

logger = logging.getLogger(__name__)


class FileDigests:
    """SHA-256 of files, computed again when a file is another one or has changed.

    Those that are new are remembered when its `with` block ends.

    Parameters
    ----------
    folder : Path
        Where they are remembered. A file is known by its path, inode, size and times of change;
        the last of them, which the system sets, cannot be put back by who replaces a file.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        try:
            known = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, list[str]] = known if isinstance(known, dict) else {}
        self._has_new = False

    def __enter__(self) -> Self:
        return self

    def of(self, path: Path) -> str:
        """The file's digest, in hexadecimal."""
        path = path.resolve()
        stat = path.stat()
        state = f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
        if self._known.get(str(path), [""])[0] != state:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            self._known[str(path)] = [state, digest]
            self._has_new = True
        return self._known[str(path)][1]

    def __exit__(self, *_: object) -> None:
        """Write in one step; of two processes one is in vain, and hashes again next time."""
        if not self._has_new:
            return
        there = {path: known for path, known in self._known.items() if Path(path).exists()}
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._file.parent, delete=False) as made:
                json.dump(there, made)
            Path(made.name).replace(self._file)
        except OSError as error:
            logger.info("%s cannot be written: %s.", self._file, error)
