"""Atomic creation of files and folders."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

from hierindex.errors import InputError


@contextmanager
def new(target: str | Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to the target on success and deleted on failure.

    Parameters
    ----------
    target : str or Path
        Missing parent folders are created.
    folder : bool
        Whether the target is a folder, which may exist if it is empty.

    Raises
    ------
    InputError
        If the target exists or cannot be written.
    """
    named = Path(target)
    target = named.absolute()
    partial = target.with_name(f".{target.name}-{uuid4().hex[:8]}")
    try:
        is_empty_folder = folder and named.is_dir() and not any(named.iterdir())
        if named.exists() and not is_empty_folder:
            raise InputError(f"{str(named)!r} exists already; choose another path or remove it.")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            if target.is_dir():
                target.rmdir()
            partial.rename(target)
        finally:
            if partial.is_dir():
                rmtree(partial)
            else:
                partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{str(named)!r} cannot be written: {error}.") from error
